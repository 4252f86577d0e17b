package postgres

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// TestSubqueriesAreToldWhereTheyAreEvaluated has subqueries behind OR, in CASE and in COALESCE: a row shows what they
// read if it surely hangs on them.
func TestSubqueriesAreToldWhereTheyAreEvaluated(t *testing.T) {
	tw := newTwins(t)
	type rows = map[string]string
	const all, none = "true", "false"
	for _, c := range []struct {
		text string
		read rows
	}{
		{"SELECT i.id FROM item i WHERE i.id = 1 OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)",
			rows{"item": "id < 3", "orders": "item_id = 2"}},
		{"SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) OR i.id = 1",
			rows{"item": "id < 3", "orders": "item_id = 2"}},
		{"SELECT i.id FROM item i WHERE i.id = 3 OR i.id * 2 = 4 OR NOT EXISTS (SELECT FROM orders o WHERE o.item_id <> i.id)",
			rows{"item": "id > 1", "orders": none}},
		{"SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) OR EXISTS (SELECT FROM loose l WHERE l.a = i.id)",
			rows{"item": "id < 3", "orders": "item_id < 3", "loose": none}},
		{"SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.qty = 5) OR EXISTS (SELECT FROM loose l WHERE l.a = i.id)",
			rows{"item": "id < 3", "orders": "qty = 5", "loose": "a = 1"}},
		{"SELECT i.id FROM item i WHERE i.id > 0 AND (i.id = 1 AND EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) OR i.id = 3)",
			rows{"item": "id <> 2", "orders": "item_id = 1"}},
		{"SELECT i.id FROM item i WHERE i.id BETWEEN 2 AND 3 AND i.id IN (SELECT o.item_id FROM orders o) OR (i.id = 1)",
			rows{"item": "id < 3", "orders": "item_id = 2"}},
		{"SELECT i.id FROM item i WHERE NOT (i.id = 3 OR i.price > ALL (SELECT o.qty FROM orders o WHERE o.item_id = i.id))",
			rows{"item": "id = 1", "orders": "item_id = 1"}},
		{"SELECT id FROM item WHERE id = 3 OR price > (SELECT min(qty) FROM orders)", rows{"item": "id = 3 OR price > 1", "orders": all}},
		{"SELECT CASE WHEN i.id = 1 THEN (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id) END FROM item i",
			rows{"item": all, "orders": "item_id = 1"}},
		{"SELECT CASE WHEN i.id = 1 THEN 7 WHEN i.id = 3 OR 6 / (i.id - 1) > 9 THEN 8 ELSE (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id) END AS n, name FROM item i",
			rows{"item": all, "orders": "item_id = 2"}},
		{"SELECT CASE WHEN EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.qty = 5) THEN 1 WHEN i.id = 3 THEN 2 WHEN (SELECT count(*) FROM loose l WHERE l.a = i.id) > 1 THEN 3 END FROM item i",
			rows{"item": all, "orders": "qty = 5", "loose": "a = 1"}},
		{"SELECT CASE i.id WHEN (SELECT min(o.id) FROM orders o WHERE o.item_id = i.id) THEN 1 ELSE 2 END FROM item i",
			rows{"item": all, "orders": "item_id < 3"}},
		{"SELECT CASE i.id WHEN 1 THEN (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id) END FROM item i",
			rows{"item": all, "orders": "item_id = 1"}},
		{"SELECT CASE (i.id * 2) WHEN 2 THEN 7 WHEN (SELECT max(l.a) FROM loose l WHERE l.a = i.id) + 2 THEN 8 ELSE (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id) END AS n, i.name FROM item i",
			rows{"item": all, "orders": none, "loose": "a = 2"}},
		{"SELECT CASE i.id WHEN 3 THEN 7 ELSE (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id) END AS n, name FROM item i",
			rows{"item": all, "orders": "item_id < 3"}},
		{"SELECT COALESCE(i.stock, i.id - 3, (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id), 5) FROM item i",
			rows{"item": all, "orders": none}},
		{"SELECT COALESCE(NULLIF(i.id, 2), (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id), 5) + 1 FROM item i",
			rows{"item": all, "orders": "item_id = 2"}},
		{"SELECT i.id = 1 OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) AS x FROM item i",
			rows{"item": all, "orders": "item_id = 2"}},
		{"SELECT stock > 5, count(*) FROM item i WHERE i.id = 1 OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) GROUP BY 1",
			rows{"item": "id < 3", "orders": "item_id = 2"}},
		{"SELECT count(*) FROM item i WHERE i.id = 3 OR i.id > (SELECT min(qty) FROM orders)", rows{"item": "id > 1", "orders": all}},
		{"SELECT DISTINCT i.name FROM item i WHERE i.id = 3 OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)",
			rows{"item": all, "orders": "item_id < 3"}},
		{"SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND (o.id = 3 OR EXISTS (SELECT FROM loose l WHERE l.a = o.id)))",
			rows{"item": "id < 3", "orders": "id < 4", "loose": "a < 3"}},
		{"SELECT id FROM item i WHERE id < 3 ORDER BY (SELECT min(o.qty) FROM orders o WHERE o.item_id = i.id), 1 DESC",
			rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"SELECT id FROM item ORDER BY (SELECT max(qty) FROM orders), id", rows{"item": all, "orders": all}},
		{"SELECT name FROM item WHERE id = 1 ORDER BY name, (SELECT min(a) FROM loose)", rows{"item": "id = 1", "loose": all}},
		{"SELECT i.name FROM item i ORDER BY CASE WHEN i.id < 2 THEN (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id) ELSE i.id END DESC, i.id + 1",
			rows{"item": all, "orders": "item_id = 1"}},
		{"SELECT i.id FROM item i WHERE i.id = 1 OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) FOR UPDATE",
			rows{"item": "id < 3", "orders": "item_id = 2"}},
	} {
		tw.tells(c.text, c.read, history.Exact)
	}
}

