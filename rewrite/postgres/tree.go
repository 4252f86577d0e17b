package postgres

import (
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

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

// clausesOf returns the clauses that may stand in a statement that reads or writes rows: WITH, and the list of
// RETURNING, which a SELECT does not have.
func clausesOf(s ast.Stmt) (with *ast.WithClause, returning *ast.NodeList) {
	switch n := s.(type) {
	case *ast.SelectStmt:
		return n.WithClause, nil
	case *ast.InsertStmt:
		return n.WithClause, n.ReturningList
	case *ast.UpdateStmt:
		return n.WithClause, n.ReturningList
	case *ast.DeleteStmt:
		return n.WithClause, n.ReturningList
	case *ast.MergeStmt:
		return n.WithClause, n.ReturningList
	}
	return nil, nil
}

// withOf returns the WITH clause of a statement; nil where it has none.
func withOf(s ast.Stmt) *ast.WithClause {
	with, _ := clausesOf(s)
	return with
}

// returningList returns the list of a statement's RETURNING; nil where it has none.
func returningList(s ast.Stmt) *ast.NodeList {
	_, list := clausesOf(s)
	return list
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
