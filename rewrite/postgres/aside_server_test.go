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
		{"SELECT id FROM item WHERE 6 / (id - 4) > -3 EXCEPT SELECT item_id FROM orders", rows{"item": "id = 1", "orders": all}},
		{"SELECT abs(id), name FROM item WHERE char_length(name) < 99 UNION SELECT qty - 1, note FROM orders WHERE lower(note) >= 'c' ORDER BY 1",
			rows{"item": "name IS NOT NULL", "orders": "id > 2"}},
		{"SELECT item_id, sum(qty / id) FROM orders WHERE (qty * 2) % 4 = 2 GROUP BY item_id HAVING count(*) > 1", rows{"orders": "qty IN (1, 5)"}},
		{"SELECT (SELECT max(qty) FROM orders o WHERE o.item_id = item.id) FROM item WHERE id < abs(id - 4) INTERSECT SELECT 2",
			rows{"item": "id = 1", "orders": "item_id = 1"}},
		{"SELECT count(*) FROM (SELECT name FROM item UNION SELECT b FROM loose WHERE a < 2) d", rows{"item": all, "loose": "a < 2"}},
		{"SELECT count(DISTINCT x), max(x) AS most FROM (SELECT * FROM (SELECT id AS x FROM item INTERSECT SELECT item_id FROM orders WHERE qty > 1) e ORDER BY 1) d",
			rows{"item": all, "orders": "qty > 1"}},
		{"SELECT 1 / x, d FROM (SELECT id AS x FROM item WHERE id > 1 EXCEPT ALL SELECT a FROM loose) d GROUP BY x, d ORDER BY 1",
			rows{"item": "id > 1", "loose": all}},
		{"SELECT count(*) FROM (SELECT DISTINCT ON (item_id) id, note FROM orders WHERE id > 1 ORDER BY item_id, id) d", rows{"orders": "id > 1"}},
		{"SELECT sum(n) FROM (SELECT item_id, count(*) AS n FROM orders GROUP BY item_id HAVING count(*) > 1) d", rows{"orders": all}},
		{"SELECT count(*) FROM (SELECT DISTINCT stock FROM item WHERE id IN (SELECT item_id FROM orders)) d", rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"SELECT count(*) FROM (SELECT id FROM item WHERE stock > (SELECT min(a) FROM loose)) d", rows{"item": "stock > 1", "loose": all}},
		{"SELECT d.id FROM (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id) GROUP BY id) d",
			rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"SELECT d.id FROM (SELECT * FROM (SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) e) d",
			rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"SELECT id FROM (SELECT id, 6 / stock AS x FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)) d",
			rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"SELECT rank() OVER (ORDER BY x) FROM (SELECT id AS x FROM item WHERE 6 / (id - 4) > -3 UNION SELECT a FROM loose) d", rows{"item": "id = 1", "loose": all}},
		{"SELECT count(*) FROM (SELECT id FROM item UNION SELECT item_id FROM orders) d WHERE id > 1", rows{"item": "id > 1", "orders": "item_id > 1"}},
		{"SELECT count(*) FROM (SELECT id FROM item UNION SELECT a FROM loose) d, orders", rows{"item": all, "loose": all, "orders": all}},
		{"SELECT count(*) FROM (SELECT id FROM item UNION SELECT a FROM loose) d UNION SELECT qty FROM orders WHERE id = 1",
			rows{"item": all, "loose": all, "orders": "id = 1"}},
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
	for _, text := range []string{"SELECT DISTINCT stock FROM item ORDER BY 1 LIMIT 1", "SELECT DISTINCT i.stock, name FROM item i ORDER BY 2 LIMIT 2"} {
		tw.tells(text, rows{"item": all}, history.Exact)
	}
	// From 17 on it may merge both in the order of their indexes.
	for _, text := range []string{"SELECT count(*) FROM (SELECT id FROM item UNION SELECT item_id FROM orders LIMIT 2) d",
		"SELECT id FROM item UNION SELECT item_id FROM orders ORDER BY 1 LIMIT 1"} {
		if tw.session.Version < 17 {
			tw.tells(text, rows{"item": all, "orders": all}, history.Exact)
		} else if plans, _ := tw.both(text); plans[0].Observation == history.Exact {
			t.Errorf("%s is exact", text)
		}
	}
	for _, text := range []string{
		"SELECT id FROM item INTERSECT SELECT item_id FROM orders LIMIT 1",
		"SELECT abs(id) FROM item WHERE 1 / stock > 0 AND id = 1 UNION SELECT item_id FROM orders ORDER BY 1",
		"SELECT abs(id) FROM item WHERE 1 / stock > 0 OR id = 1 UNION SELECT item_id FROM orders",
		"SELECT abs(id) FROM item WHERE stock BETWEEN 1 / id AND 7 UNION SELECT item_id FROM orders",
		"SELECT abs(i.id) FROM item i, loose WHERE 1 / stock > a UNION SELECT item_id FROM orders",
		"SELECT abs(id) FROM item WHERE name::int > 0 UNION SELECT item_id FROM orders",
		"SELECT abs(id) FROM item WHERE (id, 1 / stock) > (2, 3) UNION SELECT item_id FROM orders",
		"SELECT DISTINCT ON (item_id) id, note FROM orders WHERE 1 / id < 7 ORDER BY item_id, id",
		"SELECT (SELECT max(qty) FROM orders o WHERE o.item_id = item.id) FROM item WHERE id < abs(id - 4) UNION ALL SELECT a FROM loose",
		"SELECT id FROM item WHERE price_of(id) > 0 EXCEPT SELECT item_id FROM orders",
		"SELECT id FROM due WHERE id < 3 INTERSECT SELECT item_id FROM orders",
		"SELECT item_id, sum(qty) FROM orders GROUP BY item_id HAVING item_id = 1 AND sum(qty) > 0",
		"WITH w AS (SELECT id FROM item) SELECT id FROM w EXCEPT SELECT item_id FROM orders",
		"SELECT id FROM item WHERE id = 1 OR EXISTS (SELECT FROM kv) EXCEPT SELECT item_id FROM orders",
		"SELECT min(id) FROM item EXCEPT SELECT item_id FROM orders",
		"SELECT id FROM item EXCEPT SELECT item_id FROM orders ORDER BY 1 FETCH FIRST ROW ONLY",
		"SELECT id FROM (SELECT id FROM item UNION SELECT item_id FROM orders) d ORDER BY id LIMIT 1",
		"SELECT id, count(*) FROM (SELECT id FROM item UNION SELECT item_id FROM orders) d GROUP BY 1 HAVING id > 1",
		"SELECT id FROM item UNION SELECT item_id FROM orders LIMIT 0",
		"SELECT DISTINCT stock FROM item LIMIT 0",
		"SELECT DISTINCT stock, price FROM item ORDER BY 1, 2 LIMIT 1",
		"SELECT DISTINCT stock FROM item WHERE stock > 1 ORDER BY 1 LIMIT 1",
		"SELECT DISTINCT * FROM item ORDER BY 1 LIMIT 1",
		"SELECT DISTINCT a FROM part ORDER BY 1 LIMIT 1",
		"SELECT DISTINCT stock % 2 FROM item ORDER BY 1 LIMIT 1",
		"(SELECT id FROM item UNION SELECT item_id FROM orders) UNION ALL SELECT a FROM loose LIMIT 2",
		"SELECT max(id) FROM (SELECT id FROM item UNION ALL (SELECT item_id FROM orders UNION SELECT a FROM loose)) d",
		"SELECT count(*) FROM (SELECT min(id) FROM item UNION SELECT item_id FROM orders) d",
	} {
		if plans, _ := tw.both(text); plans[0].Observation == history.Exact {
			t.Errorf("%s is exact", text)
		}
	}
}

