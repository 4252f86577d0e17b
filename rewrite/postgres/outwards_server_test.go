package postgres

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// manyRows make the tables large enough for plans to differ.
const manyRows = `INSERT INTO item SELECT i, 'i' || i, i % 700, i % 90 FROM generate_series(4, 5000) i;
	INSERT INTO orders SELECT i, i % 4000, i % 30, 'o' FROM generate_series(5, 5000) i;
	INSERT INTO loose SELECT i, 'l' FROM generate_series(1, 900) i; CREATE INDEX of_item ON orders (item_id); ANALYZE`

// TestQueriesInFromKeepTheirPlans has the columns that show what subqueries of queries in FROM, and of the WITH clause,
// read add no node to a plan but their own.
func TestQueriesInFromKeepTheirPlans(t *testing.T) {
	tw := newTwins(t)
	run(t, tw.proxied, manyRows)
	for _, of := range []string{
		"SELECT d.id FROM (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) d JOIN loose ON a = d.id + 0",
		"SELECT d.id FROM (SELECT id FROM item WHERE id IN (SELECT o.item_id FROM orders o WHERE o.qty > 7)) d, loose WHERE a = d.id AND b = 'l' ORDER BY b, d.id LIMIT 9",
		"SELECT d.id, x.qty FROM (SELECT id, stock FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) d LEFT JOIN orders x ON x.item_id = d.stock WHERE d.id < 40",
		"SELECT count(*) FROM (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) d WHERE d.id < 800",
		"SELECT l.b, d.id FROM loose l LEFT JOIN (SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) ORDER BY i.stock, i.id LIMIT 20) d ON d.id = l.a",
		"SELECT l.b, d.name FROM loose l LEFT JOIN (SELECT id, name FROM item i WHERE EXISTS (SELECT 1 FROM orders o WHERE o.item_id = i.id)) d ON d.id = l.a",
		"SELECT l.b, d.id, d.n FROM loose l LEFT JOIN (SELECT i.id, (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id) AS n FROM item i WHERE i.stock > (SELECT min(qty) FROM orders)) d ON d.id = l.a WHERE l.a < 20",
		"WITH d AS (SELECT id, name FROM item i WHERE stock = 3 OR id IN (SELECT item_id FROM orders)) SELECT d.name, l.b FROM d RIGHT JOIN loose l ON l.a = d.id ORDER BY l.b LIMIT 9",
		"WITH w AS (SELECT id, stock FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) SELECT w.id, a FROM w JOIN loose ON a = w.stock WHERE w.id = 7",
		"WITH w AS (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) SELECT a.id FROM w a JOIN w b ON b.id = a.id + 1 WHERE a.id < 90",
		"WITH w AS MATERIALIZED (SELECT id, (SELECT max(o.qty) FROM orders o WHERE o.item_id = item.id) AS m FROM item WHERE stock = 3) SELECT * FROM w WHERE m > 2",
		"SELECT d.n, d.id, l.b FROM (SELECT id, stock, (SELECT max(o.qty) FROM orders o WHERE o.item_id = item.id) AS n FROM item WHERE stock > 3) d JOIN loose l ON l.a = d.id WHERE d.stock < 60",
		"UPDATE item SET price = 1 FROM (SELECT item_id FROM orders o WHERE EXISTS (SELECT FROM loose WHERE a = o.id)) q WHERE q.item_id = item.id",
		"UPDATE item SET price = 1 FROM (SELECT x.id FROM item x WHERE x.stock > (SELECT min(qty) FROM orders) AND x.id IN (SELECT o.item_id FROM orders o)) q WHERE q.id = item.id AND item.id < 40",
		"WITH q AS (SELECT item_id, qty FROM orders o WHERE o.qty = 3 OR o.id IN (SELECT a FROM loose)) UPDATE item SET stock = q.qty FROM q JOIN loose l ON l.a = q.item_id WHERE q.item_id = item.id",
		"DELETE FROM item USING (SELECT item_id FROM orders WHERE item_id NOT IN (SELECT a FROM loose WHERE b = 'x')) q WHERE q.item_id = item.id",
		"WITH q AS (SELECT x.id FROM item x WHERE NOT EXISTS (SELECT FROM orders o WHERE o.item_id = x.id)) DELETE FROM item USING q WHERE q.id = item.id",
		"DELETE FROM loose USING (SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) ORDER BY i.stock, i.id LIMIT 20) q WHERE q.id = a",
		"WITH q AS (SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.qty > 3) ORDER BY i.stock, i.id LIMIT 9 FOR UPDATE SKIP LOCKED) UPDATE item SET price = 1 FROM q WHERE q.id = item.id",
		"WITH q AS (SELECT i.id FROM item i WHERE i.stock = 7 AND (i.price = 3 OR i.id NOT IN (SELECT a FROM loose)) FOR UPDATE) DELETE FROM item USING q WHERE q.id = item.id",
		"UPDATE item SET price = 1 WHERE id = (SELECT i.id FROM item i WHERE NOT EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) ORDER BY i.stock, i.id LIMIT 1 FOR UPDATE SKIP LOCKED)",
		"UPDATE item SET stock = 1 FROM (SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) FOR UPDATE) q WHERE q.id = item.id",
		"WITH q AS (SELECT item_id FROM orders o WHERE EXISTS (SELECT 1 FROM loose WHERE a = o.id)) UPDATE item SET price = 1 WHERE id IN (SELECT item_id FROM q)",
		"WITH q AS (SELECT item_id FROM orders o WHERE qty > (SELECT min(a) FROM loose)) DELETE FROM item WHERE id NOT IN (SELECT item_id FROM q)",
		"WITH q AS (SELECT id FROM item i WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.item_id = i.id) LIMIT 2) UPDATE item SET price = 1 FROM q WHERE q.id = item.id",
		"WITH q AS (SELECT i.id FROM item i WHERE i.stock IN (SELECT o.qty FROM orders o) ORDER BY i.stock, i.id LIMIT 9) DELETE FROM loose l USING q, kv WHERE q.id = l.a",
		"WITH q AS (SELECT id FROM item i WHERE EXISTS (SELECT 1 FROM orders o WHERE o.item_id = i.id) ORDER BY id LIMIT 5) UPDATE item SET price = 1 WHERE id IN (SELECT id FROM q)",
		"UPDATE item SET price = 1 FROM (SELECT item_id, COUNT(*) AS n FROM orders WHERE id IN (SELECT a FROM loose) GROUP BY item_id) q WHERE q.item_id = item.id",
		"UPDATE item SET stock = q.n FROM (SELECT item_id, (SELECT MAX(a) FROM loose WHERE a = item_id) AS n FROM orders GROUP BY item_id) q WHERE q.item_id = item.id",
		"UPDATE item SET price = 1 FROM loose l LEFT JOIN (SELECT o.item_id FROM orders o WHERE EXISTS (SELECT FROM kv WHERE k = o.note)) q ON q.item_id = l.a WHERE l.a = item.id",
		"WITH q AS (SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) LIMIT 40) SELECT q.id, l.b FROM q JOIN loose l ON l.a = q.id",
		"WITH q AS (SELECT i.id, i.stock FROM item i WHERE i.stock > (SELECT min(qty) FROM orders) ORDER BY i.stock, i.id LIMIT 4) SELECT l.b, q.id FROM loose l LEFT JOIN q ON q.id = l.a WHERE l.a < 20",
		"WITH q AS (SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) ORDER BY i.id LIMIT 40) SELECT q.id FROM q WHERE q.id > 7 ORDER BY q.id LIMIT 2",
	} {
		script := tw.rewriter.Plan(of, tw.session)
		if p := script.Statements[0]; p.Observation != history.Exact {
			t.Errorf("%s: %v", of, p.Reason)
		}
		want, got := planOf(t, tw, of), planOf(t, tw, string(script.Append(nil)))
		if got != want {
			t.Errorf("%s\nis planned as\n%snot as\n%s", of, got, want)
		}
	}
}

