package e2e

import (
	"database/sql"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/testdb"
)

// TestDeletionsPastIsotapAreKnownByTheLog has clients meet rows that somebody past isotap took away, made anew or gave
// another key.
func TestDeletionsPastIsotapAreKnownByTheLog(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	server := binlogServer(t)
	// Longer than the server is not asked where its log ends.
	pause := func() { time.Sleep(100 * time.Millisecond) }
	// settle has a client of isotap's commit: what stands in the log before that can be seen. MySQL tells no more.
	settle := func(b *bench) { b.exec(b.through, "UPDATE acc SET v = v + 1 WHERE id = 3") }
	// between has x read row 1, somebody past isotap write, and x read again.
	between := func(read string, past ...string) func(b *bench, x *sql.Conn) {
		return func(b *bench, x *sql.Conn) {
			b.exec(x, "UPDATE acc SET v = 150 WHERE id = 1", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
				"BEGIN", "SELECT v FROM acc WHERE id = 1")
			pause()
			b.exec(b.direct, past...)
			settle(b)
			pause()
			b.exec(x, read, "COMMIT")
		}
	}
	// before has x read row 1 before somebody past isotap defined the table anew, and after.
	before := func(past string) func(b *bench, x *sql.Conn) {
		return func(b *bench, x *sql.Conn) {
			b.exec(x, "UPDATE acc SET v = 150 WHERE id = 1", "SELECT v FROM acc WHERE id = 1")
			pause()
			b.exec(b.direct, past)
			settle(b)
			pause()
			b.exec(x, "BEGIN", "SELECT v FROM acc WHERE id = 1", "UPDATE acc SET v = 8 WHERE id = 1", "COMMIT")
		}
	}
	const first, second = "SELECT v FROM acc WHERE id = 1", "SELECT v FROM acc WHERE id = 2"
	for _, tt := range []struct {
		name string
		run  func(b *bench, x *sql.Conn)
		want analyzer.Anomaly // empty: none
		// unseen are reads of which it stays open what they saw, unlogged transactions of which it does what they did.
		unseen, unlogged int
	}{
		{"deleted", between(first, "DELETE FROM acc WHERE id = 1"), "", 0, 0},
		{"deleted, and another row written", between(second,
			"BEGIN; DELETE FROM acc WHERE id = 1; UPDATE acc SET v = 2 WHERE id = 2; COMMIT"), analyzer.ReadSkew, 0, 0},
		{"deleted and made anew", between(first,
			"BEGIN; DELETE FROM acc WHERE id = 1; INSERT INTO acc (id, v) VALUES (1, 7); COMMIT"), analyzer.ReadSkew, 0, 0},
		{"replaced", between(first, "REPLACE INTO acc (id, v) VALUES (1, 7)"), analyzer.ReadSkew, 0, 0},
		{"another key", between("SELECT v FROM acc WHERE id = 9", "UPDATE acc SET id = 9 WHERE id = 1"),
			analyzer.NonRepeatableRead, 0, 0},
		{"another key, and another row written", between(second,
			"BEGIN; UPDATE acc SET id = 9 WHERE id = 1; UPDATE acc SET v = 2 WHERE id = 2; COMMIT"), analyzer.ReadSkew, 0, 0},
		{"truncated", before("TRUNCATE acc; INSERT INTO acc (id, v) VALUES (1, 7)"), "", 0, 0},
		{"dropped", before("DROP TABLE acc; CREATE TABLE acc LIKE spare; INSERT INTO acc (id, v) VALUES (1, 7)"),
			"", 0, 0},
		{"cascade", func(b *bench, x *sql.Conn) {
			b.exec(x, "UPDATE child SET v = 150 WHERE id = 1", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
				"BEGIN", "SELECT v FROM child WHERE id = 1")
			pause()
			b.exec(b.direct, "BEGIN; DELETE FROM parent WHERE id = 1; UPDATE acc SET v = 2 WHERE id = 2; COMMIT")
			settle(b)
			pause()
			b.exec(x, second, "COMMIT")
		}, analyzer.ReadSkew, 0, 1},
		{"set null", func(b *bench, x *sql.Conn) {
			b.exec(x, "UPDATE orphan SET v = 150 WHERE id = 1", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
				"BEGIN", "SELECT v FROM orphan WHERE id = 1")
			pause()
			b.exec(b.direct, "BEGIN; DELETE FROM parent WHERE id = 1; COMMIT")
			settle(b)
			pause()
			b.exec(x, "SELECT v FROM orphan WHERE id = 1", "COMMIT", "UPDATE orphan SET v = 8 WHERE id = 1",
				"SELECT v FROM orphan WHERE id = 1")
		}, analyzer.NonRepeatableRead, 1, 1},
		{"serial", func(b *bench, x *sql.Conn) {
			b.exec(x, "UPDATE acc SET v = 150 WHERE id = 1")
			b.exec(b.direct, "DELETE FROM acc WHERE id = 1", "INSERT INTO acc (id, v) VALUES (1, 7)")
			settle(b)
			pause()
			b.exec(x, "BEGIN", first, "DELETE FROM acc WHERE id = 1", "COMMIT", "INSERT INTO acc (id, v) VALUES (1, 8)", first)
		}, "", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBinlogBench(t, server, "deleted", "CREATE TABLE acc (id INT PRIMARY KEY, v INT)",
				"INSERT INTO acc VALUES (1, 100), (2, 100), (3, 100)", "CREATE TABLE spare LIKE acc",
				"CREATE TABLE parent (id INT PRIMARY KEY)", "INSERT INTO parent VALUES (1), (2)",
				"CREATE TABLE child (id INT PRIMARY KEY, v INT, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
				"INSERT INTO child VALUES (1, 100, 1), (2, 100, 2)",
				"CREATE TABLE orphan (id INT PRIMARY KEY, v INT, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE SET NULL)",
				"INSERT INTO orphan VALUES (1, 100, 1), (2, 100, 2)")
			direct, err := sql.Open("mysql", server.DSN("deleted")+"?multiStatements=true")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { direct.Close() })
			b.direct = direct
			tt.run(b, b.conn(b.through))
			r := b.analyze()
			var found []analyzer.Anomaly
			for _, f := range r.Findings {
				found = append(found, f.Anomaly)
			}
			// MySQL logs what foreign keys do.
			if testdb.EngineName() != "mysql" && tt.unlogged > 0 {
				tt.want = "" // which rows the log does not say
			} else {
				tt.unlogged, tt.unseen = 0, 0
			}
			if len(found) > 1 || (len(found) == 1) != (tt.want != "") || len(found) > 0 && found[0] != tt.want {
				t.Errorf("findings %v instead of %q", found, tt.want)
			}
			if c := &r.Coverage; c.UnseenOrigins != tt.unseen || c.Log.Unlogged != tt.unlogged {
				t.Errorf("of %d reads it is open what they saw, of %d transactions what they wrote", c.UnseenOrigins,
					c.Log.Unlogged)
			}
		})
	}
}
