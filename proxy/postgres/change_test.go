package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// changing makes the tables that the tests below change, with their rows.
var changing = []string{"DROP TABLE IF EXISTS t, named",
	"CREATE TABLE t (id int PRIMARY KEY, name varchar(10) UNIQUE NOT NULL, v int)",
	"CREATE TABLE named (name varchar(10) PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 'a', 10)",
	"INSERT INTO named VALUES ('a', 10)",
	"GRANT ALL ON t, named TO PUBLIC", "GRANT EXECUTE ON FUNCTION pg_catalog.pg_current_wal_insert_lsn() TO PUBLIC"}

// changes of what the rewritten forms of outliving rest on.
var changes = map[string]string{
	"a wider integer":     "ALTER TABLE t ALTER id TYPE bigint",
	"a text":              "ALTER TABLE t ALTER id TYPE text",
	"a wider text":        "ALTER TABLE named ALTER name TYPE varchar(20)",
	"another collation":   `ALTER TABLE named ALTER name TYPE varchar(10) COLLATE "C"`,
	"another name":        "ALTER TABLE t RENAME id TO number",
	"no such column":      "ALTER TABLE t DROP id",
	"another key":         "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (name)",
	"another type of v":   "ALTER TABLE t ALTER v TYPE bigint",
	"a column more":       "ALTER TABLE t ADD more int",
	"columns not granted": "REVOKE SELECT ON t FROM PUBLIC; GRANT SELECT (name, v) ON t TO PUBLIC",
	"the function taken":  "REVOKE EXECUTE ON FUNCTION pg_catalog.pg_current_wal_insert_lsn() FROM PUBLIC",
}

var outliving = []string{"SELECT v FROM t WHERE v <> $1", "SELECT v FROM t WHERE id = $1",
	"SELECT id, v FROM t WHERE v <> $1", "SELECT * FROM t WHERE v <> $1",
	"SELECT count(*) FROM t WHERE v <> $1", "UPDATE t SET v = v WHERE v <> $1",
	"UPDATE t SET v = v WHERE v <> $1 RETURNING v",
	"UPDATE named SET v = v WHERE v <> $1", "SELECT v FROM named WHERE v <> $1"}

// What isotap adds to a prepared statement rests on the key's columns; the client's own does not.
func TestPreparedStatementsOutliveChangesOfTheKey(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for change, statement := range changes {
		for _, w := range []way{{told: true}, {told: true, block: true}, {}} {
			if change == "the function taken" && w.block {
				continue // isotap does not look at the rights to the server's own functions
			}
			t.Run(fmt.Sprintf("%s/told %v, in a block %v", change, w.told, w.block), func(t *testing.T) {
				r := newRig(t, nil)
				if want, got := afterChange(t, r, r.direct, statement, w), afterChange(t, r, r.proxied, statement,
					w); got != want {
					t.Errorf("%s\ndirectly\n%s", got, want)
				}
			})
		}
	}
}

// A way is how a change comes to prepared statements.
type way struct {
	told  bool // isotap has read the catalog since
	block bool // they run in a transaction block
}

// afterChange has a client prepare statements, another one change their tables, and returns what they do then: when
// they are described, and when they run twice.
func afterChange(t *testing.T, r *rig, address string, change string, w way) (told string) {
	t.Helper()
	other, c := preparedOn(t, r, address)
	runIn(t, c, w.block)
	mustExec(t, other, change)
	if w.told {
		r.know(t)
	}
	for range 2 {
		told += runIn(t, c, w.block)
	}
	for i := range outliving {
		told += described(t, c, i)
	}
	return told
}

