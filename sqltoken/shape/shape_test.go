package shape

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// of makes the shape of tokens that are parted by blanks; a ~ before a token says that it is adjacent.
func of(tokens string) string {
	var s Shape
	for _, t := range strings.Fields(tokens) {
		text, adjacent := strings.CutPrefix(t, "~")
		s.Add(text, adjacent)
	}
	s.Fold("VALUES")
	return s.String()
}

func TestShapes(t *testing.T) {
	for _, c := range []struct{ tokens, want string }{
		{"SELECT a , b FROM s . t ;", "SELECT a, b FROM s.t;"},
		{"SELECT count ~( * ~)", "SELECT count(*)"},
		{"SELECT a :: int [ ? ]", "SELECT a::int [?]"},
		{"WHERE a IN ( ? , ? , ? )", "WHERE a IN (?)"},
		{"WHERE a in ( ? , b , ? , ? )", "WHERE a in (?, b, ?)"},
		{"WHERE ( a , b ) IN ( ( ? , ? ) , ( ? , ? ) )", "WHERE (a, b) IN ((?, ?))"},
		{"VALUES ( ? , ? ) , ( ? , ? ) , ( ? , c )", "VALUES (?, ?), (?, c)"},
		{"VALUES ( ? ) RETURNING a , a", "VALUES (?) RETURNING a, a"},
		{"f ~( ? , ? )", "f(?, ?)"},
		{"IN ( ?", "IN (?"},
		{"VALUES ( ( ?", "VALUES ((?"},
		{"", ""},
	} {
		if got := of(c.tokens); got != c.want {
			t.Errorf("%s: %q, want %q", c.tokens, got, c.want)
		}
	}
}

// TestLongShapesAreCutAtATokenVisibly: long shapes are cut at a token and say so.
func TestLongShapesAreCutAtATokenVisibly(t *testing.T) {
	got := of(strings.Repeat("abc ", MaxBytes))
	if !strings.HasSuffix(got, "abc ...") || len(got) > MaxBytes+len("...") {
		t.Errorf("%d bytes that end with %q", len(got), got[len(got)-10:])
	}
}

func TestArgumentsAreCutAtACharacter(t *testing.T) {
	for _, arg := range []string{"", "'x'", strings.Repeat("x", MaxArg), strings.Repeat("€", MaxArg), "x" +
		strings.Repeat("😀", MaxArg)} {
		got := Cut(arg)
		if !strings.HasPrefix(arg, got) || len(got) > MaxArg || len(got) < min(len(arg), MaxArg-utf8.UTFMax+1) ||
			!utf8.ValidString(got) {
			t.Errorf("Cut(%q) = %q", arg, got)
		}
	}
}
