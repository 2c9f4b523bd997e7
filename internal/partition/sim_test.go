package partition

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

var (
	seeds = flag.Int("seeds", 300, "how many seeds TestSim runs")
	only  = flag.String("mode", "", "the one mode that TestSim runs its owners in: prepared, deferred or mixed; empty: by seed")
	first = flag.Uint64("seed", 1, "the first seed that TestSim runs")
)

// TestSim runs the machine against a world that delays, loses, doubles and refuses, with crashes at every effect,
// drains, takeovers, zombies and new catalogs, and compares what was published with a naive sequential model: A2–A5, A8–A12,
// A14–A16, I1–I8, I11–I16, H4, P2, P11, P12, P14, P26, P27, F4, F14, F17, F18.
func TestSim(t *testing.T) {
	var total Stats
	for seed := *first; seed < *first+uint64(*seeds); seed++ {
		s, err := simulated(t, seed)
		if err != nil {
			t.Fatalf("seed %d: %v\nreplay: go test ./internal/partition -run 'TestSim$' -seeds 1 -seed %d -v", seed, err, seed)
		}
		for _, o := range s.owners {
			total = total.Plus(o.m.stats)
		}
	}
	if *seeds < 200 {
		return
	}
	// What never happens here is not simulated (A8–A10, A16).
	remote := []string{"cached", "trip_misses", "resent", "parked", "rejected", "held", "late"}
	for name, n := range total.All() {
		if n == 0 && slices.Contains(remote, name) {
			t.Errorf("in %d seeds nothing was counted as %s", *seeds, name)
		}
	}
}

// The modes of a run's owners.
const (
	prepared = "prepared"
	deferred = "deferred"
	mixed    = "mixed" // each owner in another one than the owner before
)

// sim is one run: events in virtual time.
type sim struct {
	rng      *rand.Rand
	now      time.Time
	queue    heap[*event]
	serial   int
	world    *world
	cfg      Config
	pace     float64 // of faults, 0 for none
	operator bool    // an operator releases and discards
	remote   bool    // solvers are replicas that keep trips
	trips    map[string]string
	mode     string
	rebuilds int  // entries that owners were given to rebuild
	fickle   bool // solvers of different owners decide differently
	quiet    bool // no more faults: all must come to its end
	current  *owner
	owners   []*owner // all that ever were
	claims   int      // takeovers under way
	keys     []string
	next     int64 // offset
	left     int   // records still to come
	broken   []string
	crashes  int
	words    int
	credits  *Credits   // nil: admission is unbounded
	bursts   *rand.Rand // for how many observations of a key come at once
	bursting string
	burst    int
	luck     *rand.Rand // for what admission and catalogs need, so that older seeds stay what they were; decay: for what the log loses
	decay    *rand.Rand
	trace    func(string, ...any)
}

// owner is one process's tenure.
type owner struct {
	m        *Machine
	tenure   *commit.Tenure
	gone     bool // crashed: no answer reaches it
	ended    bool
	position int64
	paused   bool
	drained  *Report
	last     stream.Frontier
	requests map[sending]string
	commits  map[commit.ID]string
	inside   map[stream.Key]int // commits that are with the stages
}

// sending is one of the two forms in which a job goes out.
type sending struct {
	job   JobID
	short bool
}

type event struct {
	at     time.Time
	serial int
	place  int
	run    func()
}

func simulated(t *testing.T, seed uint64) (s *sim, err error) {
	t.Helper()
	s = newSim(seed)
	if testing.Verbose() && *seeds == 1 {
		s.trace = t.Logf
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("after %s: panic: %v", s.now.Sub(toyStart()), p)
		}
	}()
	s.takeOver()
	s.after(0, s.produce)
	end := toyStart().Add(30 * time.Minute)
	for len(s.queue.members) > 0 && len(s.broken) == 0 {
		e, _ := s.queue.top()
		s.queue.remove(e)
		s.now = e.at
		if s.now.After(end) {
			return s, fmt.Errorf("stuck: frontier %s, log ends at %d, view %+v", s.world.saved.Frontier, s.next, s.view())
		}
		e.run()
		if s.over() {
			break
		}
	}
	if len(s.broken) > 0 {
		return s, errors.New(s.broken[0])
	}
	if err := s.returned(); err != nil {
		return s, err
	}
	return s, s.judge()
}

