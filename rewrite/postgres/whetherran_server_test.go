package postgres

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// TestWhetherASubqueryOfNoRowRanIsNotShown has statements with subqueries that hang on no row, behind OR: within
// another subquery, in a query of a set operation, and in one that groups. Each gives the same with a row more and
// without it, but runs the subquery for that row alone, which nothing shows.
func TestWhetherASubqueryOfNoRowRanIsNotShown(t *testing.T) {
	tw := newTwins(t)
	for _, c := range []struct{ text, more string }{
		{"SELECT name FROM item i WHERE i.id = 3 AND EXISTS (SELECT 1 FROM orders o WHERE o.item_id = i.id AND (o.qty = 7 OR o.qty > (SELECT max(a) FROM loose)))",
			"INSERT INTO orders VALUES (90, 3, 0)"},
		{"SELECT name FROM item WHERE id > 3 AND (stock = 1 OR stock > (SELECT max(a) FROM loose)) UNION SELECT k FROM kv", "INSERT INTO item VALUES (90, 'n', 1, 0)"},
		{"SELECT name FROM item WHERE id > 3 AND (stock = 1 OR stock > (SELECT max(a) FROM loose)) UNION ALL SELECT k FROM kv", "INSERT INTO item VALUES (90, 'n', 1, 0)"},
		{"SELECT count(*) FROM item WHERE id > 3 AND (stock > (SELECT max(qty) FROM orders) OR stock > (SELECT max(a) FROM loose))",
			"INSERT INTO item VALUES (90, 'n', 1, 0)"},
	} {
		if p := tw.rewriter.Plan(c.text, tw.session).Statements[0]; p.Observation == history.Exact {
			t.Errorf("%s is exact", c.text)
		}
		run(t, tw.original, "BEGIN")
		before, without := tw.runsLoose(c.text)
		run(t, tw.original, c.more)
		after, with := tw.runsLoose(c.text)
		run(t, tw.original, "ROLLBACK")
		if before != after || without || !with {
			t.Errorf("%s gives %q and runs it: %t; with the row, %q and %t", c.text, before, without, after, with)
		}
	}
}

// runsLoose returns what a statement gives, and whether it reads the table loose.
func (tw *twins) runsLoose(text string) (rows string, ran bool) {
	tw.t.Helper()
	replies, failure := run(tw.t, tw.original, text+"; EXPLAIN (ANALYZE, COSTS off, TIMING off) "+text)
	if failure != nil {
		tw.t.Fatal(failure)
	}
	for _, row := range replies[0].Rows {
		rows += strings.Join(row, ",") + ";"
	}
	for _, row := range replies[1].Rows {
		ran = ran || strings.Contains(row[0], " on loose ") && !strings.Contains(row[0], "never executed")
	}
	return rows, ran
}