// described returns what the server says of a prepared statement.
func described(t *testing.T, c *pgconn.PgConn, statement int) (told string) {
	t.Helper()
	c.Frontend().SendDescribe(describe(ofStatement, fmt.Sprint("s", statement)))
	c.Frontend().SendSync(syncs)
	if err := c.Frontend().Flush(); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := c.ReceiveMessage(t.Context())
		switch m := m.(type) {
		case *pgproto3.ReadyForQuery:
			return told + "\n"
		case *pgproto3.RowDescription:
			for _, f := range m.Fields {
				told += fmt.Sprintf("%s %d ", f.Name, f.DataTypeOID)
			}
		case *pgproto3.ErrorResponse:
			told += m.Message
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// preparedOn returns a client beside the proxy, and one that has prepared the statements.
func preparedOn(t *testing.T, r *rig, address string) (other, c *pgconn.PgConn) {
	t.Helper()
	other = connectTo(t, r.direct, r.database)
	mustExec(t, other, changing...)
	r.know(t)
	c = connectTo(t, address, r.database)
	mustExec(t, c, "SET ROLE pg_monitor")
	for i, text := range outliving {
		if _, err := c.Prepare(t.Context(), fmt.Sprint("s", i), text, nil); err != nil {
			t.Fatal(err)
		}
	}
	return other, c
}

// know has isotap read the catalog again.
func (r *rig) know(t *testing.T) {
	t.Helper()
	if err := r.catalog.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.planner.Invalidate()
}

// runIn runs the prepared statements, each in a block if they are to.
func runIn(t *testing.T, c *pgconn.PgConn, block bool) (told string) {
	t.Helper()
	for i := range outliving {
		if block {
			mustExec(t, c, "BEGIN")
		}
		told += outcome(t, c, i) + "\n"
		if block {
			mustExec(t, c, "ROLLBACK")
		}
	}
	return told
}

// outcome runs a prepared statement, and returns its rows with their columns' types, or its error.
func outcome(t *testing.T, c *pgconn.PgConn, statement int) string {
	t.Helper()
	r := c.ExecPrepared(t.Context(), fmt.Sprint("s", statement), [][]byte{[]byte("1")}, nil, nil).Read()
	if r.Err != nil {
		return r.Err.Error()
	}
	var b strings.Builder
	for _, f := range r.FieldDescriptions {
		fmt.Fprintf(&b, "%s %d ", f.Name, f.DataTypeOID)
	}
	return fmt.Sprintf("%s%q %s", b.String(), r.Rows, r.CommandTag)
}

// A transaction that changes a table itself sees what it did before isotap's catalog has it.
func TestPreparedStatementsOutliveChangesOfTheirOwnTransaction(t *testing.T) {
	r := newRig(t, nil)
	ownChange := func(address string) string {
		_, c := preparedOn(t, r, address)
		mustExec(t, c, "RESET ROLE", "BEGIN", "ALTER TABLE t ALTER id TYPE bigint")
		told := outcome(t, c, 0) + "\n" + outcome(t, c, 1)
		mustExec(t, c, "COMMIT")
		return told + "\n" + runIn(t, c, false)
	}
	if want, got := ownChange(r.direct), ownChange(r.proxied); got != want {
		t.Errorf("%s\ndirectly\n%s", got, want)
	}
}

// The server's error about a Bind names the statement, which may be what stands beside the client's.
func TestBindErrorsNameTheClientsStatement(t *testing.T) {
	r := newRig(t, nil)
	refused := func(address string) string {
		_, c := preparedOn(t, r, address)
		mustExec(t, c, "RESET ROLE", "BEGIN", "ALTER TABLE t ALTER id TYPE bigint")
		defer mustExec(t, c, "ROLLBACK")
		return fmt.Sprint(c.ExecPrepared(t.Context(), "s0", nil, nil, nil).Read().Err)
	}
	if want, got := refused(r.direct), refused(r.proxied); got != want || !strings.Contains(want, `"s0"`) {
		t.Errorf("%s\ndirectly\n%s", got, want)
	}
}

// A change from beside the proxy shows in a transaction block as an error, once: the block is lost then.
func TestChangeOutsideFailsAPreparedStatementOnce(t *testing.T) {
	r := newRig(t, nil)
	other, c := preparedOn(t, r, r.proxied)
	runIn(t, c, true)
	mustExec(t, other, "ALTER TABLE t ALTER id TYPE bigint")
	var told []string
	for range 2 {
		mustExec(t, c, "BEGIN")
		told = append(told, outcome(t, c, 0))
		mustExec(t, c, "ROLLBACK")
	}
	want := []string{"ERROR: cached plan must not change result type (SQLSTATE 0A000)", `v 23 [["10"]] SELECT 1`}
	if fmt.Sprint(told) != fmt.Sprint(want) {
		t.Errorf("%q\nwant\n%q", told, want)
	}
}

// What stands beside a statement goes with it, whichever way the client closes it.
func TestNothingIsLeftBesideClosedStatements(t *testing.T) {
	r := newRig(t, nil)
	_, c := preparedOn(t, r, r.proxied)
	if err := c.Deallocate(t.Context(), "s0"); err != nil {
		t.Fatal(err)
	}
	for i := range outliving[1:] {
		mustExec(t, c, fmt.Sprintf("DEALLOCATE s%d", i+1))
	}
	left := c.ExecParams(t.Context(),
		"SELECT name, statement FROM pg_prepared_statements WHERE name <> ''", nil, nil, nil, nil).Read()
	if left.Err != nil || len(left.Rows) > 0 {
		t.Errorf("%q, %v", left.Rows, left.Err)
	}
}

func connectTo(t *testing.T, address, database string) *pgconn.PgConn {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), "postgres://postgres@"+address+"/"+database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) }) // the server may have
	return c
}

// rowsOfQuery returns the rows of a query's result.
func rowsOfQuery(t *testing.T, c *pgconn.PgConn, sql string) string {
	t.Helper()
	r := c.ExecParams(t.Context(), sql, nil, nil, nil, nil).Read()
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return fmt.Sprintf("%q", r.Rows)
}

func mustExec(t *testing.T, c *pgconn.PgConn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := c.Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}
