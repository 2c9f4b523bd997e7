package partition

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// TestScripts plays the stories of testdata, one behaviour each; the first line of each names what it proves. After
// every step all invariants are checked. `go test ./internal/partition -run TestScripts -rewrite` writes the
// answers anew, to be reviewed as a diff.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		t.Helper()
		s := &script{now: toyStart()}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			return s.run(t, d)
		})
	})
}

// script plays the world for one machine: it keeps what the machine waits for, so that a story names keys alone.
type script struct {
	now      time.Time
	m        *Machine
	restores []Restore
	jobs     map[stream.Key]Dispatch
	commits  map[stream.Key]commit.Commit
	seen     map[string]commit.Commit
	promotes []Promote
	persists []Persist
	saves    []SaveFrontier
	asides   map[stream.Key]Quarantine
	credits  *Credits
	other    *Share // another partition's
	taken    map[string][]*credit
	woken    bool
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "start":
		s.start(t, d)
		return "ok\n"
	case "arrive", "refetched":
		in := Arrived{Refetched: d.Cmd == "refetched", Records: records(t, d.Input), Err: failure(t, d)}
		if d.HasArg("missing") {
			var at int64
			d.ScanArgs(t, "missing", &at)
			in.Missing = []int64{at}
		}
		return s.step(in)
	case "restored":
		return s.step(s.restored(t, d))
	case "solve":
		return s.step(s.solved(t, d))
	case "reply":
		return s.step(reply(t, d))
	case "miss":
		in := s.solved(t, d)
		in.Decision, in.TripMiss = Decision{}, true
		return s.step(in)
	case "committed":
		return s.step(s.committed(t, d))
	case "persisted":
		if len(s.persists) == 0 {
			t.Fatalf("%s: nothing is being persisted", d.Pos)
		}
		p := s.persists[0]
		s.persists = s.persists[1:]
		return s.step(s.persisted(t, d, p))
	case "promoted":
		if len(s.promotes) == 0 {
			t.Fatalf("%s: nothing is being promoted", d.Pos)
		}
		p := s.promotes[0]
		s.promotes = s.promotes[1:]
		return s.step(Promoted{Promotions: p.Promotions, Err: failure(t, d)})
	case "operate":
		var id int
		d.ScanArgs(t, "request", &id)
		return s.step(Operate{Request: commit.Request{ID: int64(id), Kind: commit.RequestKind(d.CmdArgs[0].Key), Key: stream.Key(d.CmdArgs[1].Key)}})
	case "asides":
		in := AsidesRead{Key: key0(d), Err: failure(t, d)}
		for _, r := range records(t, d.Input) {
			in.Rows = append(in.Rows, commit.Aside{Revision: stream.Revision{Generation: 1, Offset: r.Offset}, Record: r})
		}
		return s.step(in)
	case "discarded":
		in := DiscardDone{Key: key0(d), Err: failure(t, d)}
		d.MaybeScanArgs(t, "rows", &in.Discarded.Rows)
		if d.HasArg("until") {
			var until int64
			d.ScanArgs(t, "until", &until)
			in.Discarded.Until = stream.Revision{Generation: 1, Offset: until}
		}
		return s.step(in)
	case "finished":
		return s.step(Finished{Key: key0(d), Err: failure(t, d)})
	case "saved":
		if len(s.saves) == 0 {
			t.Fatalf("%s: no frontier is being saved", d.Pos)
		}
		w := s.saves[0].Write
		s.saves = s.saves[1:]
		return s.step(FrontierSaved{Write: w, Err: failure(t, d)})
	case "aside":
		q, ok := s.asides[key0(d)]
		if !ok {
			t.Fatalf("%s: nothing of %q is being put aside", d.Pos, key0(d))
		}
		return s.step(QuarantineSaved{Rows: q.Rows, Err: failure(t, d)})
	case "tick":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(by)
		return s.step(Tick{})
	case "drain":
		return s.step(Drain{})
	case "admitted":
		return s.step(Admitted{})
	case "replaced":
		var w toy
		d.MaybeScanArgs(t, "chart", &w.chart)
		return s.step(Replaced{Workload: w})
	case "other":
		return s.elsewhere(t, d)
	case "usage":
		return s.usage()
	case "lost":
		return s.step(Lost{Cause: errors.New("the group took the partition")})
	case "view":
		return s.view()
	case "stats":
		return s.stats()
	}
	t.Fatalf("%s: no such command: %s", d.Pos, d.Cmd)
	return ""
}

