// Package roadnet makes a directed road network of OpenStreetMap data, finds edges by place, and finds paths between edges.
//
// It is a core package: no clock, no randomness, no files, no logger, no goroutine. The caller opens the file and hands a reader to
// Import; everything after that is a pure function of the file's roads and the profiles.
//
// # The way of a map
//
//	file ──import.go──▶ pbf.go, xml.go ──objects──▶ Builder ──▶ layout ──▶ Graph ──▶ Near, Search, Router
//	       format by     first the ways and rules,    profiles    cut ways     flat      one index a graph,
//	       content       then the nodes they need     per tag     at junctions arrays    scratch a goroutine
//
// A graph file (file.go, open.go) is those arrays as they lie in memory: WriteTo writes them, Open takes a file's bytes as the graph.
//
// One graph serves several classes of vehicles: profiles.toml says what tags mean to each, each edge says who may use it, and a View picks
// one class's roads out. A graph for cars alone, the default, has no other roads in it, which makes it smaller and its edges longer.
//
// The file is read twice, so that memory is that of the roads and not of the file. The PBF reader is our own: the common library decodes
// in goroutines of its own, where a damaged block ends the process, and allocates what a damaged header asks for. Tests hold it against
// that library.
//
// # Invariants
//
//  1. An edge is a stretch of one OSM way between two junctions. Its geometry keeps every OSM node of the stretch, so that outputs can
//     name each pair of neighbouring nodes.
//  2. A node is a junction when a way ends there, when it comes more than once, in one way or in several, or when a barrier closes it to
//     a class. One that is closed to every class of the graph is cut in two; one that some pass is a wall to the others (TurnClosed).
//  3. EdgeKey is unique within a graph, and means the same in every build of the same roads. Where two stretches of a way would join the
//     same two junctions, one of them gets one more junction; a ring gets two.
//  4. Both directions of a road share one geometry; offsets of the one are the length less the offsets of the other, exactly.
//  5. The graph depends on the objects, not on their order in the file. Equal hashes mean equal graphs, indices included: an EdgeIndex
//     may be kept together with the graph's hash, and nowhere else.
//  6. Lengths are whole centimetres, at least one an edge, computed only with operations that round alike on every machine.
//  7. Near finds every directed edge of its view with a point within the radius, and no other, ordered by (distance, edge).
//  8. Search settles labels in the order of (cost, edge). What it finds does not depend on earlier searches or on the order of questions.
//     Its limit is on length alone: a label past it is skipped, the search goes on (a limit that stops it would hide a near exit behind
//     a motorway that runs on). Of the paths to an edge, the cheapest is kept, even where only a dearer one could go on within the limit.
//     With a goal (Toward) ways that cannot get there within the limit are left out, and nothing else is.
//  9. Turn bans, turning back, private roads and one-way streets (in views with contraflow) are prices in Search, never walls; in Router
//     they are walls.
//  10. Damaged input ends in an error or is counted in ImportStats. Damage to the form of a file (a broken block, a bad number) refuses
//     the whole file, for half a map is worse than none; damage to the map (a missing node, a rule that does not fit) is counted and
//     passed over. A broken only_ rule never closes a junction. Errors and findings name the OSM object.
//  11. A restriction over ways bans the step at the end of the whole run from, via, to, and no part of it: labels are edges and states of
//     an automaton, and a search with it costs what one that remembers whole paths would. What a search does not know of the way to its
//     start, it does not hold against it; State, Follow and FromState hand that on.
//  12. Open makes no graph of bytes on which a question could panic or run for ever, whatever they hold. A graph from a file is the graph
//     that was written: hash, indices, states and answers.
//
// # Ownership
//
// A Graph is immutable and shared by all goroutines. A Search, a Router and a Builder belong to one goroutine each. No goroutine is
// started here.
//
// # Limits
//
// Conditional restrictions, and limits of weight and height, are counted or ignored, not applied; sides of a road are not told apart.
// Segments over 400 km, and maps whose segments are implausibly long on the whole, are not taken.
package roadnet
