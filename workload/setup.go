package workload

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Setup makes tables, given as CREATE TABLE in standard SQL, and runs the statements that fill them. The pool is one of
// go-sql-driver's or pgx's connections. Tables of the same names must not be there.
func Setup(ctx context.Context, db *sql.DB, tables, statements []string) error {
	var all []string
	for _, table := range tables {
		all = append(all, dialectOfPool(db).table(table))
	}
	for _, statement := range append(all, statements...) {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			head, _, _ := strings.Cut(statement, "(")
			return fmt.Errorf("setting up (%s): %w", strings.TrimSpace(head), err)
		}
	}
	return nil
}

// Rows writes one INSERT for n rows, numbered from 1.
func Rows(table string, n int, row func(i int) string) string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = row(i + 1)
	}
	return "INSERT INTO " + table + " VALUES " + strings.Join(rows, ", ")
}
