package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

// queues are statements that take rows of gen as job queues do: by a query with subqueries, which locks them.
var queues = grammar{
	"read": {"WITH next AS (<take>) UPDATE gen SET a = 7 FROM next WHERE gen.id = next.id<more> RETURNING gen.*", "WITH next AS (<take>) UPDATE gen AS g SET a = g.a + 1 FROM next n WHERE g.id = n.id AND g.a < 4 RETURNING g.id, n.a",
		"WITH next AS (<take>) DELETE FROM gen USING next WHERE gen.id = next.id<more> RETURNING *", "UPDATE gen SET a = <int> FROM (<take>) next WHERE gen.id = next.id<more> RETURNING gen.id",
		"UPDATE gen SET a = 7 WHERE id = (<one>) RETURNING id, a", "DELETE FROM gen WHERE id = (<one>) RETURNING *", "UPDATE gen SET a = a + 1 WHERE id IN (<ids>)<more> RETURNING id", "DELETE FROM gen WHERE id = ANY (<ids>)<more> RETURNING id",
		"WITH next AS (<ids>) UPDATE gen SET a = 7 WHERE id IN (SELECT id FROM next) RETURNING *", "WITH next AS (<take>) UPDATE item SET stock = next.id FROM next JOIN loose l ON l.a = next.a WHERE item.id = next.a RETURNING item.id",
		"WITH next AS (<take>) SELECT i.name, next.* FROM next LEFT JOIN item i ON i.id = next.a<less>", "SELECT d.id, l.b FROM (<take>) d JOIN loose l ON l.a = d.a", "WITH next AS MATERIALIZED (<take>) SELECT n.id FROM next n JOIN next m ON m.id >= n.id",
		"WITH next AS (<take>), taken AS (UPDATE gen SET a = 7 FROM next WHERE gen.id = next.id<more> RETURNING gen.*) SELECT * FROM taken ORDER BY id", "WITH next AS (<take>), q AS (UPDATE item SET stock = 1 FROM next WHERE item.id = next.a) UPDATE gen SET a = 7 FROM next WHERE gen.id = next.id RETURNING gen.id",
		"WITH next AS (<take>), gone AS (DELETE FROM gen USING next WHERE gen.id = next.id RETURNING gen.id, next.a) SELECT i.id, gone.id FROM gone JOIN item i ON i.id = gone.a",
		"WITH next AS (<ids>), taken AS (UPDATE gen SET a = 7 WHERE id IN (SELECT id FROM next) RETURNING *) SELECT * FROM taken", "SELECT item.* FROM item WHERE item.id IN (<advisory>)", "SELECT id, stock FROM item AS j WHERE id = ANY (<advisory>) ORDER BY id DESC"},
	"advisory": {"WITH r AS MATERIALIZED (SELECT id, i.stock FROM item i WHERE <of i> ORDER BY i.stock<desc>, i.id LIMIT 2) SELECT r.id FROM r WHERE pg_try_advisory_lock(r.stock) LIMIT <int>", "SELECT r.id FROM (SELECT i.id FROM item i ORDER BY id<desc>) r WHERE <of r> AND pg_try_advisory_lock(r.id)", "SELECT id FROM item WHERE pg_try_advisory_lock(id) AND stock > <int>"},
	"of i":     {"i.stock > <int>", "i.name <> 'x'"}, "of r": {"r.id < 3", "r.id <> <int>"},
	"take": {"SELECT g.id, g.a FROM gen g WHERE <any> FOR UPDATE<skip>", "SELECT g.id, g.a FROM gen g WHERE <any> AND <any> ORDER BY g.a, g.id FOR NO KEY UPDATE<skip>", "SELECT g.id, g.a FROM gen g WHERE <some> ORDER BY g.id<desc> LIMIT <int> FOR UPDATE<skip>", "SELECT g.id, g.a FROM gen g JOIN item j ON j.id = g.a WHERE <some> ORDER BY g.id LIMIT 2 FOR UPDATE OF g<skip>"},
	"one":  {"SELECT g.id FROM gen g WHERE <some> ORDER BY g.a<desc>, g.id LIMIT 1 FOR UPDATE<skip>", "SELECT id FROM gen WHERE <own> ORDER BY id<desc> LIMIT 1 FOR UPDATE<skip>"},
	"ids":  {"<one>", "SELECT g.id FROM gen g WHERE <any> FOR UPDATE<skip>", "SELECT g.id FROM gen g WHERE <any> AND <some> ORDER BY g.id FOR UPDATE<skip>", "SELECT gen.id FROM gen WHERE <own> FOR SHARE<skip>"},
	"some": {"EXISTS (SELECT FROM orders o WHERE o.item_id = g.a)", "g.a IN (SELECT o.item_id FROM orders o WHERE o.qty > <int>)", "(g.twice = 4 OR EXISTS (SELECT FROM orders o WHERE o.item_id = g.id AND o.note = 'a'))", "g.id IN (SELECT l.a FROM loose l WHERE l.a <= g.twice)", "EXISTS (SELECT FROM orders o JOIN item i ON i.id = o.item_id WHERE i.id = g.a AND i.stock > <int>)", "(g.id = 2 OR g.a IN (SELECT l.a FROM loose l) OR g.a > (SELECT min(i.id) FROM item i WHERE i.id > g.id))"},
	"any":  {"<some>", "<some>", "NOT EXISTS (SELECT FROM gen x WHERE x.a = g.a AND x.id < g.id)", "NOT EXISTS (SELECT FROM orders o WHERE o.item_id = g.a AND o.qty > <int>)", "g.a NOT IN (SELECT l.a FROM loose l WHERE l.b = 'y')", "g.a >= (SELECT min(o.qty) FROM orders o WHERE o.item_id <= g.id)", "g.a > (SELECT min(l.a) - 1 FROM loose l)", "CASE WHEN g.a > 1 THEN EXISTS (SELECT FROM kv WHERE k = 'a') ELSE true END", "true"},
	"own":  {"EXISTS (SELECT FROM orders o WHERE o.item_id = gen.a)", "a IN (SELECT item_id FROM orders)", "(twice = 4 OR EXISTS (SELECT FROM orders WHERE item_id = gen.id))", "id IN (SELECT i.id FROM item i WHERE i.stock >= a)"},
	"desc": {"", " DESC"},
	"skip": {"", " SKIP LOCKED"},
	"more": {"", "", " AND gen.a < 4", " AND gen.id IN (SELECT x.id FROM item x)"},
	"less": {"", " WHERE next.a < 3", " WHERE i.stock > 0 ORDER BY next.id"},
	"int":  {"0", "1", "2", "3"},
}

