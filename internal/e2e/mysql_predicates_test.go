package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/proxyserver"
)

// inModePredicates is a change of a bench's options.
func inModePredicates(o *proxyserver.Options) { o.Predicates = true }

// TestWhatAPredicateOfMySQLsMissedIsFound has two transactions look for a booking that would be in the way, find none,
// and make one each: neither reads a row that the other writes. Rooms and names differ only by case and blanks at the
// end, which the column's collation does not see. A LIMIT that leaves no row out changes nothing.
func TestWhatAPredicateOfMySQLsMissedIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, c := range []struct{ name, parameters, limit string }{
		{"text", "interpolateParams=true", ""}, {"text with LIMIT", "interpolateParams=true", " LIMIT 1"},
		{"prepared with LIMIT", "", " ORDER BY id LIMIT ?"}, {"not in UTF-8", "charset=latin1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			parameters, limit := c.parameters, c.limit
			b := newBench(t, inModePredicates,
				"CREATE TABLE booking (id INT AUTO_INCREMENT PRIMARY KEY, room VARCHAR(20) NOT NULL, "+
					"since DATETIME NOT NULL, till DATETIME NOT NULL, "+
					"made TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, who TEXT)",
				"INSERT INTO booking (room, since, till) VALUES ('blue', '2026-11-01', '2026-11-02')")
			db := b.open(parameters)
			var c [2]*sql.Conn
			for i := range c {
				c[i] = b.conn(db)
				b.exec(c[i], "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
			}
			run := func(i int, query string, args ...any) {
				t.Helper()
				if _, err := c[i].ExecContext(t.Context(), query, args...); err != nil {
					t.Fatal(err)
				}
			}
			for i := range c {
				run(i, "BEGIN")
			}
			args := []any{"Blue", "2026-11-24", 1}[:2+strings.Count(limit, "?")]
			for i := range c {
				run(i, "SELECT who FROM booking b WHERE b.room = ? AND since < ? AND till > '2026-11-21'"+limit, args...)
			}
			for i := range c {
				run(i, "INSERT INTO booking (room, since, till, who) VALUES (?, '2026-11-20', '2026-11-22', 'it''s me')", "BLUE")
				run(i, "INSERT INTO booking (room, since, till, who) VALUES (?, '2026-11-20', '2026-11-22', 'elsewhere')", "red")
			}
			for i := range c {
				run(i, "COMMIT")
			}
			holdPhantomSkew(t, b.analyze())
		})
	}
}

// TestConditionsOfMySQLQueriesAreLookedAt: two transactions ask by one of many forms whether there is a row, find none,
// and make one each.
func TestConditionsOfMySQLQueriesAreLookedAt(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	holdConditionsLookedAt(t, newBench(t, inModePredicates, lookedAtTables...))
}

var lookedAtTables = []string{"CREATE TABLE u (id INT AUTO_INCREMENT PRIMARY KEY, email VARCHAR(40), age INT)",
	"CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, uid INT, note VARCHAR(40))",
	"INSERT INTO u (email, age) VALUES ('a@b', 1)", "INSERT INTO c (uid, note) VALUES (1, 'x')"}

