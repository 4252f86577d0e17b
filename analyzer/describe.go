package analyzer

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/programname"
)

// describe makes findings of the groups.
func (a *Analyzer) describe(c *collector) ([]*Finding, error) {
	c.settle()
	programs := newNamedPrograms(a)
	var findings []*Finding
	for _, g := range c.groups {
		f, err := a.finding(c, g, programs)
		if err != nil {
			return nil, err
		}
		findings = append(findings, f)
	}
	slightLast(findings)
	return findings, nil
}

// slightLast has what is slight come last. The others stay in their order.
func slightLast(findings []*Finding) {
	slices.SortStableFunc(findings, func(x, y *Finding) int { return cmp.Compare(x.rank(), y.rank()) })
}

func (a *Analyzer) finding(c *collector, g *group, programs *namedPrograms) (*Finding, error) {
	f := &Finding{ID: a.idOf(c, g), Anomaly: g.anomaly, Class: g.class, Count: g.count, First: g.first, Last: g.last,
		Patterns: g.patterns, ProgramSets: len(g.programs), Tables: c.tablesOf(g), Covers: g.covered(),
		Parts: a.partsOf(c, g), AtLeast: g.passedOver()}
	loaded := make(map[int32]*history.Txn)
	for _, d := range g.witness {
		e, err := a.edgeOf(d, loaded)
		if err != nil {
			return nil, err
		}
		f.Witness = append(f.Witness, e)
	}
	f.Family = a.family(f.Txns()...)
	for _, p := range a.inOrder(g) {
		f.Programs = append(f.Programs, programs.program(f.Family, p))
	}
	t := a.newExplainer(f, g)
	t.loaded = loaded
	f.Rule = t.rule()
	f.Summary = t.summary()
	f.Explanation = t.explanation()
	var err error
	if f.Lost, f.Slight, err = t.lost(); err != nil {
		return nil, err
	}
	f.Advice, err = t.advice()
	return f, err
}

// inOrder returns the programs of a group's witness in the order in which it meets them.
func (a *Analyzer) inOrder(g *group) []int32 {
	var order []int32
	add := func(t int32) {
		if t < 0 {
			return
		}
		p := a.store.txns[t].program
		if !slices.Contains(order, p) {
			order = append(order, p)
		}
	}
	for _, d := range g.witness {
		add(d.from)
		add(d.to)
	}
	return order
}

// namedPrograms are those of a report's findings, by their numbers in the store.
type namedPrograms struct {
	a     *Analyzer
	known map[int32]*Program
	namer programname.Namer
}

func newNamedPrograms(a *Analyzer) *namedPrograms {
	return &namedPrograms{a: a, known: make(map[int32]*Program)}
}

func (s *namedPrograms) program(family dbms.Family, p int32) *Program {
	if s.known[p] == nil {
		stmts, of := s.a.store.programs.stmts(p), &s.a.store.programs.list[p]
		s.known[p] = &Program{Name: s.namer.Program(family, of.actions, stmts), Action: of.actions.Only(), Stmts: stmts,
			Level: of.level, Count: of.count}
	}
	return s.known[p]
}

// idOf makes a finding's identity of its anomaly, its class and its statements, in any order; of its
// tables where there are too many sets of statements to tell them apart.
func (a *Analyzer) idOf(c *collector, g *group) string {
	return a.idOfLinks(c, g, g.links, g.patterns == 1)
}

// partsOf returns the identities that a group's sets of statements have by themselves, in order; nil where it has one.
func (a *Analyzer) partsOf(c *collector, g *group) []string {
	var parts []string
	for _, links := range g.parts {
		parts = append(parts, a.idOfLinks(c, g, links, true))
	}
	slices.Sort(parts)
	return slices.Compact(parts)
}

func (a *Analyzer) idOfLinks(c *collector, g *group, links []shapeEdge, whole bool) string {
	var parts []string
	for _, l := range links {
		parts = append(parts, a.linkText(c, l, whole))
	}
	slices.Sort(parts)
	parts = slices.Compact(parts)
	sum := sha256.Sum256([]byte(string(g.anomaly) + "\x01" + string(g.class) + "\x01" + strings.Join(parts, "\x01")))
	return hex.EncodeToString(sum[:6])
}

func (a *Analyzer) linkText(c *collector, l shapeEdge, whole bool) string {
	table := ""
	if l.table >= 0 {
		table = c.tables[l.table]
	}
	if !whole {
		return table
	}
	parts := []string{string(kindNames[l.kind]), table, l.fromLevel.String(), l.level.String()}
	for _, s := range []int32{l.from, l.to} {
		text := ""
		if s >= 0 {
			text = a.store.programs.classes[s].folded
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "\x00")
}

// tablesOf returns the tables that a group goes through, in order of their names.
func (c *collector) tablesOf(g *group) []string {
	var tables []string
	for _, l := range g.links {
		if l.table >= 0 {
			tables = append(tables, c.shown(l.table))
		}
	}
	slices.Sort(tables)
	return slices.Compact(tables)
}

// shown returns a folded table's name; its own name where it stands for one only.
func (c *collector) shown(table int32) string {
	var only string
	for t, n := range c.folded {
		if n != table {
			continue
		}
		name, _, _ := strings.Cut(c.o.rows.tables[t], "@")
		if only != "" && only != name {
			return c.tables[table]
		}
		only = name
	}
	return only
}
