package facts_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// transaction is of a transactional id, moved request by request.
type transaction struct {
	w        *world
	id       string
	producer int64
	epoch    int16
}

// transaction initialises the id; what was open with it is aborted.
func (w *world) transaction(id string, timeoutMillis int32) *transaction {
	w.t.Helper()
	x := &transaction{w: w, id: id}
	w.eventually("the id is initialised", func() bool {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = &id, timeoutMillis
		resp, err := req.RequestWith(w.ctx(), w.client)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if err != nil && !errors.Is(err, kerr.ConcurrentTransactions) && !kerr.IsRetriable(err) {
			w.t.Fatal(err)
		}
		if err == nil {
			x.producer, x.epoch = resp.ProducerID, resp.ProducerEpoch
		}
		return err == nil
	})
	return x
}

func (x *transaction) addOffset(member string, generation, partition int32, at int64) {
	x.w.t.Helper()
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch = x.id, x.w.group, x.producer, x.epoch
	req.MemberID, req.Generation = member, generation
	t := kmsg.NewTxnOffsetCommitRequestTopic()
	t.Topic, t.TopicID = x.w.topic, x.w.topicID()
	p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset = partition, at
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	var last error
	defer func() {
		if last != nil {
			x.w.t.Logf("the last answer: %v", last)
		}
	}()
	x.w.eventually("the transaction takes the offset", func() bool {
		resp, err := req.RequestWith(x.w.ctx(), x.w.client)
		if err != nil {
			x.w.t.Fatal(err)
		}
		err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
		last = err
		if err != nil && !errors.Is(err, kerr.ConcurrentTransactions) && !kerr.IsRetriable(err) {
			x.w.t.Fatal(err)
		}
		return err == nil
	})
}

func (x *transaction) end(commit bool) error {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = x.id, x.producer, x.epoch, commit
	resp, err := req.RequestWith(x.w.ctx(), x.w.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err == nil && resp.ProducerEpoch >= 0 {
		x.producer, x.epoch = resp.ProducerID, resp.ProducerEpoch
	}
	return err
}

// hang leaves a transaction open with one record in partition 0, as a killed process does, and gives its producer.
func (w *world) hang(id string, timeout time.Duration) *kgo.Client {
	w.t.Helper()
	c := w.newClient(kgo.TransactionalID(id), kgo.TransactionTimeout(timeout), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := c.BeginTransaction(); err != nil {
		w.t.Fatal(err)
	}
	if err := c.ProduceSync(w.ctx(), &kgo.Record{Topic: w.topic, Value: []byte(id)}).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// stable gives partition 0's last stable offset and its end.
func (w *world) stable() (stable, end int64) {
	w.t.Helper()
	committed, err := w.admin.ListCommittedOffsets(w.ctx(), w.topic)
	if err != nil {
		w.t.Fatal(err)
	}
	ends, err := w.admin.ListEndOffsets(w.ctx(), w.topic)
	if err != nil {
		w.t.Fatal(err)
	}
	s, _ := committed.Lookup(w.topic, 0)
	e, _ := ends.Lookup(w.topic, 0)
	return s.Offset, e.Offset
}

// read gives what stands in partition 0 up to the end that it has now.
func (w *world) read(level kgo.IsolationLevel) []*kgo.Record {
	w.t.Helper()
	_, end := w.stable()
	c := w.newClient(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{w.topic: {0: kgo.NewOffset().AtStart()}}),
		kgo.FetchIsolationLevel(level), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond),
	)
	var records []*kgo.Record
	for next := int64(0); next < end; {
		fetches := c.PollFetches(w.ctx())
		if err := fetches.Err(); err != nil {
			w.t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			next = r.Offset + 1
			if !r.Attrs.IsControl() {
				records = append(records, r)
			}
		})
	}
	return records
}

