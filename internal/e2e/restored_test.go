package e2e

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/internal/monitor"
	"github.com/isotap/isotap/internal/proxyserver"
)

var (
	restoredSeed = flag.Uint64("restored.seed", 1, "seed of TestSerialClientThatRestoresIsNeverAccused's first run")
	restoredRuns = flag.Int("restored.runs", 6, "how many runs it makes")
)

// dumpOf returns the statements that a dump of a table has: with isotap's columns, which dumps write by their names.
func (b *bench) dumpOf(table string) []string {
	b.t.Helper()
	var name, create string
	if err := b.direct.QueryRowContext(b.t.Context(), "SHOW CREATE TABLE "+table).Scan(&name, &create); err != nil {
		b.t.Fatal(err)
	}
	return append([]string{"DROP TABLE IF EXISTS " + table, create, "LOCK TABLES " + table + " WRITE",
		"ALTER TABLE " + table + " DISABLE KEYS"},
		append(b.rowsOf(table), "ALTER TABLE "+table+" ENABLE KEYS", "UNLOCK TABLES")...)
}

// rowsOf returns the INSERTs of a dump.
func (b *bench) rowsOf(table string) (inserts []string) {
	b.t.Helper()
	rows, err := b.direct.QueryContext(b.t.Context(), "SELECT id, v, HEX(isotap_rowid), HEX(isotap_wlist) FROM "+table)
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, v int
		var rowID, wList string
		if err := rows.Scan(&id, &v, &rowID, &wList); err != nil {
			b.t.Fatal(err)
		}
		inserts = append(inserts, fmt.Sprintf(
			"INSERT INTO %s (id, v, isotap_rowid, isotap_wlist) VALUES (%d, %d, 0x%s, 0x%s)", table, id, v, rowID, wList))
	}
	return inserts
}

// TestRestoredDumpsAreNoLostWrites has one client go on over what dumps brought back, three times: the rows carry the
// tags that they had, of versions that were overwritten since.
func TestRestoredDumpsAreNoLostWrites(t *testing.T) {
	for _, through := range []bool{false, true} {
		for _, level := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
			t.Run(fmt.Sprintf("through isotap %v at %s", through, level), func(t *testing.T) {
				b := newBench(t, nil, "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
				c := b.conn(b.through)
				b.exec(c, "SET SESSION TRANSACTION ISOLATION LEVEL "+level, "INSERT INTO t VALUES (1, 0), (2, 0)",
					"UPDATE t SET v = v + 1")
				dump := b.dumpOf("t")
				restoring := b.conn(b.direct)
				if through {
					restoring = b.conn(b.through)
				}
				for range 3 {
					b.exec(c, "BEGIN", "SELECT * FROM t", "UPDATE t SET v = v + 1", "COMMIT")
					b.exec(restoring, dump...)
					b.exec(c, "SELECT * FROM t")
				}
				c.Close()
				restoring.Close()
				noFindings(t, b.analyze(), "")
			})
		}
	}
}

// TestTablesMadeThroughIsotapMayBeRestoredPastIt has a dump restored past isotap of a table that a client made.
func TestTablesMadeThroughIsotapMayBeRestoredPastIt(t *testing.T) {
	b := newBench(t, nil)
	c := b.conn(b.through)
	b.exec(c, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 0), (2, 0)",
		"UPDATE t SET v = v + 1")
	dump := b.dumpOf("t")
	time.Sleep(3 * time.Second) // the server tells seconds
	restoring := b.conn(b.direct)
	b.exec(c, "BEGIN", "SELECT * FROM t", "UPDATE t SET v = v + 1", "COMMIT")
	b.exec(restoring, dump...)
	b.exec(c, "SELECT * FROM t", "BEGIN", "SELECT * FROM t", "UPDATE t SET v = v + 1", "COMMIT")
	c.Close()
	restoring.Close()
	noFindings(t, b.analyze(), "")
}

