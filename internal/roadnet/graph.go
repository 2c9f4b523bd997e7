package roadnet

// NodeIndex is the dense number of a junction. It means something only together with the graph's hash.
type NodeIndex int32

// EdgeIndex is the dense number of a directed edge. It means something only together with the graph's hash.
type EdgeIndex int32

// NoEdge is the absent edge.
const NoEdge EdgeIndex = -1

// Class is the road class, by OSM's highway tag, most important first.
type Class uint8

// Flags are an edge's properties.
type Flags uint16

// The flags of edges. Those of access speak of the first class of vehicles that may use the way: of a car where it may.
const (
	FlagOneway Flags = 1 << iota
	FlagRoundabout
	FlagTunnel
	FlagBridge
	FlagFerry
	FlagPrivate // access private, destination, delivery, a gate: passable in matching, at a cost
	FlagLink    // slip road
	FlagService
	FlagContraflow // against a one-way street
	FlagPosted     // SpeedKMH is a posted limit, or that of a ferry's timetable
)

// Point is a position in degrees.
type Point struct{ Lon, Lat float64 }

// Edge is one directed stretch of one OSM way between two junction nodes. It never spans two ways. Both
// directions of a two-way road are two edges that share one geometry.
type Edge struct {
	From, To  NodeIndex
	Way       int64     // OSM way id
	LengthCM  int32     // along the geometry
	Twin      EdgeIndex // the opposite direction, NoEdge on a one-way
	Component int32     // of the weakly connected piece; 0 is the biggest
	SpeedKMH  uint8     // free flow: tagged or by class; see Graph.Speed for other classes than the first
	Lanes     uint8     // of this direction, 0 unknown
	Layer     int8
	Class     Class
	Flags     Flags
	Access    Vehicles // that may use it in this direction
	Private   Vehicles // for which that is a matter of having business there
	Contra    Vehicles // that may use the road, but not in this direction
}

// EdgeKey is the stable name of an edge in outputs: it means the same in every build of the same map.
type EdgeKey struct {
	Way      int64
	From, To int64 // OSM node ids of the first and last node
}

// ShapePoint is one OSM node of an edge's geometry.
type ShapePoint struct {
	Node    int64 // OSM node id
	Point   Point
	AlongCM int32 // distance from the edge's start, along the geometry
}

// Hit is the nearest point of one directed edge to a position.
type Hit struct {
	Edge    EdgeIndex
	AlongCM int32   // from the edge's start
	DistM   float64 // from the position
	Point   Point   // snapped
	Bearing float64 // tangent of the edge at the point, degrees clockwise from north, [0,360)
}

// Turn says what a turn rule makes of going from one edge to the next.
type Turn uint8

// The kinds of turns.
const (
	TurnFree   Turn = iota
	TurnBanned      // by a restriction: costed in matching, never a wall (M28)
	TurnU           // onto the same road's other direction
	TurnClosed      // by a barrier that only other classes of vehicles pass
)

// Graph is an immutable directed road network; safe for concurrent use.
type Graph struct {
	hash       [32]byte
	stats      ImportStats
	vehicles   Vehicles
	contraflow bool
	profile    string // digest of the profiles
	pace       []pace // of each class

	nodeID    []int64
	nodePlace []vertex

	edges []Edge
	shape []int32 // of each edge: its geometry's index, shifted left by one; the low bit is set when driven against it

	geomOff    []int32     // of each geometry: its first vertex; one more entry at the end
	geomEdge   []EdgeIndex // of each geometry: the edge along it, or the one against it where there is no other
	vertices   []vertex
	vertexNode []int64

	outOff []int32 // of each node: its first entry in out; one more entry at the end
	out    []EdgeIndex

	turns  turns
	strong [numVehicles][]int32 // of each edge, for the classes of the graph

	grid grid
}

// Hash is the sha256 over the format's version, the profile and the content.
func (g *Graph) Hash() [32]byte { return g.hash }

// Stats says what the import took and left.
func (g *Graph) Stats() ImportStats { return g.stats }

// Edges is the number of directed edges.
func (g *Graph) Edges() int { return len(g.edges) }

// Nodes is the number of junction nodes.
func (g *Graph) Nodes() int { return len(g.nodeID) }

// Edge returns an edge's properties.
func (g *Graph) Edge(e EdgeIndex) Edge { return g.edges[e] }

// Key returns an edge's stable name.
func (g *Graph) Key(e EdgeIndex) EdgeKey {
	first, last, back := g.geometry(e)
	k := EdgeKey{Way: g.edges[e].Way, From: g.vertexNode[first], To: g.vertexNode[last]}
	if back {
		k.From, k.To = k.To, k.From
	}
	return k
}

