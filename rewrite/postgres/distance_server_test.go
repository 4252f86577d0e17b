package postgres

import (
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// TestErrorsOfIndexesComeAsTheyWould has indexes give rows by distances that they know roughly: alone they cannot, and
// the client is to meet the error.
func TestErrorsOfIndexesComeAsTheyWould(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	tw := newTwins(t)
	schema := tw.rewriter.schema.(tables)
	dots := table("public.dots", "p point, c circle, id int4", "by_both(p,c)")
	dots.Indexes[0].Orders = []string{"<->"}
	schema["public.dots"] = dots
	schema["public.shown"] = view(table("public.shown", "p point, id int4"), history.Reason{},
		Base{Table: rewrite.TableName{Schema: "public", Table: "dots"}, Key: []string{"id"}})
	tw.both(`CREATE TABLE dots (p point, c circle, id int); INSERT INTO dots SELECT point(g / 10, g % 10), circle(point(g, g), g), g FROM generate_series(1, 100) g;
		CREATE INDEX by_both ON dots USING gist (p, c); CREATE INDEX by_circle ON dots USING gist (p, circle(p, 1)); ANALYZE dots;
		CREATE VIEW shown AS SELECT p, id FROM dots; CREATE FUNCTION far(circle) RETURNS float IMMUTABLE LANGUAGE sql AS 'SELECT $1 <-> point(0, 0)';
		SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off`)
	tw.rewriter = New(schema, Options{})
	failed := 0
	for _, text := range []string{"SELECT p FROM dots ORDER BY circle(p, 1) <-> point(0, 0) LIMIT 1",
		"SELECT p, circle(p, 1) <-> point(0, 0) AS d FROM dots ORDER BY d LIMIT 1",
		"SELECT p, circle(p, 1) <-> point(0, 0) FROM dots ORDER BY 2 LIMIT 1",
		"SELECT c FROM dots ORDER BY c <-> point(0, 0) LIMIT 1",
		"SELECT p FROM dots ORDER BY far(circle(p, 1)) LIMIT 1",
		"SELECT p FROM (SELECT * FROM dots) d ORDER BY circle(p, 1) <-> point(0, 0) LIMIT 1",
		"SELECT d.c FROM (SELECT id, c FROM dots) d ORDER BY d.c <-> point(0, 0) LIMIT 1",
		"SELECT p FROM shown ORDER BY circle(p, 1) <-> point(0, 0) LIMIT 1",
		"SELECT p FROM dots ORDER BY p <-> point(0.1, 0) LIMIT 3",
		"SELECT count(*) FROM (SELECT 1 FROM dots ORDER BY c <-> point(0, 0) LIMIT 5) d"} {
		tw.both(text)
		if _, err := run(t, tw.original, text); err != nil {
			failed++
		}
	}
	if failed < 5 {
		t.Errorf("%d statements have failed on the server: the test looks at too few", failed)
	}
	for _, text := range []string{"SELECT id FROM dots ORDER BY p <-> point(0.1, 0) LIMIT 3",
		"SELECT * FROM dots WHERE id < 3 ORDER BY id"} {
		if plans, _ := tw.both(text); plans[0].Observation != history.Exact {
			t.Errorf("%s is %v (%s)", text, plans[0].Observation, plans[0].Reason)
		}
	}
}
