package partition

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// instant runs a machine against a world that answers at once.
type instant struct {
	m        *Machine
	now      time.Time
	position int64
	counts   map[string]int
}

func newInstant(cfg Config) *instant {
	start := Start{Tenure: toyTenure(1), Frontier: stream.Frontier{Next: stream.Revision{Generation: 1}, LeaderEpoch: -1}}
	return &instant{m: New(cfg, toy{}, start, toyStart()), now: toyStart(), counts: map[string]int{}}
}

func (w *instant) give(in Input) {
	queue := []Input{in}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		for _, e := range w.m.Step(w.now, next) {
			if a := w.answer(e); a != nil {
				queue = append(queue, a)
			}
		}
	}
}

func (w *instant) answer(e Effect) Input {
	w.counts[strings.TrimPrefix(fmt.Sprintf("%T", e), "partition.")]++
	switch e := e.(type) {
	case Restore:
		in := Restored{Keys: e.Keys, Rows: make([]commit.Restored, len(e.Keys))}
		for i, k := range e.Keys {
			in.Rows[i].Key = k
		}
		return in
	case Dispatch:
		return Result{Job: e.Job, Key: e.Key, Revision: e.Revision, Decision: Decision{Kind: Solved, Answer: []byte("a")}}
	case Commit:
		w.position++
		return Committed{Key: e.Commit.Key, Revision: e.Commit.Revision, ID: e.Commit.ID, Position: w.position}
	case Promote:
		return Promoted{Promotions: e.Promotions, Errs: make([]error, len(e.Promotions))}
	case SaveFrontier:
		return FrontierSaved{Write: e.Write}
	default:
		return nil
	}
}

// A step costs what it changes and not what there is (A4, A17): with 20,000 keys in memory an observation costs
// about what it costs with 100, and so does a tick.
func TestStepDoesNotGrowWithKeys(t *testing.T) {
	allocs := func(keys int) (step, tick float64) {
		w := newInstant(DefaultConfig())
		offset := int64(0)
		for i := range keys {
			w.give(Arrived{Records: []stream.Record{toyRecord(offset, fmt.Sprintf("k%d", i), "w")}})
			offset++
		}
		for range 10 {
			w.now = w.now.Add(time.Second)
			w.give(Tick{})
		}
		if v := w.m.View(); v.Keys != keys || v.Unpromoted != 0 || v.Queued != 0 {
			t.Fatalf("after %d keys: %+v", keys, v)
		}
		step = testing.AllocsPerRun(200, func() {
			w.give(Arrived{Records: []stream.Record{toyRecord(offset, "k5", "w")}})
			offset++
		})
		tick = testing.AllocsPerRun(200, func() { w.give(Tick{}) })
		return step, tick
	}
	fewStep, fewTick := allocs(100)
	manyStep, manyTick := allocs(20_000)
	if manyStep > fewStep+10 || manyTick > fewTick+10 {
		t.Errorf("with 100 keys %v allocations a step and %v a tick, with 20,000 %v and %v", fewStep, fewTick, manyStep, manyTick)
	}
}

// F17, P27: one key with a burst of 20,000 records neither delays the others nor fills memory: its queue keeps its
// bound, the others commit at once, and all of it is done in order in the end.
func TestHotKeyDelaysNobody(t *testing.T) {
	cfg := DefaultConfig()
	w := newInstant(cfg)
	const burst = 20_000
	log := make([]stream.Record, 0, burst+burst/100)
	for i := range burst {
		log = append(log, toyRecord(int64(len(log)), "hot", "w"))
		if i%100 == 0 {
			log = append(log, toyRecord(int64(len(log)), fmt.Sprintf("k%d", i), "w"))
		}
	}
	// The hot key's commits are withheld: everything else must pass.
	var held []Input
	others, most := 0, 0
	step := func(in Input) {
		queue := []Input{in}
		for len(queue) > 0 {
			next := queue[0]
			queue = queue[1:]
			for _, e := range w.m.Step(w.now, next) {
				switch a := w.answer(e).(type) {
				case nil:
				case Committed:
					if a.Key == "hot" {
						held = append(held, a)
						continue
					}
					others++
					queue = append(queue, a)
				default:
					queue = append(queue, a)
				}
				if r, ok := e.(Refetch); ok {
					in := Arrived{Refetched: true}
					for _, o := range r.Offsets {
						in.Records = append(in.Records, log[o])
					}
					queue = append(queue, in)
				}
			}
			most = max(most, w.m.View().Queued)
		}
	}
	for i := 0; i < len(log); i += 500 {
		step(Arrived{Records: log[i:min(i+500, len(log))]})
	}
	if others != burst/100 {
		t.Errorf("%d of the others' %d records are committed while the hot key waits", others, burst/100)
	}
	if most > cfg.KeyQueue+500 {
		t.Errorf("%d records were in hand", most)
	}
	for len(held) > 0 {
		in := held[0]
		held = held[1:]
		step(in)
	}
	v := w.m.View()
	if v.Frontier.Next.Offset != int64(len(log)) || v.Spilled != 0 || v.Stats.Committed != int64(len(log)) {
		t.Errorf("in the end: %+v", v)
	}
	w.m.checkAll()
}

