package fleet_test

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/commit"
	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/partition"
	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
	"milepost/internal/stream"
)

// a straight road of 9 km, another 30 km to the north, and one 4 km to the south of the first.
const roads = `A(0,0)-B(3000,0)-C(6000,0)-D(9000,0); N(0,30000)-O(9000,30000); S(0,-4000)-T(9000,-4000)`

// drive is one vehicle that drives through the workload as the machine would do it.
type drive struct {
	t      *testing.T
	m      *roadnettest.Map
	w      *fleet.Workload
	solver *fleet.Solver
	key    partition.KeyState
	offset int64
}

func newDrive(t *testing.T, cfg fleet.Config) *drive {
	t.Helper()
	m := roadnettest.Parse(t, roads)
	return &drive{
		t: t, m: m, w: workload(t, cfg, fleet.MapOf(m.Graph)), solver: newSolver(t, m.Graph), key: partition.KeyState{Epoch: 7}, offset: 100,
	}
}

func newSolver(tb testing.TB, g *roadnet.Graph) *fleet.Solver {
	tb.Helper()
	m, err := mapmatch.New(g, mapmatch.DefaultConfig())
	if err != nil {
		tb.Fatal(err)
	}
	return fleet.NewSolver(m, g.Hash())
}

func epoch() time.Time { return time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC) }

func seconds(s float64) time.Time { return epoch().Add(time.Duration(s * float64(time.Second))) }

// observe decodes the raw record of a place, x and y metres from the map's origin, s seconds after the epoch.
func (d *drive) observe(s, x, y float64) partition.Observation {
	d.t.Helper()
	r := &stream.Record{
		Partition: stream.Partition{Topic: "raw", Number: 3}, Offset: d.offset, Timestamp: seconds(s), Key: []byte("v1"),
		Value: fleet.AppendFix(nil, &fleet.Fix{Observation: mapmatch.Observation{
			Time: seconds(s), Point: d.m.Point(x, y), AccuracyM: 5, SpeedMPS: math.NaN(), Heading: math.NaN(),
		}}),
	}
	o, err := d.w.Decode(r)
	if err != nil {
		d.t.Fatal(err)
	}
	o.Identity = stream.Identity{Partition: r.Partition, Revision: stream.Revision{Generation: 2, Offset: d.offset}}
	d.offset++
	return o
}

// decide opens an observation and has it solved where that is needed.
func (d *drive) decide(o partition.Observation) partition.Decision {
	d.t.Helper()
	opening := d.w.Open(d.key, o)
	if (opening.Local == nil) == (opening.Request == nil) {
		d.t.Fatalf("opening %+v: want exactly one of a decision and a request", opening)
	}
	if opening.Local != nil {
		return *opening.Local
	}
	decision, err := d.solver.Solve(opening.Request)
	if err != nil {
		d.t.Fatal(err)
	}
	return decision
}

// commit plans, checks what holds for every plan, and installs the checkpoint.
func (d *drive) commit(o partition.Observation, decision partition.Decision) fleet.Event {
	d.t.Helper()
	plan, err := d.w.Plan(d.key, o, decision)
	if err != nil {
		d.t.Fatal(err)
	}
	again, err := d.w.Plan(d.key, o, decision)
	if err != nil {
		d.t.Fatal(err)
	}
	if diff := cmp.Diff(plan, again); diff != "" { // I16
		d.t.Errorf("planned twice: %s", diff)
	}
	if plan.Next.Revision != o.Identity.Revision {
		d.t.Errorf("next revision %s, want the observation's %s", plan.Next.Revision, o.Identity.Revision)
	}
	if len(plan.Outputs) != 1 { // L2
		d.t.Fatalf("%d outputs, want one", len(plan.Outputs))
	}
	e, err := fleet.DecodeEvent(plan.Outputs[0].Value)
	if err != nil {
		d.t.Fatal(err)
	}
	if got := e.AppendJSON(nil); !bytes.Equal(got, plan.Outputs[0].Value) {
		d.t.Errorf("decoded and encoded again:\n%s\n%s", got, plan.Outputs[0].Value)
	}
	d.checkSegment(&e, plan.Next)
	d.key.Checkpoint = plan.Next
	return e
}

