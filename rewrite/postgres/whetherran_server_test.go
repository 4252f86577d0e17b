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

// counted puts a statement into one that counts the scans of loose before and behind it, and shows how many there were.
func counted(text string) string {
	const scans = "pg_stat_get_xact_numscans('loose'::regclass)"
	return "SELECT CASE WHEN count(r.*) OVER () >= 0 THEN " + scans + " END - b.n FROM (SELECT " + scans + " AS n OFFSET 0) b LEFT JOIN (SELECT c.* FROM (" + text + ") c OFFSET 0) r ON true LIMIT 1"
}

// TestCountersTellWhetherASubqueryRan has the server's own counters tell of such statements whether loose was scanned,
// which the result does not show. Those of a parallel worker the session does not see, though the statement ran it, and
// none are counted where the server is told so.
func TestCountersTellWhetherASubqueryRan(t *testing.T) {
	tw := newTwins(t)
	scans := func(text string) string {
		t.Helper()
		replies, failure := run(t, tw.original, counted(text))
		if failure != nil {
			t.Fatalf("%s: %v", text, failure)
		}
		return replies[0].Rows[0][0]
	}
	for _, c := range []struct{ text, more string }{
		{"SELECT name FROM item i WHERE i.id = 3 AND EXISTS (SELECT 1 FROM orders o WHERE o.item_id = i.id AND (o.qty = 7 OR o.qty > (SELECT max(a) FROM loose)))",
			"INSERT INTO orders VALUES (90, 3, 0)"},
		{"SELECT name FROM item WHERE id > 3 AND (stock = 1 OR stock > (SELECT max(a) FROM loose)) UNION SELECT k FROM kv", "INSERT INTO item VALUES (90, 'n', 1, 0)"},
		{"SELECT count(*) FROM item WHERE id > 3 AND (stock > (SELECT max(qty) FROM orders) OR stock > (SELECT max(a) FROM loose))",
			"INSERT INTO item VALUES (90, 'n', 1, 0)"},
		{"SELECT name FROM item WHERE id > 3 AND (stock = 1 OR EXISTS (SELECT 1 FROM loose WHERE a > 9))", "INSERT INTO item VALUES (90, 'n', 1, 0)"},
	} {
		run(t, tw.original, "BEGIN")
		without := scans(c.text)
		run(t, tw.original, c.more)
		with := scans(c.text)
		run(t, tw.original, "ROLLBACK")
		if without != "=0" || with != "=1" {
			t.Errorf("%s scans loose %s times, and %s with the row", c.text, without, with)
		}
	}
	run(t, tw.original, "SET track_counts = off")
	const uncounted = "SELECT name FROM item WHERE EXISTS (SELECT 1 FROM loose WHERE a > 1)"
	if _, ran := tw.runsLoose(uncounted); !ran || scans(uncounted) != "=0" {
		t.Errorf("%s runs it: %t, and scans are counted without track_counts", uncounted, ran)
	}
	run(t, tw.original, "RESET track_counts")
	run(t, tw.original, manyRows+"; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off; ALTER TABLE loose SET (parallel_workers = 0)")
	const inWorkers = "SELECT name FROM item WHERE stock = 1 OR stock IN (SELECT a FROM loose WHERE b <> 'q')"
	if found := tw.scanned(inWorkers); found["loose"] == 0 {
		t.Errorf("%s does not read loose", inWorkers)
	}
	if got := scans(inWorkers); got != "=0" {
		t.Errorf("of a subquery that workers run %s scans are counted", got)
	}
}
