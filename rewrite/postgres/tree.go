package postgres

import (
	"reflect"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// rewrite decides what becomes of a statement that the verb alone does not settle. Its errors are refusals.
func (pl *planner) rewrite() error {
	if !pl.session.utf8() && !pl.plainNames() {
		return refusal(history.ReasonCharset)
	}
	if pl.session.Version >= 18 {
		pl.versions = pl.st.versionNames()
	}
	declares := pl.plan.Session.Cursor != nil
	if declares {
		_, query := pl.st.declaration()
		pl.st = &statement{text: pl.st.text, toks: pl.st.toks[query:]}
	}
	tree, err := parse(pl.readable(pl.st.source()))
	if err != nil {
		return err
	}
	if n, ok := tree.(*ast.SelectStmt); ok && declares {
		return pl.declare(n)
	} else if declares {
		return refusal(history.ReasonUnparsable)
	}
	if writesWithin(withOf(tree)) {
		return pl.writingWith(tree)
	}
	if n, ok := tree.(*ast.SelectStmt); ok {
		return pl.selectRows(n)
	}
	return pl.write(tree)
}

// write plans a statement that writes.
func (pl *planner) write(tree ast.Node) error {
	switch n := tree.(type) {
	case *ast.InsertStmt:
		return pl.insert(n)
	case *ast.UpdateStmt:
		return pl.update(n)
	case *ast.DeleteStmt:
		return pl.deleteRows(n)
	case *ast.MergeStmt:
		return pl.merge(n)
	}
	return refusal(history.ReasonUnparsable)
}

// plainNames reports whether all names are of ASCII.
func (pl *planner) plainNames() bool {
	for i, t := range pl.st.toks {
		if (t.Kind == pgtoken.Word || t.Kind == pgtoken.Name) && !ascii(pl.st.tok(i)) {
			return false
		}
	}
	return true
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// readable returns the statement's text, with what was added behind its last token, as the grammar reads it: where
// backslashes escape in plain strings, these become strings of as many letters.
func (pl *planner) readable(text string) string {
	text = pl.versions.hidden(text)
	if !pl.session.Backslashes || !strings.Contains(text, `\`) {
		return text
	}
	toks, _ := pgtoken.Scan(nil, text, true)
	b := []byte(text)
	for _, t := range toks {
		if t.Kind != pgtoken.String || text[t.Start] != '\'' {
			continue
		}
		for i := t.Start + 1; i < t.End-1; i++ {
			b[i] = 'x'
		}
	}
	return string(b)
}

// parse returns the tree of the only statement in a text. It never shares a tree.
func parse(text string) (tree ast.Stmt, err error) {
	defer rewrite.Turn(len(text))()
	trees, err := pgtree.Parse(text)
	if err != nil || len(trees) != 1 {
		return nil, refusal(history.ReasonUnparsable)
	}
	return trees[0], nil
}

// nodes returns the items of a list that may be missing.
func nodes(l *ast.NodeList) []ast.Node {
	if l == nil {
		return nil
	}
	return l.Items
}

// bare takes the parentheses off an expression or a join.
func bare(n ast.Node) ast.Node {
	for {
		p, ok := n.(*ast.ParenExpr)
		if !ok {
			return n
		}
		n = p.Expr
	}
}

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
