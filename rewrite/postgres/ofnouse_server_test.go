package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

// besideGroups are queries whose conditions leave out what groups, windows and UNIONs make, and have subqueries. No row
// more of a table makes less of them but by a condition of the statement's own.
var besideGroups = grammar{
	"read": {"SELECT f.n, f.x FROM (<computed>) f WHERE f.n > <int>", "SELECT * FROM (<computed>) f WHERE f.x < 3 ORDER BY f.x", "SELECT f.*, a.b FROM (<computed>) f JOIN loose a ON a.a = f.x WHERE f.n < 3", "WITH f AS (<computed>) SELECT f.n FROM f WHERE f.x > <int>",
		"<with>SELECT <shown> FROM (<flat>) f WHERE <asked>", "<with>SELECT <shown> FROM (<flat>) f WHERE <asked> AND <asked>",
		"WITH q AS (<ids>), f AS (<flat>) SELECT <shown> FROM f WHERE <asked> AND <asked>", "<with>SELECT <shown> FROM (<flat of q>) f WHERE <asked>",
		"<with>SELECT a.name, <shown> FROM item a JOIN (<flat>) f ON f.x = a.id WHERE <asked>", "<with>SELECT a.name, <shown> FROM item a LEFT JOIN (<flat>) f ON f.x = a.id AND <asked> WHERE <asked>", "<with>SELECT a.name, <shown> FROM item a, (<flat>) f WHERE f.x = a.id AND <asked> AND <asked>",
		"<with>SELECT a.name, f.x FROM item a JOIN (<flat>) f ON f.n > a.id", "SELECT a.name, f.n FROM item a LEFT JOIN (SELECT item_id AS x, <of each> AS n FROM orders o GROUP BY 1) f ON f.x = a.id AND f.n > 0", "SELECT sum(f.n) FROM (SELECT item_id AS x, <of each> AS n FROM orders o WHERE <of o> GROUP BY 1) f WHERE f.x < 3 AND f.n < 7", "<with>SELECT a.name, <shown> FROM item a, (<flat>) f WHERE f.n + 0 = a.stock AND a.id < 3 AND f.n > 1", "WITH f AS (SELECT item_id AS x, count(*) AS n FROM orders GROUP BY 1) SELECT a.stock, count(*) FROM item a JOIN f ON f.n >= a.stock GROUP BY a.stock", "SELECT a.name, f.x FROM orders b JOIN item a ON a.id = b.item_id JOIN (SELECT item_id AS x, count(*) AS n FROM orders o WHERE <of o> GROUP BY 1) f ON f.n <= a.id AND b.qty > <int>",
		"<with>SELECT a.name FROM item a JOIN (<flat>) f ON f.x = a.id WHERE <asked> AND <asked> GROUP BY a.name", "<with>SELECT f.n, a.b FROM (<flat>) f LEFT JOIN loose a ON a.a = f.x WHERE <asked> GROUP BY f.n, a.b",
		"SELECT a.*, <shown> FROM orders a, LATERAL (SELECT count(*) AS x, max(l.b) AS n FROM loose l WHERE <of l>) f WHERE f.x > <int> AND f.n > 'x'"},
	"computed": {"SELECT id AS x, <value> AS n FROM item", "SELECT id AS x, <value> AS n FROM item WHERE <of item>", "SELECT id AS x, stock AS z, <value> AS n FROM item ORDER BY stock"},
	"value": {"(SELECT count(*) FROM orders o WHERE o.item_id = item.id)", "(SELECT max(o.id) FROM orders o WHERE o.item_id < item.id AND o.qty > <int>)", "COALESCE((SELECT min(l.a) FROM loose l WHERE l.a >= item.id), 7)",
		"(SELECT max(l.a) FROM loose l)", "EXISTS (SELECT FROM orders o WHERE o.item_id = item.id AND o.qty > <int>)::int"},
	"with":  {"WITH q AS (<ids>) "},
	"ids":   {"SELECT id FROM item", "SELECT (SELECT max(o.id) FROM orders o WHERE o.item_id = i.id) AS id FROM item i", "SELECT id FROM item WHERE <of item>", "SELECT item_id AS id FROM orders WHERE <of orders>", "SELECT item_id AS id FROM orders"},
	"shown": {"f.x", "f.x, f.n", "f.x, (SELECT max(y.id) FROM <inner>)"},
	"flat": {"SELECT item_id AS x, count(*) AS n FROM orders WHERE <of orders> GROUP BY 1<having>", "SELECT id AS x, max(stock) AS n FROM item WHERE <of item> GROUP BY id", "SELECT id AS x, row_number() OVER (PARTITION BY stock ORDER BY id) AS n FROM item WHERE <of item>", "SELECT id AS x, count(*) OVER () AS n FROM item WHERE <of item>", "SELECT id AS x, stock AS n FROM item WHERE <of item> UNION SELECT item_id, qty FROM orders WHERE <of orders>", "SELECT DISTINCT item_id AS x, qty AS n FROM orders WHERE <of orders>", "<flat of q>", "<flat of q>", "SELECT item_id AS x, (SELECT max(l.a) FROM loose l) AS n FROM orders GROUP BY 1",
		"SELECT id AS x, count((SELECT min(o.qty) FROM orders o WHERE o.item_id = i.id)) AS n FROM item i GROUP BY id", "SELECT item_id AS x, <of each> AS n FROM orders o WHERE <of o> GROUP BY 1<having>", "SELECT item_id AS x, count(*) AS m, <of each> AS n FROM orders o GROUP BY item_id", "SELECT item_id AS x, count(*) AS n FROM orders GROUP BY 1 HAVING count(*) > (SELECT count(*) FROM kv WHERE k = 'a')",
		"SELECT id AS x, rank() OVER (ORDER BY (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id)) AS n FROM item i", "SELECT (SELECT max(o.qty) FROM orders o WHERE o.item_id = item.id) AS x, 1 AS n FROM item UNION SELECT a, 1 FROM loose",
		"SELECT (SELECT min(l.a) FROM loose l WHERE l.a = o.id) AS x, count(*) AS n FROM orders o GROUP BY (SELECT min(l.a) FROM loose l WHERE l.a = o.id)"},
	"of each": {"count((SELECT min(l.a) FROM loose l WHERE l.a = o.id))", "sum(CASE WHEN EXISTS (SELECT FROM loose l WHERE l.a = o.id AND l.b <> 'q') THEN 1 WHEN o.qty = 1 THEN (SELECT count(*) FROM item i WHERE i.id = o.item_id) ELSE 0 END)", "count(DISTINCT (SELECT max(i.stock) FROM item i WHERE i.id <= o.item_id))",
		"max(COALESCE((SELECT i.stock FROM item i WHERE i.id = o.item_id), (SELECT min(l.a) FROM loose l), 3))", "count((SELECT max(l.a) FROM loose l WHERE l.b = 'x'))", "count((SELECT max(l.a) FROM loose l WHERE l.a = o.id)) FILTER (WHERE o.qty > 1)"},
	"flat of q": {"SELECT q.id AS x, count(*) AS n FROM q JOIN loose ON a = q.id GROUP BY 1", "SELECT q.id AS x, count(*) OVER (PARTITION BY q.id) AS n FROM q", "SELECT q.id AS x, 1 AS n FROM q UNION SELECT a, 2 FROM loose"},
	"of o":      {"true", "o.id IN (SELECT l.a FROM loose l)"},
	"having":    {"", " HAVING count(*) > 1"},
	"of orders": {"true", "id IN (SELECT l.a FROM loose l)", "EXISTS (SELECT FROM item i WHERE i.id = item_id AND i.stock > <int>)", "qty = 5 OR item_id IN (SELECT l.a FROM loose l WHERE l.b = 'x')", "qty > (SELECT min(l.a) FROM loose l WHERE l.b <> 'q')"},
	"of item":   {"true", "id IN (SELECT o.item_id FROM orders o)", "EXISTS (SELECT FROM orders o WHERE o.item_id = item.id AND o.qty > <int>)", "stock = 0 OR EXISTS (SELECT FROM loose WHERE a = id)"},
	"of l":      {"true", "l.a > 1", "l.a = a.item_id", "l.a IN (SELECT i.id FROM item i)", "EXISTS (SELECT FROM kv WHERE k < l.b)"},
	"int":       {"0", "1", "2", "3"},
	"asked": {"f.n > <int>", "f.x < 3", "f.x = <int>", "f.n < <int>", "EXISTS (SELECT FROM <inner>)", "NOT EXISTS (SELECT FROM <inner>)", "f.n >= (SELECT min(y.id) FROM <inner>)", "f.x NOT IN (SELECT y.id FROM <inner>)",
		"(f.n > 1 OR f.x IN (SELECT y.id FROM <inner>))", "f.x IN (SELECT y.id FROM <inner>)", "CASE WHEN f.n > 1 THEN EXISTS (SELECT FROM <inner>) ELSE f.x < 2 END"},
	"inner": {"item y", "item y WHERE y.id = f.x", "orders y WHERE y.qty > f.n", "orders y WHERE y.item_id = f.x AND y.qty > <int>", "part y WHERE y.id > f.n", "orders y WHERE y.note = 'q'"},
}

