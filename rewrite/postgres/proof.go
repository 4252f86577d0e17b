package postgres

import (
	"reflect"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
)

// proven reports whether the statement with its edits has a list, as given by of, that holds n items more than
// the client's, and whether these are the ones that were meant to be added. The grammar being what it is,
// everything else then reads as before.
func (pl *planner) proven(before []ast.Node, added string, of func(ast.Stmt) *ast.NodeList) error {
	if !pl.session.utf8() && !ascii(added) {
		return refusal(history.ReasonCharset) // the schema spells names in UTF-8
	}
	wanted, err := parse("SELECT " + added)
	if err != nil {
		return err
	}
	tail := nodes(wanted.(*ast.SelectStmt).TargetList)
	start, end := pl.st.span()
	tree, err := parse(pl.readable(spliced(pl.st.text, start, end, pl.edits)))
	if err != nil {
		return err
	}
	after := nodes(of(tree))
	if len(after) != len(before)+len(tail) {
		return refusal(history.ReasonUnparsable)
	}
	for i, want := range tail {
		if !reflect.DeepEqual(after[len(before)+i], want) {
			return refusal(history.ReasonUnparsable)
		}
	}
	return pl.provenTags(tree)
}

func returningList(s ast.Stmt) *ast.NodeList {
	switch n := s.(type) {
	case *ast.InsertStmt:
		return n.ReturningList
	case *ast.UpdateStmt:
		return n.ReturningList
	case *ast.DeleteStmt:
		return n.ReturningList
	case *ast.MergeStmt:
		return n.ReturningList
	}
	return nil
}
