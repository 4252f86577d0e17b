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
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// A filledForm is a query whose LIMIT leaves rows of the table job out, and a row that somebody inserts at the same
// time.
type filledForm struct {
	query, row string
	before     bool // the row would stand before the last one that the query shows
}

// jobs are those that are there: a priority and a due date, of which some have none.
const jobs = "(1, 5, 'b', '2026-11-05', 0), (2, 7, 'd', NULL, 0), (3, 5, 'c', '2026-11-07', 0), (4, 9, NULL, NULL, 0)"

// filledForms are those for both families; QUEUE stands for the condition that chooses rows of a queue of their own.
var filledForms = []filledForm{
	{"SELECT id FROM job WHERE QUEUE ORDER BY priority LIMIT 1", "4, 'x', '2026-11-01'", true},
	{"SELECT id FROM job WHERE QUEUE ORDER BY priority LIMIT 1", "6, 'x', '2026-11-01'", false},
	{"SELECT id FROM job WHERE QUEUE ORDER BY priority LIMIT 1", "5, 'x', '2026-11-01'", false}, // a tie
	{"SELECT id FROM job WHERE QUEUE ORDER BY priority DESC LIMIT 2", "8, 'x', '2026-11-01'", true},
	{"SELECT id FROM job WHERE QUEUE ORDER BY priority DESC LIMIT 2", "6, 'x', '2026-11-01'", false},
	{"SELECT id FROM job WHERE QUEUE ORDER BY priority, name DESC LIMIT 1", "5, 'd', NULL", true},
	{"SELECT id FROM job WHERE QUEUE ORDER BY priority, name DESC LIMIT 1", "5, 'a', NULL", false},
	{"SELECT name, priority AS p FROM job WHERE QUEUE ORDER BY p, 1 LIMIT 2", "5, 'bb', NULL", true},
	{"SELECT name AS priority FROM job WHERE QUEUE AND name > 'a' ORDER BY priority DESC LIMIT 1", "1, 'it''s', NULL", true},
	{"SELECT * FROM job j WHERE QUEUE AND due > '2000-01-01' ORDER BY j.due DESC, priority LIMIT 1", "6, 'x', '2026-11-08'", true},
	{"SELECT * FROM job j WHERE QUEUE AND due > '2000-01-01' ORDER BY j.due DESC, priority LIMIT 1", "6, 'x', '2026-11-06'", false},
	{"SELECT id FROM job WHERE QUEUE LIMIT 2", "1, 'a', NULL", false}, // it hangs on its rows alone
	{"SELECT id FROM job WHERE QUEUE ORDER BY priority LIMIT 1 OFFSET 1", "4, 'x', NULL", true},
	{"SELECT j.id FROM job j JOIN kind k ON k.id = j.kind WHERE QUEUE ORDER BY j.priority, k.id LIMIT 1",
		"3, 'x', NULL", true},
	{"SELECT j.id FROM job j JOIN kind k ON k.id = j.kind WHERE QUEUE ORDER BY j.priority, k.id LIMIT 1",
		"8, 'x', NULL", false},
	{"SELECT COUNT(*) FROM job WHERE QUEUE LIMIT 1", "8, 'x', NULL", true}, // which leaves nothing out
}

// holdFilled compares the rows that a recording says were not found with the forms, each of which two transactions ran
// that each inserted its row in a queue of its form's number.
func holdFilled(t *testing.T, recording string, forms []filledForm) {
	t.Helper()
	_, txns := resolved(t, recording)
	found := make(map[string]int)
	for _, x := range txns {
		for _, s := range x.Stmts {
			if s.Kind != history.Select || len(s.Args) == 0 {
				continue
			}
			for _, arg := range s.Args {
				if strings.HasPrefix(arg, "'queue ") {
					found[arg] += len(slices.DeleteFunc(slices.Clone(s.Accesses), func(a history.Access) bool { return !a.Absent }))
				}
			}
		}
	}
	for n, f := range forms {
		want := 0
		if f.before {
			want = 2
		}
		if got := found[fmt.Sprintf("'queue %d'", n)]; got != want {
			t.Errorf("%d rows are said to be missing, want %d: %s; inserted: %s", got, want, f.query, f.row)
		}
	}
}

