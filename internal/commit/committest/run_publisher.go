package committest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// Publishing is what RunPublisher puts to the test: an implementation, and hands to see and turn the world around it. The raw topic has
// at least two partitions, the publisher at least two lanes.
type Publishing struct {
	Publisher commit.Publisher
	Ledger    commit.Ledger
	Mode      commit.PublishMode
	// Topic is an output topic, DeadLetters the one of poison records, Absent the name of a topic that is not there.
	Topic, DeadLetters, Absent string
	// TooLarge is how many bytes no record may have.
	TooLarge int
	// Tenure begins a tenure that holds.
	Tenure func(partition int32) *commit.Tenure
	// Take gives a tenure's partition to another owner, behind its back.
	Take func(*commit.Tenure)
	// Create makes the absent topic.
	Create func()
	// Visible reads a topic as a read_committed reader does, each partition in order.
	Visible func(topic string) []Seen
	// Unanswered makes the broker's next answer about what makes a batch final get lost: that of the transaction's end, else that of
	// the ledger's record. done says whether the broker did what it was asked. RunUnanswered needs it.
	Unanswered func(done bool)
}

// Seen is one visible output and where it stands.
type Seen struct {
	commit.Output
	commit.Landing
}

// RunPublisher puts every implementation through the same conformance suite; newPublishing gives one over empty topics. What mode
// idempotent does not promise is not asked of it; what it promises instead is.
func RunPublisher(t *testing.T, newPublishing func(t *testing.T) *Publishing) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, p *Publishing)
	}{
		{"A11/P25/each output is visible once, byte for byte", testVisible},
		{"A11/ledger entries are complete and say where the outputs landed", testEntries},
		{"H4/positions bound the entries of a batch from below", testPositions},
		{"A18/lanes publish side by side", testLanes},
		{"H15g/one record that no broker takes stops nobody else", testTooLarge},
		{"H13/a commit is visible as a whole or not in the ledger", testWhole},
		{"P26/a missing topic holds back its own commits only", testAbsent},
		{"C6/P1/lost tenures publish nothing", testLost},
		{"H1/X1/an owner row that is another's refuses", testTaken},
		{"P26/dead letters are entered by offset", testDeadLetter},
		{"a commit without outputs is entered too", testNoOutputs},
		{"X6/a call that is broken off answers with its context", testBrokenOff},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, newPublishing(t)) })
	}
}

// RunUnanswered is the part of the suite for implementations over something that can lose an answer: Publishing.Unanswered is set.
func RunUnanswered(t *testing.T, newPublishing func(t *testing.T) *Publishing) {
	t.Run("P20/H11/an unanswered end that happened", func(t *testing.T) { testUnanswered(t, newPublishing(t), true) })
	t.Run("P20/H11/an unanswered end that did not happen", func(t *testing.T) { testUnanswered(t, newPublishing(t), false) })
}

// commits makes n commits of the tenure from the offset on, each with one output to the topic.
func (p *Publishing) commits(t *commit.Tenure, from int64, n int) []commit.Commit {
	var batch []commit.Commit
	for i := range int64(n) {
		rev := stream.Revision{Generation: 1, Offset: from + i}
		batch = append(batch, p.commit(t, rev, p.output(t, p.Topic, rev, 0, 100)))
	}
	return batch
}

func (p *Publishing) commit(t *commit.Tenure, rev stream.Revision, outputs ...commit.Output) commit.Commit {
	return commit.NewCommit(t, keyAt(t, rev), stream.Revision{}, commit.Plan{
		Next: commit.Checkpoint{Revision: rev, Segment: 1, State: []byte("state")}, Outputs: outputs,
	})
}

func keyAt(t *commit.Tenure, rev stream.Revision) stream.Key {
	return stream.Key(fmt.Sprintf("k%d-%d", t.Partition.Number, rev.Offset))
}

func (p *Publishing) output(t *commit.Tenure, topic string, rev stream.Revision, index, size int) commit.Output {
	key := keyAt(t, rev)
	e := stream.CloudEvent{
		Type: "test", Group: t.Group, Identity: stream.Identity{Partition: t.Partition, Revision: rev}, Subject: key, Epoch: t.Epoch, Index: index,
	}
	value := make([]byte, size)
	for i := range value {
		value[i] = byte(int64(i) + rev.Offset + int64(index))
	}
	return commit.Output{Topic: topic, Key: []byte(key), Value: value, Headers: e.Headers()}
}