func holdConditionsLookedAt(t *testing.T, b *bench) {
	t.Helper()
	const made = "INSERT INTO u (email) VALUES (?)"
	const noted = "INSERT INTO c (uid, note) VALUES (1, ?)"
	forms := []struct{ name, ask, write string }{
		{"inner join", "SELECT u.id FROM u INNER JOIN c ON c.uid = u.id WHERE u.email = ?", made},
		{"left join", "SELECT u.id FROM u LEFT JOIN c ON c.uid = u.id WHERE u.email = ?", made},
		{"right side of a left join", "SELECT u.id FROM u LEFT JOIN c ON c.uid = u.id AND c.note = ? WHERE u.id = 1", noted},
		{"anti-join", "SELECT u.id FROM u LEFT JOIN c ON c.note = ? AND c.uid = u.age WHERE c.id IS NULL", noted},
		{"what follows by equality", "SELECT u.id FROM u JOIN c ON c.uid = u.id WHERE u.id = 1 AND u.email <> ?", noted},
		{"exists", "SELECT EXISTS(SELECT 1 FROM u WHERE email = ?)", made},
		{"exists with limit", "SELECT EXISTS(SELECT 1 FROM u WHERE email = ? LIMIT 1) AS found LIMIT 1", made},
		{"not exists", "SELECT id FROM c WHERE NOT EXISTS (SELECT 1 FROM u WHERE email = ? AND u.age = c.uid)", made},
		{"ors of exists", "SELECT id FROM c WHERE EXISTS (SELECT 1 FROM u WHERE email = ?) OR EXISTS (SELECT 1 " +
			"FROM u WHERE age = 9)", made},
		{"in", "SELECT id FROM c WHERE uid IN (SELECT id FROM u WHERE email = ?)", made},
		{"scalar", "SELECT (SELECT COUNT(*) FROM u WHERE email = ?) AS n", made},
		{"union", "SELECT id FROM u WHERE email = ? UNION SELECT uid FROM c WHERE note = 'none'", made},
		{"distinct over a join", "SELECT DISTINCT d.uid FROM (SELECT u.id AS uid, u.email AS em FROM u LEFT JOIN c " +
			"ON c.uid = u.id WHERE u.email = ?) d ORDER BY uid LIMIT 1", made},
		{"distinct", "SELECT DISTINCT age FROM u WHERE email = ?", made},
		{"common table expression", "WITH x AS (SELECT id FROM u WHERE email = ?) SELECT * FROM x", made},
		{"limit with offset 0", "SELECT id FROM u WHERE email = ? LIMIT 0, 1", made},
		{"count with limit", "SELECT COUNT(*) FROM u WHERE (email = ? AND 1 = 1) LIMIT 1", made},
		{"a part that is random", "SELECT id FROM u WHERE email = ? AND RAND() < 2", made},
		{"update", "UPDATE c SET note = 'y' WHERE id = 5000 AND uid IN (SELECT id FROM u WHERE email = ?)", made},
	}
	for _, prepared := range []bool{false, true} {
		db := b.open(fmt.Sprintf("interpolateParams=%t", !prepared))
		c := []*sql.Conn{b.conn(db), b.conn(db)}
		for i := range c {
			b.exec(c[i], "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
		}
		for n, f := range forms {
			value := fmt.Sprintf("%d%t@y", n, prepared)
			run := func(query string, args ...any) {
				t.Helper()
				for i := range c {
					if _, err := c[i].ExecContext(t.Context(), query, args...); err != nil {
						t.Fatalf("%s: %v", f.name, err)
					}
				}
			}
			run("BEGIN")
			run(f.ask, value)
			run(f.write, value)
			run("COMMIT")
		}
	}
	for _, f := range b.analyze().Findings {
		if f.Class == analyzer.Violation {
			t.Errorf("%s %s: %s", f.Class, f.Anomaly, f.Summary)
		}
	}
	_, txns := resolved(t, b.recording)
	unseen := make(map[string]int)
	for _, x := range txns {
		for _, s := range x.Stmts {
			for _, a := range s.Accesses {
				if a.Absent {
					unseen[s.Shape]++
				}
			}
		}
	}
	literal := regexp.MustCompile(`\b\d+\b|'[^']*'`)
	for _, f := range forms {
		if n := unseen[literal.ReplaceAllString(f.ask, "?")]; n != 4 {
			t.Errorf("%s: of 4 rows that were made at once, %d are told not to have been found: %s", f.name, n, f.ask)
		}
	}
}

// TestSerializableTransactionsAreNotAccusedByWideConditions: InnoDB lets both make their rows, since the one table that
// it reads has none that would lead to them.
func TestSerializableTransactionsAreNotAccusedByWideConditions(t *testing.T) {
	b := newBench(t, inModePredicates, "CREATE TABLE u (id INT AUTO_INCREMENT PRIMARY KEY, email VARCHAR(40))",
		"CREATE TABLE c (id INT PRIMARY KEY, uid INT, note VARCHAR(40))", "INSERT INTO c VALUES (1, 1, 'x')")
	c := []*sql.Conn{b.conn(b.through), b.conn(b.through)}
	for _, query := range []string{"SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "BEGIN",
		"SELECT u.id FROM c STRAIGHT_JOIN u ON u.id = c.uid WHERE c.note = 'none' AND u.email = 'x@y'",
		"INSERT INTO u (email) VALUES ('x@y')", "COMMIT"} {
		for i := range c {
			b.exec(c[i], query)
		}
	}
	r := b.analyze()
	if len(r.Findings) > 0 || r.Coverage.Conditions != 2 {
		t.Errorf("%d findings; %d statements left conditions", len(r.Findings), r.Coverage.Conditions)
	}
}

// holdPhantomSkew sees that a phantom write skew is found, as a hazard, and nothing else.
func holdPhantomSkew(t *testing.T, r *analyzer.Result) {
	t.Helper()
	for _, f := range r.Findings {
		t.Logf("%s %s %d: %s\n%s\n%s", f.Class, f.Anomaly, f.Count, f.Summary, strings.Join(f.Explanation, "\n"),
			strings.Join(f.Advice, "\n"))
	}
	if len(r.Findings) != 1 || r.Findings[0].Anomaly != analyzer.PhantomSkew || r.Findings[0].Class != analyzer.Hazard {
		t.Errorf("%d findings; not exact: %v", len(r.Findings), r.Coverage.Reasons)
	}
}

// TestVanishedRowOfMySQLIsFound: a row of MySQLs that is gone is found.
func TestVanishedRowOfMySQLIsFound(t *testing.T) {
	b := newBench(t, inModePredicates, "CREATE TABLE a (k INT PRIMARY KEY, v INT)", "INSERT INTO a VALUES (0, 100)")
	db := b.open("")
	reader, deleter := b.conn(db), b.conn(db)
	b.exec(reader, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
	for _, s := range goneSteps {
		c := reader
		if s.deleter {
			c = deleter
		}
		b.exec(c, s.sql)
	}
	holdGone(t, b.analyze())
}

// TestMySQLPredicatesMissWhatSnapshotsLack has clients choose rows by a condition while others insert,
// change and delete rows. What a snapshot lacks shows in another table: each transaction reads it first, and leaves its
// mark there.
func TestMySQLPredicatesMissWhatSnapshotsLack(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	onMySQL := func(t *testing.T, changes []string, complete bool) {
		b := newBench(t, inModePredicates, itemTables()...)
		holdOnMySQL(t, b, "", changes, complete)
	}
	t.Run("writes of a table", func(t *testing.T) { onMySQL(t, changes, true) })
	// What else these may have written is not known, so that not all is found.
	t.Run("updates of joined tables", func(t *testing.T) { onMySQL(t, mysqlChanges, false) })
}

// itemTables makes the tables that clients of [holdOnMySQL] work on.
func itemTables() []string {
	setup := []string{"CREATE TABLE item (id INT PRIMARY KEY, a INT, b TEXT, due DATETIME(6) DEFAULT '2020-01-01')",
		"CREATE TABLE mark (id INT PRIMARY KEY)", "INSERT INTO mark VALUES (0), (1), (2), (3)"}
	for i := range 40 {
		setup = append(setup, fmt.Sprintf("INSERT INTO item (id, a, b) VALUES (%d, %d, 'old')", i+1, i%20))
	}
	return setup
}

// holdOnMySQL has clients, whose connections have parameters, make changes and look for rows. Complete says that all
// that they missed is found.
func holdOnMySQL(t *testing.T, b *bench, parameters string, changes []string, complete bool) {
	t.Helper()
	marked := newChoosers()
	marked.partly = !complete
	var clients sync.WaitGroup
	for n := range 6 {
		c, r := b.conn(b.open(fmt.Sprintf("%sinterpolateParams=%t", parameters, n%2 == 0))), rand.New(rand.NewPCG(7, uint64(n)))
		b.updatesCurrentRows(c)
		clients.Go(func() {
			for i := range 16 {
				mark := fmt.Sprintf("%d of %d", i, n)
				x, err := chooseOnMySQL(t.Context(), c, r, changes, mark, 1000*(n+1)+i)
				if err == nil {
					marked.put(mark, x)
				} else if !rolledBack(err) {
					t.Errorf("%s: %v", mark, err)
				}
			}
		})
	}
	clients.Wait()
	b.stop()
	marked.hold(t, b.recording)
}

// rolledBack reports whether the server rolled a transaction back for another.
func rolledBack(err error) bool {
	var refused *mysql.MySQLError
	const deadlock, writeConflict = 1213, 9007 // of TiDB at COMMIT
	return errors.As(err, &refused) && (refused.Number == deadlock || refused.Number == writeConflict)
}

// choices are queries that choose rows, the first exactChoices of them so that their condition is the whole of it.
var choices = []string{
	"SELECT b, ? FROM item WHERE a >= ? AND a < ?",
	"SELECT COUNT(*), ? FROM item WHERE a >= ? AND a < ? LIMIT 1",
	"SELECT j.b, ? FROM item i LEFT JOIN item j ON j.id = i.id WHERE i.a >= ? AND (i.a < ?)",
	"SELECT b, ? FROM item WHERE a >= ? AND a < ? AND due < SYSDATE(6)",
	"SELECT b, ? FROM item WHERE a >= ? AND a < ? AND due < NOW()",
	"SELECT i.b, ? FROM item i JOIN item j ON j.id = i.id + 1 WHERE i.a >= ? AND i.a < ?",
	"SELECT m.id, ? FROM mark m WHERE EXISTS (SELECT 1 FROM item WHERE a >= ? AND a < ?)",
	"SELECT DISTINCT b, ? FROM item WHERE a >= ? AND a < ?",
	"SELECT ?, (SELECT MAX(a) FROM item WHERE a >= ? AND a < ?)",
	"SELECT id, ? FROM mark WHERE id NOT IN (SELECT id FROM item WHERE a >= ? AND a < ? AND RAND() < 0.5)",
}

const exactChoices = 4

// mysqlChanges are the changes, and updates of joined tables.
var mysqlChanges = append([]string{"UPDATE item i JOIN item j ON j.id = i.id SET i.a = 3 WHERE i.id <= 40 AND i.a = ?",
	"UPDATE mark m JOIN item i ON i.id = m.id + 1 SET i.a = 7, i.b = 'joined' WHERE i.id <= 40 AND m.id < 40 " +
		"AND i.a > ?"}, changes...)

// chooseOnMySQL is choose for the MySQL family, at REPEATABLE READ. An UPDATE there sees more than the snapshot.
func chooseOnMySQL(ctx context.Context, c *sql.Conn, r *rand.Rand, changes []string, mark string, id int) (*choosing, error) {
	x := newChoosing(r)
	x.xid = uint64(id)
	tx, err := c.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	var seen []uint64
	rows, err := tx.QueryContext(ctx, "SELECT id FROM mark")
	for err == nil && rows.Next() {
		seen = append(seen, 0)
		err = rows.Scan(&seen[len(seen)-1])
	}
	x.shows = func(other *choosing) bool { return slices.Contains(seen, other.xid) }
	form := r.IntN(2 * len(choices))
	order := []string{"", " ORDER BY a DESC, id"}[r.IntN(2)]
	if err == nil && form < len(choices) {
		// Of a wide condition it is not said that it misses nothing.
		x.filled = form >= exactChoices
		rows, err = tx.QueryContext(ctx, choices[form], mark, x.low, x.high)
		for err == nil && rows.Next() {
		}
	} else if err == nil {
		rows, err = tx.QueryContext(ctx, "SELECT b, ? FROM item WHERE a >= ? AND a < ?"+order+" LIMIT ?", mark, x.low, x.high, x.limit)
		shown := 0
		for err == nil && rows.Next() {
			shown++
		}
		x.filled = shown >= x.limit
	}
	insert := "INSERT INTO item (id, a, b, due) VALUES (?, ?, 'new', '2020-01-01')"
	if x.near = r.IntN(4) == 0; x.near {
		insert = fmt.Sprintf("INSERT INTO item (id, a, b, due) VALUES (?, ?, 'new', SYSDATE(6) + INTERVAL %d MICROSECOND)",
			r.IntN(4000)-2000)
	}
	for _, s := range []struct {
		query string
		args  []any
	}{
		{insert, []any{id, x.a}},
		{changes[r.IntN(len(changes))], []any{r.IntN(20)}},
		{"INSERT INTO mark VALUES (?)", []any{id}},
	} {
		if err == nil {
			_, err = tx.ExecContext(ctx, s.query, s.args...)
		}
	}
	if err != nil {
		return nil, err // what a deadlock rolled back is not committed
	}
	return x, tx.Commit()
}
