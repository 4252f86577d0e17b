package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// looks are ways in which applications look for a booking of $1 that is in the way, before they make one.
var looks = []string{
	"SELECT b.id FROM booking b JOIN customer c ON c.id = b.customer WHERE c.id = $1",
	"SELECT c.id FROM customer c LEFT JOIN booking b ON b.customer = c.id WHERE c.id = $1 AND b.id IS NULL",
	"SELECT EXISTS (SELECT 1 FROM booking WHERE customer = $1)",
	"SELECT EXISTS (SELECT 1 FROM booking WHERE customer = $1 LIMIT 1) AS found",
	"SELECT id FROM customer c WHERE id = $1 AND NOT EXISTS (SELECT FROM booking WHERE customer = c.id)",
	"SELECT id FROM customer WHERE id = $1 AND id NOT IN (SELECT customer FROM booking WHERE customer IS NOT NULL)",
	"SELECT (SELECT count(*) FROM booking WHERE customer = $1) AS bookings",
	"SELECT EXISTS (SELECT FROM booking WHERE customer = $1) OR EXISTS (SELECT FROM booking WHERE customer = -$1::int)",
	`SELECT DISTINCT "d"."b_id" FROM (SELECT "b"."id" AS "b_id" FROM "booking" "b" LEFT JOIN "customer" "c"
		ON "c"."id" = "b"."customer" WHERE "b"."customer" = $1) "d" ORDER BY "b_id" ASC LIMIT 1`,
	"SELECT id FROM booking WHERE customer = $1 AND made > now() - interval '1 hour' LIMIT 1",
	"WITH mine AS (SELECT id FROM booking WHERE customer = $1) SELECT count(*) FROM mine",
	"SELECT id FROM booking WHERE customer = $1 UNION SELECT id FROM booking WHERE customer = -$1::int",
	"SELECT id FROM booking WHERE customer = $1 ORDER BY id OFFSET 1",
	"SELECT c.email FROM customer c, booking b WHERE b.customer = c.id AND c.id = $1 FOR UPDATE",
}

// TestWhatJoinsAndSubqueriesMissedIsFound has two transactions look for a booking in each of these ways, find none, and
// make one each.
func TestWhatJoinsAndSubqueriesMissedIsFound(t *testing.T) {
	b := startPostgresBench(t, tapMode{predicates: true}, "CREATE TABLE customer (id int PRIMARY KEY, email text)",
		"CREATE TABLE booking (id serial PRIMARY KEY, customer int, room int, made timestamptz DEFAULT now())",
		"INSERT INTO customer SELECT i, 'x' FROM generate_series(1, 40) i")
	var c [2]*pgx.Conn
	for i := range c {
		c[i] = b.connect(b.through(), postgresModes[i], "default_transaction_isolation", history.RepeatableRead.String())
	}
	for n, look := range looks {
		steps := []string{"BEGIN", look, "INSERT INTO booking (customer, room) VALUES ($1, 1)", "COMMIT"}
		for _, step := range steps {
			for i := range c {
				args := []any{n + 1}[:min(1, strings.Count(step, "$1"))]
				if _, err := c[i].Exec(t.Context(), step, args...); err != nil {
					t.Fatalf("%s: %v", step, err)
				}
			}
		}
	}
	once := "INSERT INTO booking (customer) SELECT $1 WHERE NOT EXISTS (SELECT FROM booking WHERE customer = $1)"
	for _, step := range []string{"BEGIN", once, "COMMIT"} {
		for i := range c {
			if _, err := c[i].Exec(t.Context(), strings.ReplaceAll(step, "$1", "30")); err != nil {
				t.Fatalf("%s: %v", step, err)
			}
		}
	}
	if r := b.analyze(); len(r.Findings) != 1 || r.Findings[0].Anomaly != analyzer.PhantomSkew ||
		r.Findings[0].Class != analyzer.Hazard || r.Findings[0].Patterns != len(looks)+1 {
		t.Errorf("%d findings, not one of %d patterns", len(r.Findings), len(looks)+1)
	}
	runs, txns := resolved(t, b.recording)
	anti, _ := dependenciesOn(t, ".booking", runs, txns)
	for _, look := range append(slices.Clone(looks), once) {
		var pair []history.TxnID
		for _, x := range txns {
			if slices.ContainsFunc(x.Stmts, func(s history.Stmt) bool { return sameLook(s.Shape, look) }) {
				pair = append(pair, x.ID)
			}
		}
		if len(pair) != 2 || !anti[[2]history.TxnID(pair)] || !anti[[2]history.TxnID{pair[1], pair[0]}] {
			t.Errorf("%d transactions did not come before each other: %s", len(pair), look)
		}
	}
}

// sameLook reports whether a shape is that of a statement.
func sameLook(shape, look string) bool {
	plain := func(s string) string {
		for _, value := range []string{"$1", "'1 hour'", "LIMIT 1", "SELECT 1", "OFFSET 1", "ALL (", "30"} {
			s = strings.ReplaceAll(s, value, strings.TrimRight(value, "'10$ hour")+"?")
		}
		return strings.NewReplacer(" ", "", "?", "", "\n", "", "\t", "", "'", "").Replace(s)
	}
	return plain(shape) == plain(look)
}
