package mysql

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// A reading is what information_schema says, of all tables or of one.
type reading struct {
	cache       *Cache
	only        *name // nil: all tables outside the system schemas
	tables      map[name]*sqlmysql.Table
	foreignKeys []foreignKey
	references  map[reference][]string // the columns of its parent that a foreign key references
	lasting     map[name]bool          // tables of an engine that cannot roll back
}

// The parts of a reading. In each, the first two columns name the table and %s stands for the
// condition that selects it.
const (
	readTables  = "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE %s"
	readColumns = `SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE, EXTRA, COLUMN_DEFAULT, CHARACTER_OCTET_LENGTH,
		COLUMN_TYPE, COLLATION_NAME, IS_NULLABLE
		FROM information_schema.COLUMNS WHERE %s ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION`
	readIndexes = `SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, NON_UNIQUE, SUB_PART, COLUMN_NAME
		FROM information_schema.STATISTICS WHERE %s ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX`
	readViews    = `SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE %s`
	readTriggers = `SELECT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, EVENT_MANIPULATION
		FROM information_schema.TRIGGERS WHERE %s`
	readForeignKeys = `SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME, UPDATE_RULE, DELETE_RULE,
		CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE %s`
	readReferenced = `SELECT TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, REFERENCED_COLUMN_NAME
		FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_COLUMN_NAME IS NOT NULL AND (%s)`
)

// A part of a reading: what its result must look like, the columns that name the table in its condition, and what takes
// a row of its result.
type part struct {
	query         Query
	schema, table string
	add           func(n name, row row)
}

// newReading returns one that is to be of all tables, or of one.
func (c *Cache) newReading(only *name) *reading {
	return &reading{cache: c, only: only, tables: map[name]*sqlmysql.Table{}, references: map[reference][]string{},
		lasting: map[name]bool{}}
}

// read asks the server for all tables, or for one, of which the triggers may be known.
func (c *Cache) read(ctx context.Context, conn *Conn, only *name, known *triggers) (*reading, error) {
	r := c.newReading(only)
	if only != nil && c.showable() {
		read, err := r.readShown(ctx, conn, known)
		if err != nil {
			return nil, err
		}
		if read {
			r.done()
			return r, nil
		}
	}
	parts := []part{
		{Query{Purpose: "the tables", Text: readTables, Columns: 4}, "TABLE_SCHEMA", "TABLE_NAME", r.addTable},
		{Query{Purpose: "the columns of tables", Text: readColumns, Columns: 10}, "TABLE_SCHEMA", "TABLE_NAME",
			r.addColumn},
		{Query{Purpose: "the indexes of tables", Text: readIndexes, Columns: 6}, "TABLE_SCHEMA", "TABLE_NAME",
			r.addIndexPart},
		{Query{Purpose: "the queries of views", Text: readViews, Columns: 3}, "TABLE_SCHEMA", "TABLE_NAME", r.addView},
		{Query{Purpose: "the triggers of tables", Text: readTriggers, Columns: 3}, "EVENT_OBJECT_SCHEMA",
			"EVENT_OBJECT_TABLE", r.addTrigger},
		{Query{Purpose: "the foreign keys of tables", Text: readForeignKeys, Columns: 7}, "CONSTRAINT_SCHEMA",
			"TABLE_NAME", r.addForeignKey},
		{Query{Purpose: "the columns of foreign keys", Text: readReferenced, Columns: 4}, "TABLE_SCHEMA", "TABLE_NAME",
			r.addReferenced},
	}
	if err := r.ask(ctx, conn, parts); err != nil {
		return nil, err
	}
	r.done()
	return r, nil
}

// done relates what was read to each other, in an order that does not depend on how it was read.
func (r *reading) done() {
	for i, k := range r.foreignKeys {
		r.foreignKeys[i].references = r.references[k.reference]
	}
	slices.SortFunc(r.foreignKeys, func(a, b foreignKey) int { return strings.Compare(a.constraint, b.constraint) })
	for _, t := range r.tables {
		slices.SortStableFunc(t.Indexes, func(a, b rewrite.Index) int {
			return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
		})
	}
}

// query returns that of a part, of the tables to be read.
func (r *reading) query(p part) Query {
	q := p.query
	q.Text = strings.Replace(q.Text, "%s", r.where(p), 1)
	return q
}

// ask takes the parts. Those of one table come in one round trip: on it hangs how long a statement waits for its table.
func (r *reading) ask(ctx context.Context, conn *Conn, parts []part) error {
	queries := make([]Query, len(parts))
	for i, p := range parts {
		queries[i] = r.query(p)
	}
	if r.only != nil {
		results, err := conn.QueryAll(ctx, queries...)
		if err != nil {
			return err
		}
		for i, p := range parts {
			r.add(p, results[i])
		}
		return nil
	}
	for i, p := range parts {
		rows, err := conn.Query(ctx, queries[i])
		if err != nil {
			return err
		}
		r.add(p, rows)
	}
	return nil
}

func (r *reading) add(p part, rows []row) {
	for _, row := range rows {
		p.add(r.cache.name(row[0], row[1]), row)
	}
}

// where returns the condition that selects the tables to be read. MariaDB opens only the table whose names are
// constants in it.
func (r *reading) where(p part) string {
	if r.only == nil {
		return p.schema + " NOT IN ('" + strings.Join(systemSchemas, "', '") + "')"
	}
	return p.schema + " = " + literal(r.only.schema) + " AND " + p.table + " = " + literal(r.only.table)
}

