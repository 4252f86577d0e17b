package proxyserver

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy"
)

// insertCount counts the statements that insert rows among what is recorded, so that they can be held against how many
// the server ran. It may be used by several goroutines.
type insertCount struct {
	proxy.Recorder
	before uint64 // how many the server had run when the run began
	known  bool
	n      atomic.Uint64
}

// raised are errors of rows, by MySQL's numbers: a statement that ends in one of them has run and is counted by the
// server.
var raised = []uint16{1022, 1048, 1062, 1205, 1213, 1216, 1452, 4025}

// Txn counts a transaction's statements, and records it.
func (c *insertCount) Txn(ctx context.Context, t *history.Txn) error {
	for i := range t.Stmts {
		s := &t.Stmts[i]
		if s.Kind != history.Insert && s.Kind != history.Replace {
			continue
		}
		if s.Error == (history.Error{}) || slices.Contains(raised, s.Error.Code) {
			c.n.Add(1)
		}
	}
	return c.Recorder.Txn(ctx, t)
}

// all reports whether the server ran no others.
func (c *insertCount) all(now uint64, known bool) bool {
	return c.known && known && now-c.before == c.n.Load()
}
