package e2e

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/recorder"
)

// TestRecordedWritesAreThoseInTheTable lets clients do what clients do (roll back, run into each other,
// get killed, hang up in the middle), and then holds the recording against the tables: a row's list
// names every committed write of the row in order, and nothing else.
func TestRecordedWritesAreThoseInTheTable(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, durability := range []recorder.Durability{recorder.Relaxed, recorder.Commit} {
		t.Run(durability.String(), func(t *testing.T) {
			b := newBench(t, func(o *proxyserver.Options) { o.Durability = durability },
				"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT, s VARCHAR(20), u INT UNIQUE)",
				"INSERT INTO t (v, s) VALUES (0,'a'),(0,'b'),(0,'c'),(0,'d'),(0,'e'),(0,'f'),(0,'g'),(0,'h')")
			b.setGlobal("innodb_lock_wait_timeout", 1)
			var clients sync.WaitGroup
			for i := range 6 {
				parameters := []string{"", "interpolateParams=true", "clientFoundRows=true"}[i%3]
				clients.Go(func() { b.misbehave(b.open(parameters), rand.New(rand.NewPCG(7, uint64(i)))) })
			}
			clients.Wait()
			rows := b.lists("t")
			if len(rows) < 8 {
				t.Fatalf("%d rows are left", len(rows))
			}
			holdAgainst(t, b.txns(), rows)
		})
	}
}

// misbehave runs transactions on connections of db, for a few seconds.
func (b *bench) misbehave(db *sql.DB, r *rand.Rand) {
	db.SetMaxIdleConns(1)
	for range 60 {
		ctx, hangUp := context.WithCancel(b.t.Context())
		c, err := db.Conn(ctx)
		if err != nil {
			hangUp()
			continue
		}
		c.ExecContext(ctx, "SET SESSION innodb_lock_wait_timeout = 1")
		if r.IntN(12) == 0 {
			time.AfterFunc(time.Duration(r.IntN(4000))*time.Microsecond, hangUp)
		}
		if r.IntN(12) == 0 {
			var id int
			if c.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id) == nil {
				kill := []string{"KILL QUERY %d", "KILL CONNECTION %d"}[r.IntN(2)]
				time.AfterFunc(time.Duration(r.IntN(4000))*time.Microsecond,
					func() { b.direct.Exec(fmt.Sprintf(kill, id)) })
			}
		}
		explicit := r.IntN(3) > 0
		if explicit {
			c.ExecContext(ctx, "BEGIN")
		}
		for range 1 + r.IntN(5) {
			write(ctx, c, r)
		}
		if explicit {
			c.ExecContext(ctx, []string{"COMMIT", "COMMIT", "ROLLBACK", "CREATE OR REPLACE TEMPORARY TABLE tmp (x INT)",
				"LOCK TABLES t WRITE"}[r.IntN(5)])
			c.ExecContext(ctx, "COMMIT")
			if _, err := c.ExecContext(ctx, "UNLOCK TABLES"); err != nil {
				// The pool would keep a connection that has the table locked, and the others wait for good.
				c.Raw(func(any) error { return driver.ErrBadConn })
			}
		}
		c.Close()
		hangUp()
	}
}

// write runs one statement, which may well fail.
func write(ctx context.Context, c *sql.Conn, r *rand.Rand) {
	id, n := 1+r.IntN(10), r.IntN(3)
	switch r.IntN(14) {
	case 0:
		c.ExecContext(ctx, "UPDATE t SET v = ? WHERE id = ?", n, id)
	case 1:
		c.ExecContext(ctx, "UPDATE t SET v = v + 1 WHERE id <= ?", id)
	case 2:
		c.ExecContext(ctx, "UPDATE t SET v = ? WHERE id >= ? ORDER BY id DESC LIMIT 3", n, id)
	case 3:
		c.ExecContext(ctx, "UPDATE t SET u = ? WHERE id = ?", n, id) // duplicate key
	case 4:
		c.ExecContext(ctx, "UPDATE IGNORE t SET u = v WHERE id <= 4")
	case 5:
		c.ExecContext(ctx, "INSERT INTO t (v, u) VALUES (?, NULL), (?, ?)", n, n, r.IntN(20))
	case 6:
		c.ExecContext(ctx, "INSERT IGNORE INTO t (v, u) VALUES (1, ?), (2, ?)", n, n+1)
	case 7:
		c.ExecContext(ctx, "DELETE FROM t WHERE id > 8 AND v = ?", n)
	case 8:
		c.ExecContext(ctx, "UPDATE t SET s = CONCAT('x', SLEEP(0.002)) WHERE id IN (?, ?)", id, id+1)
	case 9:
		c.ExecContext(ctx, "SAVEPOINT a")
		c.ExecContext(ctx, "UPDATE t SET v = v - 1 WHERE id = ?", id)
		c.ExecContext(ctx, "ROLLBACK TO a")
	case 10:
		c.ExecContext(ctx, "UPDATE t SET id = id + 1000 WHERE id > 8 LIMIT 1")
	case 11:
		time.Sleep(time.Duration(r.IntN(3)) * 100 * time.Millisecond)
	default:
		rows, err := c.QueryContext(ctx, "SELECT * FROM t WHERE id < ?", id)
		if err == nil {
			rows.Close()
		}
	}
}

