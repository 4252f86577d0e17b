package robust

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Each of these tests is of a set of rules, so that TestEveryChangeOfTheRulesIsNoticed can try others.

// Tables 1a and 1b as the paper prints them: rows and columns are ins, key sel, pred sel, key upd, pred upd, key del,
// pred del.
var printed = [2]string{`
	false  ⊥     true   ⊥     true   ⊥     true
	false  false false  ⊥     ⊥      ⊥     ⊥
	true   false false  ⊥     ⊥      true  true
	false  ⊥     ⊥      ⊥     ⊥      ⊥     ⊥
	true   ⊥     ⊥      ⊥     ⊥      true  true
	false  false true   false true   false true
	true   false true   ⊥     true   true  true`, `
	false  false false  false false  false false
	false  false false  ⊥     ⊥      ⊥     ⊥
	true   false false  ⊥     ⊥      true  true
	false  false false  false false  false false
	true   false false  ⊥     ⊥      true  true
	false  false false  false false  false false
	true   false false  ⊥     ⊥      true  true`,
}

// A probe is a statement of each of two programs, and whether there is an edge from the first to the second.
type probe struct {
	name          string
	from, to      *LTP
	fromAt, toAt  int32
	counterflow   bool
	noForeignKeys bool
	tuples        bool
	want          bool
}

// ok reports whether the rules give what is wanted.
func (p *probe) ok(r *rules) bool {
	g := r.summarize([]*LTP{p.from, p.to}, Setting{Tuples: p.tuples, ForeignKeys: !p.noForeignKeys})
	return p.want == slices.Contains(g.Edges, Edge{From: 0, FromAt: p.fromAt, To: 1, ToAt: p.toAt,
		Counterflow: p.counterflow})
}

// one returns a program of one statement that has all three sets alike: what a type's sets are does not matter to the
// tables.
func one(t Type, attribute string) *LTP {
	return linear(&Statement{Type: t, Relation: "R", PRead: Of(attribute), Read: Of(attribute), Write: Of(attribute)})
}

func linear(statements ...*Statement) *LTP {
	body := make(Sequence, len(statements))
	for i, q := range statements {
		body[i] = q
	}
	return Unfold(NewProgram("P", body))[0]
}

// cellProbes are two for each cell: with sets that meet there is an edge unless it is false; with others only if it is
// true.
func cellProbes() []probe {
	var all []probe
	for k, text := range printed {
		for i, entry := range strings.Fields(text) {
			from, to := Type(i/types), Type(i%types)
			name := fmt.Sprintf("Table 1%c, %s to %s is %s", 'a'+k, from, to, entry)
			all = append(all,
				probe{name: name + ", sets that meet", from: one(from, "a"), to: one(to, "a"), counterflow: k == 1,
					want: entry != "false"},
				probe{name: name + ", others", from: one(from, "a"), to: one(to, "b"),
					counterflow: k == 1, want: entry == "true"})
		}
	}
	return all
}

// setProbes are of ncDepConds and cDepConds: each pair of sets makes a dependency alone, and others make none.
func setProbes() []probe {
	statement := func(sets string) *LTP {
		q := &Statement{Type: PredUpd, Relation: "R", PRead: Of(), Read: Of(), Write: Of()}
		switch sets {
		case "PRead":
			q.PRead = Of("a")
		case "Read":
			q.Read = Of("a")
		case "Write":
			q.Write = Of("a")
		}
		return linear(q)
	}
	nc := []string{"Write Write", "Write Read", "Write PRead", "Read Write", "PRead Write"}
	c := []string{"PRead Write", "Read Write"}
	var all []probe
	for _, from := range []string{"PRead", "Read", "Write"} {
		for _, to := range []string{"PRead", "Read", "Write"} {
			pair := from + " " + to
			all = append(all,
				probe{name: "ncDepConds, " + pair, from: statement(from), to: statement(to),
					want: slices.Contains(nc, pair)},
				probe{name: "cDepConds, " + pair, from: statement(from), to: statement(to), counterflow: true,
					want: slices.Contains(c, pair)})
		}
	}
	return all
}

