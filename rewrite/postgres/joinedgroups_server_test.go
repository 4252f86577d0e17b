package postgres

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"
)

// joinedGroups are queries that join groups, and leave some of them out. None has a subquery in an expression: of these
// a copy tells more than the server comes to. So it does of a LEFT JOIN of which nothing is shown.
var joinedGroups = grammar{
	"plain": {"SELECT <shown> FROM item a JOIN (<groups>) g ON <on><where>", "SELECT <shown> FROM (<groups>) g JOIN item a ON <on><where>",
		"SELECT <shown> FROM item a, (<groups>) g WHERE <on> AND <asked>", "WITH g AS (<groups>) SELECT <shown> FROM g, item a WHERE <on>",
		"SELECT <shown> FROM item a JOIN loose b ON b.a = a.id JOIN (<groups>) g ON <on><where>", "SELECT <both> FROM item a LEFT JOIN (<groups>) g ON <on><where>",
		"SELECT <both> FROM (<groups>) g <side> JOIN item a ON <on><where>", "SELECT <both> FROM item a LEFT JOIN (loose b CROSS JOIN (<groups>) g) ON <on><where>",
		"SELECT <shown> FROM item a JOIN LATERAL (SELECT l.a AS k, count(*) AS n FROM loose l WHERE l.a <= a.id GROUP BY 1) g ON <on><where>",
		"SELECT a.stock, count(*) FROM item a JOIN (<groups>) g ON <on><where> GROUP BY <by>", "SELECT count(*), max(g.n) FROM item a JOIN (<groups>) g ON <on><where>",
		"SELECT a.id, g.n FROM item a JOIN (SELECT 1 AS k, count(*) AS n FROM orders) g ON <on><where>"},
	"read": {"<plain>", "<plain>", "<less>"},
	"write": {"WITH g AS (<unique>) UPDATE item a SET stock = g.n FROM g WHERE g.k = a.id<more> RETURNING a.id, g.n", "UPDATE item a SET stock = g.n FROM (<unique>) g WHERE g.k = a.id AND <asked><more> RETURNING a.id, g.n",
		"WITH g AS (<unique>) UPDATE item a SET name = 'x' FROM g WHERE <on><more> RETURNING a.id", "WITH g AS (<unique>) UPDATE item a SET stock = g.n FROM g, loose b WHERE g.k = a.id AND b.a = a.id<more> RETURNING a.id, g.n",
		"WITH g AS (<unique>) UPDATE item a SET stock = g.n FROM loose b JOIN g ON g.k = b.a AND g.n > <int> WHERE b.a = a.id<more> RETURNING a.id, g.n", "WITH g AS (<unique>) UPDATE item a SET stock = b.id FROM g JOIN items b ON b.id = g.k WHERE b.id = a.id AND <asked> RETURNING a.id, g.n",
		"WITH g AS (<unique>) DELETE FROM item a USING g WHERE <on><more> RETURNING a.id", "DELETE FROM item a USING (<unique>) g WHERE g.k = a.id AND <asked><more> RETURNING a.id, a.stock", "WITH g AS (SELECT count(*) AS n FROM orders) UPDATE item a SET stock = n FROM g WHERE a.id < 3 RETURNING stock, g.*",
		"WITH q AS (SELECT id, item_id FROM orders WHERE qty > <int>), g AS (SELECT item_id AS k, count(*) AS n FROM q GROUP BY 1<having>) UPDATE item AS a SET stock = n FROM g WHERE k = a.id<more> RETURNING a.id, n",
		"WITH g AS (<unique>) UPDATE orders b SET qty = g.n FROM g, item a WHERE g.k = a.id AND b.item_id = a.id<more> RETURNING b.id, a.id"},
	"more": {"", "", " AND <asked>"},
	"less": {"SELECT DISTINCT <shown> FROM item a JOIN (<groups>) g ON <on><where>", "SELECT DISTINCT a.stock FROM loose b JOIN item a ON a.id = b.a, (<groups>) g WHERE <on> AND <asked>",
		"SELECT DISTINCT ON (a.stock) a.stock, g.n FROM item a JOIN (<groups>) g ON <on><where> ORDER BY a.stock, g.n", "WITH g AS (<groups>) SELECT DISTINCT g.n FROM g, item a WHERE <on> AND <asked>",
		"SELECT a.stock, count(*) FROM item a JOIN (<groups>) g ON <on><where> GROUP BY 1 HAVING <of groups>", "SELECT a.stock, max(g.n) FROM item a LEFT JOIN (<groups>) g ON <on><where> GROUP BY 1 HAVING <of groups>",
		"SELECT a.id, g.n FROM items a JOIN (<groups>) g ON g.k = a.id WHERE g.n > <int>", "SELECT DISTINCT a.name FROM items a JOIN loose b ON b.a = a.id JOIN (<groups>) g ON g.k = a.id AND g.n > <int>",
		"SELECT count(*), max(g.n) FROM items a JOIN (<groups>) g ON g.k = a.id AND g.n < 3 HAVING <of groups>", "SELECT g.n, a.name FROM (<groups>) g LEFT JOIN items a ON a.id = g.k WHERE g.n > <int>"},
	"of groups": {"count(*) > 1", "max(g.n) > <int>", "count(*) > 7", "sum(g.k) > 1 AND count(*) < 3"},
	"unique": {"SELECT item_id AS k, count(*) AS n FROM orders GROUP BY 1<having>", "SELECT item_id AS k, count(*) AS n FROM orders WHERE qty > <int> GROUP BY item_id<having>",
		"SELECT o.item_id AS k, max(o.qty) AS n FROM orders o JOIN loose l ON l.a = o.id GROUP BY 1<having>"},
	"groups": {"<unique>", "<unique>", "SELECT item_id AS k, count(*) OVER (PARTITION BY item_id) AS n FROM orders",
		"SELECT id AS k, stock AS n FROM item UNION SELECT item_id, qty FROM orders"},
	"having": {"", "", " HAVING count(*) > 1"},
	"shown":  {"<both>", "a.id", "a.*"},
	"both":   {"a.name, g.n", "g.k, a.stock"},
	"side":   {"LEFT", "RIGHT", "FULL"},
	"by":     {"a.stock", "ROLLUP (a.stock)", "a.stock HAVING count(*) > 1"},
	"on": {"g.n > a.id", "g.n = a.stock", "g.n + 0 = a.id", "g.k = a.id", "g.k = a.id AND g.n > a.stock", "g.n <= a.id AND g.n > 1", "g.n > 1", "g.k < a.id AND g.n < a.stock",
		"a.id = g.k AND (g.n > a.stock OR a.id = 1)", "current_user = 'nobody'", "g.n > a.id AND a.id > 1"},
	"where": {"", "", " WHERE <asked>", " WHERE <asked> AND <asked>"},
	"asked": {"g.n > <int>", "g.n > a.id", "g.n < a.stock", "a.id > 100", "a.id < 3", "a.stock > <int>", "g.k < 3", "g.n >= a.id OR a.stock > 1", "a.id = <int>", "g.n IS NOT NULL"},
	"int":   {"0", "1", "2", "3", "100"},
}