// geometry returns the first and the last vertex of an edge's geometry and whether the edge is driven against it.
func (g *Graph) geometry(e EdgeIndex) (first, last int32, back bool) {
	s := g.shape[e]
	return g.geomOff[s>>1], g.geomOff[s>>1+1] - 1, s&1 != 0
}

// Shape appends the edge's OSM nodes to dst, in driving direction.
func (g *Graph) Shape(dst []ShapePoint, e EdgeIndex) []ShapePoint {
	first, last, back := g.geometry(e)
	length := g.edges[e].LengthCM
	for i := first; i <= last; i++ {
		j, along := i, g.vertices[i].along
		if back {
			j = first + last - i
			along = length - g.vertices[j].along
		}
		dst = append(dst, ShapePoint{Node: g.vertexNode[j], Point: g.vertices[j].point(), AlongCM: along})
	}
	return dst
}

// At returns the place on an edge and the edge's bearing there. Offsets before the start and past the end are taken as the ends.
func (g *Graph) At(e EdgeIndex, alongCM int32) (p Point, bearing float64) {
	first, last, back := g.geometry(e)
	length := g.edges[e].LengthCM
	alongCM = min(max(alongCM, 0), length)
	if back {
		alongCM = length - alongCM
	}
	// The segment is the one that ends at or after the offset, so that a vertex belongs to the segment before it in the geometry.
	lo, hi := first+1, last
	for lo < hi {
		mid := (lo + hi) / 2
		if g.vertices[mid].along < alongCM {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	a, b := g.vertices[lo-1], g.vertices[lo]
	t := 0.0
	if b.along > a.along {
		t = float64(alongCM-a.along) / float64(b.along-a.along)
	}
	return lerp(a, b, t), g.tangent(lo-1, first, last, back)
}

// tangent is the bearing of the segment that begins at vertex i; that of the nearest segment with a length when it has none.
func (g *Graph) tangent(i, first, last int32, back bool) float64 {
	for d := int32(0); d <= last-first; d++ {
		for _, j := range [2]int32{i - d, i + d} {
			if j < first || j >= last {
				continue
			}
			if deg, ok := bearingOf(g.vertices[j], g.vertices[j+1]); ok {
				if back {
					deg = turnInto360(deg + 180)
				}
				return deg
			}
		}
	}
	return 0
}

// Out returns the edges that leave a node, ascending. The caller must not change it.
func (g *Graph) Out(n NodeIndex) []EdgeIndex { return g.out[g.outOff[n]:g.outOff[n+1]] }

// NodePoint returns a node's place.
func (g *Graph) NodePoint(n NodeIndex) Point { return g.nodePlace[n].point() }

// NodeID returns a node's OSM id. Where a barrier closes a node, each road that ends there has a node of its own, with the same id.
func (g *Graph) NodeID(n NodeIndex) int64 { return g.nodeID[n] }

// Bounds returns the corners of the box around all geometry. Where it crosses the antimeridian, the west is greater than the east.
func (g *Graph) Bounds() (southWest, northEast Point) {
	if len(g.vertices) == 0 {
		return Point{}, Point{}
	}
	var lat, lon, pacific span // pacific: longitudes counted from 0 to 360
	for i, v := range g.vertices {
		p := v.point()
		lat.add(i, p.Lat)
		lon.add(i, p.Lon)
		pacific.add(i, positive(p.Lon))
	}
	west, east := lon.lo, lon.hi
	if pacific.hi-pacific.lo < east-west {
		west, east = wrapDeg(pacific.lo), wrapDeg(pacific.hi)
	}
	return Point{Lon: west, Lat: lat.lo}, Point{Lon: east, Lat: lat.hi}
}

type span struct{ lo, hi float64 }

func (s *span) add(i int, v float64) {
	if i == 0 {
		s.lo, s.hi = v, v
		return
	}
	s.lo, s.hi = min(s.lo, v), max(s.hi, v)
}

func positive(lon float64) float64 {
	if lon < 0 {
		return lon + 360
	}
	return lon
}

// Penalties are the prices, in centimetres, that a search adds to length: for turning back, for a banned turn, for entering a private
// road, and for entering a one-way street against its direction (in views with contraflow).
type Penalties struct {
	UTurnCM, BanCM, PrivateCM, ContraflowCM int32
	// SlowPM is the price of a road without speed, per mille of its length; one of 90 km/h and more has none. In between it is in proportion,
	// so that of two ways that are equally long the quicker one is taken.
	SlowPM int32
	// ContraflowPM is the price of going on against a one-way street, per mille of the way.
	ContraflowPM int32
}
