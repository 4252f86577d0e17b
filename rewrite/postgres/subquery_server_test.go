package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
)

// TestSubqueriesTellTheirRows holds what subqueries show against the rows that they are defined to read (ADR 62).
func TestSubqueriesTellTheirRows(t *testing.T) {
	tw := newTwins(t)
	type rows = map[string]string
	const all, none = "true", "false"
	for _, c := range []struct {
		text string
		read rows
	}{
		{"SELECT id FROM item WHERE id IN (SELECT item_id FROM orders)", rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"SELECT id FROM item WHERE id IN (SELECT item_id FROM orders WHERE qty > 1) AND stock > 5",
			rows{"item": "id = 1", "orders": "id = 1"}},
		{"SELECT id FROM item WHERE id NOT IN (SELECT item_id FROM orders)", rows{"item": "id = 3", "orders": all}},
		{"SELECT id FROM item WHERE id + 0 IN (SELECT item_id FROM orders WHERE qty = 5)",
			rows{"item": "id = 2", "orders": "qty = 5"}},
		{"SELECT i.name FROM item i WHERE EXISTS (SELECT * FROM orders o WHERE o.item_id = i.id AND o.note IS NULL)",
			rows{"item": "id = 1", "orders": "id = 2"}},
		{"SELECT name FROM item i WHERE NOT EXISTS (SELECT 1 FROM orders WHERE item_id = i.id)",
			rows{"item": "id = 3", "orders": none}},
		{"SELECT name FROM item i WHERE EXISTS (SELECT 1 FROM orders WHERE item_id = i.id LIMIT 1)",
			rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"SELECT name, (SELECT count(*) FROM orders WHERE item_id = item.id) AS n FROM item",
			rows{"item": all, "orders": "item_id < 3"}},
		{"SELECT name, (SELECT max(qty) FROM orders) FROM item WHERE id = 2", rows{"item": "id = 2", "orders": all}},
		{"SELECT COALESCE((SELECT qty FROM orders WHERE item_id = item.id ORDER BY id DESC LIMIT 1), 0) FROM item",
			rows{"item": all, "orders": "id IN (2, 3)"}},
		{"SELECT id FROM item WHERE price = (SELECT max(x.price) FROM item x)", rows{"item": all}},
		{"SELECT id FROM orders WHERE item_id IN (SELECT id FROM items)", rows{"orders": "item_id < 3", "item": "id < 3"}},
		{"SELECT id, (SELECT max(s.qty) FROM sold s WHERE s.item = i.id AND s.qty > 1) FROM item i WHERE id < 3",
			rows{"item": "id < 3", "orders": "qty > 1"}},
		{"SELECT a FROM loose WHERE NOT EXISTS (SELECT FROM items v LEFT JOIN only_parent p ON p.id = v.id WHERE v.id = a AND p.id = 7)",
			rows{"loose": all, "item": none, "parent": none}},
		{"SELECT name FROM item i WHERE EXISTS (SELECT 1 FROM (SELECT a, b FROM loose WHERE b > 'w') l, orders o WHERE o.item_id = i.id AND l.a = o.id)",
			rows{"item": "id = 1", "orders": "id < 3", "loose": all}},
		{"SELECT id FROM item i WHERE id = (SELECT max(z.n) FROM (SELECT x.item_id AS n FROM orders x JOIN line l ON l.order_id = x.id WHERE x.item_id = i.id UNION ALL SELECT a FROM loose) z WHERE z.n < 2)",
			rows{"item": "id = 1", "orders": "id < 3", "line": all, "loose": "a = 1"}},
		{"SELECT id, ARRAY(SELECT d.k FROM (SELECT k FROM kv WHERE v = '1') d LEFT JOIN (SELECT b, a FROM loose) e ON e.b = d.k) FROM item WHERE id = 1",
			rows{"item": "id = 1", "kv": "v = '1'", "loose": none}},
		{"SELECT id FROM item WHERE stock > ALL (SELECT d.q FROM (SELECT * FROM (SELECT qty AS q, note FROM orders) c WHERE note IS NOT NULL) AS d (q, m), (VALUES (1), (2)) v (n) WHERE n = 1)",
			rows{"item": "id = 1", "orders": "note IS NOT NULL"}},
		{"SELECT count(*) FROM item i WHERE EXISTS (SELECT FROM (SELECT order_id FROM line) y JOIN orders o ON o.id = y.order_id WHERE o.item_id = i.id)",
			rows{"item": "id = 1", "orders": "id < 3", "line": all}},
		{"SELECT EXISTS (SELECT FROM orders WHERE qty > 1)", rows{"orders": "qty > 1"}},
		{"SELECT (SELECT count(*) FROM loose), (SELECT max(k) FROM kv WHERE v = '1')", rows{"loose": all, "kv": "v = '1'"}},
		{"SELECT count(*) FROM item WHERE id IN (SELECT item_id FROM orders)",
			rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"SELECT count(*) FROM item WHERE price > (SELECT min(qty) FROM orders)", rows{"item": "price > 1", "orders": all}},
		{"SELECT stock > 5, count(*) FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) GROUP BY 1",
			rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"SELECT DISTINCT stock FROM item WHERE id IN (SELECT item_id FROM orders)",
			rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o, loose l WHERE o.item_id = i.id AND l.a = o.id)",
			rows{"item": "id = 1", "orders": "id < 3", "loose": all}},
		{"SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o JOIN loose l ON l.a = o.id WHERE o.item_id = i.id)",
			rows{"item": "id = 1", "orders": "id < 3", "loose": all}},
		{"SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.id IN (SELECT a FROM loose))",
			rows{"item": "id = 1", "orders": "id < 3", "loose": all}},
		{"SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.qty = (SELECT max(a) FROM loose))",
			rows{"item": "id = 1", "orders": "id = 1", "loose": all}},
		{"SELECT id FROM public.orders WHERE EXISTS (SELECT 1 FROM line l WHERE l.order_id = public.orders.id)", rows{"orders": "id < 3", "line": all}},
		{"SELECT id, (SELECT count(*) FROM line l WHERE l.order_id < public.orders.id) FROM orders WHERE id < 3", rows{"orders": "id < 3", "line": "order_id = 1"}},
		{"SELECT id FROM item i WHERE EXISTS (SELECT 1 FROM public.orders WHERE item_id = i.id AND EXISTS (SELECT 1 FROM line l WHERE l.order_id = public.orders.id))", rows{"item": "id = 1", "orders": "id < 3", "line": all}},
		{"SELECT name FROM item WHERE id = (SELECT id FROM part WHERE a = 1)", rows{"item": "id = 1", "part": "a = 1"}},
		{"SELECT name FROM item WHERE id = ANY (SELECT item_id FROM orders) FOR UPDATE",
			rows{"item": "id < 3", "orders": all}},
		{"SELECT a.id FROM item a LEFT JOIN orders b ON b.item_id = a.id WHERE b.id IN (SELECT a FROM loose WHERE b = 'y')",
			rows{"item": "id = 1", "orders": "id = 2", "loose": "b = 'y'"}},
		{"SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.qty > -2 AND o.id <> -(7.5))",
			rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"SELECT 1 FROM item WHERE EXISTS (SELECT FROM kv WHERE k = 'a')", rows{"item": all, "kv": "k = 'a'"}},
		{"WITH w AS (SELECT id FROM item) SELECT id FROM item WHERE id IN (SELECT id FROM w)", rows{"item": all}},
		{"WITH sub AS (SELECT item_id FROM orders WHERE CASE WHEN note > 'b' THEN length(note) = 1 END AND id = 3) SELECT name FROM item WHERE id = (SELECT item_id FROM sub)",
			rows{"item": "id = 2", "orders": "id = 3"}},
		{"WITH w AS (SELECT a FROM loose WHERE b = 'y'), v (x, y) AS (SELECT i.id, w.a FROM item i LEFT JOIN w ON w.a = i.id) SELECT note, (SELECT count(y) FROM v) FROM orders",
			rows{"orders": all, "item": all, "loose": "b = 'y'"}},
		{"SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.qty > (SELECT min(l.a) FROM loose l)) OR i.id = 1",
			rows{"item": "id < 3", "orders": "id = 3", "loose": all}},
		{"SELECT i.id FROM (SELECT id FROM item) i WHERE i.id IN (SELECT o.item_id FROM orders o)",
			rows{"item": "id < 3", "orders": all}},
		{"SELECT id FROM item i WHERE EXISTS (SELECT FROM (SELECT DISTINCT a FROM loose) l, orders o WHERE o.item_id = i.id AND l.a = o.id)",
			rows{"item": "id = 1", "orders": "id < 3", "loose": all}},
		{"SELECT id FROM item i WHERE id = (SELECT min(l.a) FROM (SELECT a, count(*) AS n, sum(a) FROM loose WHERE b <> 'w' GROUP BY 1) l LEFT JOIN orders o ON o.id = l.a WHERE l.a = i.id - 1)",
			nil},
		{"SELECT id FROM item i WHERE 0 < (SELECT count(*) + count(l.m) FROM orders o LEFT JOIN (SELECT a AS k, max(b) AS m FROM loose WHERE b <> 'x' GROUP BY a) l ON l.k = o.id WHERE o.item_id = i.id)",
			rows{"item": "id < 3", "orders": "item_id < 3", "loose": "a = 2"}},
		{"SELECT id FROM item i WHERE EXISTS (SELECT FROM (SELECT a, sum(a) AS n FROM loose GROUP BY a) l JOIN orders o ON l.a = o.id WHERE o.item_id = i.id)",
			rows{"item": "id = 1", "orders": "id < 3", "loose": all}},
		{"SELECT id, (SELECT sum(l.n) FROM (SELECT a, b, count(*) AS n FROM loose GROUP BY a, b) l WHERE l.a = i.id) FROM item i",
			rows{"item": all, "loose": all}},
		{"SELECT id, ARRAY(SELECT l.n FROM (SELECT a, b, count(*) AS n FROM loose GROUP BY a, b) l WHERE l.a = i.id AND l.b = 'y') FROM item i WHERE id < 3",
			rows{"item": "id < 3", "loose": "b = 'y'"}},
		{"SELECT count(*) FROM item WHERE id IN (SELECT l.a FROM (SELECT DISTINCT a, b FROM loose) l WHERE l.b = 'x')",
			rows{"item": "id = 1", "loose": "b = 'x'"}},
		{"SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND lower(o.note) = lower('A') AND char_length(btrim(o.note)) < 2)",
			rows{"item": "id = 1", "orders": "id = 1"}},
		{"SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND upper(o.note) LIKE 'C%' AND now() > '2020-01-01')",
			rows{"item": "id = 2", "orders": "id = 3"}},
	} {
		if c.read == nil {
			if plans, _ := tw.both(c.text); plans[0].Observation == history.Exact {
				t.Errorf("%s is exact", c.text)
			}
			continue
		}
		tw.tells(c.text, c.read, history.Exact)
	}
}

