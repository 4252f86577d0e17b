package analyzer

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
)

// describe makes findings of the groups: violations first, then the most frequent.
func (a *Analyzer) describe(c *collector) ([]*Finding, error) {
	slices.SortStableFunc(c.groups, func(x, y *group) int {
		return cmp.Or(-cmp.Compare(x.class, y.class), -cmp.Compare(x.count, y.count), cmp.Compare(x.first, y.first), cmp.Compare(x.anomaly, y.anomaly))
	})
	names := make(map[int32]*Program)
	var findings []*Finding
	for _, g := range c.groups {
		f, err := a.finding(g, names)
		if err != nil {
			return nil, err
		}
		findings = append(findings, f)
	}
	return findings, nil
}

func (a *Analyzer) finding(g *group, names map[int32]*Program) (*Finding, error) {
	f := &Finding{Anomaly: g.anomaly, Class: g.class, Count: g.count, First: g.first, Last: g.last}
	for _, p := range a.inOrder(g) {
		f.Programs = append(f.Programs, a.program(p, names))
	}
	f.ID = id(f)
	loaded := make(map[int32]*history.Txn)
	for _, d := range g.witness {
		e, err := a.edgeOf(d, loaded)
		if err != nil {
			return nil, err
		}
		f.Witness = append(f.Witness, e)
	}
	t := a.newTeller(f, g)
	f.Rule = t.rule()
	f.Summary = t.summary()
	f.Explanation = t.explanation()
	f.Advice = t.advice()
	return f, nil
}

// inOrder gives a group's programs in the order in which the witness meets them.
func (a *Analyzer) inOrder(g *group) []int32 {
	var met []int32
	meet := func(t int32) {
		if t < 0 {
			return
		}
		p := a.store.txns[t].program
		if slices.Contains(g.programs, p) && !slices.Contains(met, p) {
			met = append(met, p)
		}
	}
	for _, d := range g.witness {
		meet(d.from)
		meet(d.to)
	}
	return met
}

func (a *Analyzer) program(p int32, names map[int32]*Program) *Program {
	if names[p] == nil {
		names[p] = &Program{
			Name:  fmt.Sprintf("P%d", len(names)+1),
			Stmts: a.store.programs.stmts(p),
			Level: a.store.programs.list[p].level,
			Count: a.store.programs.list[p].count,
		}
	}
	return names[p]
}

// id makes a finding's identity of its anomaly, its class, and what its programs are, in any order.
func id(f *Finding) string {
	var programs []string
	for _, p := range f.Programs {
		programs = append(programs, p.Level.String()+"\x00"+strings.Join(p.Stmts, "\x00"))
	}
	slices.Sort(programs)
	sum := sha256.Sum256([]byte(string(f.Anomaly) + "\x01" + string(f.Class) + "\x01" + strings.Join(programs, "\x01")))
	return hex.EncodeToString(sum[:6])
}

func (a *Analyzer) edge(d dep) (Edge, error) { return a.edgeOf(d, make(map[int32]*history.Txn)) }

// edgeOf gives a dependency with all that it rests on. Loaded holds the transactions that the caller
// has met already.
func (a *Analyzer) edgeOf(d dep, loaded map[int32]*history.Txn) (Edge, error) {
	e := Edge{Kind: kindNames[d.kind], Inexact: d.inexact, Current: d.kind == ww}
	for _, end := range []struct {
		txn int32
		to  **history.Txn
	}{{d.from, &e.From}, {d.to, &e.To}} {
		if end.txn < 0 {
			continue
		}
		if loaded[end.txn] == nil {
			t, err := a.load(end.txn)
			if err != nil {
				return Edge{}, err
			}
			loaded[end.txn] = t
		}
		*end.to = loaded[end.txn]
	}
	if d.version < 0 {
		return e, nil
	}
	o := a.order
	e.Row = o.rows.row(o.row(&d))
	e.Version = o.historyTag(o.tagOf(d.version))
	from, to := e.Version.Stmt, uint32(0)
	if d.next >= 0 {
		e.Next = o.historyTag(o.tagOf(d.next))
		to = e.Next.Stmt
	}
	if d.access >= 0 {
		read := &o.accesses[d.access]
		e.Current = read.is(current)
		if d.kind == rw {
			from = read.stmt
		} else {
			to = read.stmt
		}
	}
	e.FromStmt, e.ToStmt = stmt(e.From, from), stmt(e.To, to)
	return e, nil
}

// stmt finds a transaction's statement by its number; nil when it is not there.
func stmt(t *history.Txn, num uint32) *history.Stmt {
	if t == nil {
		return nil
	}
	i := slices.IndexFunc(t.Stmts, func(s history.Stmt) bool { return s.Num == num })
	if i < 0 {
		return nil
	}
	return &t.Stmts[i]
}