// granularityProbes are of whole tuples in place of attributes: sets that are defined meet, ⊥ meets none.
func granularityProbes() []probe {
	reads := func(s Set) *LTP { return linear(&Statement{Type: KeySel, Relation: "R", Read: s}) }
	writes := func(s Set) *LTP { return linear(&Statement{Type: KeyUpd, Relation: "R", Read: Of(), Write: s}) }
	return []probe{
		{name: "attributes that differ", from: reads(Of("a")), to: writes(Of("b")), counterflow: true},
		{name: "attributes of one tuple", from: reads(Of("a")), to: writes(Of("b")), counterflow: true, tuples: true,
			want: true},
		{name: "no attributes of one tuple", from: reads(Of()), to: writes(Of()), counterflow: true, tuples: true,
			want: true},
		{name: "a lock is no write of a tuple", from: reads(Of("a")), to: writes(Set{}), counterflow: true,
			tuples: true},
		{name: "another relation", from: linear(&Statement{Type: KeySel, Relation: "S", Read: Of("a")}),
			to: writes(Of("a"))},
	}
}

// A family is a program with a tuple and the one that it refers to.
type family struct {
	parent     Type
	lock       Lock
	after      bool // the parent comes after the child
	foreignKey string
}

// program returns the program, and the place of the child, which reads and writes.
func (f family) program(child Type) (*LTP, int32) {
	if f.foreignKey == "" {
		f.foreignKey = "f"
	}
	parent := &Statement{Type: f.parent, Lock: f.lock, Relation: "P"}
	q := &Statement{Type: child, Relation: "C", Read: Of("a"), Write: Of("a")}
	c := Constraint{Parent: parent, ForeignKey: f.foreignKey, Child: q}
	if f.after {
		return Unfold(NewProgram("P", Sequence{q, parent}, c))[0], 0
	}
	return Unfold(NewProgram("P", Sequence{parent, q}, c))[0], 1
}

// foreignKeyProbes are of cDepConds' condition: there is no counterflow from the reader where both held the parent
// before.
func foreignKeyProbes() []probe {
	held := family{parent: KeyUpd}
	var all []probe
	add := func(name string, reader, writer family, want bool) {
		p := probe{name: "foreign keys: " + name, counterflow: true, want: want}
		p.from, p.fromAt = reader.program(KeySel)
		p.to, p.toAt = writer.program(KeyUpd)
		all = append(all, p)
	}
	for t := range Type(types) {
		holds := t == KeyUpd || t == KeyDel || t == Ins
		add("the reader's parent is "+t.String(), family{parent: t}, held, !holds)
		add("the writer's parent is "+t.String(), held, family{parent: t}, !holds)
	}
	add("the reader's parent comes after", family{parent: KeyUpd, after: true}, held, true)
	add("the writer's parent comes after", held, family{parent: KeyUpd, after: true}, true)
	add("they are different", held, family{parent: KeyUpd, foreignKey: "g"}, true)
	add("the reader's parent is locked", family{parent: KeySel, lock: UpdateLock}, held, false)
	add("the writer's parent is locked", held, family{parent: KeySel, lock: UpdateLock}, false)
	add("a parent is locked for share", family{parent: KeySel, lock: ShareLock}, held, true)

	ignored := all[len(all)-2]
	ignored.name, ignored.noForeignKeys, ignored.want = "foreign keys: they are not asked for", true, true
	order := all[len(all)-2]
	order.name, order.counterflow, order.want = "foreign keys: they are nothing to what is in order", false, true
	predicate := probe{name: "foreign keys: they are nothing to predicates", counterflow: true, want: true}
	predicate.from, predicate.fromAt = held.program(PredSel)
	predicate.from.Statements[1].PRead, predicate.from.Statements[1].Read = Of("a"), Of()
	predicate.to, predicate.toAt = held.program(KeyUpd)
	return append(all, ignored, order, predicate)
}

func probes() []probe {
	return slices.Concat(cellProbes(), setProbes(), granularityProbes(), foreignKeyProbes())
}

func TestEdgesAreThoseOfAlgorithm1(t *testing.T) {
	for _, p := range probes() {
		if !p.ok(&theRules) {
			t.Errorf("%s: edge %v, want %v", p.name, !p.want, p.want)
		}
	}
}

// A shape is a graph by its edges, and whether Algorithm 2 finds it robust.
type shape struct {
	name          string
	edges         []drawnEdge
	typeII, typeI bool // robust by these
}

// A drawnEdge goes from a statement to a statement, of which a program has two: "A1" is A's first.
type drawnEdge struct {
	from, to    string
	counterflow bool
	by          Type // of the statement that it begins with
}

