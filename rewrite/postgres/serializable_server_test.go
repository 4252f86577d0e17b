package postgres

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/history"
)

// plans are settings by which the server chooses other plans.
var plans = []string{"SET enable_seqscan = on", "SET enable_seqscan = off",
	"SET enable_seqscan = off; SET enable_bitmapscan = off",
	"SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0"}

// wholeTable is what groups all of a table's rows: all of it is locked in any case, by the table or by all that is in
// it.
var wholeTable = regexp.MustCompile(`count\(\*\)[^F]* FROM "?\w+"?($|\)| UNION)| FROM \w+ GROUP BY|^SELECT DISTINCT [^W]* FROM \w+( ORDER|$)|GROUP BY.*FROM \w+ \w+ LEFT JOIN|count.*FROM \w+ \w+ LEFT JOIN [^W]*$`)

// insertSelectTexts read the way that what is told of them does.
const insertSelectTexts = `
INSERT INTO kv SELECT 'n' || id, note FROM orders WHERE id = 2
INSERT INTO kv SELECT 'n' || o.id, name FROM orders o JOIN item i ON i.id = o.item_id WHERE o.qty > 1
INSERT INTO loose SELECT stock, name FROM item WHERE price > 2
INSERT INTO loose SELECT stock, name FROM item WHERE id IN (1, 3)
INSERT INTO loose SELECT id, note FROM orders ORDER BY id
INSERT INTO loose SELECT id FROM orders WHERE id = 2
INSERT INTO loose SELECT a, count(*) FROM part GROUP BY a
WITH w AS (SELECT id, name FROM item WHERE stock > 5) INSERT INTO loose SELECT id, name FROM w
WITH w AS (SELECT id FROM item) INSERT INTO loose SELECT id FROM w WHERE id = 2
WITH w AS (SELECT id, name FROM item), v AS MATERIALIZED (SELECT item_id, note FROM orders WHERE id < 3) INSERT INTO loose SELECT w.id, note FROM w JOIN v ON item_id = w.id
WITH w AS MATERIALIZED (SELECT item_id, count(*) AS n FROM orders WHERE id > 1 GROUP BY item_id) INSERT INTO loose SELECT w.n, name FROM w JOIN item i ON i.id = w.item_id
INSERT INTO loose WITH w AS (SELECT max(id) AS n FROM orders) SELECT n, 'w' FROM w
`

// TestReadsTakeTheSamePredicateLocks compares what SERIALIZABLE locks for the original and the rewritten text, by
// the plans for small tables, and by those through indexes.
func TestReadsTakeTheSamePredicateLocks(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	tw := newTwins(t)
	tw.session.Serializable = true
	changed := 0
	for _, settings := range plans {
		for _, text := range strings.Split(strings.TrimSpace(readTexts+insertSelectTexts), "\n") {
			script := tw.rewriter.Plan(text, tw.session)
			if script.Pieces == nil || wholeTable.MatchString(text) {
				continue
			}
			changed++
			tw.sameLocks(settings, text, string(script.Append(nil)))
		}
	}
	if changed < 30 {
		t.Errorf("only %d texts were compared", changed)
	}
}

// TestSubqueriesRunAgainTakeTheSamePredicateLocks has those that are, and others that must not be.
func TestSubqueriesRunAgainTakeTheSamePredicateLocks(t *testing.T) {
	tw := newTwins(t)
	tw.both("INSERT INTO loose SELECT g, 'x' FROM generate_series(3, 9) g")
	tw.both("ANALYZE")
	tw.session.Serializable = true
	for _, c := range []struct {
		text  string
		exact bool
	}{
		{"SELECT id, name FROM item WHERE id = 1 AND EXISTS (SELECT FROM loose WHERE a = item.id)", true},
		{"SELECT id, name FROM item WHERE id IN (SELECT a FROM loose WHERE b = 'x')", true},
		{"SELECT id, name, (SELECT count(*) FROM loose l, loose m WHERE l.a = m.a AND l.a = item.id) FROM item WHERE id < 3", true},
		{"SELECT id, name FROM item i WHERE id < 4 AND NOT EXISTS (SELECT FROM loose l JOIN void v ON v.a = l.a WHERE l.a <> i.id)", false},
		{"SELECT id, name FROM item i WHERE id < 4 AND NOT EXISTS (SELECT FROM loose l WHERE l.a <> i.id AND EXISTS (SELECT FROM void v WHERE v.a = l.a))", false},
		{"SELECT a FROM loose UNION SELECT a FROM void ORDER BY 1", true},
		{"SELECT a, count(*) FROM loose WHERE b <> 'y' GROUP BY 1 HAVING count(*) > 1", true},
		{"SELECT count(*) FROM (SELECT DISTINCT b FROM loose) d", true},
		{"SELECT l.a FROM loose l JOIN void v ON v.a > l.a UNION SELECT 1", false},
		{"SELECT a FROM loose WHERE a IN (SELECT a FROM void) UNION SELECT a FROM void", false},
		{"SELECT name FROM item UNION SELECT b FROM loose", false},
		{"SELECT id, name FROM item WHERE id NOT IN (SELECT a FROM loose) AND id > (SELECT min(a) FROM loose)", true},
		{"UPDATE item SET name = 'x' WHERE id = (SELECT max(a) FROM loose)", true},
		{"DELETE FROM kv WHERE NOT EXISTS (SELECT FROM loose WHERE b = k)", true},
		{"SELECT id, name FROM item WHERE id = 1 AND EXISTS (SELECT FROM orders WHERE item_id = item.id)", false},
		{"SELECT id, name FROM item WHERE id = (SELECT max(id) FROM orders)", false},
		{"SELECT id, name FROM item WHERE EXISTS (SELECT FROM loose l WHERE l.ctid = '(0,1)')", false},
		{"SELECT id, name FROM item WHERE EXISTS (SELECT FROM part WHERE a = item.id)", false},
		{"WITH w AS (SELECT a FROM loose) SELECT id, name FROM item WHERE id IN (SELECT a FROM w)", false},
	} {
		script := tw.rewriter.Plan(c.text, tw.session)
		if got := script.Statements[0]; (got.Observation == history.Exact) != c.exact {
			t.Errorf("%s: %v: %s", c.text, got.Observation, got.Reason)
		}
		for _, settings := range plans {
			tw.sameLocks(settings, c.text, string(script.Append(nil)))
		}
	}
}

