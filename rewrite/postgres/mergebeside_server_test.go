package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

// TestSubqueriesOfMergeTellTheirRows has them in the conditions and values of its WHEN clauses, and in RETURNING.
func TestSubqueriesOfMergeTellTheirRows(t *testing.T) {
	tw := newTwins(t)
	if tw.session.Version < 18 {
		t.Skip("it tells the old row from 18 on")
	}
	type rows = map[string]string
	const all = "true"
	for _, c := range []struct {
		text string
		read rows
	}{
		{"MERGE INTO kv USING (SELECT a, b FROM loose WHERE a = 2 OR b > 'y') l ON k = b WHEN NOT MATCHED AND a <= (SELECT max(qty) FROM orders WHERE note = 'a') THEN INSERT VALUES (b || a, NULL)",
			rows{"loose": "a = 2", "orders": "note = 'a'"}},
		{"MERGE INTO item i USING orders o ON o.item_id = i.id AND o.id <> 2 WHEN MATCHED AND EXISTS (SELECT FROM loose l WHERE l.a = i.id AND l.b = 'y') THEN UPDATE SET stock = 7",
			rows{"orders": "id = 3", "loose": "b = 'y'"}},
		{"MERGE INTO item i USING orders o ON o.item_id = i.id AND o.id <> 2 WHEN MATCHED AND i.stock > (SELECT min(p.a) FROM part p WHERE p.id < i.stock) THEN UPDATE SET stock = 0",
			rows{"orders": "id IN (1, 3)", "part": "id < 10"}},
		{"MERGE INTO item i USING orders o ON o.item_id = i.id AND o.id <> 2 WHEN MATCHED AND EXISTS (SELECT FROM loose l WHERE l.a = o.id AND l.b = 'x') THEN DELETE WHEN MATCHED THEN UPDATE SET stock = (SELECT count(*) FROM part p WHERE p.id = i.id)",
			rows{"orders": "id IN (1, 3)", "loose": "b = 'x'", "part": "id = 2"}},
		{"MERGE INTO item i USING (VALUES (1), (77)) s(x) ON s.x = i.id WHEN MATCHED THEN UPDATE SET name = (SELECT max(k) FROM kv WHERE k < 'b') WHEN NOT MATCHED THEN INSERT (id, stock) VALUES (s.x, (SELECT max(o.qty) FROM orders o WHERE o.item_id < s.x))",
			rows{"kv": "k < 'b'", "orders": all}},
		{"MERGE INTO item i USING (SELECT item_id, qty FROM orders WHERE id <> 2) o ON o.item_id = i.id WHEN MATCHED AND o.qty > (SELECT count(*) FROM loose WHERE b = 'x') THEN UPDATE SET stock = 0",
			rows{"orders": "id = 3", "loose": "b = 'x'"}},
		{"MERGE INTO item i USING (VALUES (1)) s(x) ON s.x = i.id WHEN MATCHED THEN UPDATE SET stock = 0 RETURNING (SELECT max(o.qty) FROM orders o WHERE o.item_id = i.id), name",
			rows{"orders": "item_id = 1"}},
		{"MERGE INTO item i USING (VALUES (1)) s(x) ON s.x = i.id WHEN MATCHED THEN UPDATE SET (name, stock) = (SELECT o.note, i.stock + 1 FROM orders o WHERE o.id = i.id)",
			rows{"orders": "id = 1"}},
		{"MERGE INTO item i USING (VALUES (1)) s(x) ON s.x = i.id WHEN NOT MATCHED BY SOURCE AND i.id > (SELECT count(*) FROM loose WHERE b = 'x') THEN DELETE WHEN MATCHED THEN DO NOTHING",
			rows{"loose": "b = 'x'"}},
		{"MERGE INTO item i USING orders o ON o.item_id = i.id AND o.qty > (SELECT count(*) FROM loose WHERE b = 'x') AND o.id <> 2 WHEN MATCHED THEN UPDATE SET stock = 0 WHEN NOT MATCHED THEN DO NOTHING",
			rows{"orders": "id = 3", "loose": "b = 'x'"}},
		{"MERGE INTO item i USING orders o ON o.item_id = i.id AND o.id <> 2 AND i.id IN (SELECT l.a FROM loose l WHERE l.b >= 'y') WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, stock) VALUES (o.id + 100, 1)",
			rows{"orders": "id <> 99", "loose": "a = 2"}},
		// A row of the source, or none, tells which of two clauses wrote a row that do the same.
		{"MERGE INTO item i USING loose l ON l.a = i.id AND l.b = 'y' WHEN MATCHED AND EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.id = 3) THEN UPDATE SET stock = 7 WHEN NOT MATCHED BY SOURCE THEN UPDATE SET stock = 1",
			rows{"orders": "id = 3", "loose": "b = 'y'"}},
		{"MERGE INTO item i USING loose l ON l.a = i.id AND l.a > 77 WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE AND i.id = (SELECT min(o.item_id) FROM orders o WHERE o.id = 3) THEN DELETE",
			rows{"orders": "id = 3", "loose": "false"}},
		// What stands before a subquery is tested of the row as it was.
		{"MERGE INTO item i USING orders o ON o.item_id = i.id AND o.id <> 2 WHEN MATCHED AND (i.stock = 10 OR EXISTS (SELECT FROM loose l WHERE l.a = i.id AND l.b = 'y')) THEN UPDATE SET stock = 7",
			rows{"orders": "id IN (1, 3)", "loose": "b = 'y'"}},
		{"MERGE INTO item i USING orders o ON o.item_id = i.id AND o.id <> 2 AND (i.stock = 10 OR EXISTS (SELECT FROM loose l WHERE l.a = i.id AND l.b = 'y')) WHEN MATCHED THEN UPDATE SET stock = 7",
			rows{"orders": "id IN (1, 3)", "loose": "b = 'y'"}},
		{"MERGE INTO item i USING orders o ON o.item_id = i.id AND o.id <> 2 WHEN MATCHED AND (CASE WHEN i.stock = 10 THEN false ELSE EXISTS (SELECT FROM loose l WHERE l.a = i.id) END OR i.id = 1) THEN DELETE",
			rows{"orders": "id IN (1, 3)", "loose": "a = 2"}},
	} {
		tw.tellsReads(c.text, c.read, history.Exact)
	}
	for _, text := range []string{
		"MERGE INTO kv USING loose ON k = b AND a > (SELECT min(qty) FROM orders) WHEN NOT MATCHED THEN INSERT VALUES (b || a, NULL)",
		"MERGE INTO item i USING (VALUES (1)) s(x) ON s.x = i.id WHEN MATCHED AND EXISTS (SELECT FROM loose) THEN UPDATE SET stock = 0 WHEN NOT MATCHED BY SOURCE THEN UPDATE SET stock = 1",
		"MERGE INTO item i USING (VALUES (1)) s(x) ON s.x = i.id WHEN MATCHED AND EXISTS (SELECT FROM loose) THEN DO NOTHING",
		"MERGE INTO item i USING (VALUES (1)) s(x) ON s.x = i.id WHEN MATCHED AND i.id = 9 THEN DELETE WHEN MATCHED AND (i.stock = 10 OR EXISTS (SELECT FROM loose l WHERE l.a = i.id)) THEN UPDATE SET stock = 0",
		"MERGE INTO kv USING loose ON k = b WHEN NOT MATCHED AND (a = 9 OR EXISTS (SELECT FROM orders o WHERE o.id = a)) THEN INSERT VALUES (b || a, NULL)",
		"MERGE INTO item i USING orders ON false WHEN NOT MATCHED THEN INSERT (id, stock) VALUES (90, (SELECT max(a) FROM loose WHERE a = id))",
		"MERGE INTO trig t USING (VALUES (1)) s(x) ON s.x = t.id WHEN MATCHED AND EXISTS (SELECT FROM loose l WHERE l.a = t.a) THEN UPDATE SET a = 0",
	} {
		tw.both("BEGIN")
		if plans, _ := tw.both(text); plans[0].Observation == history.Exact {
			t.Errorf("%s is exact", text)
		}
		tw.both("ROLLBACK")
	}
}

