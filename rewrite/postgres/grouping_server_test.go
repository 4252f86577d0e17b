package postgres

import (
	"strings"
	"testing"
)

// groupingSets are statements with several groupings that have subqueries.
var groupingSets = grammar{
	"read": {"SELECT <list>, count(*) FROM item a<where> GROUP BY <set>", "SELECT <list>, max(a.id) FROM item a<where> GROUP BY <set>, a.stock % 2", "SELECT a.stock, <value of group> AS v, count(<value>) FROM item a<where> GROUP BY <stocks>",
		"SELECT <value> AS v, count(*) FROM item a<where> GROUP BY ROLLUP (1)", "SELECT <value> AS v, a.stock FROM item a<where> GROUP BY GROUPING SETS ((v), (a.stock), ())", "SELECT a.id, a.stock, count(*) FROM item a<where> GROUP BY CUBE (a.id, a.stock, <value>)",
		"SELECT a.id, count(*) FROM item a<where> GROUP BY ROLLUP ((a.id, <value>)), GROUPING SETS (a.stock, ())"},
	"list":           {"a.id, a.stock", "a.id, <value of group> AS v", "<value of id> AS v, a.stock", "(SELECT max(y.id) FROM orders y)"},
	"set":            {"ROLLUP (a.id, a.stock)", "CUBE (a.id, a.stock)", "GROUPING SETS ((a.id), (a.stock), ())", "GROUPING SETS ((a.id, a.stock), ROLLUP (a.id), a.stock)", "a.id, a.stock"},
	"stocks":         {"ROLLUP (a.stock)", "GROUPING SETS ((a.stock), ())", "CUBE (a.stock)"},
	"where":          {"", " WHERE a.id < 3", " WHERE EXISTS (SELECT FROM orders y WHERE y.item_id = a.id)"},
	"value":          {"(SELECT max(y.note) FROM orders y WHERE y.item_id = a.id)", "(SELECT count(*) FROM loose l WHERE l.a = a.id)"},
	"value of group": {"(SELECT max(y.id) FROM orders y WHERE y.item_id < a.stock)", "(SELECT count(*) FROM orders y WHERE a.stock IS NULL)", "(SELECT min(l.a) FROM loose l)", "COALESCE(a.stock, (SELECT max(y.id) FROM orders y WHERE y.qty > 1))"},
	"value of id":    {"(SELECT max(y.id) FROM orders y WHERE y.item_id = a.id)", "(SELECT count(*) FROM orders y WHERE a.id IS NULL)"},
}

func TestARowThatGroupingSetsDoNotTellIsOfNoUse(t *testing.T) { holdsOfNoUse(t, groupingSets) }

// TestARecursionOfWiderRowsIsPlannedOtherwise is why WITH RECURSIVE is left alone at SERIALIZABLE: with an array in its
// rows the server may read by an index, and lock what that finds, where it locks the table.
func TestARecursionOfWiderRowsIsPlannedOtherwise(t *testing.T) {
	tw := newTwins(t)
	if tw.session.Version < 15 {
		t.Skip("tried on 15 and 18; 12 has a nested loop in both")
	}
	run(t, tw.proxied, "DELETE FROM orders; INSERT INTO orders SELECT n, n / 3, n % 7, 'x' FROM generate_series(1, 8000) n; CREATE INDEX by_item ON orders (item_id); ANALYZE orders; SET work_mem = '256kB'; SET random_page_cost = 1.1")
	plan := func(array string) string {
		return strings.Join(tw.ask("EXPLAIN (COSTS OFF) WITH RECURSIVE r AS (SELECT id, qty"+array+" FROM orders o WHERE id < 50 UNION ALL SELECT o.id, o.qty"+array+" FROM orders o JOIN r ON o.item_id = r.id) SELECT * FROM r"), "\n")
	}
	const identity = ", ARRAY[concat_ws(';', o.ctid, o.xmin, o.id)]::text[] AS c"
	if narrow, wide := plan(""), plan(identity); !strings.Contains(narrow, "Seq Scan on orders o") || strings.Contains(wide, "Seq Scan on orders o") {
		t.Errorf("planned as\n%s\nand with an array as\n%s", narrow, wide)
	}
}