// TestSubqueriesOfAllFormsTellTheirRows has outer joins, set operations and queries in their FROM clauses, and
// subqueries in queries that group.
func TestSubqueriesOfAllFormsTellTheirRows(t *testing.T) {
	tw := newTwins(t)
	type rows = map[string]string
	const all, none = "true", "false"
	for _, c := range []struct {
		text string
		read rows
	}{
		{"SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o LEFT JOIN loose l ON l.a = o.id AND l.b = 'y' WHERE o.item_id = i.id)",
			rows{"item": "id < 3", "orders": "item_id < 3", "loose": "b = 'y' AND a < 3"}},
		{"SELECT id, (SELECT count(*) FROM loose l RIGHT JOIN orders o ON l.a = o.id WHERE o.item_id = i.id) FROM item i WHERE id = 2",
			rows{"item": "id = 2", "orders": "item_id = 2", "loose": "a = 3"}},
		{"SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o JOIN part p USING (id) WHERE o.item_id = i.id AND id > 0)",
			rows{"item": "id IN (SELECT o.item_id FROM orders o JOIN part p ON p.id = o.id)", "orders": "item_id < 3 AND id IN (SELECT id FROM part)",
				"part": "id IN (SELECT id FROM orders WHERE item_id < 3)"}},
		{"SELECT id, (SELECT count(*) + count(part.a) FROM orders LEFT JOIN part USING (id) WHERE item_id = i.id) FROM item i",
			rows{"item": all, "orders": "item_id < 3", "part": "id IN (SELECT id FROM orders WHERE item_id < 3)"}},
		{"SELECT id FROM item WHERE id IN (SELECT a FROM loose UNION SELECT 3)", rows{"item": all, "loose": "a < 4"}},
		{"SELECT id FROM item WHERE id NOT IN (SELECT a FROM loose UNION ALL SELECT item_id FROM orders WHERE qty > 2)",
			rows{"item": "id NOT IN (SELECT a FROM loose UNION ALL SELECT item_id FROM orders WHERE qty > 2)", "loose": all, "orders": "qty > 2"}},
		{"SELECT id FROM item i WHERE EXISTS (SELECT 1 FROM loose l WHERE l.a = i.id UNION ALL (SELECT 2 FROM orders o WHERE o.item_id = i.id AND o.qty = 5))",
			rows{"item": "id < 3", "loose": "a < 4", "orders": "qty = 5"}},
		{"SELECT id, (SELECT json_agg(x) FROM (SELECT o.id, o.qty + 1 AS n FROM orders o WHERE o.item_id = i.id ORDER BY o.id) x) FROM item i",
			rows{"item": all, "orders": "item_id < 3"}},
		{"SELECT id, (SELECT sum(qty) FROM (SELECT o.qty FROM orders o WHERE o.item_id = i.id ORDER BY o.id DESC LIMIT 1) x) FROM item i",
			rows{"item": all, "orders": "id IN (2, 3)"}},
		{"SELECT name FROM item WHERE stock < ANY (SELECT x.n FROM (SELECT max(qty) AS n FROM orders UNION ALL SELECT a FROM loose WHERE b = 'y') AS x) OR id = 1",
			nil},
		{"SELECT (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id) AS n, count(*) FROM item i GROUP BY n",
			rows{"item": all, "orders": "item_id < 3"}},
		{"SELECT (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id), count(*) FROM item i GROUP BY 1",
			rows{"item": all, "orders": "item_id < 3"}},
		{"SELECT count(*) FROM item i GROUP BY (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id AND o.id > 1)",
			rows{"item": all, "orders": "item_id < 3 AND id > 1"}},
		{"SELECT o.item_id, count(*), (SELECT max(i.name) FROM item i WHERE i.id = o.item_id) FROM orders o GROUP BY o.item_id",
			rows{"orders": all, "item": "id < 3"}},
		{"SELECT count(*), (SELECT count(*) FROM loose) FROM item", rows{"item": all, "loose": all}},
		{"SELECT sum((SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id)) FROM item i WHERE i.id > 1", rows{"item": "id > 1", "orders": "item_id = 2"}},
		{"SELECT id, count(*) FILTER (WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)) OVER (ORDER BY id) FROM item i", rows{"item": all, "orders": "item_id < 3"}},
		{"SELECT id, sum((SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id)) OVER () FROM item i WHERE id > 1", rows{"item": "id > 1", "orders": "item_id = 2"}},
		{"SELECT stock > 5, count(*) FILTER (WHERE stock = 3 OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)) FROM item i GROUP BY 1", rows{"item": all, "orders": "item_id = 1"}},
		{"SELECT count(*) FILTER (WHERE id > (SELECT min(a) FROM loose)) FROM item", rows{"item": all, "loose": all}},
		{"SELECT stock > 5, CASE WHEN stock > 5 THEN (SELECT max(qty) FROM orders WHERE id < 3) END FROM item GROUP BY stock",
			rows{"item": all, "orders": "id < 3"}},
	} {
		if c.read == nil {
			if plans, _ := tw.both(c.text); plans[0].Observation != history.Exact {
				t.Errorf("%s: %s", c.text, plans[0].Reason)
			}
			continue
		}
		tw.tells(c.text, c.read, history.Exact)
	}
	for _, text := range []string{
		"SELECT id, (SELECT a FROM (SELECT a FROM loose WHERE b = 'y') l LIMIT 1) FROM item i",
		"SELECT id, count(*) FILTER (WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING) FROM item i",
		"SELECT id, first_value((SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id)) OVER (ORDER BY id) FROM item i",
		"SELECT sum((SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id)) FILTER (WHERE id > 1) FROM item i",
		"SELECT id, count(*) FILTER (WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)) OVER () FROM item i ORDER BY id LIMIT 1",
		"SELECT count(*) FROM item i GROUP BY ROLLUP ((SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id)) ORDER BY 1",
	} {
		if plans, _ := tw.both(text); plans[0].Observation == history.Exact {
			t.Errorf("%s is exact", text)
		}
	}
}

