package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// TestWhatAPredicateMissedIsFound has two transactions look for a booking that would be in the way, find none, and
// make one each: neither reads a row that the other writes. A LIMIT that leaves no row out changes nothing.
func TestWhatAPredicateMissedIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for i, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheStatement,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheStatement} {
		columns := i > 2
		limit := []string{"", " LIMIT $2", " ORDER BY id LIMIT 1 OFFSET 0", " FETCH FIRST 2 ROWS ONLY", " LIMIT 1"}[i]
		t.Run(fmt.Sprintf("%s, columns %v,%s", mode, columns, limit), func(t *testing.T) {
			b := startPostgresBench(t, tapMode{columns: columns, predicates: true},
				"CREATE TABLE booking (id int PRIMARY KEY, room int NOT NULL, during int4range NOT NULL, who text)",
				"INSERT INTO booking VALUES (1, 7, '[0,9)', 'x')")
			var c [2]*pgx.Conn
			for i := range c {
				c[i] = b.connect(b.through(), mode, "default_transaction_isolation", history.RepeatableRead.String())
			}
			run := func(i int, sql string, args ...any) {
				t.Helper()
				if _, err := c[i].Exec(context.Background(), sql, args...); err != nil {
					t.Fatal(err)
				}
			}
			for i := range c {
				run(i, "BEGIN")
			}
			args := []any{7, 1}[:1+strings.Count(limit, "$")]
			for i := range c {
				run(i, "SELECT who FROM booking WHERE room = $1 AND during && '[10,12)'"+limit, args...)
			}
			for i := range c {
				run(i, "INSERT INTO booking VALUES ($1, $2, '[10,12)', 'it''s me')", 10+i, 7)
				run(i, "INSERT INTO booking VALUES ($1, $2, '[10,12)', 'elsewhere')", 20+i, 8)
			}
			for i := range c {
				run(i, "COMMIT")
			}
			holdPhantomSkew(t, b.analyze())
		})
	}
}

// TestARowThatIsGoneIsFound has a transaction read a row that another one then deletes, and look for it in vain
// (TxCheck, figure 13).
func TestARowThatIsGoneIsFound(t *testing.T) {
	b := startPostgresBench(t, tapMode{predicates: true}, "CREATE TABLE a (k int PRIMARY KEY, v int)",
		"INSERT INTO a VALUES (0, 100)")
	reader, deleter := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol),
		b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
	for _, s := range goneSteps {
		c := reader
		if s.deleter {
			c = deleter
		}
		if _, err := c.Exec(t.Context(), s.sql); err != nil {
			t.Fatal(err)
		}
	}
	holdGone(t, b.analyze())
}

// goneSteps are those of a row that is gone.
var goneSteps = []struct {
	deleter bool
	sql     string
}{
	{false, "BEGIN"}, {false, "SELECT k FROM a WHERE v > 1"}, {true, "BEGIN"}, {true, "DELETE FROM a"},
	{true, "COMMIT"}, {false, "SELECT k FROM a WHERE v > 1"}, {false, "COMMIT"},
}

// holdGone sees that it is found, as a hazard, and nothing else.
func holdGone(t *testing.T, r *analyzer.Result) {
	t.Helper()
	if len(r.Findings) != 1 || r.Findings[0].Anomaly != analyzer.NonRepeatableRead ||
		r.Findings[0].Class != analyzer.Hazard {
		t.Errorf("%d findings; not exact: %v", len(r.Findings), r.Coverage.Reasons)
	}
}

// A snapshot is PostgreSQL's txid_snapshot: what had committed when it was taken.
type snapshot struct {
	max   uint64
	under []uint64 // way among those below max
}

func parseSnapshot(text string) (s snapshot) {
	parts := strings.Split(text, ":")
	s.max, _ = strconv.ParseUint(parts[1], 10, 64)
	for id := range strings.SplitSeq(parts[2], ",") {
		if n, err := strconv.ParseUint(id, 10, 64); err == nil {
			s.under = append(s.under, n)
		}
	}
	return s
}

