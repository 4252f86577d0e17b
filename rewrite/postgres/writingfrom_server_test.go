package postgres

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

// queriesBesideWrites are writes that are joined with queries, a table that these read, and which of its rows.
var queriesBesideWrites = []struct{ text, table, condition string }{
	{"WITH next AS (SELECT id FROM item WHERE stock > 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE item SET stock = 9 FROM next WHERE item.id = next.id RETURNING item.*",
		"item", "id = 1"},
	{"WITH next AS MATERIALIZED (SELECT * FROM item WHERE stock > 0 FOR UPDATE), more AS (SELECT o.id, n.name FROM next n JOIN orders o ON o.item_id = n.id) UPDATE orders o SET note = more.name FROM more WHERE more.id = o.id",
		"item", "id < 3"},
	{"WITH q (n) AS (SELECT item_id FROM orders WHERE qty > 1) DELETE FROM item USING q WHERE q.n = id RETURNING name, q.n",
		"orders", "qty > 1"},
	{"WITH next AS (SELECT id AS n FROM item WHERE stock > 5 FOR UPDATE) UPDATE orders SET qty = 9 FROM next WHERE next.n = item_id RETURNING *",
		"item", "id = 1"},
	{"UPDATE item SET name = x.k FROM (SELECT k FROM kv WHERE k = 'b') AS x WHERE id = 2", "kv", "k = 'b'"},
	{"UPDATE item i SET stock = o.n FROM (SELECT item_id, count(*) AS n FROM orders GROUP BY item_id) AS o WHERE o.item_id = i.id",
		"orders", "item_id < 3"},
	{"WITH g AS (SELECT item_id, count(*) AS n FROM orders GROUP BY item_id) UPDATE item i SET stock = g.n FROM g WHERE g.item_id = i.id RETURNING i.*, g.n",
		"orders", "item_id < 3"},
	{"WITH g AS (SELECT item_id, count(*) AS n FROM orders GROUP BY 1) UPDATE item SET stock = n FROM g JOIN loose l ON l.a = g.item_id WHERE id = g.item_id AND n > 1 AND EXISTS (SELECT FROM kv WHERE k = 'a')",
		"orders", "item_id < 3"},
	{"DELETE FROM item AS i USING (SELECT item_id, count(*) AS n FROM orders GROUP BY item_id) AS g WHERE g.item_id = i.id AND g.n < i.stock",
		"orders", "item_id < 3"},
	{"WITH g AS (SELECT count(*) AS n FROM orders WHERE qty > 1) UPDATE ONLY item SET stock = n, name = CASE WHEN item.id IS DISTINCT FROM 1 THEN 'x' END FROM g WHERE id = 2", "orders", "qty > 1"},
	{"UPDATE item i SET stock = o.n FROM loose l, (SELECT count(*) AS n FROM orders) AS o WHERE l.a = i.id", "orders", "true"},
	{"DELETE FROM line USING (SELECT id FROM orders WHERE note IS NULL UNION ALL SELECT id FROM item WHERE false) u WHERE order_id = u.id",
		"orders", "note IS NULL"},
	{"UPDATE orders SET note = items.name FROM items WHERE items.id = item_id", "item", "id < 3"},
	{"WITH gone AS (DELETE FROM orders o USING (SELECT id, name FROM item) i WHERE i.id = o.item_id RETURNING i.name) SELECT count(*) FROM gone",
		"item", "id < 3"},
}

// queriesBesideMerge are for those versions that can tell what MERGE did.
var queriesBesideMerge = []struct{ text, table, condition string }{
	{"MERGE INTO kv USING (SELECT item_id, note FROM orders WHERE qty > 1) o ON k = note WHEN MATCHED THEN UPDATE SET v = note WHEN NOT MATCHED AND note IS NOT NULL THEN INSERT VALUES (note, 'n') RETURNING o.*",
		"orders", "qty > 1 AND note IS NOT NULL"},
	{"WITH w AS (SELECT id, qty FROM orders) MERGE INTO item i USING w ON w.id = i.id AND w.qty > 1 WHEN MATCHED THEN UPDATE SET stock = qty",
		"orders", "qty > 1 AND id IN (SELECT id FROM item)"},
	{"WITH w AS MATERIALIZED (SELECT id FROM item WHERE stock > 0), x AS (SELECT o.id FROM w JOIN orders o ON o.item_id = w.id) MERGE INTO orders USING x ON x.id = orders.id WHEN MATCHED THEN DELETE RETURNING merge_action(), orders.id",
		"item", "stock > 0 AND id IN (SELECT item_id FROM orders)"},
	{"MERGE INTO item i USING (SELECT item_id, count(*) AS n FROM orders GROUP BY item_id) o ON o.item_id = i.id WHEN MATCHED THEN UPDATE SET stock = o.n",
		"orders", "item_id IN (SELECT id FROM item)"},
	{"MERGE INTO item i USING (SELECT item_id, count(*) AS n FROM orders GROUP BY item_id) o ON o.item_id = i.id WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED BY SOURCE THEN UPDATE SET stock = 1",
		"orders", "false"},
	{"MERGE INTO kv USING (orders o JOIN (SELECT id, name FROM item) i ON i.id = o.item_id AND o.qty > 1) ON k = name WHEN NOT MATCHED THEN INSERT VALUES (name, name) WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE",
		"item", "id < 3"},
	{"MERGE INTO kv USING items ON k = name WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (name, name)", "item", "stock > 0"},
	{"WITH gone AS (MERGE INTO orders o USING (SELECT id, name FROM item) i ON i.id = o.item_id WHEN MATCHED THEN DELETE RETURNING i.name) SELECT count(*) FROM gone",
		"item", "id IN (SELECT item_id FROM orders)"},
}