// TestWhatMayHaveNotBeenEvaluatedIsNotTold has subqueries in others that find no row, or are not come to.
func TestWhatMayHaveNotBeenEvaluatedIsNotTold(t *testing.T) {
	tw := newTwins(t)
	type rows = map[string]string
	for text, read := range map[string]rows{
		"SELECT i.id FROM item i WHERE i.id = 1 OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.id = 99 AND o.qty > (SELECT min(l.a) FROM loose l))": {
			"item": "id = 1", "orders": "false", "loose": "false"},
		"SELECT i.id FROM item i WHERE NOT EXISTS (SELECT FROM kv WHERE k = 'nope' AND k > (SELECT min(l.b) FROM loose l WHERE l.a > 0))": {
			"item": "true", "kv": "false", "loose": "false"},
	} {
		tw.tells(text, read, history.Exact) // as far as the plan goes: no array of loose comes, and the statement is inexact
	}
}

// TestSubqueriesOfJoinsTellTheirRows has them in the conditions of joins.
func TestSubqueriesOfJoinsTellTheirRows(t *testing.T) {
	tw := newTwins(t)
	type rows = map[string]string
	const all, none = "true", "false"
	for _, c := range []struct {
		text string
		read rows
	}{
		{"SELECT i.id FROM item i JOIN loose l ON l.a = i.id AND EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.qty > 2)",
			rows{"item": "id = 2", "loose": "a = 2", "orders": "id = 3"}},
		{"SELECT i.id, o.id FROM item i LEFT JOIN orders o ON o.item_id = i.id AND o.id = (SELECT max(x.id) FROM orders x WHERE x.item_id = i.id)",
			rows{"item": all, "orders": "id < 4"}},
		{"SELECT i.id, l.b FROM item i LEFT JOIN loose l ON l.a = i.id AND l.a < (SELECT max(k.qty) FROM orders k)",
			rows{"item": all, "loose": all, "orders": all}},
		{"SELECT i.id, l.b FROM item i LEFT JOIN loose l ON l.a = i.id + 100 AND l.a < (SELECT max(k.qty) FROM orders k)",
			rows{"item": all, "loose": none, "orders": none}},
		{"SELECT i.id, l.b FROM item i LEFT JOIN loose l ON EXISTS (SELECT FROM kv) AND l.a = i.id",
			rows{"item": all, "loose": all, "kv": all}},
		{"SELECT l.a FROM loose l RIGHT JOIN item i ON l.a = i.id AND EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.qty > 2)",
			rows{"item": all, "loose": "a = 2", "orders": "id = 3"}},
		{"SELECT count(*) FROM item i JOIN loose l ON l.a = i.id AND l.a IN (SELECT o.item_id FROM orders o WHERE o.qty > 1)",
			rows{"item": "id < 3", "loose": all, "orders": "id IN (1, 3)"}},
		{"SELECT i.name, count(l.a) FROM item i LEFT JOIN loose l ON l.a = i.id AND EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.qty > 2) GROUP BY 1 ORDER BY 1",
			rows{"item": all, "loose": "a = 2", "orders": "id = 3"}},
		{"SELECT count(l.a) FROM item i LEFT JOIN loose l ON l.a = i.id AND l.a < (SELECT max(k.qty) FROM orders k)",
			rows{"item": all, "loose": all, "orders": all}},
		{"SELECT i.id FROM item i JOIN loose l ON l.a = i.id AND (i.id = 1 OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id))",
			rows{"item": "id < 3", "loose": all, "orders": "id = 3"}},
		{"SELECT DISTINCT i.name, p.a FROM item i JOIN loose l ON l.a = i.id LEFT JOIN part p ON p.id = l.a AND p.a IN (SELECT o.qty FROM orders o) WHERE i.id = 2",
			rows{"item": "id = 2", "loose": "a = 2", "part": "id = 2", "orders": "qty = 2"}},
		{"SELECT i.id, l.a FROM item i FULL JOIN loose l ON l.a = i.id AND 0 < (SELECT count(*) FROM orders)",
			rows{"item": all, "loose": all, "orders": all}},
		{"SELECT i.id, l.a FROM item i FULL JOIN loose l ON l.a = i.id + 100 AND 0 < (SELECT count(*) FROM orders)",
			rows{"item": all, "loose": all, "orders": none}},
		{"SELECT i.id, l.b, kv.k FROM item i LEFT JOIN (loose l JOIN kv ON kv.k = 'a') ON l.a = i.id AND EXISTS (SELECT FROM orders o WHERE o.id = i.id AND o.id < 3)",
			rows{"item": all, "loose": "a < 3", "kv": "k = 'a'", "orders": "id < 3"}},
		{"SELECT i.id, l.b, kv.k FROM item i LEFT JOIN (loose l JOIN kv ON EXISTS (SELECT FROM orders o WHERE o.note = kv.k AND o.id = 1)) ON l.a = i.id AND l.a = 2",
			rows{"item": all, "loose": "a = 2", "kv": "k = 'a'", "orders": "id = 1"}},
		{"SELECT i.id FROM item i JOIN orders x ON x.item_id = i.id AND EXISTS (SELECT FROM kv WHERE k = x.note) FOR UPDATE OF x",
			rows{"item": "id = 1", "orders": "id = 1", "kv": "k = 'a'"}},
	} {
		tw.tells(c.text, c.read, history.Exact)
	}
	for _, text := range []string{
		"SELECT i.id FROM item i LEFT JOIN loose l ON EXISTS (SELECT FROM kv) AND l.a = i.id", // it need not be joined
		"SELECT i.id FROM item i JOIN loose l ON EXISTS (SELECT FROM orders o WHERE o.qty = a) AND l.a = i.id JOIN part p ON p.id = l.a",
		"SELECT 1 FROM (item i JOIN loose l ON l.a = i.id AND EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)) AS j",
		"SELECT i.id FROM item i JOIN loose l ON l.a = i.id AND EXISTS (SELECT FROM orders o WHERE 6 / o.qty > i.id)",
	} {
		if plans, _ := tw.both(text); plans[0].Observation == history.Exact {
			t.Errorf("%s is exact", text)
		}
	}
}

