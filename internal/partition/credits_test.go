package partition

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A8, I15: partitions that ask, wait, give back and leave at the same time never pass a bound, and leave nothing behind.
func TestCreditsTogether(t *testing.T) {
	cfg := CreditsConfig{Global: Bound{Jobs: 6, Bytes: 60}, Region: Bound{Jobs: 3, Bytes: 30}}
	c := NewCredits(cfg)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			s := c.Join(func() {})
			var mine []*credit
			for range 2000 {
				if len(mine) < 3 {
					cr, _ := s.ask(fmt.Sprintf("r%d", rng.IntN(3)), int64(1+rng.IntN(12)), &key{})
					mine = append(mine, cr)
				} else {
					s.take()
					i := rng.IntN(len(mine))
					s.giveBack(mine[i])
					s.giveBack(mine[i]) // twice is once
					mine = append(mine[:i], mine[i+1:]...)
				}
				for _, u := range c.Usage() {
					b := cfg.Region
					if u.Region == "" {
						b = cfg.Global
					}
					if u.Jobs < 0 || u.Jobs > b.Jobs || u.Bytes < 0 || u.Bytes > b.Bytes {
						t.Errorf("%+v is not within %+v", u, b)
						return
					}
				}
			}
			s.Leave()
			s.Leave()
		})
	}
	wg.Wait()
	for _, u := range c.Usage() {
		if u.Jobs != 0 || u.Bytes != 0 || u.Waiting != 0 {
			t.Errorf("left behind: %+v", u)
		}
	}
}

// A7, A8: a new catalog's bounds hold at once for what waits; what is in flight stays.
func TestCreditsConfigure(t *testing.T) {
	c := NewCredits(CreditsConfig{Global: Bound{10, 100}, Region: Bound{2, 100}, Own: map[string]Bound{"n": {Jobs: 1}}})
	woken := 0
	s := c.Join(func() { woken++ })
	for i := range 3 {
		if _, ok := s.ask("n", 1, &key{}); ok != (i == 0) {
			t.Fatalf("job %d is admitted: %t", i, ok)
		}
	}
	c.Configure(CreditsConfig{Global: Bound{10, 100}, Region: Bound{2, 100}})
	if got := len(s.take()); woken != 1 || got != 1 {
		t.Errorf("woken %d times for %d jobs, want once for one", woken, got)
	}
	want := []Usage{{Jobs: 2, Bytes: 2, Waiting: 1, Held: 2}, {Region: "n", Jobs: 2, Bytes: 2, Waiting: 1, Held: 2}}
	if d := cmp.Diff(want, c.Usage()); d != "" {
		t.Error(d)
	}
}
