package postgres

import (
	"testing"

	"github.com/multigres/multigres/go/common/parser/ast"
)

func TestListsSayHowManyColumnsThereAre(t *testing.T) {
	for text, want := range map[string]selectList{
		"SELECT FROM t":                                  emptyList,
		"SELECT":                                         emptyList,
		"SELECT FROM t UNION ALL SELECT FROM t":          emptyList,
		"WITH w AS (SELECT 1) SELECT FROM w":             emptyList,
		"WITH w AS (DELETE FROM t) SELECT FROM t":        starList,
		"SELECT *":                                       starList,
		"SELECT t.*, s.t.* FROM t":                       starList,
		"TABLE t":                                        starList,
		"SELECT (f(1)).*":                                starList,
		"SELECT * FROM t UNION SELECT 1":                 starList,
		"SELECT (a).b FROM t":                            starList,
		"SELECT t FROM t":                                someList,
		"SELECT *, 1 FROM t":                             someList,
		"SELECT ROW() FROM t":                            someList,
		"SELECT count(*) FROM t":                         someList,
		"(SELECT 1 ORDER BY 1) UNION SELECT * FROM t":    someList,
		"SELECT DISTINCT a FROM t WHERE EXISTS (SELECT)": someList,
	} {
		tree, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := listOf(tree.(*ast.SelectStmt)); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