func (p *Publishing) publish(t *testing.T, lane int, batch ...commit.Commit) commit.Published {
	t.Helper()
	out, err := p.Publisher.Publish(t.Context(), lane, batch)
	if err != nil {
		t.Fatalf("publish: %v", err)
	}
	return out
}

func (p *Publishing) mustPublish(t *testing.T, lane int, batch ...commit.Commit) commit.Published {
	t.Helper()
	out := p.publish(t, lane, batch...)
	for i, err := range out.Failed {
		t.Fatalf("commit %d failed: %v", i, err)
	}
	return out
}

// wantVisible fails unless exactly the commits' outputs are visible in the topic: once each, or with repeats at least once each and
// every copy the same.
func (p *Publishing) wantVisible(t *testing.T, topic string, repeats bool, batches ...[]commit.Commit) {
	t.Helper()
	want, got := map[string]commit.Output{}, map[string]int{}
	for _, batch := range batches {
		for i := range batch {
			for _, o := range batch[i].Outputs {
				if o.Topic == topic {
					want[id(o)] = o
				}
			}
		}
	}
	for _, seen := range p.Visible(topic) {
		name := id(seen.Output)
		got[name]++
		o, ok := want[name]
		if !ok {
			t.Errorf("%s is visible and should not be", name)
			continue
		}
		if diff := cmp.Diff(o, seen.Output); diff != "" {
			t.Errorf("%s has other bytes than its commit (-want +got):\n%s", name, diff)
		}
	}
	for name := range want {
		if n := got[name]; n < 1 || n > 1 && !repeats {
			t.Errorf("%s is visible %d times", name, n)
		}
	}
}

func id(o commit.Output) string {
	for _, h := range o.Headers {
		if h.Key == stream.HeaderID {
			return string(h.Value)
		}
	}
	return "no id"
}

