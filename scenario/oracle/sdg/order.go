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

// Orders returns at most so many of the orders that the graph allows, and reports whether there are more. The graph
// must have no cycles.
func (g *Graph) Orders(most int) (all [][]int, more bool) {
	waits := make(map[int]int) // for how many that do not stand yet
	for _, n := range g.nodes {
		for _, m := range g.next[n] {
			waits[m]++
		}
	}
	var order []int
	stands := make(map[int]bool)
	var extend func()
	extend = func() {
		if len(order) == len(g.nodes) {
			if more = len(all) == most; !more {
				all = append(all, slices.Clone(order))
			}
			return
		}
		for _, n := range g.nodes {
			if stands[n] || waits[n] > 0 || more {
				continue
			}
			order, stands[n] = append(order, n), true
			for _, m := range g.next[n] {
				waits[m]--
			}
			extend()
			for _, m := range g.next[n] {
				waits[m]++
			}
			order, stands[n] = order[:len(order)-1], false
		}
	}
	extend()
	return all, more
}

// TransactionsHaveOrder reports whether the transactions themselves have an order: none depends on another that
// depends on it (the paper's table 4 counts where they do not).
func (g *Graph) TransactionsHaveOrder() bool {
	next := make(map[int]map[int]bool)
	for _, e := range g.edges {
		from, to := g.history.Statements[e.From].Txn, g.history.Statements[e.To].Txn
		if from != to && next[from] == nil {
			next[from] = make(map[int]bool)
		}
		if from != to {
			next[from][to] = true
		}
	}
	state := make(map[int]int) // 1: on the way, 2: no cycle comes of it
	var cyclic func(n int) bool
	cyclic = func(n int) bool {
		if state[n] > 0 {
			return state[n] == 1
		}
		state[n] = 1
		for m := range next[n] {
			if cyclic(m) {
				return true
			}
		}
		state[n] = 2
		return false
	}
	for n := range next {
		if cyclic(n) {
			return false
		}
	}
	return true
}
