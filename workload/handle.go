package workload

import (
	"context"
	"database/sql"
	"fmt"
)

// A Handle runs statements in the dialect of its server, on a connection or in a transaction. It belongs to one
// goroutine.
type Handle struct {
	on interface {
		ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
		QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error)
		QueryRowContext(ctx context.Context, statement string, args ...any) *sql.Row
	}
	dialect *Dialect
}

// Exec runs a statement that gives no rows.
func (h Handle) Exec(ctx context.Context, statement string, args ...any) error {
	if _, err := h.on.ExecContext(ctx, h.dialect.Text(statement), args...); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// Row reads the one row that a query gives into variables. Without a row the error is sql.ErrNoRows.
func (h Handle) Row(ctx context.Context, into []any, statement string, args ...any) error {
	if err := h.on.QueryRowContext(ctx, h.dialect.Text(statement), args...).Scan(into...); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// Int returns the one number that a query gives.
func (h Handle) Int(ctx context.Context, statement string, args ...any) (n int64, err error) {
	err = h.Row(ctx, []any{&n}, statement, args...)
	return n, err
}

// Each reads the rows of a query, one after the other, into variables, and calls then for each.
func (h Handle) Each(ctx context.Context, into []any, then func(), statement string, args ...any) error {
	rows, err := h.on.QueryContext(ctx, h.dialect.Text(statement), args...)
	if err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
		then()
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// Insert inserts a row and returns the number that the server chose for it in the column key.
func (h Handle) Insert(ctx context.Context, key, statement string, args ...any) (id int64, err error) {
	if h.dialect.returning {
		return h.Int(ctx, statement+" RETURNING "+key, args...)
	}
	result, err := h.on.ExecContext(ctx, h.dialect.Text(statement), args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", statement, err)
	}
	if id, err = result.LastInsertId(); err != nil {
		return 0, fmt.Errorf("asking for the new row's key: %w", err)
	}
	return id, nil
}
