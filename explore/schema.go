package explore

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/sqltoken"
)

// A column is one of a table, both by their names without a schema.
type column struct{ table, name string }

func (c column) String() string { return c.table + "." + c.name }

// A schema is what the server says of the tables.
type schema struct {
	family dbms.Family
	tidb   bool
	// carried are isotap's columns by table, where statements meet them that name no columns: on TiDB, whose tables
	// cannot hide them, so that the proxy does.
	carried map[string][]string
	// next are, on TiDB, the numbers that tables begin to count with. It tells none itself before one was drawn.
	next map[string]string
	// databases are the others of a MySQL server, in lower case, which statements may name.
	databases map[string]bool
	columns   map[string][]column  // by the table's name in lower case
	refers    map[column]column    // by foreign keys, or else by names
	unique    map[column]bool      // parts of primary and unique keys
	counts    map[string]string    // MySQL's family: the AUTO_INCREMENT column of a table
	places    map[[2]uint32]column // PostgreSQL: by the table's OID and the number of the column
	moments   map[column]bool      // those of moments
	versions  map[column]bool      // see versionsOf
	journals  map[string]bool      // tables in which programs note what they do, in lower case
	// gid is by which name PostgreSQL prepares what is then rolled back, to learn whether it would commit; empty: it
	// prepares nothing (max_prepared_transactions).
	gid string
	// traces are tables, in lower case, at whose triggers no ROLLBACK takes all of it back.
	traces map[string]bool
}

// The questions of each family: columns (table, column, OID, number, whether it counts, whether it is of moments),
// foreign keys, unique columns.
var questions = map[dbms.Family][3]string{
	dbms.PostgreSQLFamily: {
		`SELECT c.relname, a.attname, c.oid, a.attnum, false, a.atttypid IN (1083, 1114, 1184, 1266) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
			JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm') AND a.attnum > 0
			AND NOT a.attisdropped AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') ORDER BY c.oid, a.attnum`,
		`SELECT c.relname, a.attname, d.relname, b.attname FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
			JOIN pg_class d ON d.oid = k.confrelid CROSS JOIN generate_subscripts(k.conkey, 1) i
			JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[i]
			JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = k.confkey[i] WHERE k.contype = 'f'`,
		`SELECT DISTINCT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
			JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) WHERE i.indisunique AND c.oid >= 16384`,
	},
	dbms.MySQLFamily: {
		`SELECT table_name, column_name, 0, 0, extra LIKE '%auto_increment%', data_type IN ('time', 'datetime', 'timestamp')
			FROM information_schema.columns
			WHERE table_schema = DATABASE() ORDER BY table_name, ordinal_position`,
		`SELECT table_name, column_name, referenced_table_name, referenced_column_name FROM information_schema.key_column_usage
			WHERE table_schema = DATABASE() AND referenced_table_name IS NOT NULL`,
		`SELECT DISTINCT table_name, column_name FROM information_schema.statistics
			WHERE table_schema = DATABASE() AND non_unique = 0`,
	},
}

// readSchema asks for it.
func readSchema(c *replay.Connection, family dbms.Family) (*schema, error) {
	s := &schema{family: family, databases: make(map[string]bool), columns: make(map[string][]column),
		refers: make(map[column]column),
		unique: make(map[column]bool), counts: make(map[string]string), places: make(map[[2]uint32]column),
		moments: make(map[column]bool)}
	var rows [3][][]replay.Value
	for i, question := range questions[family] {
		r, err := ask(c, question)
		if err != nil {
			return nil, fmt.Errorf("ask for tables and keys: %w", err)
		}
		rows[i] = r.Rows
	}
	if family == dbms.MySQLFamily {
		r, err := ask(c, "SELECT schema_name FROM information_schema.schemata WHERE schema_name <> DATABASE()")
		if err != nil {
			return nil, fmt.Errorf("ask for databases: %w", err)
		}
		for _, row := range r.Rows {
			s.databases[strings.ToLower(row[0].Text)] = true
		}
		if r, err = ask(c, "SELECT VERSION()"); err != nil {
			return nil, fmt.Errorf("ask for the version: %w", err)
		}
		if dialect, _ := sqlmysql.ParseVersion(r.Rows[0][0].Text); dialect == sqlmysql.TiDB {
			s.tidb, s.carried = true, make(map[string][]string)
		}
	}
	if family == dbms.PostgreSQLFamily {
		r, err := ask(c, "SHOW max_prepared_transactions")
		if err != nil {
			return nil, fmt.Errorf("ask for prepared transactions: %w", err)
		}
		if r.Rows[0][0].Text != "0" {
			s.gid = "isotap_" + rand.Text()
		}
	}
	if err := s.staysWithin(c); err != nil {
		return nil, err
	}
	if err := s.readTriggers(c); err != nil {
		return nil, err
	}
	for _, row := range rows[0] {
		of := column{row[0].Text, row[1].Text}
		if isIsotaps(of.name) {
			if s.tidb {
				s.carried[of.table] = append(s.carried[of.table], of.name)
			}
			continue
		}
		s.columns[strings.ToLower(of.table)] = append(s.columns[strings.ToLower(of.table)], of)
		oid, _ := strconv.ParseUint(row[2].Text, 10, 32)
		number, _ := strconv.ParseUint(row[3].Text, 10, 16)
		s.places[[2]uint32{uint32(oid), uint32(number)}] = of
		s.moments[of] = row[5].Text == "t" || row[5].Text == "1"
		if row[4].Text == "1" {
			s.counts[of.table] = of.name
		}
	}
	for _, row := range rows[1] {
		s.refers[column{row[0].Text, row[1].Text}] = column{row[2].Text, row[3].Text}
	}
	for _, row := range rows[2] {
		s.unique[column{row[0].Text, row[1].Text}] = true
	}
	s.referByNames()
	return s, nil
}

