package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/history"
)

// sources returns what each source of a plan but the first tells, by the names of its tables.
func (tw *twins) sources(text string) (history.Observation, string, map[string][]string) {
	tw.t.Helper()
	plans, hidden := tw.both(text)
	if len(hidden) == 0 {
		tw.t.Fatalf("%s fails", text)
	}
	p := plans[0]
	seen := map[string][]string{}
	for i := 1; i < len(p.Result.Sources); i++ {
		name := strings.TrimPrefix(p.Result.Sources[i].Table, "public.")
		seen[name] = append(seen[name], told(p, hidden[0], i)...)
		slices.Sort(seen[name])
		seen[name] = slices.Compact(seen[name])
	}
	return p.Observation, p.Reason.String(), seen
}

func TestInsertSelectTellsTheRowsThatItReads(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	const all = "true"
	for _, c := range []struct {
		text string
		read map[string]string // by table the condition on the rows that were read
		want history.Observation
	}{
		{"INSERT INTO kv SELECT note, id FROM orders WHERE note IS NOT NULL AND id > 1",
			map[string]string{"orders": "id > 1 AND note IS NOT NULL"}, history.Exact},
		{"INSERT INTO kv (k) (SELECT 'n' || o.id FROM orders o JOIN item i ON i.id = o.item_id WHERE i.stock > 5) RETURNING k, v", map[string]string{"orders": "item_id = 1", "item": "id = 1"}, history.Exact},
		{"INSERT INTO kv SELECT 'x' || i.id, i.name FROM item i LEFT JOIN orders o ON o.item_id = i.id WHERE i.id > 1",
			map[string]string{"item": "id > 1", "orders": "item_id = 2"}, history.Exact},
		{"INSERT INTO loose SELECT item_id, count(*) FROM orders GROUP BY item_id HAVING count(*) > 1",
			map[string]string{"orders": all}, history.Exact},
		{"INSERT INTO loose SELECT DISTINCT a, b FROM loose", map[string]string{"loose": "ctid < '(0,4)'"},
			history.Exact},
		{"INSERT INTO loose SELECT id, name FROM item UNION SELECT id, note FROM orders WHERE id < 3",
			map[string]string{"item": all, "orders": "id < 3"}, history.Exact},
		{"INSERT INTO loose SELECT id FROM item EXCEPT SELECT id FROM orders WHERE id < 3",
			map[string]string{"item": all, "orders": "id < 3"}, history.Exact},
		{"INSERT INTO loose SELECT d.a, k FROM (SELECT a, count(*) FROM part GROUP BY a) d, kv",
			map[string]string{"part": all, "kv": all}, history.Exact},
		{"INSERT INTO parent SELECT id + 50, a FROM parent", map[string]string{"parent": "id < 50"}, history.Exact},
		{"INSERT INTO part SELECT id + 200, rank() OVER (ORDER BY id) FROM part", map[string]string{"part": "id < 200"},
			history.Exact},
		{"INSERT INTO kv SELECT k, 'w' || k FROM kv ON CONFLICT (k) DO UPDATE SET v = excluded.v",
			map[string]string{"kv": all}, history.Exact},
		{"INSERT INTO kv SELECT k, v FROM kv WHERE k = 'a' UNION ALL SELECT 'q', 'q' ON CONFLICT DO NOTHING",
			map[string]string{"kv": "k = 'a'"}, history.Exact},
		{"INSERT INTO loose SELECT stock, name FROM item WHERE id IN (SELECT item_id FROM orders)",
			map[string]string{"item": "id < 3", "orders": "item_id < 3"}, history.Exact},
		{"INSERT INTO loose SELECT stock, (SELECT max(note) FROM orders o WHERE o.item_id = i.id) FROM item i WHERE EXISTS (SELECT FROM kv WHERE k < 'c') ON CONFLICT DO NOTHING",
			map[string]string{"item": all, "orders": "item_id < 3", "kv": "k < 'c'"}, history.Exact},
		{"INSERT INTO loose SELECT id, name FROM item WHERE id = 1 UNION ALL SELECT (SELECT max(qty) FROM orders), k FROM kv WHERE k = 'a'",
			map[string]string{"item": "id = 1", "orders": all, "kv": "k = 'a'"}, history.Exact},
		{"INSERT INTO loose SELECT id, name FROM item WHERE id BETWEEN 1 AND 2 LIMIT 2",
			map[string]string{"item": "id < 3"}, history.Exact},
		{"INSERT INTO loose SELECT 5, (SELECT min(qty)::text FROM orders WHERE qty > 1) FROM item WHERE id = 1 LIMIT 1 RETURNING a",
			map[string]string{"item": "id = 1", "orders": "qty > 1"}, history.Exact},
		{"WITH w AS (SELECT id, name FROM item WHERE stock > 5) INSERT INTO loose SELECT id, name FROM w",
			map[string]string{"item": "stock > 5"}, history.Exact},
		{"WITH w (n) AS MATERIALIZED (SELECT id FROM item), v AS MATERIALIZED (SELECT item_id AS n, count(*) AS c FROM orders GROUP BY 1), unread AS (SELECT a FROM loose) INSERT INTO loose AS l (a, b) SELECT w.n, v.c FROM w LEFT JOIN v ON v.n = w.n WHERE w.n < 3 RETURNING l.*",
			map[string]string{"item": "id < 3", "orders": "item_id < 3"}, history.Exact},
		{"WITH w AS (SELECT id FROM item WHERE id = 1), v AS (SELECT id, 'v' AS t FROM w) INSERT INTO loose (SELECT id, t FROM v UNION ALL SELECT w.id, k FROM w, kv WHERE k = 'a') ON CONFLICT DO NOTHING",
			map[string]string{"item": "id = 1", "kv": "k = 'a'"}, history.Exact},
		{"INSERT INTO loose (a) WITH w AS (SELECT o.id FROM orders o WHERE o.qty > 1) SELECT max(id) FROM w",
			map[string]string{"orders": "qty > 1"}, history.Exact},
		{"WITH w AS (SELECT id, name FROM item) INSERT INTO loose SELECT id, name FROM w WHERE id > 1 LIMIT 5",
			map[string]string{"item": "id > 1"}, history.Exact},
		{"WITH w AS (SELECT 1 AS n) INSERT INTO loose SELECT n, name FROM w JOIN item ON id = n",
			map[string]string{"item": "id = 1"}, history.Exact},
		{"WITH w AS (SELECT 8 AS n) INSERT INTO loose SELECT n, 'w' FROM w", map[string]string{}, history.Exact},
		{"INSERT INTO loose SELECT id, (SELECT max(note) FROM orders o WHERE o.item_id = i.id) FROM item i WHERE stock < 50 ORDER BY i.stock DESC, i.id LIMIT 1 OFFSET 1",
			map[string]string{"item": "id = 2", "orders": "item_id = 2"}, history.Exact},
		{"WITH w AS (SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.qty > 1)), v AS (SELECT a FROM loose) INSERT INTO loose SELECT id, (SELECT max(k) FROM kv WHERE k < 'b') FROM w WHERE w.id NOT IN (SELECT a + 50 FROM v)",
			map[string]string{}, history.Inexact},
		{"WITH w AS (SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.qty > 1)), v AS (SELECT a FROM loose) INSERT INTO loose SELECT w.id, (SELECT max(k) FROM kv WHERE k < 'b') FROM w WHERE w.id NOT IN (SELECT v.a FROM v WHERE v.a > 7)",
			map[string]string{"item": "id < 3", "orders": "qty > 1 AND item_id < 3", "kv": "k < 'b'", "loose": "a > 7"}, history.Exact},
		{"WITH w AS (SELECT id, row_number() OVER (PARTITION BY price ORDER BY id) AS n FROM item) INSERT INTO loose (a) SELECT id FROM w WHERE n < 2",
			map[string]string{"item": all}, history.Exact},
		{"WITH w AS (SELECT id FROM item ORDER BY id LIMIT 1) INSERT INTO loose (a) SELECT id FROM w",
			map[string]string{"item": "id = 1"}, history.Exact},
		{"WITH w AS (SELECT id FROM item LIMIT 1) INSERT INTO loose SELECT id, 'w' FROM w", map[string]string{},
			history.Inexact},
		{"WITH w AS (SELECT id FROM item FOR UPDATE) INSERT INTO loose SELECT id, 'w' FROM w", map[string]string{},
			history.Inexact},
		{"WITH w AS (SELECT 6 / id AS n FROM item) INSERT INTO loose SELECT n, 'w' FROM w", map[string]string{},
			history.Inexact},
		{"WITH w AS (SELECT id FROM item) INSERT INTO loose SELECT id, (SELECT min(id) FROM w)::text FROM item WHERE id = 1",
			map[string]string{"item": "id = 1"}, history.Inexact},
		{"WITH RECURSIVE w AS (SELECT id FROM item UNION ALL SELECT id + 10 FROM w WHERE id < 5) INSERT INTO loose SELECT id FROM w",
			map[string]string{}, history.Inexact},
		{"INSERT INTO loose SELECT generate_series(1, 5), name FROM item LIMIT 3", map[string]string{}, history.Inexact},
		{"INSERT INTO loose SELECT id, name FROM item WHERE 6 / (id + 1) < 5", map[string]string{}, history.Inexact},
		{"INSERT INTO loose SELECT id, (SELECT max(k) FROM kv WHERE k <> i.name) FROM item i WHERE i.id = 1 LIMIT 1",
			map[string]string{"item": "id = 1", "kv": all}, history.Exact},
		{"INSERT INTO loose SELECT id, name FROM item OFFSET 1", map[string]string{}, history.Inexact},
		{"INSERT INTO loose SELECT id, (SELECT max(k) FROM kv WHERE 1 / i.id > 0) FROM item i WHERE i.id = 1",
			map[string]string{"item": "id = 1"}, history.Inexact},
		{"INSERT INTO loose SELECT price_of(id), name FROM item WHERE id < 3", map[string]string{"item": "id < 3"},
			history.Inexact},
		{"INSERT INTO loose SELECT a, b FROM loose WHERE price_of(a) IS NULL", map[string]string{}, history.Inexact},
		{"INSERT INTO loose SELECT a, b FROM loose WHERE random() < 2", map[string]string{}, history.Inexact},
	} {
		t.Run(c.text, func(t *testing.T) {
			tw := newTwins(t)
			want := map[string][]string{}
			for table, condition := range c.read {
				want[table] = tw.ask("SELECT " + identityOf[table] + " FROM " + table + " WHERE " + condition)
			}
			observation, reason, seen := tw.sources(c.text)
			if observation != c.want {
				t.Errorf("%v: %s", observation, reason)
			}
			for table, rows := range want {
				if !slices.Equal(seen[table], rows) {
					t.Errorf("tells %q of %s, not %q", seen[table], table, rows)
				}
			}
			if len(seen) != len(want) {
				t.Errorf("tells of %v", seen)
			}
			tw.sameTables()
		})
	}
}