// TestSubqueriesOfWhichNoCopyTellsWhereTheyAreEvaluated has those where what is tested may change, fail, or is not what
// it is at its place.
func TestSubqueriesOfWhichNoCopyTellsWhereTheyAreEvaluated(t *testing.T) {
	tw := newTwins(t)
	for _, text := range []string{
		"SELECT i.id FROM item i WHERE random() < 2 OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)",
		"SELECT i.id FROM item i WHERE price_of(i.id) = 1 OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)",
		"SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) OR 6 / (i.id - 1) > 2",
		"SELECT CASE WHEN i.id = 1 THEN (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id) END, CASE WHEN i.id = 2 THEN (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id) END FROM item i",
		"SELECT CASE WHEN row_number() OVER () = 1 THEN (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id) END FROM item i",
		"SELECT CASE WHEN count(*) > 1 THEN (SELECT max(o.qty) FROM orders o) END FROM item i",
		"SELECT count(*) FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) OR i.id > (SELECT min(qty) FROM orders)",
		"SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND (o.id = 3 OR o.qty > (SELECT min(l.a) FROM loose l)))",
	} {
		if plans, _ := tw.both(text); plans[0].Observation == history.Exact {
			t.Errorf("%s is exact", text)
		}
	}
	const by = " FROM item i ORDER BY (SELECT min(o.qty) FROM orders o WHERE o.item_id = i.id)"
	for _, text := range []string{"SELECT id" + by + " LIMIT 1", "SELECT id" + by + " OFFSET 1", "SELECT id" + by + " FOR SHARE",
		"SELECT count(*) FROM item i GROUP BY i.id ORDER BY (SELECT min(o.qty) FROM orders o WHERE o.item_id = i.id)",
		"SELECT id FROM item ORDER BY (SELECT min(qty) FROM orders) LIMIT 2"} {
		if plans, _ := tw.both(text); plans[0].Observation == history.Exact {
			t.Errorf("%s is exact", text)
		}
	}
	// parameters get their types where the server meets them first
	text := "SELECT i.id FROM item i WHERE i.stock = $1" + by[len(" FROM item i"):len(by)-1] + " AND o.id = $1)"
	if plan := tw.rewriter.Plan(text, tw.session).Statements[0]; plan.Observation == history.Exact {
		t.Errorf("%s is exact", text)
	}
}

