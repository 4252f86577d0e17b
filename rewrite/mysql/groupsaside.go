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
		use.function || use.window || len(pl.edits) > 0 || !pl.readsAgain(n) {
		return refused
	}
	srcs := flatten(n.From.TableRefs)
	if !pl.baseSources(srcs) || positionBeyond(n, srcs) || n.Having != nil && !choosesGroups(n, srcs) {
		return refused
	}
	list, err := pl.selectList(n)
	if err != nil || !pl.tellAside(n) {
		return refused
	}
	return pl.appendBesides(&block{n: n, srcs: srcs, list: list, grouped: true, dialect: pl.session.Dialect})
}
