package postgres

import "testing"

// oneRows are queries that join one that puts all rows into one, and may ask nothing of what that computes.
var oneRows = grammar{
	"read": {"SELECT <shown> FROM item a JOIN (<one>) g ON <on><where>", "SELECT <shown> FROM item a, (<one>) g<where>", "SELECT a.id, <shown> FROM (<one>) g LEFT JOIN item a ON <on><where>",
		"SELECT <shown> FROM item a LEFT JOIN (<one>) g ON <on><where>", "SELECT <shown> FROM item a LEFT JOIN LATERAL (<hanging>) g ON true<where>",
		"SELECT <shown> FROM item a CROSS JOIN LATERAL (<hanging>) g<where>", "WITH g AS (<one>) SELECT <shown> FROM item a, g<where>", "WITH g AS (<one>) SELECT <shown> FROM item a LEFT JOIN g ON <on><where>",
		"SELECT <outer> FROM (SELECT a.id AS k, g.n FROM item a JOIN (<one>) g ON <on>) g<where of g>", "SELECT <outer> FROM (SELECT * FROM (<one>) h) g<where of g>", "WITH g AS (<one>), h AS (SELECT a.id, g.n, g.k FROM item a, g) SELECT <outer of h> FROM h",
		"SELECT a.stock, count(*) FROM item a, (<one>) g<where> GROUP BY <by>", "SELECT DISTINCT <shown> FROM item a JOIN (<one>) g ON <on><where>", "SELECT a.stock, max(g.n) FROM item a LEFT JOIN (<one>) g ON <on> GROUP BY 1 HAVING count(*) > 0",
		"SELECT a.stock, count(*) FROM item a LEFT JOIN (<one>) g ON <on> GROUP BY 1 HAVING count(*) > 0", "SELECT x.j, a.id FROM item a JOIN (<one>) x (j, n) ON <on of x>", "SELECT x FROM item a JOIN (<one>) x (j) ON x.j = a.id",
		"SELECT a.id FROM item a, (<one>) g WHERE EXISTS (SELECT FROM loose l WHERE l.a = <g>)", "SELECT a.id FROM item a JOIN (SELECT 1 AS id, count(*) AS n FROM orders) g USING (id)", "SELECT a.id FROM item a NATURAL JOIN (SELECT 1 AS n, count(*) AS stock FROM orders) g",
		"SELECT a.id FROM item a, (<one>) g, LATERAL (SELECT l.b FROM loose l WHERE l.a = <g>) l", "SELECT a.id FROM item a UNION ALL SELECT <g> FROM (<one>) g", "SELECT u.id FROM (SELECT a.id, 1 AS n FROM item a UNION ALL SELECT <g>, g.n FROM (<one>) g) u"},
	"write": {"UPDATE item a SET stock = <g> FROM (<one>) g WHERE <on> RETURNING <written>", "DELETE FROM item a USING (<one>) g WHERE a.id = 1 AND <on> RETURNING <written>", "WITH g AS (<one>) UPDATE item a SET stock = <g> FROM g WHERE a.id = 2 RETURNING <written>",
		"INSERT INTO loose (a, b) SELECT a.id, <g> FROM item a, (<one>) g RETURNING a"},
	"one": {"SELECT 1 AS k, count(*) AS n FROM orders", "SELECT max(qty) AS k, count(*) AS n FROM orders WHERE qty > <int>", "SELECT 2 AS k, count(*) AS n FROM loose l JOIN orders o ON o.id = l.a", "SELECT 1 AS k, sum(qty) AS n FROM orders HAVING count(*) > <int>",
		"SELECT 1 AS k, max(d.qty) AS n FROM (SELECT qty FROM orders) d", "SELECT 1 AS k, (SELECT count(*) FROM orders) AS n"},
	"hanging":    {"SELECT 1 AS k, count(*) AS n FROM orders o WHERE o.item_id = a.id", "SELECT a.id AS k, max(o.qty) AS n FROM orders o JOIN loose l ON l.a = o.id WHERE o.item_id = a.id"},
	"shown":      {"a.*", "a.id", "a.name, g.k", "a.id, g.n", "*", "g.*", "g", "n", "g.n IS NULL"},
	"written":    {"a.id", "a.id, a.stock"},
	"outer":      {"g.k", "k", "n", "g.k, g.n", "*", "1 AS one", "count(*)", "max(n)"},
	"outer of h": {"h.id", "h.n", "h.id, h.k", "*", "count(*)"},
	"g":          {"g.k", "g.n", "1"},
	"by":         {"1", "1, g.k", "1, g.n", "1 HAVING max(g.n) > 0"},
	"on":         {"g.k = a.id", "g.n > a.id", "true", "a.id < 3 AND g.k > 0", "g.n > a.id AND g.k = a.id"},
	"on of x":    {"x.j = a.id", "x.n > a.id", "true"},
	"where":      {"", "", " WHERE a.id < 3", " WHERE g.n > <int>", " WHERE g.k > 0 AND a.stock > 1"},
	"where of g": {"", " WHERE g.n > <int>", " WHERE g.k > 0"},
	"int":        {"0", "1", "2", "100"},
}

// TestRowsOfAggregatesAreThoseThatWereRead holds what statements tell of queries that put all rows into one, which the
// server does not compute where nothing asks for it.
func TestRowsOfAggregatesAreThoseThatWereRead(t *testing.T) { holdsOfScans(t, oneRows, "<read>") }

// TestRowsOfAggregatesThatWritesJoinAreThoseThatWereRead does so for statements that write.
func TestRowsOfAggregatesThatWritesJoinAreThoseThatWereRead(t *testing.T) {
	holdsOfScans(t, oneRows, "<write>")
}
