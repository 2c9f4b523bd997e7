package mapmatch

import (
	"math"
	"slices"
	"time"

	"milepost/internal/roadnet"
)

// leg is a stretch of one edge, in cm.
type leg struct {
	edge     roadnet.EdgeIndex
	from, to int32
	turn     roadnet.Turn // by which the edge was entered
	bridged  bool         // no observation on it
}

// hop appends the legs that lead from a candidate of one layer to one of the next; the same ones that link priced.
func (m *Matcher) hop(dst []leg, from *layer, p cand, to *layer, c cand) []leg {
	st := m.lim.step(from, to.s)
	switch m.best(&st, &p, c.edge, c.along) {
	case ahead:
		return append(dst, leg{edge: p.edge, from: p.along, to: c.along})
	case about:
		length := m.length(p.edge)
		turn := max(p.along, length-c.along)
		return append(dst,
			leg{edge: p.edge, from: p.along, to: turn},
			leg{edge: c.edge, from: length - turn, to: c.along, turn: roadnet.TurnU})
	case routed:
		dst = append(dst, leg{edge: p.edge, from: p.along, to: m.length(p.edge)})
		m.edges = m.search.Path(m.edges[:0], c.edge)
		var turn roadnet.Turn
		at := p.at
		for _, e := range m.edges {
			at, turn = m.g.Follow(at, e, m.view.Vehicle)
			dst = append(dst, leg{edge: e, to: m.length(e), turn: turn, bridged: true})
		}
		_, turn = m.g.Follow(at, c.edge, m.view.Vehicle)
		return append(dst, leg{edge: c.edge, to: c.along, turn: turn})
	case noWay: // only in a state that was forged behind a valid checksum: nothing driven
	}
	return append(dst, leg{edge: c.edge, from: c.along, to: c.along})
}

// restLeg is the leg over which the newest layer's skips have moved on from its best candidate.
func (m *Matcher) restLeg() leg {
	w := &m.w
	c := w.newest().c[m.pick()]
	g := leg{edge: c.edge, from: c.along, to: c.along}
	if w.newest().skips > 0 {
		g.to = min(c.along+w.skips[len(w.skips)-1].dist, max(m.length(c.edge), c.along))
	}
	return g
}

// rest puts out the place of a sighting that was skipped, and keeps what waits within bounds. Before it came, the newest layer's candidate
// was told to be was.
func (m *Matcher) rest(r *Result, was int8) {
	w := &m.w
	n := len(w.layers) - 1
	j := n // the last layer of what was told that still counts
	if is := m.pick(); is != was {
		m.before, m.now = w.chain(m.before, n, was), w.chain(m.now, n, is)
		for j >= 0 && m.before[j] != m.now[j] {
			j--
		}
	}
	c, cut := m.forced(n), false
	if len(w.skips) > maxSkips {
		c = n
	}
	if c >= 0 {
		m.now = w.chain(m.now, n, m.pick())
		told := m.now[c]
		m.now = w.chain(m.now, n, 0)
		cut = !w.layers[c].bound || m.now[c] != told
		m.conclude(r, c)
		j, n = max(j-c, 0), n-c
	}
	// A path that was put out may lead past layers: it is put out again from where it began, or from where finality cut it.
	for j > 0 && (cut || !w.layers[j].bound) {
		j--
	}
	if n == 0 && w.final && (len(w.skips) > maxSkips || w.last-w.skips[0].at > m.lim.window) {
		m.land(r)
	}
	m.replace(r, j)
	m.provide(r, j, n)
}

// replace says from where on a result replaces what was told: after layer j, or all of the stretch where j is -1.
func (m *Matcher) replace(r *Result, j int) {
	if j < 0 {
		r.Supersedes = m.w.layers[0].s.seq
	} else {
		r.Supersedes = m.w.layers[j].s.seq + 1
	}
}

// land makes the skips final where the anchor is: a vehicle that stands must not grow its state.
func (m *Matcher) land(r *Result) {
	w := &m.w
	a := w.newest()
	c := a.c[0]
	for _, sk := range w.skips {
		r.FinalPoints = append(r.FinalPoints, m.position(sk.seq, sk.at, c.edge, c.along, 1, Standing))
		a.s.seq, a.stood = sk.seq, sk.at
	}
	w.skips, a.skips = w.skips[:0], 0
}

