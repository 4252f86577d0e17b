package oracle

import (
	"errors"
	"maps"
	"slices"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario/oracle/sdg"
)

// observer is a session that reads tables in the place of those whose statements it reads them beside.
const observer = "isotap_observer"

// locksReads reports whether a plain SELECT of an engine's transaction locks what it reads: reads beside statements
// would change what others wait for.
func locksReads(s history.Server, level history.Level) bool {
	return level == history.Serializable && (s.Engine == dbms.MariaDB || s.Engine == dbms.MySQL)
}

// versionsSeen tells what transactions see of tables that an observer has read at READ UNCOMMITTED before and behind
// each statement, of which no two run at once. They see the newest committed versions, since they lock what they come
// to, and their own.
type versionsSeen struct {
	tables    map[string]bool // that the observer has read
	committed sdg.Rows
	own       map[int]sdg.Rows // by transaction, those that are open: what it wrote; a row that it deleted has none
}

func newVersionsSeen() *versionsSeen {
	return &versionsSeen{tables: make(map[string]bool), committed: make(sdg.Rows), own: make(map[int]sdg.Rows)}
}

// errWrittenUnseen says that rows are others than what statements were seen to write makes of them.
var errWrittenUnseen = errors.New("rows were written unseen")

// pass puts what a statement's transaction sees in the place of what the observer saw.
func (v *versionsSeen) pass(s *sdg.Statement) error {
	for _, table := range s.Tables {
		if !v.tables[table] {
			v.tables[table] = true
			maps.Copy(v.committed, ofTable(s.Before, table))
		}
	}
	newest := make(sdg.Rows)
	for _, table := range s.Tables {
		maps.Copy(newest, ofTable(v.committed, table))
	}
	for _, rows := range v.own {
		overwrite(newest, rows, s.Tables)
	}
	if !maps.Equal(newest, s.Before) {
		return errWrittenUnseen
	}
	wrote := changes(s.Before, s.After, s.Written)
	s.Before = v.seen(s.Txn, s.Tables)
	if len(s.Written) == 0 {
		return nil
	}
	if v.own[s.Txn] == nil {
		v.own[s.Txn] = make(sdg.Rows)
	}
	maps.Copy(v.own[s.Txn], wrote)
	s.After = v.seen(s.Txn, s.Written)
	return nil
}

// end notes that a transaction has ended.
func (v *versionsSeen) end(txn int, committed bool) {
	if committed {
		overwrite(v.committed, v.own[txn], nil)
	}
	delete(v.own, txn)
}

// seen returns what a transaction sees of tables.
func (v *versionsSeen) seen(txn int, tables []string) sdg.Rows {
	rows := make(sdg.Rows)
	for _, table := range tables {
		maps.Copy(rows, ofTable(v.committed, table))
	}
	overwrite(rows, v.own[txn], tables)
	return rows
}

// ofTable returns the rows of a table.
func ofTable(rows sdg.Rows, table string) sdg.Rows {
	own := maps.Clone(rows)
	maps.DeleteFunc(own, func(row history.Row, _ sdg.Version) bool { return row.Table != table })
	return own
}

// overwrite has rows of tables, or of all, be as they were written.
func overwrite(rows, written sdg.Rows, tables []string) {
	for row, version := range written {
		switch {
		case tables != nil && !slices.Contains(tables, row.Table):
		case version == "":
			delete(rows, row)
		default:
			rows[row] = version
		}
	}
}

// changes returns the rows of tables that differ between two reads, with their second versions; those that are gone
// have none.
func changes(from, to sdg.Rows, tables []string) sdg.Rows {
	all := make(sdg.Rows)
	for row, version := range to {
		if from[row] != version {
			all[row] = version
		}
	}
	for row := range from {
		if _, stays := to[row]; !stays && slices.Contains(tables, row.Table) {
			all[row] = ""
		}
	}
	return all
}
