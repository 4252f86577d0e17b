package definitions

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/catalog"
)

// The columns attgenerated, conparentid and indnkeyatts are not there before PostgreSQL 12 and 11.
const (
	tables = `c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')`
	// The schema that clients mean when they name none is the first of the login's search path.
	spelled = `CASE WHEN n.nspname = current_schema() THEN quote_ident(c.relname) ELSE quote_ident(n.nspname) || '.' || quote_ident(c.relname) END`

	readColumns = `SELECT n.nspname, c.relname, ` + spelled + `, a.attname, quote_ident(a.attname) || ' ' ||
			regexp_replace(format_type(a.atttypid, NULL), '^"?char"?$', 'character') || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
				|| CASE WHEN to_jsonb(a)->>'attgenerated' <> '' THEN ' GENERATED ALWAYS AS (NULL) STORED' ELSE '' END
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
		WHERE ` + tables + ` AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.oid, a.attnum`
	readKeys = `SELECT ` + spelled + `, 'ALTER TABLE ' || ` + spelled + ` || ' ADD CONSTRAINT ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid)
		FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE ` + tables + ` AND coalesce(to_jsonb(k)->>'conparentid', '0') = '0' AND k.contype `
	readOwnKeys     = readKeys + `IN ('p', 'u') ORDER BY k.oid`
	readForeignKeys = readKeys + `= 'f' ORDER BY k.oid`
	// pg_get_indexdef locks the table.
	readIndexes = `SELECT ` + spelled + `, 'CREATE UNIQUE INDEX ON ' || ` + spelled + ` || ' (' ||
			(SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY p.place) FROM unnest(i.indkey::int2[]) WITH ORDINALITY p (number, place)
				JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = p.number
				WHERE p.place <= coalesce((to_jsonb(i)->>'indnkeyatts')::int, i.indnatts)) || ')'
		FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE ` + tables + ` AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
			AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conindid = i.indexrelid) ORDER BY i.indexrelid`
	// pg_get_triggerdef locks the table of a trigger with a condition. The bits of tgtype are those of catalog/pg_trigger.h.
	readTriggers = `SELECT ` + spelled + `, 'CREATE TRIGGER ' || quote_ident(t.tgname) || CASE WHEN t.tgtype & 2 <> 0 THEN ' BEFORE ' ELSE ' AFTER ' END
			|| concat_ws(' OR ', CASE WHEN t.tgtype & 4 <> 0 THEN 'INSERT' END, CASE WHEN t.tgtype & 8 <> 0 THEN 'DELETE' END,
				CASE WHEN t.tgtype & 16 <> 0 THEN 'UPDATE' END, CASE WHEN t.tgtype & 32 <> 0 THEN 'TRUNCATE' END)
			|| ' ON ' || ` + spelled + ` || CASE WHEN t.tgtype & 1 <> 0 THEN ' FOR EACH ROW' ELSE ' FOR EACH STATEMENT' END
			|| ' EXECUTE FUNCTION ' || t.tgfoid::regproc || '()'
		FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE ` + tables + ` AND NOT t.tgisinternal AND t.tgenabled <> 'D' ORDER BY t.oid`

	views     = `c.relkind = 'v' AND n.nspname NOT IN ('pg_catalog', 'information_schema')`
	readViews = `SELECT n.nspname, c.relname, ` + spelled + `, pg_get_viewdef(c.oid)
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE ` + views + ` ORDER BY c.oid`
	// A view depends on the columns that it reads; of a table of which it reads none, or whole rows (varattno 0), on the table.
	readViewUses = `SELECT v.nspname, v.relname, v.spelled, 'SELECT ' || string_agg(u.columns, ', ' ORDER BY u.refobjid)
			|| ' FROM ' || string_agg(u.spelled, ', ' ORDER BY u.refobjid) || coalesce(' WHERE ' || string_agg(u.looked, ' AND ' ORDER BY u.refobjid), '')
		FROM (SELECT c.oid, n.nspname, c.relname, ` + spelled + ` AS spelled FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE ` + views + `) v
		JOIN LATERAL (SELECT d.refobjid, ` + spelled + ` AS spelled,
				string_agg(` + spelled + ` || '.' || quote_ident(a.attname), ', ' ORDER BY a.attnum) AS columns,
				string_agg(` + spelled + ` || '.' || quote_ident(a.attname) || ' IS NOT NULL', ' AND ' ORDER BY a.attnum) AS looked
			FROM pg_catalog.pg_rewrite r
			JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_catalog.pg_class'::regclass
			JOIN pg_catalog.pg_class c ON c.oid = d.refobjid AND c.relkind IN ('r', 'p', 'v') JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
			JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
				AND (d.refobjsubid IN (0, a.attnum) OR r.ev_action::text LIKE '%:varattno 0 %')
			WHERE r.ev_class = v.oid AND d.refobjid <> v.oid AND d.deptype = 'n' GROUP BY d.refobjid, c.relname, n.nspname) u ON true
		GROUP BY v.oid, v.nspname, v.relname, v.spelled ORDER BY v.oid`
)

// A postgresReading reads a database's definitions.
type postgresReading struct {
	reading
	conn *pgx.Conn
}

func readPostgres(ctx context.Context, target catalog.Target, views Views) ([]Table, error) {
	config, err := pgx.ParseConfig(target.URL())
	if err != nil {
		return nil, fmt.Errorf("the address: %w", err)
	}
	config.RuntimeParams["application_name"] = "isotap"
	config.RuntimeParams["lock_timeout"] = "1s"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	r := postgresReading{reading: newReading(), conn: conn}
	if err := r.columns(ctx); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		query string
		add   func(table, statement string)
	}{{readOwnKeys, r.key}, {readIndexes, r.key}, {readForeignKeys, r.reference}, {readTriggers, r.reference}} {
		if err := r.statements(ctx, part.query, part.add); err != nil {
			return nil, err
		}
	}
	query := readViews
	if views == AsUsed {
		query = readViewUses
	}
	if err := r.views(ctx, query); err != nil {
		return nil, err
	}
	return r.done(), nil
}

func (r *postgresReading) columns(ctx context.Context) error {
	rows, err := r.conn.Query(ctx, readColumns)
	if err != nil {
		return err
	}
	var schema, table, spelled, name, definition string
	_, err = pgx.ForEachRow(rows, []any{&schema, &table, &spelled, &name, &definition}, func() error {
		if own(name) {
			definition = ""
		}
		r.column(schema, table, spelled, definition)
		return nil
	})
	r.end()
	return err
}

// statements adds what a query gives of tables. What has gone since the query began has no statement.
func (r *postgresReading) statements(ctx context.Context, query string, add func(table, statement string)) error {
	rows, err := r.conn.Query(ctx, query)
	if err != nil {
		return err
	}
	var table string
	var statement *string
	_, err = pgx.ForEachRow(rows, []any{&table, &statement}, func() error {
		if statement != nil {
			add(table, *statement)
		}
		return nil
	})
	return err
}

func (r *postgresReading) views(ctx context.Context, query string) error {
	rows, err := r.conn.Query(ctx, query)
	if err != nil {
		return err
	}
	var schema, name, spelled string
	var text *string
	_, err = pgx.ForEachRow(rows, []any{&schema, &name, &spelled, &text}, func() error {
		if text != nil {
			r.view(schema, name, spelled, *text)
		}
		return nil
	})
	return err
}
