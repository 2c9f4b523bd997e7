package offline

import (
	"math"

	"milepost/internal/fleet"
	"milepost/internal/roadnet"
)

// Locator finds the edges that places and spans lie on, and the two neighbouring OSM nodes between which a place lies. It has scratch
// memory: one a goroutine.
type Locator struct {
	graphs []*roadnet.Graph
	view   roadnet.View
	hits   []roadnet.Hit
	shape  []roadnet.ShapePoint
}

// NewLocator looks in the graphs, for a class of vehicles.
func NewLocator(v roadnet.Vehicle, graphs ...*roadnet.Graph) *Locator {
	return &Locator{graphs: graphs, view: roadnet.View{Vehicle: v, Contraflow: true}}
}

// found is an edge with its graph; nil: none.
type found struct {
	graph *roadnet.Graph
	edge  roadnet.EdgeIndex
}

// nearM is how far off its edge a place may be: it was rounded.
const nearM = 2

// Locate gives the place's neighbouring nodes in driving order and the metres from the first. Zeros: the place is on no edge of these graphs.
func (l *Locator) Locate(p *fleet.Place) (from, to int64, offsetM float64) {
	at := l.near(roadnet.EdgeKey{Way: p.Way, From: p.From, To: p.To}, roadnet.Point{Lon: p.Lon, Lat: p.Lat}, p.OffsetM)
	if at.graph == nil {
		return 0, 0, 0
	}
	l.shape = at.graph.Shape(l.shape[:0], at.edge)
	along := int32(math.Round(p.OffsetM * 100))
	i := 0
	for i+2 < len(l.shape) && l.shape[i+1].AlongCM <= along {
		i++
	}
	return l.shape[i].Node, l.shape[i+1].Node, max(0, p.OffsetM-float64(l.shape[i].AlongCM)/100)
}

// Road is what is known of the edge that a span lies on.
type Road struct {
	roadnet.Edge
	LengthM    float64
	FreeFlow   uint8   // km/h, for the class of vehicles
	Begin, End float64 // bearings at the span's ends, in driving direction
}

// Road gives the edge that a span lies on; false: it is on none of these graphs.
func (l *Locator) Road(s *fleet.Span) (Road, bool) {
	at := l.span(s)
	if at.graph == nil {
		return Road{}, false
	}
	r := Road{Edge: at.graph.Edge(at.edge), FreeFlow: at.graph.Speed(at.edge, l.view.Vehicle)}
	r.LengthM = float64(r.LengthCM) / 100
	// A hand's breadth inside, since a bend belongs to the segment before it.
	_, r.Begin = at.graph.At(at.edge, int32(math.Ceil(min(s.ToM, s.FromM+0.1)*100)))
	_, r.End = at.graph.At(at.edge, int32(math.Floor(s.ToM*100)))
	return r, true
}

// span finds a span's edge by the middle of its longest piece, where arcs of one key are apart.
func (l *Locator) span(s *fleet.Span) found {
	key := roadnet.EdgeKey{Way: s.Way, From: s.From, To: s.To}
	switch len(s.Geometry) {
	case 0:
		return found{}
	case 1:
		return l.near(key, roadnet.Point{Lon: s.Geometry[0][0], Lat: s.Geometry[0][1]}, s.FromM)
	}
	best, longest := 1, -1.0
	for i := 1; i < len(s.Geometry); i++ {
		if d := math.Hypot(s.Geometry[i][0]-s.Geometry[i-1][0], s.Geometry[i][1]-s.Geometry[i-1][1]); d > longest {
			best, longest = i, d
		}
	}
	a, b := s.Geometry[best-1], s.Geometry[best]
	if math.Abs(a[0]-b[0]) > 180 { // across the antimeridian
		b = a
	}
	return l.near(key, roadnet.Point{Lon: (a[0] + b[0]) / 2, Lat: (a[1] + b[1]) / 2}, math.NaN())
}

// near finds the edge of a key that is nearest to a point; of those that share key and point, two arcs of one way between the same two
// nodes, the one on which the point is at the offset, where that is known.
func (l *Locator) near(key roadnet.EdgeKey, p roadnet.Point, offsetM float64) found {
	var best found
	least := math.Inf(1)
	for _, g := range l.graphs {
		l.hits = g.NearFor(l.hits[:0], p, nearM, l.view)
		for _, h := range l.hits {
			if g.Key(h.Edge) != key {
				continue
			}
			d := h.DistM
			if !math.IsNaN(offsetM) {
				at, _ := g.At(h.Edge, int32(math.Round(offsetM*100)))
				d = 111_195 * math.Hypot((at.Lon-p.Lon)*math.Cos(p.Lat*math.Pi/180), at.Lat-p.Lat)
			}
			if d < least {
				best, least = found{g, h.Edge}, d
			}
		}
	}
	return best
}

// LengthM is the length of the edge that a place lies on; 0: it is on none of these graphs.
func (l *Locator) LengthM(p *fleet.Place) float64 {
	at := l.near(roadnet.EdgeKey{Way: p.Way, From: p.From, To: p.To}, roadnet.Point{Lon: p.Lon, Lat: p.Lat}, p.OffsetM)
	if at.graph == nil {
		return 0
	}
	return float64(at.graph.Edge(at.edge).LengthCM) / 100
}
