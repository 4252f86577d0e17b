package mysql

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// otherLiterals returns the statement with other values in its literals: mostly plain ones, and some that
// are not.
func otherLiterals(t *rapid.T, text string, s Session) string {
	numbers := rapid.OneOf(rapid.StringMatching(`[0-9]{1,15}(\.[0-9]{0,3})?`),
		rapid.SampledFrom([]string{"1e3", "0x1F", "9999999999999999999999"}))
	strs := rapid.OneOf(rapid.StringMatching(`'[a-z ;#ä?(),-]{0,20}'`),
		rapid.SampledFrom([]string{`'it''s'`, `'\''`, `x'41'`, `N'a'`}))
	var b strings.Builder
	pos := 0
	st := scan(text, s.ANSIQuotes, s.NoBackslashEscapes)
	for _, tok := range st.Tokens {
		b.WriteString(text[pos:tok.Start])
		pos = tok.End
		switch tok.Kind {
		case mysqltoken.Number:
			b.WriteString(numbers.Draw(t, "number"))
		case mysqltoken.String:
			b.WriteString(strs.Draw(t, "string"))
		default:
			b.WriteString(text[tok.Start:tok.End])
		}
	}
	return b.String() + text[pos:]
}

func TestTemplateGivesThePlanThatTheRewriterGives(t *testing.T) {
	statements := corpus(t)
	r := New(testSchema(), Options{Predicates: true})
	rapid.Check(t, func(t *rapid.T) {
		s := testSession()
		s.ANSIQuotes, s.NoBackslashEscapes = rapid.Bool().Draw(t, "ansi"), rapid.Bool().Draw(t, "no backslash")
		s.Charset = rapid.SampledFrom([]string{"utf8mb4", "latin1", "gbk"}).Draw(t, "charset")
		text := rapid.SampledFrom(statements).Draw(t, "statement")
		c := NewCache(r, 10, 1<<20)
		for range 3 {
			text := otherLiterals(t, text, s)
			if got, want := c.Plan([]byte(text), s), r.Plan(text, s); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s\nfrom a template: %+v\nby the rewriter: %+v", text, got, want)
			}
		}
	})
}

func TestStatementsOfOneSkeletonShareATemplate(t *testing.T) {
	c := NewCache(New(testSchema(), Options{Predicates: true}), 100, 1<<20)
	for i := range 20 {
		c.Plan(fmt.Appendf(nil, "UPDATE item SET name = 'n%d' WHERE id = %d", i, i), testSession())
		c.Plan(fmt.Appendf(nil, "INSERT INTO item (id, name) VALUES (%d, ''), (-%d, 'b')", i, i), testSession())
	}
	if _, templates, _ := c.Held(); templates != 2 {
		t.Errorf("%d templates for two skeletons", templates)
	}
	c.Invalidate()
	if _, templates, _ := c.Held(); templates != 0 {
		t.Error("templates outlived the schema")
	}
}

// What a text is cut into may hang on a byte that a literal could stand for, were literals told by a byte.
func TestNoByteLooksLikeALiteral(t *testing.T) {
	for _, pair := range [][2]string{
		{"SELECT id FROM item WHERE id = 5--1", "SELECT id FROM item WHERE id = 5--\x01"},
		{"SELECT id FROM item WHERE id = 5--\x01", "SELECT id FROM item WHERE id = 5--1"},
		{"SELECT id FROM item WHERE id = 5--1.5 AND name = 'a'",
			"SELECT id FROM item WHERE id = 5--\x02 AND name = \x03"},
		{"UPDATE item SET stock = 5--'1' WHERE id = 7", "UPDATE item SET stock = 5--\x03 WHERE id = \x01"},
		{"DELETE FROM item WHERE id = 5--1 /* \x01 */", "DELETE FROM item WHERE id = 5--\x01 /* 1 */"},
	} {
		r := New(testSchema(), Options{})
		c := NewCache(r, 10, 1<<20)
		for _, text := range pair {
			if got, want := c.Plan([]byte(text), testSession()), r.Plan(text, testSession()); !reflect.DeepEqual(got,
				want) {
				t.Errorf("%q after %q is planned as\n%+v, want\n%+v", text, pair[0], got, want)
			}
		}
	}
}

func TestSkeletonKeepsWhatThePlanDependsOn(t *testing.T) {
	for _, pair := range [][2]string{
		{"SELECT id FROM item ORDER BY 1", "SELECT id FROM item ORDER BY 2"},
		{"SELECT id FROM item ORDER BY id, 1", "SELECT id FROM item ORDER BY id, 2"},
		{"SELECT id FROM item WHERE name = 'a'", "SELECT id FROM item WHERE name = 1"},
		{"SELECT id FROM item WHERE name = 'a'", "SELECT id FROM item WHERE name = x'41'"},
		{"SELECT id FROM item WHERE id IN (1, 2)", "SELECT id FROM item WHERE id IN (1, 2, 3)"},
		{"SELECT id FROM item WHERE id = 1", "SELECT id FROM item WHERE  id = 1"},
		{"SELECT id FROM item /* 1 */", "SELECT id FROM item /* 2 */"},
		{"SELECT id FROM item WHERE id = 5--1", "SELECT id FROM item WHERE id = 5--\x01"},
		{"SELECT id, 1 FROM item /*  */", "SELECT id,  FROM item /* 1 */"},
	} {
		var skeletons [2]string
		for i, text := range pair {
			skeletons[i] = string(scan(text, false, false).skeleton(nil))
		}
		if skeletons[0] == skeletons[1] {
			t.Errorf("%q and %q have the same skeleton", pair[0], pair[1])
		}
	}
}