// planOf returns the nodes of a statement's plan, but for those of subqueries that are not joined.
func planOf(t *testing.T, tw *twins, text string) string {
	t.Helper()
	replies, failure := run(t, tw.proxied, "EXPLAIN (FORMAT JSON) "+text)
	if failure != nil {
		t.Fatalf("%s: %v", text, failure)
	}
	var plans []struct{ Plan map[string]any }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(replies[0].Rows[0][0], "=")), &plans); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	var add func(node map[string]any, depth int)
	add = func(node map[string]any, depth int) {
		name, _ := node["Subplan Name"].(string)
		if parent := node["Parent Relationship"]; parent == "SubPlan" || parent == "InitPlan" && !strings.HasPrefix(name, "CTE") {
			return
		}
		inner, _ := node["Plans"].([]any)
		if node["Node Type"] == "Result" { // what is volatile is computed behind a sort
			for _, n := range inner {
				add(n.(map[string]any), depth)
			}
			return
		}
		fmt.Fprint(&b, strings.Repeat("  ", depth))
		for _, of := range []string{"Node Type", "Join Type", "Strategy", "Relation Name", "Index Name", "CTE Name"} {
			if v, ok := node[of]; ok {
				fmt.Fprint(&b, v, " ")
			}
		}
		fmt.Fprintln(&b)
		for _, n := range inner {
			add(n.(map[string]any), depth+1)
		}
	}
	add(plans[0].Plan, 0)
	return strings.ReplaceAll(b.String(), "Index Only", "Index") // as wherever a row's identity is asked for
}
