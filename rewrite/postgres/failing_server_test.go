package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

// failingJoins are joins of what may fail for a row: whether it does hangs on the rows that the server comes to.
var failingJoins = grammar{
	"read": {"SELECT <shown> FROM <side> a <join> <side> b ON <on><where>", "SELECT <shown> FROM <side> a, <side> b WHERE a.x = b.x<and>",
		"WITH v AS <side> SELECT <shown> FROM v a <join> <side> b ON <on><where>",
		"SELECT <shown> FROM <side> a <join> <side> b ON <on> <join> <side> c ON c.x = b.x<where>",
		"SELECT count(*), max(a.n) FROM <side> a <join> <side> b ON <on><where> GROUP BY b.x",
		"SELECT DISTINCT a.x FROM <side> a <join> <side> b ON <on><where>",
		"SELECT a.x, count(*), sum(b.n) FROM <side> a <join> <side> b ON <on><where> GROUP BY a.x", "SELECT DISTINCT a.x, a.n FROM <side> a <join> <side> b ON <on> <join> <side> c ON c.x = b.x<where>",
		"SELECT <shown> FROM (SELECT a.x, b.n FROM <side> a <join> <side> b ON <on>) a <join> <side> b ON <on><where>",
		"WITH v AS MATERIALIZED <side>, w AS <side> SELECT <shown> FROM v a <join> w b ON <on><where>", "WITH v AS <side> SELECT <shown> FROM v a <join> v b ON <on><where>",
		"UPDATE kv SET v = 'q' FROM <side> a <join> <side> b ON <on> WHERE length(k) = a.x", "DELETE FROM trig USING <side> a, <side> b WHERE trig.id = a.x AND a.x = b.x<and>",
		"WITH v AS <side> UPDATE item SET stock = 7 FROM v a <join> <side> b ON <on> WHERE id = a.x", "INSERT INTO kv SELECT 'q' || a.x, b.n FROM <side> a <join> <side> b ON <on><where> ON CONFLICT DO NOTHING",
		"SELECT x FROM <side> a WHERE x IN (SELECT b.x FROM <side> b)<and a>", "SELECT x FROM <side> a WHERE EXISTS (SELECT FROM <side> b WHERE b.x = a.x)<and a>"},
	"shown": {"a.x", "a.x, b.n", "*", "count(*)", "a.x, 6 / (a.n - 1)"},
	"join":  {"JOIN", "JOIN", "LEFT JOIN"},
	"on":    {"a.x = b.x", "a.x = b.x", "a.x = b.x AND a.n > b.n", "a.x = b.x AND 6 / (b.n - a.n) < 7", "a.x = b.n"},
	"where": {"", "", " WHERE true<and>"},
	"and":   {"<and a>", " AND b.n > 100", " AND 6 / (b.x - <int>) > -9", " AND b.x = <int>", " AND b.n / a.n > 0"},
	"and a": {"", " AND a.n > 100", " AND a.n > 1", " AND a.x = <int>", " AND 6 / (a.n - <int>) > -9"},
	"int":   {"1", "2", "3", "9"},
	"side":  {"<table>", "<table>", "<group>", "<group>", "<group>", "<other>"},
	"table": {"(SELECT id AS x, stock AS n FROM item<if id>)", "(SELECT item_id AS x, qty AS n FROM orders<if id>)", "(SELECT a AS x, a AS n FROM loose<if a>)",
		"(SELECT id AS x, a AS n FROM trig<if id>)", "(SELECT id AS x, item_id AS n FROM due<if id>)", "(SELECT id AS x, 1 AS n FROM items<if id>)", "(SELECT id AS x, 2 AS n FROM item<if id>)", "(SELECT id AS x, a AS n FROM part<if id>)"},
	"group": {"(SELECT item_id AS x, count(*) AS n FROM orders<if id> GROUP BY 1<having>)", "(SELECT a AS x, count(*) AS n FROM loose<if a> GROUP BY 1<having>)",
		"(SELECT id AS x, max(stock) AS n FROM item<if id> GROUP BY id<having>)", "(SELECT a AS x, sum(6 / (id - <int>)) AS n FROM trig<if id> GROUP BY a)",
		"(SELECT count(*) AS x, max(qty) AS n FROM orders<if id>)", "(SELECT DISTINCT a AS x, 3 AS n FROM loose<if a>)", "(SELECT DISTINCT item_id AS x, qty AS n FROM orders<if id>)"},
	"other": {"(SELECT id AS x, rank() OVER (ORDER BY stock) AS n FROM item<if id>)", "(SELECT a AS x, 1 AS n FROM loose<if a> UNION SELECT id, a FROM part<if id>)",
		"(SELECT a AS x, 1 AS n FROM loose<if a> UNION ALL SELECT id, a FROM part<if id>)", "(SELECT id AS x, stock AS n FROM item<if id> ORDER BY id LIMIT 2)", "(SELECT id AS x, stock AS n FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) ORDER BY id LIMIT 2)",
		"(SELECT id AS x, 1 AS n FROM item i<if id> AND EXISTS (SELECT FROM orders o WHERE o.item_id = i.id))", "(SELECT id AS x, (SELECT count(*) FROM orders o WHERE o.item_id = i.id) AS n FROM item i<if id>)"},
	"if id":  {" WHERE true", " WHERE 6 / (id - <int>) > -9", " WHERE id > 100", " WHERE id = <int>", " WHERE id < 4 AND 6 / (id - <int>) > -9"},
	"if a":   {" WHERE true", " WHERE 6 / (a - <int>) > -9", " WHERE a > 100", " WHERE a = <int>"},
	"having": {"", "", " HAVING count(*) > 100"},
}

