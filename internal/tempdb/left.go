package tempdb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
)

// drawn are names that isotap draws for databases and schemas of its own: eight letters and digits, and a number where
// there are several. Nobody else makes one by accident.
var drawn = regexp.MustCompile(`^isotap_(fuzz|replay)_[a-z2-7]{8}(_[0-9]*)?$`)

// DropLeft drops the databases and, on PostgreSQL, schemas whose names begin with one that was drawn, and returns them.
// Whoever drew it must have ended.
func DropLeft(ctx context.Context, target dsn.Target, beginning string) (dropped []string, err error) {
	if !drawn.MatchString(beginning) {
		return nil, fmt.Errorf("%q is no name that isotap draws", beginning)
	}
	if target.Family == dbms.PostgreSQLFamily {
		target.Database = cmp.Or(target.Database, "postgres")
	}
	admin, err := open(target)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	ctx, cancel := context.WithTimeout(ctx, defaultPatience)
	defer cancel()
	query := "SELECT schema_name FROM information_schema.schemata"
	if target.Family == dbms.PostgreSQLFamily {
		schemas, err := namesOf(ctx, admin, "SELECT nspname FROM pg_namespace", beginning)
		if err != nil {
			return nil, err
		}
		for _, name := range schemas {
			if _, err := admin.ExecContext(ctx, "DROP SCHEMA IF EXISTS "+name+" CASCADE"); err != nil {
				return dropped, fmt.Errorf("drop the schema %s: %w", name, err)
			}
			dropped = append(dropped, name)
		}
		query = "SELECT datname FROM pg_database"
	}
	databases, err := namesOf(ctx, admin, query, beginning)
	for _, name := range databases {
		if err := drop(ctx, admin, target.Family, name); err != nil {
			return dropped, fmt.Errorf("drop the database %s: %w", name, err)
		}
		dropped = append(dropped, name)
	}
	return dropped, err
}

// namesOf returns those of a query's names that isotap drew and that begin with one that it drew.
func namesOf(ctx context.Context, db *sql.DB, query, beginning string) (names []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("look for databases: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("look for databases: %w", err)
		}
		if strings.HasPrefix(name, beginning) && drawn.MatchString(name) {
			names = append(names, name)
		}
	}
	return names, rows.Err()
}
