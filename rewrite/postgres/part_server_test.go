package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// partTexts have parts that write; what comes of some of them hangs on the order in which these run.
const partTexts = `
WITH moved AS (DELETE FROM loose WHERE a = 1 RETURNING *) INSERT INTO loose SELECT a + 10, b FROM moved
WITH moved AS (DELETE FROM orders WHERE item_id = 1 RETURNING *) INSERT INTO line SELECT id, 9, note FROM moved RETURNING *, order_id + 1
WITH moved AS (DELETE FROM loose WHERE a = 77 RETURNING *) INSERT INTO loose SELECT * FROM moved RETURNING *
WITH moved AS (DELETE FROM loose WHERE a = 77 RETURNING *) INSERT INTO loose SELECT * FROM moved
WITH u AS (UPDATE item SET stock = stock + 1 RETURNING *) SELECT u.*, orders.note FROM u LEFT JOIN orders ON item_id = u.id ORDER BY u.id, orders.id
WITH u AS (UPDATE item SET stock = stock + 1 RETURNING id, stock AS "left", stock * 2, lower(name)) SELECT * FROM u ORDER BY id DESC LIMIT 1
WITH u AS (UPDATE item SET stock = stock + 1) SELECT id, stock FROM item ORDER BY id
WITH u AS (UPDATE item SET stock = stock + 1 WHERE false RETURNING id) SELECT name, sku, price FROM item, line WHERE id IN (SELECT id FROM u)
WITH u AS (UPDATE item SET stock = stock + 1) SELECT 1 WHERE false
WITH u AS (UPDATE item SET stock = stock + 1) SELECT FROM kv
WITH u AS (UPDATE item SET stock = stock + 1) VALUES (1, 'x'), (2, NULL)
WITH u AS (UPDATE item SET stock = stock + 1 RETURNING *) (TABLE u ORDER BY id)
WITH u AS (UPDATE item SET stock = stock + 1 RETURNING id) SELECT count(*), max(id) FROM u
WITH u AS (UPDATE item SET stock = stock + 1 RETURNING id) SELECT item_id, count(*) FROM orders GROUP BY 1 ORDER BY 1
WITH u AS (UPDATE item SET stock = stock + 1 RETURNING id) SELECT DISTINCT id FROM u UNION SELECT 7 ORDER BY 1
WITH u AS (UPDATE item SET stock = stock + 1 RETURNING id) SELECT a.id, b.id FROM u a JOIN u b ON a.id < b.id ORDER BY 1, 2
WITH u AS (UPDATE item SET stock = stock + 1 RETURNING id) SELECT id, name FROM item WHERE id = ANY (SELECT id FROM u) ORDER BY id FOR UPDATE
WITH u AS (UPDATE item SET stock = stock + 1 RETURNING *) SELECT u, row_to_json(u) FROM u ORDER BY id
WITH u AS (UPDATE item SET stock = stock + 1 RETURNING id, id) SELECT * FROM u ORDER BY 1
WITH u (n) AS (UPDATE item SET stock = stock + 1 RETURNING id, name) SELECT n, name FROM u ORDER BY n
WITH u (n, m, o) AS (UPDATE item SET stock = stock + 1 RETURNING id, name) SELECT 1 FROM u
WITH u (n) AS (UPDATE item SET stock = stock + 1) SELECT 1
WITH u AS (UPDATE item SET stock = stock + 1) SELECT * FROM u
WITH u AS (UPDATE item SET stock = stock + 1 RETURNING id) SELECT nope, id FROM u
WITH u AS (UPDATE item SET stock = stock + 1 RETURNING nope) SELECT id FROM u
WITH u AS (UPDATE item SET stock = -1 RETURNING id) SELECT id FROM u
WITH u AS (UPDATE item SET stock = 1 RETURNING id) SELECT 1 / (id - 2) FROM u
WITH u AS (SELECT 1), u AS (DELETE FROM kv) SELECT 1
WITH a AS (DELETE FROM kv WHERE k = 'b' RETURNING *), b AS (INSERT INTO loose SELECT 5, k FROM a RETURNING a, b), c AS (UPDATE orders SET note = b.b FROM b WHERE id = 1 RETURNING orders.*) SELECT a.k, b.*, c.note FROM a, b, c
WITH a AS (INSERT INTO kv VALUES ('a', 'x'), ('new', 'y') ON CONFLICT (k) DO UPDATE SET v = excluded.v || 'u' RETURNING k) SELECT * FROM a ORDER BY 1
WITH a AS (INSERT INTO kv VALUES ('a', 'x') ON CONFLICT DO NOTHING RETURNING k, v) SELECT * FROM a UNION ALL SELECT k, v FROM kv WHERE k = 'a' LIMIT 1
WITH a AS (DELETE FROM part RETURNING *), b AS (DELETE FROM parent RETURNING *) SELECT * FROM a, b ORDER BY a.id, b.id
WITH a AS (INSERT INTO part VALUES (7, 7), (107, 7) RETURNING id), b AS (UPDATE parent SET a = 3 RETURNING *) INSERT INTO trig SELECT id + 20, 1 FROM a RETURNING *
WITH q AS (SELECT id FROM item), d AS (DELETE FROM orders WHERE item_id IN (SELECT id FROM q) RETURNING *) SELECT q.id, d.id FROM q LEFT JOIN d ON d.item_id = q.id ORDER BY 1, 2
WITH q AS (SELECT * FROM kv), d AS (INSERT INTO kv SELECT k || 'q', v FROM q RETURNING *) SELECT * FROM q ORDER BY k
WITH one AS (SELECT 1 AS id), d AS (DELETE FROM item USING one WHERE item.id = one.id RETURNING item.name) SELECT * FROM d
WITH d AS (DELETE FROM orders USING item i WHERE i.id = item_id AND i.id = 2 RETURNING *) SELECT * FROM d
WITH d AS (DELETE FROM orders o USING item i LEFT JOIN line l ON l.order_id = i.id WHERE i.id = item_id AND i.id = 1 RETURNING o.*, l.sku) SELECT * FROM d ORDER BY id, sku
WITH u AS (UPDATE item SET stock = 50 WHERE id = 1 RETURNING id) UPDATE item SET stock = 60 WHERE id < 3
WITH u AS (UPDATE item SET stock = 50 WHERE id < 3) UPDATE item SET stock = 60 WHERE id = 1 RETURNING *
WITH u AS (UPDATE item SET stock = 50), w AS (UPDATE item SET stock = 51), x AS (UPDATE item SET stock = 52) SELECT id, stock FROM item WHERE id > 5
WITH u AS (UPDATE item SET stock = 50 RETURNING id), w AS (UPDATE item SET stock = 51), x AS (UPDATE item SET stock = 52) SELECT * FROM u LIMIT 1
WITH d AS (DELETE FROM kv WHERE k = 'a') INSERT INTO kv VALUES ('a', 'again')
WITH d AS (DELETE FROM item RETURNING *) INSERT INTO item SELECT id + 1, name, price, stock FROM d
WITH d AS (DELETE FROM orders AS o USING unnest('{1,3}'::bigint[]) n(n) WHERE o.id = n RETURNING *) UPDATE item SET stock = d.n FROM d WHERE item.id = d.item_id RETURNING d.*
WITH u AS (UPDATE orders SET note = 'x' WHERE id = 1 RETURNING orders.*) SELECT * FROM orders WHERE id = 1 AND id NOT IN (SELECT id FROM u) UNION SELECT * FROM u
WITH u AS (UPDATE orders SET note = 'x' WHERE id < 3 RETURNING *) SELECT * FROM orders WHERE id IN (1, 4) AND id NOT IN (SELECT id FROM u) UNION SELECT * FROM u ORDER BY 1
WITH u AS (UPDATE orders SET note = 'x' WHERE id < 3 RETURNING id AS note, note AS id) SELECT id, note FROM orders UNION SELECT u.note, u.id FROM u ORDER BY id, note
WITH u (a, b) AS (UPDATE orders SET note = 'x' WHERE id < 3 RETURNING id, note) SELECT a, b FROM loose UNION SELECT * FROM u ORDER BY 1, 2
WITH u AS (UPDATE orders SET note = 'x' WHERE id < 3 RETURNING id, note), d AS (DELETE FROM loose RETURNING a, b) SELECT x.a, x.b FROM d AS x (b, a) UNION SELECT note, id FROM u ORDER BY 1, 2
WITH u AS (UPDATE orders o SET note = i.name FROM item i WHERE i.id = o.item_id RETURNING o.id, i.name, i.price) SELECT id, name FROM item UNION SELECT id, name FROM u UNION SELECT u.id, 'none' FROM u ORDER BY 1, 2
WITH d AS (DELETE FROM orders o USING unnest('{a,c}'::text[]) AS x (y), item i WHERE o.note = y AND i.id = o.item_id RETURNING *) SELECT * FROM d ORDER BY y
WITH i AS (INSERT INTO kv VALUES ('i', 'i') RETURNING k) DELETE FROM kv WHERE k IN ('a', 'i') RETURNING *
WITH i AS (INSERT INTO loose VALUES (nextval('seq'), 'part')) INSERT INTO loose VALUES (nextval('seq'), 'first'), (nextval('seq'), 'second') RETURNING *
WITH i AS (INSERT INTO loose SELECT nextval('seq'), k FROM kv ORDER BY k COLLATE "C" RETURNING *) INSERT INTO loose SELECT nextval('seq'), b FROM i RETURNING a
WITH d AS (WITH q AS (SELECT 1 AS n) DELETE FROM loose USING q WHERE a = n RETURNING a) SELECT * FROM d
WITH c AS (SELECT id, stock FROM item WHERE stock > 5), d AS (WITH q (k, n) AS (SELECT * FROM unnest(ARRAY[1, 2], ARRAY[40, 50])) UPDATE item SET stock = stock + q.n FROM q WHERE id = q.k), u AS (UPDATE orders SET qty = o.stock FROM (SELECT * FROM c) o WHERE item_id = o.id) SELECT * FROM c
WITH c AS (SELECT id, name FROM item), d AS (WITH q AS (SELECT o.id, c.name FROM orders o JOIN c ON c.id = item_id) UPDATE loose SET b = q.name FROM q WHERE a = q.id RETURNING *) SELECT c.id, d.* FROM c JOIN d ON d.id < 3 AND c.id = d.a ORDER BY 1, 2
WITH d AS (DELETE FROM orders WHERE id IN (SELECT id FROM orders WHERE qty > 1 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING note) INSERT INTO loose SELECT 9, note FROM d RETURNING *
WITH d AS (WITH q AS (SELECT id FROM orders WHERE qty > 1) DELETE FROM loose USING q WHERE a = q.id RETURNING *) SELECT * FROM d
WITH d AS (WITH q AS (SELECT id FROM orders), r AS MATERIALIZED (SELECT * FROM q WHERE id < 3) DELETE FROM loose USING r WHERE a = r.id RETURNING b) INSERT INTO kv SELECT b || 'n', 'x' FROM d RETURNING *
WITH d AS (WITH q AS (SELECT item_id, count(*) AS n FROM orders GROUP BY 1) UPDATE item SET stock = n FROM q WHERE id = item_id RETURNING id, n) SELECT * FROM d ORDER BY 1
WITH d AS (WITH q AS (SELECT * FROM loose) INSERT INTO loose SELECT a + 10, b FROM q RETURNING a) SELECT * FROM d ORDER BY 1
WITH d AS (WITH q AS (SELECT 1 AS n) INSERT INTO loose SELECT n, 'x' FROM q RETURNING a) SELECT * FROM d
WITH d AS (WITH q AS (SELECT max(id) AS m FROM orders) INSERT INTO loose VALUES ((SELECT m FROM q), 'x') RETURNING a) SELECT * FROM d
WITH d AS (WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) DELETE FROM loose USING r WHERE a = n RETURNING a, n) SELECT * FROM d ORDER BY 1
WITH q AS (SELECT 2 AS id), d AS (WITH q AS (SELECT id FROM orders WHERE id = 1) DELETE FROM loose USING q WHERE a = q.id RETURNING q.id) SELECT * FROM d, q
WITH d AS (WITH q AS (SELECT id FROM kv) DELETE FROM loose USING q WHERE a = 1 RETURNING a), q AS (SELECT 1 AS id) SELECT * FROM d, q
WITH d AS (WITH q AS (DELETE FROM kv RETURNING k) DELETE FROM loose USING q WHERE b = k RETURNING a) SELECT * FROM d
WITH d AS (WITH q AS (SELECT nope FROM orders) DELETE FROM loose USING q WHERE a = q.id RETURNING *) SELECT * FROM d
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3), d AS (DELETE FROM item USING r WHERE id = n RETURNING id) SELECT * FROM d ORDER BY 1
WITH u AS (UPDATE "Odd" SET "a""b" = 9 RETURNING *) SELECT * FROM u
WITH /* ( */ "d""x" AS (DELETE FROM kv RETURNING *) -- )
SELECT * FROM "d""x" ORDER BY k -- end
WITH u AS (UPDATE strange SET a = 3 RETURNING id) SELECT u.id FROM u JOIN strange USING (id) ORDER BY 1
WITH d AS (DELETE FROM line RETURNING sku, at) SELECT * FROM d ORDER BY 1
WITH q AS (SELECT id, name FROM item WHERE stock > 5), u AS (UPDATE orders SET note = q.name FROM q WHERE q.id = item_id RETURNING orders.id) SELECT q.name, u.id FROM q, u ORDER BY 1, 2
WITH q AS (SELECT id, name FROM item), u AS (UPDATE orders SET note = 'x' FROM q WHERE q.id = item_id RETURNING orders.*) SELECT * FROM q ORDER BY id
WITH q AS (SELECT id, name FROM item), u AS (UPDATE orders SET note = 'x' FROM q WHERE q.id = item_id RETURNING *) SELECT * FROM u ORDER BY id
WITH q AS (SELECT id, name FROM item), u AS (UPDATE orders SET note = 'x' FROM q WHERE q.id = item_id) DELETE FROM line USING q, kv WHERE order_id = q.id RETURNING line.sku, q.name, v
WITH o AS MATERIALIZED (SELECT item_id, count(*) AS n FROM orders GROUP BY 1), q (id, m) AS (SELECT item.id, n FROM item JOIN o ON item_id = id), u AS (UPDATE kv SET v = c.m FROM (SELECT * FROM q) c WHERE k = chr(96 + c.m::int)), d AS (DELETE FROM loose USING q WHERE a = q.id RETURNING loose.*) SELECT q.*, d.b FROM d, q ORDER BY 1, 2, 3
WITH q AS (SELECT id, name FROM item), u AS (UPDATE orders SET note = 'x' FROM q WHERE q.id = item_id), i AS (INSERT INTO loose SELECT * FROM q RETURNING a) SELECT row_to_json(q), a FROM q, i ORDER BY a, id
WITH q AS (SELECT * FROM item), u AS (UPDATE orders SET note = q.name FROM q WHERE q.id = item_id), i AS (INSERT INTO loose SELECT id, name FROM q ORDER BY id RETURNING a) UPDATE kv SET v = i.a FROM q, i WHERE i.a = q.id AND k = 'a' RETURNING kv.*, q.id
WITH q AS (SELECT max(id) AS m FROM orders), u AS (UPDATE item SET stock = m FROM q WHERE id = 1), v AS (SELECT q.m, kv.k FROM q, kv) SELECT * FROM v ORDER BY k
WITH d AS (DELETE FROM loose RETURNING a), q AS (SELECT i.id, d.a FROM d, item i WHERE d.a = i.id), u AS (UPDATE orders SET qty = q.a FROM q WHERE item_id = q.id RETURNING orders.id) SELECT * FROM u, q ORDER BY 1, 2
WITH q AS (SELECT id, name FROM item), u AS (UPDATE orders SET note = 'x' FROM q WHERE q.id = item_id RETURNING q.*, *) SELECT * FROM q ORDER BY id
WITH u AS (UPDATE item SET stock = stock + 1 RETURNING id) SELECT k, (SELECT count(*) FROM orders) AS n FROM kv WHERE EXISTS (SELECT FROM loose WHERE b = k) OR k = 'a' ORDER BY k
WITH u AS (UPDATE item SET stock = stock + 1 RETURNING id) SELECT name, (SELECT max(o.note) FROM orders o WHERE o.item_id = item.id) FROM item WHERE id IN (SELECT id FROM u) AND id IN (SELECT item_id FROM orders) ORDER BY id
WITH u AS (UPDATE item SET stock = stock + 1 RETURNING id) SELECT u.id, (SELECT count(*) FROM orders) FROM u WHERE EXISTS (SELECT FROM orders WHERE item_id = u.id) ORDER BY id
WITH d AS (DELETE FROM loose RETURNING a) SELECT name FROM item WHERE id IN (SELECT d.a FROM d JOIN orders o ON o.item_id = d.a) AND id NOT IN (SELECT a FROM loose)
WITH d AS (DELETE FROM loose) SELECT name FROM item WHERE id > (SELECT max(id) FROM orders) AND id = 1
SELECT 1; WITH d AS (DELETE FROM loose RETURNING *) SELECT * FROM d WHERE a > 1; WITH d AS (DELETE FROM kv) SELECT 2 AS two`

