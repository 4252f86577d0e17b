package oracle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/replay"
)

// numberColumn is the column by which the bench knows the rows of its tables. Statements do not see it: on
// PostgreSQL the tables have other names, and statements get views of them. In the MySQL family it is an invisible
// column of tables without a primary key; rows of the others are known by that.
const numberColumn = "isotap_row"

// tidbRowID is the column that TiDB's tables without a primary key have: TiDB has no invisible columns.
const tidbRowID = "_tidb_rowid"

// benchPrefix is what the names of tables behind views begin with.
const benchPrefix = "isotap_of_"

// errNoView says that a view cannot be made as a table.
var errNoView = errors.New("the view is no table")

// A bench is a database like the script's, in which a statement is tried on the view that it has to have.
type bench struct {
	ctx     context.Context
	engine  dbms.Engine
	scratch *replay.Scratch
	fill    *replay.Connection
	twins   map[string]*replay.Connection // by session
	tables  []*benchTable
	// related says that tables refer to each other.
	related bool
	next    int // the last number that a row has
}

// A benchTable is a table of the bench, and what is in it.
type benchTable struct {
	name, quoted, stored string // as statements name it; with quotes; the table that has its rows
	columns              []string
	given                []bool // by column: it can be given a value
	key                  []int  // the columns of its primary key
	numbered             bool   // the server gives numbers for a column
	byKey                bool   // its rows are known by its primary key
	number               string // else by this column
	filled               bool   // it has the rows of a view
	rows                 map[int][]replay.Value
}

// identity are the columns by which the table's rows are known.
func (t *benchTable) identity() string {
	if !t.byKey {
		return t.number
	}
	all := make([]string, len(t.key))
	for i, c := range t.key {
		all[i] = t.columns[c]
	}
	return strings.Join(all, ", ")
}

// numberOf returns the number of the row with an identity; 0 where there is none.
func (t *benchTable) numberOf(identity []replay.Value) int {
	if !t.byKey {
		n, _ := strconv.Atoi(identity[0].Text) // NULL: a new one
		if _, known := t.rows[n]; !known && t.number == tidbRowID && t.filled {
			return 0 // its number is the server's
		}
		return n
	}
	for n, values := range t.rows {
		same := true
		for i, c := range t.key {
			same = same && values[c] == identity[i]
		}
		if same {
			return n
		}
	}
	return 0
}

// openBench makes one, with the script's set-up and a connection for each of its sessions.
func openBench(ctx context.Context, open func(context.Context) (*replay.Scratch, error), engine dbms.Engine,
	s *scenario.Scenario) (*bench, error) {
	scratch, err := open(ctx)
	if err != nil {
		return nil, err
	}
	b := &bench{ctx: ctx, engine: engine, scratch: scratch, twins: make(map[string]*replay.Connection)}
	if err := b.prepare(s); err != nil {
		return nil, errors.Join(err, scratch.Close())
	}
	return b, nil
}

func (b *bench) prepare(s *scenario.Scenario) (err error) {
	if b.fill, err = b.scratch.Connect(b.ctx, history.ReadCommitted, nil); err != nil {
		return err
	}
	if err := b.do(s.Setup...); err != nil {
		return err
	}
	if err := b.look(); err != nil {
		return err
	}
	if err := b.number(); err != nil {
		return err
	}
	for _, x := range s.Sessions {
		c, err := b.scratch.Connect(b.ctx, history.ReadCommitted, x.Settings)
		if err != nil {
			return err
		}
		for _, sql := range x.Setup {
			if r, err := c.Ask(sql); err != nil || r.Status != replay.OK {
				return errors.Join(err, fmt.Errorf("session %s: %s fails", x.Name, sql))
			}
		}
		b.twins[x.Name] = c
	}
	return nil
}

func (b *bench) close() error { return b.scratch.Close() }

func (b *bench) postgresql() bool { return b.engine == dbms.PostgreSQL }

