package postgres

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// TestSubqueriesWithALimitTellTheirRows has subqueries take the first rows of an order: one that tells all rows apart,
// and one that may not.
func TestSubqueriesWithALimitTellTheirRows(t *testing.T) {
	tw := newTwins(t)
	if tw.session.Version < withTies {
		t.Skip("FETCH FIRST ... WITH TIES is not there")
	}
	type rows = map[string]string
	const all, none = "true", "false"
	for _, c := range []struct {
		text string
		read rows // nil: other rows could have been read, and the array says so
	}{
		{"SELECT (SELECT o.id::text FROM orders o WHERE o.id > 2 ORDER BY o.id LIMIT 1) FROM kv WHERE k = 'a'", rows{"kv": "k = 'a'", "orders": "id = 3"}},
		// id::text is called id, and 9 comes behind 10 by it.
		{"SELECT (SELECT id::text FROM orders ORDER BY id LIMIT 1) FROM kv WHERE k = 'a'", nil},
		{"SELECT (SELECT (-id)::text FROM orders ORDER BY id LIMIT 1) FROM kv WHERE k = 'a'", nil},
		{"SELECT (SELECT qty AS id FROM orders ORDER BY id LIMIT 1) FROM kv WHERE k = 'a'", nil},
		{"SELECT name, (SELECT note FROM orders WHERE item_id = item.id ORDER BY qty DESC LIMIT 1) FROM item",
			rows{"item": all, "orders": "id IN (1, 3)"}},
		{"SELECT (SELECT json_build_object('n', o.note) FROM orders o JOIN item i ON i.id = o.item_id ORDER BY i.name DESC, o.qty LIMIT 1) FROM kv WHERE k = 'a'",
			rows{"kv": "k = 'a'", "orders": "id = 2", "item": "id = 1"}},
		{"SELECT id FROM item WHERE id IN (SELECT item_id FROM orders ORDER BY note NULLS FIRST LIMIT 2)", rows{"item": "id = 1", "orders": "id < 3"}},
		{"SELECT (SELECT item_id FROM orders ORDER BY qty LIMIT 1) FROM item", nil},
		{"SELECT id FROM item WHERE id IN (SELECT item_id FROM orders ORDER BY qty LIMIT 1) OR id = 3", nil},
		{"SELECT id FROM item WHERE id NOT IN (SELECT item_id FROM orders ORDER BY qty LIMIT 2)", rows{"item": "id IN (2, 3)", "orders": "qty = 1"}},
		{"SELECT id FROM item WHERE 0 < (SELECT count(*) FROM (SELECT o.qty AS q FROM orders o WHERE o.item_id = item.id ORDER BY o.qty LIMIT 5) x)", rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"SELECT sum((SELECT o.id FROM orders o WHERE o.item_id = item.id ORDER BY qty LIMIT 1)) FROM item", rows{"item": all, "orders": "id IN (2, 3)"}},
		{"SELECT id FROM item i WHERE EXISTS (SELECT FROM loose l WHERE l.a = i.id AND l.a IN (SELECT o.item_id FROM orders o WHERE o.qty > l.a ORDER BY o.qty DESC LIMIT 1))",
			rows{"item": "id = 2", "loose": "a = 2", "orders": "id = 3"}},
		{"SELECT id, (SELECT b FROM loose ORDER BY b LIMIT 1) FROM item WHERE id = 9", rows{"item": none, "loose": none}},
		{"SELECT (SELECT b FROM loose WHERE a > 8 ORDER BY b LIMIT 1), (SELECT b FROM loose ORDER BY b DESC LIMIT 0) FROM item", rows{"item": all, "loose": none}},
		{"SELECT id, (SELECT note FROM orders WHERE item_id = item.id AND qty > 1 LIMIT 1) FROM item", rows{"item": all, "orders": "id IN (1, 3)"}},
		{"SELECT id, (SELECT note FROM orders WHERE item_id = item.id LIMIT 1) FROM item", nil},
		{"SELECT id FROM item WHERE 1 IN (SELECT qty - 1 FROM orders WHERE item_id = item.id ORDER BY abs(qty), 1 LIMIT 2)", rows{"item": "id = 1", "orders": "item_id = 1"}},
		{"SELECT id, (SELECT max(note) FROM orders WHERE item_id = item.id LIMIT 1) FROM item", rows{}},
		{"SELECT id, (SELECT generate_series(1, 2) FROM orders WHERE item_id = item.id LIMIT 1) FROM item", rows{}},
		{"SELECT id, (SELECT note FROM orders WHERE qty > 1 LIMIT 1) FROM item", nil},
		{"SELECT id FROM item WHERE id IN (SELECT item_id FROM orders ORDER BY qty FETCH FIRST 1 ROW WITH TIES)", rows{}},
	} {
		switch {
		case c.read == nil:
			plans, hidden := tw.both(c.text)
			if p := plans[0]; p.Observation != history.Exact {
				t.Errorf("%s: %v", c.text, p.Reason)
			}
			if row := hidden[0][0]; !strings.Contains(row[len(row)-1], "{*}") {
				t.Errorf("%s tells %q", c.text, row)
			}
		case len(c.read) == 0:
			if plans, _ := tw.both(c.text); plans[0].Observation == history.Exact {
				t.Errorf("%s is exact", c.text)
			}
		default:
			tw.tells(c.text, c.read, history.Exact)
		}
	}
	tw.tellsReads("WITH u AS (UPDATE item SET stock = (SELECT o.qty FROM orders o WHERE o.item_id = item.id ORDER BY o.qty DESC LIMIT 1) WHERE id < 3 RETURNING id) SELECT id FROM u ORDER BY 1",
		rows{"orders": "id IN (1, 3)"}, history.Exact)
}