// TestSubqueriesOfQueriesInFromTellTheirRows has them in the WHERE clause of a query that is all there is in FROM.
func TestSubqueriesOfQueriesInFromTellTheirRows(t *testing.T) {
	tw := newTwins(t)
	type rows = map[string]string
	const all, none = "true", "false"
	for _, c := range []struct {
		text string
		read rows
	}{
		{"SELECT d.* FROM (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) d JOIN loose ON a = d.id",
			rows{"item": "id < 3", "orders": "item_id < 3", "loose": all}},
		{"WITH w AS (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) SELECT * FROM w",
			rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"SELECT d.* FROM (SELECT id, name FROM item WHERE id IN (SELECT item_id FROM orders)) AS d",
			rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"SELECT d.* FROM (SELECT id, name FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) AS d WHERE d.id = 1 ORDER BY 1 LIMIT 5",
			rows{"item": "id = 1", "orders": "item_id = 1"}},
		{"SELECT v, n + 1 FROM (SELECT id AS n, name FROM item i WHERE price >= (SELECT min(x.price) FROM item x) AND NOT EXISTS (SELECT FROM loose WHERE a = i.id)) AS d (k, v), LATERAL (SELECT 1) AS o (n)",
			rows{"item": none, "loose": none}},
		{"SELECT v || k FROM (SELECT id AS n, name FROM item i WHERE price >= (SELECT min(x.price) FROM item x) AND EXISTS (SELECT FROM loose WHERE a = i.id)) AS d (k, v) WHERE k > 0 AND v <> 'it''s'",
			rows{"item": all, "loose": all}},
		{"WITH w AS (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) SELECT id FROM w WHERE id = 2",
			rows{"item": "id = 2", "orders": "item_id = 2"}},
		{"WITH w (k) AS (SELECT id FROM item WHERE id = ANY (SELECT item_id FROM orders WHERE qty > 2)) SELECT k + 1 FROM w x WHERE EXISTS (SELECT FROM loose l WHERE l.a = x.k)",
			rows{"item": "id = 2", "orders": "id = 3", "loose": "a = 2"}},
		{"WITH w AS (SELECT id FROM item WHERE stock > (SELECT min(a) FROM loose)) SELECT * FROM w", rows{"item": "id < 3", "loose": all}},
		{"SELECT d.id, d.n FROM (SELECT id, (SELECT count(*) FROM orders o WHERE o.item_id = i.id) AS n FROM item i) d WHERE d.n > 1", rows{"item": "id = 1", "orders": "item_id = 1"}},
		{"SELECT d.* FROM (SELECT id, COALESCE((SELECT max(qty) FROM orders o WHERE o.item_id = i.id), 0) AS n FROM item i WHERE id IN (SELECT a FROM loose)) d ORDER BY d.id DESC",
			rows{"item": "id < 3", "orders": "item_id < 3", "loose": "a < 3"}},
		{"SELECT n, name, l.b FROM (SELECT id, name, (SELECT count(*) FROM orders o WHERE o.item_id = i.id) AS n FROM item i) d JOIN loose l ON l.a = d.id WHERE d.id > 1", nil},
		{"SELECT d.n, name, l.b FROM (SELECT id, name, (SELECT count(*) FROM orders o WHERE o.item_id = i.id) AS n FROM item i) d JOIN loose l ON l.a = d.id WHERE d.id > 1",
			rows{"item": "id = 2", "orders": "item_id = 2", "loose": "a = 2"}},
		{"WITH w AS (SELECT id, (SELECT max(o.id) FROM orders o WHERE o.item_id < i.id) AS m FROM item i) SELECT m, w.id FROM w WHERE w.id = 3", rows{"item": "id = 3", "orders": "item_id < 3"}},
		{"SELECT d.n FROM (SELECT id, CASE WHEN id > 1 THEN (SELECT count(*) FROM orders o WHERE o.item_id = i.id) END AS n FROM item i) d", rows{"item": all, "orders": "item_id = 2"}},
		{"SELECT * FROM (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id AND o.qty > 100)) d",
			rows{"item": none, "orders": none}},
		{"SELECT id FROM (SELECT id FROM item WHERE id = 1 OR EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) d",
			rows{"item": "id < 3", "orders": "item_id = 2"}},
		{"WITH w AS (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id) OR id = 3) SELECT id + 1 FROM w WHERE id > 1",
			rows{"item": "id > 1", "orders": "item_id = 2"}},
		{"SELECT count(*), max(d.id) FROM (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) d", rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"SELECT count(*) FROM (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id AND o.qty > 4)) d JOIN loose ON loose.a >= d.id WHERE d.id = 2",
			rows{"item": "id = 2", "orders": "id = 3", "loose": "a = 2"}},
		{"SELECT DISTINCT d.name FROM (SELECT id, name FROM item WHERE id IN (SELECT item_id FROM orders)) d ORDER BY 1", rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"SELECT d.id, b FROM (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) d JOIN loose ON a = d.id WHERE a = 2",
			rows{"item": "id = 2", "orders": "item_id = 2", "loose": "a = 2"}},
		{"WITH w AS (SELECT id, lower(name) AS l FROM item WHERE id = 1 OR EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)), v AS (SELECT a FROM loose) SELECT w.l, v.a FROM v, w WHERE w.id = v.a",
			rows{"item": "id < 3", "orders": "item_id = 2", "loose": "a < 3"}},
		{"SELECT d.id, l.b FROM (SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) ORDER BY i.name DESC LIMIT 1) d LEFT JOIN loose l ON l.a = d.id",
			rows{"item": "id = 1", "orders": "item_id = 1", "loose": "a = 1"}},
		{"SELECT l.b, d.* FROM loose l LEFT JOIN (SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) ORDER BY i.id LIMIT 2) d ON d.id = l.a + 1",
			rows{"item": "id = 2", "orders": "item_id = 2", "loose": all}},
		{"SELECT count(*) FROM (SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) LIMIT 3) d", rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"WITH w AS MATERIALIZED (SELECT id, (SELECT max(o.qty) FROM orders o WHERE o.item_id = item.id) AS n FROM item WHERE stock IN (SELECT a + 9 FROM loose)) SELECT * FROM w",
			rows{"item": "id = 1", "orders": "item_id = 1", "loose": all}},
		{"WITH w AS (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) SELECT id FROM w WHERE id IN (SELECT id FROM w WHERE id > 1)",
			rows{"item": "id = 2", "orders": "item_id = 2"}},
		{"WITH w AS (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) SELECT a.id FROM w a JOIN w b ON b.id > a.id",
			rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"WITH w AS MATERIALIZED (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) SELECT a FROM loose WHERE a IN (SELECT id FROM w)",
			rows{"item": "id < 3", "orders": "item_id < 3", "loose": all}},
		{"SELECT d.id, d.n FROM loose LEFT JOIN (SELECT id, (SELECT count(*) FROM orders o WHERE o.item_id = i.id) AS n FROM item i) d ON a = d.id",
			rows{"item": "id < 3", "orders": "item_id < 3", "loose": all}},
		{"WITH w AS (SELECT id FROM item WHERE stock > (SELECT min(a) FROM loose)), v AS (SELECT w.id FROM w WHERE w.id > 1) SELECT w.id, v.id FROM w, v", rows{"item": "id < 3", "loose": all}},
	} {
		if c.read != nil {
			tw.tells(c.text, c.read, history.Exact)
		} else if plans, _ := tw.both(c.text); plans[0].Observation == history.Exact {
			t.Errorf("%s is exact", c.text)
		}
	}
	for _, text := range []string{
		"SELECT d.* FROM (SELECT id, (SELECT max(qty) FROM orders) FROM item) d",
		"SELECT d.id FROM (SELECT id, (SELECT count(*) FROM orders o WHERE o.item_id = i.id) AS n FROM item i) d",
		"SELECT d.id, d.n + 1 FROM (SELECT id, (SELECT count(*) FROM orders o WHERE o.item_id = i.id) AS n FROM item i) d",
		"SELECT d.id, d.n FROM (SELECT id, (SELECT count(*) FROM orders o WHERE o.item_id = i.id) AS n FROM item i) d ORDER BY d.id LIMIT 1",
		"SELECT d.id, d.k FROM (SELECT id AS k, (SELECT count(*) FROM orders o WHERE o.item_id = i.id) AS id FROM item i) d (k, id)",
		"SELECT count(*), max(d.n) FROM (SELECT id, (SELECT count(*) FROM orders o WHERE o.item_id = i.id) AS n FROM item i) d",
		"SELECT d.id FROM (SELECT id, (SELECT max(qty) FROM orders) FROM item GROUP BY id) d ORDER BY 1",
		"SELECT a FROM loose LEFT JOIN (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) d ON a = d.id",
		"SELECT d.* FROM (SELECT * FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) d JOIN loose ON a = d.id",
		"SELECT d.id FROM (SELECT id, generate_series(1, 2) FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) d JOIN loose ON a = d.id",
		"WITH w AS NOT MATERIALIZED (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) SELECT a.id FROM w a JOIN w b ON b.id > a.id",
		"SELECT d.id FROM (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) d FOR UPDATE",
		"WITH w AS (SELECT * FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) SELECT * FROM w",
		"WITH w AS (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) SELECT id FROM loose WHERE a IN (SELECT id FROM w)",
		"SELECT id FROM (SELECT id FROM item WHERE 6 / id < 1 OR EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) d",
		"SELECT d FROM (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) d",
		"SELECT d.* FROM (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) d WHERE 1 / d.id > 0",
		"SELECT d.* FROM (SELECT id FROM item WHERE 6 / id > 0 AND EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) d WHERE id IN (SELECT a FROM loose)",
		"WITH w AS (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id) ORDER BY 1) SELECT id FROM w LIMIT 1",
	} {
		if plans, _ := tw.both(text); plans[0].Observation == history.Exact {
			t.Errorf("%s is exact", text)
		}
	}
}