func TestWhatInsertSelectReadsIsShownOnce(t *testing.T) {
	tw := newTwins(t)
	plans, hidden := tw.both("INSERT INTO loose SELECT id, name FROM item")
	last := plans[0].HiddenColumns() - 1
	for i, row := range hidden[0] {
		if shown := row[last] != "NULL"; shown != (i == 0) {
			t.Errorf("row %d: %s", i+1, row[last])
		}
	}
	if len(hidden[0]) != 3 {
		t.Errorf("%d rows", len(hidden[0]))
	}
}

// TestALimitThatLeavesRowsOutIsTold has INSERTs whose queries could have taken other rows.
func TestALimitThatLeavesRowsOutIsTold(t *testing.T) {
	tw := newTwins(t)
	for text, lacks := range map[string]bool{
		"INSERT INTO loose SELECT id, name FROM item ORDER BY name LIMIT 1":                                                        true,
		"INSERT INTO loose SELECT id, name FROM item LIMIT 2":                                                                      true,
		"INSERT INTO loose SELECT id, name FROM item LIMIT 3":                                                                      false,
		"INSERT INTO loose SELECT id, name FROM item WHERE id > 1 LIMIT 9223372036854775807":                                       false,
		"INSERT INTO loose SELECT id, (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id) FROM item i WHERE i.id > 1 LIMIT 1": true,
	} {
		_, reason, seen := tw.sources(text)
		if got := slices.Contains(seen["item"], Lacking); got != lacks ||
			seen["orders"] != nil && !slices.Contains(seen["orders"], Lacking) {
			t.Errorf("%s tells %q (%s)", text, seen["item"], reason)
		}
	}
}

