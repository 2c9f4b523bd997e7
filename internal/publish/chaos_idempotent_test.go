package publish

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// H13, A15: while connections are cut at every produce request, what Publish calls published is visible at least once and in the ledger, every
// copy with the same bytes, and the first copies of each key's revisions in their order.
func TestIdempotentChaos(t *testing.T) {
	t.Parallel()
	onBrokersIdempotent(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		dice := rand.New(rand.NewPCG(seed, 1))
		r.net.mu.Lock()
		r.net.cut = func(k kmsg.Key) cutting {
			if k != kmsg.Produce && k != kmsg.InitProducerID {
				return pass
			}
			switch dice.IntN(10) {
			case 0:
				return loseRequest
			case 1:
				return loseAnswer
			}
			return pass
		}
		r.net.mu.Unlock()
		const rounds, keys = 15, 4
		var mu sync.Mutex
		wanted := map[string]commit.Output{}
		order := map[string][]string{} // ids by key, as they were published
		var lanes sync.WaitGroup
		for lane := range p.Lanes() {
			ten := r.tenure(int32(lane), 1)
			lanes.Go(func() {
				for i := range int64(rounds) {
					batch := r.commits(ten, keys*i, keys)
					for n, c := range batch {
						// The same keys again and again: their order shows.
						o := c.Outputs[0]
						o.Key = []byte{byte(lane), byte(n)}
						batch[n] = with(c, o)
					}
					out, err := p.Publish(r.ctx(), lane, batch)
					if err != nil || len(out.Failed) > 0 {
						t.Errorf("lane %d: %v, failed %v", lane, err, out.Failed)
						return
					}
					mu.Lock()
					for _, c := range batch {
						o := c.Outputs[0]
						wanted[idOf(o)] = o
						order[string(o.Key)] = append(order[string(o.Key)], idOf(o))
					}
					mu.Unlock()
				}
			})
		}
		lanes.Wait()
		r.net.mu.Lock()
		r.net.cut = nil
		r.net.mu.Unlock()

		copies := map[string]int{}
		for _, seen := range r.seen(r.topics.Matched()) {
			id := idOf(seen.Output)
			want, ok := wanted[id]
			if !ok || commit.OutputsDigest([]commit.Output{want}) != commit.OutputsDigest([]commit.Output{seen.Output}) {
				t.Errorf("%s: known %v, or with other bytes", id, ok)
			}
			if copies[id]++; copies[id] > 1 {
				continue // what a reader drops
			}
			if key := string(seen.Key); len(order[key]) == 0 || order[key][0] != id {
				t.Errorf("the first copy of %s is out of order", id)
			} else {
				order[key] = order[key][1:]
			}
		}
		if len(copies) != p.Lanes()*rounds*keys {
			t.Errorf("%d outputs visible, want %d", len(copies), p.Lanes()*rounds*keys)
		}
		for lane := range p.Lanes() {
			entered := map[int64]bool{}
			entries, _ := r.entries(p, int32(lane), 0)
			for _, e := range entries {
				entered[e.Offsets[0]] = true
			}
			if len(entered) != rounds*keys {
				t.Errorf("partition %d: %d observations in the ledger, want %d", lane, len(entered), rounds*keys)
			}
		}
	})
}

func idOf(o commit.Output) string {
	for _, h := range o.Headers {
		if h.Key == stream.HeaderID {
			return string(h.Value)
		}
	}
	return ""
}
