package e2e

import (
	"cmp"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

var loadTime = flag.Duration("load", 2*time.Second, "how long each load of TestHealthyServersAreNotAccused runs")

// loadSetup is a hot table, one beside it that a procedure and a cascade write unseen, and one to insert into.
var loadSetup = []string{
	"CREATE TABLE hot (id INT PRIMARY KEY, v INT NOT NULL, g INT NOT NULL, u INT UNIQUE, KEY (g))",
	"CREATE TABLE child (id INT PRIMARY KEY, hot INT, v INT NOT NULL DEFAULT 0, KEY (hot))",
	"CREATE TABLE log (id INT AUTO_INCREMENT PRIMARY KEY, hot INT, v INT)",
	"CREATE PROCEDURE unseen(x INT) UPDATE hot SET v = v + 1000 WHERE id = x",
}

const hotRows = 50

// A way is how isotap is started, otherwise than usually.
type way struct {
	name   string
	change func(*proxyserver.Options) // nil: as usually
}

// inLittleMemory has most transactions reach their bound on their way.
func inLittleMemory(o *proxyserver.Options) { o.TxnMemory = 1500 }

// TestHealthyServersAreNotAccused runs clients over a hot table at each level, and at all levels at once.
// What they do to each other are hazards, as far as the level permits them: nothing is the server's fault.
func TestHealthyServersAreNotAccused(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	predicates, little := way{" in mode predicates", inModePredicates}, way{" in little memory", inLittleMemory}
	both := way{" in mode predicates, in little memory",
		func(o *proxyserver.Options) { inModePredicates(o); inLittleMemory(o) }}
	for i, c := range []struct {
		level string
		way
	}{{"READ UNCOMMITTED", way{}}, {"READ COMMITTED", way{}}, {"REPEATABLE READ", way{}}, {"SERIALIZABLE", way{}},
		{"", way{}},
		{"REPEATABLE READ", predicates}, {"SERIALIZABLE", predicates}, {"", predicates},
		{"REPEATABLE READ", little}, {"SERIALIZABLE", little}, {"", little}, {"SERIALIZABLE", both}} {
		level, name := c.level, cmp.Or(c.level, "mixed")+c.name
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.change, loadSetup...)
			for id := range hotRows {
				b.exec(b.through, fmt.Sprintf("INSERT INTO hot VALUES (%d, 0, %d, %d)", id, id%7, id),
					fmt.Sprintf("INSERT INTO child (id, hot) VALUES (%d, %d)", id, id))
			}
			db := b.open("multiStatements=true")
			ctx, stop := context.WithTimeout(t.Context(), *loadTime)
			defer stop()
			var clients sync.WaitGroup
			for c := range 8 {
				clients.Go(func() { hammer(ctx, b.t, db, rand.New(rand.NewPCG(uint64(i), uint64(c))), level) })
			}
			clients.Wait()
			db.Close()
			b.stop()
			r, err := analysis.Analyze(t.Context(), []string{b.recording}, analyzer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Findings {
				if f.Class == analyzer.Violation {
					t.Errorf("%s x%d: %v\n%s", f.Anomaly, f.Count, f.Explanation, f.Rule)
				}
				if level == history.Serializable.String() {
					t.Errorf("%s x%d at SERIALIZABLE: %v", f.Anomaly, f.Count, f.Explanation)
				}
			}
			t.Logf("%d transactions, %d committed; %d findings", r.Coverage.Txns, r.Coverage.Committed, len(r.Findings))
			for _, f := range r.Findings[:min(len(r.Findings), 12)] {
				t.Logf("  %s %s x%d", f.Class, f.Anomaly, f.Count)
			}
		})
	}
}

