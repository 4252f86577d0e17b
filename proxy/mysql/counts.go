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

// asksCounts is called when a query that ends with askCounts is sent. It gives what reads the answer:
// the two last values of the row.
func (s *Session) asksCounts() func(r *reader) error {
	rows, found := !s.rowCountGone, !s.foundRowsGone
	s.rowCountGone, s.foundRowsGone = true, true
	return func(r *reader) error {
		n, err := strconv.ParseInt(string(r.lenencBytes()), 10, 64)
		if err != nil {
			return fmt.Errorf("parse ROW_COUNT(): %w", err)
		}
		if rows {
			s.rowCount = n
		}
		m, err := strconv.ParseUint(string(r.lenencBytes()), 10, 64)
		if err != nil {
			return fmt.Errorf("parse FOUND_ROWS(): %w", err)
		}
		if found {
			s.foundRows = m
		}
		return nil
	}
}

// countReply keeps what a client's statement left in ROW_COUNT() and FOUND_ROWS().
func (s *Session) countReply(x *exchange) {
	s.rowCountGone = x.swallow
	switch {
	case x.failed, x.fields > 0 && !x.swallow:
		s.rowCount = -1
	case x.swallow:
		s.rowCount = int64(x.rows)
	default:
		s.rowCount = int64(x.ok.affected)
	}
	switch {
	case x.swallow:
		s.foundRowsGone = true
	case x.fields > 0 && !x.failed:
		s.foundRows, s.foundRowsGone = x.rows, false
	}
}

// fillCounts says how the holes of a plan that stand for the two functions are filled.
func (s *Session) fillCounts(v *sqlmysql.Values) {
	v.RowCount, v.RowCountGone = s.rowCount, s.rowCountGone
	v.FoundRows, v.FoundRowsGone = s.foundRows, s.foundRowsGone
	v.Deprecates = s.losesConditions()
}
