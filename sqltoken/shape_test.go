package sqltoken_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/sqltoken"
)

// TestValuesOfShapes: each value's ? is told from an operator's, and from one in a name or comment.
func TestValuesOfShapes(t *testing.T) {
	for _, c := range []struct {
		family dbms.Family
		shape  string // with the values that are to be found as !
	}{
		{dbms.MySQLFamily, "UPDATE `t?` SET `a``?`=!, \"b?\"=\"b?\"-! WHERE id IN (!)"},
		{dbms.MySQLFamily, "SELECT !--!, !-! /*!50000 STRAIGHT_JOIN ? */ FROM t # ?\n, ! -- ?"},
		{dbms.MySQLFamily, "SELECT a /* ? /* ? */ , ! FROM `cut ?"},
		{dbms.PostgreSQLFamily, `UPDATE "t?" SET n=!, m=m-! WHERE U&"d?"<>! AND "a""?" = !`},
		{dbms.PostgreSQLFamily, "SELECT !-!, !||!, -!, (!), x[!], a.b[!:c], !::text, !=ANY(!)"},
		{dbms.PostgreSQLFamily, "SELECT 1 FROM t WHERE d ? ! AND d->! ?| ! AND d #>> ! = ! AND d@>! LIMIT ! OFFSET !"},
		{dbms.PostgreSQLFamily, "SELECT d?!, d?|!, d @? !, (d -> !)?&array[!, !], \"d\" ? lower(!), ! ? !, (d) ? key"},
		{dbms.PostgreSQLFamily, "SELECT DATE !, interval ! day, a BETWEEN ! AND !, b LIKE ! ESCAPE !, ! AS x, ! y FROM t"},
		{dbms.PostgreSQLFamily, "SELECT jsonb ! ? !, !::jsonb ? !, macaddr !, CASE ! WHEN ! THEN ! ELSE ! END"},
		{dbms.PostgreSQLFamily, "SELECT a ?- b, a ?|| b, a ?<@ !, a=! b, ! + ! /* ? /* ? */ ? */ FROM \"cut ?"},
		{dbms.PostgreSQLFamily, "SET search_path TO !, !; CREATE SEQUENCE s INCREMENT ! START !"},
		{dbms.PostgreSQLFamily, "NOTIFY a, !"},
		{dbms.PostgreSQLFamily, "SELECT sum(x) OVER (ORDER BY y ROWS ! PRECEDING), a AT TIME ZONE ! z, ` , ! FROM t"},
	} {
		var want []int
		for i := range c.shape {
			if c.shape[i] == '!' && !strings.HasPrefix(c.shape[i:], "!5") {
				want = append(want, i)
			}
		}
		shape := strings.ReplaceAll(strings.ReplaceAll(c.shape, "!", "?"), "/*?5", "/*!5")
		got := sqltoken.Values(c.family, shape)
		if marked(shape, got) != marked(shape, want) {
			t.Errorf("%s:\n%s, want\n%s", c.family, marked(shape, got), marked(shape, want))
		}
	}
}

// TestTextsAreFilled: placeholders take their values, and what only looks like one stays.
func TestTextsAreFilled(t *testing.T) {
	for _, c := range []struct {
		family dbms.Family
		text   string
		values []string
		want   string // empty: it cannot be
	}{
		{dbms.PostgreSQLFamily, "SELECT '$1', $2, $1::int, \"$1\" -- $3", []string{"1", "'b'"}, "SELECT '$1', 'b', 1::int, \"$1\" -- $3"},
		{dbms.PostgreSQLFamily, "SELECT $1 ? $2", []string{"d", "'k'"}, "SELECT d ? 'k'"},
		{dbms.PostgreSQLFamily, "SELECT $2", []string{"1"}, ""},
		{dbms.PostgreSQLFamily, "SELECT $1", []string{""}, ""},
		{dbms.PostgreSQLFamily, "SELECT 1", nil, "SELECT 1"},
		{dbms.MySQLFamily, "SELECT '?', ?, `?`, ? /* ? */", []string{"1", "'b'"}, "SELECT '?', 1, `?`, 'b' /* ? */"},
		{dbms.MySQLFamily, "SELECT ?, ?", []string{"1"}, ""},
	} {
		if got, ok := sqltoken.FillText(c.family, c.text, c.values); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %v", c.text, got, ok)
		}
	}
}

// marked writes a shape with ! for the values at some places.
func marked(shape string, values []int) string {
	b := []byte(shape)
	for _, at := range values {
		b[at] = '!'
	}
	return string(b)
}

func TestNamesOfShapes(t *testing.T) {
	for _, c := range []struct{ text, mysql, postgres string }{
		{"a.`b``c` \"d\"\"e\" 'f' x'41' (g)", "a b``c d\"\"e g", `a b c d""e g`},
		{`U&"a1" E'b' $$c$$ n`, "U a1 E $$c$$ n", "a1 n"},
		{"@t1 :t2", "t2", "t1 t2"},
	} {
		for family, want := range map[dbms.Family]string{dbms.MySQLFamily: c.mysql, dbms.PostgreSQLFamily: c.postgres} {
			var got []string
			for _, token := range sqltoken.Shape(family, c.text) {
				if name, start, ok := token.Name(); ok {
					got = append(got, name)
					if c.text[start:start+len(name)] != name {
						t.Errorf("%s: %s does not stand at %d", c.text, name, start)
					}
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %s: %q, want %s", family, c.text, got, want)
			}
		}
	}
}

// TestShapesAreCutWhateverTheyHold: tokens stand in order, none overlaps another, and a value is one question mark.
func TestShapesAreCutWhateverTheyHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.StringOf(rapid.RuneFrom([]rune("a1?|&-@=`'\"\\#/*$.:()[] \n"))).Draw(t, "shape")
		for _, family := range dbms.Families {
			at := 0
			for _, token := range sqltoken.Shape(family, shape) {
				if token.Start < at || token.End <= token.Start || shape[token.Start:token.End] != token.Text ||
					token.Kind == sqltoken.Placeholder && token.Text != "?" {
					t.Fatalf("%s: %q: %+v", family, shape, token)
				}
				at = token.End
				token.Name()
			}
		}
	})
}
