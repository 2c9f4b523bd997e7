package offline

import (
	"math"

	"milepost/internal/fleet"
	"milepost/internal/roadnet"
)

// Locator finds the two neighbouring OSM nodes between which a place lies.
type Locator struct {
	g     *roadnet.Graph
	edges map[roadnet.EdgeKey][]roadnet.EdgeIndex
	shape []roadnet.ShapePoint
}

// NewLocator indexes a graph's edges by their keys.
func NewLocator(g *roadnet.Graph) *Locator {
	l := &Locator{g: g, edges: make(map[roadnet.EdgeKey][]roadnet.EdgeIndex, g.Edges())}
	for e := range roadnet.EdgeIndex(g.Edges()) {
		l.edges[g.Key(e)] = append(l.edges[g.Key(e)], e)
	}
	return l
}

// Locate gives the place's neighbouring nodes in driving order and the metres from the first. Zeros: the place is on no edge of this graph.
func (l *Locator) Locate(p *fleet.Place) (from, to int64, offsetM float64) {
	e := l.edge(p)
	if e == roadnet.NoEdge {
		return 0, 0, 0
	}
	l.shape = l.g.Shape(l.shape[:0], e)
	along := int32(math.Round(p.OffsetM * 100))
	i := 0
	for i+2 < len(l.shape) && l.shape[i+1].AlongCM <= along {
		i++
	}
	return l.shape[i].Node, l.shape[i+1].Node, max(0, p.OffsetM-float64(l.shape[i].AlongCM)/100)
}

// edge finds the place's edge; of those that share a key, two arcs of one way between the same two nodes, the one it lies on.
func (l *Locator) edge(p *fleet.Place) roadnet.EdgeIndex {
	best, nearest := roadnet.NoEdge, math.Inf(1)
	for _, e := range l.edges[roadnet.EdgeKey{Way: p.Way, From: p.From, To: p.To}] {
		at, _ := l.g.At(e, min(int32(math.Round(p.OffsetM*100)), l.g.Edge(e).LengthCM))
		if d := math.Hypot(at.Lon-p.Lon, at.Lat-p.Lat); d < nearest {
			best, nearest = e, d
		}
	}
	return best
}