// returned holds that ended machines have given back all of their admission (A8, I15).
func (s *sim) returned() error {
	if s.credits == nil {
		return nil
	}
	for _, o := range s.owners {
		if !o.ended { // a zombie that nobody has told
			o.m.share.Leave()
		}
	}
	for _, u := range s.credits.Usage() {
		if u.Jobs != 0 || u.Bytes != 0 || u.Waiting != 0 {
			return fmt.Errorf("admission is not given back: %+v (A8, I15)", u)
		}
	}
	return nil
}

func newSim(seed uint64) *sim {
	s := &sim{rng: rand.New(rand.NewPCG(seed, 7)), now: toyStart(), trace: func(string, ...any) {}}
	s.queue = heap[*event]{
		less:  func(a, b *event) bool { return a.at.Before(b.at) || a.at.Equal(b.at) && a.serial < b.serial },
		place: func(e *event) *int { return &e.place },
	}
	s.world = newWorld(func(format string, args ...any) { s.broken = append(s.broken, fmt.Sprintf(format, args...)) })
	s.cfg = DefaultConfig()
	s.cfg.KeyQueue = 1 + s.rng.IntN(6)
	s.cfg.Jobs = 1 + s.rng.IntN(12)
	s.cfg.WindowRecords = 2 + s.rng.IntN(30)
	s.cfg.MaxAhead = int64(5 + s.rng.IntN(100))
	s.cfg.RefetchRecords = 1 + s.rng.IntN(12)
	s.cfg.RestoreBatch = 1 + s.rng.IntN(5)
	s.cfg.Restores = 1 + s.rng.IntN(3)
	s.cfg.FrontierEvery = 1 + s.rng.IntN(20)
	s.cfg.EvictSweep, s.cfg.EvictIdle = time.Second, time.Duration(1+s.rng.IntN(5))*time.Second
	s.cfg.DrainGrace = 5 * time.Second
	if s.rng.IntN(4) == 0 {
		s.cfg.QuarantineBound = 1 + s.rng.IntN(3)
	}
	s.pace = []float64{0, 0.01, 0.05, 0.2}[s.rng.IntN(4)]
	s.fickle = s.rng.IntN(2) == 0
	s.remote, s.trips = s.rng.IntN(2) == 0, map[string]string{}
	s.cfg.ParkedResults = s.rng.IntN(4)
	for i := range 1 + s.rng.IntN(12) {
		s.keys = append(s.keys, fmt.Sprintf("k%d", i))
	}
	s.mode = []string{prepared, deferred, mixed}[seed%3]
	if *only != "" {
		s.mode = *only
	}
	s.cfg.PersistCommits, s.cfg.Persists = 1<<s.rng.IntN(6), 1+s.rng.IntN(5)
	s.left = 50 + s.rng.IntN(200)
	s.operator = s.rng.IntN(2) == 0
	s.bursts, s.cfg.Run = rand.New(rand.NewPCG(seed, 64)), 1
	if s.bursts.IntN(4) > 0 { // jobs of several observations
		s.cfg.Run, s.cfg.RunBytes = 1<<(1+s.bursts.IntN(4)), int64(256<<s.bursts.IntN(5))
		s.cfg.KeyQueue += s.bursts.IntN(12)
		s.left += s.bursts.IntN(400)
	}
	s.luck, s.decay = rand.New(rand.NewPCG(seed, 12)), rand.New(rand.NewPCG(seed, 18))
	if s.luck.IntN(4) > 0 {
		s.credits = NewCredits(CreditsConfig{
			Global: Bound{Jobs: int64(1 + s.luck.IntN(8)), Bytes: int64(10 + s.luck.IntN(80))},
			Region: Bound{Jobs: int64(1 + s.luck.IntN(4)), Bytes: int64(10 + s.luck.IntN(40))},
		})
		for i := range s.keys {
			s.keys[i] = string(rune('k'+i%3)) + s.keys[i][1:]
		}
	}
	return s
}

