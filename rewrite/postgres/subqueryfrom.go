package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
)

// In a subquery's FROM clause queries and views may stand in the place of tables. In the copy of the subquery a query
// passes the identities of its rows outwards, as one in the statement's own FROM clause does (ADR 12). Beside a view
// the rows that it is made of are looked up (ADR 35). The client's subquery stays as it is.

// A placeholder is a query or a view in the place of a table; optional says that an outer join may show no row of it.
type placeholder struct {
	item     ast.Node
	optional bool
}

// seeInto has the copy of a subquery, whose queries are at places in the text, show what the queries and views in its
// FROM clause read. It reports whether all of that can be shown.
func (l *looker) seeInto(q *subquery, places map[*ast.SelectStmt]querySpan, around []*relation) bool {
	if len(q.instead) == 0 {
		return true
	}
	stmt, plan, own := *q.query, *l.plan, *l.planner
	stmt.TargetList, stmt.FromClause, own.edits, own.plan = nil, q.joined, nil, &plan // the list is not copied
	r := newReading(&own, q.query, nil)
	r.stmt, r.places.queries = &stmt, places
	r.asked[q.query] = map[string]bool{"*": !q.exists}
	w := &walker{reading: r, filters: true, joined: true, around: q.query}
	for _, s := range q.tables { // which LATERAL may name
		w.rels = append(w.rels, &relation{ref: s.ref, base: s})
	}
	tables := len(w.rels)
	for _, at := range q.instead {
		if !l.plain(q, at.item) || w.walk(at.item, at.optional) != nil {
			return false
		}
	}
	if r.stmt = q.copied(); r.checkNames() != nil || !r.unseen.IsZero() || l.session.Serializable {
		return false
	}
	joined := *q.query
	joined.FromClause = q.joined
	b := &block{n: &joined}
	for _, rel := range w.rels[tables:] {
		if rel.grouped() && (rel.whole || r.hides(b, rel)) {
			return false // a group that is left out was read, too
		}
		if limits(rel.node) && r.hides(b, unkeyed(rel)) {
			return false // so was a row that takes the place of another one
		}
		same := func(o *relation) bool { return o.ref == rel.ref }
		if rel.ref == "" || slices.ContainsFunc(q.relations(), same) || slices.ContainsFunc(around, same) {
			return false
		}
		for _, s := range rel.sights {
			switch {
			case s.text == "":
				return false
			case s.nullable:
				s.text = "CASE WHEN " + s.exprs[0] + " IS NOT NULL THEN " + s.text + " END"
			}
		}
		q.common = append(q.common, rel)
	}
	q.edits, l.whole = r.sorted(), own.whole
	return !l.mayConfuse(q, around)
}

// copied is what the copies of a query, and of what is evaluated for each of its rows, have of it.
func (q *subquery) copied() *ast.SelectStmt {
	stmt := *q.query
	stmt.TargetList = ast.NewNodeList()
	for _, item := range nodes(q.query.TargetList) {
		for _, link := range sublinks(item) {
			stmt.TargetList.Append(&ast.ResTarget{Val: link.SubLink})
		}
	}
	return &stmt
}

// plain reports whether a query in FROM reads the rows of tables alone, each for itself or all of a group, by
// conditions without subqueries; its own tables are added to the subquery's. A view it knows nothing of.
func (l *looker) plain(q *subquery, item ast.Node) bool {
	from, ok := bare(item).(*ast.RangeSubselect)
	if !ok {
		return true
	}
	if hasSubquery(from) || locks(from) {
		return false
	}
	plain := true
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectStmt:
			u, err := l.inspect(n.TargetList)
			plain = plain && err == nil && !u.window && !u.unsure && n.WithClause == nil &&
				(n.Op == ast.SETOP_NONE || n.All && n.Op == ast.SETOP_UNION) && len(nodes(n.DistinctClause)) == 0 &&
				n.HavingClause == nil && (n.LimitCount == nil && n.LimitOffset == nil || n == from.Subquery && l.byKeys(n))
		case *ast.RangeVar:
			plain = plain && l.aTable(q, n)
		}
		return plain
	}, from)
	return whole && plain
}

// limits reports whether a query, or an item of a FROM clause that is one, shows some of its rows.
func limits(n ast.Node) bool {
	if from, ok := n.(*ast.RangeSubselect); ok {
		n = from.Subquery
	}
	q, ok := n.(*ast.SelectStmt)
	return ok && (q.LimitCount != nil || q.LimitOffset != nil)
}

// fromMayFail reports whether the FROM clause of a subquery may fail for a row. Sums of whole numbers do not.
func (l *looker) fromMayFail(q *subquery) bool {
	own := *l.planner
	own.sums = func(n *ast.FuncCall) bool { return n.Over == nil && l.sumsWhole(n, q.inner) }
	return own.failing(true, q.joined)
}

// aTable reports whether a name in a query in FROM is that of a table, which it adds to the subquery's inner ones.
func (l *looker) aTable(q *subquery, n *ast.RangeVar) bool {
	if n.SchemaName == "" && (l.inWith(n) || slices.Contains(l.silent, n.RelName)) {
		return false
	}
	t, _ := l.table(n)
	if t == nil {
		return false
	}
	s, err := l.sourceOf(t, n)
	q.inner = append(q.inner, &relation{ref: s.ref, base: &s})
	return err == nil
}

// mayConfuse reports whether a name in a subquery may be one of the relations around it, and of a table in a query in
// its FROM clause: whether the subquery hangs on the row is not known then.
func (l *looker) mayConfuse(q *subquery, around []*relation) bool {
	both := func(is func(*relation) bool) bool {
		return slices.ContainsFunc(q.inner, is) && slices.ContainsFunc(around, is)
	}
	bad := false
	whole := pgtree.Walk(func(n ast.Node) bool {
		if ref, ok := n.(*ast.ColumnRef); ok {
			names := ofTable(ref)
			bad = bad || both(func(rel *relation) bool {
				return rel.ref == names[0] || len(names) == 1 && rel.has(names[0])
			})
		}
		return !bad
	}, q.query)
	return bad || !whole
}

// view returns the view that a name means, if the copy of a subquery may read it once more; nil where it is none.
func (l *looker) view(n *ast.RangeVar) *Table {
	t, reason := l.lookup(n)
	if !reason.IsZero() || t == nil || !t.View || t.Materialized || t.NotAgain || !t.OtherSources.IsZero() {
		return nil
	}
	return t
}

// copyFrom adds the FROM clause of a subquery as its copy has it.
func (s *spelling) copyFrom(st *statement, q *subquery) {
	at := st.toks[q.from].Start
	for _, e := range q.edits {
		*s = append(*s, edit{from: at, to: e.start}, edit{text: e.text, from: e.from, to: e.to})
		at = e.end
	}
	if to := st.toks[q.fromEnd-1].End; at < to {
		*s = append(*s, edit{from: at, to: to})
	}
}
