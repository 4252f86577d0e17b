package mysql

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// A branch is a part of an expression that is evaluated where it is the first whose condition holds.
type branch struct {
	when string
	rows string // the query of what its subquery finds for a row of the table d, whose key is d.id; empty: there is none
}

// TestBranchesTellTheRowsOfThoseThatComeToThem draws CASE, IF and COALESCE with subqueries in the select list. It holds
// what these show against what they find for the rows that come to them, and what a client sees against what it saw.
func TestBranchesTellTheRowsOfThoseThatComeToThem(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	s := newReadServer(t)
	s.session.Repeats = true
	exact := 0
	rapid.Check(t, func(rt *rapid.T) {
		item, branches := drawBranches(rt)
		if text, alias, _ := strings.Cut(item, " AS x"); alias == "" {
			around := rapid.SampledFrom([]string{"%s", "%s", "1 + %s", "2 * (%s)", "ROUND(%s, 1)", "3 < %s", "CONCAT(%s, 'x')",
				"%s - d.boss", "d.boss - %s", "%s = d.boss", "ABS(%s) = d.boss", "CAST(%s AS CHAR)"}).Draw(rt, "around")
			item = fmt.Sprintf(around, text) + " AS x"
			if strings.HasPrefix(around, "d.boss") { // there is nothing to compute with
				branches = append([]branch{{when: "d.boss IS NULL"}}, branches...)
			}
		}
		query := "SELECT d.id, " + item + " FROM d" + rapid.SampledFrom([]string{"", " WHERE d.boss > 1", " WHERE d.id < 3"}).Draw(rt, "where")
		p := s.rewriter.Plan(query, s.session)
		if p.Observation != history.Exact || len(p.Result.Sources) < 2 {
			return
		}
		exact++
		want := make(map[string]bool)
		r := s.exec(query)
		for i := range r.Values {
			id, _ := r.GetInt(i, 0)
			want[fmt.Sprintf("d%d", id)] = true
			s.take(branches, int(id), want)
		}
		var all []string
		for id := range want {
			all = append(all, id)
		}
		slices.Sort(all)
		original := s.original(query, false)
		original.warnings = s.warned(0)
		proxied := s.see(literal(p, Values{}), p.HiddenColumns(), false)
		proxied.warnings = s.warned(0)
		if got := strings.ReplaceAll(proxied.seen(t, p.Result.Sources)+" ", "=0 ", " "); strings.TrimSpace(got) != strings.Join(all, " ") {
			rt.Fatalf("%s shows %q, not %q", query, got, all)
		}
		slices.Sort(original.rows) // what an index answers has another order, and its warnings with it (ADR 3)
		original.warnings, proxied.warnings = inOrder(original.warnings), inOrder(proxied.warnings)
		if slices.Sort(proxied.rows); !slices.Equal(original.rows, proxied.rows) || !slices.Equal(original.columns, proxied.columns) ||
			original.warnings != proxied.warnings {
			rt.Fatalf("%s: %v, not %v", query, proxied, original)
		}
	})
	if t.Logf("%d are exact", exact); exact == 0 {
		t.Error("none was exact")
	}
}

// inOrder sorts the lines of a text.
func inOrder(lines string) string {
	return strings.Join(slices.Sorted(strings.SplitSeq(lines, "\n")), "\n")
}

// take adds the rows that the subquery of the first branch finds whose condition holds for a row.
func (s *readServer) take(branches []branch, id int, found map[string]bool) {
	for _, b := range branches {
		if n, _ := s.exec(fmt.Sprintf("SELECT COUNT(*) FROM d WHERE d.id = %d AND (%s)", id, b.when)).GetInt(0, 0); n == 0 {
			continue
		}
		if b.rows != "" {
			r := s.exec(strings.ReplaceAll(b.rows, "d.id", fmt.Sprint(id)))
			for i := range r.Values {
				row, _ := r.GetString(i, 0)
				found[row] = true
			}
		}
		return
	}
}