// begin returns the statement that begins a block: on TiDB a pessimistic one, whatever the server's default is, since
// no optimistic ones are played.
func (s *schema) begin() string {
	if s.tidb {
		return "BEGIN PESSIMISTIC"
	}
	return "BEGIN"
}

// isIsotaps reports whether a column is no client's.
func isIsotaps(column string) bool {
	return column == rewrite.RowIDColumn || column == rewrite.WListColumn
}

// referByNames takes what object mappers mean by names for what foreign keys would say: project_id and projectId refer
// to the id of project, projects or app_projects, if there is one such table.
func (s *schema) referByNames() {
	for _, all := range s.columns {
		for _, c := range all {
			if _, known := s.refers[c]; known {
				continue
			}
			name := refersTo(c.name)
			if to, one := s.namedAfter(strings.ToLower(name)); name != "" && one && to != c {
				s.refers[c] = to
			}
		}
	}
}

// namedAfter returns the id of the only table that is called so, or as the plural of it is, perhaps behind a prefix.
func (s *schema) namedAfter(thing string) (id column, one bool) {
	for table, all := range s.columns {
		if !isNamed(table, thing) {
			continue
		}
		i := slices.IndexFunc(all, func(c column) bool { return strings.EqualFold(c.name, "id") && s.unique[c] })
		if i < 0 {
			continue
		}
		if one {
			return column{}, false
		}
		id, one = all[i], true
	}
	return id, one
}

// bodies ask for what the database runs by itself, and may write elsewhere: its name and its text.
var bodies = map[dbms.Family]string{
	dbms.PostgreSQLFamily: `SELECT p.proname, p.prosrc FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
		WHERE p.oid >= 16384 AND l.lanname NOT IN ('c', 'internal')
		UNION ALL SELECT relname, 'dblink' FROM pg_class WHERE relkind = 'f'`,
	dbms.MySQLFamily: `SELECT trigger_name, action_statement FROM information_schema.triggers WHERE trigger_schema = DATABASE()
		UNION ALL SELECT routine_name, routine_definition FROM information_schema.routines WHERE routine_schema = DATABASE()
		UNION ALL SELECT table_name, view_definition FROM information_schema.views WHERE table_schema = DATABASE()`,
}

// An ElsewhereError names something in a database that leads out of it. Played on a copy it would write, or ask, there
// again, so nothing is played.
type ElsewhereError struct{ Name string }

// Error says what it is.
func (e *ElsewhereError) Error() string {
	return "the trigger, function, view or foreign table " + e.Name + " leads out of the database, so nothing is played again"
}

// host is the server as a place for twins.
func (s *schema) host() host {
	return host{family: s.family, databases: s.databases, prepares: s.gid != ""}
}

// staysWithin returns an error where something in the database leads out of it.
func (s *schema) staysWithin(c *replay.Connection) error {
	r, err := ask(c, bodies[s.family])
	if err != nil {
		return fmt.Errorf("ask for triggers and functions: %w", err)
	}
	for _, row := range r.Rows {
		tokens, err := sqltoken.Statement(s.family, row[1].Text)
		body := statement{tokens: tokens}
		if row[1].Null || err != nil || body.namesDatabase(s.databases) || hasWord(tokens, reachesOut) {
			return &ElsewhereError{row[0].Text}
		}
	}
	return nil
}