func (s *sim) view() View {
	if s.current == nil {
		return View{}
	}
	return s.current.m.View()
}

// happens draws a fault of a weight.
func (s *sim) happens(weight float64) bool { return !s.quiet && s.rng.Float64() < s.pace*weight }

func (s *sim) after(d time.Duration, run func()) {
	s.serial++
	s.queue.fix(&event{at: s.now.Add(d), serial: s.serial, place: -1, run: run})
}

// soon runs something after the time that the world takes: mostly milliseconds, at times seconds.
func (s *sim) soon(run func()) {
	d := time.Duration(s.rng.IntN(20)) * time.Millisecond
	if s.happens(0.3) {
		d += time.Duration(s.rng.IntN(8000)) * time.Millisecond
	}
	s.after(d, run)
}

// produce appends to the raw log.
func (s *sim) produce() {
	for n := 1 + s.rng.IntN(8); n > 0 || s.burst > 0; n-- {
		if s.left == 0 {
			s.quiet = true
			return
		}
		s.left--
		if s.rng.IntN(10) == 0 {
			s.next += int64(1 + s.rng.IntN(5)) // markers, aborted and compacted records
		}
		k := s.keys[s.rng.IntN(1+s.rng.IntN(len(s.keys)))]
		if s.cfg.Run > 1 { // keys send many at once
			if s.burst == 0 {
				s.bursting, s.burst = k, 1+s.bursts.IntN(30)
			}
			k, s.burst = s.bursting, s.burst-1
		}
		s.words++
		word := fmt.Sprintf("w%d", s.words)
		switch s.rng.IntN(120) {
		case 0:
			word = []string{"!p", "!s", "!c", "!o"}[s.rng.IntN(4)]
			if s.operator && s.rng.IntN(2) == 0 {
				word = "!c" // what can be mended
			}
		case 1, 2, 3:
			word = "?" + word
		case 4:
			k = ""
		case 5, 6, 7, 8, 9:
			word = "~" + word
		}
		s.world.log = append(s.world.log, toyRecord(s.next, k, word))
		s.next++
	}
	pause := s.rng.IntN(400)
	if s.cfg.Run > 1 {
		pause += s.bursts.IntN(2000)
	}
	s.after(time.Duration(pause)*time.Millisecond, s.produce)
}

// over reports whether everything is done and the last owner has drained.
func (s *sim) over() bool {
	if !s.quiet || s.current == nil || s.claims > 0 {
		return false
	}
	if s.current.drained != nil {
		return true
	}
	if f := s.current.m.View().Frontier.Next.Offset; f >= s.next && !s.current.ended && !s.current.m.draining && s.cleared() && s.current.m.promoting == 0 {
		s.give(s.current, Drain{})
	}
	return false
}

// takeOver makes a new owner: epoch, lanes, recovery, machine. Each step is later than the one before, and the old
// owner goes on meanwhile.
func (s *sim) takeOver() {
	s.claims++
	s.world.epoch++
	t := toyTenure(s.world.epoch)
	s.soon(func() {
		if t.Epoch != s.world.epoch {
			s.claims--
			return
		}
		s.world.lanes = t.Epoch
		s.soon(func() { s.recover(t) })
	})
}

