package postgres

import (
	"context"
	"fmt"

	"github.com/isotap/isotap/catalog"
)

// askUnwatched finds the tables whose rows are not kept as versions that have a ctid and an xmin.
const askUnwatched = `SELECT n.nspname || '.' || c.relname,
		CASE c.relkind WHEN 'f' THEN 'it is a foreign table' ELSE 'its access method is ' || am.amname END
	FROM pg_class c LEFT JOIN pg_am am ON am.oid = c.relam AND c.relkind IN ('r', 'm')
		JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE ` + observed + ` AND (c.relkind = 'f' OR am.amname <> 'heap') ORDER BY 1`

// Unwatched returns the tables of the connection's database that no statement can be observed on, and why.
func Unwatched(ctx context.Context, c *Conn) ([]catalog.LeftOut, error) {
	results, err := c.read(ctx, query{purpose: "the tables that cannot be watched", text: askUnwatched, columns: 2})
	if err != nil {
		return nil, fmt.Errorf("asking the server which tables cannot be watched: %w", err)
	}
	var all []catalog.LeftOut
	for _, r := range results[0] {
		all = append(all, catalog.LeftOut{Table: r[0], Reason: r[1]})
	}
	return all, nil
}
