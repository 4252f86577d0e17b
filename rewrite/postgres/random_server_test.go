package postgres

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A grammar has alternatives by name; in them other names stand between < and >.
type grammar map[string][]string

var nonterminal = regexp.MustCompile(`<([a-z ]+)>`)

// draw spells out a text.
func (g grammar) draw(t *rapid.T, text string) string {
	return nonterminal.ReplaceAllStringFunc(text, func(name string) string {
		name = strings.Trim(name, "<>")
		return g.draw(t, rapid.SampledFrom(g[name]).Draw(t, name))
	})
}

// writes are statements that write, over serverTables.
var writes = grammar{
	"write": {"<with>INSERT<s>INTO <insert><returning>", "<with>UPDATE <update><returning>",
		"<with>DELETE<s>FROM <delete><returning>"},
	"s": {" ", "\n", "/* ; ' */", " -- é ' ;\n", "\t "},
	"with": {"", "", "", "WITH q AS (SELECT 1 AS one) ", "WITH RECURSIVE q(one) AS (VALUES (1)) ",
		"WITH q AS (DELETE FROM loose RETURNING 2 AS one) ", "WITH <reading> ", "WITH <reading> ", "WITH <reading>, <writing> "},
	"reading": {"q AS (SELECT id AS one FROM item WHERE id < <int>)", "q (one) AS (SELECT item_id, count(*) FROM orders GROUP BY 1)",
		"o AS (SELECT item_id AS one FROM orders), q AS (SELECT one FROM o WHERE one < <int>)",
		"q AS MATERIALIZED (SELECT i.id AS one, o.note FROM item i LEFT JOIN orders o ON o.item_id = i.id)",
		"q AS (SELECT a AS one FROM loose WHERE a = <int> UNION ALL SELECT id FROM item)",
		"q AS (SELECT id AS one FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id))",
		"q AS (SELECT max(id) AS one FROM orders)"},
	"writing": {"p AS (UPDATE orders SET qty = qty + 1 FROM q WHERE q.one = orders.id RETURNING item_id AS two)",
		"p AS (DELETE FROM orders USING q WHERE orders.item_id = q.one RETURNING *), r AS (UPDATE item SET stock = one FROM q WHERE id = one)",
		"p AS (INSERT INTO loose SELECT one, 'p' FROM q RETURNING a), r AS (INSERT INTO line SELECT a, 8, 'r' FROM p)",
		"p AS (UPDATE orders SET note = 'p' WHERE item_id IN (SELECT one FROM q) RETURNING *)",
		"p AS (INSERT INTO kv VALUES (<text>, (SELECT max(note) FROM orders)) ON CONFLICT DO NOTHING RETURNING k)",
		"p AS (WITH s AS (SELECT one + 1 AS two FROM q) DELETE FROM loose USING s WHERE a = two RETURNING *)",
		"p AS (WITH s (two, q) AS (SELECT id, qty FROM orders WHERE id > <int>) UPDATE item SET stock = s.q FROM s JOIN q ON one < two WHERE id = two RETURNING item.id)",
		"p AS (WITH s AS (SELECT 'w' || one AS k FROM q) INSERT INTO kv SELECT k, 'p' FROM s RETURNING v), r AS (WITH q AS (SELECT 1 AS one) DELETE FROM line USING q WHERE no = one)",
		"p AS (DELETE FROM kv WHERE EXISTS (SELECT FROM loose WHERE b = k) RETURNING *), r AS (UPDATE item SET stock = (SELECT count(*) FROM p))"},
	"insert": {"kv<as><s>VALUES <pairs><conflict>", "kv (v, k) SELECT note || id, note FROM orders<conflict>",
		"kv<as><s>SELECT <arm><conflict>", "kv (SELECT <arm> UNION SELECT <arm>)<conflict>",
		"kv (k, v)<s>SELECT <arm> <set> SELECT <arm>", "item<as> (id, name) VALUES (<int>, <text>)<conflict id>",
		"item<as> (id, name) VALUES (<counted int>, <text>)<conflict id>", "kv<as> VALUES (<text>, (SELECT note FROM orders WHERE id = <counted int>)), ((SELECT name FROM item WHERE id = <int>), 'z')<conflict>",
		"kv<as> SELECT <text>, <text> WHERE NOT EXISTS (SELECT FROM kv WHERE k = <text>)<conflict>",
		"item<as> (id, name) SELECT <counted int>, 'x' WHERE <int> IN (SELECT item_id FROM orders)<conflict id>", "loose VALUES ((SELECT one FROM q), 'q'), ((SELECT max(id) FROM item), (SELECT b FROM loose WHERE a = 2))",
		"loose DEFAULT VALUES", "trig VALUES (<int>, 1)<conflict id>", "part (a, id) VALUES (1, <int>), (2, 10<int>)",
		"line VALUES (<int>, 1, <text>)", "parent TABLE parent", "kv<as> SELECT 'q', one::text FROM q<conflict>",
		"strange VALUES ('glad', 1)<conflict id>"},
	"arm": {"note, id FROM orders<s>WHERE id > <int>", "'w' || one, 'x' FROM q", "note, one FROM orders JOIN q ON one = item_id",
		"'m' || max(one), 'x' FROM q WHERE one > <int>", "name, (SELECT max(one) FROM q) FROM item WHERE id IN (SELECT one FROM q)",
		"b.sku, a.name FROM item a LEFT JOIN line b ON b.order_id = a.id", "DISTINCT b, a FROM loose",
		"'n' || a, count(*) FROM part GROUP BY a", "k || '2', v FROM kv WHERE k = <text>",
		"d.k, 'x' FROM (SELECT b AS k, count(*) FROM loose GROUP BY b) d", "<text>, NULL",
		"k, 1 / (length(k) - 1) FROM kv", "nope FROM item", "k FROM kv ORDER BY k LIMIT 1",
		"name, sum(stock) OVER () FROM item", "'z' || id / 3, note FROM orders WHERE 6 / (4 - id) < 100",
		"k || 'l', v FROM kv WHERE k < 'c' LIMIT <int>", "name, NULL FROM item WHERE id IN (SELECT item_id FROM orders) LIMIT 1",
		"name, (SELECT max(note) FROM orders o WHERE o.item_id = item.id) FROM item WHERE EXISTS (SELECT FROM loose WHERE a = id)",
		"name, (SELECT 1 / (id - 2)) FROM item WHERE id > ALL (SELECT a FROM loose WHERE 1 / a < 1)"},
	"set":   {"UNION ALL", "EXCEPT", "INTERSECT"},
	"as":    {"", "", " AS x", " AS \"X y\"", " old"},
	"pairs": {"(<text>, <text>)", "(<text>, <text>),<s>(<text>, NULL)"},
	"text":  {"'a'", "'b'", "E'c\\'d'", "$$e$$", "U&'\\0061'", "'é'", "'ink'"},
	"int":   {"1", "2", "3", "7", "-4", "1+1", "12"},
	"conflict": {"", "", " ON CONFLICT DO NOTHING", "<s>ON CONFLICT (k) DO UPDATE SET v = excluded.v",
		" ON CONFLICT (k) DO UPDATE SET k = excluded.k || 'x'", " ON CONFLICT ON CONSTRAINT kv_pkey DO NOTHING",
		" ON CONFLICT (k) DO UPDATE SET v = NULL WHERE excluded.v > 'a'",
		" ON CONFLICT (k) DO UPDATE SET v = (SELECT max(note) || 'v' FROM orders WHERE id > <int>)",
		" ON CONFLICT (k) DO UPDATE SET v = 'c' WHERE EXISTS (SELECT FROM orders o WHERE o.note = kv.k)",
		" ON CONFLICT (k) DO UPDATE SET v = 'c' WHERE excluded.k IN (SELECT o.note FROM orders o WHERE o.id > <int>)"},
	"conflict id": {"", " ON CONFLICT DO NOTHING", " ON CONFLICT (id) DO UPDATE SET id = excluded.id + 20",
		" ON CONFLICT (id) DO UPDATE SET id = excluded.id"},
	"update": {"kv<as> SET v = v || <text><where kv>",
		"item<as> SET stock = stock + <int>, name = <text><where item>", "item SET (stock, price) = (SELECT 1, 2)",
		"item i SET stock = o.qty FROM orders o<s>WHERE o.item_id = i.id",
		"kv SET v = q.note FROM (SELECT note FROM orders) AS q WHERE q.note = k",
		"part SET id = id + <int><where item>", "part SET a = a + 1", "item SET <counted><where item>", "kv SET v = (SELECT max(o.note) FROM orders o)<where kv>",
		"parent SET a = <int><where item>",
		"ONLY parent * SET a = 1", "ONLY parent SET a = <int>", "trig SET a = a + 1, id = id",
		"loose AS new SET b = <text> WHERE a = 1",
		"line SET sku = o.note FROM orders o LEFT JOIN item ON item.id = o.item_id WHERE o.id = order_id",
		"item SET stock = 1 WHERE EXISTS (SELECT FROM item x WHERE x = item)",
		"item SET stock = <int> WHERE EXISTS (SELECT FROM orders o WHERE o.qty <> item.stock)",
		"item i SET (name, stock) = (SELECT o.note, i.stock + 1 FROM orders o WHERE o.item_id = i.id AND o.qty < stock)<where item>",
		"kv SET v = <text>, k = k || 'y' WHERE k IN (SELECT note FROM orders)", "part SET a = <int> WHERE a IN (SELECT b.a FROM loose b)",
		"gen SET a = <int> WHERE twice IN (SELECT o.qty FROM orders o WHERE o.id > gen.id)",
		"strange SET id = 'glad' WHERE id = 'sad'", "item SET stock = one FROM q WHERE id = one",
		"parent SET a = part.a FROM part WHERE part.id = parent.id"},
	"delete": {"kv<as><where kv>", "item<as><where item>",
		"orders o USING item i, kv WHERE o.item_id = i.id AND kv.k = o.note", "part<where item>",
		"parent<as> * WHERE a > 0", "loose WHERE b IN (SELECT b FROM loose WHERE a = 1)",
		"line USING orders WHERE orders.id = line.order_id", "item USING q WHERE id = one"},
	"where kv":    {"", " WHERE k = <text>", " WHERE v IS DISTINCT FROM <text> AND k < 'c'", " WHERE k = ANY ('{a,b}')"},
	"counted int": {"(SELECT max(id) + 1 FROM item)", "(SELECT id FROM orders WHERE note = <text>)", "COALESCE((SELECT 1 / (id - 2) FROM item WHERE id = <int>), 40)", "(SELECT one FROM q)"},
	"counted": {"stock = (SELECT count(*) FROM orders o WHERE o.item_id = item.id)", "stock = COALESCE((SELECT min(o.qty) FROM orders o), 1)",
		"id = (SELECT max(x.id) + 1 FROM item x)", "name = (SELECT y.name FROM item y WHERE y.id = item.stock)"},
	"where item": {" WHERE id IN (SELECT o.item_id FROM orders o)", " WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = id)", " WHERE id = (SELECT min(x.id) FROM item x WHERE x.id > <int>)",
		"", " WHERE id = <int>", " WHERE id BETWEEN <int> AND <int>", " WHERE 1 / (id - 2) < 5",
		" WHERE nope = 1"},
	"returning": {"", "", "", " RETURNING *", "<s>RETURNING<s>1 AS returning, 'x;' \"from\"", " RETURNING *, count(*)",
		" RETURNING ctid, tableoid::regclass", " -- end", " RETURNING (SELECT 5), CASE WHEN true THEN 1 END AS end",
		" RETURNING nope"},
}

// TestRandomWritesLookTheSame runs random statements on twins, each in a transaction that is rolled back.
func TestRandomWritesLookTheSame(t *testing.T) {
	tw := newTwins(t)
	rapid.Check(t, func(r *rapid.T) {
		text := writes.draw(r, "<write>")
		tw.both("BEGIN")
		tw.both(text)
		tw.both("ROLLBACK")
		if t.Failed() {
			r.Fatalf("%s", text)
		}
	})
	tw.sameTables()
}
