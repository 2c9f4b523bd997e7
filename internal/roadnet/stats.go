package roadnet

// ImportStats counts what an import took and what it left, and why.
type ImportStats struct {
	Ways          int // ways for cars
	Nodes         int // OSM nodes in their geometry
	DuplicateWays int // ways whose id came twice; the first counts
	ShortWays     int // ways with fewer than two usable nodes
	OutsideWays   int // ways outside the box asked for
	MissingNodes  int // nodes that ways name and the file lacks: the way is cut there
	BadNodes      int // nodes off the globe, taken as missing
	BadSegments   int // segments of an impossible length: the way is cut there
	Repeated      int // stretches that a way goes over twice; the second is dropped
	ClosedNodes   int // bollards and the like, where a way is cut
	GatedNodes    int // gates: passable at a cost

	Restrictions        int // turn restrictions that apply
	RestrictionsIgnored int // for other vehicles, conditional, or of an unknown kind
	RestrictionsBroken  int // that name members that are absent or do not meet
	RestrictionsViaWay  int // over ways in place of a node: not yet applied
	Bans                int // pairs of edges that the restrictions forbid
}