// I16: the same inputs give the same effects, byte for byte.
func TestSameInputsSameEffects(t *testing.T) {
	run := func() string {
		var b strings.Builder
		w := newInstant(DefaultConfig())
		for i := range 300 {
			in := Arrived{Records: []stream.Record{toyRecord(int64(i), fmt.Sprintf("k%d", i%17), fmt.Sprintf("w%d", i))}}
			for _, e := range w.m.Step(w.now, in) {
				fmt.Fprintf(&b, "%T", e)
				if c, ok := e.(Commit); ok {
					fmt.Fprintf(&b, "%s", c.Commit.ID)
				}
				if a := w.answer(e); a != nil {
					w.give(a)
				}
			}
		}
		w.give(Drain{})
		return b.String() + fmt.Sprint(w.m.View())
	}
	if a, b := run(), run(); a != b {
		t.Error("two runs differ")
	}
}

// A17: each delivery moves exactly one of queued, poison, suppressed, deferred and set aside once its key's row is known.
func TestEachDeliveryIsCountedOnce(t *testing.T) {
	cfg := DefaultConfig()
	cfg.KeyQueue = 2
	w := newInstant(cfg)
	for i, word := range []string{"w", "?", "!p", "w", "~w", "w", "w"} {
		r := toyRecord(int64(i), fmt.Sprintf("k%d", i%2), word)
		w.give(Arrived{Records: []stream.Record{r}})
		w.give(Arrived{Records: []stream.Record{r}})
	}
	s := w.m.View().Stats
	if got := s.Queued + s.Poison + s.Suppressed + s.Deferred + s.SetAside; got != s.Offered || s.Offered != 14 {
		t.Errorf("%d of %d deliveries have a verdict: %+v", got, s.Offered, s)
	}
}

// A1: every limit that is out of range is reported, not the first alone.
func TestConfigReportsAllThatIsWrong(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	err := Config{}.Validate()
	for _, name := range []string{"key queue", "jobs", "window records", "restores", "frontier every"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not reported: %v", name, err)
		}
	}
}

// A broken invariant panics with its values, and both what must and what must not be are asserted.
func TestBrokenInvariantsPanic(t *testing.T) {
	for name, breakIt := range map[string]func(m *Machine, k *key){
		"I1":                      func(_ *Machine, k *key) { k.job.counted = false },
		"I5":                      func(_ *Machine, k *key) { k.checkpoint.Revision = stream.Revision{Generation: 1, Offset: 99} },
		"I3":                      func(m *Machine, k *key) { m.tracker.set(k.head.record.Offset, isSpilled) },
		"I4":                      func(m *Machine, _ *key) { m.written.Frontier.Next.Offset = 50 },
		"P3":                      func(_ *Machine, k *key) { k.phase = solving },
		"P5":                      func(m *Machine, _ *key) { m.records++ },
		"P6":                      func(m *Machine, k *key) { m.holds.remove(k) },
		"I2":                      func(m *Machine, _ *key) { m.tracker.deliver(7, 0, toyStart()) },
		"P2":                      func(_ *Machine, k *key) { k.spill = []spilled{{offset: 0}} },
		"P7":                      func(_ *Machine, k *key) { k.listed = true },
		"P4":                      func(m *Machine, _ *key) { m.jobs = 0 },
		"I3, done while it waits": func(m *Machine, _ *key) { m.tracker.entries.at(0).mark = isDone },
	} {
		m := New(DefaultConfig(), toy{}, Start{Tenure: toyTenure(1), Frontier: stream.Frontier{Next: stream.Revision{Generation: 1}}}, toyStart())
		m.Step(toyStart(), Arrived{Records: []stream.Record{toyRecord(0, "k", "~w")}})
		m.Step(toyStart(), Restored{Keys: []stream.Key{"k"}, Rows: []commit.Restored{{Key: "k"}}})
		m.checkAll()
		breakIt(m, m.keys["k"])
		func() {
			defer func() {
				got := fmt.Sprint(recover())
				if want := "invariant " + strings.SplitN(name, ",", 2)[0] + " is broken"; !strings.Contains(got, want) {
					t.Errorf("%s: %s", want, got)
				}
			}()
			m.checkAll()
		}()
	}
}

// An answer that was not asked for, or comes twice, changes nothing: late answers of what was given up are normal.
func TestStrayAnswersChangeNothing(t *testing.T) {
	w := newInstant(DefaultConfig())
	w.give(Arrived{Records: []stream.Record{toyRecord(0, "k", "~w")}})
	before := w.m.View()
	rev := stream.Revision{Generation: 1}
	for _, in := range []Input{
		Result{Key: "k", Revision: rev},
		Result{Key: "x", Revision: rev},
		Committed{Key: "k", Revision: rev, Err: errors.New("late")},
		Committed{Key: "x", Revision: rev},
		Finished{Key: "k"},
		Finished{Key: "x", Err: errors.New("late")},
		QuarantineSaved{},
		QuarantineSaved{Rows: []commit.Quarantined{{Key: "k", Revision: rev}}},
	} {
		if got := w.m.Step(w.now, in); len(got) != 0 {
			t.Errorf("%T brings %v", in, got)
		}
		w.m.checkAll()
	}
	after := w.m.View()
	before.Stats, after.Stats = Stats{}, Stats{}
	before.Reasons, after.Reasons = nil, nil
	if !reflect.DeepEqual(before, after) {
		t.Errorf("before %+v, after %+v", before, after)
	}
}
