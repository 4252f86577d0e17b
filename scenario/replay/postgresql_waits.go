package replay

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A blockerWatcher is PostgreSQL's watcher. The server tells at any time which sessions each session waits
// for (pg_blocking_pids, https://www.postgresql.org/docs/current/functions-info.html).
type blockerWatcher struct {
	mu      sync.Mutex
	conn    conn
	asked   time.Time           // when the last question was sent
	waiting map[uint32][]uint32 // what each waiting session waits for
}

// blockersQuery names the sessions that a session waits for: holders of locks, those before it in a queue,
// and those that a deferrable transaction must see ended. One whose parallel workers wait for a lock waits for the
// workers (IPC), as a deferrable transaction does.
const blockersQuery = `SELECT pid, array_to_string(pg_blocking_pids(pid) || pg_safe_snapshot_blocking_pids(pid), ' ')
	FROM pg_stat_activity WHERE wait_event_type IN ('Lock', 'IPC')`

func (postgresqlDialect) watch(ctx context.Context, s Server) (watcher, error) {
	c, err := s.connect(ctx, "")
	if err != nil {
		return nil, err
	}
	return &blockerWatcher{conn: c}, nil
}

// waits does not know of a session that waits for a deadlock, which the server resolves after its
// deadlock_timeout.
func (w *blockerWatcher) waits(_ context.Context, connection uint32, others []uint32,
	after time.Time) (waits, known bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.asked.After(after) || w.deadlocked(connection) {
		if err := w.ask(); err != nil {
			return false, false, fmt.Errorf("asking the server who waits for a lock: %w", err)
		}
	}
	if !w.reaches(connection, others, make(map[uint32]bool)) {
		return false, true, nil
	}
	return true, !w.deadlocked(connection), nil
}

// reaches reports whether a session waits for one of the others, or for one that does: a parallel worker, say. A
// prepared transaction is as good as one of them, because nobody can tell whose it is.
func (w *blockerWatcher) reaches(connection uint32, others []uint32, seen map[uint32]bool) bool {
	seen[connection] = true
	for _, blocker := range w.waiting[connection] {
		if blocker == 0 || slices.Contains(others, blocker) || !seen[blocker] && w.reaches(blocker, others, seen) {
			return true
		}
	}
	return false
}

func (w *blockerWatcher) blockers(_ context.Context, connection uint32) ([]uint32, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting[connection], nil
}

// deadlocked reports whether a session waits for a circle of sessions that wait for each other.
func (w *blockerWatcher) deadlocked(connection uint32) bool {
	const waiting, done = 1, 2
	state := make(map[uint32]int)
	var visit func(pid uint32) bool
	visit = func(pid uint32) bool {
		if state[pid] != 0 {
			return state[pid] == waiting
		}
		state[pid] = waiting
		for _, blocker := range w.waiting[pid] {
			if visit(blocker) {
				return true
			}
		}
		state[pid] = done
		return false
	}
	return visit(connection)
}

func (w *blockerWatcher) ask() error {
	asked := time.Now()
	r, err := w.conn.execute(blockersQuery, false)
	if err == nil && r.Status == Failed {
		err = &refusalError{r}
	}
	if err != nil {
		return err
	}
	blockers := make(map[uint32][]uint32)
	for _, row := range r.Rows {
		pid, err := parsePID(row[0].Text)
		if err != nil {
			return err
		}
		for _, text := range strings.Fields(row[1].Text) {
			blocker, err := parsePID(text)
			if err != nil {
				return err
			}
			blockers[pid] = append(blockers[pid], blocker)
		}
	}
	w.asked, w.waiting = asked, blockers
	return nil
}

// parsePID reads a session's number; a prepared transaction, which has none, reads 0.
func parsePID(text string) (uint32, error) {
	pid, err := strconv.ParseUint(text, 10, 32)
	return uint32(pid), err
}

func (w *blockerWatcher) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conn.quit()
}
