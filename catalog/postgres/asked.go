package postgres

import (
	"context"
	"fmt"
)

// beforeRows tells where the write-ahead log ends, and has values shown in a form that every session reads alike.
// Nothing but what is asked for is read: not the whole table where a part of it will do.
const beforeRows = "SELECT pg_catalog.pg_current_wal_insert_lsn(), " +
	"pg_catalog.set_config('DateStyle', 'ISO, MDY', true), pg_catalog.set_config('IntervalStyle', 'postgres', true), " +
	"pg_catalog.set_config('extra_float_digits', '1', true), pg_catalog.set_config('enable_seqscan', 'off', true)"

// Ask asks a database for rows, each of so many columns. It returns them with NULL as "", and where the write-ahead log
// ended before the server read them. The connection is another one than that of the catalog, for which others may wait
// long.
func (d *Databases) Ask(ctx context.Context, database, text string, args []string,
	columns int) (lsn string, rows [][]string, err error) {
	entry := d.readable()[database]
	if entry == nil {
		return "", nil, fmt.Errorf("ask for rows in %s: the database was not read", database)
	}
	results, err := entry.cache.beside.asking.read(ctx,
		query{purpose: "where the log ends", text: beforeRows, columns: 5, row: true},
		query{purpose: "rows", text: text, args: args, columns: columns, once: true})
	if err != nil {
		return "", nil, fmt.Errorf("ask for rows in %s: %w", database, err)
	}
	rows = make([][]string, len(results[1]))
	for i, row := range results[1] {
		rows[i] = row
	}
	return results[0][0][0], rows, nil
}
