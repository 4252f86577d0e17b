package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/analyzer"
)

var (
	postgresSwapSeed = flag.Uint64("postgresswap.seed", 1,
		"seed of TestSerialPostgreSQLClientThatSwapsIsNeverAccused's first run")
	postgresSwapRuns = flag.Int("postgresswap.runs", 6, "how many runs it makes")
)

// noFindings fails the test for each finding.
func noFindings(t *testing.T, r *analyzer.Result, told string) {
	t.Helper()
	for _, f := range r.Findings {
		t.Errorf("%s: %v%s", f.Anomaly, f.Explanation, told)
	}
}

// TestTablesSwappedOutAndBackAreThemselves has one client change rows of tables and partitions that take each other's
// names and places, and come back: a table is what it was, whatever it is called.
func TestTablesSwappedOutAndBackAreThemselves(t *testing.T) {
	const place = " FOR VALUES FROM (0) TO (3); COMMIT"
	const swapIn = "BEGIN; ALTER TABLE t DETACH PARTITION a; ALTER TABLE t ATTACH PARTITION b" + place
	const swapBack = "BEGIN; ALTER TABLE t DETACH PARTITION b; ALTER TABLE t ATTACH PARTITION a" + place
	const rename = "BEGIN; ALTER TABLE t RENAME TO z; ALTER TABLE b RENAME TO t; ALTER TABLE z RENAME TO b; COMMIT"
	const update, read = "UPDATE t SET v = v + 1 WHERE id = 1", "SELECT v FROM t WHERE id = 1"
	for _, tt := range []struct {
		name  string
		setup []string
		there string
		back  string
	}{
		{"partitions", []string{"CREATE TABLE t (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)",
			"CREATE TABLE a PARTITION OF t FOR VALUES FROM (0) TO (3)", "CREATE TABLE b (id int PRIMARY KEY, v int)"},
			swapIn, swapBack},
		{"names", []string{"CREATE TABLE t (id int PRIMARY KEY, v int)", "CREATE TABLE b (id int PRIMARY KEY, v int)"},
			rename, rename},
		{"partitions without a key", []string{"CREATE TABLE t (id int, v int) PARTITION BY RANGE (id)",
			"CREATE TABLE a PARTITION OF t FOR VALUES FROM (0) TO (3)", "CREATE TABLE b (id int, v int)"}, swapIn, swapBack},
		{"names without a key", []string{"CREATE TABLE t (id int, v int)", "CREATE TABLE b (id int, v int)"}, rename, rename},
	} {
		for _, level := range []string{"read committed", "repeatable read", "serializable"} {
			t.Run(tt.name+" at "+level, func(t *testing.T) {
				b := newPostgresBench(t)
				c := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol, "default_transaction_isolation", level)
				b.exec(c, tt.setup...)
				b.exec(c, "INSERT INTO t VALUES (1, 0)", "INSERT INTO b VALUES (1, 7)", update, tt.there, update, tt.back,
					"BEGIN", read, update, "COMMIT", tt.there, "BEGIN", read, update, "COMMIT")
				noFindings(t, b.analyze(), "")
			})
		}
	}
}

// A postgresSwapper writes what one client may do that reads, writes, and has tables take each other's names and
// places.
type postgresSwapper struct{ *rand.Rand }

func (w *postgresSwapper) oneOf(texts ...string) string { return texts[w.IntN(len(texts))] }

// postgresSwapTables are the tables of the swapper: a partitioned one, one that would fit into it, two of a kind, one
// that inherits, and two without a key.
var postgresSwapTables = []string{"CREATE SCHEMA s",
	"CREATE TABLE t (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)",
	"CREATE TABLE a PARTITION OF t FOR VALUES FROM (0) TO (3)",
	"CREATE TABLE b (id int PRIMARY KEY, v int, CHECK (id < 3))",
	"CREATE TABLE c (id int PRIMARY KEY, v int)", "CREATE TABLE s.c (id int PRIMARY KEY, v int)",
	"CREATE TABLE d (id int PRIMARY KEY, v int)", "CREATE TABLE e (PRIMARY KEY (id)) INHERITS (c)",
	"CREATE TABLE f (id int, v int)", "CREATE TABLE g (id int, v int)"}

func (w *postgresSwapper) table() string {
	return w.oneOf("t", "t", "a", "b", "c", "c", "d", "e", "f", "g", "s.c", "ONLY c")
}

