package pgversions

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
)

// A tableKey names a table by what stays of it when it gets another name or another place in a partitioned table.
type tableKey struct {
	system   uint64      // of its server
	run      history.Run // where the server is not known
	database string
	oid      uint32
}

// A table is one that holds rows, as recordings tell of it.
type table struct {
	name  string // that was recorded of it first, told from those of other databases and sessions
	first bool   // no other table was recorded under that name before
	moved bool   // places in it tell nothing sure
}

// A recordedTable is a table as accesses name it: the same for most that follow each other.
type recordedTable struct {
	session sessionKey
	name    string
	leaf    uint32
}

// recordedTable returns the table of an access.
func (r *Resolver) recordedTable(t *history.Txn, name string, leaf uint32) recordedTable {
	return recordedTable{sessionKey{t.ID.Run(), t.Session}, name, leaf}
}

func (r *Resolver) tableKey(t recordedTable) tableKey {
	k := tableKey{run: t.session.run, database: r.databases[t.session], oid: t.leaf}
	if i, ok := r.runIndex[t.session.run]; ok {
		if k.system = r.runs[i].info.Server.System; k.system != 0 {
			k.run = 0
		}
	}
	return k
}

// meets takes in that a table was recorded.
func (r *Resolver) meets(recorded recordedTable) table {
	if recorded == r.lastMet {
		return r.lastTable
	}
	known := r.table(recorded)
	if recorded.leaf != 0 {
		if !r.names[known.name] {
			r.names[known.name], known.first = true, true
		}
		r.tables[r.tableKey(recorded)] = known
	}
	r.lastMet, r.lastTable = recorded, known
	return known
}

// table returns what is known of a table.
func (r *Resolver) table(recorded recordedTable) table {
	moved := r.moves(recorded)
	if recorded.leaf != 0 {
		if known, ok := r.tables[r.tableKey(recorded)]; ok {
			known.moved = known.moved || moved
			return known
		}
	}
	return table{name: r.local(recorded), moved: moved}
}

// moves reports whether places in a table may have become those of other versions.
func (r *Resolver) moves(t recordedTable) bool {
	if len(r.rewritten) == 0 || r.unended {
		return r.unended
	}
	name, database := t.name, r.first
	if other, ok := r.databases[t.session]; ok {
		database = other
	}
	if database != "" {
		name += "@" + database
	}
	return r.rewritten[name]
}

// temporary is the schema of temporary tables, of which each session has its own.
const temporary = "pg_temp."

// local returns the name that a table has among all sessions.
func (r *Resolver) local(t recordedTable) string {
	name := t.name
	if database, ok := r.databases[t.session]; ok {
		name += "@" + database
	}
	if strings.HasPrefix(name, temporary) {
		name = fmt.Sprintf("%s@%s.%d", name, t.session.run, t.session.id)
	}
	return name
}

// known returns the number of a row that a table holds, if it has one, and the row's name: that of a row which another
// table holds tells them apart.
func (r *Resolver) known(row history.Row, leaf uint32) (history.Row, int32, bool) {
	n, ok := r.rows[row]
	if ok && leaf != 0 && r.leaves[n] != 0 && r.leaves[n] != leaf {
		row.Table += "@" + strconv.FormatUint(uint64(leaf), 10)
		n, ok = r.rows[row]
	}
	return row, n, ok
}

// number returns the number of a row that a table holds, a new one for a new row.
func (r *Resolver) number(row history.Row, leaf uint32) int32 {
	row, n, ok := r.known(row, leaf)
	switch {
	case !ok:
		n = int32(len(r.leaves))
		r.rows[row] = n
		r.leaves = append(r.leaves, leaf)
	case r.leaves[n] == 0:
		r.leaves[n] = leaf
	}
	return n
}
