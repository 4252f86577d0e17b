package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
)

// Subqueries in the WHERE clause of a query in FROM, or of the WITH clause, are run again in that query's select list.
// It passes what they read outwards, as it does with its rows' identities. A row of the statement hangs on them as one
// of theirs does. That is for a query that is all there is in the statement's FROM clause: what bounds the time is
// volatile, and the server joins no table with the tables of a query that has such a column.

// A standing is how a query stands alone in the FROM clause of the statement.
type standing uint8

// Where it stands: there itself, or its name alone, in whose place the server puts it.
const (
	notAlone standing = iota
	aloneInFrom
	aloneByName
)

// onlyItem reports whether the walker is at the only item of the statement's FROM clause.
func (w *walker) onlyItem() bool {
	return w.tree != nil && w.around == w.tree && w.tree.Op == ast.SETOP_NONE && !w.joined
}

// lookWithin has a block in the statement's FROM clause show what the subqueries of its WHERE clause read. It reports
// whether that is so for all that read tables.
func (r *reading) lookWithin(b *block, u *usage, sc *scope) bool {
	n := b.n
	at := r.alone[n]
	if at == notAlone || !r.barred[n].IsZero() || r.of != nil || len(r.parts) > 0 || r.session.Serializable ||
		!r.runsSubqueriesAgain() || locks(r.tree) || b.grouped || b.unique || u.reachesOut(b.rels) || u.unsure ||
		u.volatile || hasSubquery(n.TargetList) || beyond(n.SortClause, b.columns()) || !r.plansAlike(b, u, at) {
		return false
	}
	others, err := r.inspect(n.DistinctClause, n.FromClause, n.WindowClause, n.SortClause, n.LimitCount, n.LimitOffset)
	s, here := seeker{planner: r.planner}, r.places.queries[n]
	if err != nil || others.subquery ||
		!s.seek(n.WhereClause, r.places.whereClause(here.listEnd+1, here.to), ofAll, nil) {
		return false
	}
	l := looker{reading: r, sc: sc, block: b}
	if !l.lookAt(s.links) || l.bar != nil {
		return false
	}
	if slices.ContainsFunc(l.found, func(c *besides) bool { return c.unless != nil }) {
		return false
	}
	for _, c := range l.found {
		s := &sight{source: c.source(b), exprs: []string{""}, types: []string{"pg_catalog.text[]"}, within: n,
			spelled: c.spell(r, b)}
		if at == aloneByName && !s.source.Whole { // what is volatile the server does not put in the place of a name
			s.spelled, s.unbounded = c.array(r.st), true
		}
		b.sights = append(b.sights, s)
	}
	return true
}

// plansAlike reports whether a volatile column in the block's list has the server do no more, and meet no other error.
// A query in FROM it does not make one with the statement then: what the statement asks of its rows is asked of them as
// before, unless that is a subquery's, and its list is made for each of them. One that only a name stands for has no
// volatile column, and the server must make it one with the statement.
func (r *reading) plansAlike(b *block, u *usage, at standing) bool {
	n, around := b.n, r.tree.WhereClause
	if at == aloneByName {
		return n.SortClause == nil && n.LimitCount == nil && n.LimitOffset == nil && !u.window && !hasCall(n.TargetList)
	}
	var links []link
	return !mayFail(n.TargetList) && conjuncts(around, &links) && !failing(false, around) &&
		(len(links) == 0 || !failing(false, n.WhereClause)) &&
		!slices.ContainsFunc(links, func(l link) bool { return !l.harmless() })
}

// passes bars what a query in the FROM clause shows of its subqueries where the block makes one row of several, and
// bounds the time that it takes elsewhere.
func (b *block) passes() error {
	for _, s := range b.sights {
		switch {
		case s.within == nil:
		case b.grouped || b.unique:
			return &queryRefusal{s.within, history.ReasonSubquery}
		case s.unbounded:
			s.exprs = []string{boundedFrom + s.exprs[0] + boundedTo}
		}
	}
	return nil
}