func (s *script) start(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Run = 1 // what runs of several do has stories of its own
	start := Start{Tenure: toyTenure(4), Frontier: stream.Frontier{Next: stream.Revision{Generation: 1}, LeaderEpoch: -1}}
	bounds, bounded := DefaultCreditsConfig(), false
	bound := func(to *int64, n int) { *to, bounded = int64(n), true }
	work := toy{}
	for _, a := range d.CmdArgs {
		n := func() int {
			v, err := strconv.Atoi(a.Vals[0])
			if err != nil {
				t.Fatalf("%s: %s: %v", d.Pos, a.Key, err)
			}
			return v
		}
		switch a.Key {
		case "frontier":
			start.Frontier.Next.Offset = int64(n())
		case "floor":
			start.LedgerFloor = int64(n())
		case "anew":
			start.Anew = commit.Anew{Before: stream.Revision{Generation: 1, Offset: int64(n())}, Reason: "data_loss"}
		case "highest":
			start.LedgerHighest = int64(n())
		case "done":
			for i := range a.Vals {
				var offset int64
				a.Scan(t, i, &offset)
				start.Done = append(start.Done, offset)
			}
		case "failed":
			for _, name := range a.Vals {
				start.Failed = append(start.Failed, stream.Key(name))
			}
		case "global-jobs":
			bound(&bounds.Global.Jobs, n())
		case "global-bytes":
			bound(&bounds.Global.Bytes, n())
		case "region-jobs":
			bound(&bounds.Region.Jobs, n())
		case "region-bytes":
			bound(&bounds.Region.Bytes, n())
		case "budget":
			work.budget = time.Duration(n()) * time.Second
		case "standing": // prepared commits that recovery could not publish
			start.Standing = map[int64]stream.Key{}
			for i := range a.Vals {
				var of string
				a.Scan(t, i, &of)
				name, offset, _ := strings.Cut(of, "@")
				at, err := strconv.ParseInt(offset, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				start.Failed, start.Standing[at] = append(start.Failed, stream.Key(name)), stream.Key(name)
			}
		case "key-queue":
			cfg.KeyQueue = n()
		case "run":
			cfg.Run = n()
		case "run-bytes":
			cfg.RunBytes = int64(n())
		case "deferred":
			cfg.Deferred = true
		case "persists":
			cfg.Persists = n()
		case "persist-commits":
			cfg.PersistCommits = n()
		case "jobs":
			cfg.Jobs = n()
		case "parked":
			cfg.ParkedResults = n()
		case "evict-idle":
			cfg.EvictSweep, cfg.EvictIdle = time.Second, time.Duration(n())*time.Second
		case "window":
			cfg.WindowRecords = n()
		case "ahead":
			cfg.MaxAhead = int64(n())
		case "restore-batch":
			cfg.RestoreBatch = n()
		case "restores":
			cfg.Restores = n()
		case "frontier-every":
			cfg.FrontierEvery = n()
		case "quarantine-bound":
			cfg.QuarantineBound = n()
		case "rebuild":
			for i := range a.Vals {
				var of string
				a.Scan(t, i, &of)
				start.Rebuild = append(start.Rebuild, s.rebuild(t, of))
			}
		case "no-heartbeat":
			cfg.HeartbeatInterval, cfg.FrontierInterval, cfg.FrontierEvery = time.Hour, time.Hour, 1<<30
		default:
			t.Fatalf("%s: no such argument: %s", d.Pos, a.Key)
		}
	}
	if bounded {
		s.credits, s.taken = NewCredits(bounds), map[string][]*credit{}
		s.other = s.credits.Join(func() {})
		start.Share = s.credits.Join(func() { s.woken = true })
	}
	s.m = New(cfg, work, start, s.now)
	s.jobs, s.commits, s.asides = map[stream.Key]Dispatch{}, map[stream.Key]commit.Commit{}, map[stream.Key]Quarantine{}
	s.seen = map[string]commit.Commit{}
}

// records reads lines like "a@10 w1"; a key may be empty.
func records(t *testing.T, lines string) []stream.Record {
	t.Helper()
	var rs []stream.Record
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		if line == "" {
			continue
		}
		at, word, _ := strings.Cut(line, " ")
		name, offset, _ := strings.Cut(at, "@")
		n, err := strconv.ParseInt(offset, 10, 64)
		if err != nil {
			t.Fatalf("record %q: %v", line, err)
		}
		rs = append(rs, toyRecord(n, name, word))
	}
	return rs
}