// failingIn is what the tables are made before joins of them may fail.
var failingIn = map[string]string{
	"new":        "",
	"analyzed":   "ANALYZE",
	"some empty": "DELETE FROM orders; DELETE FROM part; ANALYZE",
	"large": `INSERT INTO item SELECT i, 'i', i % 700, i % 90 FROM generate_series(4, 3000) i;
		INSERT INTO orders SELECT i, i % 2000, i % 30, 'o' FROM generate_series(5, 3000) i; INSERT INTO loose SELECT i, 'l' FROM generate_series(3, 900) i;
		INSERT INTO trig SELECT i, i FROM generate_series(5, 900) i; CREATE INDEX of_item ON orders (item_id, qty); VACUUM ANALYZE`,
}

// newFailingTwins has the tables of both sides so. A vacuum of the server's own would change the plans of one side.
func newFailingTwins(t *testing.T, prepare string) *twins {
	tw := newTwins(t)
	for _, c := range []*pgconn.PgConn{tw.original, tw.proxied} {
		for _, table := range []string{"item", "orders", "loose", "part_1", "part_2", "trig", "kv"} {
			run(t, c, "ALTER TABLE "+table+" SET (autovacuum_enabled = off)")
		}
		for text := range strings.SplitSeq(prepare, ";") {
			run(t, c, text)
		}
	}
	return tw
}

