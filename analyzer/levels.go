package analyzer

import (
	"slices"

	"github.com/isotap/isotap/history"
)

// A TheoryLevel is an isolation level as the literature defines it.
type TheoryLevel struct {
	Name    string
	Forbids []Anomaly
	Source  string
}

// TheoryLevels are the levels that the anomalies found here can tell apart, weakest first.
var TheoryLevels = []TheoryLevel{
	{"PL-1", []Anomaly{G0}, "Adya 1999, 4.2.1"},
	{"PL-2", []Anomaly{G0, G1a, G1b, G1c}, "Adya 1999, 4.2.2"},
	{"PL-2+", []Anomaly{G0, G1a, G1b, G1c, GSingle}, "Adya 1999, 4.3"},
	{"SI", []Anomaly{G0, G1a, G1b, G1c, GSingle}, "Adya 1999, 4.3: G-SI, of which G-single is a case"},
	{"PL-2.99", []Anomaly{G0, G1a, G1b, G1c, GSingle, G2Item}, "Adya 1999, 4.2.3"},
	{"PL-3", []Anomaly{G0, G1a, G1b, G1c, GSingle, G2Item}, "Adya 1999, 4.2.4"},
}

// base gives the phenomenon that an anomaly is a case of.
func (a Anomaly) base() Anomaly {
	switch a {
	case LostUpdate, ReadSkew, ReadWriteSkew:
		return GSingle
	case WriteSkew:
		return G2Item
	default:
		return a
	}
}

// weakest gives the weakest theoretical level that forbids an anomaly; empty where every level does.
func weakest(a Anomaly) string {
	for _, l := range TheoryLevels {
		if slices.Contains(l.Forbids, a.base()) {
			return l.Name
		}
	}
	return ""
}

// A Promise is what an engine documents for one of its isolation levels.
//
// Plain SELECTs are reads of a snapshot where the level has one; locking SELECTs and all writes are
// current reads: they wait for the row's lock and see the newest committed version. A promise
// about a snapshot therefore binds only where both sides of the contradiction are snapshot reads:
// the read that missed a version (rw) and the read that saw its consequences (wr).
type Promise struct {
	Engine            string // history.Server.Engine
	Level             history.Level
	SnapshotIsolation bool // history.Server.SnapshotIsolation
	// Forbids are the phenomena that no transaction at this level takes part in, however it reads.
	Forbids []Anomaly
	// Snapshot: the plain reads of a transaction see one snapshot.
	Snapshot bool
	// Statement: the plain reads of one statement see one snapshot.
	Statement bool
	// FirstCommitterWins: a transaction cannot lock or write a row that changed since its snapshot.
	FirstCommitterWins bool
	// RowLocks: locking reads and writes lock their rows until the transaction ends.
	RowLocks bool
	Source   string
}

const (
	mariadbSet      = "MariaDB Knowledge Base: SET TRANSACTION, Isolation Levels"
	mariadbSnapshot = "MariaDB Knowledge Base: InnoDB System Variables, innodb_snapshot_isolation"
	mysqlLevels     = "MySQL Reference Manual: InnoDB Transaction Isolation Levels"
	mysqlReads      = "MySQL Reference Manual: InnoDB Consistent Nonlocking Reads"
)

var (
	onlyDirtyWrites = []Anomaly{G0}
	readCommitted   = []Anomaly{G0, G1a, G1b, G1c}
	everything      = []Anomaly{G0, G1a, G1b, G1c, GSingle, G2Item}
)

// Promises is the engine table. An engine that is not in it promises nothing: what is found there
// are hazards. At SERIALIZABLE an autocommitted plain SELECT reads a snapshot without locks, as of
// which it can be put into the serial order, so that it needs no row of its own.
var Promises = []Promise{
	{Engine: "mariadb", Level: history.ReadUncommitted, Forbids: onlyDirtyWrites, RowLocks: true, Source: mariadbSet},
	{Engine: "mariadb", Level: history.ReadCommitted, Forbids: readCommitted, Statement: true, RowLocks: true, Source: mariadbSet},
	{Engine: "mariadb", Level: history.RepeatableRead, Forbids: readCommitted, Snapshot: true, Statement: true, RowLocks: true, Source: mariadbSet},
	{Engine: "mariadb", Level: history.Serializable, Forbids: everything, RowLocks: true, Source: mariadbSet},
	{Engine: "mariadb", Level: history.RepeatableRead, SnapshotIsolation: true, Forbids: readCommitted, Snapshot: true, Statement: true,
		FirstCommitterWins: true, RowLocks: true, Source: mariadbSnapshot},
	{Engine: "mysql", Level: history.ReadUncommitted, Forbids: onlyDirtyWrites, RowLocks: true, Source: mysqlLevels},
	{Engine: "mysql", Level: history.ReadCommitted, Forbids: readCommitted, Statement: true, RowLocks: true, Source: mysqlReads},
	{Engine: "mysql", Level: history.RepeatableRead, Forbids: readCommitted, Snapshot: true, Statement: true, RowLocks: true, Source: mysqlReads},
	{Engine: "mysql", Level: history.Serializable, Forbids: everything, RowLocks: true, Source: mysqlLevels},
}

var noPromise Promise

// PromiseOf finds what a server documents for a level; the zero Promise when nothing is known.
func PromiseOf(s history.Server, l history.Level) *Promise {
	si := s.SnapshotIsolation && l == history.RepeatableRead
	for i := range Promises {
		if p := &Promises[i]; p.Engine == s.Engine && p.Level == l && p.SnapshotIsolation == si {
			return p
		}
	}
	return &noPromise
}

// forbids says whether the promise excludes a phenomenon whatever the reads.
func (p *Promise) forbids(a Anomaly) bool { return slices.Contains(p.Forbids, a.base()) }
