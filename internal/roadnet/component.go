package roadnet

import (
	"cmp"
	"slices"
)

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
	for i := range g.edges {
		size[root(g.edges[i].From)]++
	}
	var roots []NodeIndex
	for n, s := range size {
		if s > 0 {
			roots = append(roots, NodeIndex(n))
		}
	}
	slices.SortFunc(roots, func(a, b NodeIndex) int { return cmp.Or(cmp.Compare(size[b], size[a]), cmp.Compare(a, b)) })
	rank := size
	for r, n := range roots {
		rank[n] = int32(r)
	}
	for i := range g.edges {
		g.edges[i].Component = rank[root(g.edges[i].From)]
	}
}