// queriesBesideWritesOn are the writes that a version has.
func queriesBesideWritesOn(version int) []struct{ text, table, condition string } {
	if version < 17 {
		return queriesBesideWrites
	}
	return slices.Concat(queriesBesideWrites, queriesBesideMerge)
}

// TestQueriesBesideWritesTellTheirRows has queries in FROM, common table expressions and views show those of their rows
// that an UPDATE or a DELETE joined with the ones that it wrote.
func TestQueriesBesideWritesTellTheirRows(t *testing.T) {
	tw := newTwins(t)
	for _, c := range queriesBesideWritesOn(tw.session.Version) {
		tw.both("BEGIN")
		want := tw.ask("SELECT " + identityOf[c.table] + " FROM " + c.table + " WHERE " + c.condition)
		plans, hidden := tw.both(c.text)
		tw.sameInside()
		tw.both("ROLLBACK")
		p := plans[0]
		if p.Observation != history.Exact {
			t.Errorf("%s: %v: %s", c.text, p.Observation, p.Reason)
		}
		at := 0
		for i, s := range p.Result.Sources { // that of the table which is read stands behind the one written
			if s.Table == "public."+c.table {
				at = i
			}
		}
		if len(hidden) == 0 {
			t.Fatalf("%s: nothing", c.text)
		}
		if got := told(p, hidden[0], at); !slices.Equal(got, want) {
			t.Errorf("%s tells %q, not %q", c.text, got, want)
		}
	}
}

// writesOfQueries are UPDATEs and DELETEs joined with random queries.
var writesOfQueries = grammar{
	"write": {"<with>UPDATE <update>", "<with>DELETE FROM <delete>"},
	"with": {"", "WITH q (id, n) AS <mat>(<query>) ", "WITH r AS (<query>), q (id, n) AS <mat>(SELECT * FROM r) ",
		"WITH q (id, n) AS (DELETE FROM loose RETURNING a, b) ", "WITH RECURSIVE q (id, n) AS (SELECT 1, 'a' UNION ALL SELECT id + 1, n FROM q WHERE id < 2) "},
	"mat": {"", "", "MATERIALIZED ", "NOT MATERIALIZED "},
	"query": {"SELECT id, name FROM item<lock>", "SELECT item_id, note FROM orders WHERE qty > <int> ORDER BY id LIMIT 2<lock>",
		"SELECT item_id, max(note) FROM orders GROUP BY item_id", "SELECT DISTINCT a, b FROM loose", "SELECT id, name FROM items",
		"SELECT i.id, o.note FROM item i LEFT JOIN orders o ON o.item_id = i.id", "SELECT a, b FROM loose UNION ALL SELECT id, name FROM item",
		"SELECT a, b FROM loose UNION SELECT id, name FROM item", "SELECT 1, 'x'", "VALUES (1, 'x'), (2, 'y')",
		"SELECT id, nope FROM item", "SELECT id, max(name) OVER () FROM item", "SELECT id, (SELECT max(v) FROM kv) FROM item"},
	"lock": {"", "", " FOR UPDATE", " FOR SHARE SKIP LOCKED"},
	"int":  {"0", "1", "2"},
	"rows": {"q", "q AS x", "(<query>) AS x (id, n)", "(SELECT * FROM q) AS x", "orders o JOIN q ON q.id = o.item_id", "items"},
	"update": {"item SET name = 'w' FROM <rows> WHERE item.id = <row>.id<and><returning>", "item SET stock = 1 WHERE true<and><returning>", "orders SET note = 'w' FROM <rows>, kv WHERE item_id = <row>.id<returning>",
		"part p SET a = 7 FROM <rows> WHERE <row>.id = p.id<returning>"},
	"delete": {"item USING <rows> WHERE item.id = <row>.id<returning>", "loose USING <rows> WHERE a = <row>.id<returning>", "item WHERE true<and><returning>"},
	"and": {"", " AND item.id IN (SELECT id FROM q)", " AND item.id = (SELECT max(q.id) FROM q)", " AND EXISTS (SELECT FROM q WHERE q.id = item.id)",
		" AND item.id = ANY (SELECT item_id FROM orders JOIN q ON q.id = item_id)", " AND stock < ALL (TABLE q)", " AND item.id IN (SELECT q.id FROM q FOR UPDATE)"},
	"row":       {"q", "x", "x", "q", "items"},
	"returning": {"", "", " RETURNING *", " RETURNING item.*", " RETURNING <row>.id", " RETURNING <row>", " RETURNING <row>.*, 1 AS one"},
}