// checkSegment: no segment change without a reset, and none with one that stays (A11, L3).
func (d *drive) checkSegment(e *fleet.Event, next commit.Checkpoint) {
	d.t.Helper()
	before := d.key.Checkpoint.Segment
	want := max(before, 1)
	if e.Reset != nil {
		want = before + 1
		if e.Reset.PreviousSegment != before {
			d.t.Errorf("reset from segment %d, want %d", e.Reset.PreviousSegment, before)
		}
	}
	if e.Segment != want || next.Segment != want {
		d.t.Errorf("segment %d, checkpoint %d, want %d", e.Segment, next.Segment, want)
	}
}

// at drives to a place.
func (d *drive) at(s, x, y float64) fleet.Event {
	d.t.Helper()
	o := d.observe(s, x, y)
	return d.commit(o, d.decide(o))
}

// along drives n steps of 10 s and 150 m along the road from x.
func (d *drive) along(s, x float64, n int) fleet.Event {
	d.t.Helper()
	var e fleet.Event
	for i := range n {
		e = d.at(s+10*float64(i), x+150*float64(i), 3)
	}
	return e
}

func reasonOf(e fleet.Event) string {
	if e.Reset == nil {
		return ""
	}
	return e.Reset.Reason
}

// Design 10: the fields and headers of an ordinary event; a consumer rebuilds the driven path from the events.
func TestDriveAlong(t *testing.T) {
	d := newDrive(t, config())
	var track fleet.Track
	for i := range 20 {
		e := d.at(10*float64(i), 100+150*float64(i), 4)
		if e.Disposition != fleet.Matched || e.Segment != 1 || e.Reset != nil || e.Seq == nil || *e.Seq != int64(i) || e.Provisional == nil {
			t.Fatalf("event %d: %+v", i, e)
		}
		if p := e.Provisional; p.Place == nil || p.Way != d.m.Way("w1") || math.Abs(p.HeadingDeg-90) > 1 && i > 0 {
			t.Errorf("event %d: provisional %+v", i, p.Place)
		}
		track.Apply(&e)
	}
	got := track.Pairs()
	want := []mapmatch.Pair{{Way: d.m.Way("w1"), From: d.m.Node("A"), To: d.m.Node("B")}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("driven pairs: %s", diff)
	}
}

// M7: the events of a drive that turns at the very place of an observation say so once, and all formats of them know it: nothing has to be
// found out from the way that the spans go.
func TestTurnAtAnObservation(t *testing.T) {
	d := newDrive(t, config())
	var final []fleet.Span
	var track fleet.Track
	for i := range 40 {
		x, heading := 200+20*float64(min(i, 40-i)), 90.0
		if i >= 20 {
			heading = 270
		}
		o := d.observe(2*float64(i), x, 0)
		fix, ok := o.Value.(fleet.Fix)
		if !ok {
			t.Fatalf("a %T", o.Value)
		}
		fix.SpeedMPS, fix.Heading = 10, heading
		o.Value = fix
		e := d.commit(o, d.decide(o))
		if e.Final != nil {
			final = append(final, e.Final.Path...)
		}
		track.Apply(&e)
	}
	turns := 0
	for i := range final {
		if final[i].Entered == fleet.EnteredUTurn {
			turns++
		}
		if final[i].FromM == final[i].ToM && final[i].Entered == "" {
			t.Errorf("span %d has no length and tells of nothing: %+v", i, final[i])
		}
	}
	if turns != 1 {
		t.Errorf("%d U-turns are told of, want one: %+v", turns, final)
	}
	a, b := d.m.Node("A"), d.m.Node("B")
	want := []mapmatch.Pair{{Way: d.m.Way("w1"), From: a, To: b}, {Way: d.m.Way("w1"), From: b, To: a}}
	if diff := cmp.Diff(want, track.Pairs()); diff != "" {
		t.Errorf("driven pairs: %s", diff)
	}
}