// TestErrorsBehindOrAreTheClients has tests and subqueries that the server refuses.
func TestErrorsBehindOrAreTheClients(t *testing.T) {
	tw := newTwins(t)
	for _, text := range []string{
		"SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = 'é' OR o.id)",
		"SELECT i.id FROM item i WHERE 'é' > 'e' AND (SELECT max(o.qty) FROM orders o WHERE nope = i.id) > 1 AND i.id > 1",
		"SELECT i.id FROM item i WHERE i.id > 0 AND NOT (i.id > 3 AND i.name AND EXISTS (SELECT FROM orders o WHERE o.item_id = i.id))",
		"SELECT CASE WHEN i.id THEN 1 WHEN i.id = 7 THEN (SELECT max(o.qty) FROM orders o) END FROM item i",
		"SELECT i.id FROM item i WHERE i.nope = 1 OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)",
		"SELECT i.id FROM item i WHERE nope = 1 OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)",
		"SELECT i.id FROM item i WHERE i.nope = 1 AND EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) OR i.nope = 1",
		"SELECT i.id FROM item i WHERE i.id = 'x' OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)",
		"SELECT i.id FROM item i WHERE i.id OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)",
		"SELECT i.id FROM item i WHERE i.id = ANY (i.name) OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)",
		"SELECT CASE WHEN i.id = 1 THEN 'x' WHEN i.id + i.name = 2 THEN 'y' ELSE (SELECT max(o.qty) FROM orders o) END FROM item i",
		"SELECT CASE i.id WHEN 'x' THEN (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id) END FROM item i",
		"UPDATE item SET stock = CASE id WHEN 3 THEN (SELECT max(o.qty) FROM orders o WHERE o.item_id = item.id) WHEN 1 = 2 THEN 7 ELSE (SELECT count(*) FROM loose WHERE a = item.id) END",
		"UPDATE item SET stock = CASE WHEN name THEN 1 ELSE (SELECT max(o.qty) FROM orders o WHERE o.item_id = item.id) END",
		"SELECT CASE i.nope WHEN 1 THEN (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id) END FROM item i",
		"SELECT COALESCE(i.nope, i.name, (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id)) FROM item i",
		"SELECT COALESCE(i.name, (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id)) FROM item i",
	} {
		if d := tw.difference(text); d != "" {
			t.Error(d)
		}
	}
}

// TestTheServerEvaluatesArmsInTheOrderOfTheText asks the server for how many of the three rows of item it has run the
// subqueries behind OR and AND, in CASE and COALESCE: what the copies of their tests rest on.
func TestTheServerEvaluatesArmsInTheOrderOfTheText(t *testing.T) {
	tw := newTwins(t)
	const first = "EXISTS (SELECT FROM orders o WHERE o.item_id BETWEEN i.id AND i.id)"
	const second = "EXISTS (SELECT FROM loose l WHERE l.a BETWEEN i.id AND i.id)"
	for _, c := range []struct {
		text string
		runs []string // of orders and of loose; empty: never
	}{
		{"SELECT FROM item i WHERE i.id = 1 OR " + first, []string{"2", ""}},
		{"SELECT FROM item i WHERE " + first + " OR " + second, []string{"3", "1"}},
		{"SELECT FROM item i WHERE " + second + " OR i.id = 1 OR " + first, []string{"1", "3"}},
		{"SELECT FROM item i WHERE i.id = 9 OR i.id < 3 AND " + first, []string{"2", ""}},
		{"SELECT FROM item i WHERE NOT (i.id < 3 AND " + first + ")", []string{"2", ""}},
		{"SELECT i.id > 1 AND " + first + " FROM item i", []string{"2", ""}},
		{"SELECT CASE WHEN i.id = 1 THEN 1 WHEN " + second + " THEN 2 WHEN " + first + " THEN 3 END FROM item i",
			[]string{"1", "2"}},
		{"SELECT COALESCE(i.stock > 7, i.id = 3, " + first + ") FROM item i", []string{"", ""}},
		{"SELECT COALESCE(NULLIF(i.id, 2) = 1, " + first + ") FROM item i", []string{"1", ""}},
	} {
		plan := strings.Join(tw.ask("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) "+c.text), "\n")
		for n, table := range []string{"orders", "loose"} {
			_, line, _ := strings.Cut(plan, "Scan on "+table)
			line, _, _ = strings.Cut(line, ")")
			_, runs, _ := strings.Cut(line, "loops")
			if runs != c.runs[n] {
				t.Errorf("%s runs the subquery of %s %q times, not %q:\n%s", c.text, table, runs, c.runs[n], plan)
			}
		}
	}
}