// advance puts out what a new layer changed: what became final, then the newest best place with the way to it.
func (m *Matcher) advance(r *Result) {
	w := &m.w
	n := len(w.layers) - 1
	m.now = w.chain(m.now, n, m.pick())
	// j is the last layer of the old best chain that the new one shares, then the last at which a stretch that was put out ends.
	j := min(len(m.before)-1, n-1)
	for j > 0 && (m.before[j] != m.now[j] || !w.layers[j].bound) {
		j--
	}
	if m.before[j] != m.now[j] {
		j = -1 // not even the first place is the same
	}
	for i := max(j+1, 1); i < n; i++ {
		w.layers[i].bound = false
	}
	c := m.finality(n)
	if c >= 0 {
		// What may not wait becomes final on the cheapest chain, whatever was told of the newest places.
		at := m.now[c]
		m.now = w.chain(m.now, n, 0)
		if j < c || !w.layers[c].bound || m.now[c] != at {
			j = c
		}
		m.conclude(r, c)
		j, n = j-c, n-c
	} else {
		w.prune(-1, m.logsum)
		m.now = w.chain(m.now, n, m.pick())
	}
	m.replace(r, j)
	m.provide(r, j, n)
}

// provide sets the provisional place to the best of layer n, the newest, and the path to the way from layer j.
func (m *Matcher) provide(r *Result, j, n int) {
	w := &m.w
	m.now = w.chain(m.now, n, m.pick())
	for i := max(j, 0); i < n; i++ {
		from, to := &w.layers[i], &w.layers[i+1]
		m.legs = m.hop(m.legs[:0], from, from.c[m.now[i]], to, to.c[m.now[i+1]])
		r.Path = m.spans(r.Path, m.legs, from.stood, to.s.at)
		to.bound = i+1 == n && to.skips == 0 // with skips the path ends at the last of them
	}
	g := m.restLeg()
	m.legs = append(m.legs[:0], g)
	r.Path = m.spans(r.Path, m.legs, w.newest().stood, w.last)
	r.Provisional, m.spare = m.spare, nil
	if r.Provisional == nil {
		r.Provisional = new(Position)
	}
	*r.Provisional = m.position(w.seq-1, w.last, g.edge, g.to, m.share(), r.Disposition)
}

// finality is the newest layer that has become final, -1 for none: the newest that all living candidates of the newest two layers come
// from (the newest may yet be an outlier), or the oldest ones when too many wait or wait too long.
func (m *Matcher) finality(n int) int {
	w := &m.w
	first := 0
	if w.final {
		first = 1
	}
	c := m.converged(n)
	if c < first {
		c = -1
	}
	return max(c, m.forced(n))
}

// forced is the newest layer that may not wait any longer for finality, -1 for none: too many wait, or it waits too long.
func (m *Matcher) forced(n int) int {
	w := &m.w
	first := 0
	if w.final {
		first = 1
	}
	c := n - m.lim.layers
	for i := first; i <= n && w.last-w.layers[i].s.at > m.lim.window; i++ {
		c = max(c, i)
	}
	if c < first {
		return -1
	}
	return c
}

// converged is the newest layer before n at which all candidates of layer n-1 have one ancestor.
func (m *Matcher) converged(n int) int {
	w := &m.w
	if n == 0 {
		return -1
	}
	live := uint32(1)<<w.layers[n-1].n - 1
	for i := n - 1; i >= 0; i-- {
		if live&(live-1) == 0 {
			return i
		}
		var up uint32
		for j := range w.layers[i].n {
			if live&(1<<j) != 0 && i > 0 {
				up |= 1 << w.layers[i].c[j].back
			}
		}
		live = up
	}
	return -1
}

// conclude makes the layers up to c final on the chain m.now, and c the anchor.
func (m *Matcher) conclude(r *Result, c int) {
	w := &m.w
	shares := m.shares()
	if !w.final {
		l := &w.layers[0]
		p := l.c[m.now[0]]
		r.FinalPoints = append(r.FinalPoints, m.position(l.s.seq, l.s.at, p.edge, p.along, shares[0], Matched))
	}
	skips := w.skips
	for i := range c {
		from, to := &w.layers[i], &w.layers[i+1]
		end := to.c[m.now[i+1]]
		m.legs = m.hop(m.legs[:0], from, from.c[m.now[i]], to, end)
		r.FinalPath = m.spans(r.FinalPath, m.legs, from.stood, to.s.at)
		m.place(r, skips[:from.skips], from.stood, to.s.at, shares[i+1])
		skips = skips[from.skips:]
		r.FinalPoints = append(r.FinalPoints, m.position(to.s.seq, to.s.at, end.edge, end.along, shares[i+1], Matched))
	}
	anchor := m.now[c]
	w.drop(c)
	w.final = true
	w.layers[0].bound = true
	w.prune(anchor, m.logsum)
}

