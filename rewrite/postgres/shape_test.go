package postgres

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/sqltoken"
	"github.com/isotap/isotap/sqltoken/pgtoken"
	"github.com/isotap/isotap/sqltoken/shape"
)

// TestShapesOfGoldenTextsHoldTheirArguments: what reads a shape finds the places of the arguments in it.
func TestShapesOfGoldenTextsHoldTheirArguments(t *testing.T) {
	for _, text := range goldenTexts(t) {
		for _, err := range refilled(text) {
			t.Error(err)
		}
	}
}

// refilled returns what is wrong with the shapes of a text's statements: with the arguments put back into their places
// each has the tokens that it had.
func refilled(text string) (wrong []error) {
	toks, open := pgtoken.Scan(nil, text, false)
	if open >= 0 {
		return nil
	}
	for _, st := range split(nil, text, toks) {
		s := shaper{st: &st}
		for i := 0; i < len(st.toks); {
			i = s.add(i)
		}
		cut := func(arg string) bool { return len(arg) >= shape.MaxArg }
		if st.suspect() || len(s.args) == shape.MaxArgs || slices.ContainsFunc(s.args, cut) ||
			len(st.source()) > shape.MaxBytes {
			continue
		}
		filled := s.String()
		values := sqltoken.Values(dbms.PostgreSQLFamily, filled)
		if len(values) != len(s.args) {
			wrong = append(wrong, fmt.Errorf("%s: %d values, want %q", filled, len(values), s.args))
			continue
		}
		filled = sqltoken.Fill(filled, values, s.args)
		if got, want := words(filled), words(st.source()); !slices.Equal(got, want) {
			wrong = append(wrong, fmt.Errorf("%s\nof %s", filled, st.source()))
		}
	}
	return wrong
}

// words are the tokens of a text, as they are written.
func words(text string) (all []string) {
	toks, _ := pgtoken.Scan(nil, text, false)
	for _, t := range toks {
		all = append(all, text[t.Start:t.End])
	}
	return all
}

// TestShapesOfRandomStatementsHoldTheirArguments does the same to statements of every operator that holds a question
// mark, with and without blanks around it.
func TestShapesOfRandomStatementsHoldTheirArguments(t *testing.T) {
	pick := func(t *rapid.T, all ...string) string { return rapid.SampledFrom(all).Draw(t, "piece") }
	var operand func(t *rapid.T, depth int) string
	expression := func(t *rapid.T, depth int) string {
		e := operand(t, depth)
		for range rapid.IntRange(0, 2).Draw(t, "operators") {
			blank := pick(t, "", " ")
			op := pick(t, "?", "?|", "?&", "@?", "?#", "||", "->", "->>", "#>>", "=", "<>", "@>", "&", "|", "#", " AND ",
				" BETWEEN ", " LIKE ")
			e += blank + op + pick(t, "", " ") + operand(t, depth)
			if op == " BETWEEN " {
				e += " AND " + operand(t, depth)
			}
		}
		return e
	}
	operand = func(t *rapid.T, depth int) string {
		if depth == 0 {
			return pick(t, "7", "'a?b'", "$1", "E'\\'?'", "$q$ ' ? $q$", "t.a", `t."b?"`, `U&"c?"`, "'x'::text", "NULL")
		}
		return pick(t, "", "f") + "(" + expression(t, depth-1) + ")" + pick(t, "", "::jsonb", "[1]")
	}
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(0, 2)
		text := "SELECT " + expression(t, depth.Draw(t, "depth")) + pick(t, " AS x", ", 'l'", "") + " FROM t /* ? */ WHERE " +
			expression(t, depth.Draw(t, "depth")) + pick(t, " LIMIT 3", " ORDER BY 1", "\n-- ?\nOFFSET 2", "")
		for _, err := range refilled(text) {
			t.Fatalf("%v\nof %s", err, text)
		}
	})
}
