package postgres

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// told returns the identities of a source's rows, each once: its items' values between semicolons, as in an array.
func told(p *Plan, hidden [][]string, source int) []string {
	from, head := 0, source
	for p.Result.Sources[head].Joint < 0 {
		head--
	}
	for _, s := range p.Result.Sources[:head] {
		from += s.Columns()
	}
	var out []string
	for _, row := range hidden {
		values := row[from : from+p.Result.Sources[head].Columns()]
		if !p.Result.Sources[source].Array {
			if values[0] != "NULL" {
				out = append(out, strings.ReplaceAll(strings.Join(values, ";"), "=", ""))
			}
			continue
		}
		all := elements(values[0])
		if p.Result.Sources[head].Joint > 1 {
			all = all[min(source-head, len(all)):min(source-head+1, len(all))]
		}
		for _, e := range all {
			out = append(out, strings.Split(e, ElementSeparator)...)
		}
	}
	out = slices.DeleteFunc(out, func(e string) bool { return e == "" || e == "NULL" })
	slices.Sort(out)
	return slices.Compact(out)
}

// elements reads an array of texts that hold no quotes.
func elements(array string) []string {
	if array == "NULL" || array == "={}" || array == "={NULL}" {
		return nil
	}
	array = strings.TrimSuffix(strings.TrimPrefix(array, "={"), "}")
	var out []string
	for _, e := range arrayElement.FindAllString(array, -1) {
		out = append(out, strings.ReplaceAll(strings.Trim(e, `"`), `\\`, `\`))
	}
	return out
}

// arrayElement is one of an array of texts that hold no quotes.
var arrayElement = regexp.MustCompile(`"[^"]*"|[^",]+`)

// TestReadsOfEveryFormTellTheirRows: reads of every form tell the rows that they are made of.
func TestReadsOfEveryFormTellTheirRows(t *testing.T) {
	const all = "true"
	tw := newTwins(t)
	for _, c := range []struct {
		text string
		// read is by table the condition on the rows that were read.
		read map[string]string
		want history.Observation
	}{
		{"SELECT * FROM (SELECT id, name FROM item WHERE stock > 0) d", map[string]string{"item": "stock > 0"},
			history.Exact},
		{"SELECT d.name FROM orders o JOIN (SELECT * FROM item) d ON d.id = o.item_id",
			map[string]string{"orders": "item_id < 9", "item": "id < 3"}, history.Exact},
		{"SELECT * FROM orders o LEFT JOIN (SELECT id AS i, name FROM item) d ON d.i = o.item_id",
			map[string]string{"orders": all, "item": "id < 3"}, history.Exact},
		{"SELECT a.id FROM item a FULL JOIN orders b ON a.id = b.item_id",
			map[string]string{"item": all, "orders": all}, history.Exact},
		{"SELECT x.q FROM (SELECT d.qty AS q, l.* FROM (SELECT * FROM orders) d, loose l) x",
			map[string]string{"orders": all, "loose": all}, history.Exact},
		{"SELECT * FROM (SELECT l.a, d.* FROM loose l, (SELECT qty FROM orders WHERE id = 2) d) x",
			map[string]string{"orders": "id = 2", "loose": all}, history.Exact},
		{"SELECT i.id, o.* FROM item i, LATERAL (SELECT qty FROM orders o WHERE o.item_id = i.id) o",
			map[string]string{"item": "id < 3", "orders": "item_id < 9"}, history.Exact},
		{"WITH c AS (SELECT * FROM item), d AS (SELECT id FROM c WHERE id > 1) SELECT d.id, c.name FROM d JOIN c USING (id)", map[string]string{"item": "id > 1"}, history.Exact},
		{"TABLE loose", map[string]string{"loose": all}, history.Exact},
		{"WITH RECURSIVE t AS (SELECT id FROM item WHERE id = 1 UNION ALL SELECT i.id FROM item i JOIN t ON i.id = t.id + 1) SELECT * FROM t", map[string]string{"item": all}, history.Exact},
		{"WITH RECURSIVE t AS (SELECT k, 1 AS n FROM kv UNION ALL SELECT kv.k, t.n + 1 FROM kv, t WHERE t.n < 2) SELECT count(*) FROM t", map[string]string{"kv": all}, history.Exact},
		{"SELECT count(*) FROM item", map[string]string{"item": all}, history.Exact},
		{"SELECT count(*) FROM kv", map[string]string{"kv": all}, history.Exact},
		{"SELECT count(*) FROM line", map[string]string{"line": all}, history.Exact},
		{"SELECT count(*) FROM part", map[string]string{"part": all}, history.Exact},
		{"SELECT count(*) FROM parent", map[string]string{"parent": all}, history.Exact},
		{"SELECT count(*) FROM strange", map[string]string{"strange": all}, history.Exact},
		{"SELECT sum(qty) FROM orders WHERE item_id = 1", map[string]string{"orders": "item_id = 1"}, history.Exact},
		{"SELECT item_id, sum(qty) FROM orders GROUP BY item_id", map[string]string{"orders": all}, history.Exact},
		{"SELECT item_id, qty, sum(qty) FROM orders GROUP BY CUBE (item_id, qty) ORDER BY 1, 2, 3",
			map[string]string{"orders": all}, history.Exact},
		{"SELECT item_id, sum(qty) FROM orders GROUP BY item_id HAVING item_id = 1",
			map[string]string{"orders": "item_id = 1"}, history.Inexact},
		{"SELECT count(*) FROM orders o LEFT JOIN item i ON i.id = o.item_id",
			map[string]string{"orders": all}, history.Exact},
		{"SELECT count(i.name) FROM orders o LEFT JOIN item i ON i.id = o.item_id",
			map[string]string{"orders": all, "item": "id < 3"}, history.Exact},
		{"SELECT * FROM (SELECT item_id, count(*) AS c FROM orders GROUP BY item_id) x",
			map[string]string{"orders": all}, history.Exact},
		{"SELECT * FROM (SELECT item_id, count(*) AS c FROM orders GROUP BY item_id) x WHERE c > 1",
			map[string]string{"orders": all}, history.Exact},
		{"SELECT * FROM (SELECT item_id, count(*) AS c FROM orders GROUP BY item_id) x WHERE item_id = 1",
			map[string]string{"orders": "item_id = 1"}, history.Exact},
		{"SELECT * FROM (SELECT item_id, count(*) AS c FROM orders GROUP BY 1) AS x(a, b) WHERE a = 1",
			map[string]string{"orders": "item_id = 1"}, history.Exact},
		{"SELECT * FROM (SELECT item_id, count(*) AS c FROM orders GROUP BY 1) AS x(item_id, item) WHERE item > 1",
			map[string]string{"orders": "item_id = 1"}, history.Inexact},
		{"SELECT * FROM (SELECT item_id, count(*) AS c FROM orders GROUP BY item_id) x ORDER BY item_id LIMIT 1",
			map[string]string{"orders": "item_id = 1"}, history.Inexact},
		{"SELECT i.name, x.c FROM item i JOIN (SELECT item_id, count(*) AS c FROM orders GROUP BY item_id) x ON x.item_id = i.id", map[string]string{"item": "id < 3", "orders": "item_id < 9"}, history.Exact},
		{"SELECT i.name, x.c FROM item i JOIN (SELECT item_id AS id, count(*) AS c FROM orders GROUP BY item_id) x USING (id) WHERE i.stock > 5", map[string]string{"item": "id = 1", "orders": "item_id = 1"}, history.Exact},
		{"SELECT i.name, x.c FROM item i JOIN (SELECT item_id AS id, count(*) AS c FROM orders GROUP BY item_id) x USING (id) WHERE c > 1", map[string]string{"item": "id = 1", "orders": "item_id = 1"}, history.Inexact},
		{"SELECT i.name, x.c FROM item i LEFT JOIN (SELECT item_id, count(*) AS c FROM orders GROUP BY item_id) x ON x.item_id = i.id AND x.c > 1", map[string]string{"item": all, "orders": "item_id < 3"}, history.Exact},
		{"SELECT i.id, s.n FROM item i CROSS JOIN (SELECT count(*) AS n FROM orders) s WHERE i.id = 1",
			map[string]string{"item": "id = 1", "orders": all}, history.Exact},
		{"SELECT i.id FROM item i, (SELECT avg(qty) AS n FROM orders WHERE item_id = 1) s WHERE i.stock > s.n",
			map[string]string{"item": "stock > 1.5", "orders": "item_id = 1"}, history.Exact},
		{"SELECT i.id, b.n FROM item i LEFT JOIN LATERAL (SELECT max(o.qty) AS n FROM orders o WHERE o.item_id = i.id) b ON true", map[string]string{"item": all, "orders": "item_id < 9"}, history.Exact},
		{"SELECT i.id, b.n FROM item i, LATERAL (SELECT n FROM (SELECT max(o.qty) AS n FROM orders o WHERE o.item_id = i.id) x WHERE x.n > 2) b", map[string]string{"item": "id = 2", "orders": "item_id = 2"}, history.Inexact},
		{"SELECT avg(c) FROM (SELECT item_id, count(*) AS c FROM orders GROUP BY item_id) x",
			map[string]string{"orders": all}, history.Exact},
		{"SELECT avg(c) FILTER (WHERE c > 1) FROM (SELECT k, count(*) AS c FROM kv GROUP BY k) x",
			map[string]string{"kv": all}, history.Exact},
		{"SELECT i.stock > 5, sum(x.c) FROM item i LEFT JOIN (SELECT item_id, count(*) AS c FROM orders GROUP BY item_id) x ON x.item_id = i.id GROUP BY 1", map[string]string{"item": all, "orders": "item_id < 9"}, history.Exact},
		{"SELECT count(*), max(b) FROM loose, (SELECT count(*) AS n FROM line) s WHERE a < n",
			map[string]string{"loose": "a < 3", "line": all}, history.Exact},
		{"SELECT max(c) FROM (SELECT a, max(c) AS c FROM (SELECT id, a, count(*) AS c FROM part GROUP BY id, a) x GROUP BY a) y", map[string]string{"part": all}, history.Exact},
		{"WITH c AS (SELECT item_id, count(*) AS n FROM orders GROUP BY 1) SELECT i.name, a.n, b.n FROM item i JOIN c a ON a.item_id = i.id JOIN c b ON b.item_id = i.id", map[string]string{"item": "id < 3", "orders": "item_id < 9"}, history.Exact},
		{"SELECT DISTINCT n FROM (SELECT item_id, count(*) AS n FROM orders GROUP BY 1) x",
			map[string]string{"orders": all}, history.Exact},
		{"SELECT d.item_id, name FROM (SELECT DISTINCT item_id FROM orders) d JOIN item ON id = item_id",
			map[string]string{"item": "id < 3", "orders": "item_id < 9"}, history.Exact},
		{"SELECT a FROM loose GROUP BY a UNION SELECT DISTINCT id FROM item ORDER BY 1",
			map[string]string{"loose": all, "item": all}, history.Exact},
		{"SELECT DISTINCT item_id FROM orders", map[string]string{"orders": all}, history.Exact},
		{"SELECT DISTINCT i.name FROM orders o LEFT JOIN item i ON i.id = o.item_id",
			map[string]string{"orders": all, "item": "id < 3"}, history.Exact},
		{"SELECT DISTINCT ON (item_id) qty FROM orders ORDER BY item_id, id",
			map[string]string{"orders": all}, history.Exact},
		{"SELECT id FROM item UNION ALL SELECT a FROM loose", map[string]string{"item": all, "loose": all},
			history.Exact},
		{"SELECT id FROM item UNION SELECT a FROM loose ORDER BY 1", map[string]string{"item": all, "loose": all},
			history.Exact},
		{"SELECT k, 1 FROM kv UNION ALL SELECT k, 1 FROM kv UNION SELECT note, 2 FROM orders WHERE id <> 2 ORDER BY 1, 2", map[string]string{"kv": all, "orders": "id <> 2"}, history.Exact},
		{"SELECT a.id FROM item a LEFT JOIN orders b ON b.item_id = a.id UNION SELECT order_id FROM line ORDER BY 1",
			map[string]string{"item": all, "orders": "item_id < 9", "line": all}, history.Exact},
		{"SELECT id, a FROM part UNION SELECT a, a FROM loose ORDER BY 1, 2 LIMIT 1 OFFSET 0",
			map[string]string{"part": "id = 1", "loose": "a = 1"}, history.Inexact},
		{"SELECT total(qty), item_id FROM orders WHERE item_id = 1 GROUP BY 2",
			map[string]string{"orders": "item_id = 1"}, history.Inexact},
		{"SELECT price_of(item_id) FROM orders WHERE item_id = 1", map[string]string{"orders": "item_id = 1"},
			history.Inexact},
		{"SELECT count(*) FROM (SELECT id FROM item UNION ALL SELECT a FROM loose) u",
			map[string]string{"item": all, "loose": all}, history.Exact},
		{"SELECT u.id FROM (SELECT id, name FROM item UNION ALL SELECT id, note FROM orders) u JOIN kv ON k = u.name",
			map[string]string{"item": "false", "orders": "id = 1", "kv": "k = 'a'"}, history.Exact},
		{"SELECT * FROM items", map[string]string{"item": "stock > 0"}, history.Exact},
		{"SELECT id, name FROM sold WHERE qty > 1", map[string]string{"orders": "qty > 1", "item": "id < 3"},
			history.Exact},
		{"SELECT o.note, v.name FROM orders o LEFT JOIN items v ON v.id = o.item_id",
			map[string]string{"orders": all, "item": "id < 3"}, history.Exact},
		{"SELECT s.id, v.name FROM sold s JOIN items v ON v.id = s.item WHERE s.id < 3",
			map[string]string{"orders": "id < 3", "item": "id = 1"}, history.Exact},
		{"SELECT count(*) FROM items", map[string]string{"item": "stock > 0"}, history.Exact},
		{"SELECT item, sum(qty) FROM sold GROUP BY item ORDER BY item",
			map[string]string{"orders": all, "item": "id < 3"}, history.Exact},
		{"SELECT DISTINCT name FROM sold ORDER BY name", map[string]string{"orders": all, "item": "id < 3"},
			history.Exact},
		{"SELECT id FROM items UNION SELECT a FROM loose", map[string]string{"item": "stock > 0", "loose": all},
			history.Exact},
		{"WITH w AS (SELECT * FROM sold) SELECT w.id FROM w WHERE item = 1 LIMIT 9",
			map[string]string{"orders": "item_id = 1", "item": "id = 1"}, history.Exact},
		{"WITH RECURSIVE t AS (SELECT id FROM items WHERE id = 1 UNION ALL SELECT i.id FROM items i JOIN t ON i.id = t.id + 1) SELECT * FROM t", map[string]string{"item": "stock > 0"}, history.Exact},
		{"SELECT i.id, s.n FROM items i, LATERAL (SELECT count(*) AS n FROM sold WHERE item = i.id) s",
			map[string]string{"item": "stock > 0", "orders": "item_id < 3"}, history.Exact},
		{"SELECT o, n FROM lines", map[string]string{"line": all}, history.Inexact},
		{"SELECT d.*, o.qty FROM (SELECT id, name FROM item WHERE id < 3) d JOIN orders o ON o.item_id = d.id",
			map[string]string{"item": "id < 3", "orders": "item_id < 3"}, history.Exact},
		{"WITH w AS (SELECT id, note AS \"No\" FROM orders WHERE id < 3), v AS (SELECT w.*, id + 1 AS next FROM w) SELECT *, 2 AS two FROM v, (SELECT k FROM kv) AS x (y), item i WHERE y = 'a' AND i.id = v.id ORDER BY 1, 2",
			map[string]string{"item": "id < 3", "orders": "id < 3", "kv": "k = 'a'"}, history.Exact},
		{"SELECT * FROM item i, LATERAL (SELECT max(o.qty) AS m, count(*) AS n FROM orders o WHERE o.item_id = i.id) l WHERE l.n > 1",
			map[string]string{"item": "id = 1", "orders": "item_id = 1"}, history.Exact},
		{"SELECT i.id, l.m FROM item i JOIN LATERAL (SELECT max(o.qty) AS m FROM orders o WHERE o.item_id = i.id) l ON l.m > 2",
			map[string]string{"item": "id = 2", "orders": "item_id = 2"}, history.Exact},
		{"SELECT i.id, l.m FROM item i LEFT JOIN LATERAL (SELECT max(o.qty) AS m FROM orders o WHERE o.item_id = i.id) l ON l.m > 2",
			map[string]string{"item": all, "orders": "item_id < 3"}, history.Exact},
		{"SELECT i.id, l.m FROM item i, LATERAL (SELECT max(o.qty) AS m FROM orders o) l WHERE l.m > i.id AND i.id = 1",
			map[string]string{"item": "id = 1", "orders": all}, history.Inexact},
		{"SELECT i.id, l.m FROM item i, LATERAL (SELECT max(o.qty) AS m FROM orders o WHERE o.item_id = i.id UNION ALL SELECT max(a) FROM loose) l WHERE l.m > 3",
			map[string]string{"item": "id = 2", "orders": "item_id = 2", "loose": "false"}, history.Inexact},
		{"SELECT d.*, i.id FROM (SELECT * FROM orders) d, item i WHERE i.id = d.item_id",
			map[string]string{"item": "id < 3"}, history.Inexact},
	} {
		tw.tells(c.text, c.read, c.want)
	}
}

// tells has a statement tell of the rows of tables that satisfy conditions, and of no others.
func (tw *twins) tells(text string, read map[string]string, want history.Observation) {
	tw.t.Helper()
	plans, hidden := tw.both(text)
	p := plans[0]
	if p.Observation != want {
		tw.t.Errorf("%s: %v: %s", text, p.Observation, p.Reason)
	}
	seen := map[string][]string{}
	for i, s := range p.Result.Sources {
		if s.Present {
			continue
		}
		name := strings.TrimPrefix(s.Table, "public.")
		seen[name] = append(seen[name], told(p, hidden[0], i)...)
	}
	for table, condition := range read {
		slices.Sort(seen[table])
		if got, want := slices.Compact(seen[table]), tw.ask("SELECT "+identityOf[table]+" FROM "+table+" WHERE "+
			condition); !slices.Equal(got, want) {
			tw.t.Errorf("%s\ntells %q of %s, not %q", text, got, table, want)
		}
	}
	if len(seen) != len(read) {
		tw.t.Errorf("%s tells of %v", text, seen)
	}
}

// identityOf are the expressions for the identities of the tables' rows.
var identityOf = map[string]string{
	"item": "tableoid || ';' || ctid || ';' || xmin || ';' || id", "orders": "tableoid || ';' || ctid || ';' || xmin || ';' || id",
	"loose":   "tableoid || ';' || ctid || ';' || xmin",
	"kv":      `tableoid || ';' || ctid || ';' || xmin || ';' || CASE WHEN k LIKE 'c%' THEN 'c\,\;\\' ELSE k END`,
	"line":    "tableoid || ';' || ctid || ';' || xmin || ';' || order_id || ';' || no",
	"part":    "tableoid || ';' || ctid || ';' || xmin || ';' || id",
	"parent":  "tableoid || ';' || ctid || ';' || xmin || ';' || id",
	"strange": "tableoid || ';' || ctid || ';' || xmin || ';' || encode(convert_to(id::text, 'UTF8'), 'hex')",
}

func TestAnArrayThatMayLackIdentitiesSaysSo(t *testing.T) {
	tw := newTwins(t)
	tw.rewriter = New(serverSchema(), Options{CollectFor: 1}) // over before it begins
	for _, text := range []string{"SELECT count(*) FROM item",
		"SELECT name, count(*) FROM item JOIN orders USING (id) GROUP BY name ORDER BY 1",
		"SELECT DISTINCT item_id FROM orders ORDER BY 1", "SELECT id FROM item UNION SELECT id FROM item ORDER BY 1"} {
		plans, hidden := tw.both(text)
		for _, row := range hidden[0] {
			if row[0] != "={"+Lacking+"}" {
				t.Errorf("%s: %v in arrays of %v", text, row, plans[0].Result.Sources)
			}
		}
	}
	if plans, hidden := tw.both("SELECT count(*) FROM item WHERE false"); hidden[0][0][0] != "NULL" {
		t.Errorf("%v of no row at all: %v", hidden, plans[0].Result.Sources)
	}
}
