package postgres

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/mutate"
)

// FuzzPlan looks for texts that make Plan panic, and checks that without the splices the client's text is left.
func FuzzPlan(f *testing.F) {
	for _, text := range goldenTexts(f) {
		f.Add(text, false, uint8(15))
	}
	for _, text := range []string{"SELECT 'a\\'b' FROM kv", "/* /* */ SELECT 1", "SELECT $a$ $b$ $a$", "U&'\\", "e'",
		"1.e+", "select *from kv;/**/"} {
		f.Add(text, true, uint8(18))
	}
	r := New(testSchema(), Options{})
	mutate.Fuzz(f, func(t *testing.T, text string, backslashes bool, version uint8) {
		s := testSession()
		s.Backslashes, s.Version = backslashes, int(version)
		script := r.Plan(text, s)
		checkPieces(t, text, script)
		for _, p := range script.Statements {
			if n := p.HiddenColumns(); (n > 0) != (len(p.Result.Sources) > 0) {
				t.Errorf("%q: %d hidden columns of %d sources", text, n, len(p.Result.Sources))
			}
		}
	}, mutate.SQL...)
}

// FuzzPlanAfterAnother checks, for two texts of which one is the other with some bytes changed, that the script of the
// second is what it would be without the first: no byte is taken for what isotap writes in its place.
func FuzzPlanAfterAnother(f *testing.F) {
	for _, text := range goldenTexts(f) {
		f.Add(text, uint16(len(text)/2), "\x01", false)
	}
	f.Add("SELECT name FROM item WHERE id = 5 - 1", uint16(37), "\x01", false)
	f.Add("SELECT name FROM item WHERE name = 'a' 'b'", uint16(38), "", true)
	r := New(testSchema(), Options{})
	mutate.Fuzz(f, func(t *testing.T, text string, at uint16, with string, backslashes bool) {
		s := testSession()
		s.Backslashes = backslashes
		from := min(int(at), len(text))
		other := text[:from] + with + text[min(from+1, len(text)):]
		for _, pair := range [][2]string{{text, other}, {other, text}} {
			c := NewCache(r, 10, 1<<20)
			c.Plan([]byte(pair[0]), s)
			if got, want := withoutModel(c.Plan([]byte(pair[1]), s)), withoutModel(r.Plan(pair[1],
				s)); !reflect.DeepEqual(got, want) {
				t.Errorf("%q after %q:\n%+v\nwant\n%+v", pair[1], pair[0], got, want)
			}
		}
	}, mutate.SQL...)
}

// FuzzPosition checks that every place of the client's text is found again, and none outside of it: what was added is
// passed over, and copies are those of the places that they are said to be of.
func FuzzPosition(f *testing.F) {
	for _, text := range goldenTexts(f) {
		f.Add(text)
	}
	f.Add("SELECT 'größe', k FROM kv; DELETE FROM kv WHERE k = '\xff\xfe'")
	r := New(testSchema(), Options{})
	mutate.Fuzz(f, func(t *testing.T, text string) {
		script := r.Plan(text, testSession())
		for _, multibyte := range []bool{true, false} {
			last := 0
			up := script.Append(nil)
			for n := 1; n <= count(string(up), multibyte)+1; n++ {
				got, added := script.Position(n, multibyte), script.Repeats(n, multibyte)
				if !added && got < last || got > count(text, multibyte)+1 || script.Pieces != nil && !added && got < 1 {
					t.Fatalf("%q: character %d is the client's %d, after %d", text, n, got, last)
				}
				if !added {
					last = got
				}
			}
			for i, c := range up {
				if from := script.originOf(i); from.added != nil && from.added.Copies && text[from.at] != c {
					t.Fatalf("%q: byte %d is no copy of byte %d", text, i, from.at)
				}
			}
			checkOrigins(t, text, script, multibyte)
		}
	}, mutate.SQL...)
}

// checkOrigins checks that characters of the client's pieces are found where they stand in the client's text.
func checkOrigins(t *testing.T, text string, s *Script, multibyte bool) {
	t.Helper()
	if multibyte && !utf8.ValidString(text) {
		return // no server reads it
	}
	at, up := 0, 1
	for _, p := range s.Pieces {
		if !within(text, p) {
			up += count(p, multibyte)
			continue
		}
		at += strings.Index(text[at:], p)
		for i := range count(p, multibyte) {
			if got, want := s.Position(up+i, multibyte), count(text[:at], multibyte)+i+1; got != want {
				t.Fatalf("%q: character %d comes from %d, not %d", text, up+i, want, got)
			}
		}
		up += count(p, multibyte)
		at += len(p)
	}
}

