package robust

import (
	"flag"
	"testing"

	"github.com/isotap/isotap/internal/mutants"
)

var runMutants = flag.Bool("mutants", false, "take out each rule of the package in turn and want a test to fail")

// conditions are those of the algorithms that are code; what is data is changed by TestEveryChangeOfTheRulesIsNoticed.
var conditions = []mutants.Mutant{
	{"only statements over one relation conflict", "summary.go", "rel := p.Statements[at].Relation", `rel := ""`},
	{"⊥ in Table 1a is decided by ncDepConds", "summary.go", "return anyMatches(r.ncSets, from, to, g.Setting)",
		"return true"},
	{"⊥ in Table 1b is decided by cDepConds", "summary.go", "return r.cDepConds(g, e)",
		"return anyMatches(r.ncSets, from, to, g.Setting)"},
	{"a tuple has all attributes", "summary.go", "return a.Defined() && b.Defined()", "return a.Meets(b)"},
	{"⊥ is no set of a tuple's attributes", "summary.go", "return a.Defined() && b.Defined()", "return true"},
	{"foreign keys count only when they are asked for", "summary.go", "g.Setting.ForeignKeys && r.held", "r.held"},
	{"both parents are by the same foreign key", "summary.go", "same := k.ForeignKey == l.ForeignKey", "same := true"},
	{"the reader holds the parent", "summary.go", "r.holdsBefore(g.Nodes[e.From], k, e.FromAt) &&", ""},
	{"the writer holds the parent", "summary.go", " && r.holdsBefore(g.Nodes[e.To], l, e.ToAt)", ""},
	{"the parent comes first", "summary.go", " && parent.At < int(child)", ""},
	{"a lock for share is no parent's", "summary.go", " && q.Lock != ShareLock", ""},

	{"loops run without an iteration", "unfold.go", "slices.Concat([][]Occurrence{nil}, once, twice)",
		"slices.Concat(once, twice)"},
	{"loops run twice", "unfold.go", "slices.Concat([][]Occurrence{nil}, once, twice)",
		"slices.Concat([][]Occurrence{nil}, once, twice[:0])"},
	{"an optional part does not run", "unfold.go", "return append(Sequence{o.Body}.unfold(u, in), nil)",
		"return Sequence{o.Body}.unfold(u, in)"},
	{"an iteration's parents are its own", "unfold.go", "parent.Statement == c.Parent && within(child.in, parent.in)",
		"parent.Statement == c.Parent"},
	{"ways that are the same are one", "unfold.go", "seen[id] = true", ""},
	{"a flattened loop runs twice", "unfold.go",
		"slices.Concat(body.flatten(u, u.enter(in)), body.flatten(u, u.enter(in)))", "body.flatten(u, u.enter(in))"},
	{"a flattened loop in another is no parent of others", "unfold.go", "return body.flatten(u, u.enter(in))",
		"return body.flatten(u, in)"},
	{"the next loop runs twice, too", "unfold.go", "defer func() { u.inLoop = false }()", ""},
	{"a flattened branch is no parent of others", "unfold.go", "Sequence{p}.flatten(u, u.enter(in))",
		"Sequence{p}.flatten(u, in)"},
	{"a flattened option is no parent of others", "unfold.go", "return Sequence{o.Body}.flatten(u, u.enter(in))",
		"return Sequence{o.Body}.flatten(u, in)"},

	{"the edge that departs is counterflow (Algorithm 2)", "robustness.go", "return out.earliest < never32 && (in.free",
		"return (in.free"},
	{"it departs before the other arrives (Algorithm 2)", "robustness.go", "(in.free || out.earliest < in.latest)",
		"in.free"},
	{"or where the other is free (Algorithm 2)", "robustness.go", "(in.free || out.earliest < in.latest)",
		"(out.earliest < in.latest)"},
	{"before is not where (Algorithm 2)", "robustness.go", "out.earliest < in.latest", "out.earliest <= in.latest"},
	{"counterflow edges are free (Algorithm 2)", "structure.go", "free: e.Counterflow || r.readers[from.rule()]",
		"free: r.readers[from.rule()]"},
	{"one edge is not counterflow (Algorithm 2)", "robustness.go", "closing: s.closureWithFlow", "closing: s.closure"},
	{"P_3 is reachable from P_2 (Algorithm 2)", "structure.go", "after[i].unite(reach[j])",
		"after[i] = fullBitset(len(reach))"},
	{"P_1 is reachable from P_5 (Algorithm 2)", "structure.go", "for j := range reach[i].all {",
		"for j := range nodes.all {"},
	{"the cycle closes", "structure.go", "if back[out.to].has(in.from) && !f(", "if !f("},
	{"Alomari and Fekete's edge is counterflow", "robustness.go", "return out.earliest < never32 }", "return true }"},

	{"the edge that departs is vulnerable", "robustness.go", "return out.snapshot && in.vulnerable[SnapshotIsolation]",
		"return in.vulnerable[SnapshotIsolation]"},
	{"the edge that arrives is vulnerable", "robustness.go", "return out.snapshot && in.vulnerable[SnapshotIsolation]",
		"return out.snapshot"},
	{"a lock keeps others from departing", "snapshot.go", "r.readers[from.rule()] &&",
		"(r.readers[from.rule()] || true) &&"},
	{"a lock does not keep others from arriving", "snapshot.go", "r.cDep[from.Type][to.rule()]",
		"r.cDep[from.rule()][to.rule()]"},
	{"both write a tuple in common", "snapshot.go", " || !r.collide(g, e, at)", ""},
	{"a predicate's tuples are not known", "snapshot.go", "!from.Type.ByKey() || ", ""},
	{"without a snapshot it writes before it reads", "snapshot.go", "at == ReadCommitted && i > int(e.FromAt) ||", ""},
	{"with a snapshot it writes whenever", "snapshot.go", "at == ReadCommitted && i > int(e.FromAt)",
		"i > int(e.FromAt)"},
	{"a tuple of another relation is another one", "snapshot.go",
		" && a.Statements[x].Relation == b.Statements[y].Relation", ""},
	{"keys are made alike", "snapshot.go", " && slices.Equal(p, q)", " && len(p) == len(q)"},
	{"names are those of the same iterations", "snapshot.go", " || !within(of.in, key.in) || !within(key.in, of.in)",
		""},

	{"the pivot's level decides", "allocation.go", "case here == ReadCommitted:", "case false:"},
	{"three serializable ones are refused", "allocation.go", " && to == Serializable:", " && to > Serializable:"},
	{"two serializable ones are not", "allocation.go", " && to == Serializable:", " && to <= Serializable:"},
	{"a program runs as cheaply as it can", "allocation.go", "for p.lower(at) {", "for false {"},
	{"a later arrival makes a pivot", "allocation.go", "from.unite(p.later[pivot][out.earliest])", ""},
	{"an arrival whose place does not matter makes one", "allocation.go", "from.unite(p.free[pivot])", ""},
	{"two serializable ones are not, of many at once", "allocation.go", " && of[level].has(out.to) {", " {"},
	{"the level it comes from counts", "allocation.go", "some.intersect(of[level])", "some.intersect(of[0])"},
	{"what leads back counts", "allocation.go", "from.intersect(p.back[out.to])", ""},
}

func TestEveryConditionIsTested(t *testing.T) {
	mutants.Test(t, *runMutants, conditions, "-skip", "TestEveryConditionIsTested|NoAnomalies", ".")
}
