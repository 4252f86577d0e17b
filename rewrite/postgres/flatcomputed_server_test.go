package postgres

import "testing"

// computedGroups are queries of groups of which something is computed by subqueries, and of which conditions leave some
// out.
var computedGroups = grammar{
	"read": {"SELECT <shown> FROM (<groups>) f<where>", "SELECT <shown> FROM (<groups>) f<where> ORDER BY f.x", "WITH f AS (<groups>) SELECT f.* FROM f<where>", "SELECT a.name, <shown> FROM item a JOIN (<groups>) f ON f.x = a.id<where>", "SELECT a.name, f.n FROM item a, (<groups>) f WHERE f.x = a.id AND <asked> AND <asked>",
		"SELECT f.n, (SELECT max(y.id) FROM orders y WHERE y.item_id = f.x) FROM (<groups>) f<where>", "SELECT f.n + 1, f.x FROM (<groups>) f<where>", "SELECT max(f.n) FROM (<groups>) f<where>", "SELECT f.x FROM (<groups>) f WHERE f.n > <int>", "SELECT f.n, count(*) FROM (<groups>) f<where> GROUP BY 1", "SELECT count(f.n), sum(f.x) FROM (<groups>) f<where>", "SELECT a.name, count(*) FROM item a JOIN (<groups>) f ON f.x = a.id WHERE f.n > <int> GROUP BY a.name", "SELECT f.m FROM (<groups>) f WHERE f.n <= <int> ORDER BY f.m", "SELECT a.name FROM item a JOIN (<groups>) f ON f.x = a.id WHERE f.n < 3 AND <asked>",
		"SELECT f.n, g.n FROM (<groups>) f JOIN (<groups>) g ON g.x = f.x AND g.m > 1"},
	"groups": {"SELECT item_id AS x, count(*) AS m, <unqualified> AS n FROM orders GROUP BY item_id<having>", "SELECT o.item_id AS x, count(*) AS m, <item> AS n FROM orders o<of o> GROUP BY o.item_id<having>", "SELECT o.item_id AS x, max(o.qty) AS m, <item> AS n, <item> AS k FROM orders o JOIN loose l ON l.a = o.id GROUP BY 1<having>",
		"SELECT o.item_id AS x, o.qty AS m, <both> AS n FROM orders o GROUP BY o.item_id, o.qty", "SELECT o.id AS x, o.qty AS m, <item> AS n FROM orders o GROUP BY o.id", "SELECT o.item_id AS x, count(*) AS m, count((SELECT i.stock FROM item i WHERE i.id = o.item_id)) AS c, <item> AS n FROM orders o GROUP BY o.item_id"},
	"unqualified": {"(SELECT max(i.stock) FROM item i WHERE i.id = item_id)", "(SELECT count(*) FROM loose WHERE a = item_id)", "(SELECT max(a) FROM loose)"},
	"item":        {"(SELECT max(i.stock) FROM item i WHERE i.id = o.item_id)", "(SELECT min(l.a) FROM loose l WHERE l.a >= o.item_id AND l.b <> 'q')", "CASE WHEN o.item_id > 1 THEN (SELECT count(*) FROM item i WHERE i.id < o.item_id) ELSE 0 END", "COALESCE((SELECT i.stock FROM item i WHERE i.id = o.item_id), (SELECT min(l.a) FROM loose l), 3)", "(SELECT count(*) FROM item i WHERE i.id = o.item_id AND EXISTS (SELECT FROM loose l WHERE l.a = i.id AND l.a <= o.item_id))::int", "(SELECT count(*) FROM kv k WHERE k.k < 'b')"},
	"both":        {"(SELECT count(*) FROM item i WHERE i.id = o.item_id AND i.stock > o.qty)", "<item>"},
	"of o":        {"", " WHERE o.qty > <int>", " WHERE o.id IN (SELECT l.a FROM loose l)"},
	"having":      {"", "", " HAVING count(*) > 1"},
	"shown":       {"f.x, f.n", "f.n", "*", "f.*", "f.m, f.n AS q"},
	"where":       {"", " WHERE <asked>", " WHERE <asked> AND <asked>"},
	"asked":       {"f.m > <int>", "f.x < 3", "f.n > <int>", "f.x = <int>", "f.n IS NOT NULL", "f.m > 1 OR f.n > 2"},
	"int":         {"0", "1", "2", "3"},
}

// TestWhatIsComputedOfGroupsIsTold holds what is told of such queries.
func TestWhatIsComputedOfGroupsIsTold(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	newTwins(t).holdsOfTables(t, computedGroups, "<read>")
}
