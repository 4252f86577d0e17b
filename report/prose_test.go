package report

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestQuotedStatementsAreToldFromWords(t *testing.T) {
	read, write := "SELECT `a` FROM `t`", "UPDATE `t` SET `a` = ?"
	for _, c := range []struct{ sentence, want string }{
		{"nothing quoted", "[nothing quoted]"},
		{"a `name` alone", "[a `name` alone]"},
		{"it runs `" + read + "`, then `" + write + "`.", "[it runs |<" + read + ">|, then |<" + write + ">|.]"},
		{"`" + read + " FOR UPDATE` locks", "[<" + read + " FOR UPDATE>| locks]"},
		{"`" + read + " never closed", "[`" + read + " never closed]"},
		{"", "[]"},
		{"line\n\nbreaks  fold `" + read + "` \n here", "[line breaks fold |<" + read + ">| here]"},
	} {
		var parts []string
		for _, f := range prose(c.sentence, []string{write, read}, proseCode) {
			if f.Code {
				f.Text = "<" + f.Text + ">"
			}
			parts = append(parts, f.Text)
		}
		if got := fmt.Sprintf("[%s]", strings.Join(parts, "|")); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.sentence, got, c.want)
		}
	}
}

func TestProseLosesNoWord(t *testing.T) {
	statements := []string{"S `x` = ?", "S `x`", "`"}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"a ", "`", "`S `x` = ?`", "`S `x`", " ", "b", "é\n"})).Draw(t,
			"parts")
		sentence := strings.Join(parts, "")
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if got := plain(prose(sentence, statements, 1000)); squeeze(got) != squeeze(sentence) {
			t.Fatalf("got %q, want %q", got, sentence)
		}
	})
}

func TestLongStatementsDoNotDrownASentence(t *testing.T) {
	long := "SELECT '" + strings.Repeat("x", 10_000) + "'"
	got := plain(prose("T1 ran `"+long+"`, so T1 precedes T2.", []string{long}, proseCode))
	if len(got) > 2*proseCode || !strings.HasSuffix(got, "…`, so T1 precedes T2.") {
		t.Errorf("got %q", got)
	}
}