// TestRowsPutBackPastIsotapAreOfUnknownOrigin has one client go on over rows that somebody past isotap deletes and
// inserts again with the columns of isotap's that he saved: in the end, and while isotap watches.
func TestRowsPutBackPastIsotapAreOfUnknownOrigin(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, level := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
		for name, put := range map[string]func(b *bench, saved, dump []string) []string{
			"inserted": func(_ *bench, saved, _ []string) []string { return append([]string{"DELETE FROM t"}, saved...) },
			"replaced": func(_ *bench, saved, _ []string) (replace []string) {
				for _, s := range saved {
					replace = append(replace, strings.Replace(s, "INSERT", "REPLACE", 1))
				}
				return replace
			},
			"restored behind a TRUNCATE": func(_ *bench, _, dump []string) []string { return dump },
			"of another row": func(*bench, []string, []string) []string {
				return []string{"REPLACE INTO t (id, v, isotap_rowid, isotap_wlist) " +
					"SELECT id + 10, v, isotap_rowid, isotap_wlist FROM t WHERE id < 10"}
			},
		} {
			t.Run(name+" at "+level, func(t *testing.T) {
				b := newBench(t, func(o *proxyserver.Options) { o.Watch = &monitor.Options{Every: 20 * time.Millisecond} },
					"CREATE TABLE t (id INT PRIMARY KEY, v INT)")
				c := b.conn(b.through)
				b.exec(c, "SET SESSION TRANSACTION ISOLATION LEVEL "+level)
				if strings.Contains(name, "TRUNCATE") {
					b.exec(c, "INSERT INTO t VALUES (1, 7), (3, 7)", "UPDATE t SET v = v + 1", "TRUNCATE t")
				}
				b.exec(c, "INSERT INTO t VALUES (1, 0), (2, 0)", "UPDATE t SET v = v + 1")
				saved, dump := b.rowsOf("t"), b.dumpOf("t")
				restoring := b.conn(b.direct)
				for range 3 {
					b.exec(c, "BEGIN", "SELECT * FROM t", "UPDATE t SET v = v + 1", "COMMIT", "UPDATE t SET v = v + 1",
						"SELECT * FROM t")
					b.exec(restoring, put(b, saved, dump)...)
					b.exec(c, "SELECT * FROM t", "UPDATE t SET v = v + 1 WHERE id = 1", "SELECT v FROM t WHERE id = 1")
				}
				b.exec(c, "DELETE FROM t")
				b.exec(restoring, saved...)
				b.exec(c, "SELECT * FROM t", "UPDATE t SET v = v + 1", "SELECT * FROM t")
				c.Close()
				restoring.Close()
				noFindings(t, b.analyze(), "")
				noFindings(t, b.srv.Watched(), " while watched")
			})
		}
	}
}

// TestRowsPutBackWithinATransactionAreNoLostWrites has somebody past isotap put rows back between the statements of a
// client's transaction, and rename the table behind that.
func TestRowsPutBackWithinATransactionAreNoLostWrites(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	for _, level := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
		for _, how := range []string{"insert", "replace", "rename"} {
			t.Run(how+" "+level, func(t *testing.T) {
				b := newBench(t, func(o *proxyserver.Options) { o.Watch = &monitor.Options{Every: 20 * time.Millisecond} },
					"CREATE TABLE t (id INT PRIMARY KEY, v INT)", "CREATE TABLE u (id INT PRIMARY KEY, v INT)")
				c := b.conn(b.through)
				b.exec(c, "SET SESSION TRANSACTION ISOLATION LEVEL "+level)
				b.exec(c, "INSERT INTO t VALUES (1, 0), (2, 0)", "UPDATE t SET v = v + 1")
				saved := b.rowsOf("t")
				restoring := b.conn(b.direct)
				b.exec(restoring, "SET SESSION lock_wait_timeout = 1, innodb_lock_wait_timeout = 1")
				put := func() { b.putBack(restoring, how == "replace", saved) }
				for range 2 {
					b.exec(c, "UPDATE t SET v = v + 1", "BEGIN", "SELECT * FROM t")
					put()
					b.exec(c, "SELECT * FROM t", "UPDATE t SET v = v + 1", "SELECT * FROM t", "COMMIT", "SELECT * FROM t")
					b.exec(c, "BEGIN", "SELECT * FROM u")
					put()
					b.exec(c, "SELECT * FROM t", "UPDATE t SET v = v + 1", "COMMIT", "SELECT * FROM t")
					if how == "rename" {
						put()
						b.exec(restoring, "RENAME TABLE t TO w, u TO t, w TO u")
						b.exec(c, "SELECT * FROM u", "UPDATE u SET v = v + 1", "SELECT * FROM u")
						b.exec(restoring, "RENAME TABLE t TO w, u TO t, w TO u")
						b.exec(c, "SELECT * FROM t")
					}
				}
				c.Close()
				restoring.Close()
				noFindings(t, b.analyze(), "")
				noFindings(t, b.srv.Watched(), " while watched")
			})
		}
	}
}

// putBack puts rows back in a transaction, unless a client's locks forbid it.
func (b *bench) putBack(c *sql.Conn, replace bool, inserts []string) {
	statements := slices.Concat([]string{"BEGIN", "DELETE FROM t"}, inserts, []string{"COMMIT"})
	if replace {
		statements = nil
		for _, s := range inserts {
			statements = append(statements, strings.Replace(s, "INSERT", "REPLACE", 1))
		}
	}
	for _, s := range statements {
		if _, err := c.ExecContext(b.t.Context(), s); err != nil {
			b.exec(c, "ROLLBACK")
			return
		}
	}
}