// TestARowThatIsNotToldIsOfNoUse deletes each row that an exact statement does not tell: what the statement gave, it
// still gives.
func TestARowThatIsNotToldIsOfNoUse(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	holdsOfNoUse(t, besideGroups)
}

// holdsOfNoUse does so for statements of a grammar.
func holdsOfNoUse(t *testing.T, of grammar) {
	t.Helper()
	tw := newTwins(t)
	exact := 0
	rapid.Check(t, func(r *rapid.T) {
		text := of.draw(r, "<read>")
		for _, conn := range []*pgconn.PgConn{tw.original, tw.proxied} { // it may write, too
			run(t, conn, "BEGIN")
			defer run(t, conn, "ROLLBACK")
		}
		run(t, tw.proxied, "SAVEPOINT unwritten")
		run(t, tw.original, "SAVEPOINT unwritten")
		p, hidden, _, ok := tw.exactly(r, text)
		if !ok {
			return
		}
		exact++
		if row := tw.ofUse(text, p, hidden); row != "" {
			r.Fatalf("%s\ndoes not tell %s", text, row)
		}
	})
	if exact == 0 {
		t.Error("no statement is exact")
	}
	t.Logf("%d are exact", exact)
}

// exactly runs a statement as the client has it and as isotap does, which have to look the same. It returns what is
// told and how many rows the client gets, and is not ok where that may not be all. Both connections have a savepoint,
// "unwritten", and go back to it.
func (tw *twins) exactly(r *rapid.T, text string) (p *Plan, hidden [][]string, rows int, ok bool) {
	again := func() {
		run(tw.t, tw.original, "ROLLBACK TO unwritten")
		run(tw.t, tw.proxied, "ROLLBACK TO unwritten")
	}
	if d := tw.difference(text); d != "" {
		r.Fatalf("%.2000s", d)
	}
	again()
	script := tw.rewriter.Plan(text, tw.session)
	p = script.Statements[0]
	replies, failure := run(tw.t, tw.proxied, string(script.Append(nil)))
	if p.Observation != history.Exact || failure != nil {
		return nil, nil, 0, false
	}
	hidden = trim(&replies[0], p)
	again()
	return p, hidden, len(replies[0].Rows), !lacks(p, hidden)
}