func (s snapshot) shows(xid uint64) bool { return xid < s.max && !slices.Contains(s.under, xid) }

// A choosing transaction is one as its client knows it: the condition by which it chose rows, low <= a AND a < high,
// how many it asked for at most and whether it got as many, the row that it inserted, and whether its snapshot shows
// what another one did.
type choosing struct {
	low, high int
	limit     int
	filled    bool
	wide      bool // the condition is wider than what the statement hangs on
	a         int
	near      bool // the row that it inserted is due about now, so that nobody can be said to have looked for it
	shows     func(other *choosing) bool
	xid       uint64 // as who
}

// newChoosing makes the postgresChoices.
func newChoosing(r *rand.Rand) *choosing {
	x := &choosing{low: r.IntN(20), a: r.IntN(20), limit: 1 + r.IntN(4)}
	if r.IntN(2) == 0 {
		x.limit = 100
	}
	x.high = x.low + 1 + r.IntN(3)
	return x
}

// changes are other writes of such transactions; they have one parameter.
var changes = []string{"UPDATE item SET a = (a + 7) % 20 WHERE id <= 40 AND a = ?",
	"DELETE FROM item WHERE id <= 40 AND a = ?", "UPDATE item SET b = 'same' WHERE id <= 40 AND a = ?"}

// postgresChoices are ways to choose rows by it; but for the first three, isotap tells a wide condition, or one that
// hangs on the rows it got.
var postgresChoices = []string{
	"SELECT b, 'MARK' FROM item WHERE a >= $1 AND a < $2 LIMIT $3",
	"SELECT b, 'MARK' FROM item WHERE a >= $1 AND a < $2 AND due <= now() LIMIT $3",
	"SELECT b, 'MARK' FROM item WHERE a >= $1 AND a < $2 AND due <= clock_timestamp() LIMIT $3",
	"SELECT b, 'MARK' FROM item WHERE a >= $1 AND a < $2 ORDER BY a DESC, id LIMIT $3",
	"SELECT b, 'MARK' FROM kind k JOIN item i ON i.a = k.a WHERE i.a >= $1 AND i.a < $2 ORDER BY i.a, i.id LIMIT $3",
	"SELECT b, 'MARK' FROM kind k JOIN item i ON i.a = k.a WHERE k.a >= $1 AND k.a < $2 LIMIT $3",
	"SELECT k.a, 'MARK' FROM kind k LEFT JOIN item i ON i.a = k.a AND i.a >= $1 AND i.a < $2 LIMIT $3",
	"SELECT EXISTS (SELECT FROM item WHERE a >= $1 AND a < $2), 'MARK' LIMIT $3",
	"SELECT a, 'MARK' FROM kind WHERE a >= $1 AND a < $2 AND NOT EXISTS (SELECT FROM item WHERE item.a = kind.a) LIMIT $3",
	"SELECT b, 'MARK' FROM item WHERE a >= $1 AND a < $2 AND a IN (SELECT a FROM kind) LIMIT $3",
	"SELECT b, 'MARK' FROM item WHERE a >= $1 AND a < $2 AND now() > '2020-01-01' OFFSET 1 LIMIT $3",
}

