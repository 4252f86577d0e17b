package mysql

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// chosenJoins are joins of three tables, by conditions that hold for some of their rows or want none. What stands in
// angle brackets is one of the texts that it names.
var chosenJoins = map[string][]string{
	"read": {"SELECT * FROM e a <join> d b ON <on b> <join> e c ON <on c><where>",
		"SELECT * FROM e a <join> (d b <join> e c ON <on cb>) ON <on b><where>",
		"SELECT * FROM e a <join> d b USING (id) <join> e c ON c.id = b.id<of c><where>",
		"SELECT * FROM e a, d b <join> e c ON <on cb><where>",
		"SELECT a.id, b.id, c.id FROM e a NATURAL LEFT JOIN d b <join> e c ON c.dep = a.dep<of a><where>"},
	"join":  {"JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN"},
	"on b":  {"b.id = a.dep", "b.id = a.dep<of a>", "a.id = b.id<of b>", "a.dep = b.id<of a><of b>"},
	"on c":  {"c.dep = b.id", "c.id = a.id", "c.dep = b.id<of a>", "c.id = b.id<of b><of c>", "c.id = a.dep AND c.id = b.id"},
	"on cb": {"c.dep = b.id", "c.dep = b.id<of c>", "c.id = b.id<of b>", "c.id = b.id<of b><of c>"},
	"where": {"", " WHERE TRUE<of a>", " WHERE TRUE<of b>", " WHERE TRUE<of c>", " WHERE TRUE<of a><of c>", " WHERE TRUE<of b><of c>"},
	"of a":  {" AND a.dep = <int>", " AND a.pay > 10 * <int>", " AND a.id = <int>", " AND a.dep IS NULL", " AND <int> < a.id"},
	"of b":  {" AND b.id = <int>", " AND b.boss > <int>", " AND b.id IS NULL", " AND b.id IN (<int>, <int>)"},
	"of c":  {" AND c.id = <int>", " AND c.dep = <int>", " AND c.dep IS NULL", " AND NOT c.dep > <int>", " AND c.dep <=> <int>"},
	"int":   {"1", "2", "3"},
}

var bracketed = regexp.MustCompile(`<[a-z ]+>`)

func drawText(t *rapid.T, of map[string][]string, text string) string {
	return bracketed.ReplaceAllStringFunc(text, func(name string) string {
		name = strings.Trim(name, "<>")
		return drawText(t, of, rapid.SampledFrom(of[name]).Draw(t, name))
	})
}

// TestRowsThatNoConditionFitsDoNotMatter leaves out of each table what its condition does not fit: the query finds the
// same.
func TestRowsThatNoConditionFitsDoNotMatter(t *testing.T) {
	s := newReadServer(t)
	s.rewriter.options.Predicates = true
	s.exec("INSERT INTO d (id, name, boss) VALUES (4, 'x', 1), (5, 'y', 2)")
	told := 0
	rapid.Check(t, func(r *rapid.T) {
		query := drawText(r, chosenJoins, "<read>")
		less := query
		for _, p := range s.rewriter.Plan(query, s.session).Predicates {
			alias := strings.Trim(p.As, "`")
			from := strings.TrimPrefix(p.Table, s.session.Schema+".") + " " + alias
			if len(p.Where) != 1 || !strings.Contains(less, from) {
				r.Fatalf("%s: %+v", query, p)
			}
			if p.Where[0] == "" { // any row
				continue
			}
			less = strings.Replace(less, from, fmt.Sprintf("(SELECT * FROM %s WHERE %s) %s", from, p.Where[0], alias), 1)
			told++
		}
		want, got := s.original(query, false), s.original(less, false)
		if !maps.Equal(counted(want.rows), counted(got.rows)) || want.warnings != got.warnings {
			r.Fatalf("%s\nfinds %q, %s\n%s\nfinds %q, %s", query, want.rows, want.warnings, less, got.rows, got.warnings)
		}
	})
	if told == 0 {
		t.Error("no query has a condition")
	}
}

// counted returns how often each row comes.
func counted(rows []string) map[string]int {
	count := make(map[string]int)
	for _, row := range rows {
		count[row]++
	}
	return count
}
