package levels

import (
	"maps"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/workload"
)

// says tells whoever writes an application what a column gives, what not, and what to do; nothing where the rows are
// somebody else's.
func (t *Table) says(column int) string {
	if len(t.Rows) == 0 || slices.ContainsFunc(t.Rows, func(r Row) bool { return r.About == "" }) {
		return ""
	}
	all := []string{t.ofReads(column) + "."}
	if t.permits(column, lostUpdate) {
		all = append(all, "Updates are lost"+t.instead(column, forUpdate, lostUpdate)+".")
	}
	if t.permits(column, skews...) {
		all = append(all, t.ofSkews(column)+".")
	}
	if t.any(column, Fails) {
		all = append(all, "A transaction that fails with an error is to be run again.")
	}
	return strings.Join(all, " ")
}

// ofReads says what a transaction's statements see.
func (t *Table) ofReads(column int) string {
	permits := func(abouts ...string) bool { return t.permits(column, abouts...) }
	switch {
	case permits(dirtyRead, intermediate, circular):
		return "a transaction sees what others have not committed, and may yet take back" +
			t.instead(column, "", dirtyRead, intermediate, circular)
	case permits(vanishes, phantomRead, readSkew):
		return "a statement sees what is committed, and two statements of a transaction may not fit together" +
			t.instead(column, "", vanishes, phantomRead, readSkew)
	case permits(phantomByWrite, readSkewByWrite):
		return "the SELECTs of a transaction fit together, but its UPDATE and DELETE meet newer rows than these saw"
	case !t.any(column, Permitted):
		return "none of this happens"
	}
	return "all statements of a transaction see the database as of one moment"
}

// forUpdate has a transaction write what it read, and nothing older.
const forUpdate = "SELECT ... FOR UPDATE"

var skews = []string{writeSkew, readOnly, phantomSkew}

// ofSkews says what becomes of decisions that a transaction takes by what it read, of which others write a part.
func (t *Table) ofSkews(column int) string {
	where := ""
	if t.permits(column, phantomSkew) {
		where = " where the rows that decide are there to be locked" // what is not there it does not lock everywhere
	}
	level, ok := t.above(column, skews)
	switch {
	case ok:
		return "Write skew happens: use " + level.String() + ", or " + forUpdate + where
	case t.hasAllLevels():
		return "Write skew happens, and no level here prevents it: use " + forUpdate + where
	}
	return "Write skew happens: use " + forUpdate + where
}

// hasAllLevels reports whether no level of the server was left out.
func (t *Table) hasAllLevels() bool {
	var levels []history.Level
	for i := range t.Columns {
		levels = append(levels, t.Columns[i].Level)
	}
	return slices.Equal(slices.Compact(levels), workload.Levels(t.Server.Engine))
}

// instead advises what helps against anomalies: something in the SQL, or the weakest level that permits none of them.
func (t *Table) instead(column int, sql string, abouts ...string) string {
	ways := []string{}
	if sql != "" {
		ways = append(ways, sql)
	}
	if level, ok := t.above(column, abouts); ok {
		ways = append(ways, level.String())
	}
	if len(ways) == 0 {
		return ""
	}
	return ": use " + strings.Join(ways, " or ")
}

// above returns the weakest level above a column's that permits none of the anomalies: with the same settings or, where
// the column has none, with any.
func (t *Table) above(column int, abouts []string) (history.Level, bool) {
	from := &t.Columns[column]
	free := make(map[history.Level]bool)
	for j := range t.Columns {
		c := &t.Columns[j]
		if c.Level > from.Level && (len(from.Settings) == 0 || c.Settings.String() == from.Settings.String()) {
			before, seen := free[c.Level]
			free[c.Level] = (before || !seen) && !t.permits(j, abouts...)
		}
	}
	for _, level := range slices.Sorted(maps.Keys(free)) {
		if free[level] {
			return level, true
		}
	}
	return from.Level, false
}

// permits reports whether a column permits one of the anomalies.
func (t *Table) permits(column int, abouts ...string) bool {
	for i := range t.Rows {
		if slices.Contains(abouts, t.Rows[i].About) && t.cells[i][column].outcome() == Permitted {
			return true
		}
	}
	return false
}

// any reports whether a column has the outcome somewhere.
func (t *Table) any(column int, o Outcome) bool {
	return slices.ContainsFunc(t.cells, func(row []cell) bool { return row[column].outcome() == o })
}