// choose runs a transaction that chooses rows, and writes; by COPY, too, if copies is set.
func choose(ctx context.Context, c *pgx.Conn, r *rand.Rand, mark string, id int, copies bool) (*choosing, error) {
	x := newChoosing(r)
	return x, pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		var seen string
		if err := tx.QueryRow(ctx, "SELECT txid_current_snapshot()::text").Scan(&seen); err != nil {
			return err
		}
		taken := parseSnapshot(seen)
		x.shows = func(other *choosing) bool { return taken.shows(other.xid) }
		n := max(0, r.IntN(2*len(postgresChoices))-len(postgresChoices)) // each second time the first one
		x.wide = n > 2
		shown, err := tx.Exec(ctx, strings.Replace(postgresChoices[n], "MARK", mark, 1), x.low, x.high, x.limit)
		if err != nil {
			return err
		}
		x.filled = int(shown.RowsAffected()) >= x.limit
		insert := "INSERT INTO item VALUES ($1, $2, 'new')"
		if x.near = r.IntN(4) == 0; x.near {
			insert = fmt.Sprintf("INSERT INTO item VALUES ($1, $2, 'new', clock_timestamp() + interval '%d milliseconds')", r.IntN(5)-2)
		}
		copied := copies && !x.near && r.IntN(3) == 0
		if copied {
			row := fmt.Sprintf("%d\t%d\tnew\n", id, x.a)
			_, err = c.PgConn().CopyFrom(ctx, strings.NewReader(row), "COPY item (id, a, b) FROM STDIN")
		} else {
			_, err = tx.Exec(ctx, insert, id, x.a)
		}
		if err != nil {
			return err
		}
		change := strings.Replace(changes[r.IntN(len(changes))], "?", "$1", 1)
		if copied {
			change += " AND false" // beside another change a COPY is not observed
		}
		if _, err := tx.Exec(ctx, change, r.IntN(20)); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "SELECT txid_current()").Scan(&x.xid)
	})
}

// TestWhatPredicatesMissedIsWhatTheirSnapshotsLack has clients choose rows by a condition while others insert, change
// and delete rows. PostgreSQL's own snapshots bear out every anti-dependency that is found; and of every row that was
// inserted and stayed as it was, all are found who looked for such a row at the time and had an older snapshot, but for
// those who got as many rows as they had asked for.
func TestWhatPredicatesMissedIsWhatTheirSnapshotsLack(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	for _, columns := range []bool{false, true} {
		t.Run(fmt.Sprintf("columns %v", columns), func(t *testing.T) { holdPredicates(t, columns) })
	}
}

func holdPredicates(t *testing.T, columns bool) {
	b, marked := chooseAt(t, columns, history.RepeatableRead)
	b.stop()
	marked.hold(t, b.recording)
}

// TestJoinsAtSerializableMakeNoFinding has clients choose rows by all kinds of conditions, and write, at a level at
// which the server lets nothing through of what they really read.
func TestJoinsAtSerializableMakeNoFinding(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	b, marked := chooseAt(t, false, history.Serializable)
	if r := b.analyze(); len(r.Findings) > 0 || len(marked.txns) < 50 {
		t.Errorf("%d transactions, %d findings; the first: %v", len(marked.txns), len(r.Findings), r.Findings)
	}
}

// chooseAt has clients choose rows at a level, and returns those that committed.
func chooseAt(t *testing.T, columns bool, level history.Level) (*postgresBench, *choosers) {
	b := startPostgresBench(t, tapMode{columns: columns, predicates: true},
		"CREATE TABLE item (id int PRIMARY KEY, a int, b text, due timestamptz DEFAULT '2020-01-01')",
		"INSERT INTO item SELECT i, i % 20, 'old' FROM generate_series(1, 40) i",
		"CREATE TABLE kind (a int PRIMARY KEY)", "INSERT INTO kind SELECT generate_series(0, 19)")
	marked := newChoosers()
	var clients sync.WaitGroup
	for n := range 6 {
		c, r := b.connect(b.through(), postgresModes[n], "default_transaction_isolation",
			level.String()), rand.New(rand.NewPCG(7, uint64(n)))
		clients.Go(func() {
			for i := range 60 {
				mark := fmt.Sprintf("%d of %d", i, n)
				if x, err := choose(b.t.Context(), c, r, mark, 1000*(n+1)+i, !columns); err == nil {
					marked.put(mark, x)
				}
			}
		})
	}
	clients.Wait()
	return b, marked
}