// goldenTexts are the texts of testdata/plan.
func goldenTexts(t testing.TB) (texts []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/plan/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(string(b), "\n\n") {
			in, _, _ := strings.Cut(part, "\n----")
			if _, text, ok := strings.Cut(in, "\n"); ok {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// TestWalkMissesNoCall compares what the walk over trees sees with what there is by reflection: a call that it
// missed would count as none.
func TestWalkMissesNoCall(t *testing.T) {
	golden := goldenTexts(t)
	texts := append(golden,
		"SELECT f(a), b FROM t1 WHERE c = ANY (ARRAY[g(d)]) AND (h(e))[1:i(2)] IS NOT NULL AND (j(1), 2) = (SELECT k(1), 3)",
		"SELECT CASE f(1) WHEN g(2) THEN h(3) ELSE i(4) END, j(5)::text COLLATE \"C\", (k(6)).x, ROW(l(7)), COALESCE(m(8), GREATEST(n(9), 1))",
		"SELECT f(x ORDER BY g(y)) FILTER (WHERE h(z)), i(1) OVER (PARTITION BY j(2) ORDER BY k(3) ROWS BETWEEN l(4) PRECEDING AND CURRENT ROW) FROM m(5) AS a, LATERAL ROWS FROM (n(6), o(7)) AS b",
		"SELECT JSON_OBJECT('a': f(1)), JSON_ARRAY(g(2)), JSON_ARRAYAGG(h(3)), JSON_OBJECTAGG('k': i(4)), XMLELEMENT(NAME x, XMLATTRIBUTES(j(5) AS y), k(6)), l(1) AT TIME ZONE m(2)",
		"SELECT * FROM XMLTABLE('/r' PASSING f(1) COLUMNS a int PATH g(2) DEFAULT h(3)) x, JSON_TABLE(i(4), '$' COLUMNS (a int PATH '$' DEFAULT j(5) ON EMPTY)) y",
		"SELECT 1 FROM a JOIN b ON f(1) LEFT JOIN (c TABLESAMPLE g(h(2)) REPEATABLE (i(3)) CROSS JOIN d) USING (x) WINDOW w AS (ORDER BY j(4)) ORDER BY k(5) LIMIT l(6) OFFSET m(7)",
		"SELECT 1 GROUP BY GROUPING SETS ((f(1)), CUBE(g(2)), ROLLUP(h(3))) HAVING i(4) ORDER BY j(5) USING <",
		"WITH RECURSIVE x AS (SELECT f(1) UNION ALL SELECT g(2) FROM x) SEARCH DEPTH FIRST BY a SET o CYCLE a SET c TO 1 DEFAULT 2 USING p SELECT h(3)",
		"INSERT INTO t SELECT f(1) ON CONFLICT (g(a)) WHERE h(2) DO UPDATE SET a = i(3), (b, c) = (j(4), k(5)) WHERE l(6) RETURNING m(7)",
		"MERGE INTO t USING (SELECT f(1)) s ON g(2) WHEN MATCHED AND h(3) THEN UPDATE SET a = i(4) WHEN NOT MATCHED THEN INSERT (a) VALUES (j(5)) RETURNING k(6)",
		"SELECT a BETWEEN f(1) AND g(2), a LIKE h(3) ESCAPE i(4), a IN (j(5), k(6)), NOT l(7), EXISTS (SELECT m(8)), a IS DISTINCT FROM n(9), OVERLAY(o(1) PLACING p(2) FROM q(3))",
	)
	for i, text := range texts {
		tree, err := parse(text)
		if err != nil {
			if i >= len(golden) {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		want := calls(reflect.ValueOf(tree))
		got := 0
		ast.Rewrite(tree, func(c *ast.Cursor) bool {
			switch c.Node().(type) {
			case *ast.FuncCall, *ast.ColumnRef, *ast.SubLink, *ast.JsonArrayAgg, *ast.JsonObjectAgg:
				got++
			}
			return true
		}, nil)
		if got != want {
			t.Errorf("%s: the walk sees %d calls, columns and subqueries of %d", text, got, want)
		}
	}
}

// calls counts function calls, columns and subqueries below a value.
func calls(v reflect.Value) int {
	n := 0
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return 0
		}
		switch v.Interface().(type) {
		case *ast.FuncCall, *ast.ColumnRef, *ast.SubLink, *ast.JsonArrayAgg, *ast.JsonObjectAgg:
			n = 1
		}
		return n + calls(v.Elem())
	case reflect.Interface:
		if !v.IsNil() {
			return calls(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				n += calls(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += calls(v.Index(i))
		}
	}
	return n
}
