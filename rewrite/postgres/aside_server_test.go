package postgres

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// TestWhatIsReadAsideIsTold has queries whose result shows less than they read.
func TestWhatIsReadAsideIsTold(t *testing.T) {
	tw := newTwins(t)
	type rows = map[string]string
	const all, none = "true", "false"
	for _, c := range []struct {
		text string
		read rows
	}{
		{"SELECT id FROM item INTERSECT SELECT item_id FROM orders WHERE qty > 1", rows{"item": all, "orders": "qty > 1"}},
		{"SELECT id FROM item EXCEPT SELECT a FROM loose ORDER BY 1 DESC", rows{"item": all, "loose": all}},
		{"SELECT 7 FROM item WHERE id = 1 INTERSECT SELECT 8 FROM orders", rows{"item": "id = 1", "orders": all}},
		{"SELECT char_length(name) FROM item UNION SELECT qty FROM orders WHERE id BETWEEN 2 AND 3",
			rows{"item": all, "orders": "id IN (2, 3)"}},
		{"(SELECT id FROM item WHERE id IN (SELECT item_id FROM orders)) UNION SELECT a FROM loose WHERE a <= (SELECT max(id) FROM part) EXCEPT ALL SELECT 3",
			rows{"item": "id < 3", "orders": "item_id < 3", "loose": all, "part": all}},
		{"SELECT id FROM item UNION ALL SELECT (SELECT max(qty) FROM orders o WHERE o.item_id = item.id) FROM item WHERE id > 1",
			rows{"item": all, "orders": "item_id = 2"}},
		{"SELECT item_id, count(*) FROM orders GROUP BY item_id HAVING count(*) > 1", rows{"orders": all}},
		{"SELECT item_id FROM orders WHERE qty < 3 GROUP BY 1 HAVING count(*) > (SELECT max(k) FROM kv WHERE false)::int",
			rows{"orders": "qty < 3", "kv": none}},
		{"SELECT stock, count(*) FROM item i JOIN orders o ON o.item_id = i.id GROUP BY stock HAVING sum(qty) > 100",
			rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"SELECT DISTINCT ON (item_id) id, note FROM orders WHERE id > 1 ORDER BY item_id, id", rows{"orders": "id > 1"}},
		{"SELECT id FROM item WHERE id = 99 EXCEPT SELECT a FROM loose WHERE a = 77", rows{"item": none, "loose": none}},
	} {
		if tw.session.Version < 18 || !strings.Contains(c.text, "INTERSECT") && !strings.Contains(c.text, "EXCEPT") {
			tw.tells(c.text, c.read, history.Exact)
			continue
		}
		// From 18 on the server does not read the right side where the left one is empty.
		if plans, _ := tw.both(c.text); plans[0].Observation == history.Exact {
			t.Errorf("%s is exact", c.text)
		}
	}
	for _, text := range []string{
		"SELECT id FROM item INTERSECT SELECT item_id FROM orders LIMIT 1",
		"SELECT id FROM item WHERE 1 / stock > 0 EXCEPT SELECT item_id FROM orders",
		"SELECT id FROM item WHERE price_of(id) > 0 EXCEPT SELECT item_id FROM orders",
		"SELECT id FROM items INTERSECT SELECT item_id FROM orders",
		"SELECT item_id, sum(qty) FROM orders GROUP BY item_id HAVING item_id = 1 AND sum(qty) > 0",
		"WITH w AS (SELECT id FROM item) SELECT id FROM w EXCEPT SELECT item_id FROM orders",
		"SELECT id FROM item WHERE id = 1 OR EXISTS (SELECT FROM kv) EXCEPT SELECT item_id FROM orders",
		"SELECT min(id) FROM item EXCEPT SELECT item_id FROM orders",
		"SELECT id FROM item EXCEPT SELECT item_id FROM orders ORDER BY 1 FETCH FIRST ROW ONLY",
	} {
		if plans, _ := tw.both(text); plans[0].Observation == history.Exact {
			t.Errorf("%s is exact", text)
		}
	}
}

// TestASubqueryOfAPartWithoutRowsIsNotTold has one that the server need not run: nobody knows what it read.
func TestASubqueryOfAPartWithoutRowsIsNotTold(t *testing.T) {
	tw := newTwins(t)
	plans, hidden := tw.both("SELECT id FROM item UNION SELECT a FROM loose WHERE b = 'none' AND a > (SELECT min(id) FROM part)")
	sources := plans[0].Result.Sources
	last := len(sources) - 1
	if sources[last].Table != "public.part" || !sources[last].Whole {
		t.Fatalf("the last source is %+v", sources[last])
	}
	for _, row := range hidden[0] {
		if got := row[len(row)-1]; got != "NULL" {
			t.Errorf("the subquery shows %s", got)
		}
	}
}