// moreJobs are rows of gen.
const moreJobs = "INSERT INTO gen VALUES (3, 1), (4, 3), (5, 9)"

// TestQueuesTellWhatTheirSubqueriesRead holds what random ones tell: they look as the client's, a row that is not told
// is of no use, and of a table without a scan that found rows nothing is told.
func TestQueuesTellWhatTheirSubqueriesRead(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	tw := newTwins(t)
	for _, c := range []*pgconn.PgConn{tw.original, tw.proxied} {
		run(t, c, moreJobs)
	}
	tw.holdsOfTables(t, queues, "<read>", "item")
}

// holdsOfTables holds what random statements of a form of a grammar tell: without a row that is not told they give what
// they gave, but for rows of the tables that they write, and they tell nothing of a table of which no scan found a row.
func (tw *twins) holdsOfTables(t *testing.T, of grammar, form string, written ...string) {
	t.Helper()
	tw.withoutAutovacuum()
	exact, empty := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		text := of.draw(r, form)
		for _, c := range []*pgconn.PgConn{tw.original, tw.proxied} {
			run(t, c, "BEGIN; SAVEPOINT unwritten")
			defer run(t, c, "ROLLBACK")
		}
		p, hidden, rows, ok := tw.exactly(r, text)
		if !ok {
			return
		}
		if exact++; rows == 0 {
			empty++
		}
		found := tw.scanned(text)
		run(t, tw.original, "ROLLBACK TO unwritten")
		for table, rows := range tw.toldOf(p, hidden) {
			if rows > 0 && found[table] == 0 {
				r.Fatalf("%s\ntells %d rows of %s, of which it read none", text, rows, table)
			}
		}
		if row := tw.ofUse(text, p, hidden, written...); row != "" {
			r.Fatalf("%s\ndoes not tell %s", text, row)
		}
	})
	if exact == 0 {
		t.Error("no statement is exact")
	}
	t.Logf("%d are exact, %d of them without rows", exact, empty)
}

// TestAQueueThatWaitedTellsWhatItReadThen has another transaction change the row that a queue waits for. What the
// subqueries of the query that locks it read is told as of the row's later version, or not at all.
func TestAQueueThatWaitedTellsWhatItReadThen(t *testing.T) {
	tw := newTwins(t)
	for _, text := range []string{
		"WITH next AS (SELECT id FROM gen g WHERE g.id = 1 AND (g.a = 77 OR g.a IN (SELECT o.item_id FROM orders o)) LIMIT 1 FOR UPDATE) UPDATE gen SET a = 7 FROM next WHERE gen.id = next.id",
		"UPDATE gen SET a = 7 WHERE id = (SELECT g.id FROM gen g WHERE g.id = 1 AND (g.a = 77 OR g.a IN (SELECT o.item_id FROM orders o)) LIMIT 1 FOR UPDATE)",
		"DELETE FROM gen WHERE id IN (SELECT g.id FROM gen g WHERE g.id = 1 AND (SELECT count(*) FROM orders o WHERE o.item_id = g.a) > 0 LIMIT 1 FOR UPDATE)",
	} {
		script := tw.rewriter.Plan(text, tw.session)
		run(t, tw.proxied, "DELETE FROM gen WHERE id = 1; INSERT INTO gen VALUES (1, 1)")
		row := strings.Join(tw.behind(script, "UPDATE gen SET a = 9 WHERE id = 1"), " ")
		order := tw.ask("SELECT " + identityOf["orders"] + " FROM orders WHERE item_id = 9")[0]
		if !strings.Contains(row, `{"`+order+`"}`) && !strings.Contains(row, "{*}") {
			t.Errorf("%s\ntells %s, not %s", text, row, order)
		}
	}
}