// drawBranches draws an item of a select list, and the branches that it has.
func drawBranches(t *rapid.T) (text string, branches []branch) {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "part") }
	subquery := func() (text, rows string) {
		from := " FROM e x WHERE " + one("x.dep = d.id AND ", "") + one("x.note = 'a'", "x.pay > 15", "x.id < 4", "x.note IS NULL")
		text = "(SELECT " + one("MAX(x.pay)", "COUNT(*)", "SUM(x.id)") + from + ")"
		return one(text, text, "COALESCE("+text+", 0)"), "SELECT CONCAT_WS('=', x.isotap_rowid, NULLIF(x.isotap_wlist, '0'))" + from
	}
	result := func(when string) string {
		if rapid.IntRange(0, 2).Draw(t, "plain") == 0 {
			branches = append(branches, branch{when: when})
			return one("1", "d.boss", "NULL")
		}
		text, rows := subquery()
		branches = append(branches, branch{when, rows})
		return text
	}
	condition := func() string {
		return one("d.boss > 3", "d.id = 1", "d.name = 'ops'", "d.boss IS NULL", "d.id BETWEEN 2 AND 3", "NOT d.boss = 2")
	}
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 5:
		text, rows := subquery()
		branches = []branch{{"1 = 1", rows}}
		test := one("d.boss > %s", "d.boss = %s", "3 < %s", "%s > d.boss", "%s IS NULL")
		if strings.HasPrefix(test, "d.boss") {
			branches = append([]branch{{when: "d.boss IS NULL"}}, branches...)
		}
		return "CASE WHEN " + fmt.Sprintf(test, text) + " THEN " + one("1", "d.boss") + one("", " WHEN d.id = 1 THEN 7") + one("", " ELSE d.id") + " END", branches
	case 4:
		text, rows := subquery()
		return text, []branch{{"1 = 1", rows}}
	case 0:
		c := condition()
		return "IF(" + c + ", " + result(c) + ", " + result("1 = 1") + ") AS x", branches
	case 1:
		first := one("d.boss", "d.name")
		branches = append(branches, branch{when: first + " IS NOT NULL"})
		return one("COALESCE", "IFNULL") + "(" + first + ", " + result("1 = 1") + ")", branches
	case 2:
		value, first, second := "d.boss", one("2", "4"), one("1", "4")
		text = "CASE " + value + " WHEN " + first + " THEN " + result(value+" = "+first) + " when " + second + " THEN " + result(value+" = "+second)
	default:
		text = "CASE"
		for range rapid.IntRange(1, 3).Draw(t, "whens") {
			c := condition()
			text += " WHEN " + c + " THEN " + result(c)
		}
	}
	if rapid.Bool().Draw(t, "else") {
		text += " ELSE " + result("1 = 1")
	}
	return text + " END", branches
}

// TestBranchesThatAreNotTakenAreNotRun counts the runs of subqueries in branches.
func TestBranchesThatAreNotTakenAreNotRun(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	s := newReadServer(t)
	const one, two = "(SELECT MAX(one.pay) FROM e AS one WHERE one.dep = d.id)", "(SELECT MAX(two.pay) FROM e AS two WHERE two.dep = d.id)"
	for _, item := range []string{"CASE WHEN d.id < 9 THEN " + one + " ELSE " + two + " END", "IF(d.boss > 9, " + two + ", " + one + ")",
		"CASE d.name WHEN 'x' THEN " + two + " ELSE " + one + " END", "COALESCE(d.boss, " + two + "), " + one,
		"CASE WHEN d.boss > 9 THEN " + two + " WHEN d.id < 9 THEN " + one + " WHEN d.id < 10 THEN " + two + " END"} {
		if ran := s.runs("SELECT " + item + " FROM d WHERE d.id < 3"); ran["one"] == 0 || ran["two"] != 0 {
			t.Errorf("%s: the first ran %v times, the second %v", item, ran["one"], ran["two"])
		}
	}
}
