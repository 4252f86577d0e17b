package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"
)

// Of a query in a FROM clause the server computes the columns that something around it asks for. Where it puts all rows
// into one, and nothing asks for an aggregate, it reads no row.

// ask takes note of which columns of a query in its FROM clause the block surely asks for. The server leaves an outer
// join out whose optional side serves its condition alone, so that conditions of joins ask nothing of that side.
func (w *walker) ask(query *ast.SelectStmt, ref string, renames []ast.Node, nullable bool) {
	shown := w.around
	if w.inPlace(shown) {
		shown = w.of
	}
	list := w.askedList()
	parts := append(slices.Clone(list), w.around.WhereClause, shown.GroupClause, shown.HavingClause, shown.WindowClause,
		shown.DistinctClause, shown.SortClause)
	if !nullable {
		parts = append(parts, w.around.FromClause)
	}
	u, err := w.inspect(parts...)
	if err != nil {
		return
	}
	l, before := &looker{reading: w.reading}, w.rels[:len(w.rels)-1] // what columns others have is not known yet
	for _, item := range list {
		l.surelyNamed(item, u.columns, before)
	}
	isColumn := slices.ContainsFunc(before, func(rel *relation) bool { return rel.has(ref) })
	asked := map[string]bool{"*": u.columns["*"] || u.columns[ref] && !isColumn}
	for name := range u.columns {
		column, _ := strings.CutPrefix(name, ref+".")
		asked[column] = true
	}
	w.asked[query] = ownNames(query, renames, asked)
}

// askedList returns what of the block's select list, and of what its statement writes, is surely asked for.
func (w *walker) askedList() (list []ast.Node) {
	asked, noted := w.asked[w.around]
	switch {
	case w.inPlace(w.around):
		return slices.Clone(nodes(w.of.TargetList))
	case noted, !isOperand(w.tree, w.around):
		all := func(*ast.ColumnRef) bool { return true }
		return askedItems(nodes(w.around.TargetList), asked, all)
	}
	list = slices.Clone(nodes(w.around.TargetList))
	if w.around != w.tree {
		return list
	}
	if n, ok := w.stmt.(*ast.MergeStmt); ok {
		return append(list, n.MergeWhenClauses)
	}
	return append(list, assigned(w.stmt)...)
}

// isOperand reports whether a query is a statement's, or one of those that its set operations join.
func isOperand(tree, n *ast.SelectStmt) bool {
	return tree == n || tree != nil && tree.Op != ast.SETOP_NONE && (isOperand(tree.Larg, n) || isOperand(tree.Rarg, n))
}

// ownNames returns the names that a query itself has for columns which something asks of it by others.
func ownNames(query *ast.SelectStmt, renames []ast.Node, asked map[string]bool) map[string]bool {
	if len(renames) == 0 {
		return asked
	}
	own := map[string]bool{"*": asked["*"]}
	for i, item := range nodes(firstOf(query).TargetList) {
		name := shownName(item)
		if _, twice := own[name]; twice || star(item) != nil {
			return map[string]bool{"*": asked["*"]} // which columns these are called by is not known
		}
		if i < len(renames) {
			own[name] = asked[renames[i].(*ast.String).SVal]
		} else {
			own[name] = asked[name]
		}
	}
	return own
}

// shownName is the name of an item of a select list, that of its function where it has none of its own.
func shownName(item ast.Node) string {
	name := resultName(item)
	if t, ok := item.(*ast.ResTarget); ok && name == "" {
		if call, ok := bare(t.Val).(*ast.FuncCall); ok {
			return lastName(call.Funcname)
		}
	}
	return name
}

// unasked reports whether a query in the FROM clause puts all rows into one, and nothing surely asks for what it
// computes of them. The server reads no row then, and isotap's own aggregate would have it read all.
func (w *walker) unasked(query *ast.SelectStmt, nullable bool) bool {
	if query.Op != ast.SETOP_NONE || query.GroupClause != nil || w.asked[query]["*"] {
		return false
	}
	own, err := w.inspect(query.TargetList, query.HavingClause, query.SortClause)
	if err != nil || !own.aggregate {
		return false
	}
	if query.HavingClause != nil && !nullable {
		return false // whether there is a row hangs on all of them
	}
	return !slices.ContainsFunc(nodes(query.TargetList), func(item ast.Node) bool {
		of, err := w.inspect(item)
		return err == nil && (of.aggregate || query.HavingClause != nil) && w.asked[query][shownName(item)]
	})
}

// leavesAggregates reports so of a query that is all of a subquery's FROM clause.
func (l *looker) leavesAggregates(query *ast.SelectStmt, asked wanting) bool {
	own, err := l.inspect(query.TargetList)
	if err != nil || query.Op != ast.SETOP_NONE || !own.aggregate || query.GroupClause != nil || query.HavingClause != nil {
		return err != nil
	}
	return asked != nil && !slices.ContainsFunc(nodes(query.TargetList), func(item ast.Node) bool {
		of, err := l.inspect(item)
		return err == nil && of.aggregate && asked(shownName(item))
	})
}

// askedOf returns the items of a block's select list that the block around surely asks for; of stars, references to the
// columns by their names. It matters at SERIALIZABLE alone, where indexes are locked.
func (r *reading) askedOf(b *block) []ast.Node {
	if !r.session.Serializable {
		return askedItems(nodes(b.n.TargetList), nil, b.expands)
	}
	return askedItems(nodes(b.n.TargetList), r.asked[b.n], b.expands)
}

// askedItems returns the items of a select list that are asked for by their names. Of stars that expand to columns of
// the query's own tables these are references to columns.
func askedItems(all []ast.Node, asked map[string]bool, expands func(*ast.ColumnRef) bool) (list []ast.Node) {
	for _, item := range all {
		t, ok := item.(*ast.ResTarget)
		if !ok {
			continue
		}
		ref := star(item)
		switch {
		case ref != nil && !expands(ref): // it shows columns of a block around
			list = append(list, t)
		case ref != nil:
			for name, is := range asked {
				if is {
					list = append(list, ast.NewColumnRef(ast.NewString(name)))
				}
			}
		case asked["*"] || asked[resultName(t)]:
			list = append(list, t)
		}
	}
	return list
}
