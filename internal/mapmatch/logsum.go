package mapmatch

// Probabilities are kept as costs, 1/1000 nat each, so that every replica computes the same ones: the processors' exponentials differ
// in their last bits.

// maxApart is how much dearer a cost may be than another for their sum to differ from the cheaper one.
const maxApart = 8 * nat

// logSum says, for each difference of two costs, by how much their sum is cheaper than the cheaper one.
type logSum []int32

func newLogSum() logSum {
	out := make(logSum, maxApart)
	x := 1.0
	for d := range out {
		// ln(1+x) = 2 (z + z^3/3 + z^5/5 ...) where z = x/(2+x); each product is rounded on its own, so that none is fused.
		z := x / (2 + x)
		sq := float64(z * z)
		sum := 0.0
		for k := 21.0; k >= 1; k -= 2 {
			sum = 1/k + float64(sum*sq)
		}
		out[d] = int32(float64(2*z*sum)*nat + 0.5)
		x = float64(x * 0.99900049983337499) // exp(-1/1000)
	}
	return out
}

// newExp returns, for each cost, its probability in thousandths of a thousandth.
func newExp() []int32 {
	out := make([]int32, 15*nat)
	x := 1e6
	for d := range out {
		out[d] = int32(x + 0.5)
		x = float64(x * 0.99900049983337499)
	}
	return out
}

// add is the cost of the sum of two probabilities.
func (t logSum) add(a, b int32) int32 {
	if b < a {
		a, b = b, a
	}
	if d := b - a; d < maxApart {
		return a - t[d]
	}
	return a
}

// millionths is a cost's probability.
func (m *Matcher) millionths(cost int32) int64 {
	if cost < 0 {
		cost = 0
	}
	if int(cost) >= len(m.exp) {
		return 0
	}
	return int64(m.exp[cost])
}
