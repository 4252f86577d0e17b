package clone

import (
	"context"
	"errors"
	"fmt"
	"strings"

	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// schemaObjects are what a database of the MySQL family is made of.
type schemaObjects struct {
	charset, collation string
	tables             []table
	sequences          []definition
	routines           []definition
	triggers           []definition
	views              []definition
}

// A definition is what makes something of the source, and what it was made under.
type definition struct {
	kind, name string // kind is the keyword: PROCEDURE
	text       string
	// sqlMode, charset and collation are those of the session that made it: what it does hangs on them.
	sqlMode, charset, collation string
}

func (d *definition) mode() mysqltoken.Mode { return modeOf(d.sqlMode) }

// A table is a base table, and what is copied of its rows.
type table struct {
	definition
	columns []string // that are not generated
	rows    bool     // it holds rows of its own
}

// elsewhere are the engines whose rows lie on other servers, or in files that the user has made: what is written to a
// copy of such a table is written to the source's.
var elsewhere = map[string]bool{"FEDERATED": true, "CONNECT": true, "SPIDER": true, "S3": true, "OQGRAPH": true}

// without are the engines whose tables have no rows of their own.
var without = map[string]bool{"MRG_MYISAM": true, "BLACKHOLE": true}

// read reads all definitions of the source.
func (m *mysqlCopying) read(ctx context.Context) (o schemaObjects, err error) {
	// Texts come as they are kept, and views without the schema where they need none.
	for _, text := range []string{"SET character_set_results = binary", "USE " + backquoted(m.source)} {
		if _, err := m.conn.Exec(ctx, text); err != nil {
			return o, err
		}
	}
	rows, err := m.ask(ctx, "the database's character set", 2, `SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME
		FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?`, m.source)
	if err == nil && len(rows) != 1 {
		err = errors.New("it is not there, or the login may not see it")
	}
	if err != nil {
		return o, err
	}
	o.charset, o.collation = rows[0][0], rows[0][1]
	for _, part := range []func(context.Context, *schemaObjects) error{m.readTables, m.readRoutines, m.readTriggers} {
		if err := part(ctx, &o); err != nil {
			return o, err
		}
	}
	return o, nil
}

// readTables reads all that shares the names of tables.
func (m *mysqlCopying) readTables(ctx context.Context, o *schemaObjects) error {
	columns, err := m.columns(ctx)
	if err != nil {
		return err
	}
	rows, err := m.ask(ctx, "the tables", 3, `SELECT TABLE_NAME, TABLE_TYPE, UPPER(COALESCE(ENGINE, ''))
		FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? ORDER BY TABLE_NAME`, m.source)
	if err != nil {
		return err
	}
	for _, row := range rows {
		name, kind, engine := row[0], row[1], row[2]
		m.names.things[strings.ToLower(name)] = true
		switch kind {
		case "BASE TABLE", "SYSTEM VERSIONED":
			if elsewhere[engine] {
				return fmt.Errorf("the rows of the table %s (%s) lie elsewhere: a copy would write to them", name, engine)
			}
			d, err := m.shown(ctx, "TABLE", name, 2, 1)
			if err != nil {
				return err
			}
			o.tables = append(o.tables, table{d, columns[name], !without[engine]})
		case "SEQUENCE":
			d, err := m.shown(ctx, "SEQUENCE", name, 2, 1)
			if err != nil {
				return err
			}
			o.sequences = append(o.sequences, d)
		case "VIEW":
			d, err := m.shown(ctx, "VIEW", name, 4, 1)
			if err != nil {
				return err
			}
			o.views = append(o.views, d)
		}
	}
	return nil
}

// columns returns the columns of each table that hold what was written to them, isotap's included.
func (m *mysqlCopying) columns(ctx context.Context) (map[string][]string, error) {
	rows, err := m.ask(ctx, "the columns", 2, `SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS
		WHERE TABLE_SCHEMA = ? AND COALESCE(GENERATION_EXPRESSION, '') = '' ORDER BY TABLE_NAME, ORDINAL_POSITION`, m.source)
	columns := make(map[string][]string)
	for _, row := range rows {
		columns[row[0]] = append(columns[row[0]], backquoted(row[1]))
	}
	return columns, err
}

// readRoutines reads functions, procedures and packages; a package comes before its body.
func (m *mysqlCopying) readRoutines(ctx context.Context, o *schemaObjects) error {
	rows, err := m.ask(ctx, "the routines", 2, `SELECT ROUTINE_TYPE, ROUTINE_NAME FROM information_schema.ROUTINES
		WHERE ROUTINE_SCHEMA = ? ORDER BY ROUTINE_TYPE, ROUTINE_NAME`, m.source)
	if err != nil {
		return err
	}
	for _, row := range rows {
		d, err := m.shown(ctx, row[0], row[1], 6, 2)
		if err != nil {
			return err
		}
		o.routines = append(o.routines, d)
	}
	return nil
}

// readTriggers reads the triggers of all tables, those of one event in the order in which they fire.
func (m *mysqlCopying) readTriggers(ctx context.Context, o *schemaObjects) error {
	rows, err := m.ask(ctx, "the triggers", 1, `SELECT TRIGGER_NAME FROM information_schema.TRIGGERS
		WHERE TRIGGER_SCHEMA = ? ORDER BY EVENT_OBJECT_TABLE, ACTION_TIMING, EVENT_MANIPULATION, ACTION_ORDER`, m.source)
	if err != nil {
		return err
	}
	for _, row := range rows {
		d, err := m.shown(ctx, "TRIGGER", row[0], 7, 2)
		if err != nil {
			return err
		}
		o.triggers = append(o.triggers, d)
	}
	return nil
}

// shown asks for a definition by SHOW CREATE, whose answer has the text at a place of its columns. What it was made
// under stands around it.
func (m *mysqlCopying) shown(ctx context.Context, kind, name string, columns, at int) (definition, error) {
	d := definition{kind: kind, name: name}
	rows, err := m.ask(ctx, "a definition", columns, "SHOW CREATE "+kind+" "+backquoted(m.source)+"."+backquoted(name))
	if err != nil {
		return d, fmt.Errorf("the definition of %s %s: %w", strings.ToLower(kind), name, err)
	}
	if len(rows) != 1 || rows[0][at] == "" {
		return d, &RefusedError{m.source, m.allowRoutines(), nil,
			fmt.Errorf("it does not show the text of the %s %s", strings.ToLower(kind), name)}
	}
	row := rows[0]
	d.text = row[at]
	if at > 1 {
		d.sqlMode = row[1]
	}
	if columns > at+2 {
		d.charset, d.collation = row[at+1], row[at+2]
	}
	return d, nil
}

// ask asks about the source.
func (m *mysqlCopying) ask(ctx context.Context, purpose string, columns int, text string, args ...any) ([][]string, error) {
	return m.conn.Query(ctx, catalogmysql.Query{Purpose: purpose, Text: text, Args: args, Columns: columns})
}
