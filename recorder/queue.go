package recorder

import (
	"context"
	"sync"
	"time"

	"github.com/isotap/isotap/history"
)

// An item waits in the queue to be written: a transaction, a session, what matches a predicate, how a table was
// defined, a transaction that did so, what the server's log says, or a request to flush.
type item struct {
	txn        *history.Txn
	session    *history.Session
	matches    *history.Matches
	definition *history.Definition
	defined    *history.DefiningTxn
	logged     *history.LoggedTxn
	stretch    *numberedStretch
	flushed    chan<- error // gets one answer once everything before the item is durable
	size       int64
	queued     time.Time // when it was given; put notes it
}

// A queue hands items from many goroutines to one, in order, and bounds the memory that they take.
// Who finds it full waits; nothing is dropped.
type queue struct {
	limit int64
	ready chan struct{} // has a token when items may have become non-empty

	mu      sync.Mutex
	items   []item
	bytes   int64         // of the items, and of those that were taken and not released
	room    chan struct{} // closed and replaced when room is made or the queue stops
	err     error         // not nil once the queue takes no more items
	stalls  uint64
	stalled time.Duration
}

func newQueue(limit int64) *queue {
	return &queue{limit: limit, ready: make(chan struct{}, 1), room: make(chan struct{})}
}

// put adds an item, waiting for room if it must. An item larger than the limit goes in when the queue
// is empty.
func (q *queue) put(ctx context.Context, it item) error {
	var since time.Time
	if it.queued.IsZero() {
		it.queued = time.Now()
	}
	for {
		q.mu.Lock()
		if !since.IsZero() {
			now := time.Now()
			q.stalled += now.Sub(since)
			since = now
		}
		if q.err != nil {
			err := q.err
			q.mu.Unlock()
			return err
		}
		if q.bytes == 0 || q.bytes+it.size <= q.limit {
			q.items = append(q.items, it)
			q.bytes += it.size
			q.mu.Unlock()
			q.wake()
			return nil
		}
		if since.IsZero() {
			q.stalls++
			since = time.Now()
		}
		room := q.room
		q.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take returns all items, reusing spare as the queue's next list. They count as queued until they are
// released. It reports whether the queue was stopped: what it gives then is the last.
func (q *queue) take(spare []item) (items []item, stopped bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	items, q.items = q.items, spare[:0]
	return items, q.err != nil
}

// release makes room for others once items of this size are done with.
func (q *queue) release(size int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= size
	close(q.room)
	q.room = make(chan struct{})
}

// stop makes put fail with err from now on. The first call's error stays.
func (q *queue) stop(err error) {
	q.mu.Lock()
	if q.err == nil {
		q.err = err
	}
	close(q.room)
	q.room = make(chan struct{})
	q.mu.Unlock()
	q.wake()
}

func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// txnSize estimates the memory that a transaction takes while it waits.
func txnSize(t *history.Txn) int64 {
	const txnBytes, stmtBytes, accessBytes, tagBytes, tupleIDBytes = 120, 280, 104, 16, 48
	size := int64(txnBytes + stmtBytes*len(t.Stmts))
	for i := range t.Stmts {
		s := &t.Stmts[i]
		size += int64(accessBytes*len(s.Accesses) + tupleIDBytes*len(s.TupleIDs))
		for j := range s.Accesses {
			size += int64(tagBytes * len(s.Accesses[j].Prior))
		}
		for _, a := range s.Args {
			size += int64(len(a)) + 16
		}
		size += int64(len(s.Text))
	}
	return size
}
