package postgres

import (
	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// What a SELECT's list says of how many columns the client's result has.
type selectList int

const (
	starList  selectList = iota // stars alone, which a table without columns makes nothing of; or no SELECT
	emptyList                   // SELECT FROM t: none
	someList                    // one at least
)

// listOf returns what the list of a query says.
func listOf(n *ast.SelectStmt) selectList {
	for n.Op != ast.SETOP_NONE && n.Larg != nil {
		n = n.Larg
	}
	items := nodes(n.TargetList)
	switch {
	case len(nodes(n.ValuesLists)) > 0:
		return starList // VALUES takes no list, but a row may be a star
	case len(items) == 0 && !writesWithin(n.WithClause):
		return emptyList
	}
	for _, item := range items {
		if !expands(item) {
			return someList
		}
	}
	return starList
}

// expands reports whether an item of a list is a star, or a value with one: (f(x)).*.
func expands(item ast.Node) bool {
	t, ok := item.(*ast.ResTarget)
	if !ok || star(item) != nil {
		return true
	}
	_, within := t.Val.(*ast.A_Indirection)
	return within
}

// showsSome notes whether the client's result has a column for certain. A SELECT that says it has none is refused: the
// columns of a statement that returns nothing look as its own would.
func (pl *planner) showsSome() error {
	if pl.plan.Result.Reply != rewrite.Trimmed {
		return nil
	}
	pl.plan.Result.HasColumn = pl.list == someList
	if pl.list == emptyList {
		return refusal(history.ReasonNoColumns)
	}
	return nil
}