func (s *shape) graph() *SummaryGraph {
	g := &SummaryGraph{}
	for range 5 {
		two := linear(&Statement{Type: KeyUpd, Relation: "R"}, &Statement{Type: KeyUpd, Relation: "R"},
			&Statement{Type: KeyUpd, Relation: "R"})
		g.Nodes = append(g.Nodes, two)
	}
	for _, e := range s.edges {
		edge := Edge{From: int32(e.from[0] - 'A'), FromAt: int32(e.from[1] - '1'), To: int32(e.to[0] - 'A'),
			ToAt: int32(e.to[1] - '1'), Counterflow: e.counterflow}
		from, _ := g.Ends(edge)
		from.Statement = &Statement{Type: e.by, Relation: "R"}
		g.Edges = append(g.Edges, edge)
	}
	slices.SortFunc(g.Edges, compareEdges)
	return g
}

// robust reports what the rules find by a test.
func (s *shape) robust(r *rules, t Test) bool {
	d := r.digest(s.graph())
	_, found := d.find(fullBitset(len(d.next)), d.question(t))
	return !found
}

func (s *shape) ok(r *rules) bool {
	return s.robust(r, TypeII) == s.typeII && s.robust(r, TypeI) == s.typeI
}

// shapes are graphs for each condition of Algorithm 2. B is the pivot: what arrives comes from A and what departs goes
// to C.
func shapes() []shape {
	departs := drawnEdge{from: "B2", to: "C1", counterflow: true, by: KeySel}
	closes := drawnEdge{from: "C2", to: "A1", by: KeyUpd}
	at := func(place string, by Type) drawnEdge { return drawnEdge{from: "A2", to: place, by: by} }
	flowing := func(e drawnEdge) drawnEdge { e.counterflow = true; return e }
	all := []shape{
		{name: "the counterflow edge departs before the other arrives", edges: []drawnEdge{at("B3", KeyUpd), departs,
			closes}},
		{name: "it departs where the other arrives", edges: []drawnEdge{at("B2", KeyUpd), departs, closes},
			typeII: true},
		{name: "it departs behind", edges: []drawnEdge{at("B1", KeyUpd), departs, closes}, typeII: true},
		{name: "both are counterflow", edges: []drawnEdge{flowing(at("B1", KeyUpd)), departs, closes}},
		{name: "all are counterflow", edges: []drawnEdge{flowing(at("B1", KeyUpd)), departs, flowing(closes)},
			typeII: true},
		{name: "what is not counterflow leads away", edges: []drawnEdge{flowing(at("B1", KeyUpd)), departs,
			flowing(closes), {from: "C3", to: "D1", by: KeyUpd}}, typeII: true},
		{name: "what is not counterflow leads here", edges: []drawnEdge{flowing(at("B1", KeyUpd)), departs,
			flowing(closes), {from: "D1", to: "A3", by: KeyUpd}}, typeII: true},
		{name: "what is not counterflow is a detour", edges: []drawnEdge{flowing(at("B1", KeyUpd)), departs,
			flowing(closes),
			{from: "C3", to: "D1", by: KeyUpd}, flowing(drawnEdge{from: "D2", to: "A3", by: KeySel})}},
		{name: "it does not close", edges: []drawnEdge{at("B3", KeyUpd), departs}, typeII: true, typeI: true},
		{name: "the counterflow edge is on no cycle",
			edges: []drawnEdge{at("B3", KeyUpd), {from: "B1", to: "A1", by: KeyUpd}, departs}, typeII: true,
			typeI: true},
		{name: "nothing is counterflow", edges: []drawnEdge{at("B3", KeyUpd), {from: "B1", to: "A1", by: KeySel}},
			typeII: true, typeI: true},
		{name: "it closes by another", edges: []drawnEdge{at("B3", KeyUpd), departs, {from: "C2", to: "D1", by: KeyUpd},
			{from: "D2", to: "A1", by: KeyUpd}}},
		{name: "a program and itself", edges: []drawnEdge{{from: "A1", to: "A2", counterflow: true, by: KeySel},
			{from: "A1", to: "A2", by: KeySel}}},
		{name: "another pair of the pivot's", edges: []drawnEdge{at("B1", KeyUpd), at("B3", KeyUpd), departs, closes}},
	}
	for t := range Type(types) {
		reads := t == KeySel || t == PredSel || t == PredUpd || t == PredDel
		all = append(all, shape{name: "what arrives begins with " + t.String(),
			edges: []drawnEdge{at("B1", t), departs, closes}, typeII: !reads})
	}
	return all
}