// triggers ask for those of the tables: the table, and what the trigger runs.
var triggers = map[dbms.Family]string{
	dbms.PostgreSQLFamily: `SELECT c.relname, p.prosrc FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
		JOIN pg_proc p ON p.oid = t.tgfoid WHERE NOT t.tgisinternal`,
	dbms.MySQLFamily: `SELECT event_object_table, action_statement FROM information_schema.triggers
		WHERE event_object_schema = DATABASE()`,
}

// readTriggers notes the tables whose triggers leave something that no ROLLBACK takes back, or that others meet before.
func (s *schema) readTriggers(c *replay.Connection) error {
	r, err := ask(c, triggers[s.family])
	if err != nil {
		return fmt.Errorf("ask for triggers: %w", err)
	}
	s.traces = make(map[string]bool)
	for _, row := range r.Rows {
		tokens, err := sqltoken.Statement(s.family, row[1].Text)
		if err != nil || hasWord(tokens, staysBehind) || hasWord(tokens, []string{"notify"}) {
			s.traces[strings.ToLower(row[0].Text)] = true
		}
	}
	return nil
}

// leavesTraces reports whether an instance writes a table at which triggers do.
func (s *schema) leavesTraces(in *instance) bool {
	return slices.ContainsFunc(in.statements, func(st statement) bool { return st.writes() && s.traces[strings.ToLower(st.target)] })
}

// ask is a question whose refusal is an error.
func ask(c *replay.Connection, sql string) (*replay.Result, error) {
	r, err := c.Ask(sql)
	if err == nil && r.Status != replay.OK {
		err = fmt.Errorf("%s: %s: %s", sql, r.ErrorCode(), r.Message)
	}
	return r, err
}

// domain returns the column that a column's values come from: the key that they refer to, by foreign keys or names.
func (s *schema) domain(c column) column {
	for range 8 { // longer chains of keys there are none
		to, ok := s.refers[c]
		if !ok || to == c {
			break
		}
		c = to
	}
	return c
}

// namesNoTable reports whether a column is a reference by its name, and that name is no table's: owner_id, where an
// owner is a user or a team.
func (s *schema) namesNoTable(c column) bool {
	thing := refersTo(c.name)
	if _, refers := s.refers[c]; refers || thing == "" || isNamed(strings.ToLower(c.table), strings.ToLower(thing)) {
		return false // the last is its table's own key
	}
	for _, to := range s.refers {
		if to == c {
			return false
		}
	}
	return s.counts[c.table] != c.name
}

// isNamed reports whether a table, in lower case, is named after a thing: project, projects or app_projects.
func isNamed(table, thing string) bool {
	return slices.ContainsFunc([]string{thing, thing + "s", thing + "es", strings.TrimSuffix(thing, "y") + "ies"},
		func(name string) bool { return table == name || strings.HasSuffix(table, "_"+name) })
}

// refersTo returns what a column refers to by its name: "owner" of owner_id and ownerId; empty where that is nothing.
func refersTo(name string) string {
	for _, end := range []string{"_id", "Id"} {
		if to, ok := strings.CutSuffix(name, end); ok {
			return to
		}
	}
	return ""
}

// of returns the column of a literal: false where the statement does not say.
func (s *schema) of(l *literal) (column, bool) {
	if l.ordinal > 0 {
		all := s.columns[strings.ToLower(l.tables[0])]
		if l.ordinal > len(all) {
			return column{}, false
		}
		return all[l.ordinal-1], true
	}
	if l.column.name == "" {
		return column{}, false
	}
	for _, table := range l.tables {
		if of, ok := s.named(table, l.column.name); ok {
			return of, true
		}
	}
	return column{}, false
}

// named returns the column of a table by a statement's names for both.
func (s *schema) named(table, name string) (column, bool) {
	for _, of := range s.columns[strings.ToLower(table)] {
		if strings.EqualFold(of.name, name) {
			return of, true
		}
	}
	return column{}, false
}

// shown returns the column of a table that a result's column shows; false where it is calculated.
func (s *schema) shown(c *replay.Column) (column, bool) {
	if s.family == dbms.PostgreSQLFamily {
		of, ok := s.places[[2]uint32{c.TableOID, uint32(c.Attribute)}]
		return of, ok
	}
	if c.OrgName == "" { // TiDB, of a star where a row is looked up by its key
		return s.named(c.OrgTable, c.Name)
	}
	return column{c.OrgTable, c.OrgName}, c.OrgTable != ""
}

// tablesShown returns the tables that a result's columns are of.
func (s *schema) tablesShown(columns []replay.Column) []string {
	var all []string
	for i := range columns {
		if of, ok := s.shown(&columns[i]); ok && !slices.Contains(all, of.table) {
			all = append(all, of.table)
		}
	}
	return all
}
