package mysql

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// shownOnTiDB are queries that name, or show, what isotap's columns are among.
var shownOnTiDB = map[string][]string{
	"query": {"SELECT <list> FROM <from><where>", "SELECT <list> FROM <from><where>", "SELECT <list><comment> FROM <from><where>",
		"SELECT * FROM <from><where>", "WITH w AS (SELECT * FROM <table>) SELECT w.*<comment> FROM w", "SELECT DISTINCT <list> FROM <from><where>",
		"SELECT * FROM (<query>) q", "SELECT <list> FROM <from><where> UNION ALL SELECT <list> FROM <from><where>", "(SELECT * FROM <table> ORDER BY id LIMIT 2)",
		"TABLE <table>", "SELECT EXISTS (SELECT * FROM <from><where>)<comment>, 1"},
	"list": {"*", "<item>", "<item>, <item>", "<item>, <item>, 1", "<item><comment>, <item>"},
	"item": {"id", "x.id", "x.*", "id + 1", "COUNT(*)", "EXISTS (SELECT * FROM <table> z WHERE z.id = id)", "(SELECT COUNT(*) FROM <table>)", "'it''s'", "x.id AS `n n`",
		"x.id IN (SELECT z.id FROM <table> z)", "(SELECT z.id FROM <table> z ORDER BY z.id LIMIT 1)", "(SELECT q.id FROM (SELECT * FROM <table>) q LIMIT 1)", "x . id", "- 1", "NULL"},
	"comment": {"", "", " /* c */", "/* c */", " -- c\n", " # c\n", "\n"},
	"table":   {"d", "e", "d"},
	"from": {"<table> x", "<table> x", "(SELECT * FROM <table>) x", "<table> x JOIN <table> y USING (id)", "<table> x NATURAL JOIN <table> y",
		"<table> x LEFT JOIN <table> y ON x.id = y.id", "<table> x RIGHT JOIN (SELECT id FROM <table>) y USING (id)", "(<table> x, <table> y)"},
	"where": {"", "", " WHERE x.id < 3", " WHERE EXISTS (SELECT * FROM <table> z WHERE z.id = x.id + 1)", " WHERE NOT EXISTS (SELECT * FROM e z WHERE z.dep = x.id)",
		" WHERE x.id IN (SELECT id FROM <table>)", " WHERE (SELECT COUNT(*) FROM <table> z WHERE z.id > x.id) > 1"},
}

// TestClientsOfTiDBDoNotSeeColumns draws queries that show, or name, all columns of tables, and holds what a client
// sees of them against what it would see without isotap's columns, whether they are observed or not. Without a row that
// an exact one does not tell it gives the same.
func TestClientsOfTiDBDoNotSeeColumns(t *testing.T) {
	testdb.Only(t, "others have invisible columns", testdb.TiDBRound.Name)
	s := newReadServer(t)
	exact := 0
	rapid.Check(t, func(rt *rapid.T) {
		query := drawText(rt, shownOnTiDB, "<query>")
		p := s.rewriter.Plan(query, s.session)
		text := query
		switch {
		case p.Upstream.Pieces != nil:
			text = literal(p, Values{})
		case p.Upstream.Plain != "":
			text = p.Upstream.Plain
		}
		want, got := s.original(query, false), s.see(text, p.HiddenColumns(), false)
		if !equalSights(want, got) {
			rt.Fatalf("%s: %v\n%s: %v", query, want, text, got)
		}
		if p.Observation == history.Exact {
			exact++
			if needed := s.needs(query, want, got.seen(t, p.Result.Sources)); needed != "" {
				rt.Fatalf("%s: %s is not told, and matters\n%s: %v", query, needed, text, got)
			}
		}
	})
	t.Logf("%d are exact", exact)
}

// needs returns a row that is not told, and without which a query gives something else; an empty string where there is
// none.
func (s *readServer) needs(query string, want sight, told string) string {
	for of, rows := range map[string]int{"d": 3, "e": 5} {
		for id := 1; id <= rows; id++ {
			row := fmt.Sprintf("%s%d", of, id)
			if slices.ContainsFunc(strings.Fields(told), func(r string) bool { return r == row || strings.HasPrefix(r, row+"=") }) {
				continue
			}
			s.onPlain("BEGIN")
			s.onPlain(fmt.Sprintf("DELETE FROM %s WHERE id = %d", of, id))
			without := s.original(query, false)
			s.onPlain("ROLLBACK")
			if !equalSights(want, without) {
				return row
			}
		}
	}
	return ""
}

// onPlain runs a statement where originals run.
func (s *readServer) onPlain(statement string) {
	s.t.Helper()
	if _, err := s.plain.Execute(statement); err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
}

// equalSights reports whether a client sees the same, in whatever order.
func equalSights(a, b sight) bool {
	return slices.Equal(a.columns, b.columns) && maps.Equal(counted(a.rows), counted(b.rows)) && a.warnings == b.warnings
}
