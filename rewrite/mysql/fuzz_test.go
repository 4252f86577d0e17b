package mysql

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/mutate"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/shape"
)

// FuzzPlan checks, for any text in any mode: no panic; the client's pieces are the client's text; the
// hidden parameters are where the holes are; what goes upstream still parses, as a statement of the
// same form with just the planned additions; and a template gives the same plan.
func FuzzPlan(f *testing.F) {
	for _, s := range corpus(f) {
		f.Add(s, uint8(0), false)
		f.Add(s, uint8(8), false)
	}
	f.Add("UPDATE \"item\" SET stock = 'x\\' WHERE id = 1", uint8(3), true)
	f.Add("SELECT id, OVER FROM item WHERE price = 20 LOCK IN SHARE MODE", uint8(0), false) // a column's name on MariaDB
	r := New(testSchema(), Options{})
	mutate.Fuzz(f, func(t *testing.T, in string, modes uint8, latin bool) {
		s := testSession()
		if modes&8 != 0 {
			s.Dialect, s.Version = MySQL, 90704
		}
		s.ANSIQuotes, s.NoBackslashEscapes, s.PipesAsConcat = modes&1 != 0, modes&2 != 0, modes&4 != 0
		if latin {
			s.Charset = "latin1"
		}
		p := r.Plan(in, s)
		checkPieces(t, in, p)
		checkHidden(t, p)
		checkParts(t, in, p)
		if c := p.Companion; c != nil {
			if p.Upstream.Pieces != nil || p.Observation != history.Opaque || c.Params != p.Params ||
				len(c.Upstream.Hidden) > 0 || c.HiddenColumns() == 0 {
				t.Fatalf("a companion of other parameters or columns: %+v of %+v", c, p)
			}
			checkParses(t, c, s)
		}
		if p.Upstream.Pieces != nil && p.Kind != history.DDL && !p.Upstream.Substitutes {
			checkParses(t, p, s)
		}
		if (p.Observation == history.Opaque || p.Observation == history.Inexact) != (!p.Reason.IsZero()) {
			t.Errorf("observation %v has the reason %q", p.Observation, p.Reason)
		}
		if len(p.Args) > shape.MaxArgs || len(p.Shape) > shape.MaxBytes+len("...") {
			t.Errorf("%d arguments, %d bytes of shape", len(p.Args), len(p.Shape))
		}
		c := NewCache(r, 10, 1<<20)
		c.make(in, s, 0)
		if again := c.make(in, s, 0); !reflect.DeepEqual(again, p) {
			t.Errorf("a template gives another plan:\n%+v\n%+v", again, p)
		}
	}, mutate.SQL...)
}

// checkParts demands that the parts end where the lexer sees a semicolon, and the last with the text.
func checkParts(t *testing.T, in string, p *Plan) {
	t.Helper()
	for i, end := range p.Upstream.Parts {
		switch {
		case i > 0 && end <= p.Upstream.Parts[i-1], i == len(p.Upstream.Parts)-1 &&
			end != len(in), i < len(p.Upstream.Parts)-1 && in[end] != ';', len(p.Upstream.Parts) == 1:
			t.Fatalf("parts %v of %d bytes", p.Upstream.Parts, len(in))
		}
	}
}

// checkHidden replaces the holes by placeholders, as for a prepared statement, and demands that the
// lexer finds the hidden parameters where the plan has them.
func checkHidden(t *testing.T, p *Plan) {
	t.Helper()
	if p.Upstream.Substitutes {
		return
	}
	index, next := 0, 0
	for _, piece := range p.Upstream.Pieces {
		if piece.Hole == NoHole || piece.Hole == RowCountHole || piece.Hole == FoundRowsHole {
			continue
		}
		if next >= len(p.Upstream.Hidden) || p.Upstream.Hidden[next].Hole != piece.Hole ||
			p.Upstream.Hidden[next].Ordinal != piece.Ordinal {
			t.Fatalf("hole %d is not among the hidden parameters %v", next, p.Upstream.Hidden)
		}
		if p.Upstream.Hidden[next].Index < index {
			t.Fatalf("hidden parameters %v are not in order", p.Upstream.Hidden)
		}
		index = p.Upstream.Hidden[next].Index + 1
		next++
	}
	if next != len(p.Upstream.Hidden) || index > p.Params+len(p.Upstream.Hidden) {
		t.Fatalf("%d holes, %d parameters, hidden %v", next, p.Params, p.Upstream.Hidden)
	}
}

// checkParses lets TiDB's parser read what goes upstream.
func checkParses(t *testing.T, p *Plan, s Session) {
	t.Helper()
	sql := string(p.Append(nil, func(b []byte, h Hole, n int) []byte {
		return AppendHole(b, h, n, &Values{Tag: history.Tag{Txn: history.MakeTxnID(1, 1), Stmt: 1}})
	}))
	st := scan(sql, s.ANSIQuotes, s.NoBackslashEscapes)
	if st.is(0, "LOAD") {
		return // the parser knows less of it than isotap
	}
	cut := st.beyondParser(&s)
	if p.Result.Reply == rewrite.Returning && cut.returning.empty() {
		t.Fatalf("%s does not end with RETURNING", sql)
	}
	body := st.without(st.parserText(), cut.rowAlias, cut.returning)
	body = st.without(st.beyondRead(&s).known(st, body), st.intoVariables(&s))
	body = arrayLimit.ReplaceAllString(body, "$1)")
	ps := parser.New()
	ps.SetMariaDB(true)
	ps.SetStrictDoubleTypeCheck(false)
	ps.SetSQLMode(s.parserMode())
	var nodes []ast.StmtNode
	err := errors.New("not parsed")
	for _, windows := range []bool{false, true} { // as the planner reads
		if err != nil && (!windows || st.mayHaveWindows()) {
			ps.EnableWindowFunc(windows)
			nodes, _, err = ps.ParseSQL(body)
		}
	}
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%s: %v", sql, err)
	}
	switch n := nodes[0].(type) {
	case *ast.SelectStmt:
		checkIdentities(t, n, p)
	case *ast.InsertStmt:
		if len(n.Columns) < 2 || n.Columns[len(n.Columns)-1].Name.L != rewrite.WListColumn ||
			p.Writes.Inserts != CountUnknown && len(n.Lists) != p.Writes.Inserts {
			t.Fatalf("%s does not end its columns with %s", sql, rewrite.WListColumn)
		}
	case *ast.UpdateStmt:
		first, last := n.List[0].Column.Name.L, n.List[len(n.List)-1].Column.Name.L
		joined := len(p.Result.Sources) > 0 // decides before the client's assignments
		if first != rewrite.WListColumn || !joined && (last != rewrite.WListColumn || len(n.List) < 3) {
			t.Fatalf("%s does not begin, and end, with %s", sql, rewrite.WListColumn)
		}
	}
}