// TestMergeThatWritesNothingDoesNotTellItsSubqueries has conditions that let no row pass: whether a subquery ran that
// hangs on no row nothing shows.
func TestMergeThatWritesNothingDoesNotTellItsSubqueries(t *testing.T) {
	tw := newTwins(t)
	if tw.session.Version < 17 {
		t.Skip("it has no RETURNING")
	}
	for _, source := range []string{"VALUES (1), (2)", "SELECT 1 WHERE false"} {
		plans, hidden := tw.both("MERGE INTO item i USING (" + source + ") s(x) ON s.x = i.id WHEN MATCHED AND (SELECT count(*) FROM orders) > 9 THEN UPDATE SET stock = 1")
		last := plans[0].Result.Sources[len(plans[0].Result.Sources)-1]
		if plans[0].Observation != history.Exact || !last.Whole || last.Table != "public.orders" || len(hidden[0]) > 0 {
			t.Errorf("%s: %+v, %v", source, plans[0].Result.Sources, hidden)
		}
	}
}

// mergesWithSubqueries are MERGEs that have subqueries everywhere.
var mergesWithSubqueries = grammar{
	"write":     {"MERGE INTO item i USING <source> s(x, y) ON s.x = i.id<on> <when><when><returning>", "MERGE INTO kv USING <source> s(x, y) ON s.x = length(k)<on> <when kv><when kv><returning>"},
	"source":    {"(VALUES (1, 2), (77, 3))", "(SELECT id, max(qty) FROM orders GROUP BY id)", "(SELECT id, a FROM part)", "part", "part"},
	"on":        {"", "", " AND y > (SELECT min(o.qty) FROM orders o)", " AND s.x < 3", " AND EXISTS (SELECT FROM orders o WHERE o.item_id = s.x)", " AND s.x IN (SELECT a FROM loose)", " AND (SELECT nope FROM loose) = 1", " AND (i.id <test> OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id))", " AND (s.x = 1 OR i.id IN (SELECT o.item_id FROM orders o))"},
	"test":      {"= 1", "> 1", "IS NOT NULL", "= 'x'", "= i.nope", "+ 1", "< 9", "= 2"},
	"when":      {"WHEN MATCHED<and> THEN UPDATE SET stock = <value> ", "WHEN MATCHED<and> THEN DELETE ", "WHEN MATCHED<and> THEN DO NOTHING ", "WHEN NOT MATCHED<and s> THEN INSERT (id, stock) VALUES (s.x + 100, <value s>) ", "WHEN NOT MATCHED BY SOURCE<and> THEN DELETE ", "WHEN NOT MATCHED BY SOURCE<and> THEN UPDATE SET price = <value> "},
	"when kv":   {"WHEN MATCHED<and s> THEN UPDATE SET v = 'q' || <value s> ", "WHEN NOT MATCHED<and s> THEN INSERT VALUES ('q' || s.x, <value s>) ", "WHEN NOT MATCHED<and s> THEN DO NOTHING "},
	"and":       {"", " AND EXISTS (SELECT FROM orders o WHERE o.item_id = i.id)", " AND i.stock > (SELECT min(o.qty) FROM orders o)", " AND i.id NOT IN (SELECT a FROM loose)", " AND (stock = 3 OR EXISTS (SELECT FROM part p WHERE p.id = i.stock))", " AND (i.id <test> OR i.stock > (SELECT min(o.qty) FROM orders o WHERE o.item_id = i.id))", " AND i.stock <test> AND (i.id = 1 AND EXISTS (SELECT FROM part p WHERE p.id = i.stock) OR EXISTS (SELECT FROM orders o WHERE o.item_id = i.id))", " AND i.id = CASE WHEN i.stock <test> THEN (SELECT max(o.item_id) FROM orders o WHERE o.item_id <= i.id) ELSE i.id END", " AND (CASE WHEN i.stock > 2 THEN EXISTS (SELECT FROM orders o WHERE o.item_id = i.id) ELSE i.id <test> END OR i.id = 99)", " AND 6 / (i.id - 2) > (SELECT count(*) FROM kv)", "<and s>"},
	"and s":     {"", " AND EXISTS (SELECT FROM orders o WHERE o.id = s.x)", " AND y >= (SELECT min(qty) FROM orders)", " AND x IN (SELECT a FROM loose)"},
	"value":     {"5", "(SELECT count(*) FROM orders o WHERE o.item_id = i.id)", "COALESCE((SELECT max(p.a) FROM part p WHERE p.id = i.stock), i.stock)", "<value s>"},
	"value s":   {"5", "(SELECT count(*) FROM orders)", "(SELECT max(o.qty) FROM orders o WHERE o.id >= s.x)", "CASE WHEN s.y > 2 THEN (SELECT min(a) FROM loose) END", "(SELECT a FROM loose)", "(SELECT nope FROM loose)"},
	"returning": {"", "", " RETURNING merge_action(), x", " RETURNING (SELECT max(o.id) FROM orders o WHERE o.id = s.x)", " RETURNING *"},
}

// TestRandomMergesLookTheSame runs random ones on twins, each in a transaction that is rolled back.
func TestRandomMergesLookTheSame(t *testing.T) {
	tw := newTwins(t)
	if tw.session.Version < 17 {
		t.Skip("it has no RETURNING")
	}
	exact := 0
	rapid.Check(t, func(r *rapid.T) {
		text := mergesWithSubqueries.draw(r, "<write>")
		for _, c := range []*pgconn.PgConn{tw.original, tw.proxied} {
			run(t, c, "ROLLBACK; BEGIN")
		}
		for _, one := range []string{text, "SELECT * FROM item", "SELECT * FROM kv"} {
			if d := tw.difference(one); d != "" {
				r.Fatalf("%s\n%.2000s", text, d)
			}
		}
		if tw.rewriter.Plan(text, tw.session).Statements[0].Observation == history.Exact {
			exact++
		}
	})
	run(t, tw.original, "ROLLBACK")
	run(t, tw.proxied, "ROLLBACK")
	if exact == 0 {
		t.Error("none is exact")
	}
	t.Logf("%d are exact", exact)
	tw.sameTables()
}
