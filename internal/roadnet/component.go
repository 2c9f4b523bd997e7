package roadnet

import "slices"

// setComponents numbers the weakly connected pieces, the one with the most edges first.
func setComponents(g *Graph) {
	parent := make([]NodeIndex, len(g.nodeID))
	for i := range parent {
		parent[i] = NodeIndex(i)
	}
	root := func(n NodeIndex) NodeIndex {
		for parent[n] != n {
			parent[n] = parent[parent[n]]
			n = parent[n]
		}
		return n
	}
	for i := range g.edges {
		a, b := root(g.edges[i].From), root(g.edges[i].To)
		parent[max(a, b)] = min(a, b)
	}
	size := make([]int32, len(parent))
	first := make([]int32, len(parent))
	for i := range g.edges {
		size[root(g.edges[i].From)]++
	}
	for n := range first {
		first[n] = int32(n)
	}
	ranks := rankBySize(size, first)
	for i := range g.edges {
		g.edges[i].Component = ranks[root(g.edges[i].From)]
	}
}

// rankBySize numbers pieces by their sizes, the biggest 0; of equal ones the one with the lowest first member comes first. Pieces without
// a member come last.
func rankBySize(size, first []int32) []int32 {
	order := make([]int32, len(size))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return sortKey(size[a], size[b], first[a], first[b]) })
	ranks := make([]int32, len(size))
	for rank, i := range order {
		ranks[i] = int32(rank)
	}
	return ranks
}
