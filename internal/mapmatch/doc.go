// Package mapmatch finds the roads that a vehicle drives on from its positions, one at a time, as they come.
//
// It is a hidden Markov model over candidate places (emission: distance and heading; transition: the difference between the way on the
// network and the straight distance), solved by Viterbi over a short window of layers. What the newest candidates all agree on is
// final; the rest is provisional and may be corrected by later observations. The window is the state: a few hundred bytes that
// the caller keeps between observations, so that any replica with the same map can go on.
//
// Not here: decoding of records and what is poison (fleet), maps (roadnet), the whole-trace commands (fleet).
//
// # Invariants
//
//  1. Push is a pure function of state, observation, graph and configuration: no clock, randomness, goroutine or map iteration; costs
//     are integers; every order is total. The same arguments give the same bytes on every replica.
//  2. What is final never changes, and no final stretch is put out twice: final spans partition the drive, in order (I9). The first
//     layer of a window is the anchor, already announced, with one candidate; everything later starts from it.
//  3. Final spans followed by the provisional paths that still count (see Track) are one connected way on the network between two
//     breaks. No line is ever drawn across a break.
//  4. The newest layer never becomes final by agreement, and the one before keeps all its candidates: the newest may be an outlier.
//  5. A state is version (1 byte), graph hash (8), configuration hash (4), varints of the window, CRC32C (4); at most 16 KiB, since
//     layers, candidates and waiting positions are bounded. States of the versions before are read, and written
//     as one of this version. Anything else is ErrForeignState.
//  6. Work an observation does not grow with the trip, and PushInto allocates nothing in the long run.
//  7. A confidence is the probability of the place by the observations so far: forward sums, led back through the window. It is in [0,1].
//  8. Turn bans, U-turns, private roads and driving against one-way streets (where the map has edges for that) are prices with flags,
//     never walls.
//
// # The life of an observation
//
// sight (observe.go) rounds it to what a state can hold. judge (matcher.go) then decides: implausible beside the last believed one
// (doubt: an outlier, or the first of a new stretch); too near the newest layer to tell anything (skip: it gets its place
// when the stretch around it is final); far from any road (offRoad); else a layer. extend (viterbi.go) links the layer with the
// one before, with prices from cost.go and the way from roadnet.Search, leaving out the one before where that was an outlier.
// advance (output.go) puts out what became final and the newest best place with the part of its way that changed. The ways between
// layers are not kept: hop finds them again, by the same rule with the same limits. Explain says why.
//
// # Limits
//
// Of two ways as long as one another the quicker one is taken; how long a vehicle took does not decide between them. Of the ways to one
// place only the cheapest is remembered, and with it what turn restrictions over several ways make of it.
//
// # Goroutines
//
// None. A Matcher has scratch memory and belongs to one goroutine; the graph is shared.
package mapmatch
