package robust

import (
	"fmt"
	"slices"
	"strings"
)

// A Schedule is an interleaving of transactions that are runs of linear programs (3.3), with the tuples that they use.
type Schedule struct {
	Setting Setting // what counts as a conflict
	Runs    []Run
	Order   []Step
}

// A Run is a transaction: an instantiation of a linear program (5.2).
type Run struct {
	Program *LTP
	Level   Level
	// Tuples are those that the statements use, parallel to them: one for a key-based statement or an insertion, any
	// number for one with a predicate.
	Tuples [][]Tuple
}

// A Tuple is known by its relation and its key: small numbers, which stand for values that differ.
type Tuple struct {
	Relation string
	Key      string // as "1" or "1,2"
}

// String returns the tuple for people.
func (t Tuple) String() string { return t.Relation + "(" + t.Key + ")" }

// A Step is a statement that runs as a whole: an atomic chunk; or a commit.
type Step struct {
	Run int
	At  int // the place of the statement in its program; behind the last one: the commit
}

// commits reports whether the step is its run's commit.
func (s *Schedule) commits(step Step) bool {
	return step.At == len(s.Runs[step.Run].Program.Statements)
}

// String returns the schedule for people, a step a line.
func (s *Schedule) String() string {
	var b strings.Builder
	for _, step := range s.Order {
		fmt.Fprintf(&b, "T%d %s\n", step.Run+1, s.Describe(step))
	}
	return b.String()
}

// A Dependency is one between operations of two transactions (3.4).
type Dependency struct {
	From, To    Step // b_i and a_j, by their statements
	Kind        DependencyKind
	Tuple       Tuple
	Counterflow bool // the transaction that depends commits first (section 4)
}

// A DependencyKind is a kind of dependency.
type DependencyKind string

// The kinds of 3.4.
const (
	WW          DependencyKind = "ww"
	WR          DependencyKind = "wr"
	RW          DependencyKind = "rw"
	PredicateWR DependencyKind = "predicate wr"
	PredicateRW DependencyKind = "predicate rw"
)

// Check executes the schedule. It gives an error where the isolation levels of its transactions do not allow it, and
// otherwise all dependencies between them.
func (s *Schedule) Check() ([]Dependency, error) {
	x := newExecution(s)
	for _, step := range s.Order {
		if err := x.step(step); err != nil {
			return nil, fmt.Errorf("statement %[2]d of T%[1]d: %[3]w", step.Run+1, step.At+1, err)
		}
	}
	if run := slices.Index(x.ended, 0); run >= 0 {
		return nil, fmt.Errorf("there is no commit of T%d", run+1)
	}
	all := x.dependencies()
	if err := x.refuseDangerous(all); err != nil {
		return nil, err
	}
	return all, nil
}

// Cycle returns a shortest cycle of dependencies among the transactions, each of which is on it once; nil when the
// schedule is conflict serializable (Theorem 3.2).
func Cycle(all []Dependency) []Dependency {
	var shortest []Dependency
	for i := range all {
		if back := path(all, all[i].To.Run, all[i].From.Run); back != nil &&
			(shortest == nil || len(back)+1 < len(shortest)) {
			shortest = append([]Dependency{all[i]}, back...)
		}
	}
	return shortest
}

// path returns a shortest way from one transaction to another.
func path(all []Dependency, from, to int) []Dependency {
	type way struct {
		at   int
		last *Dependency
		rest *way
	}
	seen := map[int]bool{from: true}
	for queue := []*way{{at: from}}; len(queue) > 0; queue = queue[1:] {
		w := queue[0]
		if w.at == to {
			var edges []Dependency
			for ; w.last != nil; w = w.rest {
				edges = append(edges, *w.last)
			}
			slices.Reverse(edges)
			return edges
		}
		for i := range all {
			if e := &all[i]; e.From.Run == w.at && !seen[e.To.Run] {
				seen[e.To.Run] = true
				queue = append(queue, &way{e.To.Run, e, w})
			}
		}
	}
	return nil
}
