// Package pgtree reads PostgreSQL's SQL by multigres' port of its grammar (ADR 20), and walks over the trees. A panic
// of the parser's, or of a walk that meets what it does not know, ends here.
package pgtree

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/multigres/multigres/go/common/parser"
	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/guard"
)

// Parse returns the trees of the statements in a text. It never shares a tree.
func Parse(text string) (trees []ast.Stmt, err error) {
	err = guard.Call("PostgreSQL's grammar", func() error {
		trees, err = parser.ParseSQL(text)
		return err
	})
	if p, ok := errors.AsType[*guard.Panic](err); ok {
		return nil, fmt.Errorf("the grammar failed: %v", p.Value)
	}
	return trees, err
}

// Walk calls visit for all nodes of trees, each before what it holds, and passes over what a node holds where visit
// returns false. A root may be missing. It reports whether it came to its end, as [guard.Whole] does.
func Walk(visit func(ast.Node) bool, roots ...ast.Node) (whole bool) {
	return guard.Whole(func() { Each(visit, roots...) })
}

// Each is Walk within another walk: a panic is that one's.
func Each(visit func(ast.Node) bool, roots ...ast.Node) {
	for _, root := range roots {
		if Missing(root) {
			continue
		}
		ast.Rewrite(root, func(c *ast.Cursor) bool { return visit(c.Node()) }, nil)
	}
}

// Missing reports whether there is no node, a nil pointer being none either.
func Missing(n ast.Node) bool {
	if n == nil {
		return true
	}
	v := reflect.ValueOf(n)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