// swap is a definition that has a name, or a place, mean other rows from now on.
func (w *postgresSwapper) swap() string {
	names := [][2]string{{"c", "d"}, {"f", "g"}, {"c", "f"}, {"b", "d"}}[w.IntN(4)]
	switch w.IntN(9) {
	case 0, 1:
		return "ALTER TABLE " + names[0] + " RENAME TO z; ALTER TABLE " + names[1] + " RENAME TO " + names[0] +
			"; ALTER TABLE z RENAME TO " + names[1]
	case 2:
		return "ALTER TABLE t DETACH PARTITION a; ALTER TABLE t ATTACH PARTITION b FOR VALUES FROM (0) TO (3); " +
			"ALTER TABLE a RENAME TO z; ALTER TABLE b RENAME TO a; ALTER TABLE z RENAME TO b"
	case 3:
		return "ALTER TABLE t DETACH PARTITION a; ALTER TABLE t ATTACH PARTITION a FOR VALUES FROM (0) TO (3)"
	case 4:
		return "TRUNCATE " + w.oneOf("t", "c", "d", "f", "s.c")
	case 5:
		table := w.oneOf("d", "g", "s.c")
		return "DROP TABLE " + table + "; CREATE TABLE " + table + " (id int PRIMARY KEY, v int)"
	case 6:
		return "ALTER TABLE c SET SCHEMA z; ALTER TABLE s.c SET SCHEMA public; ALTER TABLE z.c SET SCHEMA s"
	case 7:
		return "CREATE TABLE z (LIKE d INCLUDING ALL); INSERT INTO z SELECT * FROM d; DROP TABLE d; ALTER TABLE z RENAME TO d"
	}
	return w.oneOf("CLUSTER d USING d_pkey", "ALTER TABLE c ALTER v TYPE bigint", "ALTER TABLE c ALTER v TYPE int")
}

func (w *postgresSwapper) use() string {
	table, id := w.table(), w.IntN(3)
	switch w.IntN(8) {
	case 0:
		if strings.HasPrefix(table, "ONLY") {
			return "SELECT * FROM " + table
		}
		return fmt.Sprintf("INSERT INTO %s VALUES (%d, 0)", table, id)
	case 1:
		return fmt.Sprintf("DELETE FROM %s WHERE id = %d", table, id)
	case 2, 3:
		return fmt.Sprintf("UPDATE %s SET v = v + 1 WHERE id = %d", table, id)
	case 4:
		return fmt.Sprintf("SELECT sum(v) FROM %s", table)
	case 5:
		return fmt.Sprintf("SELECT * FROM %s WHERE v = %d", table, id)
	}
	return fmt.Sprintf("SELECT * FROM %s WHERE id = %d", table, id)
}

// TestSerialPostgreSQLClientThatSwapsIsNeverAccused has two connections take turns, transaction after transaction:
// whatever becomes of the tables, nothing can go wrong between the transactions.
func TestSerialPostgreSQLClientThatSwapsIsNeverAccused(t *testing.T) {
	t.Parallel() // much of its time is waiting
	runs := uint64(*postgresSwapRuns)
	if testing.Short() {
		runs = min(runs, 1)
	}
	for seed := *postgresSwapSeed; seed < *postgresSwapSeed+runs; seed++ {
		for _, mode := range []tapMode{{}, {predicates: true}, {columns: true}} {
			t.Run(fmt.Sprintf("seed %d %+v", seed, mode), func(t *testing.T) {
				b := startPostgresBench(t, mode, append([]string{"CREATE SCHEMA z"}, postgresSwapTables...)...)
				w := &postgresSwapper{rand.New(rand.NewPCG(seed, 7))}
				level := w.oneOf("read committed", "repeatable read", "serializable")
				var clients [2]*pgx.Conn
				for i := range clients {
					clients[i] = b.connect(b.through(), postgresModes[w.IntN(len(postgresModes))],
						"default_transaction_isolation", level)
				}
				var told strings.Builder
				for range 120 {
					i := w.IntN(len(clients))
					statements := w.transaction()
					for _, s := range statements {
						_, err := clients[i].Exec(t.Context(), s, pgx.QueryExecModeSimpleProtocol)
						fmt.Fprintf(&told, "\n%d: %s: %v", i, s, err)
					}
				}
				noFindings(t, b.analyze(), told.String())
			})
		}
	}
}

// transaction returns one of the client's, from its beginning to its end.
func (w *postgresSwapper) transaction() []string {
	if w.IntN(5) == 0 {
		return []string{w.use()}
	}
	statements := []string{"BEGIN"}
	for range 1 + w.IntN(4) {
		if w.IntN(6) == 0 {
			statements = append(statements, "SAVEPOINT s", w.use(), w.oneOf("ROLLBACK TO s", "RELEASE s"))
			continue
		}
		statements = append(statements, w.use())
	}
	if w.IntN(3) == 0 {
		statements = append(statements, w.swap())
	}
	return append(statements, w.oneOf("COMMIT", "COMMIT", "COMMIT", "ROLLBACK"))
}
