package publish

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// hang leaves a transaction of the lane id open, with a record on the ledger partition and, with offsets, a pending
// offset of the raw partition.
func (r *rig) hang(id string, partition int32, offsets bool) *lane {
	r.t.Helper()
	p := r.publisher("hang-" + id)
	l := &lane{id: id, opts: p.cfg.laneOptions(ClientOptions(p.cfg.Client))}
	if err := l.prepare(r.ctx()); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(l.drop)
	if err := l.begin(); err != nil {
		r.t.Fatal(err)
	}
	for _, err := range l.send(r.ctx(), []*kgo.Record{{Topic: r.topics.Ledger(), Partition: partition, Value: []byte("open")}}) {
		if err != nil {
			r.t.Fatal(err)
		}
	}
	if offsets {
		member, generation := r.who.Generation()
		if err := p.commitOffsets(r.ctx(), l, []share{{tenure: r.tenure(partition, 1)}}, member, generation); err != nil {
			r.t.Fatal(err)
		}
	}
	return l
}

// H15d: the ledger's last records are a marker or aborted: the reading ends by position all the same. The end that is given is
// where the next reading goes on.
func TestLedgerEndsInMarkers(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		if entries, end := r.entries(p, 0, 0); len(entries) != 0 || end != 0 {
			t.Fatalf("an empty ledger gives %d entries and end %d", len(entries), end)
		}
		ten := r.tenure(0, 1)
		r.mustPublish(p, 0, r.commits(ten, 0, 2))
		l := r.hang(LaneID(r.group, r.raw, "dead", 0), 0, false)
		if err := l.client.EndTransaction(r.ctx(), kgo.TryAbort); err != nil {
			t.Fatal(err)
		}
		// A broker answers the end of a transaction before its markers are written.
		want := func(from int64, n int, end int64) {
			t.Helper()
			eventually(t, func() bool {
				entries, got := r.entries(p, 0, from)
				if len(entries) != n {
					t.Fatalf("%d entries from %d, want %d", len(entries), from, n)
				}
				return got == end
			})
		}
		want(0, 2, 4)
		r.mustPublish(p, 1, r.commits(ten, 2, 1))
		want(4, 1, 6)
	})
}

// P19, P20, E8: a former owner's open transaction holds both the pending offset and the last stable offset; the reading waits
// for it, and initialising the former's lanes frees it at once.
func TestFormersOpenTransaction(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("b")
		r.hang(LaneID(r.group, r.raw, "dead", 1), 0, true)
		partition := stream.Partition{Topic: r.raw, Number: 0}
		none := func(int64, commit.Entry) error { return errors.New("an aborted entry was read") }
		short, cancel := context.WithTimeout(r.ctx(), 300*time.Millisecond)
		defer cancel()
		if _, err := p.Ledger().Settled(short, partition, 0, none); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v while the transaction was open, want to wait", err)
		}
		began := time.Now()
		if err := p.InitFormers(r.ctx(), r.raw, []commit.Former{{Instance: "dead", Lanes: 3}, {Instance: "dead", Lanes: 3}}); err != nil {
			t.Fatal(err)
		}
		initialised := time.Since(began)
		end, err := p.Ledger().Settled(r.ctx(), partition, 0, none)
		if err != nil || end != 2 {
			t.Fatalf("end %d, %v: want 2", end, err)
		}
		t.Logf("initialised in %s, settled in %s", initialised, time.Since(began))
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("took %s: the transaction's timeout was waited for", took)
		}
	})
}