// TestRandomStatementsAreRecordedTruly holds the recording of random sessions that run side by side
// against the tables.
func TestRandomStatementsAreRecordedTruly(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for name, change := range map[string]func(*proxyserver.Options){"items": nil, "predicates": inModePredicates} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // what takes the time is waiting for locks
			recordTruly(t, newBench(t, change, mirrorTables...))
		})
	}
}

func recordTruly(t *testing.T, b *bench) {
	t.Helper()
	b.setGlobal("innodb_lock_wait_timeout", 1)
	statements := rapid.Custom(drawStatement)
	var clients sync.WaitGroup
	for i := range 4 {
		db := b.open("multiStatements=true")
		clients.Go(func() {
			c, err := db.Conn(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for n := range 120 {
				if s := statements.Example(i*1000 + n); !strings.HasPrefix(s.text, "TRUNCATE") {
					s.runOn(t.Context(), c)
				}
			}
		})
	}
	clients.Wait()
	holdAgainst(t, b.txns(), b.lists("t1", "t2", "t3"))
}

// runOn runs the statement, which may well fail, and reads all that it gives.
func (s *randomStatement) runOn(ctx context.Context, c *sql.Conn) {
	var params []any
	if s.prepared {
		params = s.params
	}
	rows, err := c.QueryContext(ctx, s.text, params...)
	if err != nil {
		return
	}
	defer rows.Close()
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
		}
	}
}

// lists returns the isotap_wlist of every row of the tables, by row id.
func (b *bench) lists(tables ...string) map[string]string {
	b.t.Helper()
	lists := make(map[string]string)
	for _, table := range tables {
		b.addLists(lists, table)
	}
	return lists
}

func (b *bench) addLists(lists map[string]string, table string) {
	b.t.Helper()
	rows, err := b.direct.Query("SELECT isotap_rowid, isotap_wlist FROM " + table + " WHERE isotap_rowid IS NOT NULL")
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, list string
		if err := rows.Scan(&id, &list); err != nil {
			b.t.Fatal(err)
		}
		lists[id] = list
	}
}

// holdAgainst compares the recorded writes with the rows' lists.
func holdAgainst(t *testing.T, txns []*history.Txn, rows map[string]string) {
	t.Helper()
	status := make(map[history.TxnID]history.Status)
	replaced := make(map[string]map[history.Tag]history.Tag) // by row and tag: the version that the tag's write met
	inexact, writes, byStatus := make(map[history.Tag]bool), 0, make(map[history.Status]int)
	for _, txn := range txns {
		status[txn.ID] = txn.Status
		byStatus[txn.Status]++
		for _, s := range txn.Stmts {
			tag := history.Tag{Txn: txn.ID, Stmt: s.Num}
			inexact[tag] = s.Observation != history.Exact || s.Void
			for _, a := range s.Accesses {
				if a.Op == history.Read || a.Inexact || s.Void {
					continue
				}
				writes++
				if replaced[a.Row.ID] == nil {
					replaced[a.Row.ID] = make(map[history.Tag]history.Tag)
				}
				replaced[a.Row.ID][tag] = a.Version
				list, there := rows[a.Row.ID]
				mark := "," + tag.String() + ","
				switch {
				case txn.Status == history.Committed && a.Op == history.DeleteRow && there:
					t.Errorf("%v deleted row %s, which is there", tag, a.Row.ID)
				case txn.Status == history.Committed && there && !strings.Contains(","+list+",", mark):
					t.Errorf("%v wrote row %s (%v), whose list is %s", tag, a.Row.ID, a.Op, list)
				case txn.Status == history.Aborted && strings.Contains(","+list+",", mark):
					t.Errorf("%v is aborted, and is in the list of row %s", tag, a.Row.ID)
				}
			}
		}
	}
	for id, list := range rows {
		tags, err := history.ParseWList(list)
		if err != nil {
			t.Fatal(err)
		}
		for i, tag := range tags {
			if tag.Initial() {
				continue
			}
			if s, known := status[tag.Txn]; !known || s == history.Aborted {
				t.Errorf("row %s carries %v, whose transaction is recorded: %t, %v", id, tag, known, s)
			}
			if inexact[tag] {
				continue
			}
			version, known := replaced[id][tag]
			if !known {
				t.Errorf("row %s carries %v, whose statement is exact and has no such write", id, tag)
			} else if i > 0 && version != tags[i-1] {
				t.Errorf("row %s: %v replaced %v, recorded is %v", id, tag, tags[i-1], version)
			}
		}
	}
	t.Logf("%d transactions %v, %d certain writes, %d rows", len(txns), byStatus, writes, len(rows))
	if t.Failed() {
		t.Logf("the recording:\n%s", story(txns))
	}
}