// writtenBy finds the table that a statement writes.
var writtenBy = regexp.MustCompile(`(?:UPDATE|DELETE FROM|INSERT INTO) (\S+)`)

// joinSettings are settings of the planner by which it joins in one way or another.
var joinSettings = []string{"", "enable_hashjoin", "enable_mergejoin", "enable_nestloop", "enable_material", "enable_hashagg", "enable_seqscan"}

// TestRowsOfJoinedGroupsAreThoseThatWereRead holds what random statements tell against what they read. Without a row
// that is not told the result stays, and no more rows of a table are told than the server's scans found.
func TestRowsOfJoinedGroupsAreThoseThatWereRead(t *testing.T) {
	holdsOfScans(t, joinedGroups, "<read>")
}

// TestRowsOfGroupsThatWritesJoinAreThoseThatWereRead does so for statements that write.
func TestRowsOfGroupsThatWritesJoinAreThoseThatWereRead(t *testing.T) {
	holdsOfScans(t, joinedGroups, "<write>")
}

// holdsOfScans does so for statements of a form of a grammar.
func holdsOfScans(t *testing.T, of grammar, form string) {
	t.Helper()
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	tw := newTwins(t)
	exact, empty := 0, 0
	for _, c := range []*pgconn.PgConn{tw.original, tw.proxied} {
		run(t, c, "CREATE INDEX of_item ON orders (item_id); CREATE INDEX of_stock ON item (stock); ANALYZE")
	}
	rapid.Check(t, func(r *rapid.T) {
		text := of.draw(r, form)
		off := rapid.SliceOfNDistinct(rapid.SampledFrom(joinSettings), 0, 3, rapid.ID).Draw(r, "off")
		for _, c := range []*pgconn.PgConn{tw.original, tw.proxied} {
			run(t, c, "BEGIN")
			defer run(t, c, "ROLLBACK")
			for _, name := range off {
				if name != "" {
					run(t, c, "SET LOCAL "+name+" = off")
				}
			}
			run(t, c, "SAVEPOINT unwritten")
		}
		p, hidden, rows, ok := tw.exactly(r, text)
		if !ok {
			return
		}
		exact++
		if rows == 0 {
			empty++
		}
		found := tw.scanned(text)
		for table, rows := range tw.toldOf(p, hidden) {
			if rows > found[table] {
				r.Fatalf("%s, without %v\ntells %d rows of %s, of which it read %d", text, off, rows, table, found[table])
			}
		}
		if strings.Contains(text, " OFFSET ") { // what it passes over is a matter of where the page begins
			return
		}
		if row := tw.ofUse(text, p, hidden, writtenBy.FindStringSubmatch(text + " UPDATE -")[1]); row != "" {
			r.Fatalf("%s, without %v\ndoes not tell %s", text, off, row)
		}
	})
	if exact == 0 {
		t.Error("no statement is exact")
	}
	t.Logf("%d are exact, %d of them without rows", exact, empty)
}