// mergesOfQueries are MERGEs whose sources are random queries.
var mergesOfQueries = grammar{
	"write":  {"<with>MERGE INTO <merge><when><when><returning>", "<with>MERGE INTO <merge><when><returning>", "WITH m AS (MERGE INTO <merge><when> RETURNING merge_action() AS act, item.*) SELECT * FROM m ORDER BY id, act"},
	"with":   writesOfQueries["with"],
	"mat":    writesOfQueries["mat"],
	"query":  writesOfQueries["query"],
	"lock":   writesOfQueries["lock"],
	"int":    writesOfQueries["int"],
	"rows":   {"q AS x", "(<query>) AS x (id, n)", "(<query>) AS x (id, n)", "(SELECT * FROM q) AS x", "(SELECT x.* FROM (<query>) AS x (id, n), kv WHERE k = 'a') AS x", "(orders o JOIN q AS x ON x.id = o.item_id)", "items AS x (id, n)"},
	"merge":  {"item USING <rows> ON item.id = x.id", "item USING <rows> ON item.id = x.id AND x.n <> 'b'", "item USING <rows> ON x.id + <int> = item.id", "item USING <rows> ON false"},
	"when":   {" WHEN MATCHED<and> THEN <change>", " WHEN MATCHED<and> THEN <change>", " WHEN NOT MATCHED<and> THEN <add>", " WHEN NOT MATCHED BY SOURCE AND stock > <int> THEN <alone>"},
	"and":    {"", "", " AND x.id > <int>", " AND x IS NOT NULL", " AND x.n > (SELECT min(k) FROM kv)"},
	"change": {"DELETE", "UPDATE SET stock = x.id", "UPDATE SET name = x.n, price = 3", "DO NOTHING", "UPDATE SET stock = (SELECT count(*) FROM loose)"},
	"add":    {"INSERT VALUES (x.id + 100, x.n, 1, 1)", "INSERT (id, name) VALUES (x.id + 200, 'new')", "INSERT VALUES (x.*)", "DO NOTHING"},
	"alone":  {"DELETE", "UPDATE SET stock = <int>", "DO NOTHING"},
	"returning": {"", "", " RETURNING *", " RETURNING item.*", " RETURNING x.id, merge_action()", " RETURNING x", " RETURNING merge_action(), x.*",
		" RETURNING x.*, 1 AS one", " RETURNING (SELECT max(a) FROM loose)"},
}

// withoutAutovacuum leaves the tables' statistics alone: the server looks at one of the databases before the other, and
// chooses plans by them, and so the order of rows that have none.
func (tw *twins) withoutAutovacuum() {
	tw.t.Helper()
	const all = "DO $$ DECLARE name text; BEGIN FOR name IN SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP " +
		"EXECUTE 'ALTER TABLE ' || name || ' SET (autovacuum_enabled = false)'; END LOOP; END $$"
	for _, c := range []*pgconn.PgConn{tw.original, tw.proxied} {
		if _, err := run(tw.t, c, all); err != nil {
			tw.t.Fatal(err)
		}
	}
}

// TestRandomMergesOfQueriesLookTheSame runs random statements on twins, each in a transaction that is rolled back.
func TestRandomMergesOfQueriesLookTheSame(t *testing.T) {
	tw := newTwins(t)
	if tw.session.Version < 17 {
		t.Skip("it has no RETURNING there")
	}
	tw.withoutAutovacuum()
	all, exact := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		text := mergesOfQueries.draw(r, "<write>")
		tw.both("BEGIN")
		plans, _ := tw.both(text)
		tw.sameInside()
		tw.both("ROLLBACK")
		if all++; plans[0].Observation == history.Exact {
			exact++
		}
		if t.Failed() {
			r.Fatalf("%s", text)
		}
	})
	if all > 50 && exact*5 < all {
		t.Errorf("%d of %d statements are observed exactly", exact, all)
	}
}

