// Package pgversions names the row versions that PostgreSQL shows as histories name them.
//
// Nothing is added to the tables of a PostgreSQL server, so what a recording holds of a version is where
// it stands and who wrote it ([history.TupleID]), not its tag. A [Resolver] sees all analyzed transactions
// twice. First [Resolver.Collect] takes in what they wrote; after [Resolver.Settle], [Resolver.Resolve]
// gives every access its Version and takes the places away. What it remembers grows with the versions, not
// with the reads. At last [Resolver.Orders] says what the reads of versions that nobody was seen to write tell.
//
// # Rules
//
//   - A version is the one that the write left which has its row, its xmin and its ctid. Where an access
//     shows the xmin of a transaction that wrote the row, but another ctid (a trigger wrote the row once
//     more), it is the last of that transaction's writes of the row.
//   - The version that an UPDATE replaced, which PostgreSQL does not tell before 18, is the nearest one
//     below it: the write of the row that has the greatest log position (LSN) below its own and stayed.
//     The row's lock orders the writers, so nothing that stayed comes later and still before. What nobody
//     recorded may stand between the two: that one comes before the other is true all the same.
//   - An INSERT of a key that was there before continues its predecessor in the same way.
//   - A version whose xmin no recorded transaction has was there before if the xmin is below the run's
//     [history.Info.Horizon], or one that had ended by [history.Info.Recent]: it is the initial one. Otherwise a client
//     beside the proxy, or a statement that was not observed, wrote it: its tag is of the run [history.Unrecorded],
//     which no analysis knows, so that it has no place in the order unless a write says that it replaced it, or a
//     read that it was there before the write ([Resolver.Orders]).
//   - In a table that was written anew as a whole during a run ([history.Info.Rewritten]) places tell nothing
//     sure: what others see of a transaction's versions of a row is the last, and rows without a key are
//     inexact. Of a run that did not end cleanly it is not known which tables were.
//   - A table is its oid ([history.TupleID].Leaf), whatever it is called: its rows are those of the name that it was
//     recorded under first. A row that has the name of another table's (a new table of an old name, a partition in
//     another's place) has the oid behind that.
//   - A row without a primary key is named by the first version of it that is known. An UPDATE that
//     does not tell what it replaced starts a new name, and is inexact.
//
// Rows that carry isotap's columns ([history.TupleID].Tagged) say more: the row's id names it for its whole life, the
// log position in its list names the write, and the list tells what an UPDATE replaced, on every version. Their
// xmin still tells when somebody wrote the row and left the list as it was.
//
// Whatever is not certain is inexact or left out: an edge between transactions that this package makes
// possible is a path of true ones.
//
// # Servers
//
// Transaction ids mean something within one server only. Runs are of one server if they name the same
// system identifier and nothing contradicts it, as it does when the data was put back in between; the rows
// of any other get names of their own. So do those of another database than the first session's, which may
// have tables of the same names, and those of temporary tables, of which each session has its own. Such
// names stand as another incarnation's (see [history.Row]).
//
// # The files
//
// collect.go is the first pass, in which tables.go names the tables; servers.go and settle.go work between the passes,
// keyless.go names the rows without a key; resolve.go is the second pass, find.go finds the write behind a version,
// tagged.go behind one that its row names. unseen.go tells the order of versions that nobody was seen to write.
package pgversions

import (
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/numset"
)

// A Resolver gives accesses their versions. Until Settle has returned it is for one goroutine; from
// then on Resolve may be called from several.
type Resolver struct {
	runs     []run
	runIndex map[history.Run]int32
	servers  []server

	txns     []txn // those that wrote
	txnIndex map[history.TxnID]int32
	writes   []write // a transaction's stand together, in its order
	rows     map[history.Row]int32
	leaves   []uint32 // by row: the table that holds it; 0: not known

	tables    map[tableKey]table
	names     map[string]bool // that a table has
	lastMet   recordedTable
	lastTable table

	// databases are those of the sessions that are in another one than the first session is.
	databases map[sessionKey]string
	first     string
	rewritten map[string]bool // tables with their databases, and without
	unended   bool            // some run did not end cleanly
	forgotten map[history.Run]*numset.Set
	lasts     map[int32]history.TupleID // by row: the version of a forgotten transaction that was read

	// byVersion are the writes by row, server, xmin, ctid and LSN.
	byVersion []int32
	byTag     []int32          // the tagged ones, in tagOrder
	owners    map[xidKey]int32 // by server and xid: the transaction; ambiguous
	keyless   keyless
	settled   bool

	unseenVersions unseenVersions
}

// A run as far as it matters here.
type run struct {
	info   history.Info
	server int32
	newest uint32 // the last xid that its transactions are known to have
}

