package e2e

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/testdb"
)

var mysqlAdviceTables = []string{"CREATE TABLE t (id INT PRIMARY KEY, n INT, m INT)",
	"CREATE TABLE other (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 0, 0), (2, 0, 0)",
	"INSERT INTO other VALUES (1, 0)"}

// TestAdviceOnMySQLsFamilyRunsAndIsEnough has two transactions lose an update, or skew a write, at both levels that
// permit it. Each text that is advised is prepared on the server, and run with the lock that is advised the two do each
// other no harm.
func TestAdviceOnMySQLsFamilyRunsAndIsEnough(t *testing.T) {
	testdb.Only(t, "its locks are asked for", "mariadb", "mysql")
	const one, two = "UPDATE t SET n = 5 WHERE id = 1", "UPDATE t SET n = 5 WHERE id = 2"
	for _, tt := range []struct {
		name   string
		found  analyzer.Anomaly
		reads  []string
		writes [2]string
	}{
		{"a row", analyzer.LostUpdate, []string{"SELECT n FROM t WHERE id = 1"}, [2]string{one, one}},
		{"a row that is read again", analyzer.LostUpdate,
			[]string{"SELECT n FROM t WHERE id = 1", "SELECT id, n, m FROM t WHERE id IN (1)"}, [2]string{one, one}},
		{"a join", analyzer.LostUpdate, []string{"SELECT a.n, o.v FROM t AS a LEFT JOIN other o ON o.id = a.id WHERE a.id = 1"},
			[2]string{one, one}},
		{"a sum", analyzer.LostUpdate, []string{"SELECT SUM(n) FROM t"}, [2]string{one, one}},
		{"a set of rows", analyzer.WriteSkew, []string{"SELECT id, n FROM t WHERE id IN (1, 2)"}, [2]string{one, two}},
	} {
		for _, level := range []string{"READ COMMITTED", "REPEATABLE READ"} {
			t.Run(tt.name+", "+level, func(t *testing.T) {
				b := newBench(t, nil, mysqlAdviceTables...)
				first, second := b.adviceConn(level), b.adviceConn(level)
				b.exec(first, append([]string{"BEGIN"}, tt.reads...)...)
				b.exec(second, append(append([]string{"BEGIN"}, tt.reads...), tt.writes[1], "COMMIT")...)
				b.exec(first, tt.writes[0], "COMMIT")
				locks := false
				for _, f := range b.analyze().Findings {
					locks = locks || f.Anomaly == tt.found && strings.Contains(strings.Join(f.Advice, "\n"), " FOR UPDATE`")
					for _, text := range f.Suggested {
						statement, err := b.direct.PrepareContext(t.Context(), text)
						if err != nil {
							t.Fatalf("the advice %q does not run: %v", text, err)
						}
						statement.Close()
					}
				}
				if !locks {
					t.Errorf("no %v is found that advises a lock", tt.found)
				}
				playLockedInMySQL(t, level, append([]string{tt.reads[0] + " FOR UPDATE"}, tt.reads[1:]...), tt.writes)
			})
		}
	}
}

// adviceConn is a connection at a level, where others' changes are no error.
func (b *bench) adviceConn(level string) *sql.Conn {
	c := b.conn(b.through)
	b.exec(c, "SET SESSION TRANSACTION ISOLATION LEVEL "+level)
	b.updatesCurrentRows(c)
	return c
}

// playLockedInMySQL has two transactions read and write at once, of which the second waits for the first one's lock.
func playLockedInMySQL(t *testing.T, level string, reads []string, writes [2]string) {
	b := newBench(t, nil, mysqlAdviceTables...)
	first, second := b.adviceConn(level), b.adviceConn(level)
	b.exec(first, append([]string{"BEGIN"}, reads...)...)
	done := make(chan error, 1)
	go func() {
		for _, s := range append(append([]string{"BEGIN"}, reads...), writes[1], "COMMIT") {
			if _, err := second.ExecContext(t.Context(), s); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	b.awaitLock()
	b.exec(first, writes[0], "COMMIT")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, f := range b.analyze().Findings {
		t.Errorf("%s with the lock that was advised: %v", f.Anomaly, f.Explanation)
	}
}

// awaitLock waits until a session of the database waits for a lock.
func (b *bench) awaitLock() {
	b.t.Helper()
	const waits = "SELECT trx_id FROM information_schema.INNODB_TRX x JOIN information_schema.PROCESSLIST p " +
		"ON p.ID = x.trx_mysql_thread_id WHERE x.trx_state = 'LOCK WAIT' AND p.DB = DATABASE()"
	for {
		var id string
		err := b.direct.QueryRowContext(b.t.Context(), waits).Scan(&id)
		if err == nil {
			return
		}
		if !errors.Is(err, sql.ErrNoRows) {
			b.t.Fatal(err)
		}
		time.Sleep(120 * time.Millisecond) // the server answers from a cache that it renews when nobody has asked for 100
	}
}
