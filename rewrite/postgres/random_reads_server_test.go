package postgres

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// reads are queries over serverTables. Where rows are cut off, their order is total.
var reads = grammar{
	"read": {"<with><query>", "<query>", "<query>", "<query> UNION ALL <query>",
		"SELECT id FROM item <set> SELECT item_id FROM orders", "<arm> UNION <arm>", "<arm> UNION <arm> ORDER BY <by>",
		"SELECT <over> FROM (<arm> <set> <arm>) d (id, name)<of>", "SELECT <over> FROM (<query>) d",
		"<arm> <set> (<arm> <set> <arm>) ORDER BY <by>", "(<query>)", "TABLE <table>",
		"WITH w AS (<ids>), f (<names>) AS (<flat>) SELECT <shown> FROM f WHERE <chosen>", "WITH w AS (<ids>), f AS (<flat>) SELECT <shown> FROM f WHERE <chosen> AND <chosen> ORDER BY 1",
		"SELECT <shown> FROM (<flat>) f WHERE <chosen> GROUP BY 1", "SELECT i.id, <shown> FROM item i LEFT JOIN (<flat>) f ON f.x = i.id AND <chosen>",
		"SELECT a.name, <shown> FROM item a JOIN (<flat>) f ON f.x = a.id WHERE <chosen>", "WITH w AS (<ids>), f AS (<flat>) SELECT <shown> FROM f WHERE <asked> AND <chosen>",
		"SELECT <shown> FROM (<flat>) f WHERE <asked>", "SELECT a.name, f.n FROM item a JOIN (<flat>) f ON f.x = a.id WHERE <asked> AND <asked>", "SELECT f.x, (SELECT max(y.id) FROM <inner of f>) FROM (<flat>) f WHERE <chosen>",
		"SELECT f.x, count(*) FROM (<flat>) f WHERE <asked> GROUP BY f.x", "SELECT a.*, f.x FROM item a, LATERAL (SELECT count(*) AS x, max(o.id) AS n FROM orders o WHERE o.qty > 1) f WHERE f.x > 1 AND <asked>",
		"SELECT a.id, <shown> FROM item a LEFT JOIN LATERAL (SELECT max(o.note) AS y, count(*) AS x, 1 AS n FROM orders o WHERE <near>) f ON <chosen>"},
	"names": {"x, n", "x", "n, x"},
	"near":  {"o.item_id = a.id", "o.qty > 1", "o.id < a.stock", "lower(o.note) > 'a'"},
	"flat": {"SELECT item_id AS x, count(*) AS n FROM orders GROUP BY 1", "SELECT stock % 2 AS x, max(id) AS n FROM item WHERE id > 1 GROUP BY stock % 2", "SELECT id AS x, name, count(*) AS n FROM item i JOIN loose ON a = i.id GROUP BY i.id",
		"SELECT 5 AS x, count(*) AS n FROM orders GROUP BY 1 HAVING count(*) > 2", "SELECT id AS x, row_number() OVER (PARTITION BY id ORDER BY name) AS n FROM item", "SELECT kv.*, 1 AS x, rank() OVER (PARTITION BY k ORDER BY v) AS n FROM kv",
		"SELECT id AS x, 2 AS n FROM item UNION SELECT a, 2 FROM loose", "SELECT item_id, qty FROM orders UNION DISTINCT SELECT a, id FROM part UNION ALL SELECT id, 3 FROM parent", "SELECT DISTINCT item_id AS x, qty AS n FROM orders",
		"SELECT w.id AS x, count(b.a) AS n FROM w LEFT JOIN loose b ON b.a = w.id GROUP BY w.id", "SELECT item_id AS x, count(*) AS n FROM orders o WHERE EXISTS (SELECT FROM item i WHERE i.id = o.item_id) GROUP BY 1",
		"SELECT id AS x, rank() OVER (ORDER BY stock) AS n FROM item WHERE id IN (SELECT a FROM loose) OR stock > (SELECT min(qty) FROM orders)", "SELECT id AS x, 3 AS n FROM item WHERE id NOT IN (SELECT qty FROM orders) UNION SELECT a, 2 FROM loose WHERE a = (SELECT max(id) FROM part WHERE id < 3)",
		"SELECT id AS x, count(*) AS n FROM (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) q GROUP BY id", "SELECT count(*) AS x, max(qty) AS n FROM orders"},
	"asked": {"EXISTS (SELECT FROM <inner of f>)", "f.n > (SELECT min(y.id) FROM <inner of f>)", "f.x NOT IN (SELECT y.id FROM <inner of f>)", "(f.n > 1 OR f.x IN (SELECT y.id FROM <inner of f>))",
		"f.x = ANY (SELECT y.id FROM <inner of f>)", "2 IN (SELECT y.id FROM <inner of f>)", "CASE WHEN f.n > 1 THEN EXISTS (SELECT FROM <inner of f>) ELSE f.x < 2 END", "f.n > (SELECT y.id FROM <inner of f>)"},
	"inner of f": {"item y", "item y WHERE y.id = f.x", "orders y WHERE y.qty > f.n", "orders y WHERE y.qty > 99", "part y WHERE id = x", "item y WHERE 6 / y.id > 2", "w y", "orders f JOIN item y ON f.item_id = y.id"},
	"shown":      {"*", "f.x", "f.*", "count(*)", "n, x", "f", "1 / (f.x - 2)", "f.nope"},
	"chosen":     {"f.n > 1", "f.x = 1", "x < 3", "n = 2 OR f.x = 1", "f.n > 1 AND f.x <> 2", "f.n BETWEEN 1 AND 2", "f.x IS NOT NULL", "6 / f.n > 2", "f IS NOT NULL", "true"},
	"with": {"", "WITH w AS (<ids>) ", "WITH w AS (SELECT a.id FROM item a WHERE <condition>) ", "WITH w(id) AS MATERIALIZED (<ids>) ", "WITH w AS MATERIALIZED (SELECT a.id, (SELECT max(y.id) FROM <inner>) AS m FROM item a WHERE <condition>) ",
		"WITH w AS (SELECT a.id FROM orders a WHERE <condition>), v AS (SELECT count(*) AS c FROM w) ",
		"WITH w AS (<ids>), x AS (SELECT id FROM w) ",
		"WITH RECURSIVE w AS (SELECT id FROM item WHERE id = 1 UNION ALL SELECT i.id FROM item i JOIN w ON i.id = w.id + 1) ", "WITH w AS (SELECT item_id AS id, count(*) FROM orders GROUP BY 1) "},
	"set": {"UNION", "UNION ALL", "INTERSECT", "EXCEPT ALL"},
	"arm": {"SELECT id, name FROM item", "SELECT item_id, note FROM orders WHERE qty > 1", "SELECT * FROM loose",
		"SELECT a.id, b.note FROM item a LEFT JOIN orders b ON b.item_id = a.id", "TABLE loose",
		"SELECT 1, 'x' FROM part", "(SELECT id, NULL FROM parent ORDER BY id LIMIT 1)", "SELECT stock, k FROM item, kv",
		"SELECT no, sku FROM line", "SELECT id, a FROM part", "SELECT k, v FROM kv", "SELECT item, name FROM sold",
		"TABLE items", "SELECT count(*), 'y' FROM item", "SELECT char_length(name), name FROM item WHERE stock > (SELECT min(qty) FROM orders)",
		"SELECT (SELECT max(o.qty) FROM orders o WHERE o.item_id = item.id), name FROM item WHERE EXISTS (SELECT FROM loose WHERE a = id)",
		"SELECT id, name FROM item WHERE 6 / (id - 4) < 0", "SELECT qty - 1, upper(note) FROM orders WHERE abs(id - 2) % 2 = 0",
		"SELECT stock * 2, lower(name) FROM item WHERE 1 / (stock - 3) >= 0", "SELECT count(*), 'z' FROM orders WHERE item_id + id > 3 GROUP BY item_id HAVING max(qty) > 1",
		"SELECT id, name FROM item WHERE false", "SELECT item_id, min(note) FROM orders GROUP BY item_id HAVING count(*) > 1"},
	"over":  {"count(*)", "*", "d", "", "count(DISTINCT d), max(d.id)", "1 / (d.id - 2)", "name, count(*) OVER ()", "(SELECT max(id) FROM w)", "min(d.id) + 1, array_agg(d ORDER BY d.id)"},
	"of":    {"", "", " GROUP BY 1", " ORDER BY 1", " WHERE d.id > 1", " LIMIT 2"},
	"by":    {"1", "1, 2", "id", "2 DESC, 1 LIMIT 2", "1, 2 OFFSET 1", "name, 1", "3", "id + 1"},
	"table": {"item", "kv", "part", "parent", "loose", "line", "w", "items", "sold"},
	"query": {"SELECT <list> FROM <from><where>", "SELECT <list> FROM <from><where>",
		"SELECT DISTINCT <list> FROM <from><where>", "SELECT <agg> FROM <from><where>",
		"SELECT <one>, <agg> FROM <from><where> GROUP BY <group><having>",
		"SELECT DISTINCT ON (a.id) a.id FROM <from><where> ORDER BY a.id",
		"SELECT a.id FROM item a<where> ORDER BY a.id LIMIT 2", "SELECT a.id, a.name FROM item a<where> ORDER BY (SELECT max(y.id) FROM <inner>), 1", "SELECT <one> FROM <from><where> GROUP BY a.id, <one>"},
	"ids": {"SELECT id FROM item", "SELECT id FROM orders WHERE qty > 1", "SELECT a FROM loose",
		"SELECT id FROM part UNION ALL SELECT id FROM item", "SELECT * FROM (SELECT id, stock FROM item) y",
		"SELECT DISTINCT item_id FROM orders", "SELECT id FROM parent", "SELECT id FROM sold", "SELECT item FROM sold",
		"SELECT * FROM items"},
	"from": {"(SELECT a.id, a.name, <computed> AS n FROM item a<where>) a", "(SELECT a.id, <computed> AS n FROM item a<where>) a<join>", "item a", "orders a", "part a", "parent a", "ONLY parent a", "items a", "sold a<join>",
		"items a<join><join c>", "only_parent a<join>", "item a<join>", "orders a<join>", "item a<join><join c>",
		"(<ids>) a(id)", "(SELECT * FROM item) a", "(SELECT a.* FROM item a<where>) a",
		"(SELECT a.id, a.note FROM orders a WHERE <condition> ORDER BY 1 LIMIT 3) a", "(SELECT a.id FROM item a WHERE <condition>) a<join>",
		"(SELECT a.id, a.note FROM orders a WHERE <condition> ORDER BY 1 LIMIT 3) a<join>", "(SELECT * FROM item) a<join>",
		"(SELECT o.*, count(*) OVER () AS n FROM orders o) a", "(<groups>) a", "(<groups>) a<join>",
		"item a, LATERAL (<groups>) b", "(SELECT * FROM (<groups>) y) a<join c>", "(SELECT a.*, 1 AS n FROM (SELECT id, note FROM orders) a) a<join>", "(SELECT id, name FROM item) a<join>", "w a", "w a<join>", "(item a<join>)",
		"item a, generate_series(1, 2) g", "<left> l, LATERAL (<around>) a",
		"<left> l LEFT JOIN LATERAL (<around>) a ON true", "<left> l, LATERAL (<around>) a<join>",
		"<left> l, LATERAL (SELECT * FROM LATERAL (<around>) y) a",
		"<left> l, LATERAL (SELECT y.* FROM <left> k, LATERAL (<around>) y) a"},
	"left": {"item", "(<ids>)", "(SELECT * FROM item)", "(<groups>)", "(SELECT DISTINCT a AS id FROM loose)", "w",
		"items", "(SELECT o.id, o.note, i.name FROM orders o JOIN item i ON i.id = o.item_id)"},
	"around": {"SELECT l.* FROM orders o WHERE o.item_id = l.id", "SELECT l.*, o.qty FROM orders o",
		"SELECT o.qty, l.* FROM orders o LIMIT 1", "SELECT l.*",
		"SELECT l.id, o.* FROM orders o WHERE o.item_id = l.id", "SELECT l.* FROM (<ids>) o",
		"SELECT l.*, o.* FROM (<groups>) o", "SELECT l.* UNION ALL SELECT l.*", "SELECT l.* FROM orders l",
		"SELECT l.*, count(*) FROM orders GROUP BY l.id", "SELECT DISTINCT l.* FROM orders",
		"SELECT l.id, row_to_json(l) FROM orders", "SELECT l.id, x.* FROM orders o, LATERAL (SELECT l.*, o.qty) x"},
	"groups": {"SELECT item_id AS id, count(*) AS n FROM orders GROUP BY 1", "SELECT count(*) AS id FROM loose",
		"SELECT no AS id, max(sku) FROM line GROUP BY no HAVING count(*) > 1", "SELECT DISTINCT a AS id FROM loose",
		"SELECT max(id) AS id FROM (<ids>) z", "SELECT id, count(*) FROM (<ids>) z(id) GROUP BY id"},
	"join": {" JOIN (<groups>) b USING (id)", " LEFT JOIN (<groups>) b ON b.id = a.id + 1",
		" CROSS JOIN (<groups>) b", ", orders b", " JOIN orders b ON b.item_id = a.id", " LEFT JOIN items b USING (id)",
		" JOIN sold b ON b.item = a.id", " LEFT JOIN orders b USING (id)", " RIGHT JOIN orders b ON a.id = b.item_id",
		" FULL JOIN orders b ON a.id = b.item_id", " NATURAL JOIN part b", " LEFT JOIN (<ids>) b(id) ON b.id = a.id",
		" CROSS JOIN LATERAL (SELECT o.id FROM orders o WHERE o.item_id = a.id) b",
		" LEFT JOIN LATERAL (SELECT max(o.id) AS id FROM orders o WHERE o.item_id = a.id) b ON true",
		" JOIN orders b ON b.item_id = a.id AND <condition>", " LEFT JOIN item b ON <condition> AND b.id >= a.id",
		" RIGHT JOIN orders b ON b.item_id = a.id AND <condition>", " JOIN (item b CROSS JOIN kv) ON b.id = a.id AND <condition>",
		" LEFT JOIN part b ON b.id = (SELECT max(y.id) FROM <inner>)",
		" JOIN w b USING (id)", " LEFT JOIN (SELECT a.id, a.stock FROM item a WHERE <condition>) b ON b.id = a.id", " FULL JOIN (SELECT a.item_id AS id, <computed> AS n FROM orders a WHERE <condition>) b ON b.id = a.id", " LEFT JOIN item b ON b.id = a.id AND 1 / (b.stock - 3) > 5"},
	"join c": {" JOIN kv c ON true", " LEFT JOIN loose c ON c.a = a.id", ", (VALUES (1), (2)) c(n)",
		" CROSS JOIN (SELECT k FROM kv UNION ALL SELECT sku FROM line) c"},
	"computed": {"(SELECT count(*) FROM <inner>)", "(SELECT max(y.id) FROM <inner>)", "EXISTS (SELECT FROM <inner>)", "COALESCE((SELECT max(y.id) FROM <inner>), 1)", "(SELECT y.id FROM <inner>)", "CASE WHEN <test> THEN (SELECT min(y.id) FROM <inner>) END"},
	"list": {"a.id, a.n", "a.n", "*", "(SELECT max(id) FROM w), a.id", "ARRAY(SELECT id FROM w)", "a.*", "a.id", "a.id, a.id + 1 AS next", "a.*, 1 AS one", "1", "a", "row_to_json(a)",
		"(SELECT count(*) FROM orders o WHERE o.item_id = a.id)", "lower(a.id::text), 'x'", "",
		"rank() OVER (ORDER BY a.id), a.id", "CASE WHEN <test> THEN (SELECT count(*) FROM <inner>) WHEN <condition> THEN 7 END AS n, a.id",
		"<test> OR <condition> AS either, 1", "<test> AND <condition>, COALESCE(NULLIF(a.id, 1), (SELECT max(y.id) FROM <inner>), 3)", "EXISTS (SELECT * FROM w)", "generate_series(1, a.id % 3)", "a.nope",
		"b.id, a.*", "price_of(1)", "concat(a.id, 1)"},
	"one": {"a.id", "a.id % 2", "1", "a.id IS NULL", "to_json(a.id)::text"},
	"agg": {"count(*)", "max(a.id)", "min(a.id), max(a.id)",
		"count(DISTINCT a.id), sum(a.id) FILTER (WHERE a.id > 1)", "array_agg(a.id ORDER BY a.id)", "bool_or(a.id > 2)",
		"sum(1 / (a.id - 2))", "1 AS x, count(a.*)", "(SELECT max(a.id)), count(*)", "total(1)",
		"largest(1), price_of(1)", "concat(a.id::text ORDER BY a.id)"},
	"group":  {"1", "a.id, 1", "ROLLUP (1)", "GROUPING SETS ((1), ())", "CUBE (a.id, a.id % 2)", "()"},
	"having": {"", "", " HAVING count(*) > 1", " HAVING a.id > 1"},
	"where": {" WHERE a.id IN (SELECT id FROM w)", " WHERE a.id = (SELECT max(w.id) FROM w, orders) AND EXISTS (SELECT 1 FROM w WHERE w.id = a.id)",
		"", "", " WHERE a.id > 1", " WHERE a.id IN (SELECT item_id FROM orders)", " WHERE 1 / (a.id - 2) < 5",
		" WHERE EXISTS (SELECT * FROM w WHERE w.id = a.id)", " WHERE a.id = ANY (ARRAY(SELECT * FROM w))",
		" WHERE a.id IS NOT DISTINCT FROM 1", " WHERE false", " WHERE <condition>", " WHERE <condition>",
		" WHERE <condition> AND <condition>"},
	"condition": {"EXISTS (SELECT <what> FROM <inner>)", "NOT EXISTS (SELECT <what> FROM <inner>)",
		"a.id IN (SELECT y.id FROM <inner>)", "a.id NOT IN (SELECT y.id FROM <inner>)", "a.id >= ALL (SELECT y.id FROM <inner>)",
		"a.id = (SELECT max(y.id) FROM <inner>)", "a.id = (SELECT y.id FROM <inner>)", "(a.id < 3 OR EXISTS (SELECT FROM <inner>))",
		"(SELECT y.id FROM <inner> ORDER BY y.id LIMIT 1) > 0",
		"(SELECT y.id::text FROM <inner> ORDER BY id LIMIT 1) > '0'", "COALESCE((SELECT min(y.id) FROM <inner>), 1) < 4",
		"(<test> OR <condition>)", "(<condition> OR <test> OR <condition>)", "(<test> AND <condition> OR <test>)",
		"NOT (<test> AND <condition>)", "COALESCE(NULLIF(a.id, 2), (SELECT max(y.id) FROM <inner>)) < 4",
		"CASE WHEN <test> THEN <condition> WHEN <condition> THEN <test> ELSE <condition> END"},
	"test": {"a.id = 1", "a.id BETWEEN 2 AND 3", "a.id IS NULL", "6 / (a.id - 2) > 5", "a.id::text LIKE '1%'", "b.id = 2", "false",
		"a.nope = 1", "a.id", "price_of(a.id) > 1"},
	"what": {"", "*", "1", "y.id", "1 / 0"},
	"inner": {"item y WHERE y.id = a.id", "orders y WHERE y.qty > 1", "orders y WHERE y.item_id = a.id AND y.note IS NOT NULL",
		"item y", "orders y, loose z WHERE z.a = y.item_id AND y.id <> a.id", "part y WHERE y.a < 3", "parent y WHERE false",
		"item y JOIN orders z ON z.item_id = y.id", "item y WHERE 1 / (y.id - 2) < 5", "items y WHERE y.id < 3", "w y",
		"item y WHERE y.name LIKE 'p%' LIMIT 1", "orders y WHERE y.item_id = a.id ORDER BY y.qty DESC LIMIT 1",
		"orders y ORDER BY y.item_id LIMIT 1", "item y JOIN loose z ON z.a = y.id ORDER BY z.b, y.name LIMIT 2",
		"item y WHERE EXISTS (SELECT FROM orders z WHERE z.item_id = y.id AND z.id > a.id)",
		"item y WHERE y.stock > (SELECT min(z.qty) FROM orders z WHERE z.item_id = y.id)", "item y GROUP BY y.id HAVING count(*) > 0",
		"item y WHERE y.id IN (SELECT z.item_id FROM orders z)", "(SELECT id, name FROM item) y WHERE y.id = a.id",
		"(SELECT o.item_id AS id, o.qty FROM orders o WHERE o.qty > 1) y", "sold y WHERE y.item = a.id",
		"(SELECT id FROM item UNION ALL SELECT a FROM loose) y, orders z WHERE z.item_id = y.id",
		"orders z LEFT JOIN (SELECT id FROM item WHERE stock > 0) y ON y.id = z.item_id", "due y WHERE y.id < 4",
		"(SELECT y.* FROM item y, loose WHERE a = y.id) y", "(SELECT i.id FROM item i WHERE i.id >= a.id) y",
		"(VALUES (1), (2)) y(id)", "(SELECT a AS id, nope FROM loose) y", "(SELECT id FROM items) y JOIN (SELECT item_id FROM orders) z ON z.item_id = y.id"},
}