// runFilled has two transactions run each form, side by side.
func runFilled(t *testing.T, forms []filledForm, run func(client int, query string) error) {
	t.Helper()
	for n, f := range forms {
		queue := fmt.Sprintf("queue = 'queue %d'", n)
		for _, query := range []string{"BEGIN", strings.Replace(f.query, "QUEUE", queue, 1),
			fmt.Sprintf("INSERT INTO job (priority, name, due, kind, queue) VALUES (%s, 0, 'queue %d')", f.row, n),
			"COMMIT"} {
			for i := range 2 {
				if err := run(i, query); err != nil {
					t.Fatalf("%s: %v", query, err)
				}
			}
		}
	}
}

// TestAFilledLimitHangsOnWhatWouldStandBefore has two transactions ask for the first rows of a queue, and insert a
// row each.
func TestAFilledLimitHangsOnWhatWouldStandBefore(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	forms := append(slices.Clone(filledForms),
		filledForm{"SELECT * FROM job j WHERE QUEUE ORDER BY j.due, priority LIMIT 3", "6, 'x', '2026-11-06'", true},
		filledForm{"SELECT id FROM job WHERE QUEUE ORDER BY due NULLS FIRST, priority LIMIT 1", "6, 'x', NULL", true},
		filledForm{"SELECT id FROM job WHERE QUEUE ORDER BY due NULLS FIRST, priority LIMIT 1", "8, 'x', NULL", false},
		filledForm{"SELECT id FROM job WHERE QUEUE ORDER BY name FETCH FIRST 4 ROWS ONLY", "1, 'zz', NULL", true},
		filledForm{"SELECT id FROM job WHERE QUEUE ORDER BY name LIMIT (SELECT 1)", "1, 'a', NULL", true},
		filledForm{"SELECT id FROM job WHERE QUEUE ORDER BY due DESC, priority LIMIT 3", "6, 'x', '2026-11-06'", false},
		filledForm{"SELECT id FROM job WHERE QUEUE ORDER BY due DESC, priority LIMIT 3", "8, 'x', NULL", true},
		filledForm{"SELECT id FROM job WHERE QUEUE ORDER BY name LIMIT 1 FOR UPDATE SKIP LOCKED", "1, 'a', NULL", false})
	b := startPostgresBench(t, tapMode{predicates: true},
		"CREATE TABLE job (id int GENERATED BY DEFAULT AS IDENTITY (START 10000) PRIMARY KEY, priority int, "+
			"name text, due timestamptz, "+
			"kind int, queue text)", "CREATE TABLE kind (id int PRIMARY KEY)", "INSERT INTO kind VALUES (0)",
		fmt.Sprintf("INSERT INTO job SELECT 100 * q + n, p, na, d::timestamptz, k, 'queue ' || q FROM generate_series(0, %d) q, "+
			"(VALUES %s) v (n, p, na, d, k)", len(forms), jobs))
	var c []*pgx.Conn
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheStatement} {
		c = append(c, b.connect(b.through(), mode, "default_transaction_isolation", "repeatable read"))
	}
	runFilled(t, forms, func(i int, query string) error {
		_, err := c[i].Exec(t.Context(), query)
		return err
	})
	for _, f := range b.analyze().Findings {
		if f.Class == analyzer.Violation {
			t.Errorf("%s %s: %s", f.Class, f.Anomaly, f.Summary)
		}
	}
	holdFilled(t, b.recording, forms)
}

// TestAFilledLimitOfMySQLsHangsOnWhatWouldStandBefore does the same on MySQL's family.
func TestAFilledLimitOfMySQLsHangsOnWhatWouldStandBefore(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	holdMySQLFilled(t, newBench(t, inModePredicates, mysqlFilledTables...), mysqlFilledForms())
}

