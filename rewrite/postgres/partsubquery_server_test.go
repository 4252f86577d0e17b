package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// tellsReads runs a statement that writes, and takes it back. It holds what the statement tells of the rows that it
// reads against conditions on these, by table.
func (tw *twins) tellsReads(text string, read map[string]string, want history.Observation) {
	tw.t.Helper()
	rows := make(map[string][]string)
	for table, condition := range read {
		rows[table] = tw.ask("SELECT " + identityOf[table] + " FROM " + table + " WHERE " + condition)
	}
	for _, c := range []string{"BEGIN", "ROLLBACK"} {
		run(tw.t, tw.original, c)
		run(tw.t, tw.proxied, c)
		if c == "ROLLBACK" {
			return
		}
		tw.tellsWritten(text, rows, want)
	}
}

// tellsWritten is as tellsReads, with the identities of the rows.
func (tw *twins) tellsWritten(text string, read map[string][]string, want history.Observation) {
	tw.t.Helper()
	plans, hidden := tw.both(text)
	if len(hidden) == 0 {
		tw.t.Errorf("%s fails", text)
		return
	}
	p := plans[0]
	if p.Observation != want {
		tw.t.Errorf("%s: %v: %s", text, p.Observation, p.Reason)
	}
	seen := map[string][]string{}
	for i, s := range p.Result.Sources {
		if s.Present || slices.ContainsFunc(s.Physical.Items, func(item Item) bool { return item == ItemLSN || item == ItemNewTID }) ||
			i == 0 && p.Kind == history.Delete {
			continue
		}
		name := strings.TrimPrefix(s.Table, "public.")
		seen[name] = append(seen[name], told(p, hidden[0], i)...)
	}
	for table, want := range read {
		slices.Sort(seen[table])
		if got := slices.Compact(seen[table]); !slices.Equal(got, want) {
			tw.t.Errorf("%s\ntells %q of %s, not %q", text, got, table, want)
		}
	}
	if len(seen) != len(read) {
		tw.t.Errorf("%s tells of %v", text, seen)
	}
}