// textsWithParts returns the texts one by one. A comment ends in the middle of one.
func textsWithParts() []string {
	texts := strings.Split(strings.ReplaceAll(strings.TrimSpace(partTexts), "-- )\n", "-- )\x00"), "\n")
	for i := range texts {
		texts[i] = strings.ReplaceAll(texts[i], "\x00", "\n")
	}
	return texts
}

func TestPartsThatWriteLookTheSame(t *testing.T) {
	tw := newTwins(t)
	tw.both("CREATE SEQUENCE seq")
	for _, text := range textsWithParts() {
		tw.both("BEGIN")
		tw.both(text)
		tw.sameInside()
		tw.both("ROLLBACK")
		tw.both("ALTER SEQUENCE seq RESTART")
		if t.Failed() {
			t.Fatalf("%s", text)
		}
	}
}

// sameInside is sameTables within a transaction, if that has not failed.
func (tw *twins) sameInside() {
	tw.t.Helper()
	if tw.original.TxStatus() == 'T' && tw.proxied.TxStatus() == 'T' {
		tw.sameTables()
	}
}

func TestPartsTellWhatTheyWrite(t *testing.T) {
	for _, c := range []struct {
		text   string
		source int
		// the versions that were there before, or that are there afterwards
		table, before, after string
		want                 history.Observation
	}{
		{"WITH moved AS (DELETE FROM orders WHERE item_id = 1 RETURNING *) INSERT INTO line SELECT id, 9, note FROM moved", 2, "orders", "item_id = 1", "", history.Exact},
		{"WITH u AS (UPDATE item SET stock = 77 WHERE id < 3) SELECT 1 WHERE false", 1, "item", "", "id < 3",
			history.Exact},
		{"WITH a AS (INSERT INTO item VALUES (20), (21) RETURNING id), d AS (DELETE FROM loose WHERE a = 1) SELECT k FROM kv, a", 3, "item", "", "id >= 20", history.Exact},
		{"WITH a AS (INSERT INTO item VALUES (20), (21) RETURNING id), d AS (DELETE FROM loose WHERE a = 1) SELECT k FROM kv, a", 2, "loose", "a = 1", "", history.Exact},
		{"WITH d AS (DELETE FROM loose USING orders o LEFT JOIN line l ON false WHERE a = 1 AND o.id = 2 RETURNING o.id) SELECT * FROM d", 2, "orders", "id = 2", "", history.Exact},
		{"WITH d AS (DELETE FROM loose USING orders o LEFT JOIN line l ON false WHERE a = 1 AND o.id = 2 RETURNING o.id) SELECT * FROM d", 3, "line", "false", "", history.Exact},
		{"WITH d AS (DELETE FROM part WHERE id < 100) DELETE FROM kv WHERE k = 'none'", 2, "part", "id < 100", "",
			history.Exact},
		{"WITH u AS (UPDATE parent SET a = 5 RETURNING id), q AS (SELECT id FROM item) SELECT u.id FROM u, q", 2,
			"parent", "", "true", history.Exact},
		{"WITH q AS (SELECT id, name FROM item WHERE stock > 5), d AS (DELETE FROM orders USING q WHERE q.id = item_id RETURNING orders.id) SELECT q.name, d.id FROM q, d", 3, "item", "stock > 5", "", history.Exact},
		{"WITH q AS (SELECT id, name FROM item), d AS (DELETE FROM orders USING q WHERE q.id = item_id AND orders.id < 3 RETURNING orders.id) SELECT 1", 2, "item", "id = 1", "", history.Exact},
		{"WITH q AS (SELECT id FROM item), d AS (DELETE FROM loose USING (SELECT * FROM q) c WHERE c.id = a) DELETE FROM kv USING q WHERE id = 2", 1, "item", "id = 2", "", history.Exact},
		{"WITH d AS (DELETE FROM loose RETURNING a) SELECT name FROM item WHERE id IN (SELECT item_id FROM orders WHERE qty > 1) AND id IN (SELECT a FROM d)", 1, "orders", "qty > 1", "", history.Exact},
		{"WITH d AS (DELETE FROM orders WHERE id IN (SELECT id FROM orders WHERE qty > 1 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING note) INSERT INTO loose SELECT 9, note FROM d", 2, "orders", "id = 1", "", history.Exact},
		{"WITH q AS (SELECT id FROM orders WHERE qty > 1 FOR UPDATE), d AS (DELETE FROM orders WHERE id IN (SELECT id FROM q)) SELECT 1", 1, "orders", "id IN (1, 3)", "", history.Exact},
		{"WITH d AS (WITH q AS (SELECT id FROM orders WHERE qty > 1) DELETE FROM loose USING q WHERE a = q.id RETURNING a) SELECT * FROM d", 2, "orders", "id = 1", "", history.Exact},
		{"WITH d AS (WITH q AS (SELECT id FROM orders), r AS MATERIALIZED (SELECT * FROM q WHERE id < 3) DELETE FROM loose USING r WHERE a = r.id) SELECT 1", 2, "orders", "id < 3", "", history.Exact},
		{"WITH c AS (SELECT id, name FROM item), d AS (WITH q AS (SELECT o.id, c.name FROM orders o JOIN c ON c.id = item_id) DELETE FROM loose USING q WHERE a = q.id) SELECT id FROM c WHERE id = 3", 4, "item", "id = 1", "", history.Exact},
		{"WITH c AS (SELECT id, stock FROM item WHERE stock > 5), d AS (WITH q (k, n) AS (SELECT * FROM unnest(ARRAY[3], ARRAY[50])) UPDATE item SET stock = stock + q.n FROM q WHERE id = q.k), u AS (UPDATE orders SET qty = o.stock FROM (SELECT id, stock FROM c) o WHERE item_id = o.id) SELECT id FROM c", 4, "item", "", "id = 3", history.Exact},
		{"WITH q AS (SELECT id FROM item), d AS (DELETE FROM loose WHERE a IN (SELECT id FROM q)) SELECT 1", 1, "loose",
			"true", "", history.Exact},
	} {
		t.Run(c.text, func(t *testing.T) {
			tw := newTwins(t)
			ask := func(where string) []string {
				return tw.ask("SELECT " + identityOf[c.table] + " FROM " + c.table + " WHERE " + where)
			}
			var want []string
			if c.before != "" {
				want = ask(c.before)
			}
			plans, hidden := tw.both(c.text)
			if c.after != "" {
				want = ask(c.after)
			}
			p := plans[0]
			if p.Observation != c.want || p.Result.Sources[c.source].Table != "public."+c.table {
				t.Fatalf("%v: %s, %v", p.Observation, p.Reason, p.Result.Sources)
			}
			var got []string
			for _, row := range told(p, hidden[0], c.source) {
				if slices.Contains(p.Result.Sources[c.source].Physical.Items, ItemLSN) {
					row = row[:strings.LastIndexByte(row, ';')]
				}
				if c.after != "" && tw.session.Version >= 18 &&
					strings.Contains(c.text, "UPDATE "+c.table) { // it tells the version before, too
					row = withoutOld(p, c.source, row)
				}
				got = append(got, row)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("tells %q, not %q", got, want)
			}
			tw.sameTables()
		})
	}
}