// failure makes the error that an answer has.
func failure(t *testing.T, d *datadriven.TestData) error {
	t.Helper()
	if !d.HasArg("err") {
		return nil
	}
	var class string
	d.ScanArgs(t, "err", &class)
	switch class {
	case "transient":
		return errors.New("connection lost")
	case "canceled":
		return context.Canceled
	case "conflict":
		return &commit.ConflictError{Key: key0(d), Want: stream.Revision{}, Actual: stream.Revision{Generation: 1, Offset: 5}}
	case "busy":
		return &commit.BusyError{Key: key0(d), Prepared: stream.Revision{Generation: 1, Offset: 5}}
	case "fenced":
		return &commit.FencedError{Partition: stream.Partition{Topic: "raw", Number: 3}, Held: 4, Owner: 5}
	case "permanent":
		return fmt.Errorf("too large: %w", commit.ErrPermanent)
	case "full":
		return commit.ErrQuarantineFull
	}
	t.Fatalf("no such error: %s", class)
	return nil
}

func key0(d *datadriven.TestData) stream.Key {
	if len(d.CmdArgs) == 0 || d.CmdArgs[0].Vals != nil {
		return ""
	}
	return stream.Key(d.CmdArgs[0].Key)
}

// restored answers the oldest restore. Lines say what rows there are: "a 1.5 2:ab", with "prepared 1.6 3:cd",
// "own 1.6", "expired" and "quarantined" behind; other keys were never seen.
func (s *script) restored(t *testing.T, d *datadriven.TestData) Restored {
	t.Helper()
	if len(s.restores) == 0 {
		t.Fatalf("%s: nothing is being restored", d.Pos)
	}
	in := Restored{Keys: s.restores[0].Keys, Err: failure(t, d)}
	s.restores = s.restores[1:]
	if in.Err != nil {
		return in
	}
	rows := map[stream.Key]commit.Restored{}
	for line := range strings.SplitSeq(strings.TrimSpace(d.Input), "\n") {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		row := commit.Restored{Key: stream.Key(f[0])}
		for i := 1; i < len(f); i++ {
			switch f[i] {
			case "expired":
				row.Expired = true
			case "quarantined":
				row.Quarantined = true
			case "discarded":
				row.Discarded = checkpoint(t, f[i+1], "").Revision
				i++
			case "own": // the commit of a revision that the machine handed in
				c := s.handedIn(t, row.Key, f[i+1])
				row.Prepared = &c
				i++
			case "prepared":
				c := commit.NewCommit(toyTenure(3), row.Key, row.Checkpoint.Revision, commit.Plan{Next: checkpoint(t, f[i+1], f[i+2])})
				row.Prepared = &c
				i += 2
			case "none":
			default:
				row.Checkpoint = checkpoint(t, f[i], f[i+1])
				i++
			}
		}
		rows[row.Key] = row
	}
	for _, name := range in.Keys {
		row, ok := rows[name]
		if !ok {
			row.Key = name
		}
		in.Rows = append(in.Rows, row)
	}
	return in
}

// persisted answers a persist; with actual=1.5 the first checkpoint of it met a conflict.
func (s *script) persisted(t *testing.T, d *datadriven.TestData, p Persist) Persisted {
	t.Helper()
	in := Persisted{Persists: p.Persists, Err: failure(t, d)}
	if d.HasArg("actual") {
		var rev string
		d.ScanArgs(t, "actual", &rev)
		conflict := &commit.ConflictError{Key: p.Persists[0].Key, Want: p.Persists[0].Base}
		if rev != "none" {
			conflict.Actual = checkpoint(t, rev, "").Revision
		}
		in.Errs = append(make([]error, 0, len(p.Persists)), conflict)
		in.Errs = in.Errs[:1]
	}
	return in
}

