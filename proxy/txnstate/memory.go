package txnstate

import "github.com/isotap/isotap/history"

// maxKept is how much memory a session keeps between replies, in bytes.
const maxKept = 1 << 20

// Reusable returns the memory of b for what comes next, unless it is so much that it should not be kept.
func Reusable(b []byte) []byte {
	if cap(b) > maxKept {
		return nil
	}
	return b[:0]
}

// StmtCapacity is how many statements the next transaction of a session has room for from its start: as many as the
// last one had.
type StmtCapacity int

// maxStmtCapacity bounds it.
const maxStmtCapacity = 64

// NewStmts returns where the statements of the next transaction go.
func (c StmtCapacity) NewStmts() []history.Stmt { return make([]history.Stmt, 0, c) }

// Ended notes how many statements a transaction had that has ended.
func (c *StmtCapacity) Ended(n int) { *c = StmtCapacity(min(n, maxStmtCapacity)) }

// IsRecorded reports whether a statement of a kind that touches no row is worth a place in the history.
func IsRecorded(k history.Kind) bool {
	switch k {
	case history.Begin, history.Commit, history.Rollback, history.Savepoint, history.Release, history.DDL,
		history.Lock, history.NamedLock:
		return true
	}
	return false
}

// IsWorth reports whether a statement is worth the transaction that it stands in: it may have come to rows, has
// changed what there are, or takes or releases locks that have a name. Without such a one a transaction is not
// recorded.
func IsWorth(s history.Stmt) bool {
	return s.Observation != history.Nothing || s.Kind == history.DDL || s.Kind == history.NamedLock
}
