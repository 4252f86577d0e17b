package postgres

import (
	"testing"

	"github.com/isotap/isotap/history"
)

// TestSubqueriesAroundTheValuesOfWritesTellTheirRows has them behind OR, in CASE and COALESCE, in the conditions of
// joins, in RETURNING and with LIMITs.
func TestSubqueriesAroundTheValuesOfWritesTellTheirRows(t *testing.T) {
	tw := newTwins(t)
	type rows = map[string]string
	const all, none = "true", "false"
	for _, c := range []struct {
		text string
		read rows
	}{
		{"DELETE FROM loose l WHERE l.a = 1 OR EXISTS (SELECT FROM orders o WHERE o.item_id = l.a)", rows{"orders": "item_id = 2"}},
		{"UPDATE item SET price = 1 WHERE id = 1 OR EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)", rows{"orders": "item_id = 2"}},
		{"UPDATE item SET stock = 99 WHERE stock > 7 OR EXISTS (SELECT FROM orders o WHERE o.item_id = item.id)",
			rows{"orders": "item_id = 2"}},
		{"UPDATE item SET stock = CASE WHEN stock > 7 THEN 1 ELSE (SELECT count(*) FROM orders o WHERE o.item_id = item.id) END",
			rows{"orders": "item_id = 2"}},
		{"UPDATE item SET stock = CASE id WHEN 2 THEN (SELECT max(qty) FROM orders) ELSE 7 END", rows{"orders": all}},
		{"UPDATE item SET price = CASE stock WHEN 77 THEN (SELECT max(qty) FROM orders) ELSE 7 END", rows{"orders": none}},
		{"UPDATE item SET price = COALESCE(NULLIF(id, 2), (SELECT max(o.qty) FROM orders o WHERE o.item_id = item.id)) RETURNING price",
			rows{"orders": "item_id = 2"}},
		{"INSERT INTO kv VALUES (CASE WHEN 1 > 2 THEN 'x' ELSE (SELECT max(note) FROM orders) || 'z' END, COALESCE('y', (SELECT b FROM loose)))",
			rows{"orders": all, "loose": none}},
		{"INSERT INTO kv SELECT 'q', 'q' WHERE EXISTS (SELECT FROM orders WHERE qty > 3) OR EXISTS (SELECT FROM loose)",
			rows{"orders": "qty > 3", "loose": none}},
		{"INSERT INTO kv SELECT 'q', 'q' WHERE NOT EXISTS (SELECT 1 WHERE 'x' = 'y' OR (SELECT count(*) FROM orders) > 99)",
			rows{"orders": all}},
		{"UPDATE orders SET qty = 9 FROM item i JOIN loose l ON l.a = i.id AND EXISTS (SELECT FROM kv WHERE k = 'b') WHERE i.id = item_id AND orders.id = 3",
			rows{"item": "id = 2", "loose": "a = 2", "kv": "k = 'b'"}},
		{"DELETE FROM orders USING item i LEFT JOIN loose l ON l.a = i.id AND l.a IN (SELECT p.a FROM part p WHERE p.a < 9 OR i.id = 7) WHERE i.id = item_id AND orders.id = 3",
			rows{"item": "id = 2", "loose": "a = 2", "part": "a = 2"}},
		{"DELETE FROM kv WHERE k = 'a' RETURNING v, (SELECT max(qty) FROM orders WHERE note = kv.k)", rows{"orders": "note = 'a'"}},
		{"INSERT INTO kv VALUES ('zz', 'q') RETURNING (SELECT count(*) FROM loose WHERE b < kv.k)", rows{"loose": all}},
		{"UPDATE item SET stock = 3 WHERE id = 1 RETURNING (SELECT count(*) FROM orders WHERE qty < item.stock)", rows{"orders": "qty < 3"}},
		{"DELETE FROM line WHERE order_id IN (SELECT id FROM orders ORDER BY qty DESC, id LIMIT 1 OFFSET 1) OR no = 1", rows{"orders": "id = 1"}},
		{"INSERT INTO kv VALUES ('a', 'n') ON CONFLICT (k) DO UPDATE SET v = CASE WHEN kv.k = 'a' THEN (SELECT max(note) FROM orders) ELSE 'x' END WHERE kv.k = 'nope' OR (SELECT count(*) FROM loose) > 0",
			rows{"orders": all, "loose": all}},
		{"INSERT INTO kv VALUES ((SELECT min(k) FROM kv WHERE k < 'b'), 'n') ON CONFLICT (k) DO UPDATE SET v = (SELECT max(o.note) FROM orders o WHERE o.note > kv.v OR o.qty = 5)",
			rows{"kv": "k < 'b'", "orders": "note IS NOT NULL"}},
		{"INSERT INTO kv VALUES ('a', 'n') ON CONFLICT (k) DO UPDATE SET v = 'o' WHERE kv.v IN (SELECT o.item_id::text FROM orders o)",
			rows{"orders": "true"}},
		{"INSERT INTO kv VALUES ('a', 'n') ON CONFLICT (k) DO UPDATE SET v = 'o' WHERE kv.k = 'a' OR EXISTS (SELECT FROM orders)",
			rows{"orders": none}},
	} {
		tw.tellsReads(c.text, c.read, history.Exact)
	}
}
