package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.MySQL, testdb.MariaDB118, testdb.TiDBRound) }

// twins are two databases with the same tables: one instrumented, where rewritten statements run, and
// one as the client made it, where the originals run.
type twins struct {
	t        *testing.T
	original *sql.Conn
	proxied  *sql.Conn
	session  Session
	rewriter *Rewriter
	txn      uint32
}

func newTwins(t *testing.T, settings ...string) *twins {
	t.Helper()
	tw := &twins{t: t}
	tw.original, _ = connect(t, settings)
	var name string
	tw.proxied, name = connect(t, settings)
	tw.session = Session{Schema: name, Charset: "utf8mb4", MaxPacket: 16 << 20, Strict: true}
	tw.session.Dialect, tw.session.Version = ParseVersion(testdb.Current(t).Version())
	exec(t, tw.proxied, CaptureInit)
	return tw
}

func connect(t *testing.T, settings []string) (*sql.Conn, string) {
	t.Helper()
	name := testdb.NewDatabase(t)
	c, err := testdb.Open(t, name).Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for _, s := range settings {
		exec(t, c, s)
	}
	return c, name
}

func exec(t *testing.T, c *sql.Conn, query string, args ...any) sql.Result {
	t.Helper()
	r, err := c.ExecContext(context.Background(), query, args...)
	if err != nil {
		t.Fatalf("%.300s: %v", query, err)
	}
	return r
}

// rows returns a result as text, one line a row, and the names and types of its columns.
func rows(t *testing.T, c *sql.Conn, query string, args ...any) (columns, lines []string) {
	t.Helper()
	r, err := c.QueryContext(context.Background(), query, args...)
	if err != nil {
		t.Fatalf("%.300s: %v", query, err)
	}
	defer r.Close()
	types, err := r.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	for _, ct := range types {
		columns = append(columns, ct.Name()+" "+ct.DatabaseTypeName())
	}
	values := make([]sql.RawBytes, len(types))
	targets := make([]any, len(types))
	for i := range values {
		targets[i] = &values[i]
	}
	for r.Next() {
		if err := r.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		cells := make([]string, len(values))
		for i, v := range values {
			if cells[i] = fmt.Sprintf("%q", []byte(v)); v == nil {
				cells[i] = "NULL"
			}
		}
		lines = append(lines, strings.Join(cells, "|"))
	}
	if err := r.Err(); err != nil {
		t.Fatalf("%.300s: %v", query, err)
	}
	return columns, lines
}

// create makes a table in both databases and fills it. The instrumented one gets the row ids r1, r2,
// ... in the order of the column id.
func (tw *twins) create(statements ...string) {
	tw.t.Helper()
	for _, s := range statements {
		tw.setUp(s)
	}
	keep := ""
	if strings.Contains(statements[0], "ON UPDATE") {
		keep = ", up = up"
	}
	exec(tw.t, tw.proxied, "UPDATE t SET isotap_rowid = CONCAT(_binary'r', id), isotap_wlist = _binary'0'"+keep)
	tw.rewriter = New(tables{tw.session.Schema + ".t": tw.describe(255)}, Options{})
}

func noHoles(b []byte, _ Hole, _ int) []byte { return b }

// describe reads the table t from the catalog.
func (tw *twins) describe(wlist int) *Table {
	tw.t.Helper()
	t := &Table{Table: rewrite.Table{Name: tw.session.Schema + ".t", Instrumented: true, WListBytes: wlist}}
	primary := rewrite.Index{Name: "PRIMARY", Primary: true, Unique: true}
	_, lines := rows(tw.t, tw.proxied, "SELECT COLUMN_NAME, DATA_TYPE, IS_NULLABLE, COLUMN_KEY "+
		"FROM information_schema.COLUMNS "+
		"WHERE TABLE_SCHEMA = DATABASE() "+
		"AND TABLE_NAME = 't' AND COLUMN_NAME NOT LIKE 'isotap%' ORDER BY ORDINAL_POSITION")
	for _, l := range lines {
		c := strings.Split(strings.ReplaceAll(l, `"`, ""), "|")
		t.Columns = append(t.Columns, Column{Column: rewrite.Column{Name: c[0], Type: c[1], NotNull: c[2] == "NO"}})
		if c[3] == "PRI" {
			primary.Columns = append(primary.Columns, c[0])
		}
	}
	if len(primary.Columns) > 0 {
		t.Indexes = []rewrite.Index{primary}
	}
	if onTiDB() {
		tw.describeExposed(t)
	}
	return t
}

