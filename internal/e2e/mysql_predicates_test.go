package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

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
				"CREATE TABLE booking (id INT AUTO_INCREMENT PRIMARY KEY, room VARCHAR(20) NOT NULL, since DATETIME NOT NULL, till DATETIME NOT NULL, "+
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
	b := newBench(t, inModePredicates, "CREATE TABLE item (id INT PRIMARY KEY, a INT, b TEXT)",
		"CREATE TABLE mark (id INT PRIMARY KEY)")
	for i := range 40 {
		b.exec(b.direct, fmt.Sprintf("INSERT INTO item (id, a, b) VALUES (%d, %d, 'old')", i+1, i%20))
	}
	marked := newChoosers()
	var clients sync.WaitGroup
	for n := range 6 {
		c, r := b.conn(b.open(fmt.Sprintf("interpolateParams=%t", n%2 == 0))), rand.New(rand.NewPCG(7, uint64(n)))
		b.updatesCurrentRows(c)
		clients.Go(func() {
			for i := range 60 {
				mark := fmt.Sprintf("%d of %d", i, n)
				if x, err := chooseOnMySQL(t.Context(), c, r, mark, 1000*(n+1)+i); err == nil {
					marked.put(mark, x)
				}
			}
		})
	}
	clients.Wait()
	b.stop()
	marked.hold(t, b.recording)
}

// chooseOnMySQL is choose for the MySQL family, at REPEATABLE READ. An UPDATE there sees more than the snapshot.
func chooseOnMySQL(ctx context.Context, c *sql.Conn, r *rand.Rand, mark string, id int) (*choosing, error) {
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
	shown := 0
	if err == nil {
		rows, err = tx.QueryContext(ctx, "SELECT b, ? FROM item WHERE a >= ? AND a < ? LIMIT ?", mark, x.low, x.high, x.limit)
	}
	for err == nil && rows.Next() {
		shown++
	}
	x.filled = shown >= x.limit
	for _, s := range []struct {
		query string
		args  []any
	}{
		{"INSERT INTO item VALUES (?, ?, 'new')", []any{id, x.a}},
		{changes[r.IntN(len(changes))], []any{r.IntN(20)}},
		{"INSERT INTO mark VALUES (?)", []any{id}},
	} {
		if err == nil {
			_, err = tx.ExecContext(ctx, s.query, s.args...)
		}
	}
	return x, errors.Join(err, tx.Commit())
}
