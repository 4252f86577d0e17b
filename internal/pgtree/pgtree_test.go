package pgtree_test

import (
	"strings"
	"testing"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
)

// columns returns a visit that takes the names of columns, but not of those in subqueries where it is told so.
func columns(names *[]string, inner bool) func(ast.Node) bool {
	return func(n ast.Node) bool {
		if ref, ok := n.(*ast.ColumnRef); ok {
			*names = append(*names, ref.Fields.Items[0].(*ast.String).SVal)
		}
		_, subquery := n.(*ast.SubLink)
		return inner || !subquery
	}
}

func TestWalksMeetAllNodes(t *testing.T) {
	trees, err := pgtree.Parse("SELECT a, (SELECT b FROM u) FROM t WHERE c = 1; SELECT d")
	if err != nil || len(trees) != 2 {
		t.Fatal(trees, err)
	}
	for _, c := range []struct {
		inner bool
		want  string
	}{{true, "a b c d"}, {false, "a c d"}} {
		var names []string
		if !pgtree.Walk(columns(&names, c.inner), trees[0], trees[1]) || strings.Join(names, " ") != c.want {
			t.Errorf("subqueries %v: %s, want %s", c.inner, names, c.want)
		}
	}
}

func TestAWalkThatPanicsIsNotWhole(t *testing.T) {
	trees, err := pgtree.Parse("SELECT a, * FROM t")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	if pgtree.Walk(columns(&names, true), trees[0]) { // a star is no string
		t.Error("the walk is whole")
	}
	if len(names) != 1 {
		t.Errorf("names %s", names)
	}
}

func TestWhatIsNoSQLIsAnError(t *testing.T) {
	if trees, err := pgtree.Parse("SELEC 1"); err == nil || trees != nil {
		t.Errorf("%v, %v", trees, err)
	}
}

func TestNilPointersAreMissingNodes(t *testing.T) {
	var none *ast.ColumnRef
	if !pgtree.Missing(nil) || !pgtree.Missing(none) || pgtree.Missing(&ast.ColumnRef{}) {
		t.Error("a node is missing or not, and the other is said")
	}
}
