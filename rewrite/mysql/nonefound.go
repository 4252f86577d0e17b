package mysql

import (
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
)

// A row that meets NOT EXISTS (...) hangs on no row that the subquery found: there was none. Nothing need be run again
// to know that (ADR 62).

// readsNone reports whether the subqueries of a statement read no row for any of the rows that meet its condition: each
// stands there behind NOT EXISTS, and names the row. Around are the statement's tables.
func (pl *planner) readsNone(n ast.Node, where ast.ExprNode, around sources) bool {
	queries := pl.unmatched(n, where)
	for _, q := range queries {
		srcs := pl.tablesRead(q)
		if srcs == nil || !refersTo(q, srcs, around) {
			return false
		}
	}
	return len(queries) > 0
}

// tablesOf returns the tables of a write, under their names; nil where there are others.
func (pl *planner) tablesOf(refs *ast.TableRefsClause) sources {
	if refs == nil {
		return nil
	}
	srcs := flatten(refs.TableRefs)
	if !pl.baseSources(srcs) {
		return nil
	}
	return srcs
}

// unmatched returns the queries of a statement's subqueries if all stand behind NOT EXISTS in parts of its condition
// that each row meets; none otherwise.
func (pl *planner) unmatched(n ast.Node, where ast.ExprNode) (queries []*ast.SelectStmt) {
	for _, e := range parts(where, nil) {
		if q := notExists(e); q != nil {
			queries = append(queries, q)
		}
	}
	var all subqueryCount
	n.Accept(&all)
	if int(all) != len(queries) || pl.st.executable() >= 0 {
		return nil
	}
	return queries
}

// notExists returns the query of NOT EXISTS; nil where an expression is none.
func notExists(e ast.ExprNode) *ast.SelectStmt {
	negated := false
	for {
		switch of := e.(type) {
		case *ast.ParenthesesExpr:
			e = of.Expr
		case *ast.UnaryOperationExpr:
			if of.Op != opcode.Not && of.Op != opcode.Not2 {
				return nil
			}
			negated, e = !negated, of.V
		case *ast.ExistsSubqueryExpr:
			n, ok := subqueryOf(of.Sel)
			if !ok || of.Not == negated {
				return nil
			}
			return n
		default:
			return nil
		}
	}
}

// tablesRead returns the tables of a query if it has a row for each of theirs that meets its condition; nil otherwise.
func (pl *planner) tablesRead(n *ast.SelectStmt) sources {
	if n.Kind != ast.SelectStmtKindSelect || n.From == nil || n.With != nil || n.LockInfo != nil ||
		n.SelectIntoOpt != nil || n.GroupBy != nil || n.Having != nil || n.Limit != nil && !plainLimit(n.Limit) {
		return nil
	}
	pl.literal = pl.literal || n.Limit != nil
	used, srcs := aggregatesOf(n), flatten(n.From.TableRefs)
	if used.sums || used.extremes || used.distinct || !pl.baseSources(srcs) {
		return nil
	}
	return srcs
}

// A subqueryCount counts the subqueries of a statement, and those within them.
type subqueryCount int

// Enter implements ast.Visitor.
func (c *subqueryCount) Enter(n ast.Node) (ast.Node, bool) {
	if _, ok := n.(*ast.SubqueryExpr); ok {
		*c++
	}
	return n, false
}

// Leave implements ast.Visitor.
func (c *subqueryCount) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// lookForNone has an INSERT ... SELECT say that it made a row, if its subqueries have found none then. It reports
// whether that is so for all of them.
func (pl *planner) lookForNone(n *ast.InsertStmt, sel *ast.SelectStmt) bool {
	if len(n.OnDuplicate) > 0 || !pl.beyond.returning.empty() {
		return false
	}
	queries := pl.unmatched(n, sel.Where)
	var found []*besides
	for _, q := range queries {
		srcs := pl.tablesRead(q)
		if srcs == nil {
			return false
		}
		found = append(found, &besides{of: srcs[0], node: q, whole: true, none: true})
	}
	pl.besides = found
	return len(found) > 0
}