// TestSubqueriesOfPartsTellTheirRows has them in parts of a WITH clause that write.
func TestSubqueriesOfPartsTellTheirRows(t *testing.T) {
	tw := newTwins(t)
	type rows = map[string]string
	const all, none = "true", "false"
	for _, c := range []struct {
		text string
		read rows
	}{
		{"WITH d AS (DELETE FROM loose WHERE a IN (SELECT item_id FROM orders WHERE qty > 1) RETURNING a) SELECT a FROM d ORDER BY 1",
			rows{"orders": "qty > 1"}},
		{"WITH q AS (SELECT id FROM item WHERE id < 3), d AS (DELETE FROM loose WHERE a IN (SELECT id FROM q)) SELECT 1",
			rows{"item": "id < 3"}},
		{"WITH u AS (UPDATE item SET stock = stock + 1 WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id) RETURNING *) SELECT id, stock FROM u ORDER BY 1",
			rows{"orders": "item_id < 3"}},
		{"WITH u AS (UPDATE item SET stock = (SELECT count(*) FROM orders o WHERE o.item_id = item.id) WHERE id = 1) SELECT 7",
			rows{"orders": "item_id = 1"}},
		{"WITH u AS (UPDATE item SET stock = 3 WHERE EXISTS (SELECT FROM orders o WHERE o.qty < item.stock AND o.item_id = item.id)) SELECT 7",
			rows{"orders": "id < 3"}},
		{"WITH u AS (UPDATE item SET stock = 3 WHERE price > (SELECT min(a) FROM loose)), v AS (INSERT INTO kv VALUES ('q', (SELECT max(note) FROM orders WHERE id < 3))) SELECT count(*) FROM line",
			rows{"orders": "id < 3", "loose": all, "line": all}},
		{"WITH u AS (UPDATE item SET stock = 3 WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = item.id AND o.id IN (SELECT a FROM loose))) SELECT 7",
			rows{"orders": "id < 3", "loose": all}},
		{"WITH i AS (INSERT INTO kv SELECT note, id FROM orders WHERE note > 'b' AND note > 'c' RETURNING k) SELECT k FROM i", rows{"orders": "note > 'c'"}},
		{"WITH i AS (INSERT INTO loose SELECT o.id, i.name FROM orders o JOIN item i ON i.id = o.item_id WHERE o.id < 3 RETURNING a) SELECT a FROM i ORDER BY 1",
			rows{"orders": "id < 3", "item": "id = 1"}},
		{"WITH i AS (INSERT INTO loose SELECT id, name FROM item WHERE id > 1 UNION ALL SELECT o.id, k.v FROM orders o JOIN kv k ON k.k = o.note ON CONFLICT DO NOTHING) SELECT 1",
			rows{"item": "id > 1", "orders": "note IN (SELECT k FROM kv)", "kv": "k IN (SELECT note FROM orders)"}},
		{"WITH i AS (INSERT INTO loose SELECT id, name FROM item WHERE id IN (SELECT item_id FROM orders)), d AS (DELETE FROM line WHERE order_id = (SELECT min(id) FROM orders WHERE qty > 1)) SELECT 1",
			rows{"item": "id < 3", "orders": "item_id < 3"}},
		{"WITH i AS (INSERT INTO loose SELECT 5, 'x' WHERE NOT EXISTS (SELECT FROM kv WHERE k = 'zz')) SELECT 1", rows{"kv": none}},
		{"WITH i AS (INSERT INTO kv VALUES ('a', 'n') ON CONFLICT (k) DO UPDATE SET v = (SELECT max(note) FROM orders WHERE qty > 1) WHERE (SELECT count(*) FROM loose) > 0) SELECT 1",
			rows{"orders": "qty > 1", "loose": all}},
		{"WITH q AS (SELECT id FROM item WHERE stock > 5), u AS (UPDATE orders SET qty = 1 WHERE item_id = (SELECT id FROM q) AND id < 3 RETURNING id) DELETE FROM line WHERE order_id = ANY (SELECT id FROM u) AND no < (SELECT max(id) + 5 FROM q)",
			rows{"item": "stock > 5"}},
	} {
		tw.tellsReads(c.text, c.read, history.Exact)
	}
	// Who reads q once more takes more rows of d than the client does, before other parts have theirs.
	const q = "WITH d AS (DELETE FROM loose RETURNING a), q AS (SELECT i.id FROM item i JOIN d ON d.a = i.id)"
	for _, rest := range []string{" SELECT EXISTS (SELECT FROM q)", " UPDATE kv SET v = 'x' WHERE EXISTS (SELECT FROM q)",
		", u AS (UPDATE kv SET v = 'x' WHERE EXISTS (SELECT FROM q)) SELECT 1"} {
		if p := tw.rewriter.Plan(q+rest, tw.session).Statements[0]; p.Observation == history.Exact {
			t.Errorf("%s%s is exact", q, rest)
		}
	}
}

// TestAUnionBesideAPartTellsItsRows has a UNION of a table and of what a part returned, as River cancels a job.
func TestAUnionBesideAPartTellsItsRows(t *testing.T) {
	tw := newTwins(t)
	for text, read := range map[string]map[string]string{
		"WITH u AS (UPDATE orders SET note = 'x' WHERE id < 3 RETURNING orders.*) SELECT * FROM orders WHERE id IN (1, 4) AND id NOT IN (SELECT id FROM u) UNION SELECT * FROM u ORDER BY 1": {"orders": "id = 4"},
		"WITH u AS (UPDATE orders SET note = 'x' WHERE id < 3 RETURNING id, note) SELECT a, b FROM loose UNION SELECT u.id, note FROM u ORDER BY 1, 2":                                       {"loose": "true"},
	} {
		tw.tellsReads(text, read, history.Exact)
	}
}
