package oracle

import (
	"slices"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// A sight says which versions of others a part of a statement sees, beside those of its own transaction: Troc's Table
// II.
type sight uint8

const (
	// dirty are the newest versions, committed or not (V2).
	dirty sight = iota
	// current are the newest committed when the statement comes to the row, which it locks (V3).
	current
	// begun are those committed when the statement began.
	begun
	// snapshot are those committed when the transaction took its snapshot (V4).
	snapshot
)

// A meeting says what becomes of a write, or of a locking read, whose row has a newer version than the one it sees.
type meeting uint8

const (
	// acts: it sees the newest, and acts on it.
	acts meeting = iota
	// rechecks: it acts on the newest if that still fits (PostgreSQL's EvalPlanQual).
	rechecks
	// fails: with a serialization failure.
	fails
)

// A viewRule says what the statements of an engine's level see.
type viewRule struct {
	engines []dbms.Engine
	levels  []history.Level
	plain   sight // a SELECT
	// alone is a SELECT that is a transaction by itself, also one within a locking one where that would lock in
	// others.
	alone sight
	main  sight // what a locking SELECT locks, and an UPDATE or DELETE writes
	// nested are the queries within a locking SELECT; source is what an UPDATE, or an INSERT ... SELECT, reads
	// beside its target, and sourceOfDelete what a DELETE and an INSERT of values do.
	nested, source, sourceOfDelete sight
	meets                          meeting
	// early says that a transaction's first statement takes its snapshot, whatever it is; else its first plain read
	// does.
	early bool
	// anytime says that any statement, and COMMIT, may fail to be serialized.
	anytime bool
	// optimistic are the rules of transactions that wait for nobody, and check keys and conflicts at COMMIT. AtBegin
	// says that BEGIN takes the snapshot; eitherNested that queries within a write, or a locking SELECT, see what a
	// SELECT sees, or the newest committed: where that differs nothing is judged.
	optimistic, atBegin, eitherNested bool
	why                               string // the sources
}

var (
	innoDB = []dbms.Engine{dbms.MariaDB, dbms.MySQL}
	tiDB   = []dbms.Engine{dbms.TiDB}
)

// viewRules are Table II as the engines have it. InnoDB's queries within a write lock what they read, but those of
// UPDATE and INSERT ... SELECT below REPEATABLE READ (ha_innobase::store_lock).
//
// In TiDB's pessimistic mode a write and what it reads go by the newest committed versions (its for-update timestamp),
// but for queries that it evaluates when it plans the statement. One in autocommit is tried again where it conflicts.
var viewRules = []viewRule{
	{engines: innoDB, levels: []history.Level{history.ReadUncommitted}, plain: dirty, alone: dirty, main: current,
		nested: dirty, source: dirty, sourceOfDelete: current, meets: acts,
		why: "MySQL's manual, InnoDB: Transaction Isolation Levels"},
	{engines: innoDB, levels: []history.Level{history.ReadCommitted}, plain: begun, alone: begun, main: current,
		nested: begun, source: begun, sourceOfDelete: current, meets: acts,
		why: "MySQL's manual, InnoDB: Transaction Isolation Levels"},
	{engines: innoDB, levels: []history.Level{history.RepeatableRead}, plain: snapshot, alone: begun, main: current,
		nested: snapshot, source: current, sourceOfDelete: current, meets: acts,
		why: "MySQL's manual, InnoDB: Consistent Nonlocking Reads"},
	{engines: innoDB, levels: []history.Level{history.Serializable}, plain: current, alone: begun, main: current,
		nested: current, source: current, sourceOfDelete: current, meets: acts,
		why: "MySQL's manual, InnoDB: Transaction Isolation Levels"},
	{engines: []dbms.Engine{dbms.PostgreSQL}, levels: []history.Level{history.ReadUncommitted, history.ReadCommitted},
		plain: begun, alone: begun, main: begun, nested: begun, source: begun, sourceOfDelete: begun, meets: rechecks,
		early: true, why: "PostgreSQL's manual, Read Committed Isolation Level"},
	{engines: []dbms.Engine{dbms.PostgreSQL}, levels: []history.Level{history.RepeatableRead}, plain: snapshot,
		alone: snapshot, main: snapshot, nested: snapshot, source: snapshot, sourceOfDelete: snapshot, meets: fails,
		early: true, why: "PostgreSQL's manual, Repeatable Read Isolation Level"},
	{engines: []dbms.Engine{dbms.PostgreSQL}, levels: []history.Level{history.Serializable}, plain: snapshot,
		alone: snapshot, main: snapshot, nested: snapshot, source: snapshot, sourceOfDelete: snapshot, meets: fails,
		early: true, anytime: true, why: "PostgreSQL's manual, Serializable Isolation Level"},
	{engines: tiDB, levels: []history.Level{history.ReadCommitted}, plain: begun, alone: begun, main: current, nested: current,
		source: current, sourceOfDelete: current, meets: acts, eitherNested: true,
		why: "TiDB's manual, Pessimistic Transaction Mode and Read Committed Isolation Level"},
	{engines: tiDB, levels: []history.Level{history.RepeatableRead}, plain: snapshot, alone: begun, main: current, nested: current,
		source: current, sourceOfDelete: current, meets: acts, early: true, atBegin: true, eitherNested: true,
		why: "TiDB's manual, Pessimistic Transaction Mode; getReadTS of its executor's builder"},
	{engines: tiDB, levels: []history.Level{history.ReadCommitted, history.RepeatableRead}, plain: snapshot, alone: begun,
		main: snapshot, nested: snapshot, source: snapshot, sourceOfDelete: snapshot, meets: acts, early: true, atBegin: true,
		optimistic: true, why: "TiDB's manual, Optimistic Transaction Mode; READ COMMITTED takes effect in the pessimistic one only"},
}

// ruleFor returns the rule of an engine's level; nil where there is none.
func ruleFor(engine dbms.Engine, level history.Level, optimistic bool) *viewRule {
	for i := range viewRules {
		if r := &viewRules[i]; slices.Contains(r.engines, engine) && slices.Contains(r.levels, level) && r.optimistic == optimistic {
			return r
		}
	}
	return nil
}

// A clash is an error that comes of other transactions, and not of what a statement asks for.
type clash struct {
	family dbms.Family
	code   string
	undoes bool // the whole transaction, at once; else the statement alone
	why    string
}

// clashes are all that are known. On PostgreSQL a transaction goes on failing until its ROLLBACK.
var clashes = []clash{
	{dbms.MySQLFamily, "1213/40001", true, "a deadlock's victim"},
	{dbms.MySQLFamily, "1205/HY000", false, "a lock's time is over, or NOWAIT"},
	{dbms.MySQLFamily, "3572/HY000", false, "NOWAIT"},
	{dbms.MySQLFamily, "1020/HY000", true, "innodb_snapshot_isolation: the row has changed behind the snapshot"},
	{dbms.MySQLFamily, "8002/HY000", true, "TiDB: a write conflict of SELECT ... FOR UPDATE"},
	{dbms.MySQLFamily, "8022/HY000", true, "TiDB: a COMMIT that cannot be tried again"},
	{dbms.MySQLFamily, "9007/HY000", true, "TiDB: a write conflict"},
	{dbms.PostgreSQLFamily, "40001", false, "a serialization failure"},
	{dbms.PostgreSQLFamily, "40P01", false, "a deadlock's victim"},
	{dbms.PostgreSQLFamily, "55P03", false, "NOWAIT, or a lock's time is over"},
}

func clashOf(family dbms.Family, code string) *clash {
	for i := range clashes {
		if clashes[i].family == family && clashes[i].code == code {
			return &clashes[i]
		}
	}
	return nil
}

// A deviation is a published bug: a view that a statement gets and should not. A difference that it explains is told
// with its name.
type deviation struct {
	name    string
	engines []dbms.Engine
	levels  []history.Level
	// waited says that only a statement that waited has it, verbs which do.
	waited bool
	verbs  []verb
	// view gives the views that the statement may have got.
	view func(o *overlook) []look
	says string
}

// An overlook is what a deviation makes views of: the row versions, by number of row, that there were when the
// statement began and at each commit while it waited, and those that it has to see. Order has the numbers of the
// rows in the order of a scan.
type overlook struct {
	began []look
	due   look
	// without is due but for what the transaction wrote without changing it.
	without look
	order   []int
}

var underInnoDB = []history.Level{history.ReadUncommitted, history.ReadCommitted}

var deviations = []deviation{
	{name: "MDEV-26642", engines: []dbms.Engine{dbms.MariaDB, dbms.MySQL, dbms.TiDB},
		levels: []history.Level{history.RepeatableRead}, verbs: []verb{selects, locks},
		view: func(o *overlook) []look { return []look{o.without} },
		says: "a row that the transaction wrote with the value that it had already is not seen as its own"},
	{name: "MDEV-27992", engines: innoDB, levels: underInnoDB, waited: true, verbs: []verb{updates, deletes, locks},
		view: (*overlook).withoutNew, says: "a row that came while the statement waited, or whose key moved, is left out"},
	{name: "MDEV-26643", engines: innoDB, levels: underInnoDB, waited: true, verbs: []verb{updates, deletes, locks},
		view: (*overlook).passed, says: "rows that the statement passed before it waited are as they were then"},
}

// withoutNew leaves out the rows that were not there at a moment while the statement waited.
func (o *overlook) withoutNew() (all []look) {
	for _, began := range o.began {
		view := make(look)
		for n, v := range o.due {
			if began[n] != nil {
				view[n] = v
			}
		}
		all = append(all, view)
	}
	return all
}

// passed has the first rows of the scan, each number of them, as they were at a moment while the statement waited.
func (o *overlook) passed() (all []look) {
	for _, began := range o.began {
		for n := 1; n <= len(o.order); n++ {
			if began[o.order[n-1]] == o.due[o.order[n-1]] {
				continue
			}
			view := make(look)
			for i, row := range o.order {
				from := o.due
				if i < n {
					from = began
				}
				if v := from[row]; v != nil {
					view[row] = v
				}
			}
			all = append(all, view)
		}
	}
	return all
}