func (s *sim) recover(t *commit.Tenure) {
	s.claims--
	if t.Epoch != s.world.epoch {
		return
	}
	s.lose()
	start := Start{Tenure: t, Frontier: s.world.saved.Frontier, LedgerFloor: s.world.saved.LedgerFloor, LedgerHighest: s.world.base + int64(len(s.world.ledger))}
	start.Standing = map[int64]stream.Key{}
	for i, e := range s.world.ledger {
		if e.noRow && s.world.base+int64(i) >= start.LedgerFloor && e.rev.Offset >= start.Frontier.Next.Offset {
			start.Done = append(start.Done, e.rev.Offset)
		}
	}
	for _, name := range append([]string{""}, s.keys...) {
		r := s.world.rows[stream.Key(name)]
		if r == nil || r.prepared == nil {
			continue
		}
		if s.happens(1) {
			s.crashes++
			s.takeOver() // died in the middle of a recovery
			return
		}
		c := *r.prepared
		c.Tenure = t
		_, released := r.aside[c.Revision.Offset]
		if !released && r.prepared.Revision.Compare(start.Frontier.Next) < 0 && !s.world.inLedger(c.Key, c.Revision) {
			s.world.fault("prepared commit %s of %q is below the frontier and not in the ledger above floor %d (H4)", c.Revision, c.Key, start.LedgerFloor)
		}
		if s.happens(2) || s.world.finish(t, c.Key) != nil {
			start.Failed = append(start.Failed, c.Key)
			if !released && c.Revision.Compare(start.Frontier.Next) >= 0 {
				start.Standing[c.Revision.Offset] = c.Key
			}
		}
	}
	start.Rebuild = s.world.rebuild()
	s.rebuilds += len(start.Rebuild)
	start.LedgerHighest = s.world.base + int64(len(s.world.ledger))
	o := &owner{
		tenure: t, position: start.Frontier.Next.Offset, requests: map[sending]string{}, commits: map[commit.ID]string{},
		inside: map[stream.Key]int{}, last: start.Frontier,
	}
	if s.credits != nil {
		start.Share = s.credits.Join(func() { s.after(0, func() { s.give(o, Admitted{}) }) })
	}
	cfg := s.cfg
	cfg.Deferred = s.mode == deferred || s.mode == mixed && t.Epoch%2 == 0
	o.m = New(cfg, toy{budget: time.Millisecond}, start, s.now)
	s.current = o
	s.owners = append(s.owners, o)
	s.trace("%s epoch %d starts at %s, floor %d, done %v, failed %v, rebuild %v", s.now.Sub(toyStart()), t.Epoch, start.Frontier, start.LedgerFloor, start.Done, start.Failed, start.Rebuild)
	s.tick(o)
	s.fetch(o)
}

func (s *sim) tick(o *owner) {
	if o.gone || o.ended {
		return
	}
	s.give(o, Tick{})
	s.operate(o)
	if !s.quiet && s.luck.Float64() < s.pace*0.3 {
		s.give(o, Replaced{Workload: toy{budget: time.Millisecond}})
	}
	s.after(s.cfg.Tick, func() { s.tick(o) })
	switch {
	case o != s.current || s.quiet:
	case s.happens(0.05):
		s.trace("%s drain", s.now.Sub(toyStart()))
		s.give(o, Drain{})
	default:
		if s.happens(0.05) {
			s.trace("%s zombie", s.now.Sub(toyStart()))
			s.takeOver() // the old owner does not know
		}
	}
}

// fetch delivers what follows, at times something once more.
func (s *sim) fetch(o *owner) {
	if o.gone || o.ended {
		return
	}
	if !o.paused {
		var batch []stream.Record
		most := 1 + s.rng.IntN(10)
		for _, r := range s.world.log {
			if r.Offset >= o.position && len(batch) < most && !s.world.compacted[r.Offset] {
				batch = append(batch, r)
			}
		}
		if len(batch) > 0 {
			o.position = batch[len(batch)-1].Offset + 1
			s.give(o, Arrived{Records: batch})
			if s.happens(1) {
				s.give(o, Arrived{Records: batch})
			}
		}
	}
	s.after(time.Duration(1+s.rng.IntN(100))*time.Millisecond, func() { s.fetch(o) })
}

