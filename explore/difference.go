package explore

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario/replay"
)

// A difference is what a twin was answered otherwise than the transaction, by one statement.
type difference struct {
	at      int // the statement
	failed  bool
	code    string
	rows    bool     // others came, or others were changed
	none    bool     // it changed no row, where the transaction's did
	fewer   bool     // it changed fewer
	found   int      // how many came the first time
	whole   bool     // they have all columns of each table that a change is of
	tables  []string // that the rows are of
	changed []change // where as many rows came
}

// A change is a value that a twin read otherwise.
type change struct {
	of       column
	key      bool // of is a part of a unique key
	truth    bool // of is of a type for truth values
	was, now replay.Value
}

// differences compares what two plays of statements were answered. It ends with the first error.
func differences(s *schema, statements []statement, own, twins []*replay.Result, m *mapping) []difference {
	var all []difference
	for i := range statements {
		a, b := own[i], twins[i]
		if a == nil || b == nil || b.Status == replay.NotRun {
			break
		}
		if b.Status != replay.OK {
			return append(all, difference{at: i, failed: true, code: b.ErrorCode()})
		}
		if d, differs := compare(s, &statements[i], a, b, m); differs {
			d.at = i
			all = append(all, d)
		}
	}
	return all
}

// compare compares two replies that are no errors.
func compare(s *schema, st *statement, a, b *replay.Result, m *mapping) (d difference, differs bool) {
	d.tables, d.found = s.tablesShown(a.Columns), len(a.Rows)
	if len(d.tables) == 0 {
		d.tables = st.named
	}
	if st.writes() && affected(a) != affected(b) || len(a.Columns) != len(b.Columns) {
		d.rows, d.fewer = true, st.writes() && affected(b) < affected(a)
		d.none = d.fewer && affected(b) == 0
		return d, true
	}
	left, right := apart(s, a, b, m)
	if len(left) != len(right) {
		d.rows = true
		return d, true
	}
	for i := range left {
		for j := range left[i] {
			of, known := s.shown(&a.Columns[j])
			if s.ignores(a.Columns[j].Type, of) || m.same(s, of, known, left[i][j], right[i][j]) {
				continue
			}
			if !known {
				of = column{name: a.Columns[j].Name}
			}
			truth := slices.Contains(truths[s.family], a.Columns[j].Type)
			d.changed = append(d.changed, change{of, s.unique[of], truth, left[i][j], right[i][j]})
		}
	}
	d.whole = !slices.ContainsFunc(d.changed, func(c change) bool { return !s.showsAll(a.Columns, c.of.table) })
	return d, len(d.changed) > 0
}

// showsAll reports whether a result has all columns of a table.
func (s *schema) showsAll(shown []replay.Column, table string) bool {
	all := s.columns[strings.ToLower(table)]
	return len(all) > 0 && !slices.ContainsFunc(all, func(of column) bool {
		return !slices.ContainsFunc(shown, func(c replay.Column) bool {
			is, known := s.shown(&c)
			return known && is == of
		})
	})
}

// affected returns how many rows a write changed: of one that shows them, as many as it showed.
func affected(r *replay.Result) uint64 {
	if r.Columns != nil {
		return uint64(len(r.Rows))
	}
	return r.Affected
}

// apart returns the rows of two results that the other does not have, in their order.
func apart(s *schema, a, b *replay.Result, m *mapping) (left, right [][]replay.Value) {
	right = slices.Clone(b.Rows)
	for _, row := range a.Rows {
		at := slices.IndexFunc(right, func(other []replay.Value) bool { return sameRow(s, a.Columns, row, other, m) })
		if at < 0 {
			left = append(left, row)
			continue
		}
		right = slices.Delete(right, at, at+1)
	}
	return left, right
}

func sameRow(s *schema, columns []replay.Column, a, b []replay.Value, m *mapping) bool {
	for j := range a {
		of, known := s.shown(&columns[j])
		if !s.ignores(columns[j].Type, of) && !m.same(s, of, known, a[j], b[j]) {
			return false
		}
	}
	return true
}

// ignores reports whether a column is not compared: it tells when its row was written, or how often.
func (s *schema) ignores(kind uint32, of column) bool {
	return isTime(s.family, kind) || s.versions[of]
}

// times are the types of columns that hold moments, which differ from play to play.
var times = map[dbms.Family][]uint32{
	dbms.PostgreSQLFamily: {1083, 1114, 1184, 1266}, // time, timestamp, and both with a zone
	dbms.MySQLFamily:      {7, 11, 12},              // TIMESTAMP, TIME, DATETIME
}

// truths are the types of columns that hold truth values.
var truths = map[dbms.Family][]uint32{
	dbms.PostgreSQLFamily: {16, 1560}, // boolean, bit
	dbms.MySQLFamily:      {1, 16},    // TINYINT, BIT
}

func isTime(family dbms.Family, kind uint32) bool { return slices.Contains(times[family], kind) }
