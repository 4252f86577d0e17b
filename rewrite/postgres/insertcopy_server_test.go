package postgres

import "testing"

// insertReads are INSERTs of what queries read, by WITH clauses, subqueries and LIMIT by a key.
var insertReads = grammar{
	"read": {"<with>INSERT INTO loose SELECT <item>, <text> FROM <from><where> RETURNING a, b", "INSERT INTO loose (a) <with>SELECT <item> FROM <from><where> RETURNING a",
		"<with>INSERT INTO loose SELECT <item>, <text> FROM item a<where> ORDER BY a.id LIMIT <int> RETURNING a, b", "<with>INSERT INTO loose SELECT a.id, (SELECT max(y.note) FROM orders y WHERE <of y>) FROM item a<where> ORDER BY a.stock, id DESC LIMIT <int> RETURNING a, b",
		"<with>INSERT INTO loose (a) SELECT <item> FROM <from><where> UNION ALL SELECT (SELECT max(y.qty) FROM orders y WHERE y.id < <int>) RETURNING a", "<with>INSERT INTO loose (a) SELECT <item> FROM <from><where> UNION SELECT <item> FROM <from><where> RETURNING a",
		"WITH f AS (<flat>) INSERT INTO loose (a) SELECT f.n FROM f WHERE f.n > <int> RETURNING a", "<with>INSERT INTO loose (a) SELECT max(a.id) FROM <from> WHERE <of a> RETURNING a", "<with>INSERT INTO loose SELECT a.id % 2, count(*) FROM <from> WHERE <of a> GROUP BY 1 RETURNING *",
		"WITH p AS (<with>INSERT INTO loose (a) SELECT <item> FROM <from><where> RETURNING a) SELECT a FROM p"},
	"with": {"", "WITH q AS (<ids>) ", "WITH q AS (<ids>), z AS (SELECT id FROM q WHERE id < 3) ", "WITH q AS MATERIALIZED (<ids>) ", "WITH q AS (SELECT id, stock FROM item ORDER BY id LIMIT <int>) "},
	"ids": {"SELECT id, stock FROM item", "SELECT i.id, i.stock FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.qty > <int>)", "SELECT DISTINCT item_id AS id, qty AS stock FROM orders",
		"SELECT item_id AS id, count(*) AS stock FROM orders GROUP BY 1", "SELECT id, stock FROM item WHERE id > (SELECT min(l.a) FROM loose l WHERE l.b = 'x')"},
	"flat": {"SELECT item_id AS x, count(*) AS n FROM orders o WHERE <of o> GROUP BY 1", "SELECT id, row_number() OVER (PARTITION BY stock ORDER BY id) AS n FROM item", "SELECT id AS n FROM item UNION SELECT o.qty FROM orders o WHERE <of o>"},
	"of o": {"true", "o.item_id IN (SELECT i.id FROM item i)", "EXISTS (SELECT FROM loose l WHERE l.a = o.id)"},
	"item": {"a.id", "a.id", "(SELECT count(*) FROM orders y WHERE <of y>)", "COALESCE(NULLIF(a.id, 1), (SELECT max(y.qty) FROM orders y WHERE <of y>))", "CASE WHEN a.id > 1 THEN (SELECT min(y.qty) FROM orders y WHERE <of y>) ELSE 7 END",
		"(SELECT max(y.id) FROM q y)", "(SELECT y.stock FROM item y WHERE y.id = a.id)", "(SELECT y.qty FROM orders y WHERE y.item_id = a.id ORDER BY y.id LIMIT 1)"},
	"text": {"'t'", "NULL", "(SELECT max(y.note) FROM orders y WHERE <of y>)"},
	"of y": {"y.item_id = a.id", "y.qty > <int>", "y.id < 3", "y.item_id = a.id AND EXISTS (SELECT FROM loose l WHERE l.a = y.id)", "y.note = 'q'"},
	"from": {"item a", "item a", "q a", "item a JOIN q ON q.id = a.id", "(SELECT i.id, i.stock FROM item i WHERE i.id IN (SELECT o.item_id FROM orders o)) a", "item a JOIN orders o ON o.item_id = a.id AND <condition>", "item a LEFT JOIN orders o ON o.item_id = a.id AND <condition>",
		"(SELECT item_id AS id, count(*) AS n FROM orders GROUP BY 1) a", "item a, LATERAL (SELECT max(o.qty) AS m FROM orders o WHERE o.item_id = a.id) z"},
	"where":     {"", " WHERE <condition>", " WHERE <condition> AND <condition>", " WHERE a.id < 3"},
	"condition": {"EXISTS (SELECT FROM orders y WHERE <of y>)", "NOT EXISTS (SELECT FROM orders y WHERE <of y>)", "a.id IN (SELECT l.a FROM loose l)", "a.id > (SELECT min(l.a) FROM loose l WHERE l.b <> 'z')", "(a.id = 1 OR EXISTS (SELECT FROM orders y WHERE <of y>))", "a.id IN (SELECT q.id FROM q)", "EXISTS (SELECT 1 FROM orders y WHERE <of y> LIMIT 1)"},
	"of a":      {"a.id IN (SELECT l.a FROM loose l)", "EXISTS (SELECT FROM orders y WHERE <of y>)", "a.id > (SELECT min(l.a) FROM loose l WHERE l.b <> 'z')", "a.id < 3"},
	"int":       {"0", "1", "2", "3"},
}

func TestARowThatAnInsertDoesNotTellIsOfNoUse(t *testing.T) { holdsOfNoUse(t, insertReads) }