// entries reads the ledger partition from the floor.
func (p *Publishing) entries(t *testing.T, part stream.Partition, floor int64) (entries []commit.Entry, end int64) {
	t.Helper()
	last := floor - 1
	end, err := p.Ledger.Settled(t.Context(), part, floor, func(at int64, e commit.Entry) error {
		if at < last {
			t.Errorf("the ledger is read backwards: %d after %d", at, last)
		}
		last = at
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		t.Fatalf("read the ledger: %v", err)
	}
	if last >= end {
		t.Errorf("an entry at %d, at or past the noted end %d", last, end)
	}
	return entries, end
}

// wantClasses fails unless exactly these commits failed, with these classes.
func wantClasses(t *testing.T, out commit.Published, want map[int]commit.Class) {
	t.Helper()
	got := map[int]commit.Class{}
	for i, err := range out.Failed {
		got[i] = commit.ClassOf(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failed commits %v, classes (-want +got):\n%s", out.Failed, diff)
	}
}

func testVisible(t *testing.T, p *Publishing) {
	batch := append(p.commits(p.Tenure(0), 5, 4), p.commits(p.Tenure(1), 5, 3)...)
	p.mustPublish(t, 0, batch...)
	p.wantVisible(t, p.Topic, false, batch)
}

func testEntries(t *testing.T, p *Publishing) {
	tn := p.Tenure(0)
	batch := p.commits(tn, 5, 3)
	rev := stream.Revision{Generation: 1, Offset: 8}
	batch = append(batch, p.commit(tn, rev, p.output(tn, p.Topic, rev, 0, 50), p.output(tn, p.Topic, rev, 1, 60)))
	p.mustPublish(t, 1, batch...)
	where := map[string]commit.Landing{}
	for _, seen := range p.Visible(p.Topic) {
		where[id(seen.Output)] = seen.Landing
	}
	var want []commit.Entry
	for i := range batch {
		var landed []commit.Landing
		for _, o := range batch[i].Outputs {
			landed = append(landed, where[id(o)])
		}
		want = append(want, commit.EntryOf(&batch[i], landed))
	}
	got, _ := p.entries(t, tn.Partition, 0)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func testPositions(t *testing.T, p *Publishing) {
	t0, t1 := p.Tenure(0), p.Tenure(1)
	first := p.mustPublish(t, 0, append(p.commits(t0, 0, 2), p.commits(t1, 0, 1)...)...)
	second := p.mustPublish(t, 1, p.commits(t0, 2, 3)...)
	if len(first.Positions) != 2 || len(second.Positions) != 1 {
		t.Fatalf("positions %v and %v, want one a partition of the batch", first.Positions, second.Positions)
	}
	at := second.Positions[t0.Partition]
	if before := first.Positions[t0.Partition]; at <= before {
		t.Errorf("the second batch's position is %d, not above the first's %d", at, before)
	}
	var got []int64
	entries, end := p.entries(t, t0.Partition, at)
	for _, e := range entries {
		got = append(got, e.Offsets...)
	}
	slices.Sort(got)
	if !slices.Equal(got, []int64{2, 3, 4}) || end <= at {
		t.Errorf("from the second position %d to the end %d: offsets %v, want exactly the second batch's", at, end, got)
	}
}

func testLanes(t *testing.T, p *Publishing) {
	var batches [][]commit.Commit
	var wg sync.WaitGroup
	for lane := range p.Publisher.Lanes() {
		tn := p.Tenure(int32(lane % 2))
		var mine [][]commit.Commit
		for i := range int64(4) {
			mine = append(mine, p.commits(tn, int64(lane)*1000+i*10, 5))
		}
		batches = append(batches, mine...)
		wg.Go(func() {
			for _, batch := range mine {
				out, err := p.Publisher.Publish(t.Context(), lane, batch)
				if err != nil || len(out.Failed) > 0 {
					t.Errorf("lane %d: %v, failed %v", lane, err, out.Failed)
				}
			}
		})
	}
	wg.Wait()
	p.wantVisible(t, p.Topic, false, batches...)
}

func testTooLarge(t *testing.T, p *Publishing) {
	t0, t1 := p.Tenure(0), p.Tenure(1)
	batch := append(p.commits(t0, 0, 5), p.commits(t1, 0, 4)...)
	poison := 6
	rev := batch[poison].Revision
	batch[poison] = p.commit(t1, rev, p.output(t1, p.Topic, rev, 0, p.TooLarge))
	out := p.publish(t, 0, batch...)
	wantClasses(t, out, map[int]commit.Class{poison: commit.Permanent})
	good := slices.Delete(slices.Clone(batch), poison, poison+1)
	p.wantVisible(t, p.Topic, false, good)
	for part, want := range map[stream.Partition]int{t0.Partition: 5, t1.Partition: 3} {
		if got, _ := p.entries(t, part, out.Positions[part]); len(got) != want {
			t.Errorf("%s: %d entries from the position given, want %d", part, len(got), want)
		}
	}
}

// testWhole: of a commit with two outputs one of which can never be sent, nothing is visible and nothing entered.
func testWhole(t *testing.T, p *Publishing) {
	tn := p.Tenure(0)
	rev := stream.Revision{Generation: 1, Offset: 3}
	halves := p.commit(tn, rev, p.output(tn, p.Topic, rev, 0, 10), p.output(tn, p.Topic, rev, 1, p.TooLarge))
	out := p.publish(t, 0, halves)
	wantClasses(t, out, map[int]commit.Class{0: commit.Permanent})
	p.wantVisible(t, p.Topic, false)
	if got, _ := p.entries(t, tn.Partition, 0); len(got) != 0 {
		t.Errorf("entries: %+v, want none", got)
	}
}

func testAbsent(t *testing.T, p *Publishing) {
	tn := p.Tenure(0)
	batch := p.commits(tn, 0, 5)
	rev := batch[2].Revision
	batch[2] = p.commit(tn, rev, p.output(tn, p.Topic, rev, 0, 10), p.output(tn, p.Absent, rev, 1, 10))
	out := p.publish(t, 0, batch...)
	wantClasses(t, out, map[int]commit.Class{2: commit.Transient})
	others := slices.Delete(slices.Clone(batch), 2, 3)
	p.wantVisible(t, p.Topic, false, others)
	if got, _ := p.entries(t, tn.Partition, 0); len(got) != 4 {
		t.Errorf("%d entries, want those of the four that are visible", len(got))
	}
	p.Create()
	for try := 0; ; try++ {
		out := p.publish(t, 1, batch[2])
		if len(out.Failed) == 0 {
			break
		}
		if try == 500 {
			t.Fatalf("the topic is there and still: %v", out.Failed)
		}
	}
	p.wantVisible(t, p.Topic, false, batch)
	p.wantVisible(t, p.Absent, false, batch[2:3])
}

func testLost(t *testing.T, p *Publishing) {
	t0, t1 := p.Tenure(0), p.Tenure(1)
	batch := append(p.commits(t0, 0, 3), p.commits(t1, 0, 2)...)
	t0.Lose(errors.New("the group took it away"))
	out := p.publish(t, 0, batch...)
	wantClasses(t, out, map[int]commit.Class{0: commit.Fenced, 1: commit.Fenced, 2: commit.Fenced})
	p.wantVisible(t, p.Topic, false, batch[3:])
	if _, there := out.Positions[t0.Partition]; there {
		t.Errorf("positions: %v, want none of the lost partition", out.Positions)
	}
	if got, _ := p.entries(t, t0.Partition, 0); len(got) != 0 {
		t.Errorf("entries of the lost partition: %+v", got)
	}
}

func testTaken(t *testing.T, p *Publishing) {
	t0, t1 := p.Tenure(0), p.Tenure(1)
	p.Take(t0)
	batch := append(p.commits(t0, 0, 2), p.commits(t1, 0, 2)...)
	out := p.publish(t, 1, batch...)
	wantClasses(t, out, map[int]commit.Class{0: commit.Fenced, 1: commit.Fenced})
	p.wantVisible(t, p.Topic, false, batch[2:])
}

func testDeadLetter(t *testing.T, p *Publishing) {
	tn := p.Tenure(1)
	rev := stream.Revision{Generation: 1, Offset: 41}
	dead := commit.NewDeadLetter(tn, keyAt(tn, rev), rev, p.output(tn, p.DeadLetters, rev, 0, 10))
	p.mustPublish(t, 0, append(p.commits(tn, 40, 1), dead)...)
	p.wantVisible(t, p.DeadLetters, false, []commit.Commit{dead})
	got, _ := p.entries(t, tn.Partition, 0)
	if len(got) != 2 || got[0].DeadLetter || !got[1].DeadLetter || !slices.Equal(got[1].Offsets, []int64{41}) {
		t.Errorf("entries: %+v, want a commit's and a dead letter's at 41", got)
	}
}

func testNoOutputs(t *testing.T, p *Publishing) {
	tn := p.Tenure(0)
	rev := stream.Revision{Generation: 1, Offset: 9}
	out := p.mustPublish(t, 0, p.commit(tn, rev))
	got, _ := p.entries(t, tn.Partition, out.Positions[tn.Partition])
	if len(got) != 1 || len(got[0].Landed) != 0 || !slices.Equal(got[0].Offsets, []int64{9}) {
		t.Errorf("entries: %+v, want one without landings", got)
	}
}

func testUnanswered(t *testing.T, p *Publishing, done bool) {
	t0, t1 := p.Tenure(0), p.Tenure(1)
	earlier := p.commits(t1, 0, 2)
	p.mustPublish(t, 0, earlier...)
	batch := append(p.commits(t0, 0, 3), p.commits(t1, 2, 2)...)
	p.Unanswered(done)
	out := p.mustPublish(t, 0, batch...)
	if len(out.Positions) != 2 {
		t.Errorf("positions: %v, want one a partition", out.Positions)
	}
	idempotent := p.Mode == commit.Idempotent
	p.wantVisible(t, p.Topic, idempotent, earlier, batch)
	for part, want := range map[stream.Partition]int{t0.Partition: 3, t1.Partition: 2} {
		// Without transactions an entry that was not answered may stand twice: it says the same.
		if got, _ := p.entries(t, part, out.Positions[part]); len(got) < want || len(got) > want && !idempotent {
			t.Errorf("%s: %d entries from the position given, want %d", part, len(got), want)
		}
	}
}

func testBrokenOff(t *testing.T, p *Publishing) {
	tn := p.Tenure(0)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the process ends")
	cancel(why)
	rev := stream.Revision{Generation: 1, Offset: 1}
	// One that could not be decided at once: its topic is not there.
	_, err := p.Publisher.Publish(ctx, 0, []commit.Commit{p.commit(tn, rev, p.output(tn, p.Topic, rev, 0, 10))})
	if err != nil && !errors.Is(err, why) && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's cause", err)
	}
	visible := len(p.Visible(p.Topic)) > 0
	entries, _ := p.entries(t, tn.Partition, 0)
	if (err != nil && visible) || (err == nil) != (len(entries) == 1) {
		t.Errorf("answer %v, visible %v, entries %+v: they do not agree", err, visible, entries)
	}
}
