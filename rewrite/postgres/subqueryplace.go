package postgres

import (
	"reflect"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// place finds the clauses of a subquery's query in the text.
func (l *looker) place(q *subquery, at link, around []*relation) bool {
	st := l.st
	p, here, placed := l.placed(at, q.query)
	if !placed || !st.is(here.from, "SELECT") {
		return false
	}
	q.list = span{here.from + 1, here.listEnd + 1}
	q.from = p.clause(here.from+1, here.to)
	if !st.is(q.from, "FROM") || q.from >= here.to {
		return false
	}
	q.where = p.clause(q.from+1, here.to)
	if q.end, q.fromEnd = q.where, q.where; st.is(q.where, "WHERE") && q.where < here.to {
		q.end = p.clause(q.where+1, here.to)
	}
	return q.limited(p, here.to) && q.beforeHanging(p) && l.seeInto(q, p.queries, around)
}

// placed finds a query that a subquery is, has, or takes by a name of the WITH clause.
func (l *looker) placed(at link, n *ast.SelectStmt) (p *placer, here querySpan, placed bool) {
	if here, placed = l.places.queries[n]; placed && l.with != nil {
		return &l.places, here, true
	}
	if p = l.located(at.Subselect.(*ast.SelectStmt)); p != nil {
		here, placed = p.queries[n]
	}
	return p, here, placed
}

// located finds a query in the text, where it stands in parentheses; nil where it is not certain which one it is. Of
// two that differ in literals only it is not: the plan must hold for all texts that differ in these.
func (l *looker) located(whole *ast.SelectStmt) *placer {
	st, found := l.st, -1
	for i := range st.toks {
		if !st.mark(i, "(") || !st.is(i+1, "SELECT") && !st.mark(i+1, "(") {
			continue
		}
		closing := st.closing(i)
		if closing < 0 {
			return nil
		}
		tree, err := parse(l.readable(st.text[st.toks[i+1].Start:st.toks[closing-1].End]))
		if err != nil || !reflect.DeepEqual(tree, ast.Stmt(whole)) {
			continue
		}
		found = i
		break
	}
	if found < 0 {
		return nil
	}
	closing := st.closing(found)
	for i := range st.toks {
		if i != found && st.mark(i, "(") && st.sameWords(found, i, closing-found+1) {
			return nil
		}
	}
	p := &placer{statement: st, queries: make(map[*ast.SelectStmt]querySpan)}
	if p.place(whole, found+1, closing) != nil {
		return nil
	}
	return p
}

// sameWords reports whether as many tokens from two places on are the same but for literals.
func (st *statement) sameWords(a, b, count int) bool {
	for k := range count {
		if b+k >= len(st.toks) || st.toks[a+k].Kind != st.toks[b+k].Kind {
			return false
		}
		switch st.toks[a+k].Kind {
		case pgtoken.Number, pgtoken.String:
		default:
			if st.tok(a+k) != st.tok(b+k) {
				return false
			}
		}
	}
	return true
}

// typed reports whether parameters in what is copied have the types that they have without the copy: each occurs once
// in the statement. The server takes a parameter's type from where it meets it first.
func (l *looker) typed(q *subquery) bool {
	st := l.st
	for _, at := range []span{{q.from, q.end}, q.limit, q.offset} {
		for i := at.from; i < at.to; i++ {
			if st.toks[i].Kind == pgtoken.Param && !st.once(i) {
				return false
			}
		}
	}
	return true
}