// TestNothingIsPutBackWhereAllGoesThroughIsotap: the server then counts as many statements that insert as isotap does.
func TestNothingIsPutBackWhereAllGoesThroughIsotap(t *testing.T) {
	for _, past := range []bool{false, true} {
		b := newBench(t, nil, "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
		c := b.conn(b.through)
		b.exec(c, "INSERT INTO t VALUES (1, 0)", "BEGIN", "REPLACE INTO t VALUES (1, 2), (2, 3)",
			"INSERT IGNORE INTO t SELECT 5, 6", "ROLLBACK")
		c.ExecContext(t.Context(), "INSERT INTO t VALUES (1, 0)") // there is one
		if _, err := c.ExecContext(t.Context(), "INSERT INTO t VALUES (?, 0)", 9); err != nil {
			t.Fatal(err)
		}
		if past {
			b.exec(b.direct, "INSERT INTO t VALUES (10, 0)")
		}
		c.Close()
		if got := b.runs()[0].PutBack; got != past {
			t.Errorf("with an INSERT past isotap %t: rows may have been put back: %t", past, got)
		}
	}
}

// A restorer writes what one client may do that changes rows and puts back what it saved.
type restorer struct {
	*rand.Rand
	b     *bench
	saved map[string][][]string // dumps by table
}

func (w *restorer) oneOf(texts ...string) string { return texts[w.IntN(len(texts))] }

func (w *restorer) use() string {
	table, id := w.oneOf("t", "u"), w.IntN(4)
	switch w.IntN(8) {
	case 0, 1:
		return fmt.Sprintf("INSERT IGNORE INTO %s (id, v) VALUES (%d, 0)", table, id)
	case 2:
		return fmt.Sprintf("DELETE FROM %s WHERE id = %d", table, id)
	case 3, 4:
		return fmt.Sprintf("UPDATE %s SET v = v + 1 WHERE id <> %d", table, id)
	case 5:
		return fmt.Sprintf("SELECT * FROM %s WHERE id = %d FOR UPDATE", table, id)
	}
	return fmt.Sprintf("SELECT * FROM %s WHERE id <> %d", table, id)
}

// transaction returns one of the client's, from its beginning to its end.
func (w *restorer) transaction() []string {
	if w.IntN(4) == 0 {
		return []string{w.use()}
	}
	statements := []string{"BEGIN"}
	for range 1 + w.IntN(4) {
		if w.IntN(6) == 0 {
			statements = append(statements, "SAVEPOINT s", w.use(), w.oneOf("ROLLBACK TO s", "RELEASE SAVEPOINT s"))
			continue
		}
		statements = append(statements, w.use())
	}
	return append(statements, w.oneOf("COMMIT", "COMMIT", "COMMIT", "ROLLBACK"))
}

// restoring returns what puts a table back to what it was, or empties it, or has two tables take each other's names.
func (w *restorer) restoring() []string {
	table := w.oneOf("t", "u")
	if len(w.saved[table]) == 0 || w.IntN(3) == 0 {
		w.saved[table] = append(w.saved[table], w.b.dumpOf(table))
	}
	dump := w.saved[table][w.IntN(len(w.saved[table]))]
	inserts := dump[4 : len(dump)-2]
	switch w.IntN(7) {
	case 0:
		return append([]string{"TRUNCATE " + table}, inserts...)
	case 1:
		return append([]string{"DELETE FROM " + table}, inserts...)
	case 2:
		replaces := []string{"BEGIN"}
		for _, s := range inserts {
			replaces = append(replaces, strings.Replace(s, "INSERT", "REPLACE", 1))
		}
		return append(replaces, w.oneOf("COMMIT", "ROLLBACK"))
	case 3:
		return []string{"TRUNCATE TABLE " + table}
	case 4:
		return []string{"RENAME TABLE t TO z, u TO t, z TO u"}
	case 5:
		return append(append([]string{"BEGIN", w.use(), "DELETE FROM " + table}, inserts...), w.use(), "COMMIT")
	}
	return dump
}

// TestSerialClientThatRestoresIsNeverAccused has two connections take turns, transaction after transaction: whatever is
// put back in between, nothing can go wrong between the transactions.
func TestSerialClientThatRestoresIsNeverAccused(t *testing.T) {
	for seed := *restoredSeed; seed < *restoredSeed+uint64(*restoredRuns); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			b := newBench(t, nil, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "CREATE TABLE u (id INT PRIMARY KEY, v INT)")
			w := &restorer{rand.New(rand.NewPCG(seed, 15)), b, map[string][][]string{}}
			level := w.oneOf("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
			clients, past := []*sql.Conn{b.conn(b.through), b.conn(b.through)}, b.conn(b.direct)
			var told strings.Builder
			for _, c := range clients {
				b.exec(c, "SET SESSION TRANSACTION ISOLATION LEVEL "+level)
			}
			for range 60 {
				i, statements := w.IntN(len(clients)), w.transaction()
				if w.IntN(6) == 0 {
					statements = w.restoring()
				}
				c := clients[i]
				if w.IntN(8) == 0 {
					c, statements = past, w.restoring()
				}
				for _, s := range statements {
					_, err := c.ExecContext(context.Background(), s)
					fmt.Fprintf(&told, "\n%d: %s: %v", i, s, err)
				}
			}
			for _, c := range clients {
				c.Close()
			}
			noFindings(t, b.analyze(), told.String())
		})
	}
}