// finish makes all that is left final.
func (m *Matcher) finish(r *Result) {
	w := &m.w
	if len(w.layers) == 0 {
		return
	}
	n := len(w.layers) - 1
	m.now = w.chain(m.now, n, m.pick())
	share := m.share()
	m.conclude(r, n)
	g := m.restLeg()
	m.legs = append(m.legs[:0], g)
	l := w.newest()
	r.FinalPath = m.spans(r.FinalPath, m.legs, l.stood, l.seen)
	m.place(r, w.skips, l.stood, l.seen, share)
	w.skips, l.skips = w.skips[:0], 0
}

// place puts out a layer's skips along m.legs, which begin at the layer and are driven between two times.
func (m *Matcher) place(r *Result, skips []skip, start, end int64, share float64) {
	total := int64(0)
	for _, g := range m.legs {
		total += int64(max(g.to-g.from, 0))
	}
	for _, sk := range skips {
		left := int64(sk.dist)
		if sk.what == Outlier && sk.at > start {
			left = max(left, total*(sk.at-start)/(end-start))
		}
		left = min(left, total)
		i := 0
		for i < len(m.legs)-1 && left > int64(m.legs[i].to-m.legs[i].from) {
			left -= int64(m.legs[i].to - m.legs[i].from)
			i++
		}
		g := m.legs[i]
		r.FinalPoints = append(r.FinalPoints, m.position(sk.seq, sk.at, g.edge, min(g.from+int32(left), g.to), share, sk.what))
	}
}

// share is the probability of the newest layer's best candidate.
func (m *Matcher) share() float64 {
	n := len(m.w.layers) - 1
	gamma := m.newest()
	return m.chosen(n, m.pick(), &gamma)
}

// newest is the probability of each of the newest layer's candidates, in millionths.
func (m *Matcher) newest() (gamma [maxCands]int64) {
	l := m.w.newest()
	total := int64(0)
	for j := range l.n {
		gamma[j] = m.millionths(l.c[j].sum)
		total += gamma[j]
	}
	for j := range l.n {
		gamma[j] = gamma[j] * 1_000_000 / total
	}
	return gamma
}

// shares are, of each layer, the probability of its candidate on the chain m.now, by the observations before and after: the newest
// layer's probability is led back the ways that it came. Of a place that was reached over several ways a state keeps only the likeliest
// one's share; the rest counts as come from the others as likely as they were then.
func (m *Matcher) shares() [maxLayers + 4]float64 {
	var out [maxLayers + 4]float64
	w := &m.w
	gamma := m.newest()
	for i := len(w.layers) - 1; ; i-- {
		out[i] = m.chosen(i, m.now[i], &gamma)
		if i == 0 {
			return out
		}
		m.lead(&w.layers[i-1], &w.layers[i], &gamma)
	}
}

// lead takes the probabilities of a layer's candidates back to those of the layer before.
func (m *Matcher) lead(from, to *layer, gamma *[maxCands]int64) {
	var before, was [maxCands]int64
	total := m.millionths(from.gone)
	for j := range from.n {
		was[j] = m.millionths(from.c[j].sum)
		total += was[j]
	}
	for j := range to.n {
		c := &to.c[j]
		over := gamma[j] * m.millionths(c.won) / 1_000_000
		before[c.back] += over
		if others := total - was[c.back]; others > 0 {
			for k := range from.n {
				if k != int(c.back) {
					before[k] += (gamma[j] - over) * was[k] / others
				}
			}
		} else {
			before[c.back] += gamma[j] - over
		}
	}
	*gamma = before
}

// chosen is the probability of a candidate of layer i, together with those at the same place: where one edge ends another begins.
func (m *Matcher) chosen(i int, c int8, gamma *[maxCands]int64) float64 {
	l := &m.w.layers[i]
	p := gamma[c]
	a := &l.c[c]
	for j := range l.n {
		if b := &l.c[j]; int8(j) != c && (m.joins(a, b) || m.joins(b, a)) {
			p += gamma[j]
		}
	}
	return float64(min((p+500)/1000, 1000)) / 1000
}