// A server has one counter of transaction ids.
type server struct {
	horizon uint64 // 0: not known
	recent  history.Recent
	suffix  string // of the names of its tables
	// forgotten are the ids of transactions that were recorded and are not among those collected, by run.
	forgotten []*numset.Set
}

// ended reports whether a transaction had ended when the first of the server's runs began.
func (s *server) ended(xid uint32) bool {
	switch r := &s.recent; {
	case s.horizon == 0:
		return false
	case before(xid, uint32(s.horizon)):
		return true
	case before(xid, uint32(r.From)) || !before(xid, uint32(r.To)):
		return false
	default:
		return !slices.ContainsFunc(r.Running, func(running uint64) bool { return uint32(running) == xid })
	}
}

// began takes note of a run of the server.
func (s *server) began(info *history.Info) {
	s.horizon = min(s.horizon, info.Horizon)
	recent := info.Recent
	if recent.To == 0 {
		recent = history.Recent{From: info.Horizon, To: info.Horizon}
	}
	if recent.To < s.recent.To {
		s.recent = recent
	}
}

func (s *server) forgot(xid uint32) bool {
	return slices.ContainsFunc(s.forgotten, func(xids *numset.Set) bool { return xids.Has(xid) })
}

type txn struct {
	id     history.TxnID
	status history.Status
	first  int32 // its first write; the others follow
	count  int32
	run    int32
	xid    uint32 // the one that it is known to have; one of them where it has several
	// nested: it may have subtransactions, which have xids of their own.
	nested bool
	// hides: some of its statements may have written what is not among its writes.
	hides bool
}

type write struct {
	lsn   uint64
	start int64  // when its statement was sent, by the run's clock
	ctid  uint64 // of the version that it left
	xid   uint32 // as ctid; 0: not known
	leaf  uint32
	row   int32 // none: without a key
	txn   int32
	stmt  uint32
	pred  int32 // the nearest write of the row below that stayed; none
	op    history.Op
	flags flags
}

type flags uint8

const (
	void    flags = 1 << iota
	inexact       // as recorded
	tagged        // ctid is the log position in the row's list
	doubt         // a transaction of unknown outcome may have written the row since pred
)

func (w *write) is(f flags) bool { return w.flags&f != 0 }

// certain reports whether the write left a version of its row for others, if its transaction committed.
func (w *write) certain() bool { return w.flags&(void|inexact) == 0 && w.lsn != 0 }

type sessionKey struct {
	run history.Run
	id  history.SessionID
}

type xidKey struct {
	server int32
	xid    uint32
}

const (
	none = -1
	// ambiguous: two transactions seem to have the xid.
	ambiguous = -2
)

// New returns a Resolver that knows nothing yet.
func New() *Resolver {
	return &Resolver{runIndex: make(map[history.Run]int32), txnIndex: make(map[history.TxnID]int32),
		rows: make(map[history.Row]int32), owners: make(map[xidKey]int32), databases: make(map[sessionKey]string),
		rewritten: make(map[string]bool), tables: make(map[tableKey]table), names: make(map[string]bool),
		forgotten: make(map[history.Run]*numset.Set), lasts: make(map[int32]history.TupleID),
		unseenVersions: newUnseenVersions()}
}

// Translate resolves a history that is in memory. Transactions without places are given back themselves,
// of the others copies.
func Translate(infos []history.Info, sessions []history.Session, txns []*history.Txn) ([]*history.Txn, error) {
	return New().Translate(infos, sessions, txns)
}

// Translate is the function of that name, for a Resolver that has been told to forget.
func (r *Resolver) Translate(infos []history.Info, sessions []history.Session,
	txns []*history.Txn) ([]*history.Txn, error) {
	for _, info := range infos {
		r.Add(info)
	}
	for _, s := range sessions {
		r.AddSession(s)
	}
	for _, t := range txns {
		if err := r.Collect(t); err != nil {
			return nil, err
		}
	}
	r.Settle()
	translated := make([]*history.Txn, len(txns))
	for i, t := range txns {
		if hasTupleIDs(t) {
			t = copied(t)
			r.Resolve(t)
		}
		translated[i] = t
	}
	return translated, nil
}

// copied copies as much of a transaction as Resolve changes.
func copied(t *history.Txn) *history.Txn {
	c := *t
	c.Stmts = append([]history.Stmt(nil), t.Stmts...)
	for i := range c.Stmts {
		s := &c.Stmts[i]
		if s.TupleIDs != nil {
			s.Accesses = append([]history.Access(nil), s.Accesses...)
		}
	}
	return &c
}

func hasTupleIDs(t *history.Txn) bool {
	for i := range t.Stmts {
		if t.Stmts[i].TupleIDs != nil {
			return true
		}
	}
	return false
}
