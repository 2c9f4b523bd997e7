package mapmatch

// kind is a way in which map matchers fail, as their users report it.
type kind struct {
	title     string
	elsewhere string // what goes wrong, with a report of it
	ours      string // what this matcher does
}

// kinds are M1 to M50, in order.
func kinds() []kind {
	return []kind{
		{"parallel roads", "The match jumps between two carriageways, or onto the service road beside (osmandapp/OsmAnd#3656).", "There is no way from one to the other, so noise between them is no change of road."},
		{"a slip road that parts slowly", "The exit is taken too early, or entry and exit are confused (graphhopper/map-matching#122).", "The decision waits until the roads have parted; the wrong one never becomes final."},
		{"a small road beside a big one", "The small road is chosen although the position is nearer to the big one, or the reverse (graphhopper/map-matching#106).", "Distance decides; the class of a road only breaks ties."},
		{"a position a little behind", "A point behind its predecessor makes the vehicle turn round, twice (bmwcarit/barefoot#36, cyang-kth/fmm#98).", "A move back within the noise on one edge is standing still."},
		{"jitter on a one-way ring", "The same jitter on a one-way street makes a lap round the block (graphhopper/map-matching#30, bmwcarit/barefoot#69).", "No lap: a vehicle cannot have driven it in a second."},
		{"a real U-turn in mid-block", "The turn is drawn at the next junction, far away (bmwcarit/barefoot#73, valhalla/valhalla#680).", "It turns where it turned, at a price, and says so."},
		{"a real U-turn, with headings", "Turning back or reversing is refused and the rest stays unmatched (valhalla/valhalla#4290).", "Turning is always possible at a price; the headings agree with it."},
		{"a short dead end", "One noisy point drives the vehicle into a spur and out again (graphhopper/graphhopper#3023).", "A spur no longer than the noise is dearer than the noise."},
		{"standing at a crossing", "The cloud of positions of a waiting vehicle becomes a drive round the crossing (Project-OSRM/osrm-backend#4680).", "One place, no way driven."},
		{"a loop", "A loop, or a way there and back, is cut short (valhalla/valhalla#1601, graphhopper/map-matching#1).", "Every position is passed in its order; the loop has its length."},
		{"more positions", "More points make the match worse and its confidence collapse (Project-OSRM/osrm-backend#5653).", "The same roads at one position in 5 s and at 10 a second (shown: one a second)."},
		{"a sparse feed", "At a minute between positions there are holes and detours (valhalla/valhalla#2404, graphhopper/map-matching#6).", "How far is searched follows from the time; the quickest way joins them."},
		{"a fixed break distance", "A constant distance at which a trace breaks kills fast sparse feeds (valhalla/valhalla#6269).", "3.4 km in 120 s are driven; in 20 s they would break the match."},
		{"a tunnel", "A tunnel without positions breaks the trace (valhalla/valhalla#4779).", "Where one way leads on in that time it is driven, and marked as inferred."},
		{"one wild position", "One wild point breaks or bends the whole trace (valhalla/valhalla#1868, cyang-kth/fmm#100).", "It is left out and marked; the rest is one piece."},
		{"two islands", "One impossible step rejects the whole trip (graphhopper/graphhopper#2621).", "The match breaks there with a reason and goes on."},
		{"a trace that leaves the map", "A trace of which hardly anything matched is a success (valhalla/valhalla#2205, graphhopper/graphhopper#2677).", "Each observation says what became of it: of 40 two are matched."},
		{"a line over a break", "A straight line is drawn over what is not known (valhalla/valhalla#5840, Project-OSRM/osrm-backend#1509).", "Two legs; no line between them, ever."},
		{"two equal positions", "A repeated point is an error or a division by zero (graphhopper/map-matching, issue-127.gpx).", "A move of no length."},
		{"two positions at one time", "Equal times divide by nothing.", "The first counts, the second is marked as too late and changes nothing."},
		{"time goes back", "A late point is an error for the whole trace (Project-OSRM/osrm-backend#3152).", "It is marked as too late; the state stays as it was, byte for byte."},
		{"absurd times", "Milliseconds read as seconds are believed (Project-OSRM/osrm-backend#5984).", "An outlier; the next one at a sane time goes on."},
		{"a long first pause", "The first point after a long pause is dropped (Project-OSRM/osrm-backend#2668).", "A pause is no sign of an outlier: all four match."},
		{"swapped coordinates", "Latitude and longitude are swapped and something far away is matched (bmwcarit/barefoot#17).", "No road near it: no place, no error."},
		{"impossible coordinates", "NaN, infinity, 0/0 and the poles crash or match (Project-OSRM/osrm-backend#4308).", "Ten of them between ten good ones change nothing (only the good ones can be drawn)."},
		{"the antimeridian", "A road over the 180th degree is as long as the Earth is round (graphhopper/graphhopper#2745).", "It is as long as it is."},
		{"against a one-way street", "Driving the wrong way makes a huge detour or a crash (valhalla/valhalla#2403, Project-OSRM/osrm-backend#5916).", "Matched as it was driven, at a price, and marked."},
		{"a banned turn", "Turn bans are ignored or are walls (Project-OSRM/osrm-backend#2634, graphhopper/graphhopper#675).", "A turn that was clearly made is matched and marked."},
		{"roads for some", "A bus lane is missing for the bus (graphhopper/map-matching#62, Project-OSRM/osrm-backend#3587).", "Access is by class of vehicle (shown: a bus; a car goes round)."},
		{"a private yard", "A private road or a gate splits the match (Project-OSRM/osrm-backend#5982).", "Passable at a price, and marked; a bollard is closed."},
		{"a road that is not in the map", "A road under construction is driven, or a road far away (Project-OSRM/osrm-backend#5669).", "No fake path: the observations are off the road."},
		{"off the road and back", "The way round is driven while the vehicle was in a field (Project-OSRM/osrm-backend#4638).", "Two legs, and nothing between them."},
		{"a ferry along the shore", "A ferry's line is taken for a road (graphhopper/graphhopper#322).", "It costs at every observation; the shore road wins."},
		{"a bridge over a road", "The match changes over at a bridge (graphhopper/graphhopper#996).", "Roads that share no node do not join."},
		{"an island", "A trip begins on a piece of road that leads nowhere (graphhopper/graphhopper#1807).", "Beginning there has a price: the network wins although the island is nearer."},
		{"a long edge", "A position in the middle of a long edge finds nothing, since its ends are far away (valhalla/loki#62).", "Edges are found by their geometry in every cell that they cross."},
		{"a wide road", "On many lanes the position is nearer to the road beside (graphhopper/graphhopper#2697).", "The noise that is believed is at least half the width of the lanes."},
		{"a radius that is cut", "A search radius is cut to a bound in silence (valhalla/valhalla#384).", "The result says that the accuracy asked for more than is searched."},
		{"on a junction", "At a node one road is kept by chance (valhalla/valhalla#3535).", "All four roads are candidates, and a tenth of a millionth of a degree beside it nothing changes."},
		{"a roundabout", "The ring is cut by a chord or driven round in full (valhalla/valhalla#4773, Project-OSRM/osrm-backend#1395).", "One arc, along its geometry."},
		{"a cusp", "The heading is taken from the wrong side of a bend, and a hard filter loses matches (Project-OSRM/osrm-backend#4792).", "The road's direction at the place, as a soft price, and none at walking pace."},
		{"a fork whose branches part slowly", "An online answer is contradicted later without a word (bmwcarit/barefoot#155).", "The provisional answer is revised once, and says from where; what is final never changes."},
		{"a state handed over", "A restored state finds another path (bmwcarit/barefoot#36).", "The same bytes, whether one matcher saw the trip or a new one at every observation."},
		{"a state of another map", "A state from another graph is taken for one's own.", "Refused by the hash of the graph, the settings and a checksum; the trip begins anew."},
		{"confidence", "A confidence above 1, or 0 for what is right (Project-OSRM/osrm-backend#6513).", "A probability: between two equal roads it is one half."},
		{"a jump after a stop", "After a pause an impossible speed is believed (valhalla/valhalla#900).", "Time counts from the last observation: 900 m in 5 s are an outlier."},
		{"sentinels", "A magic number stands for none (edge 18446744073709551615, valhalla/valhalla#3371).", "What is absent is absent, over forty random drives (shown: the first)."},
		{"a table of all pairs", "A table of all ways within a range takes gigabytes (cyang-kth/fmm#9).", "No table: a few bytes an edge."},
		{"work that grows with the trip", "Each point costs more than the one before (valhalla/valhalla#454).", "Of 50,000 positions on this block the last thousand take no longer than the first."},
		{"an endless trip", "Costs drift and memory grows.", "A million positions at a standstill: the state stays below 2 KB."},
	}
}