// lacks reports whether the only array of a subquery did not come, or lacks identities.
func lacks(p *Plan, hidden [][]string) bool {
	for i, s := range p.Result.Sources {
		if !s.Present && slices.Contains(told(p, hidden, i), Lacking) {
			return true
		}
		if s.Whole && !slices.ContainsFunc(hidden, func(row []string) bool { return valueOf(p, row, i) != "NULL" }) {
			return true
		}
	}
	return false
}

// valueOf is what a row has for a source.
func valueOf(p *Plan, row []string, source int) string {
	from, head := 0, source
	for p.Result.Sources[head].Joint < 0 {
		head--
	}
	for _, s := range p.Result.Sources[:head] {
		from += s.Columns()
	}
	if p.Result.Sources[head].Joint < 2 || row[from] == "NULL" {
		return row[from]
	}
	return elements(row[from])[source-head]
}

// ofUse returns a row that was not told, without which the statement gives less; empty where there is none. Of the
// table that is written rows are told as they are afterwards.
func (tw *twins) ofUse(text string, p *Plan, hidden [][]string, written ...string) string {
	seen := map[string]bool{}
	for i, s := range p.Result.Sources {
		if !s.Present {
			for _, e := range told(p, hidden, i) {
				seen[strings.TrimPrefix(s.Table, "public.")+" "+e] = true
			}
		}
	}
	ask := func() []string {
		defer run(tw.t, tw.proxied, "ROLLBACK TO unwritten")
		return tw.ask(text)
	}
	want := ask()
	for _, table := range []string{"item", "orders", "loose", "part", "kv"} {
		for _, row := range tw.ask("SELECT " + identityOf[table] + " FROM " + table) {
			if seen[table+" "+row] || slices.Contains(written, table) {
				continue
			}
			place := strings.Split(row, ";")
			run(tw.t, tw.proxied, "DELETE FROM "+table+" WHERE ctid = '"+place[1]+"' AND tableoid = "+place[0])
			got := ask()
			if !contains(got, want) {
				return table + " " + row
			}
		}
	}
	return ""
}

// contains reports whether a sorted list has all that another one has, as often.
func contains(all, some []string) bool {
	for _, row := range some {
		i, found := slices.BinarySearch(all, row)
		if !found {
			return false
		}
		all = slices.Delete(slices.Clone(all), i, i+1)
	}
	return true
}