// arrayLimit is what MariaDB knows and the parser does not.
var arrayLimit = regexp.MustCompile(`(USING latin1\)|_binary'"'|_binary'null'\)) LIMIT \d+\)`)

func checkIdentities(t *testing.T, n *ast.SelectStmt, p *Plan) {
	t.Helper()
	last := n.Fields.Fields[max(0, len(n.Fields.Fields)-p.HiddenColumns()-p.Result.Variables):]
	for _, s := range p.Result.Sources {
		if s.Array {
			if cast, ok := last[0].Expr.(*ast.FuncCastExpr); !ok || cast.FunctionType != ast.CastFunction {
				t.Fatalf("the last items are not the identities of %v", p.Result.Sources)
			}
			last = last[1:]
			continue
		}
		a, aok := last[0].Expr.(*ast.ColumnNameExpr)
		b, bok := last[1].Expr.(*ast.ColumnNameExpr)
		if !aok || !bok || !named(a, rewrite.RowIDColumn) || !named(b, rewrite.WListColumn) ||
			a.Name.Table.L != b.Name.Table.L {
			t.Fatalf("the last items are not the identities of %v", p.Result.Sources)
		}
		last = last[2:]
	}
}

// named reports whether a column is the one that a base table has, or what a query passes outwards of it.
func named(n *ast.ColumnNameExpr, column string) bool {
	return n.Name.Name.L == column || strings.HasPrefix(n.Name.Name.L, rewrite.CarriedPrefix)
}

// corpus returns the statements of testdata/plan.
func corpus(f testing.TB) []string {
	f.Helper()
	files, err := filepath.Glob("testdata/plan/*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no corpus: %v", err)
	}
	var all []string
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, test := range strings.Split(string(b), "\n\nplan") {
			_, body, _ := strings.Cut(test, "\n")
			sql, _, _ := strings.Cut(body, "\n----")
			all = append(all, sql)
		}
	}
	return all
}

// FuzzPlanAfterAnother checks, for two texts of which one is the other with some bytes changed, that the plan of the
// second is what it would be without the first: no byte is taken for what isotap writes in its place.
func FuzzPlanAfterAnother(f *testing.F) {
	for _, s := range corpus(f) {
		f.Add(s, uint16(len(s)/2), "\x01", uint8(0))
	}
	f.Add("SELECT id FROM item WHERE id = 5--1", uint16(34), "\x01", uint8(0))
	f.Add("SELECT id FROM item WHERE id = 5--'a'", uint16(34), "\x03", uint8(2))
	f.Add("SELECT id FROM item WHERE name = 'a' 'b'", uint16(36), "", uint8(1))
	r := New(testSchema(), Options{})
	mutate.Fuzz(f, func(t *testing.T, text string, at uint16, with string, modes uint8) {
		s := testSession()
		s.ANSIQuotes, s.NoBackslashEscapes, s.PipesAsConcat = modes&1 != 0, modes&2 != 0, modes&4 != 0
		from := min(int(at), len(text))
		other := text[:from] + with + text[min(from+1, len(text)):]
		for _, pair := range [][2]string{{text, other}, {other, text}} {
			c := NewCache(r, 10, 1<<20)
			c.Plan([]byte(pair[0]), s)
			if got, want := c.Plan([]byte(pair[1]), s), r.Plan(pair[1], s); !reflect.DeepEqual(got, want) {
				t.Errorf("%q after %q:\n%+v\nwant\n%+v", pair[1], pair[0], got, want)
			}
		}
	}, mutate.SQL...)
}

// FuzzParseCapture checks that any bytes are read or refused, and that what was read says the same
// when it is written again.
func FuzzParseCapture(f *testing.F) {
	for _, s := range []string{"0|", "0|r1=0=0000011.1;", "12|a=0,0000011.1=0000012.1;==0000011.1;", "x|", "0|a=b=c;",
		"0|r1=0=0000011.1~=0000011.1:2;r2=0=0000011.1-=3;r3=0=0000011.1<;", "0|a=0=0000011.1", ""} {
		f.Add([]byte(s))
	}
	mutate.Fuzz(f, func(t *testing.T, b []byte) {
		entries, uncollected, err := ParseCapture(b)
		if err != nil {
			return
		}
		again, n, err := ParseCapture(appendCapture(nil, entries, uncollected))
		if err != nil || n != uncollected || len(again) != len(entries) {
			t.Fatalf("written again: %d entries, %d uncollected, %v", len(again), n, err)
		}
	})
}
