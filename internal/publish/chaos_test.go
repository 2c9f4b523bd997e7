package publish

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
)

// X3 to X6, P20, P24, H11: while connections are cut at every kind of request and another process keeps fencing the lanes, each
// commit that Publish calls published is visible once, and no other.
func TestChaos(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p, b := r.publisher("a"), r.publisherB()
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		dice := rand.New(rand.NewPCG(seed, 1))
		r.net.mu.Lock()
		r.net.cut = func(k kmsg.Key) cutting {
			if !slices.Contains([]kmsg.Key{kmsg.Produce, kmsg.TxnOffsetCommit, kmsg.EndTxn, kmsg.InitProducerID, kmsg.Fetch}, k) {
				return pass
			}
			switch dice.IntN(30) {
			case 0:
				return loseRequest
			case 1:
				return loseAnswer
			}
			return pass
		}
		r.net.mu.Unlock()

		stop, stopped := context.WithCancel(r.ctx())
		var fencing sync.WaitGroup
		fencing.Go(func() {
			for sleep(stop, 20*time.Millisecond) {
				if err := b.InitFormers(stop, r.raw, []commit.Former{{Instance: "a", Lanes: 3}}); err != nil && stop.Err() == nil {
					t.Error(err)
				}
			}
		})
		var mu sync.Mutex
		var published []commit.Commit
		var lanes sync.WaitGroup
		for lane := range p.Lanes() {
			ten := r.tenure(int32(lane), 1)
			lanes.Go(func() {
				for i := range int64(15) {
					batch := r.commits(ten, 10*i, 3)
					out, err := p.Publish(r.ctx(), lane, batch)
					if err != nil {
						t.Error(err)
						return
					}
					if i == 12 {
						ten.Lose(errors.New("revoked"))
					}
					mu.Lock()
					for n, c := range batch {
						if out.Failed[n] == nil {
							published = append(published, c)
						}
					}
					mu.Unlock()
				}
			})
		}
		lanes.Wait()
		stopped()
		fencing.Wait()
		if len(published) != 3*13*3 {
			t.Errorf("%d commits published, want the %d before the tenures ended", len(published), 3*13*3)
		}
		r.wantOnce(r.topics.Matched(), published)
		for lane := range int32(p.Lanes()) {
			if entries, _ := r.entries(p, lane, 0); len(entries) != 13*3 {
				t.Errorf("ledger partition %d has %d entries, want %d", lane, len(entries), 13*3)
			}
		}
	})
}