// difference returns what a client would see otherwise of a rewritten text, where the order of rows is open, and how
// many of them come before an error.
func (tw *twins) difference(text string) string {
	script := tw.rewriter.Plan(text, tw.session)
	want, wantErr := run(tw.t, tw.original, text)
	got, gotErr := run(tw.t, tw.proxied, string(script.Append(nil)))
	if wantErr != nil && gotErr != nil {
		at := int32(script.Position(int(gotErr.Position), true))
		if gotErr.Code == wantErr.Code && gotErr.Message == wantErr.Message && at == wantErr.Position {
			return ""
		}
	}
	for i := range got {
		trim(&got[i], script.Statements[i])
		slices.SortFunc(got[i].Rows, slices.Compare)
	}
	for i := range want {
		slices.SortFunc(want[i].Rows, slices.Compare)
	}
	if reflect.DeepEqual(got, want) && wantErr == nil && gotErr == nil {
		return ""
	}
	return fmt.Sprintf("%s\nas %s\ngives %v, %v\nnot   %v, %v", text, script.Append(nil), got, gotErr, want, wantErr)
}

// TestTheFirstErrorIsTheClients has several mistakes in a condition, some of them in what is copied.
func TestTheFirstErrorIsTheClients(t *testing.T) {
	tw := newTwins(t)
	for _, text := range []string{
		"SELECT * FROM item a WHERE EXISTS (SELECT FROM (SELECT a AS id, nope FROM loose) y) AND (b.id = 2 OR a.id IN (SELECT y.id FROM item y WHERE y.id = a.id))",
		"SELECT * FROM item a WHERE a.nope = 1 AND (b.id = 2 OR a.id IN (SELECT y.id FROM item y WHERE y.id = a.id))",
		"SELECT * FROM item a WHERE a.id = 'x' AND EXISTS (SELECT FROM orders y WHERE y.id = a.name)",
		"SELECT count(*) FROM item a WHERE a.id = 'x' AND EXISTS (SELECT FROM orders y WHERE y.id = a.name)",
		"SELECT stock, max(id) FROM item a WHERE a.stock > a.name AND (b.id = 2 OR a.id IN (SELECT y.id FROM item y WHERE y.id = a.id)) GROUP BY 1",
		"SELECT DISTINCT stock FROM item a WHERE a.stock > a.name AND (b.id = 2 OR a.id IN (SELECT y.id FROM item y WHERE y.id = a.id))",
		"SELECT * FROM (SELECT * FROM item a WHERE a.id = 'x' AND EXISTS (SELECT FROM orders y WHERE y.id = a.name)) d",
		"SELECT d.id FROM (SELECT id FROM item a WHERE a.id = 'x' AND EXISTS (SELECT FROM orders y WHERE y.id = a.name)) d, loose WHERE a = d.id",
		"SELECT l.a, d.id FROM loose l LEFT JOIN (SELECT id FROM item a WHERE a.id = 'x' AND EXISTS (SELECT FROM orders y WHERE y.id = a.name)) d ON l.a = d.id",
		"SELECT id FROM item a WHERE a.id AND EXISTS (SELECT FROM orders y WHERE y.id = a.name)",
		"SELECT id FROM item a WHERE a.id + (SELECT max(y.id) FROM orders y WHERE y.id = a.id)",
	} {
		if d := tw.difference(text); d != "" {
			t.Error(d)
		}
	}
}

