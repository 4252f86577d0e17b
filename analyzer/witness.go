package analyzer

import (
	"slices"

	"github.com/isotap/isotap/history"
)

func (a *Analyzer) edge(d dep) (Edge, error) { return a.edgeOf(d, make(map[int32]*history.Txn)) }

// edgeOf returns a dependency with all that it rests on. Loaded holds the transactions that the caller
// has order already.
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
	if d.version < 0 && d.next < 0 {
		return e, nil
	}
	o := a.order
	e.Row = o.rows.row(o.row(&d))
	if e.NotFound = d.version < 0; !e.NotFound {
		e.Version = o.historyTag(o.tagOf(d.version))
	}
	if d.next >= 0 {
		e.Next = o.historyTag(o.tagOf(d.next))
	}
	if d.access >= 0 {
		e.Current, e.NotFound, e.Wide = o.accesses[d.access].is(current), o.unfound(&d), o.wide(&d)
		e.BegunAgain, e.Kept = o.accesses[d.access].is(begunAgain), d.kind == wr && o.accesses[d.access].is(equal)
	}
	from, to := o.stmtsOf(&d)
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
