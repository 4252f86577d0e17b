package bruteforce

import (
	"maps"
	"slices"

	"github.com/isotap/isotap/history"
)

// A state is a database between two transactions. States are not changed once others may hold them.
type state map[history.Row]cell

// A cell is one row: the tags that wrote it, the last one being its version. A row that does not
// exist (yet, or any more) is not alive.
type cell struct {
	list  []history.Tag
	alive bool
}

func (c cell) same(d cell) bool { return c.alive == d.alive && slices.Equal(c.list, d.list) }

// initialState holds every row that the history touches with the initial version, except those that
// it creates.
func initialState(txns []*history.Txn) state {
	db := make(state)
	for _, t := range txns {
		for _, s := range t.Stmts {
			for _, a := range s.Accesses {
				if created := a.Op == history.InsertRow && a.Version.Initial(); created {
					db[a.Row] = cell{}
				} else if _, ok := db[a.Row]; !ok {
					db[a.Row] = cell{list: []history.Tag{{}}, alive: true}
				}
			}
		}
	}
	return db
}

func (db state) clone() state { return maps.Clone(db) }

// run runs a transaction alone on a copy of the state; where it writes nothing the state itself is what comes of it. It
// is not ok when the transaction saw something else than that state.
func (db state) run(t *history.Txn, l looks) (state, bool) {
	copied := false
	for _, s := range t.Stmts {
		if !l.fit(history.Tag{Txn: t.ID, Stmt: s.Num}, db) {
			return nil, false
		}
		for _, a := range s.Accesses {
			if a.Absent || a.Gone {
				continue
			}
			if a.Op == history.Read {
				// What it read of its own may have been undone by a ROLLBACK TO SAVEPOINT since.
				if a.Version.Txn != t.ID && !db[a.Row].shows(a) {
					return nil, false
				}
				continue
			}
			if s.Void {
				continue
			}
			if !db[a.Row].admits(a) {
				return nil, false
			}
			if !copied { // most do not come so far
				db, copied = db.clone(), true
			}
			list := append(slices.Clone(db[a.Row].list), history.Tag{Txn: t.ID, Stmt: s.Num})
			db[a.Row] = cell{list: list, alive: a.Op != history.DeleteRow}
		}
	}
	return db, true
}

// admits reports whether the write finds the row as it says that it did.
func (c cell) admits(a history.Access) bool {
	if a.Op != history.InsertRow {
		return c.shows(a)
	}
	if len(c.list) == 0 {
		return a.Version.Initial()
	}
	return !c.alive && c.list[len(c.list)-1] == a.Version
}

// shows reports whether the row is there with the version, and the tags below it, that the access saw.
func (c cell) shows(a history.Access) bool {
	if !c.alive {
		return false
	}
	below := c.list[:len(c.list)-1]
	if len(a.Prior) > len(below) || c.list[len(c.list)-1] != a.Version {
		return false
	}
	return slices.Equal(a.Prior, below[len(below)-len(a.Prior):])
}