// mistaken are statements with several mistakes, most of them in conditions with subqueries.
var mistaken = grammar{
	"read": {"SELECT <list> FROM item a WHERE <wrong> AND <wrong>", "SELECT <list> FROM item a WHERE <wrong> OR <wrong> AND <right>", "SELECT <list> FROM item a JOIN loose b ON <wrong> WHERE <right> AND <wrong>",
		"SELECT stock, count(*) FROM item a WHERE <wrong> AND <wrong> GROUP BY stock", "SELECT DISTINCT stock FROM item a WHERE <right> AND <wrong> AND <wrong>", "SELECT count(*) FROM item a WHERE <wrong> AND <wrong> HAVING <wrong>", "SELECT (SELECT max(y.qty) FROM orders y WHERE <wrong>) AS m, count(*) FROM item a WHERE <wrong> GROUP BY (SELECT max(y.qty) FROM orders y WHERE <wrong>), 1 HAVING <wrong>",
		"SELECT d.* FROM (SELECT id FROM item a WHERE <wrong> AND <wrong>) d", "SELECT d.id FROM (SELECT id FROM item a WHERE <wrong> AND <right>) d JOIN loose ON <wrong> WHERE <wrong>", "WITH d AS (SELECT id FROM item a WHERE <wrong> AND <wrong>) SELECT d.id FROM d",
		"SELECT l.a, d.id FROM loose l LEFT JOIN (SELECT id FROM item a WHERE <wrong> AND <right>) d ON l.a = d.id AND <wrong> WHERE <wrong>", "SELECT <list>, id AS n FROM item a WHERE <wrong> ORDER BY n, nope, (SELECT max(y.qty) FROM orders y WHERE y.item_id = a.id)", "SELECT <list>, id AS n FROM item a WHERE <wrong> ORDER BY n, a.id DESC, (SELECT max(y.qty) FROM orders y WHERE y.item_id = a.id), (SELECT max(y.nope) FROM orders y WHERE <wrong>)", "SELECT <list> FROM item a WHERE <wrong> ORDER BY (SELECT max(y.id) FROM orders y WHERE <wrong>), (SELECT max(y.qty) FROM orders y WHERE y.item_id = a.id)"},
	"list":  {"a.id", "*", "a.nope", "a.id, (SELECT max(y.qty) FROM orders y WHERE <wrong>)", "CASE WHEN <wrong> THEN (SELECT y.id FROM orders y WHERE <right>) END", "a.id, count(*) OVER ()"},
	"right": {"a.id > 1", "EXISTS (SELECT FROM orders y WHERE y.item_id = a.id)", "a.id IN (SELECT item_id FROM orders)", "(a.id = 1 OR EXISTS (SELECT FROM loose y WHERE y.a = a.id))"},
	"wrong": {"<right>", "a.nope = 1", "q.id = 1", "a.id", "a.id > a.name", "a.id = 'x'", "max(a.id) > 1", "rank() OVER () > 1", "nope(a.id) = 1", "EXISTS (SELECT FROM orders y WHERE <inner wrong>)", "EXISTS (SELECT FROM nowhere y WHERE <inner wrong>)", "a.id IN (SELECT y.id FROM orders y WHERE <inner wrong>)",
		"(<wrong> OR EXISTS (SELECT FROM orders y WHERE <inner wrong>))", "a.id > (SELECT max(y.id) FROM orders y WHERE <inner wrong>)", "a.id + (SELECT max(y.id) FROM orders y WHERE y.item_id = a.id)", "CASE WHEN <wrong> THEN EXISTS (SELECT FROM orders y WHERE <inner wrong>) ELSE <wrong> END",
		"(SELECT y.id FROM orders y WHERE <inner wrong>) = 'x'", "a.id IN (SELECT y.note FROM orders y)", "EXISTS (SELECT y.nope FROM orders y WHERE y.item_id = a.id)", "a.name = (SELECT y.note FROM orders y WHERE y.item_id = a.id LIMIT 'x')"},
	"inner wrong": {"y.item_id = a.id", "y.id = a.nope", "y.nope = a.id", "y.id = a.name", "y.id = 'x'", "q.id = y.id", "max(y.id) > 1", "max(a.id) > 1", "nope(y.id) > 1", "y.id"},
}

// TestRandomMistakesAreToldAsTheClients has statements with several mistakes.
func TestRandomMistakesAreToldAsTheClients(t *testing.T) {
	tw := newTwins(t)
	rapid.Check(t, func(r *rapid.T) {
		if d := tw.difference(mistaken.draw(r, "<read>")); d != "" {
			r.Fatal(d)
		}
	})
}

// TestRandomReadsLookTheSame runs random queries on twins.
func TestRandomReadsLookTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	tw := newTwins(t)
	rapid.Check(t, func(r *rapid.T) {
		if d := tw.difference(reads.draw(r, "<read>")); d != "" {
			r.Fatal(d)
		}
	})
}
