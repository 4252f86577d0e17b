package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
)

// cacheAge is how long nobody must have read information_schema.INNODB_TRX before InnoDB fills it
// anew (CACHE_MIN_IDLE_TIME_NS in its trx0i_s.cc, 0.1 s), and a little more.
const cacheAge = 105 * time.Millisecond

// turn is the server's named lock (GET_LOCK) under which monitors read INNODB_TRX: any reader that does not take turns
// keeps it from being filled anew for all others.
const turn = "isotap_innodb_trx"

// turnPatience is how long a monitor waits for its turn. One takes 0.1 to 0.3 s.
const turnPatience = 20 * time.Second

// A monitor is the MySQL family's watcher. Those of several Runners on a server, in several processes as well, take
// turns.
type monitor struct {
	mu      sync.Mutex
	conn    *client.Conn
	polls   int       // of INNODB_TRX
	last    time.Time // when it was last read
	asked   time.Time // when the poll that found waiting was sent
	waiting []uint32  // connection ids
	mysql   bool      // it is MySQL
}

// newMonitor takes over the connection and prepares it. The monitor holds a transaction open so that
// INNODB_TRX lists the monitor's own query, by which it tells a fresh answer from a cached one. READ
// UNCOMMITTED gives it no read view: an open view would keep the purge from running, and with it
// delete-marked rows that the sessions' statements would lock.
func newMonitor(conn *client.Conn) (*monitor, error) {
	for _, sql := range []string{
		"SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
		"BEGIN",
		"SELECT COUNT(*) FROM mysql.innodb_table_stats", // any InnoDB table: BEGIN alone does not reach the engine
	} {
		if _, err := conn.Execute(sql); err != nil {
			return nil, fmt.Errorf("preparing to watch for lock waits (%s): %w", sql, err)
		}
	}
	return &monitor{conn: conn, mysql: !strings.Contains(conn.GetServerVersion(), "MariaDB")}, nil
}

// waits asks for InnoDB's report, which is of the moment. Only where that has left something out it reads INNODB_TRX:
// this takes up to cacheAge, and as long again for each other monitor on the server.
func (m *monitor) waits(ctx context.Context, connection uint32, _ []uint32,
	after time.Time) (waits, known bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.asked.After(after) {
		known, err := m.report(connection)
		if err == nil && !known {
			err = m.inTurn(func() error { return m.refresh(ctx, after) })
		}
		if err != nil {
			return false, false, fmt.Errorf("ask the server who waits for a lock: %w", err)
		}
	}
	return slices.Contains(m.waiting, connection), m.asked.After(after), nil
}

// report learns who waits by InnoDB's report and the process list. It is false where the report is not whole, or may
// lack the connection's transaction.
func (m *monitor) report(connection uint32) (known bool, err error) {
	asked := time.Now()
	r, err := m.conn.Execute("SHOW ENGINE INNODB STATUS")
	if err != nil {
		return false, err
	}
	const status = 2 // its column
	if len(r.Values) != 1 || len(r.Values[0]) <= status {
		return false, nil
	}
	waiting, listed, known := lockWaiters(string(r.Values[0][status].AsString()))
	if !known || m.mysql && !slices.Contains(listed, connection) { // MySQL leaves out transactions that only read
		return false, nil
	}
	others, err := m.waitersInProcessList()
	if err != nil {
		return false, err
	}
	m.asked, m.waiting = asked, append(waiting, others...)
	return true, nil
}

// lockWaiters returns the connections whose transactions wait for a lock, by InnoDB's report, and all that it lists. It
// is false where the report has left out transactions, as it does beyond a size. Of a transaction's lines those up to
// its thread's are InnoDB's own; what the client sent comes behind.
func lockWaiters(report string) (waiting, listed []uint32, whole bool) {
	const omission = "... truncated..."
	_, list, ok := strings.Cut(report, "\nLIST OF TRANSACTIONS FOR EACH SESSION:\n")
	if !ok || strings.Contains(report, omission) {
		return nil, nil, false
	}
	own, waits := false, false
	for line := range strings.Lines(list) {
		_, thread, isThread := strings.Cut(line, " thread id ")
		switch {
		case strings.HasPrefix(line, "---TRANSACTION "):
			own, waits = true, false
		case own && strings.HasPrefix(line, "LOCK WAIT "):
			waits = true
		case own && isThread:
			number, _, _ := strings.Cut(thread, ",")
			id, err := strconv.ParseUint(number, 10, 32)
			if err != nil {
				return nil, nil, false
			}
			listed = append(listed, uint32(id))
			if own = false; waits {
				waiting = append(waiting, uint32(id))
			}
		}
	}
	return waiting, listed, true
}