// hammer runs transactions until the time is over. What the server refuses is rolled back.
func hammer(ctx context.Context, t *testing.T, db *sql.DB, r *rand.Rand, level string) {
	c, err := db.Conn(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	exec := func(query string) bool {
		_, err := c.ExecContext(ctx, query)
		return err == nil
	}
	exec("SET innodb_lock_wait_timeout = 1")
	levels := []string{"READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}
	for ctx.Err() == nil {
		if level == "" {
			scope := []string{"SET SESSION", "SET"}[r.IntN(2)]
			exec(scope + " TRANSACTION ISOLATION LEVEL " + levels[r.IntN(4)])
		} else {
			exec("SET SESSION TRANSACTION ISOLATION LEVEL " + level)
		}
		if r.IntN(5) == 0 {
			exec(loadStmt(r))
			continue
		}
		begin := []string{"BEGIN", "BEGIN", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "SET autocommit = 0",
			"START TRANSACTION READ ONLY"}[r.IntN(5)]
		exec(begin)
		if begin == "SET autocommit = 0" && r.IntN(2) == 0 { // what is not recorded takes the snapshot
			exec(fmt.Sprintf("EXPLAIN SELECT v FROM hot WHERE id = %d", r.IntN(hotRows)))
			time.Sleep(10 * time.Millisecond)
		}
		ok := true
		for range 1 + r.IntN(5) {
			if ok = exec(loadStmt(r)); !ok {
				break
			}
			if r.IntN(9) == 0 {
				exec("SAVEPOINT a")
				exec(loadStmt(r))
				exec([]string{"ROLLBACK TO a", "RELEASE SAVEPOINT a"}[r.IntN(2)])
			}
		}
		if ok && r.IntN(6) > 0 {
			exec("COMMIT")
		} else {
			exec("ROLLBACK")
		}
		exec("SET autocommit = 1")
	}
}

// loadStmt makes up a statement over the hot rows.
func loadStmt(r *rand.Rand) string {
	id := func() int { return r.IntN(hotRows) }
	one, two := id(), id()
	switch r.IntN(26) {
	case 0, 1, 2, 3:
		return fmt.Sprintf("SELECT id, v FROM hot WHERE id = %d", one)
	case 4:
		return fmt.Sprintf("SELECT * FROM hot WHERE id IN (%d, %d)", one, two)
	case 5:
		return fmt.Sprintf("SELECT h.v, c.v FROM hot h JOIN child c ON c.hot = h.id WHERE h.id = %d", one)
	case 6:
		return fmt.Sprintf("SELECT v FROM hot WHERE id = %d FOR UPDATE", one)
	case 7:
		return fmt.Sprintf("SELECT v FROM hot WHERE id = %d LOCK IN SHARE MODE", one)
	case 8, 9, 10:
		return fmt.Sprintf("UPDATE hot SET v = v + 1 WHERE id = %d", one)
	case 11:
		return fmt.Sprintf("UPDATE hot SET v = %d WHERE id = %d", r.IntN(3), one)
	case 12:
		return fmt.Sprintf("UPDATE hot SET v = %d WHERE g = %d AND v < 5", r.IntN(3), r.IntN(7))
	case 13:
		return fmt.Sprintf("DELETE FROM hot WHERE id = %d", one)
	case 14:
		return fmt.Sprintf("INSERT INTO hot VALUES (%d, 0, %d, %d)", one, one%7, one)
	case 15:
		return fmt.Sprintf("INSERT INTO hot VALUES (%d, 0, %d, %d) ON DUPLICATE KEY UPDATE v = v + 1", one, one%7, one)
	case 16:
		return fmt.Sprintf("REPLACE INTO hot VALUES (%d, 0, %d, %d)", one, one%7, two)
	case 17:
		return fmt.Sprintf("INSERT INTO log (hot, v) SELECT id, v FROM hot WHERE id IN (%d, %d)", one, two)
	case 18:
		return "SELECT DISTINCT g FROM hot"
	case 19:
		return "SELECT g, SUM(v) FROM hot GROUP BY g"
	case 20:
		return fmt.Sprintf("SELECT v FROM hot WHERE id = %d UNION SELECT v FROM hot WHERE id = %d", one, two)
	case 21:
		return fmt.Sprintf("SELECT v FROM hot WHERE id = %d; UPDATE child SET v = v + 1 WHERE hot = %d; "+
			"SELECT v FROM hot WHERE id = %d", one, one, two)
	case 22:
		return fmt.Sprintf("CALL unseen(%d)", one)
	case 23:
		return fmt.Sprintf("UPDATE hot h JOIN child c ON c.hot = h.id SET h.v = h.v + 1, c.v = h.v WHERE h.id = %d",
			one)
	case 24:
		return fmt.Sprintf("INSERT IGNORE INTO hot VALUES (%d, 1, %d, %d)", one, one%7, two)
	default:
		return fmt.Sprintf("DELETE FROM log WHERE hot = %d LIMIT 2", one)
	}
}

// TestWhatAProcedureWroteIsNoBrokenSnapshot has a transaction see a version that is not in its snapshot,
// below what a procedure that it called wrote without a tag.
func TestWhatAProcedureWroteIsNoBrokenSnapshot(t *testing.T) {
	b := newBench(t, nil, append(loadSetup, "INSERT INTO hot VALUES (1,0,0,1),(2,0,0,2)")...)
	one, two := b.conn(b.through), b.conn(b.through)
	b.exec(one, "SET innodb_lock_wait_timeout = 2")
	if testdb.EngineName() != testdb.MySQL.Name {
		b.exec(one, "SET innodb_snapshot_isolation = OFF")
	}
	b.exec(one, "BEGIN", "SELECT v FROM hot WHERE id = 1")
	b.exec(two, "UPDATE hot SET v = 7 WHERE id IN (1, 2)")
	b.exec(one, "CALL unseen(2)", "SELECT v FROM hot WHERE id = 2", "COMMIT")
	b.stop()
	r, err := analysis.Analyze(t.Context(), []string{b.recording}, analyzer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || r.Findings[0].Anomaly != analyzer.ReadSkew || r.Findings[0].Class != analyzer.Hazard {
		t.Errorf("findings %+v, want the read skew as a hazard", r.Findings)
	}
}