// Design 10, F4, P: identity and CloudEvents headers of outputs come from where the observation stands.
func TestOutputHeaders(t *testing.T) {
	d := newDrive(t, config())
	o := d.observe(0, 100, 0)
	plan, err := d.w.Plan(d.key, o, d.decide(o))
	if err != nil {
		t.Fatal(err)
	}
	out := plan.Outputs[0]
	if out.Topic != "p.matched" || string(out.Key) != "v1" {
		t.Errorf("topic %s, key %s", out.Topic, out.Key)
	}
	got := map[string]string{}
	for _, h := range out.Headers {
		got[h.Key] = string(h.Value)
	}
	want := map[string]string{
		"ce_specversion": "1.0", "ce_type": fleet.MatchedType, "ce_source": "/g/raw", "ce_subject": "v1",
		"ce_time": "2026-03-01T08:00:00Z", "ce_id": "raw/2/3/100/0", "ce_revision": "2.100", "ce_epoch": "7",
		"content-type": fleet.ContentTypeJSON,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var e fleet.Event
	if err := json.Unmarshal(out.Value, &e); err != nil || e.ID != "raw/2/3/100/0" || e.Revision != "2.100" || e.Vehicle != "v1" {
		t.Errorf("event %+v, %v", e, err)
	}
}

// A6, M20, M21: a time not after the last is a terminal of the workload's own: no solver, state untouched, revision advances.
func TestTimestampRegression(t *testing.T) {
	d := newDrive(t, config())
	d.along(0, 100, 5)
	for _, s := range []float64{40, 39, -5} {
		before := d.key.Checkpoint
		o := d.observe(s, 700, 0)
		if opening := d.w.Open(d.key, o); opening.Local == nil || opening.Local.Reason != fleet.TerminalRegression {
			t.Fatalf("second %v: opening %+v", s, opening)
		}
		e := d.commit(o, d.decide(o))
		if e.Disposition != fleet.TerminalRegression || e.Reset != nil || e.Seq != nil || e.Provisional != nil || e.Final != nil {
			t.Errorf("second %v: %+v", s, e)
		}
		if !bytes.Equal(d.key.Checkpoint.State, before.State) {
			t.Errorf("second %v: the state changed", s)
		}
	}
	if e := d.at(50, 850, 3); e.Disposition != fleet.Matched || *e.Seq != 5 {
		t.Errorf("afterwards: %+v", e)
	}
}

// A7, L6: a place off the map is a terminal that keeps the open stretch and advances the last input.
func TestUnsupportedCoverageKeepsTheTrip(t *testing.T) {
	d := newDrive(t, config())
	d.along(0, 100, 5)
	e := d.at(50, 700, 60_000)
	if e.Disposition != fleet.TerminalUnsupported || e.Reset != nil {
		t.Errorf("off the map: %+v", e)
	}
	if e := d.at(50, 850, 3); e.Disposition != fleet.TerminalRegression {
		t.Errorf("the same time again is %s, want a regression: the last input advanced", e.Disposition)
	}
	if e := d.at(60, 1000, 3); e.Disposition != fleet.Matched || e.Segment != 1 || *e.Seq != 5 {
		t.Errorf("back on the map: %+v", e)
	}
}

// A5, F9: a state that cannot be read is a reset that says what it retracts; it comes once.
func TestStateLost(t *testing.T) {
	d := newDrive(t, config())
	d.along(0, 100, 5)
	d.key.Checkpoint.State = []byte("not a state")
	e := d.at(50, 850, 3)
	if reasonOf(e) != fleet.ResetStateLost || e.Disposition != fleet.Matched || *e.Seq != 0 || e.Closed != nil {
		t.Errorf("got %+v", e)
	}
	if e.Retracted == nil || e.Retracted.Segment != 1 || e.Retracted.FromSeq != nil {
		t.Errorf("retracted %+v, want all of segment 1 that is not final", e.Retracted)
	}
	if e := d.at(60, 1000, 3); e.Reset != nil || e.Segment != 2 {
		t.Errorf("the next: %+v", e)
	}
}

// A5, A7, A19 "a state-lost key in an unserved cell", F9: the reset rides on a terminal too, and comes once.
func TestStateLostRidesOnTerminal(t *testing.T) {
	d := newDrive(t, config())
	d.along(0, 100, 5)
	d.key.Checkpoint.State = nil
	e := d.at(50, 700, 60_000)
	if reasonOf(e) != fleet.ResetStateLost || e.Disposition != fleet.TerminalUnsupported || e.Segment != 2 {
		t.Errorf("got %+v", e)
	}
	if e := d.at(60, 1000, 3); e.Reset != nil || e.Segment != 2 || *e.Seq != 0 {
		t.Errorf("the next: %+v", e)
	}
}

// A5, M44: a state of another graph is lost, says from where on what was announced is void, and its last event time still counts; the
// reset rides on the regression.
func TestForeignGraph(t *testing.T) {
	d := newDrive(t, config())
	d.along(0, 100, 5)
	m := roadnettest.Parse(t, roads+"; X(0,100)-Y(900,100)")
	d.m, d.w, d.solver = m, workload(t, config(), fleet.MapOf(m.Graph)), newSolver(t, m.Graph)
	e := d.at(40, 850, 3)
	if reasonOf(e) != fleet.ResetStateLost || e.Disposition != fleet.TerminalRegression {
		t.Errorf("got %+v", e)
	}
	if e.Retracted == nil || e.Retracted.FromSeq == nil {
		t.Errorf("retracted %+v, want a first number", e.Retracted)
	}
	if e := d.at(50, 850, 3); e.Reset != nil || e.Segment != 2 || *e.Seq != 0 || e.Disposition != fleet.Matched {
		t.Errorf("the next: %+v", e)
	}
}

// M44: a state that only the matcher finds foreign (its configuration changed) is answered in one round: a reset and a match.
func TestForeignMatcherConfiguration(t *testing.T) {
	d := newDrive(t, config())
	d.along(0, 100, 5)
	other := mapmatch.DefaultConfig()
	other.Candidates = 8
	m, err := mapmatch.New(d.m.Graph, other)
	if err != nil {
		t.Fatal(err)
	}
	d.solver = fleet.NewSolver(m, d.m.Graph.Hash())
	e := d.at(50, 850, 3)
	if reasonOf(e) != fleet.ResetStateLost || e.Disposition != fleet.Matched || *e.Seq != 0 || e.Retracted == nil {
		t.Errorf("got %+v", e)
	}
	d.at(60, 1000, 3)
	d.solver = newSolver(t, d.m.Graph)
	e = d.at(400, 4000, 3) // the closing stretch is foreign now: a gap whose former segment cannot be closed
	if reasonOf(e) != fleet.ResetGap || e.Closed != nil || e.Retracted == nil || e.Retracted.Segment != 2 {
		t.Errorf("got %+v", e)
	}
}

// A5: expired is neither empty nor lost: the next observation opens a segment, and a time that goes back is still refused.
func TestExpired(t *testing.T) {
	d := newDrive(t, config())
	d.along(0, 100, 5)
	d.key.Checkpoint.State, d.key.Expired = fleet.Tail(d.key.Checkpoint.State), true
	tail := d.key
	e := d.at(50, 850, 3)
	if reasonOf(e) != fleet.ResetExpired || e.Disposition != fleet.Matched || *e.Seq != 0 {
		t.Errorf("got %+v", e)
	}
	d.key = tail
	if e := d.at(40, 850, 3); reasonOf(e) != fleet.ResetExpired || e.Disposition != fleet.TerminalRegression {
		t.Errorf("going back: %+v", e)
	}
	d.key = tail
	d.key.Checkpoint.State = nil
	if e := d.at(40, 850, 3); reasonOf(e) != fleet.ResetExpired || e.Disposition != fleet.Matched {
		t.Errorf("without a tail: %+v", e)
	}
	// An operator's replay brings what lies before the tail's time: it is decided, not refused.
	d.key = tail
	d.key.Anew = fleet.ResetOperator
	if e := d.at(40, 850, 3); reasonOf(e) != fleet.ResetOperator || e.Disposition != fleet.Matched {
		t.Errorf("replayed: %+v", e)
	}
}

// A11, I10: a gap ends the segment: what was open of it becomes final in the same event, before the match of the new segment, and nothing is
// retracted. Each final place comes once (I9).
func TestGapClosesTheSegment(t *testing.T) {
	d := newDrive(t, config())
	seen := map[int64]bool{}
	final := func(f *fleet.Final) {
		if f == nil {
			return
		}
		for _, p := range f.Points {
			if seen[f.Segment<<32|p.Seq] {
				t.Errorf("segment %d: number %d is final twice", f.Segment, p.Seq)
			}
			seen[f.Segment<<32|p.Seq] = true
		}
	}
	for i := range 8 {
		e := d.at(10*float64(i), 100+150*float64(i), 3)
		final(e.Final)
	}
	e := d.at(70+301, 6000, 3)
	if reasonOf(e) != fleet.ResetGap || e.Segment != 2 || *e.Seq != 0 || e.Retracted != nil || e.Closed == nil || e.Closed.Segment != 1 {
		t.Fatalf("got %+v", e)
	}
	final(e.Closed)
	for n := range int64(8) {
		if !seen[1<<32|n] {
			t.Errorf("number %d of segment 1 never became final", n)
		}
	}
	if len(e.Closed.Path) == 0 {
		t.Error("the closed segment's last spans are missing")
	}
}

// A11, F12: a jump that no speed explains and that is beyond the limit is a teleport; one within the limit is the matcher's to judge, and
// costs one observation, not the segment (M15).
func TestTeleportAndOutlier(t *testing.T) {
	d := newDrive(t, config())
	d.along(0, 100, 5)
	if e := d.at(50, 850, -4000); e.Disposition != fleet.Outlier || e.Reset != nil || e.Provisional != nil {
		t.Errorf("one wild point: %+v", e)
	}
	if e := d.at(60, 1000, 3); e.Disposition != fleet.Matched || e.Segment != 1 {
		t.Errorf("back again: %+v", e)
	}
	e := d.at(70, 1000, 30_000)
	if reasonOf(e) != fleet.ResetTeleport || e.Segment != 2 || e.Closed == nil || *e.Seq != 0 {
		t.Errorf("far away: %+v", e)
	}
	if e := d.at(70+290, 9000, 30_000); e.Reset != nil {
		t.Errorf("8 km in 290 s: %+v", e.Reset)
	}
}

// A11, M16, F12, I10: the matcher's own break is a reset too; the numbers go on, and the former segment is closed whole.
func TestMatcherBreakIsReset(t *testing.T) {
	d := newDrive(t, config())
	var track fleet.Track
	apply := func(e fleet.Event) fleet.Event {
		track.Apply(&e)
		return e
	}
	for i := range 6 {
		apply(d.at(10*float64(i), 100+150*float64(i), 3))
	}
	apply(d.at(60, 5000, -4000))
	e := apply(d.at(70, 5150, -4000))
	for i := range 3 {
		if e.Reset != nil {
			break
		}
		e = apply(d.at(80+10*float64(i), 5300+150*float64(i), -4000))
	}
	if reasonOf(e) != fleet.ResetTeleport || e.Closed == nil || len(e.Closed.Points) == 0 || *e.Seq == 0 || e.Segment != 2 {
		t.Fatalf("two islands: %+v", e)
	}
	for i := range 5 {
		if e := apply(d.at(120+10*float64(i), 5600+150*float64(i), -4000)); e.Reset != nil || e.Segment != 2 {
			t.Errorf("on the other island: %+v", e)
		}
	}
	want := []mapmatch.Pair{
		{Way: d.m.Way("w1"), From: d.m.Node("A"), To: d.m.Node("B")}, {Way: d.m.Way("w3"), From: d.m.Node("S"), To: d.m.Node("T")},
	}
	if diff := cmp.Diff(want, track.Pairs()); diff != "" {
		t.Errorf("driven pairs: %s", diff)
	}
}

// A5, A11: a pending reset inside a checkpoint is announced by whatever commits next, once.
func TestPendingReset(t *testing.T) {
	d := newDrive(t, config())
	d.along(0, 100, 5)
	d.key.Checkpoint.State = fleet.WithPendingReset(d.key.Checkpoint.State, fleet.ResetOperator)
	if e := d.at(30, 850, 3); reasonOf(e) != fleet.ResetOperator || e.Disposition != fleet.TerminalRegression || e.Retracted == nil {
		t.Errorf("got %+v", e)
	}
	if e := d.at(50, 850, 3); e.Reset != nil || e.Segment != 2 || *e.Seq != 0 {
		t.Errorf("the next: %+v", e)
	}
}

// A11, P29, F30: where observations were lost, or a topic is replayed, the partition says so and the key begins anew; only a replay may
// bring times that lie before what was seen.
func TestBeginsAnew(t *testing.T) {
	for reason, disposition := range map[string]string{
		fleet.ResetOperator: fleet.Matched, fleet.ResetDataLoss: fleet.TerminalRegression,
	} {
		d := newDrive(t, config())
		d.along(0, 100, 5)
		d.key.Anew = reason
		e := d.at(30, 850, 3) // a time that was seen
		if reasonOf(e) != reason || e.Disposition != disposition || e.Retracted == nil || e.Segment != 2 {
			t.Errorf("%s: got %+v, want it %s", reason, e, disposition)
		}
		d.key.Anew = "" // its checkpoint is newer now
		if e := d.at(500, 860, 3); e.Reset != nil && e.Reset.Reason == reason {
			t.Errorf("%s: the next is reset again: %+v", reason, e)
		}
	}
}

// A11: a reset that the dispatch finds goes before one that the restore left.
func TestGapBeforePendingReset(t *testing.T) {
	d := newDrive(t, config())
	d.along(0, 100, 5)
	d.key.Checkpoint.State = fleet.WithPendingReset(d.key.Checkpoint.State, fleet.ResetOperator)
	if e := d.at(1000, 850, 3); reasonOf(e) != fleet.ResetGap || e.Closed != nil || e.Retracted == nil {
		t.Errorf("got %+v", e)
	}
}

// A11: a decided reset voids the history and the observation; a reason outside the list is refused, a terminal without a known one is
// internal.
func TestDecidedResetAndTerminal(t *testing.T) {
	d := newDrive(t, config())
	d.along(0, 100, 5)
	o := d.observe(50, 850, 3)
	e := d.commit(o, partition.Decision{Kind: partition.Reset, Reason: fleet.ResetDataLoss})
	if reasonOf(e) != fleet.ResetDataLoss || e.Disposition != fleet.Voided || e.Retracted == nil {
		t.Errorf("got %+v", e)
	}
	o = d.observe(60, 1000, 3)
	if e := d.commit(o, partition.Decision{Kind: partition.Terminal, Reason: "because"}); e.Disposition != fleet.TerminalInternal || e.Reset != nil {
		t.Errorf("got %+v", e)
	}
	if e := d.at(70, 1150, 3); e.Reset != nil || *e.Seq != 0 {
		t.Errorf("the next: %+v", e)
	}
	for _, bad := range []partition.Decision{
		{Kind: partition.Reset, Reason: "because"}, {Kind: partition.Solved}, {Kind: partition.Solved, Answer: []byte("\xff\xff")}, {},
	} {
		_, err := d.w.Plan(d.key, d.observe(80, 1300, 3), bad)
		if err == nil || commit.ClassOf(err) != commit.Permanent {
			t.Errorf("%+v: got %v, want an error of class permanent", bad, err)
		}
	}
}

// I8, I9, L4: an answer to an earlier state of the key, which would announce final again what is final, is refused.
func TestStaleAnswerIsRefused(t *testing.T) {
	d := newDrive(t, config())
	d.along(0, 100, 5)
	old := d.decide(d.observe(50, 850, 3))
	d.along(50, 850, 5)
	_, err := d.w.Plan(d.key, d.observe(100, 1600, 3), old)
	if err == nil || commit.ClassOf(err) != commit.Permanent {
		t.Errorf("got %v, want an error of class permanent", err)
	}
}

// I7, I16, A5: opening is pure: the same key state and observation give the same request after any other work in between, and nothing that
// was planned but never committed leaves a trace.
func TestOpenIsPure(t *testing.T) {
	d := newDrive(t, config())
	d.along(0, 100, 5)
	d.key.Checkpoint.State = fleet.WithPendingReset(d.key.Checkpoint.State, fleet.ResetOperator)
	before := d.key
	o := d.observe(50, 850, 3)
	first := d.w.Open(d.key, o)
	d.along(60, 1000, 3)
	d.key = before
	if diff := cmp.Diff(first, d.w.Open(d.key, o)); diff != "" {
		t.Error(diff)
	}
	if e := d.commit(o, d.decide(o)); reasonOf(e) != fleet.ResetOperator {
		t.Errorf("the rolled-back reset did not come back: %+v", e)
	}
}

// Dead letters: value, key and headers byte for byte, with the reason and where from (A3, design 5 and 10).
func TestDeadLetter(t *testing.T) {
	w := workload(t, config(), fleet.Map{})
	r := &stream.Record{
		Partition: stream.Partition{Topic: "raw", Number: 1}, Offset: 9, Timestamp: epoch(), Key: []byte{0xff, 'k'}, Value: []byte("{"),
		Headers: []stream.Header{{Key: "content-type", Value: []byte("text/x")}, {Key: "ce_id", Value: []byte("theirs")}, {Key: "traceparent", Value: []byte("00")}},
	}
	id := stream.Identity{Partition: r.Partition, Revision: stream.Revision{Generation: 1, Offset: 9}}
	out := w.DeadLetter(id, 4, r, &commit.PoisonError{Reason: fleet.PoisonBadKey, Detail: "the key is not text"})
	if out.Topic != "p.dead-letter" || !bytes.Equal(out.Key, r.Key) || !bytes.Equal(out.Value, r.Value) {
		t.Errorf("got %+v", out)
	}
	got := map[string]string{}
	for _, h := range out.Headers {
		if _, twice := got[h.Key]; twice {
			t.Errorf("header %s is there twice", h.Key)
		}
		got[h.Key] = string(h.Value)
	}
	want := map[string]string{
		"ce_specversion": "1.0", "ce_type": fleet.DeadLetterType, "ce_source": "/g/raw", "ce_subject": "\uFFFDk", "ce_time": "2026-03-01T08:00:00Z",
		"ce_id": "raw/1/1/9/0", "ce_revision": "1.9", "ce_epoch": "4", "ce_reason": fleet.PoisonBadKey, "content-type": "text/x", "traceparent": "00",
		"milepost_detail": "the key is not text", "milepost_topic": "raw", "milepost_partition": "1", "milepost_offset": "9",
		"milepost_time": "2026-03-01T08:00:00Z",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if out := w.DeadLetter(id, 4, &stream.Record{}, &commit.PoisonError{Reason: fleet.PoisonNoValue}); out.Value != nil || out.Key != nil {
		t.Errorf("a null value or key became %v, %v", out.Key, out.Value)
	}
}