// mysqlFilledForms are those for MySQL's family.
func mysqlFilledForms() []filledForm {
	return append(slices.Clone(filledForms),
		filledForm{"SELECT * FROM job j WHERE QUEUE ORDER BY j.due, priority LIMIT 3", "6, 'x', '2026-11-06'", false},
		filledForm{"SELECT id FROM job WHERE QUEUE ORDER BY due, priority LIMIT 1", "6, 'x', NULL", true},
		filledForm{"SELECT id FROM job WHERE QUEUE ORDER BY due, priority LIMIT 1", "8, 'x', NULL", false},
		filledForm{"SELECT id FROM job WHERE QUEUE ORDER BY due DESC, priority LIMIT 3", "6, 'x', '2026-11-06'", true},
		filledForm{"SELECT id FROM job WHERE QUEUE ORDER BY due DESC, priority LIMIT 3", "8, 'x', NULL", false},
		filledForm{"SELECT id FROM job WHERE QUEUE ORDER BY urgency DESC LIMIT 1, 1", "1, 'a', NULL", true},
		filledForm{"SELECT id FROM job WHERE QUEUE AND id IN (SELECT 1) LIMIT 0, 1", "1, 'a', NULL", true},
		filledForm{"SELECT NAME FROM job WHERE QUEUE AND name IS NOT NULL ORDER BY `Name` LIMIT 1", "1, 'B', NULL", false},
		filledForm{"SELECT NAME FROM job WHERE QUEUE AND name IS NOT NULL ORDER BY `Name` LIMIT 1", "1, 'A', NULL", true},
		filledForm{"SELECT id FROM job WHERE QUEUE ORDER BY name LIMIT 1 FOR UPDATE SKIP LOCKED", "1, 'a', NULL", false})
}

var mysqlFilledTables = []string{"CREATE TABLE kind (id int PRIMARY KEY)", "INSERT INTO kind VALUES (0)",
	"CREATE TABLE job (id INT AUTO_INCREMENT PRIMARY KEY, priority INT, name VARCHAR(40) COLLATE utf8mb4_general_ci, " +
		"due TIMESTAMP NULL, " +
		"kind INT, queue VARCHAR(20), urgency ENUM('low', 'high') DEFAULT 'high')"}