// TestSubqueriesThatMayNotBeEvaluatedAreLeftAlone has those whose value a row may not hang on, or that could fail where
// the client's do not.
func TestSubqueriesThatMayNotBeEvaluatedAreLeftAlone(t *testing.T) {
	tw := newTwins(t)
	for _, text := range []string{
		"SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND 6 / o.qty > 2)",
		"SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.qty > -o.id)",
		"SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.qty > 6 - 7)",
		"SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.qty > abs(o.id))",
		"SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND lower(o.note COLLATE \"C\") > 'a')",
		"SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.qty = (SELECT k FROM (VALUES (1)) v(k)))",
		"SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.qty = (SELECT a FROM loose WHERE b = 'y'))",
		"SELECT id FROM item WHERE id IN (SELECT item_id FROM due)",
		"SELECT id FROM item i WHERE EXISTS (SELECT FROM (SELECT a FROM loose LIMIT 1) l, orders o WHERE o.item_id = i.id AND l.a = o.id)",
		"SELECT id FROM item i WHERE EXISTS (SELECT FROM (SELECT a, count(*) AS n FROM loose GROUP BY a) l, orders o WHERE o.item_id = i.id AND l.n > 1)",
		"SELECT id FROM item i WHERE EXISTS (SELECT FROM (SELECT a FROM loose GROUP BY a HAVING count(*) > 1) l, orders o WHERE o.item_id = i.id AND l.a = o.id)",
		"SELECT id FROM item i WHERE EXISTS (SELECT FROM (SELECT max(a) AS a FROM loose) l, orders o WHERE o.item_id = i.id AND l.a = o.id)",
		"SELECT id FROM item i WHERE EXISTS (SELECT FROM (SELECT DISTINCT a FROM loose ORDER BY a LIMIT 1) l, orders o WHERE o.item_id = i.id AND l.a = o.id)",
		"SELECT id FROM item i WHERE EXISTS (SELECT FROM (SELECT a, sum(1 / a) FROM loose GROUP BY a) l, orders o WHERE o.item_id = i.id AND l.a = o.id)",
		"SELECT id FROM item i WHERE EXISTS (SELECT FROM (SELECT a, b::int FROM loose) l, orders o WHERE o.item_id = i.id AND l.a = o.id)",
		"SELECT id FROM item i WHERE EXISTS (SELECT FROM (SELECT a FROM loose FOR SHARE) l, orders o WHERE o.item_id = i.id AND l.a = o.id)",
		"SELECT id FROM item i WHERE EXISTS (SELECT FROM (SELECT a FROM loose) l, orders o WHERE o.item_id = i.id AND l IS NOT NULL)",
		"SELECT id FROM item i WHERE EXISTS (SELECT FROM (SELECT i.note FROM orders i) l, orders o WHERE o.item_id = i.id AND l.note = o.note)",
		"WITH w AS (SELECT a FROM loose) SELECT id FROM item i WHERE EXISTS (SELECT FROM (SELECT a FROM w) l, orders o WHERE o.item_id = i.id AND l.a = o.id)",
		"WITH w AS (SELECT id FROM item FOR UPDATE) SELECT id FROM item WHERE id IN (SELECT id FROM w)",
		"WITH w AS (SELECT id, 6 / stock FROM item) SELECT id FROM item WHERE EXISTS (SELECT id FROM w)",
		"WITH w AS (SELECT id FROM item WHERE random() < 2) SELECT id FROM item WHERE id = (SELECT max(id) FROM w)",
		"WITH w AS (SELECT a, count(*) AS n FROM loose GROUP BY a) SELECT id FROM item WHERE id IN (SELECT a FROM w WHERE n > 1)",
	} {
		if plans, _ := tw.both(text); plans[0].Observation == history.Exact {
			t.Errorf("%s is exact", text)
		}
	}
	wrong := "WITH w AS (SELECT a FROM loose) SELECT a.id FROM item a WHERE a.id = (SELECT max(w.id) FROM w, orders) AND EXISTS (SELECT 1 FROM w WHERE w.id = a.id)"
	if d := tw.difference(wrong); d != "" {
		t.Error(d)
	}
	tw.session.Serializable = true
	script := tw.rewriter.Plan("SELECT id FROM item WHERE id IN (SELECT item_id FROM orders)", tw.session)
	if script.Statements[0].Observation == history.Exact {
		t.Error("a subquery is run again at SERIALIZABLE")
	}
}

