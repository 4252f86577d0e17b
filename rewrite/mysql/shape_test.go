package mysql

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/sqltoken"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
	"github.com/isotap/isotap/sqltoken/shape"
)

// TestShapesOfGoldenTextsHoldTheirArguments: what reads a shape finds the places of the arguments in it.
func TestShapesOfGoldenTextsHoldTheirArguments(t *testing.T) {
	for _, text := range corpus(t) {
		for _, ansi := range []bool{false, true} {
			if err := refilled(text, ansi); err != nil {
				t.Error(err)
			}
		}
	}
}

// refilled returns what is wrong with the shape of a statement: with the arguments put back into their places it has
// the tokens that it had.
func refilled(text string, ansi bool) error {
	st := scan(text, ansi, false)
	if st.Broken() || len(st.Comments) > 0 {
		return nil
	}
	s := shaper{st: st, keepArgs: true}
	for i := 0; i <= st.last(); {
		i = s.add(i)
	}
	cut := func(arg string) bool { return len(arg) >= shape.MaxArg }
	if len(s.args) == shape.MaxArgs || slices.ContainsFunc(s.args, cut) || len(text) > shape.MaxBytes {
		return nil
	}
	filled := s.String()
	values := sqltoken.Values(dbms.MySQLFamily, filled)
	if len(values) != len(s.args) {
		return fmt.Errorf("%s: %d values, want %q", filled, len(values), s.args)
	}
	filled = sqltoken.Fill(filled, values, s.args)
	if got, want := words(filled, ansi), words(text, ansi); !slices.Equal(got, want[:len(got)]) {
		return fmt.Errorf("%s\nof %s", filled, text)
	}
	return nil
}

// words are the tokens of a text, as they are written.
func words(text string, ansi bool) (all []string) {
	cut := mysqltoken.Scan(text, mysqltoken.Mode{ANSIQuotes: ansi})
	for i := range cut.Tokens {
		all = append(all, cut.TokenText(i))
	}
	return all
}

// TestShapesOfRandomStatementsHoldTheirArguments does the same to statements of all kinds of quotes, comments and
// literals.
func TestShapesOfRandomStatementsHoldTheirArguments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := "SELECT "
		for range rapid.IntRange(1, 6).Draw(t, "operands") {
			text += rapid.SampledFrom([]string{"7", "'a?b'", "'it''s ?'", `'\' ?'`, "?", "a", "`b``?`", `"c"" ?"`, "x'41'",
				"_utf8'?'", "@v", "@`w?`", "NULL", "f(1)"}).Draw(t, "operand")
			text += rapid.SampledFrom([]string{"+", "-", " - ", "--", " -- ?\n+", "#?\n,", "/* ? */,", "/*+ ? */=", "->", "->>",
				"<=>", " DIV ", " IN ", " LIKE "}).Draw(t, "operator")
		}
		text += "9 FROM t"
		for _, ansi := range []bool{false, true} {
			if err := refilled(text, ansi); err != nil {
				t.Fatalf("%v\nof %s", err, text)
			}
		}
	})
}