// The choosers are the transactions that committed, by the mark in their query.
type choosers struct {
	mu     sync.Mutex
	txns   map[string]*choosing
	partly bool // not everything that they missed can be found
}

func newChoosers() *choosers { return &choosers{txns: make(map[string]*choosing)} }

func (m *choosers) put(mark string, x *choosing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.txns[mark] = x
}

// hold compares the anti-dependencies that a recording shows with what the snapshots lack.
func (m *choosers) hold(t *testing.T, recording string) {
	t.Helper()
	runs, txns := resolved(t, recording)
	byID := make(map[history.TxnID]*choosing)
	for _, x := range txns {
		if c := m.txns[markOf(x)]; c != nil {
			byID[x.ID] = c
		}
	}
	found, gone := dependenciesOn(t, ".item", runs, txns)
	for e := range gone {
		if from, to := byID[e[0]], byID[e[1]]; from == nil || to == nil || !to.shows(from) {
			t.Errorf("%s is said to have missed what %s took away, whose writes its snapshot lacks", e[1], e[0])
		}
	}
	for e := range found {
		switch from, to := byID[e[0]], byID[e[1]]; {
		case from == nil || to == nil:
			t.Errorf("%s is said to have come before %s, and of one the client does not know that it committed", e[0], e[1])
		case from.shows(to):
			t.Errorf("%s is said to have come before %s, whose writes its snapshot shows", e[0], e[1])
		}
	}
	expected, wide, foundWide := 0, 0, 0
	for _, from := range txns {
		for _, to := range txns {
			x, y := byID[from.ID], byID[to.ID]
			if from == to || x == nil || y == nil || x.filled || y.near || x.shows(y) || y.a < x.low || y.a >= x.high ||
				to.Start > from.End {
				continue
			}
			if there := found[[2]history.TxnID{from.ID, to.ID}]; x.wide {
				if wide++; there {
					foundWide++
				}
			} else if expected++; !there && !m.partly {
				t.Errorf("%s (%s, %+v) did not find the row with a = %d that %s inserted, and nobody noticed", from.ID,
					markOf(from), *x, y.a, to.ID)
			}
		}
	}
	t.Logf("%d transactions, %d anti-dependencies, %d of inserted rows at the same time, %d of %d by wide conditions, %d dependencies on who took rows away",
		len(byID), len(found), expected, foundWide, wide, len(gone))
	if expected == 0 {
		t.Error("no phantoms")
	}
	m.holdParts(t, recording)
}

// markOf returns the mark in a transaction's query.
func markOf(t *history.Txn) string {
	for i := range t.Stmts {
		for _, a := range t.Stmts[i].Args {
			if strings.Contains(a, " of ") {
				return strings.Trim(a, "'")
			}
		}
	}
	return ""
}

// dependenciesOn are the anti-dependencies of a history through a table, and the dependencies of plain reads that did
// not find a row there any more, by their transactions.
func dependenciesOn(t *testing.T, table string, runs []history.Info,
	txns []*history.Txn) (anti, gone map[[2]history.TxnID]bool) {
	t.Helper()
	a := analyzer.New(analyzer.Options{})
	for _, run := range runs {
		if err := a.Add(run); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range txns {
		if err := a.AddTxn(x); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Finish(); err != nil {
		t.Fatal(err)
	}
	anti, gone = make(map[[2]history.TxnID]bool), make(map[[2]history.TxnID]bool)
	for e, err := range a.Edges() {
		if err != nil {
			t.Fatal(err)
		}
		ends := [2]history.TxnID{e.From.ID, e.To.ID}
		switch {
		case !strings.HasSuffix(e.Row.Table, table):
		case e.Kind == analyzer.RW:
			anti[ends] = true
		case e.Kind == analyzer.WR && e.NotFound && !e.Current:
			gone[ends] = true
		}
	}
	return anti, gone
}