// give steps an owner's machine and sends its effects on their way. Any of them may be the last.
func (s *sim) give(o *owner, in Input) {
	if o.gone || o.ended {
		return
	}
	s.trace("%s %d <- %T %+v", s.now.Sub(toyStart()), o.tenure.Epoch, in, in)
	effects := o.m.Step(s.now, in)
	o.m.checkAll()
	if isFenced(in) && !o.m.ended {
		s.world.fault("epoch %d goes on after %T: fenced (I13)", o.tenure.Epoch, in)
	}
	if f := o.m.frontier(); f.Next.Compare(o.last.Next) < 0 {
		s.world.fault("frontier went from %s to %s (I4)", o.last, f)
	} else {
		o.last = f
	}
	crash := 0.03
	if s.mode != prepared {
		crash = 0.2 // most of what is dirty is lost in between
	}
	for _, e := range effects {
		if o == s.current && s.happens(crash) {
			s.crash(o)
			return
		}
		s.trace("%s %d -> %T %+v", s.now.Sub(toyStart()), o.tenure.Epoch, e, e)
		s.effect(o, e)
	}
}

// isFenced reports whether an answer says that the partition has another owner.
func isFenced(in Input) bool {
	var errs []error
	switch in := in.(type) {
	case Committed:
		errs = append(errs, in.Err)
	case Promoted:
		errs = append(append(errs, in.Errs...), in.Err)
	case Persisted:
		errs = append(append(errs, in.Errs...), in.Err)
	case Finished:
		errs = append(errs, in.Err)
	case FrontierSaved:
		errs = append(errs, in.Err)
	case QuarantineSaved:
		errs = append(append(errs, in.Errs...), in.Err)
	case DiscardDone:
		errs = append(errs, in.Err)
	default:
	}
	for _, err := range errs {
		if err != nil && commit.ClassOf(err) == commit.Fenced {
			return true
		}
	}
	return false
}

func (s *sim) crash(o *owner) {
	s.trace("%s crash", s.now.Sub(toyStart()))
	s.crashes++
	o.gone = true
	o.m.share.Leave()
	s.takeOver()
}

// trouble draws an error that promises that nothing was done.
func (s *sim) trouble() error {
	if s.happens(1) {
		return errors.New("connection lost")
	}
	return nil
}

func (s *sim) effect(o *owner, e Effect) {
	switch e := e.(type) {
	case Restore:
		s.soon(func() { s.restore(o, e) })
	case Dispatch:
		s.dispatch(o, e)
	case Commit:
		s.commit(o, e.Commit)
	case Persist:
		s.soon(func() { s.persist(o, e) })
	case Promote:
		s.soon(func() { s.promote(o, e) })
	case Finish:
		s.soon(func() {
			err := s.trouble()
			if err == nil {
				err = s.world.finish(o.tenure, e.Key)
			}
			s.soon(func() { s.give(o, Finished{Key: e.Key, Err: err}) })
		})
	case SaveFrontier:
		s.soon(func() {
			err := s.trouble()
			if err == nil {
				err = s.world.saveFrontier(e.Write)
			}
			s.soon(func() { s.give(o, FrontierSaved{Write: e.Write, Err: err}) })
		})
	case Quarantine:
		s.soon(func() { s.quarantine(o, e) })
	case ReadAsides:
		s.soon(func() { s.readAsides(o, e) })
	case Discard:
		s.soon(func() { s.discard(o, e) })
	case Answer:
		s.soon(func() { s.answer(o, e) })
	case Refetch:
		s.soon(func() { s.refetch(o, e) })
	case Pause:
		o.paused = true
	case Resume:
		o.paused = false
	case Drained:
		s.drained(o, e.Report)
	case Stop:
		o.ended = true
		if o.tenure.Epoch == s.world.epoch {
			s.world.fault("the owner stopped: %v", e.Cause)
		}
	case Warn, Late:
	}
}

