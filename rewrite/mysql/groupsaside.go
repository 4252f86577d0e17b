package mysql

import (
	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
)

// Beside arrays of its groups' rows a statement is grouped in another way, and then the server may say another type of
// a column, or warn more often. Beside a subquery that names none of its rows, and is computed once, it is grouped as
// before: so that shows all rows that are grouped (ADR 10, ADR 62).

// groupedAside has a statement that cannot have arrays in its groups show the rows that it groups by such subqueries.
// It returns why not where it does not; refused is why it has no arrays.
func (pl *planner) groupedAside(n *ast.SelectStmt, refused error) error {
	switch reasonOf(refused) {
	case history.ReasonAggregate, history.ReasonWarnings:
	default:
		return refused
	}
	use := pl.inspectSelect(n)
	if n != pl.alone || n.GroupBy == nil || n.From == nil || n.Limit != nil || n.With != nil || n.LockInfo != nil ||
		use.function || use.window || !pl.readsAgain(n) {
		return refused
	}
	srcs := flatten(n.From.TableRefs)
	read, ok := pl.groupedRows(n, srcs)
	if !ok || positionBeyond(n, srcs) {
		return refused
	}
	list, err := pl.selectList(n)
	// MySQL reads what a LEFT JOIN adds, MariaDB not where nothing asks for it.
	if err != nil || !pl.tellAside(read, mayHave{outer: pl.session.Dialect == MySQL}) {
		return refused
	}
	return pl.appendBesides(&block{n: n, srcs: srcs, list: list, grouped: true, dialect: pl.session.Dialect})
}

// groupedRows returns the query of the rows that a statement groups: the statement, or the only query in its FROM
// clause, if it takes all rows of that. It reports whether HAVING leaves none of them out.
func (pl *planner) groupedRows(n *ast.SelectStmt, srcs sources) (read *ast.SelectStmt, ok bool) {
	if pl.baseSources(srcs) {
		return n, n.Having == nil || choosesGroups(n, srcs)
	}
	if len(srcs) != 1 || n.Where != nil || srcs[0].node.Lateral || srcs[0].node.AsName.L == "" || len(srcs[0].node.ColumnNames) > 0 {
		return nil, false
	}
	q, ok := srcs[0].node.Source.(*ast.SelectStmt)
	if !ok || q.From == nil || !showsRows(q) || hasSubquery(q.Fields) || q.OrderBy != nil {
		return nil, false
	}
	unnamed := *n // what HAVING names may be a column of that query
	unnamed.Fields = &ast.FieldList{}
	return q, n.Having == nil || choosesGroups(&unnamed, nil)
}