func holdMySQLFilled(t *testing.T, b *bench, forms []filledForm) {
	t.Helper()
	for n := range forms {
		b.exec(b.direct, "INSERT INTO job (id, priority, name, due, kind) VALUES "+jobs)
		b.exec(b.direct, fmt.Sprintf("UPDATE job SET queue = 'queue %d', id = id + %d, urgency = 'low' WHERE queue IS NULL",
			n, 100*(n+1)))
	}
	b.exec(b.direct, "INSERT INTO job (id) VALUES (10000)")
	c := []*sql.Conn{b.conn(b.through), b.conn(b.through)}
	for i := range c {
		b.exec(c[i], "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
	}
	runFilled(t, forms, func(i int, query string) error {
		_, err := c[i].ExecContext(t.Context(), query)
		return err
	})
	for _, f := range b.analyze().Findings {
		if f.Class == analyzer.Violation {
			t.Errorf("%s %s: %s", f.Class, f.Anomaly, f.Summary)
		}
	}
	holdFilled(t, b.recording, forms)
}

// TestALimitedWriteOfMySQLsLeavesItsCondition has a transaction write rows up to a LIMIT, and another one make a row
// that it looked for: the first missed it where it found fewer than its LIMIT.
func TestALimitedWriteOfMySQLsLeavesItsCondition(t *testing.T) {
	holdLimitedWrites(t, newBench(t, inModePredicates, limitedTable), limitedWrites, 5, 3)
}

// A limitedWrite misses so many of the rows that another transaction makes.
type limitedWrite struct {
	statement string
	missed    int
}

var limitedWrites = []limitedWrite{
	{"DELETE FROM job WHERE QUEUE AND priority > 6 LIMIT 3", 1},
	{"DELETE FROM job WHERE QUEUE AND priority > 6 LIMIT 2", 0},
	{"DELETE FROM job WHERE QUEUE AND priority > 6 ORDER BY name LIMIT 3", 1},
	{"UPDATE job SET name = 'y' WHERE QUEUE AND priority > 6 LIMIT 3", 1},
	{"UPDATE job SET name = 'y' WHERE QUEUE AND priority > 6 LIMIT 2", 0},
	{"UPDATE job SET name = 'old' WHERE QUEUE AND priority > 6 LIMIT 2", 0}, // which changes none of them
	{"UPDATE job SET name = 'old' WHERE QUEUE AND priority > 6 ORDER BY id LIMIT 3", 1},
	{"UPDATE job SET name = 'y' WHERE QUEUE AND priority > 60 AND name < NOW() LIMIT 1", 0},
}

const limitedTable = "CREATE TABLE job (id INT AUTO_INCREMENT PRIMARY KEY, priority INT, name VARCHAR(40), " +
	"queue VARCHAR(20), KEY (queue))"

// holdLimitedWrites runs them. So many leave conditions, and so many hang on any rows.
func holdLimitedWrites(t *testing.T, b *bench, forms []limitedWrite, conditions, anyRows int) {
	t.Helper()
	c := []*sql.Conn{b.conn(b.through), b.conn(b.through)}
	for i := range c {
		b.exec(c[i], "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
	}
	for n, f := range forms {
		queue := fmt.Sprintf("'queue %d'", n)
		b.exec(b.direct, fmt.Sprintf("INSERT INTO job (priority, name, queue) VALUES (5, 'old', %[1]s), (7, 'old', %[1]s), "+
			"(8, 'old', %[1]s)", queue))
		b.exec(c[0], "BEGIN", strings.Replace(f.statement, "QUEUE", "queue = "+queue, 1))
		b.exec(c[1], "INSERT INTO job (priority, name, queue) VALUES (9, 'new', "+queue+")")
		b.exec(c[0], "COMMIT")
	}
	r := b.analyze()
	_, txns := resolved(t, b.recording)
	missed := make(map[string]int)
	for _, x := range txns {
		for _, s := range x.Stmts {
			for _, a := range s.Accesses {
				if a.Absent && !a.Wide {
					missed[s.Args[len(s.Args)-3]+s.Args[len(s.Args)-2]]++
				}
			}
		}
	}
	for n, f := range forms {
		if got := missed[fmt.Sprintf("'queue %d'6", n)]; got != f.missed {
			t.Errorf("%d rows are said to be missing, want %d: %s", got, f.missed, f.statement)
		}
	}
	if c := r.Coverage; c.Conditions != conditions || c.Without[analyzer.AnyRows] != anyRows {
		t.Errorf("%d conditions, %d for any rows", c.Conditions, c.Without[analyzer.AnyRows])
	}
}

// TestFilledLimitsAtSerializableMakeNoFinding has clients take the head of queues, finish it or put jobs in, at a level
// at which InnoDB lets nothing through.
func TestFilledLimitsAtSerializableMakeNoFinding(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	b := newBench(t, inModePredicates, "CREATE TABLE job (id INT AUTO_INCREMENT PRIMARY KEY, priority INT, due DATETIME NULL, "+
		"queue INT, KEY (queue, priority))")
	for i := range 30 {
		b.exec(b.direct, fmt.Sprintf("INSERT INTO job (priority, queue) VALUES (%d, %d)", 10+i%7, i%3))
	}
	var clients sync.WaitGroup
	var done atomic.Int64
	for n := range 6 {
		c, r := b.conn(b.open(fmt.Sprintf("interpolateParams=%t", n%2 == 0))), rand.New(rand.NewPCG(11, uint64(n)))
		clients.Go(func() {
			for range 80 {
				if headOfQueue(t.Context(), c, r) == nil {
					done.Add(1)
				}
			}
		})
	}
	clients.Wait()
	r := b.analyze()
	if len(r.Findings) > 0 || done.Load() < 50 {
		t.Errorf("%d transactions, %d findings; the first: %v", done.Load(), len(r.Findings), r.Findings)
	}
	t.Logf("%d transactions, %d statements left conditions", done.Load(), r.Coverage.Conditions)
}

// headOfQueue takes the first jobs of a queue, and changes one of them or adds another.
func headOfQueue(ctx context.Context, c *sql.Conn, r *rand.Rand) error {
	tx, err := c.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	order := []string{"priority", "priority DESC", "due, priority", "priority, id DESC"}[r.IntN(4)]
	rows, err := tx.QueryContext(ctx, "SELECT id FROM job WHERE queue = ? ORDER BY "+order+" LIMIT ?", r.IntN(3), 1+r.IntN(3))
	id := 0
	for err == nil && rows.Next() {
		err = rows.Scan(&id)
	}
	change := []string{"UPDATE job SET priority = priority + 3 WHERE id = ?", "UPDATE job SET due = NOW() WHERE id = ?",
		"DELETE FROM job WHERE id = ? AND priority > 11"}[r.IntN(3)]
	if err == nil && r.IntN(2) == 0 {
		_, err = tx.ExecContext(ctx, change, id)
	} else if err == nil {
		_, err = tx.ExecContext(ctx, "INSERT INTO job (priority, queue) VALUES (?, ?)", r.IntN(20), r.IntN(3))
	}
	return errors.Join(err, tx.Commit())
}
