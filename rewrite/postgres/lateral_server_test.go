package postgres

import "testing"

// laterals have LATERAL and NATURAL JOIN in the FROM clauses of subqueries.
var laterals = grammar{
	"read": {"SELECT a.id FROM item a WHERE <condition>", "SELECT a.id, <value> FROM item a", "SELECT a.id FROM item a WHERE a.id = 2 OR <condition>", "SELECT a.stock, count(*) FROM item a WHERE <condition> GROUP BY 1",
		"SELECT d.id FROM (SELECT a.id FROM item a WHERE <condition>) d", "WITH q AS (SELECT id, stock FROM item) SELECT a.id FROM q a WHERE <condition>", "INSERT INTO loose (a) SELECT a.id FROM item a WHERE <condition> RETURNING a"},
	"condition": {"EXISTS (SELECT FROM <from><where>)", "a.id IN (SELECT y.id FROM <from><where>)", "a.id NOT IN (SELECT y.id FROM <from><where>)", "a.id >= (SELECT min(y.id) FROM <from><where>)", "EXISTS (SELECT FROM <from><where> AND z.id IN (SELECT l.a FROM loose l))"},
	"value":     {"(SELECT count(*) FROM <from><where>)", "(SELECT max(z.id) FROM <from><where>)", "ARRAY(SELECT y.id FROM <from><where>)", "COALESCE((SELECT sum(y.id) FROM <from><where>), 0)"},
	"where":     {" WHERE true", " WHERE y.id = a.id", " WHERE z.id > 1", " WHERE y.id > a.id AND z.id < 4"},
	"from": {"orders y, LATERAL (<query>) z", "item y CROSS JOIN LATERAL (<query>) z", "orders y LEFT JOIN LATERAL (<query>) z ON true", "item y JOIN LATERAL (<query>) z ON z.id = y.id", "(SELECT o.id FROM orders o) y, LATERAL (<query>) z",
		"item y, orders x, LATERAL (<query>) z", "part y NATURAL JOIN parent z", "orders y NATURAL JOIN (SELECT id, 7 AS seven FROM item) z", "item y NATURAL LEFT JOIN orders z", "items y NATURAL JOIN parent z", "part z NATURAL JOIN item y JOIN loose l ON l.a = y.id",
		"item a, LATERAL (<query>) z, orders y", "orders y, LATERAL (SELECT x.id FROM item x, LATERAL (SELECT l.a FROM loose l WHERE l.a = x.id AND x.id < y.id) w) z"},
	"query": {"SELECT o.id FROM orders o WHERE o.item_id = y.id", "SELECT o.* FROM orders o WHERE o.item_id = a.id AND o.id <> y.id", "SELECT o.id, o.note FROM orders o WHERE o.item_id = y.id ORDER BY o.id DESC LIMIT 1", "SELECT l.a AS id FROM loose l WHERE l.a = y.id ORDER BY l.b LIMIT 1",
		"SELECT count(*) AS id FROM orders o WHERE o.item_id = y.id", "SELECT o.item_id AS id FROM orders o WHERE o.qty > y.id GROUP BY 1", "SELECT y.*", "SELECT l.a AS id FROM loose l WHERE l.a = id", "SELECT p.id FROM part p NATURAL JOIN parent q WHERE p.id = y.id", "SELECT o.id FROM orders o WHERE 6 / o.id > y.id"},
}

func TestARowThatALateralDoesNotTellIsOfNoUse(t *testing.T) { holdsOfNoUse(t, laterals) }
