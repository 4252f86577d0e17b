package definitions

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/catalog"
)

const (
	tables = `c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')`
	// The schema that clients mean when they name none is the first of the login's search path.
	spelled = `CASE WHEN n.nspname = current_schema() THEN quote_ident(c.relname) ELSE quote_ident(n.nspname) || '.' || quote_ident(c.relname) END`

	readColumns = `SELECT ` + spelled + `, a.attname, quote_ident(a.attname),
			regexp_replace(format_type(a.atttypid, NULL), '^"?char"?$', 'character') || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
				|| CASE WHEN a.attgenerated <> '' THEN ' GENERATED ALWAYS AS (NULL) STORED' ELSE '' END
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
		WHERE ` + tables + ` AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.oid, a.attnum`
	// Keys come before foreign keys, which name them.
	readConstraints = `SELECT 'ALTER TABLE ' || ` + spelled + ` || ' ADD CONSTRAINT ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid)
		FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE ` + tables + ` AND k.contype IN ('p', 'u', 'f') AND k.conparentid = 0 ORDER BY k.contype = 'f', k.oid`
	readIndexes = `SELECT pg_get_indexdef(i.indexrelid)
		FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE ` + tables + ` AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
			AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conindid = i.indexrelid) ORDER BY i.indexrelid`
	readTriggers = `SELECT pg_get_triggerdef(t.oid)
		FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE ` + tables + ` AND NOT t.tgisinternal AND t.tgenabled <> 'D' ORDER BY t.oid`
	readViews = `SELECT 'CREATE VIEW ' || ` + spelled + ` || ' AS ' || pg_get_viewdef(c.oid)
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'v' AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY c.oid`
)

func readPostgres(ctx context.Context, target catalog.Target) (string, error) {
	conn, err := pgx.Connect(ctx, target.URL())
	if err != nil {
		return "", fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var b strings.Builder
	if err := postgresTables(ctx, conn, &b); err != nil {
		return "", err
	}
	for _, query := range []string{readConstraints, readIndexes, readTriggers, readViews} {
		rows, err := conn.Query(ctx, query)
		if err != nil {
			return "", err
		}
		statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return "", err
		}
		for _, s := range statements {
			fmt.Fprintf(&b, "%s;\n", strings.TrimSuffix(s, ";"))
		}
	}
	return b.String(), nil
}

func postgresTables(ctx context.Context, conn *pgx.Conn, b *strings.Builder) error {
	rows, err := conn.Query(ctx, readColumns)
	if err != nil {
		return err
	}
	var d *definition
	var table, column, quoted, typ string
	_, err = pgx.ForEachRow(rows, []any{&table, &column, &quoted, &typ}, func() error {
		if d == nil || d.name != table {
			if d != nil {
				d.write(b)
			}
			d = &definition{name: table}
		}
		if !own(column) {
			d.elements = append(d.elements, quoted+" "+typ)
		}
		return nil
	})
	if d != nil && err == nil {
		d.write(b)
	}
	return err
}
