package roadnet

// ImportStats counts what an import took and what it left, and why.
type ImportStats struct {
	Ways          int // ways for the vehicles of the graph
	Nodes         int // OSM nodes in their geometry
	DuplicateWays int // ways whose id came twice; the first counts
	ShortWays     int // ways with fewer than two usable nodes
	OutsideWays   int // ways outside the box asked for
	MissingNodes  int // nodes that ways name and the file lacks: the way is cut there
	BadNodes      int // nodes off the globe, taken as missing
	BadSegments   int // segments of an impossible length: the way is cut there
	Repeated      int // stretches that a way goes over twice; the second is dropped
	ClosedNodes   int // bollards and the like, closed to a class of vehicles at least
	GatedNodes    int // gates: passable at a cost

	Restrictions        int // turn restrictions that apply
	RestrictionsIgnored int // for other vehicles, conditional, or of an unknown kind
	RestrictionsBroken  int // that name members that are absent or do not meet
	RestrictionsViaWay  int // of those that apply: over ways in place of a node
	Bans                int // pairs of edges that the restrictions forbid
	BannedPaths         int // longer runs of edges that they forbid
	States              int // of the automaton that follows those runs
}
