package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/history"
)

// matchingRows numbers the rows of a table that are given as texts of its composite type, and gives the numbers of
// those that one of some conditions holds for, with a 1 for each condition that does and a 0 for each other. The
// conditions are clients', each with a line of its own: it may end with a comment.
const matchingRows = "SELECT isotap_n, isotap_m FROM (SELECT isotap_n, %[3]s AS isotap_m " +
	"FROM (SELECT isotap_n, (isotap_r).* " +
	"FROM (SELECT isotap_n, isotap_i::%[1]s AS isotap_r " +
	"FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY AS isotap_u (isotap_i, isotap_n) OFFSET 0) " +
	"AS isotap_q) AS %[2]s OFFSET 0) AS isotap_a " +
	"WHERE pg_catalog.strpos(isotap_m, '1') OPERATOR(pg_catalog.>) 0 ORDER BY isotap_n"

// matchingOne is a condition's part of it.
const matchingOne = "CASE WHEN (%s\n) THEN '1' ELSE '0' END"

// readLiterals has literals read as another session does.
const readLiterals = "SELECT pg_catalog.set_config('TimeZone', $1, true), " +
	"pg_catalog.set_config('DateStyle', $2, true), pg_catalog.set_config('IntervalStyle', $3, true)"

// Matching asks the server which of some rows match each predicate over their table, and returns their places in
// images. No table is read.
func (c *Conn) Matching(ctx context.Context, predicates []history.Predicate, images []string) ([][]int, error) {
	rows := array(images)
	var queries []query
	var together [][]int // places in predicates, by question
	for i, p := range predicates {
		alike := func(of []int) bool {
			q := &predicates[of[0]]
			return q.Of == p.Of && q.As == p.As && q.Settings == p.Settings
		}
		if at := slices.IndexFunc(together, alike); at >= 0 {
			together[at] = append(together[at], i)
		} else {
			together = append(together, []int{i})
		}
	}
	for _, of := range together {
		p := predicates[of[0]]
		marks := make([]string, len(of))
		for i, n := range of {
			marks[i] = fmt.Sprintf(matchingOne, cmp.Or(predicates[n].Where, "TRUE"))
		}
		queries = append(queries, query{purpose: "settings for literals", columns: 3, row: true, text: readLiterals,
			args: []string{cmp.Or(p.Settings.TimeZone, "UTC"), cmp.Or(p.Settings.DateStyle, "ISO, MDY"),
				cmp.Or(p.Settings.IntervalStyle, "postgres")}},
			query{purpose: "the rows that match predicates", columns: 2, text: fmt.Sprintf(matchingRows, p.Of, p.As,
				strings.Join(marks, " OPERATOR(pg_catalog.||) ")), args: []string{rows}, once: true})
	}
	results, err := c.read(ctx, queries...)
	if err != nil {
		return nil, fmt.Errorf("test predicates over %s: %w", predicates[0].Table, err)
	}
	matching := make([][]int, len(predicates))
	for i, of := range together {
		for _, row := range results[2*i+1] {
			n, err := strconv.Atoi(row[0])
			if err != nil || n < 1 || n > len(images) || len(row[1]) != len(of) {
				return nil, fmt.Errorf("test predicates over %s: the server numbers a row %q of %d, with %q for %d predicates",
					predicates[of[0]].Table, row[0], len(images), row[1], len(of))
			}
			for j, which := range of {
				if row[1][j] == '1' {
					matching[which] = append(matching[which], n-1)
				}
			}
		}
	}
	return matching, nil
}

// Test is [Conn.Matching] in a database, over a connection that nobody waits for who asks for tables. No image lacks a
// column.
func (d *Databases) Test(ctx context.Context, database string, predicates []history.Predicate,
	images []string) (matching [][]int, lacking []bool, err error) {
	cache, err := d.Open(ctx, database)
	if err != nil {
		return nil, nil, &unopened{err}
	}
	matching, err = cache.beside.testing.Matching(ctx, predicates, images)
	return matching, make([]bool, len(predicates)), err
}

// An unopened error is why nothing could be asked in a database.
type unopened struct{ error }

// Unwrap returns what it was about.
func (u *unopened) Unwrap() error { return u.error }

// Why says of an error of Test's whether the server refused a predicate, or otherwise whether it was reached at all.
func (d *Databases) Why(err error) (refused, reached bool) {
	var login *catalog.LoginError
	var unread *unopened
	var said *pgconn.PgError
	switch {
	case errors.As(err, &unread), errors.As(err, &login):
		return false, false
	case errors.As(err, &said) && len(said.Code) > classLength:
		return !slices.Contains(transientClasses, said.Code[:classLength]), true
	}
	return false, true
}

// transientClasses are those of errors that say nothing of a query: of connections, of rollbacks for others' sake, of
// what the server lacks now, of objects in use, and of what an operator does.
var transientClasses = []string{"08", "40", "53", "55", "57"}

// classLength is how much of an SQLSTATE its class is.
const classLength = 2