// rebuild makes an entry that an earlier owner left: "a@3/none/w1" is the word that key a published at offset 3 over no state, "a@3+4/none/w1+w2"
// are two words in one commit, "a@4/1.3/" is something that no one can decide again.
func (s *script) rebuild(t *testing.T, of string) commit.Rebuild {
	t.Helper()
	f := strings.Split(of, "/")
	name, offsets, _ := strings.Cut(f[0], "@")
	if len(f) != 3 {
		t.Fatalf("entry %q", of)
	}
	state := KeyState{Epoch: 3}
	if f[1] != "none" {
		state.Checkpoint = checkpoint(t, f[1], "0:0")
	}
	base, plan, words := state.Checkpoint.Revision, commit.Plan{}, strings.Split(f[2], "+")
	for i, offset := range strings.Split(offsets, "+") {
		n, err := strconv.ParseInt(offset, 10, 64)
		if err != nil {
			t.Fatalf("entry %q: %v", of, err)
		}
		if i > 0 {
			plan.Earlier = append(plan.Earlier, plan.Next.Revision.Offset)
		}
		one := publishedPlan(t, state, toyRecord(n, name, words[i]))
		plan.Next, plan.Outputs = one.Next, append(plan.Outputs, one.Outputs...)
		state.Checkpoint = one.Next
	}
	c := commit.NewCommit(toyTenure(3), stream.Key(name), base, plan)
	return commit.Rebuild{Position: 10 + c.Revision.Offset, Entry: commit.EntryOf(&c, nil)}
}