func TestCyclesAreThoseOfAlgorithm2(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			for _, c := range []struct {
				test Test
				want bool
			}{{TypeII, s.typeII}, {TypeI, s.typeI}} {
				if got := s.robust(&theRules, c.test); got != c.want {
					t.Errorf("%s: robust %v, want %v", c.test, got, c.want)
				}
			}
		})
	}
}

// changes returns all rules that differ from the paper's in one place.
func changes() map[string]*rules {
	all := make(map[string]*rules)
	change := func(name string, how func(*rules)) {
		r := theRules
		r.ncSets, r.cSets = slices.Clone(r.ncSets), slices.Clone(r.cSets)
		how(&r)
		all[name] = &r
	}
	for i := range Type(types) {
		for j := range Type(types) {
			for _, v := range []verdict{never, bySets, always} {
				if theRules.ncDep[i][j] != v {
					change(fmt.Sprintf("Table 1a, %s to %s: %d", i, j, v), func(r *rules) { r.ncDep[i][j] = v })
				}
				if theRules.cDep[i][j] != v {
					change(fmt.Sprintf("Table 1b, %s to %s: %d", i, j, v), func(r *rules) { r.cDep[i][j] = v })
				}
			}
		}
		change("holders: "+i.String(), func(r *rules) { r.holders[i] = !r.holders[i] })
		change("readers: "+i.String(), func(r *rules) { r.readers[i] = !r.readers[i] })
	}
	for i := range theRules.ncSets {
		change(fmt.Sprint("ncDepConds without ", i+1), func(r *rules) { r.ncSets = slices.Delete(r.ncSets, i, i+1) })
	}
	for i := range theRules.cSets {
		change(fmt.Sprint("cDepConds without ", i+1), func(r *rules) { r.cSets = slices.Delete(r.cSets, i, i+1) })
		change(fmt.Sprint("cDepConds, foreign keys of ", i+1),
			func(r *rules) { r.cSets[i].unlessHeld = !r.cSets[i].unlessHeld })
	}
	for _, pair := range []setPair{{from: read, to: read}, {from: read, to: pread}, {from: pread, to: read},
		{from: pread, to: pread}} {
		change(fmt.Sprint("ncDepConds with ", pair), func(r *rules) { r.ncSets = append(r.ncSets, pair) })
		change(fmt.Sprint("cDepConds with ", pair), func(r *rules) { r.cSets = append(r.cSets, pair) })
	}
	return all
}

func TestEveryChangeOfTheRulesIsNoticed(t *testing.T) {
	all := changes()
	if n := 2 * 2 * types * types; len(all) < n {
		t.Fatalf("%d changes, want the tables' %d at least", len(all), n)
	}
	edges, cycles := probes(), shapes()
	for name, r := range all {
		if !slices.ContainsFunc(edges, func(p probe) bool { return !p.ok(r) }) &&
			!slices.ContainsFunc(cycles, func(s shape) bool { return !s.ok(r) }) {
			t.Errorf("%s: no case fails", name)
		}
	}
}

// compareEdges orders edges as [SummaryGraph].Edges has them.
func compareEdges(a, b Edge) int {
	c := cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To),
		cmp.Compare(a.FromAt, b.FromAt), cmp.Compare(a.ToAt, b.ToAt))
	if c != 0 || a.Counterflow == b.Counterflow {
		return c
	}
	if b.Counterflow {
		return -1
	}
	return 1
}

// TestAPivotNeedsAWayBack has a program read what others insert and change. It misses a change before it reads what was
// inserted, but nothing leads from it to who inserts: no level is needed.
func TestAPivotNeedsAWayBack(t *testing.T) {
	all := Of("id", "v")
	inserts := NewProgram("inserts", &Statement{Type: Ins, Relation: "R", Write: all})
	changes := NewProgram("changes", &Statement{Type: KeyUpd, Relation: "X", Read: Of("v"), Write: Of("v")})
	reads := NewProgram("reads", Sequence{&Statement{Type: KeySel, Relation: "X", Read: Of("v")},
		&Statement{Type: KeySel, Relation: "R", Read: Of("v")}})
	a := Analyze([]*Program{inserts, changes, reads}, Setting{})
	at := make([]Level, 3)
	if d, found := a.structure.find(fullBitset(3), a.mixed(at)); found {
		t.Fatalf("%v, by each pair", d)
	}
	if d, found := a.pivots().danger(at); found {
		t.Errorf("%v", d)
	}
}
