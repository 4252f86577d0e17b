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

// Usual is how many statements the transactions of a session mostly have: as many as the last one.
type Usual int

// maxUsual bounds the statements that a transaction has room for from its start.
const maxUsual = 64

// Room is where the statements of the next transaction go.
func (u Usual) Room() []history.Stmt { return make([]history.Stmt, 0, u) }

// Took notes how many statements a transaction had.
func (u *Usual) Took(n int) { *u = Usual(min(n, maxUsual)) }
