package tail

import (
	"sync"

	"github.com/isotap/isotap/history"
)

// An item is one of what a follower is sent: a session, a transaction, or a run that has ended.
type item struct {
	session *history.Session
	txn     *history.Txn
	ended   *history.Info
}

// queueLimit bounds what a follower's queue holds: statements and accesses, of some 200 bytes each.
const queueLimit = 200_000

// A queue holds what a follower has not been sent yet. Who fills it never waits: what is too much is dropped, and the
// follower is behind until it has read that from the recording.
type queue struct {
	limit int
	ready chan struct{} // has a token when there may be something to do

	mu     sync.Mutex
	items  []item
	cost   int
	behind bool
}

func newQueue(limit int, behind bool) *queue {
	return &queue{limit: limit, ready: make(chan struct{}, 1), behind: behind}
}

func (q *queue) put(it item) {
	q.mu.Lock()
	if cost := costOf(it.txn); q.behind || q.cost+cost > q.limit {
		q.behind, q.items, q.cost = true, nil, 0
	} else {
		q.items = append(q.items, it)
		q.cost += cost
	}
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// end puts the run's end, behind all else.
func (q *queue) end(info *history.Info) {
	q.mu.Lock()
	q.items = append(q.items, item{ended: info})
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take returns what waits. It reports whether the follower is behind; then it counts as being up to date again, and is
// given what comes from then on.
func (q *queue) take() (items []item, behind bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	items, behind = q.items, q.behind
	q.items, q.cost, q.behind = nil, 0, false
	return items, behind
}

// idle reports whether nothing waits.
func (q *queue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) == 0 && !q.behind
}

func costOf(t *history.Txn) int {
	if t == nil {
		return 1
	}
	cost := 1 + len(t.Stmts)
	for i := range t.Stmts {
		cost += len(t.Stmts[i].Accesses)
	}
	return cost
}
