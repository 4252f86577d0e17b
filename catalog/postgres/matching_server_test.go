package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// TestMatchingIsWhatAQueryFinds holds predicates against rows as they show themselves, and compares with
// what queries of the table find.
func TestMatchingIsWhatAQueryFinds(t *testing.T) {
	name, db := newDatabase(t, `CREATE TYPE mood AS ENUM ('sad', 'ok');
		CREATE TABLE "Odd t" (id int PRIMARY KEY, "a b" text, n numeric(8,2), f float8, d timestamptz,
			r int4range, j jsonb, ar text[], m mood, by bytea, g int GENERATED ALWAYS AS (id * 2) STORED);
		INSERT INTO "Odd t" VALUES (1, E'it''s "a", (b)\\\\ c', 1.50, 0.1, '2026-11-21 12:00+02',
			'[1,5)', '{"k": [1, null]}', '{a,"b c",NULL}', 'ok', '\x00ff'),
			(2, NULL, NULL, 'NaN', NULL, 'empty', NULL, '{}', NULL, ''), (3, '', 0, '-0', 'infinity', NULL, '[]', NULL, 'sad', NULL)`)
	rows, err := db.Query(`SELECT ("Odd t".*)::text FROM "Odd t" ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var images []string
	for rows.Next() {
		var image string
		if err := rows.Scan(&image); err != nil {
			t.Fatal(err)
		}
		images = append(images, image)
	}
	c, err := NewConn(target(t), name)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	wheres := []string{"", "id = 1", "x.id IN (1, 3) -- and no more", `"a b" IS NULL`, `"a b" = ''`,
		`"a b" LIKE '%"a", (b)\\ c'`, "n = 1.5", "f = 'NaN'", "f = 0", "d < '2026-11-21 10:30Z'", "d = 'infinity'",
		"r && '[4,9)'", "isempty(r)", `j @> '{"k": [1]}'`, "'b c' = ANY (ar)", "cardinality(ar) = 0", "m = 'ok'",
		"m < 'ok'", `by = '\x00ff'`, "g > 3", "x.ID = '3'", `("g" = 4) AND n > 1`, "id = 2 AND f = 'NaN'", "2 = id", "id = 1 AND g = 2", "id > 1 OR /* no */ false"}
	var predicates []history.Predicate
	for _, where := range wheres {
		predicates = append(predicates, history.Predicate{Table: "public.Odd t", Of: `"public"."Odd t"`, As: "x",
			Where: where})
	}
	matching, err := c.Matching(t.Context(), predicates, images)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range predicates {
		query := `SELECT coalesce(array_agg(id - 1 ORDER BY id), '{}')::text FROM "Odd t" AS x`
		if p.Where != "" {
			query += " WHERE (" + p.Where + "\n)"
		}
		var want string
		if err := db.QueryRow(query).Scan(&want); err != nil {
			t.Fatal(err)
		}
		if got := "{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(matching[i]), " ", ","), "[]") + "}"; got != want {
			t.Errorf("%s: rows %s match, the table has %s", p.Where, got, want)
		}
	}
	holdNumbers(t, name, predicates, images, matching)
	if _, err := c.Matching(t.Context(), []history.Predicate{{Of: `"public"."gone"`, As: "x"}}, images); err == nil {
		t.Error("rows of a table that there is not match")
	}
	if got, err := c.Matching(t.Context(), predicates[1:2], images); err != nil || !slices.Equal(got[0], []int{0}) {
		t.Errorf("after an error: %v, %v", got, err)
	}
}

// holdNumbers holds what is known of predicates and rows without the server against what the server said.
func holdNumbers(t *testing.T, database string, predicates []history.Predicate, images []string, matching [][]int) {
	t.Helper()
	d := NewDatabases(target(t))
	defer d.Close()
	if _, err := d.Open(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	decided := 0
	for i, p := range predicates {
		e, ok := d.Equality(database, p)
		if !ok {
			continue
		}
		for j, image := range images {
			n, null, known := d.Number(image, e.Column)
			if !known {
				t.Errorf("%s: the number of %s is not known", p.Where, image)
			}
			matches, same := slices.Contains(matching[i], j), !null && n == e.Value
			if matches && !same || same && e.Alone && !matches {
				t.Errorf("%s: the server says %v of %s, which holds %d (null %v)", p.Where, matches, image, n, null)
			}
			decided++
		}
	}
	if want := 6 * len(images); decided != want {
		t.Errorf("%d numbers are known, want %d", decided, want)
	}
}
