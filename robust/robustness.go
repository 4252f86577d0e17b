package robust

import "fmt"

// A Level is an isolation level that programs run at.
type Level uint8

// The levels, from the cheapest. On PostgreSQL these are READ COMMITTED, REPEATABLE READ and SERIALIZABLE.
const (
	ReadCommitted     Level = iota // MVRC: each statement sees what was committed when it began
	SnapshotIsolation              // a transaction sees what was committed when it began; the first committer wins
	Serializable                   // the same, and dangerous structures among such transactions are refused
	levels            = iota
)

// String returns the level's name.
func (l Level) String() string {
	switch l {
	case ReadCommitted:
		return "READ COMMITTED"
	case SnapshotIsolation:
		return "SNAPSHOT ISOLATION"
	case Serializable:
		return "SERIALIZABLE"
	}
	return fmt.Sprintf("level %d", uint8(l))
}

// A Test is a sufficient condition for robustness: what it calls robust is robust; what it does not may be. Each says
// which cycles a summary graph must not have.
type Test uint8

// The tests.
const (
	// TypeII is Algorithm 2, against MVRC: type-II cycles (Theorem 6.4).
	TypeII Test = iota
	// TypeI is that of Alomari and Fekete (AICCSA 2015), against MVRC: cycles with a counterflow edge. It finds fewer
	// programs robust, and is there for comparison.
	TypeI
	// Snapshot is that of Fekete et al. (TODS 2005), against SNAPSHOT ISOLATION: cycles with two vulnerable edges one
	// after the other.
	Snapshot
)

// String returns the test's name.
func (t Test) String() string {
	switch t {
	case TypeII:
		return "type-II cycles"
	case TypeI:
		return "type-I cycles"
	case Snapshot:
		return "dangerous structures"
	}
	return fmt.Sprintf("test %d", uint8(t))
}

// Level returns the level that the test is about.
func (t Test) Level() Level {
	if t == Snapshot {
		return SnapshotIsolation
	}
	return ReadCommitted
}

// An Analysis answers questions about a set of programs. It unfolds them and makes their summary graph once; every
// answer is about a part of that graph. It is read only, and may be used by several goroutines.
type Analysis struct {
	Programs []*Program
	Graph    *SummaryGraph // for all of them

	rules     *rules
	nodes     []bitset // by program: its linear programs
	owners    []int    // by node: its program
	structure *structure
}

// Analyze makes ready to answer questions about the programs, which have passed [Workload.Check].
func Analyze(programs []*Program, s Setting) *Analysis { return theRules.analyze(programs, s) }

func (r *rules) analyze(programs []*Program, s Setting) *Analysis {
	var ltps []*LTP
	var owners []int
	for i, p := range programs {
		for _, l := range Unfold(p) {
			ltps, owners = append(ltps, l), append(owners, i)
		}
	}
	g := r.summarize(ltps, s)
	a := &Analysis{Programs: programs, Graph: g, rules: r, owners: owners, structure: r.digest(g)}
	for range programs {
		a.nodes = append(a.nodes, newBitset(len(ltps)))
	}
	for node, owner := range owners {
		a.nodes[owner].add(node)
	}
	return a
}

// Robust reports whether the test finds the programs with these numbers robust, together and in any number of runs.
// Without numbers: all programs.
func (a *Analysis) Robust(t Test, programs ...int) bool { return a.robust(t, a.subset(programs)) }

// subset returns the set of the numbers; of none: all programs.
func (a *Analysis) subset(programs []int) bitset {
	if len(programs) == 0 {
		return fullBitset(len(a.Programs))
	}
	set := newBitset(len(a.Programs))
	for _, i := range programs {
		set.add(i)
	}
	return set
}

// nodesOf returns the nodes of a set of programs.
func (a *Analysis) nodesOf(programs bitset) bitset {
	nodes := newBitset(len(a.Graph.Nodes))
	for i := range programs.all {
		nodes.unite(a.nodes[i])
	}
	return nodes
}

func (a *Analysis) robust(t Test, programs bitset) bool {
	_, found := a.structure.find(a.nodesOf(programs), a.structure.question(t))
	return !found
}

// question returns what a test asks.
func (s *structure) question(t Test) question {
	switch t {
	case TypeI:
		return question{pair: anyPair, closing: s.closure}
	case Snapshot:
		return question{pair: snapshotPair, closing: s.closure}
	}
	return question{pair: typeIIPair, closing: s.closureWithFlow}
}

// typeIIPair reports whether two edges are an adjacent-counterflow or an ordered-counterflow pair (Theorem 6.4).
func typeIIPair(in *arrival, _ int, out *departure) bool {
	return out.earliest < never32 && (in.free || out.earliest < in.latest)
}

// anyPair has every counterflow edge that departs count: a cycle that it is on has some edge that arrives before it.
func anyPair(_ *arrival, _ int, out *departure) bool { return out.earliest < never32 }

// snapshotPair reports whether two vulnerable edges follow each other, where all transactions have snapshots.
func snapshotPair(in *arrival, _ int, out *departure) bool {
	return out.snapshot && in.vulnerable[SnapshotIsolation]
}