// TestSubqueriesOfWritesTellTheirRows has the subqueries of an UPDATE and a DELETE show what they read: the rows that
// there were before it.
func TestSubqueriesOfWritesTellTheirRows(t *testing.T) {
	tw := newTwins(t)
	for _, c := range []struct{ text, table, condition string }{
		{"UPDATE item SET name = 'x' WHERE id IN (SELECT item_id FROM orders)", "orders", "item_id < 3"},
		{"UPDATE item i SET price = (SELECT count(*) FROM items v WHERE v.id <= i.id) WHERE id IN (SELECT l.n FROM (SELECT a AS n FROM loose) l JOIN kv ON true)",
			"loose", "a < 3"},
		{"UPDATE item SET stock = (SELECT count(*) FROM orders o WHERE o.item_id = item.id) WHERE id < 3 RETURNING stock, id",
			"orders", "item_id < 3"},
		{"UPDATE item i SET price = 1 WHERE i.id = (SELECT max(x.id) FROM item x)", "item", "true"},
		{"UPDATE orders o SET qty = 9 FROM item i WHERE o.item_id = i.id AND EXISTS (SELECT FROM loose l WHERE l.a = i.id)",
			"loose", "true"},
		{"DELETE FROM orders WHERE qty = 9 AND note IN (SELECT k FROM kv) RETURNING *", "kv", "k = 'a'"},
		{"WITH w AS (SELECT item_id FROM orders WHERE id = 3), v AS (SELECT k FROM kv WHERE k = 'a') UPDATE item SET name = 'x' WHERE id = (SELECT item_id FROM w) AND name <> ALL (SELECT k FROM v) RETURNING *",
			"kv", "k = 'a'"},
		{"WITH w AS (SELECT item_id FROM orders) DELETE FROM item WHERE id IN (SELECT item_id FROM w)", "orders", "true"},
		{"INSERT INTO line VALUES ((SELECT id FROM orders WHERE note = 'c'), 1, 'v'), (7, 2, (SELECT max(k) FROM kv WHERE k < 'c'))", "kv", "k < 'c'"},
		{"INSERT INTO kv SELECT 'new', (SELECT max(note) FROM orders WHERE id = 3) WHERE NOT EXISTS (SELECT 1 FROM kv WHERE k = 'new')", "kv", "false"},
		{"WITH w AS (SELECT k FROM kv WHERE k = 'b') INSERT INTO loose SELECT 9, 'w' WHERE 'b' IN (SELECT k FROM w) RETURNING *", "kv", "k = 'b'"},
		{"INSERT INTO item (id) VALUES ((SELECT max(id) + 1 FROM item)) ON CONFLICT DO NOTHING RETURNING *", "item", "true"},
		{"WITH w AS (SELECT id FROM orders WHERE note = 'c') INSERT INTO loose VALUES ((SELECT id FROM w), 'v'), (1, (SELECT 'x')) RETURNING a", "orders", "id = 3"},
		{"WITH gone AS (DELETE FROM line RETURNING order_id) UPDATE item SET stock = (SELECT count(*) FROM gone) WHERE 0 < (SELECT count(*) FROM orders)",
			"orders", "true"},
		{"DELETE FROM item WHERE NOT EXISTS (SELECT FROM orders WHERE item_id = item.id)", "orders", "false"},
		{"INSERT INTO kv VALUES ('a', 'n') ON CONFLICT (k) DO UPDATE SET v = COALESCE((SELECT max(o.note) || 'v' FROM orders o WHERE o.qty > 1), 'b')", "orders", "qty > 1"},
		{"INSERT INTO kv VALUES ('new row', 'n2') ON CONFLICT (k) DO UPDATE SET v = (SELECT max(note) FROM orders) RETURNING v", "orders", "false"},
		{"INSERT INTO kv VALUES ('d', 'n5') ON CONFLICT (k) DO UPDATE SET v = 'o' WHERE EXISTS (SELECT FROM orders)", "orders", "false"},
		{"INSERT INTO kv VALUES ('a', 'n5') ON CONFLICT (k) DO UPDATE SET v = 'o' WHERE EXISTS (SELECT FROM orders)", "orders", "true"},
		{"INSERT INTO kv VALUES ('b', 'n6') ON CONFLICT (k) DO UPDATE SET v = 'r' WHERE kv.v <> 'x' AND excluded.v NOT IN (SELECT note FROM orders WHERE id > 2)", "orders", "id > 2"},
		{"INSERT INTO kv VALUES ('d', 'n7') ON CONFLICT (k) DO UPDATE SET v = 'p' WHERE kv.k IN (SELECT o.note FROM orders o)", "orders", "note = 'd'"},
		{"INSERT INTO kv VALUES ('d', 'n8') ON CONFLICT (k) DO UPDATE SET v = (SELECT max(o.note) FROM orders o WHERE o.note = kv.k)", "orders", "note = 'd'"},
		{"INSERT INTO kv VALUES ('d', 'n9'), ('new 2', 'n9') ON CONFLICT (k) DO UPDATE SET v = 'q' WHERE 0 < (SELECT count(*) FROM orders o WHERE o.note = kv.k) RETURNING v", "orders", "note = 'd'"},
		{"UPDATE orders SET qty = 7 WHERE 1 <> (SELECT min(o.qty) FROM orders o WHERE o.id BETWEEN 0 AND 2 AND o.item_id = orders.item_id)",
			"orders", "id < 3"},
		{"UPDATE item SET stock = COALESCE((SELECT max(a.stock) FROM item a WHERE a.id = item.id), 7) WHERE id = 3", "item", "id = 3"},
	} {
		want := tw.ask("SELECT " + identityOf[c.table] + " FROM " + c.table + " WHERE " + c.condition)
		plans, hidden := tw.both(c.text)
		p := plans[0]
		if p.Observation != history.Exact {
			t.Errorf("%s: %v: %s", c.text, p.Observation, p.Reason)
		}
		at := len(p.Result.Sources) - 1
		for at > 0 && !p.Result.Sources[at].Beside {
			at--
		}
		if got := told(p, hidden[0], at); !p.Result.Sources[at].Beside || !slices.Equal(got, want) {
			t.Errorf("%s tells %q, not %q", c.text, got, want)
		}
	}
	for _, text := range []string{
		"UPDATE item SET stock = 3 WHERE EXISTS (SELECT FROM item x WHERE x = item)",
		"UPDATE item SET stock = 3 WHERE EXISTS (SELECT FROM item x WHERE x.ctid = item.ctid)",
		"INSERT INTO kv VALUES ('a', 'n3') ON CONFLICT (k) DO UPDATE SET v = (SELECT max(note) FROM orders WHERE note <> excluded.v)",
		"INSERT INTO kv VALUES ('a', 'n5') ON CONFLICT (k) DO UPDATE SET v = 'o' WHERE EXISTS (SELECT FROM orders WHERE note = excluded.k)",
		"INSERT INTO trig VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET a = 7 WHERE EXISTS (SELECT FROM orders o WHERE o.id = trig.id)",
		"UPDATE trig SET a = 1 WHERE EXISTS (SELECT FROM item i WHERE i.id = trig.id)",
	} {
		if plans, _ := tw.both(text); plans[0].Observation == history.Exact {
			t.Errorf("%s is exact", text)
		}
	}
}

