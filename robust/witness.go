package robust

import (
	"cmp"
	"slices"
)

// A Witness says why programs are not found robust: a cycle in the summary graph that the test does not allow.
type Witness struct {
	// Cycle begins with the counterflow edge that departs from the pivot, and ends with the edge that arrives there.
	Cycle []Edge
	// Schedule is an execution that the isolation level allows and that is not serializable, with its cycle of
	// dependencies: nil when none was found. Then the programs may be robust, since the tests are sufficient conditions
	// only.
	Schedule *Schedule
	Proof    []Dependency
}

// The search for a schedule ends after so many cycles, and so many tries for each.
const (
	maxCycles = 400
	maxTries  = 512
)

// Witness returns a witness that the test does not find the programs with these numbers robust (none: all programs);
// nil when it finds them robust. Among several it prefers those that it finds a schedule for, then short ones.
func (a *Analysis) Witness(t Test, programs ...int) *Witness {
	levels := slices.Repeat([]Level{t.Level()}, len(a.Programs))
	return a.witness(a.nodesOf(a.subset(programs)), a.structure.question(t), levels)
}

func (a *Analysis) witness(nodes bitset, q question, levels []Level) *Witness {
	type candidate struct {
		danger
		back []int // the nodes from P_5 to P_3
	}
	var byLength [][]candidate    // of back; of each no more than are tried
	ways := make(map[int][][]int) // by P_5
	a.structure.each(nodes, q, func(d danger) bool {
		if ways[d.to] == nil {
			ways[d.to] = a.structure.ways(nodes, d.to)
		}
		c := candidate{d, ways[d.to][d.from]}
		for len(byLength) <= len(c.back) {
			byLength = append(byLength, nil)
		}
		if of := &byLength[len(c.back)]; len(*of) < maxCycles {
			*of = append(*of, c)
		}
		return true
	})
	all := slices.Concat(byLength...)
	var first *Witness
	for _, c := range all[:min(len(all), maxCycles)] {
		w := a.tryCycle(append([]int{c.pivot}, c.back...), q, levels)
		if w.Schedule != nil {
			return w
		}
		if first == nil {
			first = w
		}
	}
	return first
}

// ways returns a shortest way from a node to each node that it leads to, both ends included.
func (s *structure) ways(nodes bitset, from int) [][]int {
	ways := make([][]int, len(s.next))
	ways[from] = []int{from}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		for j := range s.next[queue[0]].all {
			if nodes.has(j) && ways[j] == nil {
				ways[j] = append(slices.Clip(ways[queue[0]]), j)
				queue = append(queue, j)
			}
		}
	}
	return ways
}

// tryCycle looks for a schedule of a cycle through the nodes, which begins at its pivot. Each is a transaction.
func (a *Analysis) tryCycle(nodes []int, q question, levels []Level) *Witness {
	choices := make([][]Edge, len(nodes))
	for i, from := range nodes {
		choices[i] = a.Graph.between(from, nodes[(i+1)%len(nodes)])
	}
	w := &Witness{}
	tries := 0
	eachChoice(choices, func(cycle []Edge) bool {
		in, out := a.rules.arrives(a.Graph, cycle[len(cycle)-1]), a.rules.departs(a.Graph, cycle[0])
		if !q.pair(&in, nodes[0], &out) {
			return true
		}
		if w.Cycle == nil {
			w.Cycle = slices.Clone(cycle)
		}
		eachChoice(a.tupleUses(cycle), func(at []tupleUse) bool {
			for _, few := range []bool{true, false} {
				tries++
				if schedule, proof := a.split(cycle, at, few, levels); schedule != nil {
					w.Cycle, w.Schedule, w.Proof = slices.Clone(cycle), schedule, proof
					return false
				}
			}
			return tries < maxTries
		})
		return w.Schedule == nil && tries < maxTries
	})
	return w
}

// A tupleUse says which of the two statements of an edge use the tuple that its dependency is about. A predicate need
// not find it to depend on it.
type tupleUse struct{ from, to bool }

// tupleUses returns what is possible for each edge.
func (a *Analysis) tupleUses(cycle []Edge) [][]tupleUse {
	all := make([][]tupleUse, len(cycle))
	for i, e := range cycle {
		from, to := a.Graph.Ends(e)
		all[i] = []tupleUse{{true, true}}
		if from.Type.ByPredicate() {
			all[i] = append(all[i], tupleUse{to: true})
		}
		if to.Type.ByPredicate() {
			all[i] = append(all[i], tupleUse{from: true})
		}
	}
	return all
}

// between returns the edges from one node to another, in the order of the graph.
func (g *SummaryGraph) between(from, to int) []Edge {
	order := func(e Edge, pair [2]int) int {
		return cmp.Or(cmp.Compare(int(e.From), pair[0]), cmp.Compare(int(e.To), pair[1]))
	}
	first, _ := slices.BinarySearchFunc(g.Edges, [2]int{from, to}, order)
	last, _ := slices.BinarySearchFunc(g.Edges, [2]int{from, to + 1}, order)
	return g.Edges[first:last]
}

// eachChoice calls f with one element of each list, until it returns false. The slice is reused.
func eachChoice[T any](choices [][]T, f func([]T) bool) {
	chosen := make([]T, len(choices))
	var choose func(i int) bool
	choose = func(i int) bool {
		if i == len(choices) {
			return f(chosen)
		}
		for _, c := range choices[i] {
			if chosen[i] = c; !choose(i + 1) {
				return false
			}
		}
		return true
	}
	choose(0)
}

// split makes a schedule of a cycle and returns it if its transactions may run so and it is not serializable: the pivot
// runs up to the statement that its first edge departs from, then all others run one after the other, in the order of
// the cycle, then the rest of the pivot.
func (a *Analysis) split(cycle []Edge, at []tupleUse, few bool, levels []Level) (*Schedule, []Dependency) {
	s := &Schedule{Setting: a.Graph.Setting}
	for _, e := range cycle {
		s.Runs = append(s.Runs, Run{Program: a.Graph.Nodes[e.From], Level: levels[a.owners[e.From]]})
	}
	if !s.choose(cycle, at, few) {
		return nil, nil
	}
	end := int(cycle[0].FromAt) + 1
	s.run(0, 0, end)
	for i := 1; i < len(s.Runs); i++ {
		s.run(i, 0, len(s.Runs[i].Program.Statements)+1)
	}
	s.run(0, end, len(s.Runs[0].Program.Statements)+1)
	all, err := s.Check()
	if err != nil {
		return nil, nil
	}
	if proof := Cycle(all); proof != nil {
		return s, proof
	}
	return nil, nil
}

// run has a run's steps from one place up to another come next.
func (s *Schedule) run(i, from, to int) {
	for at := from; at < to; at++ {
		s.Order = append(s.Order, Step{Run: i, At: at})
	}
}
