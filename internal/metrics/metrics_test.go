package metrics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

// fixed is a source that a test sets.
type fixed struct {
	parts      []Partition
	generation int32
}

func (f *fixed) Partitions() []Partition { return f.parts }
func (f *fixed) Generation() int32       { return f.generation }
func (f *fixed) Waiting() map[string]int { return map[string]int{"prepare": 3} }

func start() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

func name(n int32) stream.Partition { return stream.Partition{Topic: "raw", Number: n} }

func lists() partition.Lists {
	return partition.Lists{Poison: []string{"no_key"}, Terminal: []string{"regression", "internal"}, Reset: []string{"gap"}}
}

// scrape gathers and gives every series' value, histograms by their count: name{label="value",…}.
func scrape(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			id := f.GetName()
			for _, l := range m.GetLabel() {
				id += fmt.Sprintf("{%s=%q}", l.GetName(), l.GetValue())
			}
			switch {
			case m.Histogram != nil:
				out[id] = float64(m.GetHistogram().GetSampleCount())
			case m.Counter != nil:
				out[id] = m.GetCounter().GetValue()
			default:
				out[id] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

func expect(t *testing.T, got map[string]float64, want map[string]float64) {
	t.Helper()
	for id, v := range want {
		if g, ok := got[id]; !ok || g != v {
			t.Errorf("%s is %v (there: %v), want %v", id, g, ok, v)
		}
	}
}

// A17, P33, F25: gauges are sums over the partitions at the scrape; the lags to the log's end and to its stable end stand
// apart; the age of the oldest observation is that of the oldest partition, and 0 when nothing is in hand; the series
// of a revoked partition are gone at the next scrape.
func TestScrape(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := New(reg, Config{Reasons: lists()})
	now := time.Now()
	source := &fixed{generation: 7, parts: []Partition{
		{
			Name: name(0), State: "running", Epoch: 4, Saved: 100, End: 130, Stable: 110,
			View: partition.View{Keys: 5, Waiting: 2, Queued: 30, QueuedBytes: 1000, Paused: true, OldestPending: now.Add(-time.Hour)},
		},
		{
			Name: name(3), State: "draining", Epoch: 2, Saved: 50, End: 50, Stable: 50,
			View: partition.View{Keys: 7, Blocked: 1, OldestPending: now.Add(-time.Minute)},
		},
		{Name: name(9), State: "acquiring", End: -1, Stable: -1},
	}}
	expect(t, scrape(t, reg), map[string]float64{`milepost_keys{state="known"}`: 0, "milepost_oldest_pending_seconds": 0, "milepost_group_generation": 0})
	m.Watch(source)
	got := scrape(t, reg)
	expect(t, got, map[string]float64{
		`milepost_lag_records{partition="0"}`: 30, `milepost_stable_lag_records{partition="0"}`: 10, `milepost_lag_records{partition="3"}`: 0,
		`milepost_frontier{partition="3"}`: 50, `milepost_ownership_epoch{partition="0"}`: 4,
		`milepost_keys{state="known"}`: 12, `milepost_keys{state="waiting"}`: 2, `milepost_keys{state="blocked"}`: 1,
		"milepost_queued_observations": 30, "milepost_queued_bytes": 1000, "milepost_paused_partitions": 1,
		`milepost_partitions{state="running"}`: 1, `milepost_partitions{state="acquiring"}`: 1, `milepost_partitions{state="stopped"}`: 0,
		"milepost_group_generation": 7, `milepost_waiting{stage="prepare"}`: 3,
	})
	if age := got["milepost_oldest_pending_seconds"]; age < 3600 || age > 3700 {
		t.Errorf("oldest pending %v s, want an hour", age)
	}
	if _, ok := got[`milepost_lag_records{partition="9"}`]; ok {
		t.Error("a partition that is not acquired has a lag")
	}
	source.parts = source.parts[1:2]
	source.parts[0].View.OldestPending = time.Now().Add(time.Hour) // a clock that went back
	got = scrape(t, reg)
	for id := range got {
		if slices.Contains([]string{`milepost_lag_records{partition="0"}`, `milepost_frontier{partition="0"}`, `milepost_ownership_epoch{partition="0"}`}, id) {
			t.Errorf("%s is still there", id)
		}
	}
	expect(t, got, map[string]float64{`milepost_keys{state="known"}`: 7, "milepost_oldest_pending_seconds": 0})
}

// A17: counters are those of running and of ended tenures together. They neither go back nor count twice while a tenure ends,
// whichever of its view and its report a scrape sees.
func TestCountersOverTenures(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := New(reg, Config{Reasons: lists()})
	stats := func(n int64) partition.Stats { return partition.Stats{Offered: n, Committed: n, Terminals: n} }
	why := func(n int64) partition.Reasons {
		return partition.Reasons{{Counter: "terminal", Reason: "regression"}: n}
	}
	source := &fixed{parts: []Partition{{Name: name(0), State: "running", Epoch: 1, View: partition.View{Stats: stats(10), Reasons: why(10)}}}}
	m.Watch(source)
	check := func(step string, want float64) {
		t.Helper()
		got := scrape(t, reg)
		if a, b := got["milepost_committed_total"], got[`milepost_terminal_total{reason="regression"}`]; a != want || b != want {
			t.Errorf("%s: %v and %v, want %v", step, a, b, want)
		}
	}
	check("running", 10)
	m.Ended(name(0), 1, false, &commit.FencedError{}, partition.Report{Stats: stats(12), Reasons: why(12)})
	check("its end is told, it is still listed", 12)
	source.parts = nil
	check("gone", 12)
	source.parts = []Partition{{Name: name(0), State: "running", Epoch: 3, View: partition.View{Stats: stats(5), Reasons: why(5)}}}
	check("again", 17)
	source.parts = nil
	check("gone before its end is told", 17)
	m.Ended(name(0), 3, true, nil, partition.Report{Stats: stats(6), Reasons: why(6)})
	check("told", 18)
	expect(t, scrape(t, reg), map[string]float64{
		`milepost_tenures_ended_total{end="fenced"}`: 1, `milepost_tenures_ended_total{end="released"}`: 1, `milepost_tenures_ended_total{end="unreleased"}`: 0,
	})
}

// A17: what clocks make negative is not recorded; stages, turns, batches and lanes are measured by calling what is wrapped.
func TestMeasures(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := New(reg, Config{Reasons: lists(), Turns: []string{"tick"}})
	m.Committed(-time.Second)
	m.Committed(time.Second)
	m.Solved(time.Second, nil)
	m.Solved(time.Second, fmt.Errorf("boom: %w", commit.ErrPermanent))
	m.Turned("tick", time.Microsecond)
	m.Acquired(name(0), 1, time.Second)
	m.Recovered(commit.RecoveryReport{Promoted: 2, Failed: []stream.Key{"k"}}, time.Second)
	m.FetchError(errors.New("away"))
	m.Gap(name(0), 1, 2)
	m.Difference(name(0), 1, 2)
	m.DataLoss(name(0), 10, 14)
	m.Expired(3)

	broken := &broken{}
	s := m.Store(broken)
	for range 2 {
		_, _ = s.Prepare(t.Context(), make([]commit.Commit, 5))
		_, _ = s.Promote(t.Context(), nil)
		_, _ = s.Restore(t.Context(), nil, nil)
		_, _ = s.SaveFrontier(t.Context(), nil)
		_, _ = s.Quarantine(t.Context(), nil)
		broken.err = errors.New("away")
	}
	p := m.Publisher(broken)
	if p.Lanes() != 3 {
		t.Fatalf("%d lanes, want those of what is wrapped", p.Lanes())
	}
	broken.during = func() {
		expect(t, scrape(t, reg), map[string]float64{`milepost_lanes{state="publishing"}`: 1, `milepost_lanes{state="idle"}`: 2})
	}
	broken.err = nil
	_, _ = p.Publish(t.Context(), 0, make([]commit.Commit, 2))
	broken.during = nil
	broken.out.Failed = map[int]error{0: errors.New("a")}
	_, _ = p.Publish(t.Context(), 0, make([]commit.Commit, 2))
	broken.out.Failed[1] = errors.New("b")
	_, _ = p.Publish(t.Context(), 1, make([]commit.Commit, 2))
	broken.err = context.Canceled
	_, _ = p.Publish(t.Context(), 2, make([]commit.Commit, 2))

	expect(t, scrape(t, reg), map[string]float64{
		"milepost_commit_latency_seconds":                      1,
		`milepost_stage_seconds{stage="solve"}`:                2,
		`milepost_solver_errors_total{class="permanent"}`:      1,
		`milepost_solver_errors_total{class="transient"}`:      0,
		`milepost_loop_turn_seconds{kind="tick"}`:              1,
		"milepost_acquisition_seconds":                         1,
		"milepost_recovery_seconds":                            1,
		`milepost_recovered_commits_total{outcome="promoted"}`: 2, `milepost_recovered_commits_total{outcome="failed"}`: 1,
		"milepost_fetch_errors_total": 1, "milepost_fetch_gaps_total": 1, "milepost_offset_differences_total": 1, "milepost_lost_observations_total": 4,
		"milepost_expired_states_total":           3,
		`milepost_stage_seconds{stage="prepare"}`: 2, `milepost_stage_errors_total{stage="prepare"}`: 1, `milepost_batch_commits{stage="prepare"}`: 2,
		`milepost_stage_seconds{stage="restore"}`: 2, `milepost_stage_seconds{stage="promote"}`: 2,
		`milepost_stage_seconds{stage="frontier"}`: 2, `milepost_stage_seconds{stage="quarantine"}`: 2,
		`milepost_stage_seconds{stage="publish"}`: 4, `milepost_stage_errors_total{stage="publish"}`: 2,
		`milepost_publications_total{outcome="all"}`: 1, `milepost_publications_total{outcome="part"}`: 1,
		`milepost_publications_total{outcome="none"}`: 1, `milepost_publications_total{outcome="unknown"}`: 1,
		`milepost_lanes{state="failing"}`: 2, `milepost_lanes{state="idle"}`: 1, `milepost_lanes{state="publishing"}`: 0,
	})
}

// broken is a store and a publisher that answer as a test tells them.
type broken struct {
	committest.MemoryStore
	err    error
	out    commit.Published
	during func()
}

func (b *broken) Prepare(context.Context, []commit.Commit) ([]commit.PrepareVerdict, error) {
	return nil, b.err
}
func (b *broken) Promote(context.Context, []commit.Promotion) ([]error, error) { return nil, b.err }
func (b *broken) Restore(context.Context, *commit.Tenure, []stream.Key) ([]commit.Restored, error) {
	return nil, b.err
}

func (b *broken) SaveFrontier(context.Context, []commit.FrontierWrite) ([]error, error) {
	return nil, b.err
}

func (b *broken) Quarantine(context.Context, []commit.Quarantined) ([]error, error) {
	return nil, b.err
}
func (b *broken) Lanes() int { return 3 }
func (b *broken) Publish(context.Context, int, []commit.Commit) (commit.Published, error) {
	if b.during != nil {
		b.during()
	}
	return b.out, b.err
}

// hostile is a workload whose records choose every word that it says.
type hostile struct{}

func (hostile) Decode(r *stream.Record) (partition.Observation, error) {
	if r.Offset%5 == 0 {
		return partition.Observation{}, &commit.PoisonError{Reason: string(r.Value)}
	}
	return partition.Observation{Key: stream.Key(r.Key), Value: string(r.Value)}, nil
}

func (hostile) Open(_ partition.KeyState, o partition.Observation, _ ...partition.Observation) partition.Opening {
	kind := partition.Terminal
	if o.Identity.Revision.Offset%2 == 0 {
		kind = partition.Reset
	}
	return partition.Opening{Local: &partition.Decision{Kind: kind, Reason: o.Value.(string)}}
}

func (hostile) Plan(_ partition.KeyState, o partition.Observation, _ partition.Decision) (commit.Plan, error) {
	word := o.Value.(string)
	return commit.Plan{Next: commit.Checkpoint{Revision: o.Identity.Revision, Segment: 1}, Reset: word, Terminal: word}, nil
}

func (hostile) Diverged(state []byte) []byte { return state }

func (hostile) DeadLetter(_ stream.Identity, _ stream.Epoch, r *stream.Record, _ *commit.PoisonError) commit.Output {
	return commit.Output{Topic: "dead", Value: r.Value}
}

// settle steps a machine until nothing is outstanding, as a world in which everything succeeds at once.
func settle(m *partition.Machine, in partition.Input) {
	queue := []partition.Input{in}
	for position := int64(0); len(queue) > 0; queue = queue[1:] {
		for _, e := range m.Step(start(), queue[0]) {
			//nolint:gochecksumtype // a world in which the rest does not happen
			switch e := e.(type) {
			case partition.Restore:
				answer := partition.Restored{Keys: e.Keys, Rows: make([]commit.Restored, len(e.Keys))}
				for i, k := range e.Keys {
					answer.Rows[i].Key = k
				}
				queue = append(queue, answer)
			case partition.Commit:
				position++
				queue = append(queue, partition.Committed{Key: e.Commit.Key, Revision: e.Commit.Revision, ID: e.Commit.ID, Position: position})
			case partition.SaveFrontier:
				queue = append(queue, partition.FrontierSaved{Write: e.Write})
			}
		}
	}
}

// A17, A3, A11: whatever keys, values, reasons, partitions' states and errors say, every label's value is of a list that was
// known before, and the number of series does not grow with them.
func TestNoLabelIsUnbounded(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := New(reg, Config{Reasons: lists(), Turns: []string{"tick", "other"}})
	source := &fixed{}
	m.Watch(source)
	before := len(scrape(t, reg))
	tenure := commit.NewTenure(commit.Ownership{Group: "g", Partition: name(1), TopicGeneration: 1, Epoch: 1, MemberID: "m"})
	cfg := partition.DefaultConfig()
	cfg.Reasons = lists()
	machine := partition.New(cfg, hostile{}, partition.Start{Tenure: tenure, Frontier: stream.Frontier{Next: stream.Revision{Generation: 1}}}, start())
	for i := range int64(2000) {
		word := fmt.Sprintf("reason-%d{}\"\n", i)
		r := stream.Record{Partition: name(1), Offset: i, Key: fmt.Appendf(nil, "key-%d", i), Value: []byte(word)}
		settle(machine, partition.Arrived{Records: []stream.Record{r, r}})
		settle(machine, partition.Result{Key: stream.Key(word), Decision: partition.Decision{Kind: partition.Terminal, Reason: word}})
		m.Solved(time.Second, errors.New(word))
	}
	view := machine.View()
	source.parts = []Partition{{Name: name(1), State: "a state that nobody knows", Epoch: 1, View: view}}
	m.Ended(name(2), 1, false, errors.New("what nobody has seen before"), partition.Report{Reasons: partition.Reasons{{Counter: "reset", Reason: "forged"}: 3}})
	allowed := map[string][]string{
		"reason": nil, "partition": {"1"}, "state": append(states(), "idle", "publishing", "failing", "known", "waiting", "solving", "committing", "blocked", "quarantined"),
		"stage": append(Stages(), "prepare", "publish", "solve"), "kind": {"tick", "other"}, "end": {endReleased, endFenced, endUnreleased},
		"outcome": {"promoted", "published", "failed", publishedAll, publishedPart, publishedNone, publishedUnknown},
		"class":   {"transient", "canceled", "conflict", "busy", "fenced", "permanent", "poison"},
	}
	for counter := range view.Stats.All() {
		allowed["reason"] = append(allowed["reason"], lists().Reasons(counter)...)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, series := range f.GetMetric() {
			for _, l := range series.GetLabel() {
				if !slices.Contains(allowed[l.GetName()], l.GetValue()) {
					t.Errorf("%s has %s=%q", f.GetName(), l.GetName(), l.GetValue())
				}
			}
		}
	}
	got := scrape(t, reg)
	// The one partition's four series have come, and nothing else.
	if after := len(got); after > before+4 {
		t.Errorf("%d series before, %d after", before, after)
	}
	if poisoned := got[`milepost_poison_total{reason="unlisted"}`]; poisoned != 400 {
		t.Errorf("%v records of an unlisted poison reason, want 400", poisoned)
	}
	if diff := cmp.Diff(float64(view.Stats.Terminals), got[`milepost_terminal_total{reason="internal"}`]); diff != "" {
		t.Errorf("terminals without a listed reason (-counted +exported):\n%s", diff)
	}
}

// A17: every counter of the machines says what it counts.
func TestCountersHaveAMeaning(t *testing.T) {
	for name := range (partition.Stats{}).All() {
		if meaning(name) == "" || name != "offered" && meaning(name) == meaning("offered") {
			t.Errorf("%s: %q", name, meaning(name))
		}
	}
}
