package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// pages are statements that look for the objects of a page, as TypeORM has them, over what these are joined with.
var pages = grammar{
	"read": {`SELECT DISTINCT "d"."i_id" AS "ids_i_id" FROM (<joined>) "d"<asked> ORDER BY "i_id"<desc> LIMIT <int><offset>`, `SELECT DISTINCT "d"."i_id" AS "ids_i_id", "d"."i_stock" FROM (<joined>) "d" ORDER BY "d"."i_stock"<desc>, "i_id" LIMIT <int><offset>`,
		`SELECT DISTINCT d.i_id, d.x_note FROM (<inner>) d ORDER BY d.x_note<desc>, d.i_id LIMIT <int>`, `SELECT DISTINCT i.id, i.name FROM item i LEFT JOIN orders x ON x.item_id = i.id<where> ORDER BY i.id<desc> LIMIT <int><offset>`,
		"SELECT DISTINCT i.id FROM item i JOIN orders x ON x.item_id = i.id JOIN loose y ON y.a = i.id<where> ORDER BY i.id LIMIT <int>", "SELECT DISTINCT i.stock, i.id FROM item i JOIN orders x ON x.item_id >= i.id<where> ORDER BY 1<desc>, 2 LIMIT <int><offset>", "SELECT DISTINCT x.id, i.name FROM orders x LEFT JOIN item i ON i.id = x.item_id<where> ORDER BY x.id<desc> LIMIT <int>"},
	"joined": {`SELECT "i"."id" AS "i_id", "i"."stock" AS "i_stock", "x"."id" AS "x_id", "x"."note" AS "x_note" FROM "item" "i" LEFT JOIN "orders" "x" ON "x"."item_id"="i"."id"<where>`, `SELECT i.id AS i_id, i.stock AS i_stock, x.note AS x_note FROM item i INNER JOIN orders x ON x.item_id = i.id AND x.qty > <int><where>`,
		`SELECT i.id AS i_id, i.stock AS i_stock, x.note AS x_note FROM item i LEFT JOIN orders x ON x.item_id = i.id LEFT JOIN loose y ON y.a = i.id<where>`, `SELECT x.id AS i_id, x.qty AS i_stock, x.note AS x_note FROM orders x LEFT JOIN item i ON i.id = x.item_id<where>`, `SELECT i.id AS i_id, i.stock AS i_stock, i.name AS x_note FROM item i, loose x WHERE x.a = i.id`},
	"inner": {"SELECT i.id AS i_id, x.note AS x_note FROM item i INNER JOIN orders x ON x.item_id = i.id AND x.qty > <int><where>", "SELECT i.id AS i_id, x.note AS x_note FROM item i, orders x, loose y WHERE x.item_id = i.id AND y.a < x.id"},
	"where": {"", "", " WHERE ( i.stock > <int> )", " WHERE i.id < <int> OR i.name = 'ink'", " WHERE x.id > <int> AND i.id <> 2", " WHERE i.id = <int>", " WHERE x.item_id IN (1, 2)"},
	"asked": {"", "", " WHERE d.i_id > <int>", " WHERE d.i_stock < 9"},
	"desc":  {"", " DESC", " ASC"}, "offset": {"", "", " OFFSET <int>"}, "int": {"1", "2", "3", "4", "9", "0"},
}

// TestRowsOfPagesAreThoseThatWereRead holds what random ones tell against what they read: without a row that is not
// told the page stays, and no more rows of a table are told than the server's scans found.
func TestRowsOfPagesAreThoseThatWereRead(t *testing.T) { holdsOfScans(t, pages, "<read>") }