// TestTheFirstErrorOfAnInsertIsTheClients has queries that fail for a row behind one that may not be inserted.
func TestTheFirstErrorOfAnInsertIsTheClients(t *testing.T) {
	tw := newTwins(t)
	for _, text := range []string{
		"INSERT INTO kv SELECT 'z', note FROM orders WHERE 6 / (4 - id) < 100",
		"INSERT INTO kv SELECT 'z', o.note FROM orders o JOIN item i ON 6 / (4 - o.id) < 100",
		"INSERT INTO kv SELECT 'z', note FROM orders WHERE note IN (SELECT b FROM loose WHERE 6 / (4 - orders.id) < 100) OR true",
	} {
		if d := tw.difference(text); d != "" {
			t.Error(d)
		}
	}
}

// TestWhatALockingInsertReadsIsToldWhereASnapshotLasts has the query of an INSERT lock its rows: at READ COMMITTED it
// may have waited, and inserted of a later version than the statement's snapshot has.
func TestWhatALockingInsertReadsIsToldWhereASnapshotLasts(t *testing.T) {
	tw := newTwins(t)
	for _, c := range []struct {
		text, level string
		known       bool
	}{
		{"INSERT INTO loose SELECT id, name FROM item WHERE id < 3 FOR UPDATE", "REPEATABLE READ", true},
		{"INSERT INTO loose SELECT i.id, i.name FROM item i JOIN orders o ON o.item_id = i.id AND o.id = 3 FOR SHARE OF i NOWAIT", "SERIALIZABLE", true},
		{"WITH q AS (INSERT INTO loose SELECT id, name FROM item WHERE id < 3 FOR NO KEY UPDATE RETURNING a) SELECT a FROM q ORDER BY 1", "REPEATABLE READ", true},
		{"INSERT INTO loose SELECT id, name FROM item WHERE id < 3 FOR UPDATE", "READ COMMITTED", false},
	} {
		want := tw.ask("SELECT " + identityOf["item"] + " FROM item WHERE " + map[bool]string{true: "id = 2", false: "id < 3"}[c.level == "SERIALIZABLE"])
		for _, conn := range []*pgconn.PgConn{tw.original, tw.proxied} {
			run(t, conn, "BEGIN ISOLATION LEVEL "+c.level)
		}
		plans, hidden := tw.both(c.text)
		at := slices.IndexFunc(plans[0].Result.Sources, func(s Source) bool { return s.Table == "public.item" })
		if plans[0].Observation != history.Exact || at < 0 {
			t.Fatalf("%s: %s", c.text, plans[0].Reason)
		}
		if got := told(plans[0], hidden[0], at); c.known != slices.Equal(got, want) || !c.known && !slices.Equal(got, []string{Lacking}) {
			t.Errorf("at %s %s tells %q, not %q", c.level, c.text, got, want)
		}
		for _, conn := range []*pgconn.PgConn{tw.original, tw.proxied} {
			run(t, conn, "ROLLBACK")
		}
	}
	if plan := tw.rewriter.Plan("INSERT INTO loose SELECT id, name FROM item FOR UPDATE SKIP LOCKED", tw.session).Statements[0]; plan.Observation == history.Exact {
		t.Error("one that passes rows over is exact")
	}
}