// withoutOld leaves out of an identity what it says of the version that was replaced.
func withoutOld(p *Plan, source int, row string) string {
	values := strings.Split(row, ";")
	for i, item := range p.Result.Sources[source].Physical.Items {
		if item == ItemTID && p.Result.Sources[source].Physical.Items[i+1] == ItemXID &&
			slices.Contains(p.Result.Sources[source].Physical.Items, ItemNewTID) {
			return strings.Join(slices.Delete(values, i, i+2), ";")
		}
	}
	return row
}

func TestMergingPartsLookTheSame(t *testing.T) {
	if testdb.PostgreSQL(t).Major() < 17 {
		return // MERGE returns nothing
	}
	tw := newTwins(t)
	for _, text := range []string{
		"WITH m AS (MERGE INTO item i USING orders o ON o.item_id = i.id AND o.id <> 2 WHEN MATCHED AND o.qty > 3 THEN DELETE WHEN MATCHED THEN UPDATE SET stock = o.qty WHEN NOT MATCHED THEN INSERT VALUES (o.item_id, 'new', 1, 1) RETURNING merge_action(), i.*) SELECT * FROM m ORDER BY id",
		"WITH m AS (MERGE INTO kv USING loose ON kv.k = loose.b WHEN NOT MATCHED BY SOURCE THEN DELETE) SELECT count(*) FROM kv",
		"WITH d AS (DELETE FROM loose RETURNING *) MERGE INTO kv USING d ON k = b WHEN NOT MATCHED THEN INSERT VALUES (b || a, b) WHEN MATCHED THEN DELETE",
	} {
		if plans, _ := tw.both(text); plans[0].Result.Tag == "" {
			t.Errorf("%s: %s", text, plans[0].Reason)
		}
	}
	tw.sameTables()
}