// predicateLocks shows what SERIALIZABLE has locked for the transaction.
const predicateLocks = `WITH l AS (SELECT * FROM pg_locks WHERE mode = 'SIReadLock' AND pid = pg_backend_pid())
	SELECT locktype, relation::regclass, page, tuple FROM l WHERE NOT EXISTS ( -- one that covers it
		SELECT FROM l AS m WHERE m.relation = l.relation AND (m.page IS NULL AND l.page IS NOT NULL OR m.page = l.page AND m.tuple IS NULL AND l.tuple IS NOT NULL))
	ORDER BY relation::regclass::text, locktype, page, tuple`

// sameLocks compares what a text locks with what is locked when another is sent in its place.
func (tw *twins) sameLocks(settings, text, instead string) {
	t := tw.t
	t.Helper()
	var taken [2][]reply
	for i, c := range []*pgconn.PgConn{tw.original, tw.proxied} {
		run(t, c, settings+"; BEGIN ISOLATION LEVEL SERIALIZABLE")
		if _, err := run(t, c, []string{text, instead}[i]); err == nil {
			taken[i], _ = run(t, c, predicateLocks)
		}
		run(t, c, "ROLLBACK")
	}
	if !reflect.DeepEqual(taken[0], taken[1]) {
		t.Errorf("%s: %s\nlocks %v, not %v", settings, text, taken[1], taken[0])
	}
}

// TestPartsTakeTheSamePredicateLocks compares them for statements with parts that write.
func TestPartsTakeTheSamePredicateLocks(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	tw := newTwins(t)
	tw.both("CREATE SEQUENCE seq; SET jit = off")
	// What these write has autovacuum analyze a table, of one twin before the other's: another plan would be taken.
	for _, table := range tw.ask("SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1") {
		tw.both("ALTER TABLE " + table + " SET (autovacuum_enabled = off)")
	}
	tw.session.Serializable = true
	changed := 0
	for _, settings := range plans {
		for _, text := range textsWithParts() {
			if script := tw.rewriter.Plan(text, tw.session); script.Pieces != nil {
				changed++
				tw.sameLocks(settings, text, string(script.Append(nil)))
			}
		}
	}
	if changed < 100 {
		t.Errorf("only %d texts were compared", changed)
	}
}

// TestReadsOfWholeTablesConflictWithEveryWrite has two transactions read what the other one writes then: one of them
// must fail, by whatever plan the first reads, and whether it tells identities or not.
func TestReadsOfWholeTablesConflictWithEveryWrite(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	tw := newTwins(t)
	tw.session.Serializable = true
	other := map[*pgconn.PgConn]*pgconn.PgConn{tw.original: again(t, tw.original), tw.proxied: again(t, tw.proxied)}
	for _, text := range []string{"SELECT count(*) FROM item",
		"SELECT item.id, sum(orders.qty) FROM item LEFT JOIN orders ON item_id = item.id GROUP BY item.id"} {
		script := tw.rewriter.Plan(text, tw.session)
		if script.Pieces == nil {
			t.Fatalf("%s is not observed", text)
		}
		sent := map[*pgconn.PgConn]string{tw.original: text, tw.proxied: string(script.Append(nil))}
		tw.conflict(sent, other)
	}
}

// conflict has the first of each pair of sessions read, and the second write.
func (tw *twins) conflict(sent map[*pgconn.PgConn]string, other map[*pgconn.PgConn]*pgconn.PgConn) {
	t := tw.t
	t.Helper()
	for _, settings := range plans {
		for _, write := range []string{"INSERT INTO item (id) VALUES (9)", "UPDATE item SET name = 'x' WHERE id = 1",
			"UPDATE item SET price = 9 WHERE id = 2", "UPDATE item SET id = 8 WHERE id = 2",
			"DELETE FROM item WHERE id = 3"} {
			for first, second := range other {
				for _, sql := range []string{"VACUUM item", settings} {
					if _, failure := run(t, first, sql); failure != nil {
						t.Fatal(failure)
					}
				}
				run(t, first, "BEGIN ISOLATION LEVEL SERIALIZABLE; "+sent[first])
				run(t, second, "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM loose")
				run(t, first, "INSERT INTO loose VALUES (3, 'z')")
				_, failure := run(t, second, write)
				run(t, first, "COMMIT")
				if failure == nil {
					_, failure = run(t, second, "COMMIT")
				}
				if failure == nil || failure.Code != "40001" {
					t.Errorf("%s: %s, then %s: %v", settings, sent[first], write, failure)
				}
				run(t, second, "ROLLBACK")
				run(t, second, "DELETE FROM loose WHERE a = 3")
			}
		}
	}
}

// again opens a second connection to a connection's database.
func again(t *testing.T, c *pgconn.PgConn) *pgconn.PgConn {
	t.Helper()
	replies, failure := run(t, c, "SELECT current_database()")
	if failure != nil {
		t.Fatal(failure)
	}
	return open(t, replies[0].Rows[0][0][1:])
}