// TestTheLastOfAPageNeedNotBeReadWhole counts the rows that the server reads for a page whose LIMIT is reached: one of
// those that its last object is made of. What is told then lacks them; a page that is not full is told.
func TestTheLastOfAPageNeedNotBeReadWhole(t *testing.T) {
	tw := newTwins(t)
	run(t, tw.original, manyRows+"; SET enable_hashagg = off; SET enable_sort = off; SET enable_mergejoin = off; SET enable_hashjoin = off")
	run(t, tw.original, "DELETE FROM orders; INSERT INTO orders SELECT i, 1 + i / 4, 1, 'o' FROM generate_series(0, 400) i; ANALYZE")
	run(t, tw.proxied, "DELETE FROM orders; INSERT INTO orders VALUES (1, 1, 1, 'a'), (2, 1, 1, 'b'), (3, 2, 1, 'c'), (4, 3, 1, 'd'), (5, 3, 1, 'e')")
	const text = `SELECT DISTINCT "d"."i_id" AS "ids_i_id" FROM (SELECT "i"."id" AS "i_id", "x"."note" AS "x_note" FROM "item" "i" LEFT JOIN "orders" "x" ON "x"."item_id"="i"."id") "d" ORDER BY "i_id" ASC LIMIT `
	if found := tw.scanned(text + "1"); found["orders"] != 1 {
		t.Errorf("of the four orders of the item %d are read", found["orders"])
	}
	for limit, whole := range map[string]bool{"1": false, "2": true, "3": false, "4": true} {
		script := tw.rewriter.Plan(text+limit, tw.session)
		p := script.Statements[0]
		replies, failure := run(t, tw.proxied, string(script.Append(nil)))
		if failure != nil || p.Observation != history.Exact {
			t.Fatalf("%v, %v: %v", failure, p.Observation, p.Reason)
		}
		lacking := false
		for _, row := range replies[0].Rows {
			lacking = lacking || strings.Contains(strings.Join(row, " "), "{*}")
		}
		if lacking == whole {
			t.Errorf("LIMIT %s shows %q", limit, replies[0].Rows)
		}
	}
	const left = "SELECT DISTINCT x.id FROM orders x LEFT JOIN item i ON i.id = x.item_id ORDER BY x.id LIMIT 2"
	if found := tw.scanned(left); found["item"] != 0 {
		t.Errorf("of a table that the server leaves out %d rows are read", found["item"])
	}
	if p := tw.rewriter.Plan(left, tw.session).Statements[0]; p.Observation == history.Exact {
		t.Errorf("%s is exact", left)
	}
}

// distinctLimited are statements with DISTINCT of what no index has, and a LIMIT, under conditions on other columns.
var distinctLimited = grammar{
	"read":  {"SELECT DISTINCT <shown> FROM orders<where> LIMIT <int>", "SELECT DISTINCT <shown> FROM orders<where> ORDER BY 1<desc> LIMIT <int>", "SELECT DISTINCT o.qty FROM orders o WHERE <of o> LIMIT <int>", "SELECT count(*) FROM (SELECT DISTINCT <shown> FROM orders<where> LIMIT <int>) d", "SELECT DISTINCT name FROM item WHERE stock > <int> LIMIT <int>"},
	"shown": {"note", "qty", "note, qty", "qty, note"},
	"where": {"", " WHERE id > <int>", " WHERE item_id = <int>", " WHERE item_id < 3 AND id <> <int>", " WHERE id = <int>", " WHERE note = 'a'", " WHERE id IN (1, 3) OR item_id = 2", " WHERE id = 1 AND id = 2", " WHERE qty >= <int>"},
	"of o":  {"o.id > <int>", "o.note <> 'q'", "o.item_id BETWEEN 1 AND <int>", "o.qty = <int>"},
	"desc":  {"", " DESC"}, "int": {"0", "1", "2", "3", "9"},
}

// TestRowsBehindALimitOfDistinctAreThoseThatWereRead holds what random ones tell against what they read.
func TestRowsBehindALimitOfDistinctAreThoseThatWereRead(t *testing.T) {
	holdsOfScans(t, distinctLimited, "<read>")
}

// TestALimitThatIsAParameterIsTold has a LIMIT of 0, by which nothing is read, and others, of which all is.
func TestALimitThatIsAParameterIsTold(t *testing.T) {
	tw := newTwins(t)
	tw.session.Extended = true
	const text = "SELECT DISTINCT note FROM orders WHERE qty < 3 LIMIT $1"
	script := tw.rewriter.Plan(text, tw.session)
	if p := script.Statements[0]; p.Observation != history.Exact {
		t.Fatalf("%v: %v", p.Observation, p.Reason)
	}
	for _, text := range []string{text, "SELECT DISTINCT note FROM orders WHERE qty <= $1 LIMIT $2"} {
		want, err1 := tw.original.Prepare(t.Context(), "", text, nil)
		got, err2 := tw.proxied.Prepare(t.Context(), "", string(tw.rewriter.Plan(text, tw.session).Append(nil)), nil)
		if err1 != nil || err2 != nil || !slices.Equal(got.ParamOIDs, want.ParamOIDs) {
			t.Errorf("%s: %v, %v; parameters of types %v, not %v", text, err1, err2, got, want)
		}
	}
	for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
		tw.patternShows(text, string(script.Append(nil)), mode, "1", "3")
		tw.patternShows(text, string(script.Append(nil)), mode, "7", "3 3 3")
		run(t, tw.proxied, "SET plan_cache_mode = "+mode)
		r := tw.proxied.ExecParams(t.Context(), string(script.Append(nil)), [][]byte{[]byte("0")}, nil, nil, nil).Read()
		if r.Err != nil || !strings.Contains(string(r.Rows[0][len(r.Rows[0])-1]), Lacking) {
			t.Errorf("%v: %q", r.Err, r.Rows)
		}
	}
}
