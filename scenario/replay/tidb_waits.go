package replay

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
)

// A tidbWatcher is TiDB's watcher. The server's lists are of the moment.
type tidbWatcher struct {
	mu      sync.Mutex
	conn    *client.Conn
	asked   time.Time // when the last question was sent
	waiting []uint32  // connections
}

// tidbLockWaits has who waits for whom, if that one's transaction is still open
// (https://docs.pingcap.com/tidb/stable/information-schema-data-lock-waits).
const tidbLockWaits = `SELECT r.SESSION_ID AS waiting, b.SESSION_ID AS holding FROM information_schema.DATA_LOCK_WAITS w
	JOIN information_schema.TIDB_TRX r ON r.ID = w.TRX_ID
	JOIN information_schema.TIDB_TRX b ON b.ID = w.CURRENT_HOLDING_TRX_ID`

// tidbWaiting has who waits. The state of a transaction that waits is another one where it commits, as one in
// autocommit does, which takes no locks before.
const tidbWaiting = "SELECT SESSION_ID FROM information_schema.TIDB_TRX WHERE STATE = 'LockWaiting' UNION ALL " +
	"SELECT waiting FROM (" + tidbLockWaits + ") AS w"

func (w *tidbWatcher) waits(_ context.Context, connection uint32, _ []uint32,
	after time.Time) (waits, known bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.asked.After(after) {
		if err := w.ask(); err != nil {
			return false, false, fmt.Errorf("ask the server who waits for a lock: %w", err)
		}
	}
	return slices.Contains(w.waiting, connection), true, nil
}

func (w *tidbWatcher) ask() error {
	asked := time.Now()
	r, err := w.conn.Execute(tidbWaiting)
	if err != nil {
		return err
	}
	w.asked, w.waiting = asked, nil
	for _, row := range r.Values {
		w.waiting = append(w.waiting, connectionID(row[0]))
	}
	return nil
}

func (w *tidbWatcher) blockers(_ context.Context, connection uint32) ([]uint32, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, err := w.conn.Execute(tidbLockWaits)
	if err != nil {
		return nil, fmt.Errorf("ask the server who waits for whom: %w", err)
	}
	return blockersOf(connection, r), nil
}

func (w *tidbWatcher) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conn.Quit()
}
