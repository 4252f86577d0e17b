package postgres

import (
	"reflect"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
)

// proven returns the tree of the statement with its edits, and an error unless the list that of returns of it is the
// client's with the items behind it that were meant to be added. The grammar being what it is, everything else then
// reads as before, but for what edits further ahead change.
func (pl *planner) proven(before []ast.Node, added string, of func(ast.Stmt) *ast.NodeList) (ast.Stmt, error) {
	if !pl.session.utf8() && !ascii(added) {
		return nil, refusal(history.ReasonCharset) // the schema spells names in UTF-8
	}
	wanted, err := parse("SELECT " + added)
	if err != nil {
		return nil, err
	}
	tail := nodes(wanted.(*ast.SelectStmt).TargetList)
	start, end := pl.st.span()
	tree, err := parse(pl.readable(spliced(pl.st.text, start, end, pl.sorted())))
	if err != nil {
		return nil, err
	}
	after := nodes(of(tree))
	if len(after) != len(before)+len(tail) {
		return nil, refusal(history.ReasonUnparsable)
	}
	for i, want := range tail {
		if !reflect.DeepEqual(after[len(before)+i], want) {
			return nil, refusal(history.ReasonUnparsable)
		}
	}
	return tree, pl.provenTags(tree)
}