// TestRandomWritesOfQueriesLookTheSame runs random statements on twins, each in a transaction that is rolled back.
func TestRandomWritesOfQueriesLookTheSame(t *testing.T) {
	tw := newTwins(t)
	rapid.Check(t, func(r *rapid.T) {
		text := writesOfQueries.draw(r, "<write>")
		tw.both("BEGIN")
		tw.both(text)
		tw.sameInside()
		tw.both("ROLLBACK")
		if t.Failed() {
			r.Fatalf("%s", text)
		}
	})
}

// TestQueuesReadWhatTheyWrite has a subquery that locks rows by which the statement then writes them.
func TestQueuesReadWhatTheyWrite(t *testing.T) {
	tw := newTwins(t)
	for _, c := range []struct {
		text string
		want history.Observation
	}{
		{"UPDATE item SET stock = 7 WHERE id = (SELECT id FROM item WHERE stock > 0 ORDER BY price LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING *", history.Exact},
		{"UPDATE item SET stock = 7 WHERE id IN (SELECT i.id FROM item i WHERE stock > 0 FOR UPDATE OF i) AND name > 'a'", history.Exact},
		{"DELETE FROM orders WHERE id = ANY (SELECT id FROM orders ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED) RETURNING id", history.Exact},
		{"WITH next AS (SELECT id, name FROM item WHERE stock > 0 FOR NO KEY UPDATE) UPDATE item SET stock = 1 WHERE id IN (SELECT id FROM next)", history.Exact},
		{"UPDATE item SET stock = 7 WHERE id = (SELECT id FROM item WHERE stock > 5 FOR UPDATE) AND name = 'ink'", history.Inexact},
		{"UPDATE item SET stock = 7 WHERE stock = (SELECT id FROM item WHERE id = 3 FOR UPDATE)", history.Inexact},
		{"UPDATE item SET stock = 7 WHERE id IN (SELECT item_id FROM orders FOR UPDATE)", history.Inexact},
		{"UPDATE item SET stock = 7 WHERE id IN (SELECT i.id FROM item i, orders o FOR UPDATE OF o)", history.Inexact},
		{"UPDATE item SET stock = 7 WHERE id NOT IN (SELECT id FROM item WHERE id > 1 FOR UPDATE)", history.Inexact},
		{"WITH next AS (SELECT id FROM item FOR UPDATE) UPDATE item SET stock = 7 WHERE stock IN (SELECT id FROM next)", history.Inexact},
	} {
		tw.both("BEGIN")
		plans, _ := tw.both(c.text)
		tw.sameInside()
		tw.both("ROLLBACK")
		if p := plans[0]; p.Observation != c.want {
			t.Errorf("%s: %v: %s", c.text, p.Observation, p.Reason)
		}
	}
}

// TestWritesOfQueriesTakeTheSamePredicateLocks compares what SERIALIZABLE locks for them.
func TestWritesOfQueriesTakeTheSamePredicateLocks(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	tw := newTwins(t)
	tw.session.Serializable = true
	for _, settings := range plans {
		for _, c := range queriesBesideWritesOn(tw.session.Version) {
			if wholeTable.MatchString(c.text) {
				continue
			}
			tw.sameLocks(settings, c.text, string(tw.rewriter.Plan(c.text, tw.session).Append(nil)))
		}
	}
}

// TestQueriesOfWithBesideWritesKeepTheirPlans has subqueries of writes name a query of the WITH clause that is named
// once: a copy that named it again had the server compute it apart, and give the rows in another order.
func TestQueriesOfWithBesideWritesKeepTheirPlans(t *testing.T) {
	tw := newTwins(t)
	for _, text := range []string{
		"WITH q (id, n) AS (SELECT id, name FROM item) UPDATE item SET name = 'w' FROM (SELECT id, name FROM items) AS x (id, n) WHERE item.id = x.id AND item.id = ANY (SELECT item_id FROM orders JOIN q ON q.id = item_id) RETURNING x",
		"WITH q AS (SELECT id, name FROM item WHERE stock > 1) DELETE FROM loose l WHERE a IN (SELECT x.id FROM q AS x)",
		"WITH q AS (SELECT o.* FROM orders o JOIN item i ON i.id = o.item_id WHERE qty > 0) UPDATE item SET stock = 5 WHERE EXISTS (SELECT FROM q WHERE q.item_id = item.id)",
	} {
		script := tw.rewriter.Plan(text, tw.session)
		if p := script.Statements[0]; len(p.Result.Sources) < 2 {
			t.Errorf("%s: %v: %v", text, p.Observation, p.Reason)
		}
		if want, got := planOf(t, tw, text), planOf(t, tw, string(script.Append(nil))); got != want {
			t.Errorf("%s\nis planned as\n%snot as\n%s", text, got, want)
		}
	}
}