// TestSubqueriesOfUpdatesSeeTheRowAsItWas has subqueries name columns that the statement assigns: RETURNING has the new
// values, the subquery the old ones.
func TestSubqueriesOfUpdatesSeeTheRowAsItWas(t *testing.T) {
	tw := newTwins(t)
	tw.both("UPDATE orders SET qty = 10 WHERE id = 1")
	for _, c := range []struct{ text, table, condition string }{
		{"UPDATE item SET stock = 3 WHERE EXISTS (SELECT FROM orders o WHERE o.qty = item.stock)", "orders", "qty = 10"},
		{"UPDATE part SET a = 9 WHERE EXISTS (SELECT FROM orders o WHERE o.qty = part.a)", "orders", "qty IN (1, 2, 3)"},
		{"UPDATE item i SET stock = i.id WHERE stock IN (SELECT o.item_id + 1 FROM orders o WHERE o.id > 2) RETURNING *", "orders", "id > 2"},
		{"UPDATE item SET stock = 1 + (SELECT count(*) FROM orders WHERE item_id = stock AND item.stock > 0) WHERE id < 3", "orders", "item_id < 3"},
		{"UPDATE gen SET a = 7 WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = twice AND o.note = 'a')", "orders", "false"},
		{"UPDATE gen SET a = 5 WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = twice AND o.note = 'c') RETURNING twice", "orders", "id = 3"},
		{"UPDATE line l SET sku = 'n' FROM orders o WHERE o.id = l.order_id AND EXISTS (SELECT FROM kv WHERE EXISTS (SELECT FROM loose WHERE b = sku AND sku <> v))", "loose", "b <> 'z'"},
		{"UPDATE item SET price = COALESCE(price, 0) + 1, (name, stock) = (SELECT max(k), item.id FROM kv WHERE k <> name) WHERE id < 3", "kv", "true"},
	} {
		want := tw.ask("SELECT " + identityOf[c.table] + " FROM " + c.table + " WHERE " + c.condition)
		plans, hidden := tw.both(c.text)
		p := plans[0]
		if p.Observation != history.Exact {
			t.Errorf("%s: %v: %s", c.text, p.Observation, p.Reason)
		}
		at := len(p.Result.Sources) - 1
		if got := told(p, hidden[0], at); !p.Result.Sources[at].Beside || !slices.Equal(got, want) {
			t.Errorf("%s tells %q, not %q", c.text, got, want)
		}
	}
	for _, c := range []struct{ text, condition string }{
		{"UPDATE loose SET a = 3 WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = a)", "item_id < 3"},
		{"UPDATE item SET id = id + 20 WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)", "item_id < 3"},
		{"UPDATE parent SET a = 3 WHERE EXISTS (SELECT FROM orders o WHERE o.qty = parent.a)", "qty < 3"},
	} {
		plans, hidden := tw.both(c.text)
		p := plans[0]
		if exact := p.Observation == history.Exact; exact != (tw.session.Version >= 18) {
			t.Errorf("%s: exact %t", c.text, exact)
			continue
		}
		if tw.session.Version < 18 {
			continue
		}
		want := tw.ask("SELECT " + identityOf["orders"] + " FROM orders WHERE " + c.condition)
		if got := told(p, hidden[0], len(p.Result.Sources)-1); !slices.Equal(got, want) {
			t.Errorf("%s tells %q, not %q", c.text, got, want)
		}
	}
}

