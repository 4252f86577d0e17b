package recorder

import "github.com/isotap/isotap/history"

// An Arena is memory that transactions are read into which are done with together: after [Arena.Reset] it is used
// again, so that it grows to what is needed at once and stays near the processor. It is for one goroutine at a time.
// The zero value is ready for use.
type Arena struct {
	txns     []history.Txn
	stmts    []history.Stmt
	accesses []history.Access
	tags     []history.Tag
}

// Reset ends the life of all that was read into the arena, but for texts.
func (a *Arena) Reset() {
	a.txns, a.stmts, a.accesses, a.tags = a.txns[:0], a.stmts[:0], a.accesses[:0], a.tags[:0]
}

// taken returns the next n elements of one of an arena's slices, which are zero. Where there is no room for them
// the slice begins anew: what was taken before stays where it is.
func taken[T any](from *[]T, n int) []T {
	if len(*from)+n > cap(*from) {
		*from = make([]T, 0, max(n, 2*cap(*from)))
	}
	at := len(*from)
	*from = (*from)[:at+n]
	t := (*from)[at : at+n : at+n]
	clear(t)
	return t
}
