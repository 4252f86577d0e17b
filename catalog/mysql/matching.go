package mysql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// A Matching says which rows match conditions over their tables: over the rows as they are given, in a temporary table
// of its own connection. The tables themselves are not read. Its login needs the privilege CREATE TEMPORARY TABLES.
// It is for one goroutine.
type Matching struct {
	conn   *Conn
	schema sqlmysql.Schema
}

// NewMatching connects to the server; the caller closes it. The schema tells the types of the columns.
func NewMatching(ctx context.Context, t dsn.Target, schema sqlmysql.Schema) (*Matching, error) {
	conn, err := Connect(ctx, t)
	if err != nil {
		return nil, err
	}
	return &Matching{conn, schema}, nil
}

// ErrNoTemporaryTables says that the login may not make the temporary tables that conditions are tested in.
var ErrNoTemporaryTables = errors.New("isotap's login lacks the privilege CREATE TEMPORARY TABLES")

// Try reports, by [ErrNoTemporaryTables], that nothing can be tested in a database.
func (m *Matching) Try(ctx context.Context, database string) error {
	rows := quote(database) + "." + matchedRows
	for _, statement := range []string{"CREATE TEMPORARY TABLE " + rows + " (" + matchedNumber + " INT NOT NULL)",
		"DROP TEMPORARY TABLE " + rows} {
		if _, err := m.conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("test conditions in %s: %w", database, lacksTemporaryTables(err))
		}
	}
	return nil
}

// Close ends the connection.
func (m *Matching) Close() error { return m.conn.Close() }

const (
	// fillSettings are those under which the values of images mean what they meant when they were taken.
	fillSettings = "SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'"
	// matchedRows is the temporary table, and matchedNumber its column that numbers the rows.
	matchedRows, matchedNumber = "isotap_rows", "isotap_n"
	// maxFill is the size of a statement that fills it, in bytes.
	maxFill = 256 << 10
)

// Test returns for each predicate, all over the same table, the places in images of the rows that match, and whether an
// image lacks a column of the condition: it is then not known to match.
func (m *Matching) Test(ctx context.Context, _ string, predicates []history.Predicate,
	images []string) (matching [][]int, lacking []bool, err error) {
	found := outcomes{make([][]int, len(predicates)), make([]bool, len(predicates)), make([]error, len(predicates))}
	for _, g := range groupImages(images) {
		if err := m.testGroup(ctx, g, predicates, &found); err != nil {
			return nil, nil, fmt.Errorf("test predicates over %s: %w", predicates[0].Table, err)
		}
	}
	for i, err := range found.failures {
		if err != nil && found.matching[i] == nil {
			return nil, nil, fmt.Errorf("test a predicate over %s: %w", predicates[i].Table, err)
		}
	}
	for i := range found.matching {
		slices.Sort(found.matching[i])
	}
	return found.matching, found.lacking, nil
}

// Why says of an error of Test's whether the server refused a predicate, or otherwise whether it was reached at all.
func (m *Matching) Why(err error) (refused, reached bool) {
	var login *catalog.LoginError
	var said *mysql.MyError
	switch {
	case errors.As(err, &login):
		return false, false
	case errors.As(err, &said):
		return !slices.Contains(transientCodes, said.Code), true
	}
	return false, true
}

// transientCodes are those of errors that say nothing of a statement: somebody ended it or its session, the server
// lacks something now or ends, or others were in the way.
var transientCodes = []uint16{mysql.ER_QUERY_INTERRUPTED, mysql.ER_SERVER_SHUTDOWN, mysql.ER_NEW_ABORTING_CONNECTION,
	connectionKilled, mysql.ER_LOCK_WAIT_TIMEOUT, mysql.ER_LOCK_DEADLOCK, mysql.ER_OUTOFMEMORY,
	mysql.ER_OUT_OF_RESOURCES, mysql.ER_DISK_FULL, mysql.ER_RECORD_FILE_FULL, statementTimeout, queryTimeout}

// Codes that the library does not name. All but the last are MariaDB's.
const (
	connectionKilled uint16 = 1927
	statementTimeout uint16 = 1969
	queryTimeout     uint16 = 3024
)

// Outcomes say of each predicate what matches it, whether an image lacked a column of it, and the server's error.
type outcomes struct {
	matching [][]int
	lacking  []bool
	failures []error
}

// A group are images of the same columns.
type group struct {
	columns string
	rows    []string // their values
	places  []int
}

func groupImages(images []string) (groups []*group) {
	known := make(map[string]*group)
	for i, image := range images {
		columns, values, _ := strings.Cut(image, sqlmysql.ImageValues)
		g := known[columns]
		if g == nil {
			g = &group{columns: columns}
			known[columns], groups = g, append(groups, g)
		}
		g.rows, g.places = append(g.rows, values), append(g.places, i)
	}
	return groups
}

// testGroup adds what it finds out about a group.
func (m *Matching) testGroup(ctx context.Context, g *group, predicates []history.Predicate, found *outcomes) error {
	schema, table, ok := splitName(predicates[0].Of)
	if !ok {
		return fmt.Errorf("%s is no name of a table", predicates[0].Of)
	}
	rows := quote(schema) + "." + matchedRows
	of := m.schema.Table(schema, table)
	if err := m.fill(ctx, rows, of, g); err != nil {
		return err
	}
	for _, together := range groupPredicates(predicates) {
		err := m.hold(ctx, rows, g, predicates, together, found.matching)
		if isServerError(err) {
			err = nil
			for i, place := range together {
				failed := m.hold(ctx, rows, g, predicates, together[i:i+1], found.matching)
				switch {
				case lacksColumn(failed, of): // other images may have it
					found.lacking[place] = true
				case isServerError(failed):
					found.failures[place] = failed
				case failed != nil:
					err = failed
				}
			}
		}
		if err != nil {
			return err
		}
	}
	_, err := m.conn.Exec(ctx, "DROP TEMPORARY TABLE "+rows)
	return err
}

