package definitions

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/internal/dsn"
)

// Their one argument is the database.
var (
	// Tables of information_schema are not joined: MariaDB compares every row with every row.
	mysqlTables = catalogmysql.Query{Purpose: "the base tables", Columns: 1,
		Text: `SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_TYPE = 'BASE TABLE'`}
	mysqlColumns = catalogmysql.Query{Purpose: "the columns of tables", Columns: 5,
		Text: `SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, EXTRA FROM information_schema.COLUMNS
		WHERE TABLE_SCHEMA = ? ORDER BY TABLE_NAME, ORDINAL_POSITION`}
	mysqlKeys = catalogmysql.Query{Purpose: "the unique keys of tables", Columns: 4,
		Text: `SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS
		WHERE TABLE_SCHEMA = ? AND NON_UNIQUE = 0 ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX`}
	mysqlReferences = catalogmysql.Query{Purpose: "the columns of foreign keys", Columns: 5,
		Text: `SELECT TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE
		WHERE TABLE_SCHEMA = ? AND REFERENCED_TABLE_SCHEMA = TABLE_SCHEMA ORDER BY TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION`}
	mysqlRules = catalogmysql.Query{Purpose: "the rules of foreign keys", Columns: 4,
		Text: `SELECT TABLE_NAME, CONSTRAINT_NAME, DELETE_RULE, UPDATE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = ?`}
	mysqlTriggers = catalogmysql.Query{Purpose: "the triggers of tables", Columns: 4,
		Text: `SELECT EVENT_OBJECT_TABLE, TRIGGER_NAME, ACTION_TIMING, EVENT_MANIPULATION FROM information_schema.TRIGGERS
		WHERE EVENT_OBJECT_SCHEMA = ? ORDER BY EVENT_OBJECT_TABLE, TRIGGER_NAME`}
	mysqlViews = catalogmysql.Query{Purpose: "the views", Columns: 2,
		Text: `SELECT TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ? ORDER BY TABLE_NAME`}
)

// A mysqlReading reads a database's definitions.
type mysqlReading struct {
	reading
	conn     *catalogmysql.Conn
	database string
	counted  [][2]string // tables, and what has columns of theirs count up, once they are keys
}

func readMySQL(ctx context.Context, target dsn.Target) ([]Table, error) {
	if target.Database == "" {
		return nil, errors.New("the address names no database: write it behind the last /")
	}
	conn, err := catalogmysql.Connect(ctx, target)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	r := mysqlReading{reading: newReading(), conn: conn, database: target.Database}
	for _, part := range []func(context.Context) error{r.columns, r.keys, r.foreignKeys, r.triggers, r.views} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	return r.done(), nil
}

// rows asks about the database.
func (r *mysqlReading) rows(ctx context.Context, q catalogmysql.Query) ([][]string, error) {
	q.Args = []any{r.database}
	return r.conn.Query(ctx, q)
}

func (r *mysqlReading) columns(ctx context.Context) error {
	tables, err := r.rows(ctx, mysqlTables)
	if err != nil {
		return err
	}
	base := make(map[string]bool)
	for _, row := range tables {
		base[row[0]] = true
	}
	rows, err := r.rows(ctx, mysqlColumns)
	for _, row := range rows {
		if !base[row[0]] {
			continue
		}
		definition := ""
		if !own(row[1]) {
			definition = column(row)
			if strings.Contains(strings.ToLower(row[4]), "auto_increment") {
				r.counted = append(r.counted,
					[2]string{quote(row[0]), fmt.Sprintf("ALTER TABLE %s MODIFY %s AUTO_INCREMENT", quote(row[0]),
						definition)})
			}
		}
		r.column(r.database, row[0], quote(row[0]), definition)
	}
	r.end()
	return err
}

// readable are the types that TiDB's parser knows.
var readable = regexp.MustCompile(`^((tiny|small|medium|big)?int|decimal|float|double|bit|(var)?(char|binary)|(tiny|medium|long)?(text|blob)|enum|set|date|time|datetime|timestamp|year|json)\b`)

// column defines a column. What is of a type that cannot be read holds texts.
func column(row []string) string {
	typ := row[2]
	if !readable.MatchString(typ) {
		typ = "VARCHAR(255)"
	}
	if row[3] == "NO" {
		typ += " NOT NULL"
	}
	extra := strings.ToLower(row[4])
	if strings.Contains(extra, "generated") && !strings.Contains(extra, "default_generated") ||
		strings.Contains(extra, "persistent") {
		typ += " AS (NULL)"
	}
	if strings.Contains(extra, "on update") {
		typ = "TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP"
	}
	return quote(row[1]) + " " + typ
}

func (r *mysqlReading) keys(ctx context.Context) error {
	rows, err := r.rows(ctx, mysqlKeys)
	for i := 0; i < len(rows); {
		var columns []string
		whole := true
		first := rows[i]
		for ; i < len(rows) && rows[i][0] == first[0] && rows[i][1] == first[1]; i++ {
			columns = append(columns, quote(rows[i][2]))
			whole = whole && rows[i][3] == "" && rows[i][2] != "" && !own(rows[i][2])
		}
		kind := "UNIQUE"
		if first[1] == "PRIMARY" {
			kind = "PRIMARY KEY"
		}
		if whole {
			table := quote(first[0])
			r.key(table, fmt.Sprintf("ALTER TABLE %s ADD %s (%s)", table, kind, strings.Join(columns, ", ")))
		}
	}
	for _, c := range r.counted {
		r.key(c[0], c[1])
	}
	return err
}

func (r *mysqlReading) foreignKeys(ctx context.Context) error {
	rules := make(map[[2]string][]string)
	of, err := r.rows(ctx, mysqlRules)
	if err != nil {
		return err
	}
	for _, row := range of {
		rules[[2]string{row[0], row[1]}] = row[2:]
	}
	rows, err := r.rows(ctx, mysqlReferences)
	for i := 0; i < len(rows); {
		var columns, references []string
		first := rows[i]
		for ; i < len(rows) && rows[i][0] == first[0] && rows[i][1] == first[1]; i++ {
			columns, references = append(columns, quote(rows[i][2])), append(references, quote(rows[i][4]))
		}
		rule := rules[[2]string{first[0], first[1]}]
		if rule == nil { // it was made since
			continue
		}
		table := quote(first[0])
		r.reference(table, fmt.Sprintf("ALTER TABLE %s ADD CONSTRAINT %s FOREIGN KEY (%s) REFERENCES %s (%s) "+
			"ON DELETE %s ON UPDATE %s",
			table, quote(first[1]), strings.Join(columns, ", "), quote(first[3]), strings.Join(references, ", "),
			rule[0], rule[1]))
	}
	return err
}

// triggers tells that they are there, and not what they do.
func (r *mysqlReading) triggers(ctx context.Context) error {
	rows, err := r.rows(ctx, mysqlTriggers)
	for _, row := range rows {
		table := quote(row[0])
		r.reference(table, fmt.Sprintf("CREATE TRIGGER %s %s %s ON %s FOR EACH ROW DO 0", quote(row[1]), row[2], row[3],
			table))
	}
	return err
}

func (r *mysqlReading) views(ctx context.Context) error {
	rows, err := r.rows(ctx, mysqlViews)
	for _, row := range rows {
		r.view(r.database, row[0], quote(row[0]), strings.ReplaceAll(row[1], quote(r.database)+".", ""))
	}
	return err
}

// quote quotes a name.
func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
