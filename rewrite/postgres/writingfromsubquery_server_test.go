package postgres

import "testing"

// joinedWrites are statements that write rows of gen, joined with those of queries that have subqueries.
var joinedWrites = grammar{
	"read": {"UPDATE gen SET a = a + 1 FROM (<q>) q WHERE q.x = gen.id<more> RETURNING gen.id, q.x", "WITH q AS (<q>) UPDATE gen SET a = <int> FROM q WHERE q.x = gen.id<more> RETURNING gen.id",
		"DELETE FROM gen USING (<q>) AS q WHERE q.x = gen.id<more> RETURNING gen.id, q.x", "WITH q AS (<q>) DELETE FROM gen USING q WHERE gen.id = q.x<more> RETURNING *, q.x",
		"WITH q AS (<q>) UPDATE gen SET a = <int> WHERE id IN (SELECT x FROM q) RETURNING id", "WITH q AS (<q>) DELETE FROM gen WHERE EXISTS (SELECT FROM q WHERE x = gen.id) RETURNING id",
		"UPDATE gen SET a = q.x FROM (<q>) q, loose l WHERE l.a = q.x AND q.x = gen.id<more> RETURNING gen.id", "UPDATE gen SET a = 1 FROM loose l LEFT JOIN (<q>) q ON q.x = l.a WHERE l.a = gen.id RETURNING gen.id, q.x",
		"UPDATE gen SET a = q.n FROM (<n>) q WHERE q.x = gen.id<more> RETURNING gen.id, gen.a", "WITH q AS (<n>) UPDATE gen SET a = q.n FROM q WHERE q.x = gen.id<more> RETURNING *, q.n", "UPDATE gen SET a = 1 FROM (<q> ORDER BY i.id LIMIT 2) q WHERE q.x = gen.id RETURNING gen.id", "UPDATE gen SET a = 1 FROM (<q>) q JOIN (SELECT i.id AS y FROM item i WHERE <of i>) p ON p.y = q.x WHERE q.x = gen.id RETURNING gen.id"},
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