// behind runs a script while another transaction has done something, which commits once the script waits for it. It
// returns the one row of the reply.
func (tw *twins) behind(script *Script, done string) []string {
	t := tw.t
	t.Helper()
	other := again(t, tw.proxied)
	run(t, other, "BEGIN; "+done)
	committed := make(chan struct{})
	waiting := fmt.Sprintf("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = %d", tw.proxied.PID())
	go func() {
		defer close(committed)
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if found, _ := run(t, tw.original, waiting); len(found[0].Rows) > 0 {
				break
			}
		}
		run(t, other, "COMMIT")
	}()
	replies, failure := run(t, tw.proxied, string(script.Append(nil)))
	<-committed
	if failure != nil || len(replies) != 1 || len(replies[0].Rows) != 1 {
		t.Fatalf("%s: %v %v", script.text, replies, failure)
	}
	return replies[0].Rows[0]
}

// TestAnUpdateThatWaitedDoesNotTellOldRows has a transaction that the statement waits for write the row in between:
// what the statement's snapshot has of it is not what the subquery saw. From 18 on OLD is.
func TestAnUpdateThatWaitedDoesNotTellOldRows(t *testing.T) {
	tw := newTwins(t)
	const text = "UPDATE item SET stock = 20 WHERE id = 1 AND EXISTS (SELECT FROM orders o WHERE o.qty < item.stock)"
	script := tw.rewriter.Plan(text, tw.session)
	told := func(between string) (element string) {
		t.Helper()
		run(t, tw.proxied, "UPDATE item SET stock = 10 WHERE id = 1")
		row := tw.behind(script, between)
		return row[len(row)-1]
	}
	if got := told("SELECT FROM item WHERE id = 1 FOR UPDATE"); strings.Count(got, ",") == 0 {
		t.Errorf("a transaction that only locked has the statement tell %s", got)
	}
	got := told("UPDATE item SET stock = 7 WHERE id = 1")
	if old := tw.session.Version >= 18; old != (got != "={*}") {
		t.Errorf("a transaction that wrote has the statement tell %s", got)
	}
}

// TestParametersOfCopiedSubqueriesKeepTheirTypes has parameters that stand twice in the client's text, one of them in a
// subquery that is copied.
func TestParametersOfCopiedSubqueriesKeepTheirTypes(t *testing.T) {
	tw := newTwins(t)
	for _, text := range []string{
		"INSERT INTO kv SELECT $1, $2 WHERE NOT EXISTS (SELECT 1 FROM kv WHERE k = $1)",
		"INSERT INTO line (order_id, no) VALUES ((SELECT id FROM orders WHERE qty = $1), $1)",
		"UPDATE item SET stock = $1 WHERE id = (SELECT max(item_id) FROM orders WHERE qty = $1 AND id > $2)",
		"UPDATE item SET stock = (SELECT count(*) FROM orders WHERE qty > $1) WHERE price > $2",
		"SELECT i.id FROM item i WHERE i.id = $1 OR i.stock = $1 OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)",
		"SELECT COALESCE($1, (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id)) FROM item i",
		"SELECT name FROM item WHERE stock > $1 AND EXISTS (SELECT FROM orders WHERE item_id = item.id AND qty <> $1 AND note = $2) AND name = $2",
		"SELECT (SELECT max(o.id) FROM orders o WHERE o.item_id = item.id AND o.qty > $1), $1::int8 FROM item WHERE id IN (SELECT item_id FROM orders WHERE orders.id = $1)",
		"SELECT count(*) FROM item WHERE stock > $1 AND EXISTS (SELECT FROM orders WHERE item_id = item.id AND qty = $1)",
		"SELECT DISTINCT i.id, i.name FROM item i JOIN orders o ON o.item_id = i.id WHERE i.stock > $1 AND o.qty = $1 ORDER BY i.name, i.id LIMIT $2 OFFSET $3",
		"UPDATE item SET stock = $1 WHERE id = (SELECT i.id FROM item i WHERE i.name = $2 AND (i.price > $3 OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.qty < $4)) ORDER BY i.id LIMIT 1 FOR UPDATE)",
		"WITH next AS (SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.qty < $1) LIMIT $2 FOR UPDATE) UPDATE item SET name = $3 FROM next WHERE next.id = item.id",
		"SELECT DISTINCT name FROM item WHERE COALESCE($2, stock) = 1 OR stock > (SELECT max(qty) FROM orders o WHERE o.id = item.id AND o.id < $2) OR price = $1",
		"DELETE FROM line WHERE no = $1 AND order_id IN (SELECT id FROM orders WHERE id > $1) RETURNING $2::text",
		"WITH v AS (SELECT item_id AS x, count(*) AS n FROM orders WHERE id < $1 GROUP BY 1) SELECT x, $2::text FROM v WHERE n > $1 AND x < $3",
		"SELECT d.id FROM (SELECT id, rank() OVER (ORDER BY id) AS r FROM item WHERE name = $2) d WHERE d.r < $1 AND d.id <> $1",
	} {
		script := tw.rewriter.Plan(text, tw.session)
		if p := script.Statements[0]; p.Observation != history.Exact {
			t.Errorf("%s: %v: %s", text, p.Observation, p.Reason)
		}
		want, err := tw.original.Prepare(t.Context(), "", text, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tw.proxied.Prepare(t.Context(), "", string(script.Append(nil)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.ParamOIDs, want.ParamOIDs) {
			t.Errorf("%s: parameters of types %v, not %v", text, got.ParamOIDs, want.ParamOIDs)
		}
	}
}

// TestAConditionOfOnConflictThatLeftOutItsRowsSaysSo has ON CONFLICT insert, update and leave out rows: what a subquery
// of its condition read is known where a row was updated, or the only one was inserted.
func TestAConditionOfOnConflictThatLeftOutItsRowsSaysSo(t *testing.T) {
	tw := newTwins(t)
	for _, c := range []struct {
		values, least, shown string
	}{
		{"('a', NULL)", "0", "some"},
		{"('a', NULL)", "9", ""},
		{"('first', NULL)", "9", "={}"},
		{"('second', NULL), ('third', NULL)", "0", "NULL NULL"},
		{"(chr(97 + generate_series(0, 20, 20)), NULL)", "9", "NULL"},
		{"('fourth', NULL), ('a', NULL)", "9", "NULL"},
		{"('fifth', NULL), ('b', NULL)", "0", "NULL some"},
	} {
		text := "INSERT INTO kv VALUES " + c.values +
			" ON CONFLICT (k) DO UPDATE SET v = NULL WHERE (SELECT count(*) FROM orders) > " + c.least
		plans, hidden := tw.both(text)
		p := plans[0]
		if last := p.Result.Sources[len(p.Result.Sources)-1]; p.Observation != history.Exact || !last.Whole || !last.Beside {
			t.Errorf("%s: %v: %s, %v", text, p.Observation, p.Reason, last)
		}
		var shown []string
		for _, row := range slices.Concat(hidden...) {
			last := row[len(row)-1]
			if strings.Contains(last, ";") {
				last = "some"
			}
			shown = append(shown, last)
		}
		if got := strings.Join(shown, " "); got != c.shown {
			t.Errorf("%s shows %s", text, got)
		}
	}
}