// TestQueuesWhoseQueriesCannotRunAgain counts what a copy would lock, beside what the client's text does.
func TestQueuesWhoseQueriesCannotRunAgain(t *testing.T) {
	tw := newTwins(t)
	run(t, tw.original, moreJobs)
	const locked = " WHERE xmax::text = (txid_current() % 4294967296)::text"
	for _, c := range []struct{ text, copied, asked, want, got string }{
		{"WITH next AS (SELECT id FROM gen ORDER BY id FOR UPDATE) UPDATE item SET stock = 1 WHERE id < 3 AND EXISTS (SELECT FROM next)",
			" RETURNING ARRAY(SELECT id FROM next)", "SELECT count(*) FROM gen" + locked, "1", "5"},
		{"UPDATE gen SET a = 7 WHERE id = (SELECT g.id FROM gen g WHERE g.id = 5 AND EXISTS (SELECT FROM item i WHERE i.id < g.a FOR UPDATE) LIMIT 1 FOR UPDATE)",
			" RETURNING ARRAY(SELECT i.id FROM item i WHERE i.id < 9 FOR UPDATE)", "SELECT count(*) FROM item" + locked, "1", "3"},
		{"SELECT g.id FROM gen g WHERE g.a = 9 AND g.id IN (WITH r AS MATERIALIZED (SELECT id FROM gen ORDER BY id LIMIT 3) SELECT r.id FROM r WHERE pg_try_advisory_lock(r.id) LIMIT 1)",
			" OR ARRAY(SELECT g.id FROM gen g WHERE pg_try_advisory_lock(g.id)) IS NOT NULL", "SELECT pg_advisory_unlock(1); SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()", "0", "5"},
		{"WITH RECURSIVE jobs AS (SELECT g.id, pg_try_advisory_lock(g.id) AS locked FROM gen g WHERE g.id = 1 UNION ALL SELECT g.id, pg_try_advisory_lock(g.id) FROM gen g JOIN jobs ON g.id = jobs.id + 1) SELECT id FROM jobs WHERE locked LIMIT 1",
			" OFFSET (SELECT 0 * count(*) FROM jobs)", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()", "1", "5"},
	} {
		if p := tw.rewriter.Plan(c.text, tw.session).Statements[0]; p.Observation == history.Exact {
			t.Errorf("%s is exact", c.text)
		}
		for text, want := range map[string]string{c.text: c.want, c.text + c.copied: c.got} {
			run(t, tw.original, "BEGIN; "+text)
			replies, failure := run(t, tw.original, c.asked)
			run(t, tw.original, "ROLLBACK; SELECT pg_advisory_unlock_all()")
			if failure != nil || replies[len(replies)-1].Rows[0][0] != "="+want {
				t.Errorf("%s: %v %v, not %s", text, failure, replies, want)
			}
		}
	}
}

// TestACopyOfASubqueryThatLocksShowsAnotherVersion has a subquery lock a row that another transaction changed in the
// meantime, as Graphile Worker locks the queues of its jobs. A copy that does not lock shows what the snapshot has.
func TestACopyOfASubqueryThatLocksShowsAnotherVersion(t *testing.T) {
	tw := newTwins(t)
	const text = "SELECT g.id, ARRAY(SELECT i.ctid FROM item i WHERE i.id = g.a) FROM gen g WHERE g.id = 1 AND g.a IN (SELECT i.id FROM item i WHERE i.stock > 0 FOR UPDATE)"
	script := tw.rewriter.Plan(text, tw.session)
	if p := script.Statements[0]; p.Observation == history.Exact {
		t.Errorf("%s is exact", text)
	}
	const version = "SELECT ARRAY[ctid] FROM item WHERE id = 1"
	before := tw.ask(version)[0]
	copied := strings.TrimPrefix(tw.behind(script, "UPDATE item SET stock = 7 WHERE id = 1")[1], "=")
	if locked := tw.ask(version)[0]; copied != before || copied == locked {
		t.Errorf("the copy shows %s; %s was locked, and %s before", copied, locked, before)
	}
}
