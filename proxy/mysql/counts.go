package mysql

import (
	"fmt"
	"strconv"

	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// counts is what the client's statements left in ROW_COUNT() and FOUND_ROWS(). Statements of isotap's
// change both; the client is then told the values from here.
type counts struct {
	rowCount  int64
	foundRows uint64
	// Whether the server's own value is no longer the client's. FOUND_ROWS() stays until the next
	// result set, ROW_COUNT() until the next statement.
	rowCountGone, foundRowsGone bool
}

// askCounts ends each query of isotap's: what it is about to change is asked first. Text would come in
// character_set_results, bytes do not, and LIMIT overrides sql_select_limit.
const askCounts = ", CAST(ROW_COUNT() AS BINARY), CAST(FOUND_ROWS() AS BINARY) LIMIT 1"

// ask is called when a query that ends with askCounts is sent. It gives what reads the answer:
// the two last values of the row.
func (c *counts) ask() func(r *reader) error {
	rows, found := !c.rowCountGone, !c.foundRowsGone
	c.rowCountGone, c.foundRowsGone = true, true
	return func(r *reader) error {
		n, err := strconv.ParseInt(string(r.lenencBytes()), 10, 64)
		if err != nil {
			return fmt.Errorf("parse ROW_COUNT(): %w", err)
		}
		if rows {
			c.rowCount = n
		}
		m, err := strconv.ParseUint(string(r.lenencBytes()), 10, 64)
		if err != nil {
			return fmt.Errorf("parse FOUND_ROWS(): %w", err)
		}
		if found {
			c.foundRows = m
		}
		return nil
	}
}

// take keeps what a client's statement left in ROW_COUNT() and FOUND_ROWS(). replaced says that its rows were not the
// client's, which got an OK packet in their place.
func (c *counts) take(r *reply, replaced bool) {
	c.rowCountGone = replaced
	switch {
	case r.failed, r.fields > 0 && !replaced:
		c.rowCount = -1
	case replaced:
		c.rowCount = int64(r.rows)
	default:
		c.rowCount = int64(r.ok.affected)
	}
	switch {
	case replaced:
		c.foundRowsGone = true
	case r.fields > 0 && !r.failed:
		c.foundRows, c.foundRowsGone = r.rows, false
	}
}

// fill says how the holes of a plan that stand for the two functions are filled.
func (c *counts) fill(v *sqlmysql.Values) {
	v.RowCount, v.RowCountGone = c.rowCount, c.rowCountGone
	v.FoundRows, v.FoundRowsGone = c.foundRows, c.foundRowsGone
}
