package postgres

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/isotap/isotap/history"
)

// matchingRows numbers the rows of a table that are given as texts of its composite type, and gives the numbers of
// those that a condition holds for. The condition is the client's, with a line of its own: it may end with a comment.
const matchingRows = "SELECT isotap_n FROM (SELECT isotap_n, (isotap_r).* " +
	"FROM (SELECT isotap_n, isotap_i::%[1]s AS isotap_r " +
	"FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY AS isotap_u (isotap_i, isotap_n) OFFSET 0) " +
	"AS isotap_q) AS %[2]s WHERE (%[3]s\n) ORDER BY isotap_n"

// readLiterals has literals read as another session does.
const readLiterals = "SELECT pg_catalog.set_config('TimeZone', $1, true), " +
	"pg_catalog.set_config('DateStyle', $2, true), pg_catalog.set_config('IntervalStyle', $3, true)"

// Matching asks the server which of some rows match each predicate over their table, and returns their places in
// images. No table is read.
func (c *Conn) Matching(ctx context.Context, predicates []history.Predicate, images []string) ([][]int, error) {
	rows := array(images)
	var queries []query
	for _, p := range predicates {
		queries = append(queries, query{purpose: "settings for literals", columns: 3, row: true, text: readLiterals,
			args: []string{cmp.Or(p.Settings.TimeZone, "UTC"), cmp.Or(p.Settings.DateStyle, "ISO, MDY"),
				cmp.Or(p.Settings.IntervalStyle, "postgres")}},
			query{purpose: "the rows that match a predicate", columns: 1, text: fmt.Sprintf(matchingRows, p.Of, p.As,
				cmp.Or(p.Where, "TRUE")), args: []string{rows}, once: true})
	}
	results, err := c.read(ctx, queries...)
	if err != nil {
		return nil, fmt.Errorf("test predicates over %s: %w", predicates[0].Table, err)
	}
	matching := make([][]int, len(predicates))
	for i := range predicates {
		for _, row := range results[2*i+1] {
			n, err := strconv.Atoi(row[0])
			if err != nil || n < 1 || n > len(images) {
				return nil, fmt.Errorf("test predicates over %s: the server numbers a row %q of %d",
					predicates[i].Table, row[0], len(images))
			}
			matching[i] = append(matching[i], n-1)
		}
	}
	return matching, nil
}

// Test is [Conn.Matching] in a database.
func (d *Databases) Test(ctx context.Context, database string, predicates []history.Predicate,
	images []string) ([][]int, error) {
	cache, err := d.Open(ctx, database)
	if err != nil {
		return nil, err
	}
	return cache.conn.Matching(ctx, predicates, images)
}
