package mysql

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// TiDB runs a subquery that hangs on no row once, before it makes the statement's plan, in which the value then stands
// as a constant, however often the statement is tried again (ADR 62). A copy is run beside it, of the same snapshot.

// lookIntoUpdateTiDB finds what shows what the subqueries of an UPDATE's condition read on TiDB: scalar ones that
// aggregate, or look up a row by its key, and hang on no row. It reports whether that is so for all of them.
func (pl *planner) lookIntoUpdateTiDB(n *ast.UpdateStmt, t *Table) bool {
	srcs := flatten(n.TableRefs.TableRefs)
	if pl.session.WriteReads == NotAgain || pl.st.executable() >= 0 || pl.rewriter.options.StrictPlans || pl.st.Placeholders > 0 ||
		n.Where == nil || n.Order != nil && hasSubquery(n.Order) || strings.ContainsAny(pl.st.SQL, "\\\"") || !pl.baseSources(srcs) {
		return false
	}
	for _, a := range n.List {
		if hasSubquery(a.Expr) {
			return false
		}
	}
	b := &block{srcs: srcs, dialect: pl.session.Dialect}
	var links []link
	if !conjuncts(n.Where, &links) {
		return false
	}
	var found []*besides
	for i := range links {
		at := &links[i]
		if at.exists || at.set || at.equal != nil {
			return false // the server may make a join of it
		}
		columns, ok := pl.look(at, b)
		if !ok || len(columns) != 1 || !columns[0].whole || !readsAll(at.query, columns[0].of) {
			return false
		}
		found = append(found, columns...)
	}
	return pl.keepBesides(found, true, t)
}