// waitersInProcessList returns the connections that wait for metadata, tables and named locks: row locks are InnoDB's.
// The list is not cached.
func (m *monitor) waitersInProcessList() (waiting []uint32, err error) {
	r, err := m.conn.Execute("SELECT ID FROM information_schema.PROCESSLIST" +
		" WHERE STATE LIKE 'Waiting for%lock' OR STATE = 'User lock'")
	if err != nil {
		return nil, err
	}
	for _, row := range r.Values {
		waiting = append(waiting, connectionID(row[0]))
	}
	return waiting, nil
}

// refresh polls once or, where somebody else has read INNODB_TRX less than cacheAge ago, twice.
func (m *monitor) refresh(ctx context.Context, after time.Time) error {
	for range 2 {
		if err := m.pause(ctx); err != nil {
			return err
		}
		if err := m.poll(); err != nil || m.asked.After(after) {
			return err
		}
	}
	return nil
}

// inTurn calls a function while no other monitor on the server reads INNODB_TRX.
func (m *monitor) inTurn(do func() error) error {
	r, err := m.conn.Execute(fmt.Sprintf("SELECT GET_LOCK('%s', %d)", turn, int(turnPatience.Seconds())))
	if err != nil {
		return err
	}
	if got, err := r.GetInt(0, 0); err != nil || got != 1 {
		return fmt.Errorf("no turn within %v: another connection holds the server's lock %q", turnPatience, turn)
	}
	err = do()
	_, released := m.conn.Execute("DO RELEASE_LOCK('" + turn + "')")
	return errors.Join(err, released)
}

func (m *monitor) pause(ctx context.Context) error {
	timer := time.NewTimer(time.Until(m.last.Add(cacheAge)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// poll reads the list of waiting connections and keeps it if it is fresh.
func (m *monitor) poll() error {
	asked := time.Now()
	m.polls++
	mark := fmt.Sprintf("/* isotap poll %d */", m.polls)
	transactions, err := m.conn.Execute("SELECT " + mark +
		" TRX_MYSQL_THREAD_ID, TRX_STATE, TRX_QUERY FROM information_schema.INNODB_TRX")
	m.last = time.Now()
	if err != nil {
		return err
	}
	waiting, err := m.waitersInProcessList()
	if err != nil {
		return err
	}
	fresh := false
	for _, row := range transactions.Values {
		if strings.Contains(string(row[2].AsString()), mark) {
			fresh = true
		}
		if string(row[1].AsString()) == "LOCK WAIT" {
			waiting = append(waiting, connectionID(row[0]))
		}
	}
	if !fresh {
		return nil
	}
	m.asked, m.waiting = asked, waiting
	return nil
}

// The lists of who waits for whom by row locks. That of information_schema comes out of the same cache as INNODB_TRX,
// so that it is as fresh; MySQL has it in sys from version 8 on.
const (
	lockWaits = `SELECT r.TRX_MYSQL_THREAD_ID, b.TRX_MYSQL_THREAD_ID FROM information_schema.INNODB_LOCK_WAITS w
		JOIN information_schema.INNODB_TRX r ON r.TRX_ID = w.REQUESTING_TRX_ID
		JOIN information_schema.INNODB_TRX b ON b.TRX_ID = w.BLOCKING_TRX_ID`
	sysLockWaits = "SELECT waiting_pid, blocking_pid FROM sys.innodb_lock_waits"
)

// blockers knows of row locks only.
func (m *monitor) blockers(ctx context.Context, connection uint32) ([]uint32, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	query, version := lockWaits, m.conn.GetServerVersion()
	if !strings.Contains(version, "MariaDB") && !strings.HasPrefix(version, "5.") {
		query = sysLockWaits
	}
	var r *mysql.Result
	err := m.inTurn(func() (err error) {
		if query == lockWaits {
			if err := m.refresh(ctx, time.Now()); err != nil {
				return err
			}
		}
		r, err = m.conn.Execute(query)
		m.last = time.Now()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask the server who waits for whom: %w", err)
	}
	return blockersOf(connection, r), nil
}

// blockersOf returns those for whom a connection waits, of a list of pairs.
func blockersOf(connection uint32, r *mysql.Result) (blockers []uint32) {
	for _, row := range r.Values {
		if connectionID(row[0]) == connection {
			blockers = append(blockers, connectionID(row[1]))
		}
	}
	return blockers
}

func connectionID(v mysql.FieldValue) uint32 {
	if v.Type == mysql.FieldValueTypeSigned {
		return uint32(v.AsInt64())
	}
	return uint32(v.AsUint64())
}

func (m *monitor) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.conn.Quit()
}
