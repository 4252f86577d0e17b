package mysql

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.MySQL, testdb.MariaDB118) }

// connect opens isotap's own connection to the shared server.
func connect(t testing.TB) *Conn {
	t.Helper()
	return connectTo(t, testdb.Current(t))
}

// columnsOf returns columns that have nothing of the MySQL family's own.
func columnsOf(shared ...rewrite.Column) []sqlmysql.Column {
	all := make([]sqlmysql.Column, len(shared))
	for i, c := range shared {
		all[i].Column = c
	}
	return all
}

func connectTo(t testing.TB, server *testdb.Server) *Conn {
	t.Helper()
	target, err := dsn.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	c, err := Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return c
}

// run runs statements that end in a semicolon at the end of a line.
func run(t testing.TB, db *sql.DB, script string) {
	t.Helper()
	for statement := range strings.SplitSeq(script, ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// dump returns a query's rows as text, one line each.
func dump(t testing.TB, db *sql.DB, query string) string {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	cells := make([]any, len(columns))
	for i := range cells {
		cells[i] = new(sql.NullString)
	}
	var b strings.Builder
	fmt.Fprintln(&b, columns)
	for rows.Next() {
		if err := rows.Scan(cells...); err != nil {
			t.Fatal(err)
		}
		for _, c := range cells {
			fmt.Fprintf(&b, "%q ", c.(*sql.NullString).String)
		}
		b.WriteByte('\n')
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return b.String()
}

func number(t testing.TB, db *sql.DB, query string) int {
	t.Helper()
	var n int
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}