// H12, H4: a ledger that starts above the floor or ends below it is an error with both numbers and a hint.
func TestLedgerFloor(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		ten := r.tenure(0, 1)
		for i := range int64(3) {
			r.mustPublish(p, int(i), r.commits(ten, i, 1))
		}
		var floor *FloorError
		read := func(at int64) error {
			_, err := p.Ledger().Settled(r.ctx(), ten.Partition, at, func(int64, commit.Entry) error { return nil })
			return err
		}
		if err := read(7); !errors.As(err, &floor) || floor.Floor != 7 || floor.End != 6 {
			t.Errorf("end below the floor: %v", err)
		}
		if err := p.Ledger().DeleteBelow(r.ctx(), ten.Partition, 4); err != nil {
			t.Fatal(err)
		}
		if err := p.Ledger().DeleteBelow(r.ctx(), ten.Partition, 2); err != nil {
			t.Errorf("a floor that is deleted already: %v", err)
		}
		if err := read(2); !errors.As(err, &floor) || floor.Start != 4 || !strings.Contains(err.Error(), "orchestrator partition ledger --accept --yes") {
			t.Errorf("start above the floor: %v", err)
		}
		if entries, end := r.entries(p, 0, 4); len(entries) != 1 || end != 6 {
			t.Errorf("from the floor: %d entries, end %d", len(entries), end)
		}
		if err := read(6); err != nil {
			t.Errorf("floor at the end: %v", err)
		}
	})
}

// H8: an entry of another group or raw topic stops the reading.
func TestLedgerStranger(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		ten := r.tenure(0, 1)
		r.mustPublish(p, 0, r.commits(ten, 0, 1))
		for _, l := range []*Ledger{
			NewLedger(r.admin, "other", r.raw, r.topics.Ledger(), p.cfg.Log),
			NewLedger(r.admin, r.group, "other", r.topics.Ledger(), p.cfg.Log),
		} {
			var stranger *StrangerError
			_, err := l.Settled(r.ctx(), ten.Partition, 0, func(int64, commit.Entry) error { return nil })
			if !errors.As(err, &stranger) || stranger.Group != r.group || stranger.Position != 0 {
				t.Errorf("got %v, want a stranger", err)
			}
		}
	})
}

// A record that does not decode, and an error of the caller, end the reading with that error.
func TestLedgerErrors(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		ten := r.tenure(0, 1)
		r.mustPublish(p, 0, r.commits(ten, 0, 1))
		mine := errors.New("mine")
		if _, err := p.Ledger().Settled(r.ctx(), ten.Partition, 0, func(int64, commit.Entry) error { return mine }); !errors.Is(err, mine) {
			t.Errorf("got %v, want the caller's error", err)
		}
		producer := r.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err := producer.ProduceSync(r.ctx(), &kgo.Record{Topic: r.topics.Ledger(), Partition: 1, Value: []byte{0xff, 1, 2}}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		_, err := p.Ledger().Settled(r.ctx(), stream.Partition{Topic: r.raw, Number: 1}, 0, func(int64, commit.Entry) error { return nil })
		if err == nil || commit.ClassOf(err) != commit.Permanent {
			t.Errorf("got %v, want permanent", err)
		}
	})
}

// H11: when the ledger was deleted past an unknown transaction's record nobody can tell any more: the commits are fenced,
// for only a newer owner deletes there.
func TestUnknownEndPassed(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		ten := r.tenure(0, 1)
		r.net.mu.Lock()
		r.net.cut = func(k kmsg.Key) cutting {
			if k != kmsg.EndTxn {
				return pass
			}
			// Before the publisher hears anything a newer owner has settled all and deleted below its floor.
			if err := r.publisherB().InitFormers(r.ctx(), r.raw, []commit.Former{{Instance: "a", Lanes: 3}}); err != nil {
				t.Error(err)
			}
			var os kadm.Offsets
			os.AddOffset(r.topics.Ledger(), 0, -1, -1)
			if _, err := kadm.NewClient(r.admin).DeleteRecords(r.ctx(), os); err != nil {
				t.Error(err)
			}
			return loseRequest
		}
		r.net.mu.Unlock()
		out, err := p.Publish(r.ctx(), 0, r.commits(ten, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		wantClasses(t, out, map[int]commit.Class{0: commit.Fenced})
	})
}
