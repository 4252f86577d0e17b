package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// sources returns what each source of a plan but the first tells, by the names of its tables.
func (tw *twins) sources(text string) (history.Observation, string, map[string][]string) {
	tw.t.Helper()
	plans, hidden := tw.both(text)
	if len(hidden) == 0 {
		tw.t.Fatalf("%s fails", text)
	}
	p := plans[0]
	seen := map[string][]string{}
	for i := 1; i < len(p.Result.Sources); i++ {
		name := strings.TrimPrefix(p.Result.Sources[i].Table, "public.")
		seen[name] = append(seen[name], told(p, hidden[0], i)...)
		slices.Sort(seen[name])
		seen[name] = slices.Compact(seen[name])
	}
	return p.Observation, p.Reason.String(), seen
}

func TestInsertSelectTellsTheRowsThatItReads(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	const all = "true"
	for _, c := range []struct {
		text string
		read map[string]string // by table the condition on the rows that were read
		want history.Observation
	}{
		{"INSERT INTO kv SELECT note, id FROM orders WHERE note IS NOT NULL AND id > 1",
			map[string]string{"orders": "id > 1 AND note IS NOT NULL"}, history.Exact},
		{"INSERT INTO kv (k) (SELECT 'n' || o.id FROM orders o JOIN item i ON i.id = o.item_id WHERE i.stock > 5) RETURNING k, v", map[string]string{"orders": "item_id = 1", "item": "id = 1"}, history.Exact},
		{"INSERT INTO kv SELECT 'x' || i.id, i.name FROM item i LEFT JOIN orders o ON o.item_id = i.id WHERE i.id > 1",
			map[string]string{"item": "id > 1", "orders": "item_id = 2"}, history.Exact},
		{"INSERT INTO loose SELECT item_id, count(*) FROM orders GROUP BY item_id HAVING count(*) > 1",
			map[string]string{"orders": all}, history.Exact},
		{"INSERT INTO loose SELECT DISTINCT a, b FROM loose", map[string]string{"loose": "ctid < '(0,4)'"},
			history.Exact},
		{"INSERT INTO loose SELECT id, name FROM item UNION SELECT id, note FROM orders WHERE id < 3",
			map[string]string{"item": all, "orders": "id < 3"}, history.Exact},
		{"INSERT INTO loose SELECT id FROM item EXCEPT SELECT id FROM orders WHERE id < 3",
			map[string]string{"item": all, "orders": "id < 3"}, history.Exact},
		{"INSERT INTO loose SELECT d.a, k FROM (SELECT a, count(*) FROM part GROUP BY a) d, kv",
			map[string]string{"part": all, "kv": all}, history.Exact},
		{"INSERT INTO parent SELECT id + 50, a FROM parent", map[string]string{"parent": "id < 50"}, history.Exact},
		{"INSERT INTO part SELECT id + 200, rank() OVER (ORDER BY id) FROM part", map[string]string{"part": "id < 200"},
			history.Exact},
		{"INSERT INTO kv SELECT k, 'w' || k FROM kv ON CONFLICT (k) DO UPDATE SET v = excluded.v",
			map[string]string{"kv": all}, history.Exact},
		{"INSERT INTO kv SELECT k, v FROM kv WHERE k = 'a' UNION ALL SELECT 'q', 'q' ON CONFLICT DO NOTHING",
			map[string]string{"kv": "k = 'a'"}, history.Exact},
		{"INSERT INTO loose SELECT stock, name FROM item WHERE id IN (SELECT item_id FROM orders)",
			map[string]string{"item": "id < 3"}, history.Inexact},
		{"INSERT INTO loose SELECT price_of(id), name FROM item WHERE id < 3", map[string]string{"item": "id < 3"},
			history.Inexact},
		{"INSERT INTO loose SELECT a, b FROM loose ORDER BY a LIMIT 1", map[string]string{}, history.Inexact},
		{"INSERT INTO loose SELECT a, b FROM loose WHERE price_of(a) IS NULL", map[string]string{}, history.Inexact},
		{"INSERT INTO loose SELECT a, b FROM loose WHERE random() < 2", map[string]string{}, history.Inexact},
	} {
		t.Run(c.text, func(t *testing.T) {
			tw := newTwins(t)
			want := map[string][]string{}
			for table, condition := range c.read {
				want[table] = tw.ask("SELECT " + identityOf[table] + " FROM " + table + " WHERE " + condition)
			}
			observation, reason, seen := tw.sources(c.text)
			if observation != c.want {
				t.Errorf("%v: %s", observation, reason)
			}
			for table, rows := range want {
				if !slices.Equal(seen[table], rows) {
					t.Errorf("tells %q of %s, not %q", seen[table], table, rows)
				}
			}
			if len(seen) != len(want) {
				t.Errorf("tells of %v", seen)
			}
			tw.sameTables()
		})
	}
}

func TestWhatInsertSelectReadsIsShownOnce(t *testing.T) {
	tw := newTwins(t)
	plans, hidden := tw.both("INSERT INTO loose SELECT id, name FROM item")
	last := plans[0].HiddenColumns() - 1
	for i, row := range hidden[0] {
		if shown := row[last] != "NULL"; shown != (i == 0) {
			t.Errorf("row %d: %s", i+1, row[last])
		}
	}
	if len(hidden[0]) != 3 {
		t.Errorf("%d rows", len(hidden[0]))
	}
}
