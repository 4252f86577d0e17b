package sqltoken_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/sqltoken"
)

// kinds are the letters by which a test writes them.
const kinds = "wq:?m"

func TestTokensOfBothFamilies(t *testing.T) {
	for _, c := range []struct{ text, mysql, postgres string }{
		{"T [t] (:a):", "wT m[ wt m] m( ::a m) m:", "wT m[ wt m] m( ::a m) m:"},
		{"x = :a::int", "wx m= ::a m: ::int", "wx m= ::a m:: wint"},
		{":a := 1.5e3", "::a m:= w1.5e3", "::a m:= w1.5e3"},
		{"a[1:2] s.b", "wa m[ w1 m: w2 m] ws m. wb", "wa m[ w1 m: w2 m] ws m. wb"},
		{"id = ? AND b = $1", "wid m= ?? wAND wb m= w$1", "wid m= m? wAND wb m= ?$1"},
		{`'a' "b" 'it''s'`, `q'a' q"b" q'it''s'`, `q'a' q"b" q'it''s'`},
		{"`a`", "q`a`", "m` wa m`"},
		{`'a\'z' -- '`, `q'a\'z'`, `q'a\' wz q' -- '`},
		{"E'a\\'b' $$c$$", "wE q'a\\'b' w$$c$$", "qE'a\\'b' q$$c$$"},
		{"a--q1\nb", "wa wb", "wa wb"},
		{"a /* b /* c */ d -- */", "wa wd", "wa"},
	} {
		for family, want := range map[dbms.Family]string{dbms.MySQLFamily: c.mysql, dbms.PostgreSQLFamily: c.postgres} {
			tokens, err := sqltoken.Scan(family, c.text)
			if got := cut(tokens); got != want || err != nil {
				t.Errorf("%s: %s: %s, %v; want %s", family, c.text, got, err, want)
			}
		}
	}
}

// cut writes tokens, each behind the letter of its kind.
func cut(tokens []sqltoken.Token) string {
	var all []string
	for _, t := range tokens {
		all = append(all, kinds[t.Kind:t.Kind+1]+t.Text)
	}
	return strings.Join(all, " ")
}

func TestTokensKnowTheirLines(t *testing.T) {
	for _, family := range dbms.Families {
		tokens, err := sqltoken.Scan(family, "a 'b\nc' d\n-- e\n/*\n*/ :f")
		if err != nil || len(tokens) != 4 || tokens[1].Line != 1 || tokens[2].Line != 2 || tokens[3].Line != 5 {
			t.Errorf("%s: %+v, %v", family, tokens, err)
		}
	}
}

// TestUnendedTokenIsAnErrorWithALine: what does not end is an error of its line.
func TestUnendedTokenIsAnErrorWithALine(t *testing.T) {
	for text, want := range map[string]string{
		"a\n'b\n": "line 2: a string is not closed", "a\n\n/* b": "line 3: a comment is not closed",
	} {
		for _, family := range dbms.Families {
			if _, err := sqltoken.Scan(family, text); !errors.Is(err, sqltoken.ErrOpen) || err.Error() != want {
				t.Errorf("%s: %q: %v, want %s", family, text, err, want)
			}
		}
	}
}

func TestStatementsEndAtSemicolons(t *testing.T) {
	tokens, err := sqltoken.Scan(dbms.PostgreSQLFamily, ";a b;; 'c;' ;$$;$$")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sqltoken.Statements(tokens) {
		got = append(got, cut(s))
	}
	if want := "wa wb|q'c;'|q$$;$$"; strings.Join(got, "|") != want {
		t.Errorf("%q, want %s", got, want)
	}
}