// nextTag returns a tag that was not used before.
func (tw *twins) nextTag() history.Tag {
	tw.txn++
	return history.Tag{Txn: history.MakeTxnID(history.MaxRun-1, tw.txn), Stmt: 1}
}

// plan plans a statement for the instrumented database and fails unless it is rewritten.
func (tw *twins) plan(query string) *Plan {
	tw.t.Helper()
	p := tw.rewriter.Plan(query, tw.session)
	if p.Upstream.Pieces == nil {
		tw.t.Fatalf("%s is %v: %s", query, p.Observation, p.Reason)
	}
	return p
}

// literal returns the text that goes upstream.
func literal(p *Plan, v Values) string {
	return string(p.Append(nil, func(b []byte, h Hole, n int) []byte { return AppendHole(b, h, n, &v) }))
}

// prepared returns the text and the parameters of a prepared statement that goes upstream.
func prepared(p *Plan, v Values, client []any) (string, []any) {
	query := p.Append(nil, func(b []byte, _ Hole, _ int) []byte { return append(b, '?') })
	if client == nil {
		return string(query), nil
	}
	args := slices.Clone(client)
	for _, h := range p.Upstream.Hidden {
		args = slices.Insert(args, h.Index, any(AppendParam(nil, h.Hole, h.Ordinal, &v)))
	}
	return string(query), args
}

// outcome is what a client can see of a write.
type outcome struct {
	affected int64
	insertID int64
	code     uint16
	warnings string
	table    string
}

func (tw *twins) outcome(c *sql.Conn, query string, args ...any) outcome {
	tw.t.Helper()
	var o outcome
	r, err := c.ExecContext(context.Background(), query, args...)
	var refused *driver.MySQLError
	switch {
	case errors.As(err, &refused):
		o.code = refused.Number
	case err != nil:
		tw.t.Fatalf("%.300s: %v", query, err)
	default:
		o.affected, _ = r.RowsAffected()
		o.insertID, _ = r.LastInsertId()
	}
	_, warnings := rows(tw.t, c, "SHOW WARNINGS")
	_, table := rows(tw.t, c, "SELECT "+tw.visible()+", @n FROM t ORDER BY id")
	o.warnings, o.table = strings.Join(warnings, "\n"), strings.Join(table, "\n")
	return o
}

// without returns the outcome without the first n of MySQL's warnings about assignments: those of the rewritten
// text's own assignments, which the proxy takes away.
func (o outcome) without(n int) outcome {
	if testdb.EngineName() != testdb.MySQL.Name {
		return o
	}
	lines := strings.Split(o.warnings, "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool {
		own := n > 0 && strings.HasPrefix(l, `"Warning"|"1287"|`)
		if own {
			n--
		}
		return own
	})
	o.warnings = strings.Join(lines, "\n")
	return o
}

// captured reads and empties the capture.
func (tw *twins) captured() ([]CaptureEntry, uint64) {
	tw.t.Helper()
	var b []byte
	if err := tw.proxied.QueryRowContext(context.Background(), CaptureRead).Scan(&b); err != nil {
		tw.t.Fatal(err)
	}
	entries, uncollected, err := ParseCapture(b)
	if err != nil {
		tw.t.Fatal(err)
	}
	return entries, uncollected
}

// versions returns each row's values and its wList by row id.
func (tw *twins) versions() (values, wlists map[string]string) {
	tw.t.Helper()
	values, wlists = make(map[string]string), make(map[string]string)
	_, lines := rows(tw.t, tw.proxied, "SELECT isotap_rowid, isotap_wlist, "+tw.visible()+" FROM t")
	for _, l := range lines {
		cells := strings.SplitN(l, "|", 3)
		id := strings.Trim(cells[0], `"`)
		wlists[id], values[id] = strings.Trim(cells[1], `"`), cells[2]
	}
	return values, wlists
}

func (tw *twins) contents(c *sql.Conn) string {
	tw.t.Helper()
	_, lines := rows(tw.t, c, "SELECT "+tw.visible()+" FROM t ORDER BY id")
	return strings.Join(lines, "\n")
}