func (s *sim) drained(o *owner, r Report) {
	o.ended, o.drained = true, &r
	if o.tenure.Epoch != s.world.epoch {
		return
	}
	prepared := 0
	for _, row := range s.world.rows {
		if row.prepared != nil && !s.world.cursed(*row.prepared) {
			prepared++
		}
	}
	if s.now.Before(o.m.deadline) && prepared > r.Prepared || r.Prepared > 0 && s.quiet && s.now.Before(o.m.deadline) {
		s.world.fault("a drain reports %d prepared rows and leaves %d (A15)", r.Prepared, prepared)
	}
	dirty := 0
	for k, all := range s.world.published {
		if last := all[len(all)-1].Revision; !s.world.row(k).current.Revision.Covers(last) {
			dirty++
		}
	}
	if s.now.Before(o.m.deadline) && len(o.m.rebuild) == 0 && dirty > r.Dirty+r.Prepared {
		s.world.fault("a drain reports %d dirty keys and leaves %d (A15)", r.Dirty, dirty)
	}
	if !s.quiet || s.world.saved.Frontier.Next.Offset < s.next {
		s.current = nil
		s.takeOver()
	}
}

func (s *sim) restore(o *owner, e Restore) {
	in := Restored{Keys: e.Keys, Err: s.trouble()}
	if in.Err == nil {
		for _, k := range e.Keys {
			in.Rows = append(in.Rows, s.world.restore(k))
		}
	}
	s.soon(func() { s.give(o, in) })
}

// dispatch solves, forgets, or answers twice; and holds that a retry is the same bytes (I7).
func (s *sim) dispatch(o *owner, e Dispatch) {
	sent := sending{e.Job, e.Replica != ""}
	if was, ok := o.requests[sent]; ok && was != string(e.Request) {
		s.world.fault("job %s was sent with other bytes (I7)", e.Job)
	}
	o.requests[sent] = string(e.Request)
	if s.happens(1) {
		return // lost
	}
	in := s.solve(o, e)
	if in.Err == nil && !in.TripMiss && s.happens(0.5) {
		in.Decision, in.Err = Decision{}, errors.New("solver busy")
	}
	s.reply(o, in)
	if s.happens(1) {
		s.reply(o, in)
	}
	if in.Err == nil && !in.TripMiss && s.happens(1) {
		s.foretell(o, in)
	}
	if s.happens(0.5) {
		forged := in
		forged.Job[0]++
		forged.Err, forged.Decision = nil, Decision{Kind: Solved, Answer: []byte("forged")}
		s.reply(o, forged)
	}
	if s.happens(0.2) {
		forged := in
		forged.TripMiss = true
		forged.Revision.Offset += int64(s.rng.IntN(3) - 1)
		s.reply(o, forged)
	}
}

// foretell answers up to three jobs of a key before they go out, as the matchers of a former owner would that had come
// further: what follows from a result, over the records that follow.
func (s *sim) foretell(o *owner, in Result) {
	k := o.m.keys[in.Key]
	if k == nil || k.head == nil || k.head.record.Offset != in.Revision.Offset {
		return
	}
	state, base, word := toyState(KeyState{Checkpoint: k.checkpoint, Expired: k.expired}), in.Revision, string(k.head.record.Value)
	for _, r := range s.world.log {
		if string(r.Key) != string(in.Key) || r.Offset <= base.Offset {
			continue
		}
		state = toyFold(state, word, string(in.Decision.Answer))
		word = string(r.Value)
		if strings.ContainsAny(word, "~?!") || r.Offset > in.Revision.Offset && s.rng.IntN(4) == 0 {
			return
		}
		request := []byte(state + " " + word)
		in.Revision.Offset = r.Offset
		in.Job = jobID(in.Key, in.Revision, base, request)
		in.Decision, _ = toySolve(request, s.flavour(o.tenure.Epoch))
		base = in.Revision
		s.reply(o, in)
		if s.rng.IntN(3) == 0 {
			return
		}
	}
}

// reply brings a result to the owner that asked, late at times; or to whoever owns the partition by then, as a topic of
// replies does: a successor gets it before its own job.
func (s *sim) reply(o *owner, in Result) {
	s.soon(func() {
		if s.current != nil && s.current != o && (o.gone || s.happens(3)) {
			s.give(s.current, in)
			return
		}
		s.give(o, in)
	})
}