// toldOf returns how many rows of each table were told.
func (tw *twins) toldOf(p *Plan, hidden [][]string) map[string]int {
	seen, of := make(map[string]bool), make(map[string]int)
	for i, s := range p.Result.Sources {
		if s.Present {
			continue
		}
		table := strings.TrimPrefix(s.Table, "public.")
		for _, row := range told(p, hidden, i) {
			if row = table + " " + row; !seen[row] {
				seen[row] = true
				of[table]++
			}
		}
	}
	return of
}

// scanned returns how many rows of each table the scans of a client's statement find.
func (tw *twins) scanned(text string) map[string]int {
	tw.t.Helper()
	found := make(map[string]int)
	var add func(node map[string]any)
	add = func(node map[string]any) {
		if table, ok := node["Relation Name"].(string); ok {
			rows, loops := node["Actual Rows"].(float64), node["Actual Loops"].(float64)
			if strings.HasPrefix(table, "part_") {
				table = "part"
			}
			found[table] += int(rows*loops + loops/2) // up to 17 the mean is rounded
		}
		inner, _ := node["Plans"].([]any)
		for _, n := range inner {
			add(n.(map[string]any))
		}
	}
	add(tw.ran(text))
	return found
}

// ran runs a client's statement and returns its plan, with what that came to.
func (tw *twins) ran(text string) map[string]any {
	tw.t.Helper()
	replies, failure := run(tw.t, tw.original, "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) "+text)
	if failure != nil {
		tw.t.Fatalf("%s: %v", text, failure)
	}
	var plans []struct{ Plan map[string]any }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(replies[0].Rows[0][0], "=")), &plans); err != nil {
		tw.t.Fatal(fmt.Errorf("reading a plan: %w", err))
	}
	return plans[0].Plan
}