// unknownColumn is how the server says that a condition names a column which the rows do not have.
var unknownColumn = regexp.MustCompile(`^Unknown column '(?:[^']*\.)?([^'.]+)' in `)

// lacksColumn reports whether a condition could not be tested because images of a table lack one of its columns.
func lacksColumn(err error, t *sqlmysql.Table) bool {
	var e *mysql.MyError
	if !errors.As(err, &e) || e.Code != mysql.ER_BAD_FIELD_ERROR || t == nil {
		return false
	}
	name := unknownColumn.FindStringSubmatch(e.Message)
	return name != nil && slices.ContainsFunc(t.Columns, func(c sqlmysql.Column) bool {
		return strings.EqualFold(c.Name, name[1])
	})
}

// lacksTemporaryTables returns an error with the privilege's name where it is that which is missing: the server's words
// name only the database.
func lacksTemporaryTables(err error) error {
	var e *mysql.MyError
	if errors.As(err, &e) && e.Code == mysql.ER_DBACCESS_DENIED_ERROR {
		return fmt.Errorf("%w: %w", ErrNoTemporaryTables, err)
	}
	return err
}

// groupPredicates returns the places of predicates that one query can test: they refer to the table by the same name,
// and their literals are read alike.
func groupPredicates(predicates []history.Predicate) (groups [][]int) {
	type manner struct {
		as  string
		set history.LiteralSettings
	}
	known := make(map[manner]int)
	for i := range predicates {
		k := manner{predicates[i].As, predicates[i].Settings}
		at, ok := known[k]
		if !ok {
			at = len(groups)
			known[k], groups = at, append(groups, nil)
		}
		groups[at] = append(groups[at], i)
	}
	return groups
}

// hold adds the rows of a group that match the predicates at some places, in one query.
func (m *Matching) hold(ctx context.Context, rows string, g *group, predicates []history.Predicate, together []int,
	matching [][]int) error {
	first := &predicates[together[0]]
	if err := m.read(ctx, first.Settings); err != nil {
		return err
	}
	var tests strings.Builder
	for _, i := range together {
		// The condition has a line of its own: it may end with a comment.
		fmt.Fprintf(&tests, ", (%s\n) IS TRUE", cmp.Or(predicates[i].Where, "TRUE"))
	}
	answer, err := m.conn.queryOnce(ctx, Query{Purpose: "the rows that match predicates", Columns: 2,
		Text: "SELECT " + matchedNumber + ", CONCAT(''" + tests.String() + ") FROM " + rows + " AS " + first.As})
	if err != nil {
		return err
	}
	for _, row := range answer {
		n, err := strconv.Atoi(row[0])
		if err != nil || n < 0 || n >= len(g.places) {
			return fmt.Errorf("the server numbers a row %q of %d", row[0], len(g.places))
		}
		found := row[1]
		if len(found) != len(together) {
			return fmt.Errorf("the server says %q of %d conditions", found, len(together))
		}
		for j, i := range together {
			if found[j] == '1' {
				matching[i] = append(matching[i], g.places[n])
			}
		}
	}
	return nil
}

// read has literals read as another session does.
func (m *Matching) read(ctx context.Context, s history.LiteralSettings) error {
	_, err := m.conn.Exec(ctx, "SET time_zone = ?, sql_mode = ?, collation_connection = ?", s.TimeZone, s.SQLMode,
		s.Collation)
	return err
}

// fill makes the temporary table, of the columns that the group's images have.
func (m *Matching) fill(ctx context.Context, rows string, t *sqlmysql.Table, g *group) error {
	if t == nil {
		return errors.New("there is no such table")
	}
	var columns strings.Builder
	for _, c := range t.Columns {
		if strings.Contains(g.columns, quote(c.Name)) {
			columns.WriteString(", " + definition(&c))
		}
	}
	for _, statement := range []string{fillSettings, "DROP TEMPORARY TABLE IF EXISTS " + rows,
		"CREATE TEMPORARY TABLE " + rows + " (" + matchedNumber + " INT NOT NULL" + columns.String() +
			") ENGINE = InnoDB"} {
		if _, err := m.conn.Exec(ctx, statement); err != nil {
			return lacksTemporaryTables(err)
		}
	}
	head := "INSERT INTO " + rows + " (" + matchedNumber + ", " + g.columns[1:] + " VALUES "
	var b strings.Builder
	for i, values := range g.rows {
		if b.Len() == 0 {
			b.WriteString(head)
		} else {
			b.WriteString(", ")
		}
		b.WriteString("(" + strconv.Itoa(i) + ", " + values)
		if b.Len() < maxFill && i < len(g.rows)-1 {
			continue
		}
		if _, err := m.conn.Exec(ctx, b.String()); err != nil {
			return err
		}
		b.Reset()
	}
	return nil
}

// definition returns a column that compares as another does.
func definition(c *sqlmysql.Column) string {
	d := quote(c.Name) + " " + c.Full
	if c.Collation != "" {
		d += " COLLATE " + c.Collation
	}
	if c.NotNull {
		return d + " NOT NULL"
	}
	return d + " NULL"
}

// splitName reads `schema`.`table`.
func splitName(s string) (schema, table string, ok bool) {
	for _, name := range []*string{&schema, &table} {
		if s == "" || s[0] != '`' {
			return "", "", false
		}
		n := mysqltoken.Quoted(s, false)
		if n < 0 {
			return "", "", false
		}
		*name = strings.ReplaceAll(s[1:n-1], "``", "`")
		s = strings.TrimPrefix(s[n:], ".")
	}
	return schema, table, s == ""
}
