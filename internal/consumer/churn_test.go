package consumer

import (
	"testing"

	"milepost/internal/stream"
)

// P9, P7: members come and go again and again while records flow. The partitions that stay keep their tenures, whose work goes on: no rebalance
// begins another or aborts anything of theirs; those that move are acquired once each time, and every record is done once and in order.
func TestRebalancesLeaveWhatStaysAlone(t *testing.T) {
	onProtocols(t, 4, func(r *rig) {
		t := r.t
		p := r.start("one")
		r.eventually("running", p.running(4))
		n, moved := 0, 0
		for cycle := range 15 {
			before := map[int32]stream.Epoch{}
			for q := range int32(4) {
				before[q] = r.epoch(q)
				r.produce(q, numbered("k"+string('0'+q), n, 5)...)
			}
			n += 5
			other := r.idler() // takes some, does nothing, and leaves
			r.eventually("two have moved", p.running(2))
			stayed := map[int32]bool{}
			for _, st := range p.Status() {
				stayed[st.Partition.Number] = st.State == StateRunning
			}
			other.Close()
			r.eventually("all are back", p.running(4))
			for q := range int32(4) {
				want := before[q]
				if !stayed[q] {
					want++
					moved++
				}
				if got := r.epoch(q); got != want {
					t.Errorf("cycle %d: partition %d, stayed %v, has epoch %d, want %d", cycle, q, stayed[q], got, want)
				}
			}
		}
		if moved != 2*15 {
			t.Errorf("%d partitions moved, want %d", moved, 2*15)
		}
		r.eventually("all outputs", func() bool { return len(r.broker.Values()) >= 4*n })
		for q := range int32(4) {
			r.exact("k"+string('0'+q), n)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}
