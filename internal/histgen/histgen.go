// Package histgen generates random small histories, for tests of whatever reads a history. It runs
// a few concurrent transactions on a simulated multi-version store and records what they see. The
// store behaves like one of several [Engine]s: some that keep their promises, at each isolation
// level, and a broken one that lets a transaction see and overwrite any version at all.
//
// The same generator state gives the same history. Nothing here is safe for concurrent use.
package histgen

import (
	"fmt"
	"math/rand/v2"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// An Engine says how the simulated store treats concurrent transactions.
type Engine uint8

// The engines. All but Broken hold a row's lock from its first write or locking read until the
// transaction ends.
const (
	Serial          Engine = iota // one transaction after the other
	Locking                       // every read locks: strict two-phase locking
	Snapshot                      // snapshot isolation: the first of two concurrent writers of a row wins
	RepeatableRead                // InnoDB's: plain reads see a snapshot, locking reads and writes the newest
	ReadCommitted                 // plain reads see what is committed when they run
	ReadUncommitted               // plain reads see the newest version, committed or not
	Broken                        // reads see any version, writes replace any version
	Engines                       // the number of engines
)

// Config says what history to generate.
type Config struct {
	Engine Engine
	Txns   int // transactions
	Rows   int // rows that exist at the start
	Ops    int // statements per transaction, at most
	Open   int // transactions that run at a time, at most; 0: all
}

// Run is the run that every generated transaction belongs to.
const Run history.Run = 36*36*36*36*36 + 1

// Random picks a configuration: 2 to 5 transactions, 1 to 4 rows, 1 to 5 statements; any engine, the
// serial one seldom, and at times many transactions of few statements, which make long cycles.
func Random(rng *rand.Rand) Config {
	engine := Engine(rng.IntN(int(Engines)))
	if engine == Serial {
		engine = Engine(rng.IntN(int(Engines)))
	}
	if rng.IntN(6) == 0 {
		return Config{Engine: engine, Txns: 5, Rows: 2 + rng.IntN(2), Ops: 2}
	}
	return Config{Engine: engine, Txns: 2 + rng.IntN(4), Rows: 1 + rng.IntN(4), Ops: 1 + rng.IntN(5)}
}

// Info describes the run behind a generated history, as an engine with the promises of c.Engine
// would: MariaDB, cleanly ended.
func (c Config) Info() history.Info {
	info := history.Info{Run: Run, Mode: "items"}
	info.Ended = info.Started.Add(1)
	info.Server = history.Server{Engine: dbms.MariaDB, Version: "11.8", SnapshotIsolation: c.Engine == Snapshot}
	return info
}

// Generate generates a history. Every access in it is exact and carries its row's whole list.
// Transactions are in the order in which they began, in as few sessions as that takes.
func Generate(rng *rand.Rand, c Config) []*history.Txn {
	db := newStore(rng, c)
	db.run()
	return db.txns()
}

// run lets the transactions take steps in turn until all have ended.
func (db *store) run() {
	for len(db.open) > 0 {
		open := len(db.open)
		if db.Open > 0 {
			open = min(open, db.Open)
		}
		t := db.open[db.rng.IntN(open)]
		if db.Engine == Serial {
			t = db.open[0]
		}
		db.step(t)
	}
}

func (c Config) level(rng *rand.Rand) history.Level {
	switch c.Engine {
	case Serial, Locking:
		return history.Serializable
	case Snapshot, RepeatableRead:
		return history.RepeatableRead
	case ReadCommitted:
		return history.ReadCommitted
	case ReadUncommitted:
		return history.ReadUncommitted
	default:
		return history.Level(1 + rng.IntN(4))
	}
}

// step lets a transaction run its next statement, or end.
func (db *store) step(t *txn) {
	if t.left == 0 {
		db.end(t, db.rng.IntN(7) > 0)
		return
	}
	if db.rng.IntN(12) == 0 && db.rollbackTo(t) {
		return
	}
	if !db.statement(t) {
		// A lock is in the way. Waiting is letting others go first; a deadlock has a victim.
		if t.waits++; t.waits > 12 {
			db.end(t, false)
		}
		return
	}
	t.left--
}

// rollbackTo undoes the transaction's last statements, as ROLLBACK TO SAVEPOINT does.
func (db *store) rollbackTo(t *txn) bool {
	n := len(t.Stmts)
	if n == 0 {
		return false
	}
	from := db.rng.IntN(n)
	for i := from; i < n; i++ {
		t.Stmts[i].Void = true
	}
	for _, v := range t.versions {
		if v.tag.Stmt > uint32(from) {
			v.undone = true
		}
	}
	return true
}

// statement runs one statement on one random row; false when a lock is in its way or the store
// ended the transaction.
func (db *store) statement(t *txn) bool {
	if db.predicates && db.rng.IntN(3) == 0 {
		return db.look(t)
	}
	if db.rng.IntN(8) == 0 {
		return db.insert(t)
	}
	r := db.rows[db.rng.IntN(len(db.rows))]
	switch n := db.rng.IntN(16); {
	case n < 5:
		return db.read(t, history.NoLock, r)
	case n < 7:
		return db.read(t, history.NoLock, db.rows...)
	case n < 8:
		return db.read(t, history.LockUpdate, r)
	case n < 9:
		return db.read(t, history.LockShare, r)
	case n < 14:
		return db.write(t, r, history.UpdateRow)
	default:
		return db.write(t, r, history.DeleteRow)
	}
}

// insert inserts a row; false while another transaction keeps new rows away.
func (db *store) insert(t *txn) bool {
	for watcher := range db.watchers {
		if watcher != t {
			return false
		}
	}
	r := &row{name: history.Row{Table: "g.t", ID: fmt.Sprintf("n%d", len(db.rows))}, sharers: map[*txn]bool{}, owner: t}
	db.rows = append(db.rows, r)
	s := t.begin(history.Insert, history.NoLock)
	s.Accesses = []history.Access{{Row: r.name, Op: history.InsertRow}}
	db.install(t, r, nil, s.Num, false)
	return true
}

// read reads rows in one statement; those that are not there it does not see.
func (db *store) read(t *txn, lock history.Locking, rows ...*row) bool {
	if lock == history.NoLock && db.Engine == Locking {
		lock = history.LockShare
	}
	var seen []history.Access
	for _, r := range rows {
		if lock != history.NoLock && !db.lock(t, r, lock == history.LockUpdate) {
			return false
		}
		v := db.visible(t, r, lock != history.NoLock)
		if lock != history.NoLock && db.tooNew(t, v) {
			db.end(t, false)
			return false
		}
		if v != nil && !v.dead {
			seen = append(seen, history.Access{Row: r.name, Op: history.Read, Version: v.tag, Prior: v.prior})
		}
	}
	t.begin(history.Select, lock).Accesses = seen
	return true
}

// write updates or deletes a row, or creates again the one that was deleted.
func (db *store) write(t *txn, r *row, op history.Op) bool {
	if !db.lock(t, r, true) {
		return false
	}
	v := db.target(t, r)
	if db.tooNew(t, v) {
		db.end(t, false)
		return false
	}
	kind := map[history.Op]history.Kind{history.UpdateRow: history.Update, history.DeleteRow: history.Delete}[op]
	if v != nil && v.dead {
		kind, op = history.Insert, history.InsertRow
	}
	s := t.begin(kind, history.NoLock)
	if v == nil {
		return true
	}
	a := history.Access{Row: r.name, Op: op, Version: v.tag, Prior: v.prior}
	if op == history.InsertRow {
		a.Prior = nil
	}
	s.Accesses = []history.Access{a}
	db.install(t, r, v, s.Num, op == history.DeleteRow)
	return true
}
