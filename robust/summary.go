package robust

import "slices"

// A Setting says what counts as a conflict (7.2).
type Setting struct {
	// Tuples has statements conflict when they use the same tuple, whichever of its attributes ("tpl dep"). Without it
	// they conflict when they use an attribute in common ("attr dep"). What is robust with it is robust without it.
	Tuples bool
	// ForeignKeys has the programs' foreign keys rule out what they make impossible ("+ FK").
	ForeignKeys bool
}

// Settings are the paper's four, in the order of Figures 6 and 7. The last one finds the most programs robust.
var Settings = []Setting{{Tuples: true}, {}, {Tuples: true, ForeignKeys: true}, {ForeignKeys: true}}

// String returns the paper's name.
func (s Setting) String() string {
	name := "attr dep"
	if s.Tuples {
		name = "tpl dep"
	}
	if s.ForeignKeys {
		name += " + FK"
	}
	return name
}

// A SummaryGraph is SuG(P) (6.1): all dependencies that runs of the programs can have under MVRC.
type SummaryGraph struct {
	Setting Setting
	Nodes   []*LTP
	Edges   []Edge // in the order of their ends
}

// An Edge is a quintuple (P_i, q_i, c, q_j, P_j): an operation of q_j in a run of P_j can depend on one of q_i in a run
// of P_i. The programs are places in the graph's Nodes, the statements places in the programs; all count from 0.
type Edge struct {
	From, FromAt int32 // P_i, q_i
	To, ToAt     int32 // P_j, q_j
	Counterflow  bool  // c: that P_j commits first
}

// Counterflows counts the counterflow edges.
func (g *SummaryGraph) Counterflows() int {
	n := 0
	for i := range g.Edges {
		if g.Edges[i].Counterflow {
			n++
		}
	}
	return n
}

// Ends returns the two statements of an edge.
func (g *SummaryGraph) Ends(e Edge) (from, to *Occurrence) {
	return &g.Nodes[e.From].Statements[e.FromAt], &g.Nodes[e.To].Statements[e.ToAt]
}

// Summarize constructs the summary graph of linear programs (Algorithm 1, constructSuG). A program has edges to itself:
// two runs of it may depend on each other.
func Summarize(programs []*LTP, s Setting) *SummaryGraph { return theRules.summarize(programs, s) }

func (r *rules) summarize(programs []*LTP, s Setting) *SummaryGraph {
	g := &SummaryGraph{Setting: s, Nodes: programs}
	places := placesOf(programs)
	toward := make([]int, len(programs)) // scratch of inOrder
	var out []Edge
	for from, p := range programs {
		out = out[:0]
		for at := range p.Statements {
			for _, to := range places[p.Statements[at].Relation] {
				e := Edge{From: int32(from), FromAt: int32(at), To: to.program, ToAt: to.at}
				if r.admits(g, e) {
					out = append(out, e)
				}
				e.Counterflow = true
				if r.admits(g, e) {
					out = append(out, e)
				}
			}
		}
		g.Edges = inOrder(g.Edges, out, toward)
	}
	return g
}

// A place is a statement of a program.
type place struct{ program, at int32 }

// placesOf returns the statements over each relation, in order: only these conflict.
func placesOf(programs []*LTP) map[string][]place {
	places := make(map[string][]place)
	for i, p := range programs {
		for at := range p.Statements {
			rel := p.Statements[at].Relation
			places[rel] = append(places[rel], place{int32(i), int32(at)})
		}
	}
	return places
}

// inOrder appends edges that begin in one program to others, in the order of the programs where they end. Those between
// the same two programs stay in their order. Toward has a number for each program, all 0, and has that again.
func inOrder(edges, out []Edge, toward []int) []Edge {
	for i := range out {
		toward[out[i].To]++
	}
	at := len(edges)
	for to, n := range toward {
		toward[to], at = at, at+n
	}
	edges = slices.Grow(edges, len(out))[:at]
	for i := range out {
		edges[toward[out[i].To]] = out[i]
		toward[out[i].To]++
	}
	clear(toward)
	return edges
}

// admits reports whether there can be a dependency as the edge says.
func (r *rules) admits(g *SummaryGraph, e Edge) bool {
	from, to := g.Ends(e)
	entry := &r.ncDep
	if e.Counterflow {
		entry = &r.cDep
	}
	switch entry[from.rule()][to.rule()] {
	case never:
		return false
	case always:
		return true
	}
	if e.Counterflow {
		return r.cDepConds(g, e)
	}
	return anyMatches(r.ncSets, from, to, g.Setting) // ncDepConds
}

// anyMatches reports whether one of the pairs of sets has an attribute in common.
func anyMatches(pairs []setPair, from, to *Occurrence, s Setting) bool {
	return slices.ContainsFunc(pairs, func(p setPair) bool { return p.matches(from, to, s) })
}

// cDepConds is Algorithm 1's function of this name.
func (r *rules) cDepConds(g *SummaryGraph, e Edge) bool {
	from, to := g.Ends(e)
	return slices.ContainsFunc(r.cSets, func(p setPair) bool {
		return p.matches(from, to, g.Setting) && !(p.unlessHeld && g.Setting.ForeignKeys && r.held(g, e))
	})
}

func (p setPair) matches(from, to *Occurrence, s Setting) bool {
	a, b := from.set(p.from), to.set(p.to)
	if s.Tuples {
		// Each operation uses all attributes of its tuples.
		return a.Defined() && b.Defined()
	}
	return a.Meets(b)
}

// set returns one of the statement's sets.
func (q *Statement) set(o operation) Set {
	switch o {
	case pread:
		return q.PRead
	case read:
		return q.Read
	}
	return q.Write
}

// held reports whether where both statements use the same tuple, both transactions held the tuple that it refers to
// before. Then the one ended before the other came so far.
func (r *rules) held(g *SummaryGraph, e Edge) bool {
	from, to := g.Ends(e)
	for _, k := range from.Parents {
		for _, l := range to.Parents {
			same := k.ForeignKey == l.ForeignKey
			if same && r.holdsBefore(g.Nodes[e.From], k, e.FromAt) && r.holdsBefore(g.Nodes[e.To], l, e.ToAt) {
				return true
			}
		}
	}
	return false
}

// holdsBefore reports whether the parent comes before its child, and keeps others from its tuple until the transaction
// ends.
func (r *rules) holdsBefore(l *LTP, parent Parent, child int32) bool {
	q := &l.Statements[parent.At]
	return r.holders[q.rule()] && q.Lock != ShareLock && parent.At < int(child)
}