// TestWhatIsReadAsideFailsAsTheClientsDoes has conditions that fail for a row, beside others that would fail later.
func TestWhatIsReadAsideFailsAsTheClientsDoes(t *testing.T) {
	tw := newTwins(t)
	for _, text := range []string{
		"SELECT id FROM item WHERE 6 / (id - 3) > 0 UNION SELECT item_id FROM orders",
		"SELECT 1 / (id - 1) FROM item WHERE id < 2 UNION SELECT item_id FROM orders WHERE (2147483646 + id) % 7 > 1",
		"SELECT item_id FROM orders WHERE (2147483646 + id) % 7 > 1 UNION SELECT 1 / (id - 1) FROM item WHERE id < 2",
		"SELECT 2147483647 + item_id, sum(1 / (qty - 5)) FROM orders WHERE abs(qty) > 4 GROUP BY item_id HAVING count(*) > 0",
		"SELECT item_id FROM orders WHERE 1 / (id - 5) < 1 GROUP BY item_id HAVING sum(2147483647 * qty) > 1",
		"SELECT item_id FROM orders WHERE 1 / (id - 5) < 1 GROUP BY item_id HAVING sum(qty) > 1 ORDER BY 1 / (item_id - 2)",
		"WITH v AS (SELECT item_id AS x, count(*) AS n FROM orders GROUP BY 1) SELECT v.nope FROM v WHERE v.n > 1",
		"WITH v AS (SELECT item_id AS x, count(*) AS n FROM orders GROUP BY 1) SELECT 1 / (v.n - 2) FROM v WHERE v.n > 1",
		"WITH v AS (SELECT item_id AS x, count(*) AS n FROM orders GROUP BY 1) SELECT 1 FROM v WHERE v.n > 1 AND v.x > 'a'",
	} {
		if d := tw.difference(text); d != "" {
			t.Error(d)
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
