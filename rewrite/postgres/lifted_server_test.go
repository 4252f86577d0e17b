package postgres

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

// optionalQueries have queries with subqueries on the optional side of outer joins. No row more of a table makes less
// of them.
var optionalQueries = grammar{
	"read": {"SELECT <shown> FROM loose l LEFT JOIN (<query>) d ON <on><where>", "SELECT <shown> FROM (<query>) d RIGHT JOIN loose l ON <on><where>",
		"SELECT <shown> FROM loose l FULL JOIN (<query>) d ON d.id = l.a<where>", "WITH d AS (<query>) SELECT <shown> FROM loose l LEFT JOIN d ON <on><where>",
		"SELECT <shown>, x.qty FROM loose l LEFT JOIN (orders x JOIN (<query>) d ON x.id = d.id) ON <on><where>",
		"SELECT <shown>, e.id FROM loose l LEFT JOIN (<query>) d ON <on> LEFT JOIN (<query>) e ON e.id = d.stock<where>",
		"SELECT <shown> FROM loose l LEFT JOIN (SELECT * FROM (<query>) e WHERE e.id > <int>) d ON <on><where>",
		"SELECT count(*), max(d.id) FROM loose l LEFT JOIN (<query>) d ON <on><where>", "SELECT <shown> FROM loose l LEFT JOIN (<plain>) d ON <on asked><where>", "WITH d AS (<plain>) SELECT <shown> FROM loose l LEFT JOIN d ON <on asked><where>",
		"SELECT <shown> FROM (<plain>) d FULL JOIN loose l ON d.id = l.a AND EXISTS (SELECT FROM orders y WHERE y.id = l.a)<where>", "INSERT INTO loose (a) SELECT d.id FROM loose l LEFT JOIN (<plain>) d ON <on asked> RETURNING a"},
	"plain":    {"SELECT i.id, name, stock, 5 AS n FROM item i", "SELECT i.id, name, stock, y.qty AS n FROM item i LEFT JOIN orders y ON y.item_id = i.id", "SELECT id, note AS name, qty AS stock, item_id AS n FROM orders WHERE id > <int>", "<query>"},
	"on asked": {"d.id = l.a AND EXISTS (SELECT FROM orders y WHERE y.item_id = l.a)", "d.id = l.a AND d.stock > (SELECT min(z.a) FROM loose z)", "d.id >= l.a AND (d.stock = <int> OR d.id IN (SELECT y.item_id FROM orders y WHERE y.id > l.a))", "l.a >= (SELECT min(y.id) FROM orders y WHERE y.item_id = d.id)"},
	"shown":    {"l.b, d.id", "d.name, d.stock", "*", "l.*, d.*", "d.id, d.n", "1"},
	"query": {"SELECT <list> FROM item i WHERE <asked>", "SELECT <list> FROM item i WHERE <asked> AND <asked>", "SELECT <list> FROM item i WHERE i.id > <int> AND <asked>", "SELECT <list>, y.qty FROM item i JOIN orders y ON y.item_id = i.stock WHERE <asked>",
		"SELECT <list> FROM item i LEFT JOIN orders y ON y.item_id = i.id WHERE <asked>", "SELECT <list> FROM item i WHERE <asked> ORDER BY stock", "SELECT <list> FROM (SELECT id, name, stock FROM item) i WHERE <asked>"},
	"list":  {"i.id, name, stock", "i.id, name, stock, (SELECT count(*) FROM orders o WHERE o.item_id = i.id) AS n", "i.id, name, stock, (SELECT count(*) FROM orders o) AS n", "stock, i.id AS n, name, i.id"},
	"on":    {"d.id = l.a", "d.id = l.a AND l.b > 'a'", "d.id = l.a AND d.stock > <int>", "d.id >= l.a", "true"},
	"where": {"", "", " WHERE l.a < 3", " WHERE d.id IS NULL OR d.stock > 0", " ORDER BY 1, 2", " WHERE l.a > <int> ORDER BY l.a, d.id LIMIT 2"},
	"int":   {"0", "1", "2", "3"},
	"asked": {"EXISTS (SELECT FROM <inner>)", "EXISTS (SELECT FROM <inner>)", "i.id IN (SELECT y.id FROM <inner>)", "id IN (SELECT item_id FROM orders)", "(i.id = <int> OR EXISTS (SELECT FROM <inner>))", "stock > (SELECT min(y.id) FROM <inner>)",
		"CASE WHEN stock > <int> THEN EXISTS (SELECT FROM <inner>) ELSE i.id < 2 END", "(EXISTS (SELECT FROM <inner>) OR id IN (SELECT a FROM loose))"},
	"inner": {"orders y WHERE y.item_id = i.id", "orders y WHERE y.item_id = stock AND qty > <int>", "orders y", "part y WHERE y.id > i.id", "orders y JOIN loose z ON z.a = y.id WHERE y.item_id = i.id",
		"orders y WHERE y.item_id = i.id AND EXISTS (SELECT FROM loose z WHERE z.a = i.stock AND z.b <> name)", "orders y WHERE y.qty > (SELECT min(z.a) FROM loose z WHERE z.a >= i.id)", "item y WHERE y.id = i.id", "item i, orders y WHERE y.id = i.id", "(SELECT o.id FROM orders o WHERE o.qty > 1) y WHERE y.id = i.id"},
}

// TestOptionalQueriesTellWhatTheirSubqueriesRead deletes each row that an exact statement does not tell: what it gave,
// it still gives.
func TestOptionalQueriesTellWhatTheirSubqueriesRead(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	holdsOfNoUse(t, optionalQueries)
}

// TestOptionalQueriesKeepTheirPlans compares plans of random statements, over tables of up to 5,000 rows, with those of
// the client's text.
func TestOptionalQueriesKeepTheirPlans(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	tw := newTwins(t)
	run(t, tw.proxied, manyRows)
	exact := 0
	rapid.Check(t, func(r *rapid.T) {
		text := optionalQueries.draw(r, "<read>")
		script := tw.rewriter.Plan(text, tw.session)
		if script.Statements[0].Observation != history.Exact {
			return
		}
		if _, failure := run(t, tw.proxied, "EXPLAIN "+text); failure != nil {
			return
		}
		exact++
		want, got := planOf(t, tw, text), planOf(t, tw, string(script.Append(nil)))
		if got != want {
			r.Fatalf("%s\nas %s\nis planned as\n%snot as\n%s", text, script.Append(nil), got, want)
		}
	})
	t.Logf("%d are exact", exact)
}
