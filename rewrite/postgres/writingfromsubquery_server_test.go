package postgres

import "testing"

// joinedWrites are statements that write rows of gen, joined with those of queries that have subqueries.
var joinedWrites = grammar{
	"read": {"UPDATE gen SET a = a + 1 FROM (<q>) q WHERE q.x = gen.id<more> RETURNING gen.id, q.x", "WITH q AS (<q>) UPDATE gen SET a = <int> FROM q WHERE q.x = gen.id<more> RETURNING gen.id",
		"DELETE FROM gen USING (<q>) AS q WHERE q.x = gen.id<more> RETURNING gen.id, q.x", "WITH q AS (<q>) DELETE FROM gen USING q WHERE gen.id = q.x<more> RETURNING *, q.x",
		"WITH q AS (<q>) UPDATE gen SET a = <int> WHERE id IN (SELECT x FROM q) RETURNING id", "WITH q AS (<q>) DELETE FROM gen WHERE EXISTS (SELECT FROM q WHERE x = gen.id) RETURNING id",
		"UPDATE gen SET a = q.x FROM (<q>) q, loose l WHERE l.a = q.x AND q.x = gen.id<more> RETURNING gen.id", "UPDATE gen SET a = 1 FROM loose l LEFT JOIN (<qp>) q ON q.x = l.a WHERE l.a = gen.id RETURNING gen.id, q.x",
		"UPDATE gen SET a = q.n FROM (<n>) q WHERE q.x = gen.id<more> RETURNING gen.id, gen.a", "WITH q AS (<n>) UPDATE gen SET a = q.n FROM q WHERE q.x = gen.id<more> RETURNING *, q.n", "UPDATE gen SET a = 1 FROM (<q> ORDER BY i.id LIMIT 2) q WHERE q.x = gen.id RETURNING gen.id", "UPDATE gen SET a = 1 FROM (<q>) q JOIN (SELECT i.id AS y FROM item i WHERE <of i>) p ON p.y = q.x WHERE q.x = gen.id RETURNING gen.id"},
	"named": {"WITH q AS <mat>(<q>) UPDATE gen SET a = a + 1 WHERE id IN (SELECT x FROM q)<of gen> RETURNING id", "WITH q AS <mat>(<qp><limit>) UPDATE gen SET a = a + 1 WHERE id IN (SELECT x FROM q)<of gen> RETURNING id", "WITH q AS <mat>(<qp><limit>) DELETE FROM gen WHERE id IN (SELECT p.x FROM q p WHERE p.x < 3) RETURNING *",
		"WITH q AS <mat>(<qp><limit>) UPDATE gen SET a = 7 WHERE NOT EXISTS (SELECT FROM q WHERE q.x = gen.id) RETURNING id", "WITH q AS <mat>(<qp><limit>) UPDATE gen AS g SET a = (SELECT max(q.x) FROM q WHERE q.x <= g.id) RETURNING g.id, g.a",
		"WITH q AS <mat>(<qp><limit>) DELETE FROM gen WHERE a > (SELECT count(*) FROM q) - 2 RETURNING id", "WITH q (y) AS (<qp><limit>) UPDATE gen SET a = a + 1 WHERE id = 2 OR id IN (SELECT y FROM q) RETURNING id", "WITH q AS (<qp><limit>), p AS (SELECT x FROM q WHERE x > <int>) UPDATE gen SET a = a + 1 WHERE id IN (SELECT x FROM p) RETURNING id",
		"WITH q AS <mat>(<qp><limit>) UPDATE gen SET a = q.x FROM q WHERE q.x = gen.id<more> RETURNING gen.id", "WITH q AS <mat>(<qp><limit>) DELETE FROM gen USING q, loose l WHERE l.a = q.x AND q.x = gen.id RETURNING gen.id, q.x", "WITH q AS <mat>(<qp><limit>) UPDATE gen SET a = a + 1 FROM q WHERE q.x = gen.id AND EXISTS (SELECT FROM q p WHERE p.x >= gen.id) RETURNING gen.id"},
	"mat":    {"", "", "MATERIALIZED ", "NOT MATERIALIZED "},
	"limit":  {"", "", " ORDER BY i.id LIMIT 2", " ORDER BY i.stock, i.id LIMIT <int>", " LIMIT 7", " ORDER BY i.id DESC LIMIT 1"},
	"of gen": {"", " AND a < 4", " AND id IN (SELECT l.a FROM loose l)"},
	"groups": {"UPDATE gen SET a = a + 1 FROM (<g>) q WHERE q.x = gen.id<more> RETURNING gen.id, q.x", "UPDATE gen SET a = q.n FROM (<g>) q WHERE q.x = gen.id<more> RETURNING gen.id, gen.a", "UPDATE gen SET a = q.n FROM (<g>) q WHERE q.x = gen.id AND q.n > <int> RETURNING gen.id, q.n",
		"WITH q AS <mat>(<g>) UPDATE gen SET a = <int> FROM q WHERE q.x = gen.id<more> RETURNING gen.id", "WITH q AS <mat>(<g>) UPDATE gen SET a = n FROM q WHERE q.x = gen.id RETURNING gen.*", "WITH q AS (<g>) DELETE FROM gen USING q WHERE gen.id = q.x AND q.n > gen.a - 3 RETURNING gen.*, q.x",
		"DELETE FROM gen USING (<g>) AS q, loose l WHERE q.x = gen.id AND l.a = q.x RETURNING gen.id", "WITH q AS <mat>(<g>) UPDATE gen SET a = <int> WHERE id IN (SELECT x FROM q) RETURNING id", "WITH q AS (<g>) DELETE FROM gen WHERE EXISTS (SELECT FROM q WHERE q.x = gen.id AND q.n < 3) RETURNING id",
		"WITH q AS <mat>(<g>) DELETE FROM gen WHERE EXISTS (SELECT FROM q) RETURNING id", "UPDATE gen SET a = 7 WHERE EXISTS (SELECT FROM (<g>) q) RETURNING id", "WITH q AS <mat>(<g>) UPDATE gen SET a = (SELECT max(n) FROM q) WHERE id NOT IN (SELECT l.a FROM loose l) RETURNING id", "UPDATE gen SET a = a + 1 WHERE id < (SELECT count(*) FROM (<g>) q) RETURNING id",
		"UPDATE gen SET a = 1 FROM loose l LEFT JOIN (<g>) q ON q.x = l.a WHERE l.a = gen.id RETURNING gen.id, q.n"},
	"g": {"SELECT i.id AS x, count(*) AS n FROM item i WHERE <some> GROUP BY 1", "SELECT o.item_id AS x, count(*) AS n FROM orders o WHERE <of o> GROUP BY o.item_id<having>", "SELECT o.item_id AS x, max(o.qty) AS n FROM orders o JOIN item i ON i.id = o.item_id WHERE <some> GROUP BY 1<having>",
		"SELECT DISTINCT o.item_id AS x, o.qty AS n FROM orders o WHERE <of o>", "SELECT i.id AS x, 1 AS n FROM item i WHERE <some> UNION SELECT l.a, 1 FROM loose l", "SELECT o.item_id AS x, count((SELECT min(l.a) FROM loose l WHERE l.a = o.id)) AS n FROM orders o GROUP BY 1<having>",
		"SELECT o.item_id AS x, (SELECT max(l.a) FROM loose l WHERE l.a >= o.item_id) AS n FROM orders o WHERE <of o> GROUP BY o.item_id", "SELECT o.item_id AS x, count(*) AS n FROM orders o GROUP BY 1 HAVING count(*) > (SELECT min(l.a) FROM loose l)", "SELECT i.id AS x, row_number() OVER (ORDER BY i.stock, i.id) AS n FROM item i WHERE <some>",
		"SELECT max(i.id) AS x, count(*) AS n FROM item i WHERE <some>"},
	"having": {"", "", " HAVING count(*) > 1"},
	"of o":   {"o.id IN (SELECT l.a FROM loose l)", "o.qty > (SELECT min(l.a) FROM loose l WHERE l.b <> 'q')", "EXISTS (SELECT FROM part p WHERE p.id = o.item_id AND p.a <= o.qty)", "(o.qty = 5 OR o.item_id IN (SELECT l.a FROM loose l WHERE l.b = 'x'))"},
	"qp":     {"SELECT i.id AS x FROM item i WHERE <some>", "SELECT i.id AS x FROM item i WHERE <some> AND <some>", "SELECT i.id AS x, o.qty FROM item i JOIN orders o ON o.item_id = i.id WHERE <some>", "SELECT i.id AS x, <value> AS n FROM item i WHERE <some>", "SELECT i.id AS x FROM item i"},
	"some": {"EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)", "i.id IN (SELECT o.item_id FROM orders o WHERE o.qty > <int>)", "i.stock > (SELECT min(l.a) FROM loose l)", "(i.stock = 3 OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.note = 'a'))", "EXISTS (SELECT FROM part p WHERE p.id = i.id AND p.a > <int>)",
		"EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.id IN (SELECT l.a FROM loose l))", "(i.id = 2 OR i.stock > (SELECT min(l.a) FROM loose l))", "CASE WHEN i.id > 1 THEN EXISTS (SELECT FROM kv WHERE k = 'a') ELSE true END", "i.id IN (SELECT item_id FROM orders UNION SELECT a FROM loose)"},
	"q":    {"SELECT i.id AS x FROM item i WHERE <of i>", "SELECT i.id AS x FROM item i WHERE <of i> AND <of i>", "SELECT i.id AS x, o.qty FROM item i JOIN orders o ON o.item_id = i.id WHERE <of i>", "SELECT i.id AS x, <value> AS n FROM item i WHERE <of i>"},
	"n":    {"SELECT i.id AS x, <value> AS n FROM item i WHERE <of i>", "SELECT i.id AS x, <value> AS n FROM item i"},
	"more": {"", "", " AND q.x < 3", " AND gen.a > (SELECT min(k.qty) FROM orders k) - 3", " AND EXISTS (SELECT FROM kv WHERE k <> 'q')"},
	"of i": {"EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)", "i.id IN (SELECT o.item_id FROM orders o WHERE o.qty > <int>)", "i.stock > (SELECT min(l.a) FROM loose l)", "i.id NOT IN (SELECT l.a FROM loose l WHERE l.b = 'q')", "(i.stock = 3 OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.note = 'a'))",
		"i.stock >= (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id)", "NOT EXISTS (SELECT FROM part p WHERE p.id = i.id AND p.a > 1)", "true"},
	"value": {"(SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id)", "i.stock"},
	"int":   {"0", "1", "2", "3"},
}

// TestARowThatAJoinedWriteDoesNotTellIsOfNoUse deletes each row that an exact one does not tell, but of the table that
// it writes: it still writes what it wrote.
func TestARowThatAJoinedWriteDoesNotTellIsOfNoUse(t *testing.T) {
	holdsOfNoUse(t, joinedWrites)
}

// TestWhatQueriesBesideWritesReadIsTold does so where the queries are named by subqueries, have a LIMIT, or group. Of a
// table without a scan that found rows nothing is told.
func TestWhatQueriesBesideWritesReadIsTold(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, form := range []string{"<named>", "<groups>"} {
		t.Run(form, func(t *testing.T) { newTwins(t).holdsOfTables(t, joinedWrites, form) })
	}
}
