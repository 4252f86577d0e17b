package sdg

import (
	"math/rand/v2"
	"slices"
)

// Cycles returns the sets of statements that depend on each other, each in the order of the history; none: the graph
// has an order.
func (g *Graph) Cycles() [][]int {
	before := g.reachable()
	var all [][]int
	taken := make(map[int]bool)
	for _, n := range g.nodes {
		if taken[n] || !before[n][n] {
			continue
		}
		var set []int
		for _, m := range g.nodes {
			if before[n][m] && before[m][n] {
				set, taken[m] = append(set, m), true
			}
		}
		all = append(all, set)
	}
	return all
}

// reachable returns, for each statement, those that have to come behind it.
func (g *Graph) reachable() map[int]map[int]bool {
	all := make(map[int]map[int]bool)
	for _, n := range g.nodes {
		reached := make(map[int]bool)
		for work := slices.Clone(g.next[n]); len(work) > 0; {
			m := work[len(work)-1]
			if work = work[:len(work)-1]; !reached[m] {
				reached[m] = true
				work = append(work, g.next[m]...)
			}
		}
		all[n] = reached
	}
	return all
}

// Order draws an order of the statements of committed transactions in which each stands behind those that it depends
// on (the paper's algorithm 1). The graph has no cycles.
func (g *Graph) Order(r *rand.Rand) []int {
	waits := make(map[int]int) // for how many
	for _, n := range g.nodes {
		for _, m := range g.next[n] {
			waits[m]++
		}
	}
	var free, all []int
	for _, n := range g.nodes {
		if waits[n] == 0 {
			free = append(free, n)
		}
	}
	for len(free) > 0 {
		i := r.IntN(len(free))
		n := free[i]
		free = slices.Delete(free, i, i+1)
		all = append(all, n)
		for _, m := range g.next[n] {
			if waits[m]--; waits[m] == 0 {
				free = append(free, m)
			}
		}
	}
	return all
}
