package pgbench

import (
	"context"
	"database/sql"
	"fmt"
)

// Tidy does before a run what pgbench does by default, on a connection of the caller's in place of the one
// that is measured: the small tables lose their dead rows, and the history is emptied.
func Tidy(ctx context.Context, db *sql.DB) error {
	for _, statement := range []string{"VACUUM pgbench_branches", "VACUUM pgbench_tellers",
		"TRUNCATE pgbench_history"} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("tidy pgbench's tables: %s: %w", statement, err)
		}
	}
	return nil
}

// Written is how many transactions of the built-in scripts that write have committed since [Tidy]: each adds
// one row to the history.
func Written(ctx context.Context, db *sql.DB) (n int, err error) {
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM pgbench_history").Scan(&n); err != nil {
		return 0, fmt.Errorf("count pgbench's history: %w", err)
	}
	return n, nil
}