// literal quotes a text under the settings that a [Conn] has.
func literal(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(text) + "'"
}

func (r *reading) addTable(n name, row row) {
	// information_schema compares without regard to case, also where the server's names differ by it.
	if r.only != nil && n != *r.only {
		return
	}
	r.lasting[n] = !strings.EqualFold(row[3], "InnoDB")
	r.tables[n] = &sqlmysql.Table{Table: rewrite.Table{
		Name:      row[0] + "." + row[1],
		View:      row[2] == "VIEW",
		Temporary: row[2] == "TEMPORARY",
	}}
}

func (r *reading) addColumn(n name, row row) {
	t := r.tables[n]
	if t == nil { // made since the tables were read
		return
	}
	column, kind, extra, preset, bytes := row[2], strings.ToLower(row[3]), row[4], row[5], row[6]
	if column == rewrite.RowIDColumn || column == rewrite.WListColumn {
		t.Exposed = t.Exposed || !strings.Contains(extra, "INVISIBLE")
	}
	switch column {
	case rewrite.RowIDColumn:
		// Without its default the column is there, but not every row's id yet. In a table that cannot roll
		// back, what a transaction wrote says nothing about how it ended.
		t.Instrumented = preset != "" && preset != "NULL" && !r.lasting[n]
	case rewrite.WListColumn:
		t.WListBytes = 0
		if kind == "varbinary" {
			t.WListBytes, _ = strconv.Atoi(bytes) // the server's number
		}
	default:
		t.Columns = append(t.Columns, sqlmysql.Column{
			Column: rewrite.Column{
				Name:      column,
				Type:      kind,
				Full:      row[7],
				Collation: row[8],
				Generated: isGenerated(extra),
				NotNull:   row[9] == "NO",
			},
			Invisible:       strings.Contains(extra, "INVISIBLE"),
			AutoIncrement:   strings.Contains(extra, "auto_increment"),
			ComputedDefault: r.cache.isFilled(kind, extra, preset),
			OnUpdate:        strings.Contains(strings.ToLower(extra), "on update"),
			Default:         r.cache.presetOf(kind, extra, preset, row[9] == "NO"),
		})
	}
}

func (r *reading) addView(n name, row row) {
	if t := r.tables[n]; t != nil && t.View {
		t.Query = row[2]
	}
}

// presetOf returns a column's default as a literal; empty where it is not known, or worked out for each row.
func (c *Cache) presetOf(kind, extra, preset string, notNull bool) string {
	textual := strings.HasSuffix(kind, "char") || kind == "enum" || kind == "set"
	known := textual || slices.Contains([]string{"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float",
		"double", "year", "date", "datetime", "time"}, kind)
	switch {
	case isGenerated(extra), strings.Contains(extra, "auto_increment"), c.isFilled(kind, extra, preset),
		strings.Contains(preset, `\`):
		return ""
	case c.quotes && (known || preset == "NULL"):
		return preset
	case c.quotes:
		return ""
	case preset == "" && !notNull && !textual: // a text's may be an empty one
		return "NULL"
	case preset == "" || !known || strings.Contains(preset, "'"):
		return ""
	}
	return "'" + preset + "'"
}

// isGenerated reads a column's EXTRA. MySQL says DEFAULT_GENERATED of a default that is an expression.
func isGenerated(extra string) bool {
	return strings.Contains(extra, "VIRTUAL GENERATED") || strings.Contains(extra, "STORED GENERATED")
}

// isFilled reports whether a column's default is worked out for each row. MariaDB spells it as SQL does, so that what
// is neither a string nor a number nor NULL is an expression; so are the defaults of its long texts.
func (c *Cache) isFilled(kind, extra, preset string) bool {
	if !c.quotes {
		return strings.Contains(extra, "DEFAULT_GENERATED") ||
			strings.HasPrefix(strings.ToUpper(preset), "CURRENT_TIMESTAMP")
	}
	if preset == "" || preset == "NULL" {
		return false
	}
	long := strings.HasSuffix(kind, "text") || strings.HasSuffix(kind, "blob")
	_, err := strconv.ParseFloat(preset, 64)
	return long || err != nil && !(strings.HasPrefix(preset, "'") &&
		strings.IndexByte(preset[1:], '\'') == len(preset)-2)
}

func (r *reading) addIndexPart(n name, row row) {
	t := r.tables[n]
	if t == nil {
		return
	}
	index, nonUnique, prefix, column := row[2], row[3], row[4], row[5]
	if last := len(t.Indexes) - 1; last < 0 || t.Indexes[last].Name != index {
		t.Indexes = append(t.Indexes, rewrite.Index{Name: index, Primary: index == "PRIMARY", Unique: nonUnique == "0"})
	}
	if prefix != "" {
		column = ""
	}
	i := &t.Indexes[len(t.Indexes)-1]
	i.Columns = append(i.Columns, column)
}

func (r *reading) addTrigger(n name, row row) {
	t := r.tables[n]
	if t == nil {
		return
	}
	switch row[2] {
	case "INSERT":
		t.InsertTrigger = true
	case "UPDATE":
		t.UpdateTrigger = true
	case "DELETE":
		t.DeleteTrigger = true
	}
}