// joins says whether candidate b is at the begin of an edge at whose end a is.
func (m *Matcher) joins(a, b *cand) bool {
	return b.along == 0 && a.along == m.length(a.edge) && m.g.Edge(a.edge).To == m.g.Edge(b.edge).From
}

func (m *Matcher) position(seq, at int64, e roadnet.EdgeIndex, along int32, share float64, d Disposition) Position {
	p, heading := m.g.At(e, along)
	heading = math.Mod(math.Round(heading*10)/10, 360) // the last bits differ between processors
	return Position{
		Seq: seq, Time: moment(at), Key: m.g.Key(e), OffsetM: float64(along) / 100, Snapped: p, Heading: heading,
		Confidence: share, Disposition: d,
	}
}

func moment(at int64) time.Time { return time.UnixMicro(at).UTC() }

// spans appends the legs driven between two times. A leg that goes on where the last span ends lengthens it.
func (m *Matcher) spans(dst []Span, legs []leg, start, end int64) []Span {
	total := int64(0)
	for _, g := range legs {
		total += int64(g.to - g.from)
	}
	done := int64(0)
	for _, g := range legs {
		// A turn at the very place of an observation is a span of no length: the way on from there may be in a later result, which does
		// not know of it any more.
		if g.to < g.from || g.to == g.from && g.turn == roadnet.TurnFree {
			continue
		}
		t0, t1 := end, end // where nothing was driven
		if total > 0 {
			t0 = start + (end-start)*done/total
			done += int64(g.to - g.from)
			t1 = start + (end-start)*done/total
		}
		dst = m.appendSpan(dst, g, t0, t1)
	}
	return dst
}

func (m *Matcher) appendSpan(dst []Span, g leg, start, end int64) []Span {
	key := m.g.Key(g.edge)
	if n := len(dst); n > 0 && dst[n-1].Key == key && g.turn == roadnet.TurnFree && dst[n-1].ToM == float64(g.from)/100 {
		// Made anew rather than lengthened, so that the geometry's last, cut point goes.
		s := &dst[n-1]
		from := int32(math.Round(s.FromM * 100))
		s.ToM, s.End, s.Inferred = float64(g.to)/100, moment(end), s.Inferred && g.bridged
		s.Nodes, s.Geometry = m.draw(s.Nodes[:0], s.Geometry[:0], leg{edge: g.edge, from: from, to: g.to})
		return dst
	}
	s := Span{
		Key: key, FromM: float64(g.from) / 100, ToM: float64(g.to) / 100, Start: moment(start), End: moment(end),
		Inferred: g.bridged, Entered: g.turn, Private: m.g.Edge(g.edge).Private.Has(m.view.Vehicle), Contraflow: m.against(g.edge),
	}
	var used Span // where a caller gives memory again
	if n := len(dst); n < cap(dst) {
		used = dst[:n+1][n]
	}
	s.Nodes, s.Geometry = m.draw(used.Nodes[:0], used.Geometry[:0], g)
	return append(dst, s)
}

// draw appends a leg's nodes, from the last at or before its begin to the first at or after its end, and its line.
func (m *Matcher) draw(nodes []int64, line []roadnet.Point, g leg) ([]int64, []roadnet.Point) {
	m.shape = m.g.Shape(m.shape[:0], g.edge)
	first, last := 0, len(m.shape)-1
	// The edge's own ends stay: nodes may lie on one another, and their pairs belong to whoever drives over the end.
	for g.from > 0 && first+1 < last && m.shape[first+1].AlongCM <= g.from {
		first++
	}
	for g.to < m.shape[len(m.shape)-1].AlongCM && last > first+1 && m.shape[last-1].AlongCM >= g.to {
		last--
	}
	nodes = slices.Grow(nodes, last-first+1)
	line = slices.Grow(line, last-first+1)
	p, _ := m.g.At(g.edge, g.from)
	line = append(line, p)
	for i := first; i <= last; i++ {
		nodes = append(nodes, m.shape[i].Node)
		if along := m.shape[i].AlongCM; along > g.from && along < g.to {
			line = append(line, m.shape[i].Point)
		}
	}
	p, _ = m.g.At(g.edge, g.to)
	return nodes, append(line, p)
}