// publishedPlan decides and plans one record; one without a word is of an unknown plan.
func publishedPlan(t *testing.T, state KeyState, r stream.Record) commit.Plan {
	t.Helper()
	rev := stream.Revision{Generation: 1, Offset: r.Offset}
	if len(r.Value) == 0 {
		return commit.Plan{Next: commit.Checkpoint{Revision: rev, Segment: 1}}
	}
	o, err := toy{}.Decode(&r)
	if err != nil {
		t.Fatal(err)
	}
	o.Identity = stream.Identity{Partition: r.Partition, Revision: rev}
	decision, err := toySolve(toy{}.Open(state, o).Request, 0)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := toy{}.Plan(state, o, decision)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func (s *script) handedIn(t *testing.T, name stream.Key, rev string) commit.Commit {
	t.Helper()
	for _, c := range s.seen {
		if c.Key == name && c.Revision.String() == rev {
			return c
		}
	}
	t.Fatalf("no commit of %s@%s was handed in", name, rev)
	return commit.Commit{}
}

func checkpoint(t *testing.T, rev, state string) commit.Checkpoint {
	t.Helper()
	c := commit.Checkpoint{Segment: 1, State: []byte(state)}
	if _, err := fmt.Sscanf(rev, "%d.%d", &c.Revision.Generation, &c.Revision.Offset); err != nil {
		t.Fatalf("revision %q: %v", rev, err)
	}
	return c
}

func (s *script) solved(t *testing.T, d *datadriven.TestData) Result {
	t.Helper()
	job, ok := s.jobs[key0(d)]
	if !ok {
		t.Fatalf("%s: no job of %q is out", d.Pos, key0(d))
	}
	in := Result{Job: job.Job, Key: job.Key, Revision: job.Revision, Err: failure(t, d)}
	if in.Err == nil {
		in.Decision, in.Err = toySolve(s.full(job), 0)
	}
	d.MaybeScanArgs(t, "replica", &in.Replica)
	if d.HasArg("forged") {
		in.Job[0]++
	}
	if d.HasArg("differs") {
		in.Decision.Answer = []byte("otherwise")
	}
	if d.HasArg("answers") { // so many, of a run
		var n int
		d.ScanArgs(t, "answers", &n)
		in.Decision.More = append(in.Decision.More, in.Decision.Answer)[:n-1]
	}
	return in
}

// reply is an answer that names its job by itself, as one that a former owner's matcher sends: "reply a@6 base=1.5" and the
// request below.
func reply(t *testing.T, d *datadriven.TestData) Result {
	t.Helper()
	name, offset, _ := strings.Cut(d.CmdArgs[0].Key, "@")
	n, err := strconv.ParseInt(offset, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	in := Result{Key: stream.Key(name), Revision: stream.Revision{Generation: 1, Offset: n}}
	var base stream.Revision
	if d.HasArg("base") {
		var of string
		d.ScanArgs(t, "base", &of)
		base = checkpoint(t, of, "").Revision
	}
	d.MaybeScanArgs(t, "generation", &in.Revision.Generation)
	d.MaybeScanArgs(t, "replica", &in.Replica)
	request := strings.TrimSpace(d.Input)
	in.Job = jobID(in.Key, in.Revision, base, []byte(request))
	in.Decision, in.Err = toySolve([]byte(request), 0)
	if d.HasArg("differs") {
		in.Decision.Answer = []byte("otherwise")
	}
	if d.HasArg("empty") {
		in.Decision = Decision{}
	}
	if d.HasArg("err") {
		in.Decision, in.Err = Decision{}, failure(t, d)
	}
	return in
}

// full gives a job's request with the trip, which the replica of a shortened one holds.
func (s *script) full(job Dispatch) []byte {
	if k := s.m.keys[job.Key]; job.Replica != "" && k.job != nil {
		return k.job.request
	}
	return job.Request
}

func (s *script) committed(t *testing.T, d *datadriven.TestData) Committed {
	t.Helper()
	c, ok := s.commits[key0(d)]
	if !ok {
		t.Fatalf("%s: no commit of %q", d.Pos, key0(d))
	}
	in := Committed{Key: c.Key, Revision: c.Revision, ID: c.ID, Err: failure(t, d), Position: -1}
	d.MaybeScanArgs(t, "position", &in.Position)
	return in
}

// step feeds one input and tells the effects.
func (s *script) step(in Input) string {
	effects := s.m.Step(s.now, in)
	if !s.m.ended {
		s.m.checkAll()
	}
	var b strings.Builder
	for _, e := range effects {
		s.note(e)
		fmt.Fprintln(&b, s.tell(e))
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func (s *script) note(e Effect) {
	switch e := e.(type) {
	case Restore:
		s.restores = append(s.restores, e)
	case Dispatch:
		s.jobs[e.Key] = e
	case Persist:
		s.persists = append(s.persists, e)
	case Promote:
		s.promotes = append(s.promotes, e)
	case SaveFrontier:
		s.saves = append(s.saves, e)
	case Quarantine:
		s.asides[e.Rows[0].Key] = e
	default:
	}
}

func (s *script) tell(e Effect) string {
	switch e := e.(type) {
	case Restore:
		return fmt.Sprintf("restore %v", e.Keys)
	case Dispatch:
		told := fmt.Sprintf("dispatch %s@%s %q", e.Key, e.Revision, e.Request)
		if e.Replica != "" {
			told += " without the trip to " + e.Replica
		}
		if e.Attempt > 0 {
			told += fmt.Sprintf(" after %d time-outs", e.Attempt)
		}
		return told
	case Commit:
		return s.tellCommit(e.Commit)
	case Persist:
		var of []string
		for _, p := range e.Persists {
			of = append(of, fmt.Sprintf("%s@%s over %s: segment %d %q", p.Key, p.Next.Revision, p.Base, p.Next.Segment, p.Next.State))
		}
		return "persist " + strings.Join(of, ", ")
	case Promote:
		var of []string
		for _, p := range e.Promotions {
			of = append(of, fmt.Sprintf("%s@%s", p.Key, p.Revision))
		}
		return "promote " + strings.Join(of, " ")
	case Finish:
		return fmt.Sprintf("finish %s", e.Key)
	case SaveFrontier:
		return fmt.Sprintf("save frontier %s floor %d", e.Write.Frontier, e.Write.LedgerFloor)
	case Quarantine:
		var of []string
		for _, q := range e.Rows {
			of = append(of, fmt.Sprintf("%s@%s", q.Key, q.Revision))
		}
		return fmt.Sprintf("quarantine %s: %s: %s", strings.Join(of, " "), e.Rows[0].Class, e.Rows[0].Reason)
	case ReadAsides:
		return fmt.Sprintf("read asides of %s after %s", e.Key, e.After)
	case Discard:
		return fmt.Sprintf("discard %s, floor %d", e.Key, e.Floor)
	case Answer:
		how := "done"
		if e.Answer.Failed {
			how = "failed"
		}
		return fmt.Sprintf("answer %d %s: %s", e.Answer.Request, how, e.Answer.Outcome)
	case Refetch:
		return fmt.Sprintf("refetch %v", e.Offsets)
	case Warn:
		return fmt.Sprintf("warn %s: %s (%s@%s): %v", e.Class, e.Message, e.Key, e.Revision, e.Err)
	case Drained:
		told := fmt.Sprintf("drained: frontier %s, prepared %d, unfinished %d", e.Report.Frontier, e.Report.Prepared, e.Report.Unfinished)
		if e.Report.Dirty > 0 {
			told += fmt.Sprintf(", dirty %d", e.Report.Dirty)
		}
		return told
	case Stop:
		return fmt.Sprintf("stop: %v", e.Cause)
	case Late:
		return fmt.Sprintf("late in region %s by %s", e.Region, e.By)
	case Pause, Resume: // told by their names
	}
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", e), "partition."))
}

// tellCommit says also whether the very same commit went out before.
func (s *script) tellCommit(c commit.Commit) string {
	s.commits[c.Key] = c
	id := string(c.Key) + c.ID.String()
	was, again := s.seen[id]
	s.seen[id] = c
	var outs []string
	for _, o := range c.Outputs {
		outs = append(outs, fmt.Sprintf("%s %q", o.Topic, o.Value))
	}
	of := c.Revision.String()
	for _, offset := range slices.Backward(c.Earlier) {
		of = fmt.Sprintf("%d.%d %s", c.Revision.Generation, offset, of)
	}
	told := fmt.Sprintf("commit %s@%s over %s: %s", c.Key, of, c.Base, strings.Join(outs, ", "))
	if c.NoRow {
		told = fmt.Sprintf("commit %s@%s without a row: %s", c.Key, c.Revision, strings.Join(outs, ", "))
	}
	switch {
	case again && reflect.DeepEqual(was, c):
		return told + " (the same bytes again)"
	case again:
		return told + " (SAME ID, OTHER BYTES)"
	}
	return told
}

func (s *script) view() string {
	v := s.m.View()
	oldest := "nothing pending"
	if !v.OldestPending.IsZero() {
		oldest = fmt.Sprintf("oldest pending for %s", s.now.Sub(v.OldestPending))
	}
	return fmt.Sprintf("frontier %s, floor %d, %s\nkeys %d: waiting %d, active %d, committing %d, blocked %d, quarantined %d, unpromoted %d\nqueued %d, spilled %d, paused %t, jobs %d\n",
		v.Frontier, s.m.floor(), oldest, v.Keys, v.Waiting, v.Active, v.Committing, v.Blocked, v.Quarantined, v.Unpromoted, v.Queued, v.Spilled, v.Paused, s.m.jobs)
}

func (s *script) stats() string {
	var all []string
	for name, n := range s.m.stats.All() {
		if n != 0 && (name != "commits" || n != s.m.stats.Committed) {
			told := fmt.Sprintf("%s=%d", name, n)
			if name == "rejected" {
				told += s.rejections()
			}
			all = append(all, told)
		}
	}
	return strings.Join(all, " ") + "\n"
}

// elsewhere is what another partition of the process does: "other takes n 10" and "other gives n".
func (s *script) elsewhere(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	region := d.CmdArgs[1].Key
	if d.CmdArgs[0].Key == "gives" {
		s.woken = false
		s.other.giveBack(s.taken[region][0])
		s.taken[region] = s.taken[region][1:]
		if s.woken {
			return "our machine is woken\n"
		}
		return "nothing\n"
	}
	bytes, err := strconv.ParseInt(d.CmdArgs[2].Key, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	cr, admitted := s.other.ask(region, bytes, &key{})
	s.taken[region] = append(s.taken[region], cr)
	if admitted {
		return "admitted\n"
	}
	return "waits\n"
}

func (s *script) usage() string {
	var b strings.Builder
	for _, u := range s.credits.Usage() {
		if u.Region == "" {
			u.Region = "all"
		}
		fmt.Fprintf(&b, "%s: %d jobs, %d bytes, %d wait\n", u.Region, u.Jobs, u.Bytes, u.Waiting)
	}
	return b.String()
}

// rejections tells why results were rejected.
func (s *script) rejections() string {
	var why []string
	for by, n := range s.m.reasons {
		if by.Counter == "rejected" {
			why = append(why, fmt.Sprintf("%s %d", by.Reason, n))
		}
	}
	slices.Sort(why)
	return "(" + strings.Join(why, ", ") + ")"
}