// TestJoinsComeToTheRowsThatTheClientsDoes has joins where isotap's columns had the server begin with another side, or
// go to a table that it would have left out.
func TestJoinsComeToTheRowsThatTheClientsDoes(t *testing.T) {
	for state, texts := range map[string][]string{
		"new": {
			"SELECT v.x FROM (SELECT item_id AS x, count(*) AS n FROM orders GROUP BY 1) v JOIN (SELECT a AS x, count(*) AS n FROM loose WHERE 6 / (a - 1) > 0 GROUP BY 1) u ON u.x = v.x WHERE v.n > 100",
			"SELECT a.x FROM (SELECT id AS x, rank() OVER (ORDER BY stock) AS n FROM item WHERE 6 / (id - 3) > -9) a, (SELECT item_id AS x, count(*) AS n FROM orders GROUP BY 1 HAVING count(*) > 100) b WHERE a.x = b.x AND b.n / a.n > 0",
			"SELECT a.x FROM (SELECT item_id AS x, qty AS n FROM orders WHERE id < 4 AND 6 / (id - 1) > -9) a, (SELECT DISTINCT a AS x, 3 AS n FROM loose WHERE a = 3) b WHERE a.x = b.x AND b.n > 100",
		},
		"analyzed": {
			"WITH v AS (SELECT a AS x FROM loose WHERE a > 100) SELECT a.x FROM v a JOIN (SELECT DISTINCT item_id AS x, qty AS n FROM orders WHERE 6 / (id - 1) > -9) b ON a.x = b.x",
			"SELECT count(*) FROM (SELECT id AS x, stock AS n FROM item WHERE 6 / (id - 2) > -9) a JOIN (SELECT id AS x, stock AS n FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) ORDER BY id LIMIT 2) b ON a.x = b.n",
			"SELECT DISTINCT a.x, a.n FROM (SELECT id AS x, stock AS n FROM item WHERE 6 / (id - 3) > -9) a LEFT JOIN (SELECT a AS x, count(*) AS n FROM loose GROUP BY 1) b ON a.x = b.x",
		},
		"large": {
			"WITH v AS (SELECT a AS x, count(*) AS n FROM loose WHERE a = 3 GROUP BY 1) SELECT a.x FROM v a JOIN (SELECT item_id AS x, qty AS n FROM orders WHERE true) b ON a.x = b.n WHERE 6 / (b.x - 2) > -9",
			"WITH v AS MATERIALIZED (SELECT id AS x, 1 AS n FROM items WHERE id > 100), w AS (SELECT id AS x, stock AS n FROM item WHERE 6 / (id - 3) > -9) SELECT count(*) FROM v a LEFT JOIN w b ON a.x = b.x AND a.n > b.n",
			"SELECT a.x, b.n FROM (SELECT a.x, b.n FROM (SELECT DISTINCT item_id AS x, qty AS n FROM orders) a LEFT JOIN (SELECT id AS x, stock AS n FROM item WHERE 6 / (id - 3) > -9) b ON a.x = b.x) a JOIN (SELECT id AS x, max(stock) AS n FROM item GROUP BY id) b ON a.x = b.x",
		},
	} {
		tw := newFailingTwins(t, failingIn[state])
		for _, text := range texts {
			if d := tw.difference(text); d != "" {
				t.Errorf("%s: %.900s", state, d)
			}
		}
	}
}

// TestJoinsThatMayFailFailAsTheClientsDo runs random ones on twins.
func TestJoinsThatMayFailFailAsTheClientsDo(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for state, prepare := range failingIn {
		t.Run(state, func(t *testing.T) {
			tw := newFailingTwins(t, prepare)
			rapid.Check(t, func(r *rapid.T) {
				for _, c := range []*pgconn.PgConn{tw.original, tw.proxied} {
					run(t, c, "ROLLBACK; BEGIN")
				}
				if d := tw.difference(failingJoins.draw(r, "<read>")); d != "" {
					r.Fatalf("%.2000s", d)
				}
			})
		})
	}
}

// TestWhatSurelyDoesNotFailIsJoinedAndTold has arithmetic in what is computed of the rows of the result, sums of whole
// numbers, and a query that is joined as the last one.
func TestWhatSurelyDoesNotFailIsJoinedAndTold(t *testing.T) {
	tw := newTwins(t)
	type rows = map[string]string
	const all = "true"
	for text, read := range map[string]rows{
		"SELECT i.name, 6 / g.n, g.s - 1 FROM item i JOIN (SELECT item_id, count(*) AS n, sum(qty) AS s FROM orders GROUP BY 1) g ON g.item_id = i.id":                     {"item": "id < 3", "orders": "item_id < 3"},
		"SELECT i.name, g.n FROM item i JOIN (SELECT item_id, array_agg(note) AS n FROM orders GROUP BY 1) g ON g.item_id = i.id AND now() > '2020-01-01'::text::date - 3": {"item": "id < 3", "orders": "item_id < 3"},
		"SELECT i.name, l.m FROM item i, LATERAL (SELECT count(*) AS m FROM orders o WHERE 6 / o.qty >= i.id) l":                                                           {"item": all, "orders": all},
		"SELECT i.stock, sum(o.qty) FROM item i JOIN orders o ON o.item_id = i.id WHERE o.qty + i.stock > 2 GROUP BY 1":                                                    {"item": "id < 3", "orders": "item_id < 3"},
		"SELECT i.name, g.t FROM item i JOIN (SELECT item_id, sum(qty * id) AS t FROM orders GROUP BY item_id) g ON g.item_id = i.id":                                      {"item": "id < 3", "orders": "item_id < 3"},
	} {
		tw.tells(text, read, history.Exact)
	}
}