// E10, E8, P19, section 2 (3.6): a transaction that a dead process left open holds the last stable offset. The broker ends it by itself only at a scan
// every ten seconds after the time-out; who initialises the id frees it at once, and the answer comes when the markers are written.
// Afterwards the old producer is refused everything, and its client believes to be in a transaction for ever: it is thrown away.
func TestFactLastStableOffset(t *testing.T) {
	t.Parallel()
	w := newWorld(t, broker(t))
	old := w.hang(w.group+"-1", time.Minute)
	if stable, end := w.stable(); stable != 0 || end != 1 {
		t.Errorf("beside an open transaction: stable %d, end %d, want 0 and 1", stable, end)
	}
	w.transaction(w.group+"-1", 60_000)
	if stable, end := w.stable(); stable != end {
		t.Errorf("when the initialisation is answered: stable %d, end %d, want the same", stable, end)
	}
	err := old.ProduceSync(w.ctx(), &kgo.Record{Topic: w.topic, Value: []byte("late")}).FirstErr()
	if !errors.Is(err, kerr.InvalidProducerEpoch) && !errors.Is(err, kerr.ProducerFenced) {
		t.Errorf("a record of the old producer: %v", err)
	}
	if err := old.EndTransaction(w.ctx(), kgo.TryAbort); err == nil {
		t.Error("the old producer's abort is answered with success")
	}
	if err := old.BeginTransaction(); err == nil {
		t.Error("the old producer's client begins another transaction: it need not be thrown away any more")
	}
	w.hang(w.group+"-2", time.Second).Close()
	began := time.Now()
	w.eventually("the time-out is noticed", func() bool {
		stable, end := w.stable()
		return stable == end
	})
	t.Logf("a transaction of 1 s was ended by the broker after %s", time.Since(began).Round(100*time.Millisecond))
	if n := len(w.read(kgo.ReadCommitted())); n != 0 {
		t.Errorf("%d records of aborted transactions are visible", n)
	}
}

// E8, H1, answer 2: an end that races with the initialisation of its id commits or aborts, but never after the initialisation was answered; and what
// was told committed is visible below the end that is noted then. So recovery reads everything that can ever commit.
func TestFactInitialisationRacesWithCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, broker(t))
	type round struct {
		offset, noted int64
		committed     bool // the old producer was told so
	}
	var rounds []round
	told := 0
	for n := range 30 {
		id := fmt.Sprintf("%s-%d", w.group, n)
		c := w.hang(id, time.Minute)
		_, end := w.stable()
		r := round{offset: end - 1}
		ended := make(chan error, 1)
		go func() { ended <- c.EndTransaction(w.ctx(), kgo.TryCommit) }()
		if n%3 > 0 {
			time.Sleep(time.Duration(n) * 100 * time.Microsecond) // the race is the point: both orders are looked for
		}
		w.transaction(id, 60_000)
		r.noted, _ = w.stable()
		if err := <-ended; err == nil {
			r.committed = true
			told++
		}
		c.Close()
		rounds = append(rounds, r)
	}
	visible := map[int64]bool{}
	for _, r := range w.read(kgo.ReadCommitted()) {
		visible[r.Offset] = true
	}
	for n, r := range rounds {
		if r.committed && !visible[r.offset] {
			t.Errorf("round %d: told committed, and not visible", n)
		}
		if visible[r.offset] && r.offset >= r.noted {
			t.Errorf("round %d: offset %d became visible after the end %d was noted", n, r.offset, r.noted)
		}
	}
	t.Logf("%d ends: %d were told committed, %d are visible", len(rounds), told, len(visible))
}

// P22, P24, section 2 (3.6): each end of a transaction takes a producer epoch (transaction version 2), so a delayed end of an earlier one ends no
// later one. A producer without a transactional id is another one at each start: nothing fences it. Two-phase commit is not offered.
func TestFactProducerEpochs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, broker(t))
	a := w.member("")
	w.together(a)
	x := w.transaction(w.group+"-x", 60_000)
	for n := range int64(3) {
		before := *x
		x.addOffset(a.id, a.generation, 0, n)
		want(t, "end", x.end(true), nil)
		if x.producer != before.producer || x.epoch != before.epoch+1 {
			t.Errorf("end %d: producer %d epoch %d became %d %d, want one epoch more", n, before.producer, before.epoch, x.producer, x.epoch)
		}
		if n == 0 {
			continue
		}
		x.addOffset(a.id, a.generation, 0, n+10)
		if err := before.end(false); err == nil {
			t.Error("a delayed abort of the former epoch was taken")
		}
		want(t, "end after the delayed one", x.end(true), nil)
	}
	ids := map[int64]bool{}
	for range 2 {
		req := kmsg.NewPtrInitProducerIDRequest()
		resp, err := req.RequestWith(w.ctx(), w.client)
		if err != nil {
			t.Fatal(err)
		}
		ids[resp.ProducerID] = true
	}
	if len(ids) != 2 {
		t.Error("two initialisations without a transactional id gave one producer id")
	}
	versions, err := w.admin.ApiVersions(w.ctx())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		if most, ok := v.KeyMaxVersion(int16(kmsg.InitProducerID)); !ok || most > 5 {
			t.Errorf("InitProducerId is offered up to version %d: two-phase commit (version 6) may be usable now", most)
		}
		if most, ok := v.KeyMaxVersion(int16(kmsg.EndTxn)); !ok || most < 5 {
			t.Errorf("EndTxn is offered up to version %d: without 5 a delayed end may end a later transaction", most)
		}
	}
	a.leave()
}