// do runs statements of the bench's own.
func (b *bench) do(statements ...string) error {
	for _, sql := range statements {
		if _, err := b.ask(sql); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) ask(sql string) (*replay.Result, error) {
	r, err := b.fill.Ask(sql)
	if err == nil && r.Status != replay.OK {
		err = fmt.Errorf("%s: %s: %s", sql, r.ErrorCode(), r.Message)
	}
	return r, err
}

func (b *bench) quote(name string) string {
	q := "`"
	if b.postgresql() {
		q = `"`
	}
	return q + strings.ReplaceAll(name, q, q+q) + q
}

// What the bench asks about its tables: the tables, their columns with whether they can be given a value and whether
// the server gives numbers for them, and those of the primary keys.
const (
	mysqlTables = `SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND
		TABLE_TYPE = 'BASE TABLE' ORDER BY 1`
	mysqlColumns = `SELECT TABLE_NAME, COLUMN_NAME, COALESCE(GENERATION_EXPRESSION, '') = '', EXTRA LIKE '%auto_increment%',
		COLUMN_KEY = 'PRI' FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1, ORDINAL_POSITION`
	mysqlRelations    = "SELECT COUNT(*) FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = DATABASE()"
	postgresqlTables  = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1"
	postgresqlColumns = `SELECT c.relname, a.attname, a.attgenerated = '',
		a.attidentity <> '' OR COALESCE(pg_get_expr(d.adbin, d.adrelid), '') LIKE 'nextval%',
		EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND a.attnum = ANY (i.indkey))
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND
		d.adnum = a.attnum WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND a.attnum > 0 AND
		NOT a.attisdropped ORDER BY 1, a.attnum`
	postgresqlRelations = `SELECT COUNT(*) FROM pg_constraint WHERE contype = 'f' AND
		connamespace = current_schema()::regnamespace`
)

// look finds the tables.
func (b *bench) look() error {
	tables, columns, relations := mysqlTables, mysqlColumns, mysqlRelations
	if b.postgresql() {
		tables, columns, relations = postgresqlTables, postgresqlColumns, postgresqlRelations
	}
	r, err := b.ask(tables)
	if err != nil {
		return err
	}
	for _, row := range r.Rows {
		name := row[0].Text
		t := &benchTable{name: name, quoted: b.quote(name), stored: b.quote(name), number: numberColumn,
			rows: make(map[int][]replay.Value)}
		if b.postgresql() {
			t.stored = b.quote(benchPrefix + name)
		}
		b.tables = append(b.tables, t)
	}
	if r, err = b.ask(columns); err != nil {
		return err
	}
	isTrue := func(v replay.Value) bool { return v.Text == "1" || v.Text == "t" }
	for _, row := range r.Rows {
		t := b.table(row[0].Text)
		if t == nil {
			continue
		}
		if isTrue(row[4]) {
			t.key = append(t.key, len(t.columns))
		}
		t.columns, t.given = append(t.columns, b.quote(row[1].Text)), append(t.given, isTrue(row[2]))
		t.numbered = t.numbered || isTrue(row[3])
	}
	if r, err = b.ask(relations); err != nil {
		return err
	}
	b.related = r.Rows[0][0].Text != "0"
	return nil
}

func (b *bench) table(name string) *benchTable {
	i := slices.IndexFunc(b.tables, func(t *benchTable) bool { return strings.EqualFold(t.name, name) })
	if i < 0 {
		return nil
	}
	return b.tables[i]
}

func (b *bench) names() []string {
	all := make([]string, len(b.tables))
	for i, t := range b.tables {
		all[i] = t.name
	}
	return all
}

// number gives the rows of the set-up their numbers.
func (b *bench) number() error {
	if b.postgresql() {
		for _, t := range b.tables {
			if err := b.do("ALTER TABLE "+t.quoted+" RENAME TO "+t.stored, "ALTER TABLE "+t.stored+" ADD "+numberColumn+" INT",
				"CREATE VIEW "+t.quoted+" AS SELECT "+strings.Join(t.columns, ", ")+" FROM "+t.stored); err != nil {
				return err
			}
		}
		if err := b.do("SET session_replication_role = replica"); err != nil {
			return err
		}
	} else {
		for _, t := range b.tables {
			if t.byKey = len(t.key) > 0; t.byKey {
				continue
			}
			if b.engine == dbms.TiDB {
				t.number = tidbRowID
				continue
			}
			if err := b.do("ALTER TABLE " + t.quoted + " ADD " + numberColumn + " INT INVISIBLE"); err != nil {
				return err
			}
		}
		if err := b.do("SET foreign_key_checks = 0, sql_mode = 'NO_AUTO_VALUE_ON_ZERO'"); err != nil {
			return err
		}
		if b.engine == dbms.TiDB {
			if err := b.do("SET tidb_opt_write_row_id = 1"); err != nil {
				return err
			}
		}
	}
	for _, t := range b.tables {
		found, err := b.dump(b.fill, t)
		if err != nil {
			return err
		}
		view := make(map[int][]replay.Value)
		for _, row := range found {
			b.next++
			view[b.next] = row.values
		}
		if err := b.do("DELETE FROM " + t.stored); err != nil {
			return err
		}
		if err := b.put(t, view); err != nil {
			return err
		}
	}
	return nil
}

// A found row is one that the bench has in a table.
type found struct {
	number int // 0: a new one
	values []replay.Value
	place  string // PostgreSQL: where it is stored
	holder string // PostgreSQL: who has written or locked it
}

// dump reads a table of the bench, in the order of a scan.
func (b *bench) dump(c *replay.Connection, t *benchTable) ([]found, error) {
	place := "'', ''"
	if b.postgresql() {
		place = "ctid, xmax"
	}
	r, err := c.Ask("SELECT " + place + ", " + strings.Join(t.columns, ", ") + ", " + t.identity() + " FROM " + t.stored)
	if err != nil {
		return nil, err
	}
	if r.Status != replay.OK {
		return nil, fmt.Errorf("%s: %s", r.SQL, r.Message)
	}
	all := make([]found, len(r.Rows))
	for i, row := range r.Rows {
		end := 2 + len(t.columns)
		all[i] = found{number: t.numberOf(row[end:]), place: row[0].Text, holder: row[1].Text, values: row[2:end:end]}
	}
	return all, nil
}

// put has a table hold a view.
func (b *bench) put(t *benchTable, view map[int][]replay.Value) error {
	var gone, rows []string
	var numbers []int
	for _, n := range slices.Sorted(maps.Keys(t.rows)) {
		if values, ok := view[n]; !ok || !slices.Equal(values, t.rows[n]) {
			gone, numbers = append(gone, b.identity(t, n)), append(numbers, n)
		}
	}
	var columns []string
	if !t.byKey {
		columns = append(columns, t.number)
	}
	for i, c := range t.columns {
		if t.given[i] {
			columns = append(columns, c)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(view)) {
		if values, ok := t.rows[n]; ok && slices.Equal(values, view[n]) {
			continue
		}
		var literals []string
		if !t.byKey {
			literals = append(literals, strconv.Itoa(n))
		}
		for i, v := range view[n] {
			if t.given[i] {
				literals = append(literals, b.literal(v))
			}
		}
		rows = append(rows, "("+strings.Join(literals, ", ")+")")
	}
	if len(gone) > 0 {
		which := t.number
		if t.byKey {
			which = "(" + t.identity() + ")"
		}
		if err := b.do("DELETE FROM " + t.stored + " WHERE " + which + " IN (" + strings.Join(gone, ", ") + ")"); err != nil {
			return err
		}
		for _, n := range numbers {
			delete(t.rows, n)
		}
	}
	if len(rows) > 0 {
		overriding := ""
		if b.postgresql() {
			overriding = " OVERRIDING SYSTEM VALUE"
		}
		if _, err := b.ask("INSERT INTO " + t.stored + " (" + strings.Join(columns, ", ") + ")" +
			overriding + " VALUES " + strings.Join(rows, ", ")); err != nil {
			return fmt.Errorf("%w: %w", errNoView, err)
		}
	}
	for n, values := range view {
		t.rows[n] = values
	}
	t.filled = true
	return nil
}

// identity writes the identity of a row that is in a table.
func (b *bench) identity(t *benchTable, n int) string {
	if !t.byKey {
		return strconv.Itoa(n)
	}
	all := make([]string, len(t.key))
	for i, c := range t.key {
		all[i] = b.literal(t.rows[n][c])
	}
	return "(" + strings.Join(all, ", ") + ")"
}

// literal writes a value.
func (b *bench) literal(v replay.Value) string {
	if v.Null {
		return "NULL"
	}
	text := strings.ReplaceAll(v.Text, "'", "''")
	if !b.postgresql() {
		text = strings.ReplaceAll(text, `\`, `\\`)
	}
	return "'" + text + "'"
}

// A trial is what came of a statement on the bench.
type trial struct {
	answer answer
	// changes are the rows that it left otherwise, and touched the numbers of those that it wrote or locked, whether
	// they changed or not; known says that all of these are known.
	changes []change
	touched []int
	known   bool
}

// A change is what a statement made of a row: of a new one the number is 0, a deleted one has no values.
type change struct {
	table  *benchTable
	number int
	values []replay.Value
}

// wrote is what a statement has changed, as text.
func (t *trial) wrote() string {
	var all []string
	for _, x := range t.changes {
		all = append(all, fmt.Sprintf("%s %d %s", x.table.name, x.number, rowText(x.values)))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// try runs a statement on what is in the tables, and undoes it.
func (b *bench) try(session string, s *statement, insertID uint64) (*trial, error) {
	c := b.twins[session]
	ask := c.Ask
	t := &trial{known: true}
	if s.verb == selects {
		r, err := ask(s.text)
		t.answer.Result = r
		return t, err
	}
	begin := "BEGIN"
	if b.engine == dbms.TiDB {
		begin = "BEGIN PESSIMISTIC" // which checks keys at once
	}
	if _, err := ask(begin); err != nil {
		return nil, err
	}
	before := make(map[*benchTable][]found)
	if b.postgresql() {
		for _, table := range b.tables {
			var err error
			if before[table], err = b.dump(c, table); err != nil {
				return nil, err
			}
		}
	} else if s.verb != inserts {
		if err := b.choose(t, s, ask); err != nil {
			return nil, err
		}
	}
	if insertID != 0 && !b.postgresql() {
		if _, err := ask(fmt.Sprintf("SET insert_id = %d", insertID)); err != nil {
			return nil, err
		}
	}
	var err error
	if t.answer.Result, err = ask(s.text); err != nil {
		return nil, err
	}
	if t.answer.Status == replay.OK {
		if err := b.compare(c, s, t, before); err != nil {
			return nil, err
		}
	}
	_, err = ask("ROLLBACK")
	return t, err
}

// choose asks which rows the statement chooses.
func (b *bench) choose(t *trial, s *statement, ask func(string) (*replay.Result, error)) error {
	from := s.chosen()
	named := append(slices.Clone(s.named[inMain]), s.named[inTarget]...)
	if t.known = from != "" && len(named) == 1; !t.known {
		return nil
	}
	table := b.table(named[0])
	r, err := ask("SELECT " + table.identity() + from)
	if err != nil {
		return err
	}
	if t.known = r.Status == replay.OK; t.known {
		for _, row := range r.Rows {
			t.touch(table.numberOf(row))
		}
	}
	return nil
}

// compare finds out what a statement has changed, and on PostgreSQL what it has locked of the tables that it is
// about.
func (b *bench) compare(c *replay.Connection, s *statement, t *trial, before map[*benchTable][]found) error {
	for _, table := range b.tables {
		after, err := b.dump(c, table)
		if err != nil {
			return err
		}
		was := make(map[int]found)
		for _, row := range before[table] {
			was[row.number] = row
		}
		about := slices.Contains(s.named[inMain], table.name) || slices.Contains(s.named[inTarget], table.name)
		left := make(map[int]bool)
		for _, row := range after {
			left[row.number] = true
			if row.number == 0 || !slices.Equal(row.values, table.rows[row.number]) {
				t.changes = append(t.changes, change{table, row.number, row.values})
			}
			x := was[row.number]
			if b.postgresql() && row.number != 0 && (x.place != row.place || about && x.holder != row.holder) {
				t.touch(row.number)
			}
		}
		for _, n := range slices.Sorted(maps.Keys(table.rows)) {
			if !left[n] {
				t.changes = append(t.changes, change{table: table, number: n})
				t.touch(n)
			}
		}
	}
	return nil
}

func (t *trial) touch(n int) {
	if !slices.Contains(t.touched, n) {
		t.touched = append(t.touched, n)
	}
}
