package roadnet

// NodeIndex and EdgeIndex are dense and mean something only together with the graph's hash.
type (
	NodeIndex int32
	EdgeIndex int32
)

// NoEdge is the absent edge.
const NoEdge EdgeIndex = -1

// Class is the road class, by OSM's highway tag, most important first.
type Class uint8

// Flags are an edge's properties.
type Flags uint16

// The flags of edges.
const (
	FlagOneway Flags = 1 << iota
	FlagRoundabout
	FlagTunnel
	FlagBridge
	FlagFerry
	FlagPrivate // access private, destination, delivery, a gate: passable in matching, at a cost
	FlagLink    // slip road
	FlagService
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
	SpeedKMH  uint8     // free flow: tagged or by class
	Lanes     uint8     // of this direction, 0 unknown
	Layer     int8
	Class     Class
	Flags     Flags
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
)

// Graph is an immutable directed road network; safe for concurrent use.
//
// To be built by roadnet. The methods that the matcher, the simulator and the outputs use:
//
//	Hash() [32]byte                         sha256 over format, profile and content
//	Edges() int, Nodes() int
//	Edge(EdgeIndex) Edge
//	Key(EdgeIndex) EdgeKey
//	Shape(dst []ShapePoint, e EdgeIndex) []ShapePoint   in driving direction, appended to dst
//	At(e EdgeIndex, alongCM int32) (Point, bearing float64)
//	Out(NodeIndex) []EdgeIndex              edges that leave the node, ascending
//	Turn(from, to EdgeIndex) Turn           to must leave from's end node
//	NodePoint(NodeIndex) Point, NodeID(NodeIndex) int64 (OSM id)
//	Bounds() (southWest, northEast Point)
//	Near(dst []Hit, p Point, radiusM float64) []Hit     nearest point of every directed edge within the radius,
//	                                        ordered by (distance, edge); appended to dst
//
// and a Search, one a goroutine, without allocation in steady state:
//
//	NewSearch(g *Graph) *Search
//	(*Search) From(start EdgeIndex, limitCM int32, p Penalties)  bounded edge-based one-to-many from the END of start
//	(*Search) To(target EdgeIndex) (lengthCM, costCM int32, ok bool)  to the START of target; cost = length + penalties
//	(*Search) Path(dst []EdgeIndex, target EdgeIndex) []EdgeIndex      edges strictly between start and target, in order
//	                                        Ties are broken by (cost, edge index), so that results do not depend on history.
type Graph struct{}

// Penalties are the prices, in centimetres, that a search adds to length.
type Penalties struct{ UTurnCM, BanCM, PrivateCM int32 }
