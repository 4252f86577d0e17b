package clone

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/catalog"
	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
)

func TestMain(m *testing.M) {
	testdb.Main(m, append([]testdb.Engine{testdb.MySQL, testdb.MariaDB118}, testdb.PostgreSQLs...)...)
}

// A mysqlServer is one that databases are copied on.
type mysqlServer interface {
	URL() string
	DB(database string) (*sql.DB, error)
}

// mysqlTarget is the address of a database on a server of the family.
func mysqlTarget(t *testing.T, s mysqlServer, database string) dsn.Target {
	t.Helper()
	target, err := dsn.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	target.Database = database
	return target
}

func TestACopyIsAsItsSource(t *testing.T) {
	for _, tt := range mysqlSchemas {
		t.Run(tt.name, func(t *testing.T) {
			server := testdb.Current(t)
			if tt.only != nil {
				testdb.Only(t, "it has no such things", tt.only...)
			}
			copies(t, server, testdb.NewDatabase(t), tt.tables)
		})
	}
}

// A copy has isotap's columns, with what they hold.
func TestACopyOfAnInstrumentedDatabaseHasItsColumns(t *testing.T) {
	server, source := testdb.Current(t), testdb.NewDatabase(t)
	build(t, server, source, []string{"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)", "INSERT INTO t (v) VALUES (1), (2)"})
	conn, err := catalogmysql.Connect(t.Context(), mysqlTarget(t, server, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := catalogmysql.Instrument(t.Context(), conn, catalog.Options{Schemas: []string{source}}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(look(t, server, source), " "); !strings.Contains(got, "isotap_rowid") {
		t.Fatalf("not instrumented: %s", got)
	}
	copies(t, server, source, nil)
}

func TestACopyIsAsItsSourceOnTiDB(t *testing.T) {
	server := testdb.TiDB(t)
	if server == nil {
		t.Skip(testdb.NoTiDB)
	}
	for _, tt := range mysqlSchemas {
		if tt.only == nil {
			t.Run(tt.name, func(t *testing.T) { copies(t, server, server.NewDatabase(t), tt.tables) })
		}
	}
}

// TestACopyCountsOnAsItsSourceOnTiDB: SHOW CREATE TABLE has the number behind those that the server has set aside.
func TestACopyCountsOnAsItsSourceOnTiDB(t *testing.T) {
	server := testdb.TiDB(t)
	if server == nil {
		t.Skip(testdb.NoTiDB)
	}
	source := server.NewDatabase(t)
	build(t, server, source, []string{"CREATE TABLE counted (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
		"INSERT INTO counted (v) VALUES (1), (2), (3), (4)", "DELETE FROM counted WHERE id > 2",
		"CREATE TABLE ahead (id INT AUTO_INCREMENT PRIMARY KEY, v INT) AUTO_INCREMENT = 500",
		"CREATE TABLE untouched (id INT AUTO_INCREMENT PRIMARY KEY, v INT)"})
	c, err := Make(t.Context(), mysqlTarget(t, server, source), Options{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Make(t.Context(), c.Target(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]string{"counted": "5", "ahead": "500", "untouched": "1"} {
		for _, database := range []string{source, c.Target().Database, again.Target().Database} {
			build(t, server, database, []string{"INSERT INTO " + table + " (v) VALUES (9)"})
			if got := texts(t, open(t, server, database), "SELECT id FROM "+table+" WHERE v = 9")[0][0]; got != want {
				t.Errorf("%s of %s: the next number is %s, want %s", table, database, got, want)
			}
		}
	}
	for _, of := range []*Clone{again, c} {
		if err := of.Drop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// copies makes a database, copies it, and compares.
func copies(t *testing.T, s mysqlServer, source string, statements []string) {
	t.Helper()
	build(t, s, source, statements)
	before := look(t, s, source)
	c, err := Make(t.Context(), mysqlTarget(t, s, source), Options{})
	if err != nil {
		t.Fatal(err)
	}
	copied := c.Target().Database
	if want := mysqlTarget(t, s, copied); c.Target() != want || !strings.HasPrefix(copied, Prefix) {
		t.Errorf("the copy is at %v", c.Target())
	}
	same(t, "the copy", look(t, s, copied), before)
	same(t, "the source", look(t, s, source), before)
	if err := c.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := look(t, s, copied); len(left) > 0 {
		t.Errorf("after it was dropped: %q", left)
	}
	if err := c.Drop(t.Context()); err != nil {
		t.Errorf("dropped once more: %v", err)
	}
}

// build runs statements in a database, in one session.
func build(t *testing.T, s mysqlServer, database string, statements []string) {
	t.Helper()
	db := open(t, s, database)
	db.SetMaxOpenConns(1)
	for _, text := range statements {
		testdb.Exec(t, db, strings.ReplaceAll(text, "#", database))
	}
	if slices.ContainsFunc(statements, func(s string) bool { return strings.Contains(s, "VIEW broken") }) {
		testdb.Exec(t, db, "DROP TABLE gone")
	}
}

func open(t *testing.T, s mysqlServer, database string) *sql.DB {
	t.Helper()
	db, err := s.DB(database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// same compares what two databases are.
func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%s lacks %q", what, line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("%s has %q", what, line)
		}
	}
}

// look returns what a database is: definitions and rows. Its own name is a #; strings that hold it stay.
func look(t *testing.T, s mysqlServer, database string) (lines []string) {
	t.Helper()
	db := open(t, s, "")
	ask := func(text string, args ...any) [][]string { return texts(t, db, text, args...) }
	for _, r := range ask("SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA"+
		" WHERE SCHEMA_NAME = ?", database) {
		lines = append(lines, "database "+strings.Join(r, " "))
	}
	show := func(kind, name string) {
		full := backquoted(database) + "." + backquoted(name)
		lines = append(lines, fmt.Sprint(kind, name, ": ", ask("SHOW CREATE " + kind + " " + full)[0]))
	}
	for _, r := range ask("SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?"+
		" AND TABLE_NAME <> 'broken' ORDER BY TABLE_NAME", database) {
		kind := "TABLE"
		if r[1] == "VIEW" {
			kind = "VIEW"
		}
		show(kind, r[0])
		lines = append(lines, rowsOf(t, db, database, r[0])...)
	}
	for _, r := range ask("SELECT ROUTINE_TYPE, ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = ?"+
		" ORDER BY ROUTINE_NAME", database) {
		show(r[0], r[1])
	}
	for _, r := range ask("SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE, ACTION_ORDER, SQL_MODE, DEFINER, ACTION_STATEMENT, CHARACTER_SET_CLIENT,"+
		" COLLATION_CONNECTION FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = ? ORDER BY 1", database) {
		lines = append(lines, fmt.Sprint("trigger ", r))
	}
	for i := range lines {
		for _, quote := range []string{"`", `"`} {
			lines[i] = strings.ReplaceAll(lines[i], quote+database+quote, "#")
		}
		lines[i] = strings.ReplaceAll(lines[i], " "+database+".", " #.")
		// MySQL prints what is the table's anyway if it was said.
		lines[i] = strings.ReplaceAll(lines[i], " CHARACTER SET latin1 COLLATE", " COLLATE")
		if _, is := s.(*testdb.TiDBServer); is { // what it says is behind those that it has set aside
			lines[i] = setAside.ReplaceAllString(lines[i], "")
		}
	}
	return lines
}

var setAside = regexp.MustCompile(` AUTO_INCREMENT=\d+`)

// rowsOf returns the rows of a table, with all columns. Those of a view are its source's only if it asks for no schema.
func rowsOf(t *testing.T, db *sql.DB, database, name string) (lines []string) {
	t.Helper()
	var columns []string
	for _, r := range texts(t, db, "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?"+
		" ORDER BY ORDINAL_POSITION", database, name) {
		columns = append(columns, "CAST("+backquoted(r[0])+" AS BINARY)")
	}
	for _, r := range texts(t, db, "SELECT "+strings.Join(columns, ", ")+" FROM "+backquoted(database)+"."+backquoted(name)) {
		lines = append(lines, fmt.Sprintf("row of %s: %q", name, r))
	}
	slices.Sort(lines)
	return lines
}

// texts returns the rows of an answer.
func texts(t *testing.T, db *sql.DB, text string, args ...any) (all [][]string) {
	t.Helper()
	rows, err := db.Query(text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, places := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			places[i] = &values[i]
		}
		if err := rows.Scan(places...); err != nil {
			t.Fatal(err)
		}
		row := make([]string, 0, len(columns))
		for i, v := range values {
			if columns[i] != "Created" {
				row = append(row, v.String)
			}
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return all
}

// What triggers and routines of a copy write, they write to the copy.
func TestTheProgramsOfACopyWriteToIt(t *testing.T) {
	testdb.Only(t, "it has no programs", "mariadb", "mariadb118", "mysql")
	server, source := testdb.Current(t), testdb.NewDatabase(t)
	build(t, server, source, programs)
	before := look(t, server, source)
	c, err := Make(t.Context(), mysqlTarget(t, server, source), Options{})
	if err != nil {
		t.Fatal(err)
	}
	db := testdb.Open(t, c.Target().Database)
	testdb.Exec(t, db, "CALL add_one(1)", "UPDATE t SET v = v + total()")
	if got, want := fmt.Sprint(texts(t, db, "SELECT v FROM doubled")), "[[44]]"; got != want {
		t.Errorf("the copy's view shows %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(texts(t, db, "SELECT what FROM log ORDER BY n")),
		fmt.Sprintf("[[first] [second 11] [in %s!] [first] [second 22]]", source); got != want {
		t.Errorf("the copy's log is %s, want %s", got, want)
	}
	if got := texts(t, db, "SHOW EVENTS"); len(got) > 0 {
		t.Errorf("the copy has events: %q", got)
	}
	same(t, "the source", look(t, server, source), before)
	if err := c.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestALargeDatabaseIsNotCopied(t *testing.T) {
	server, source := testdb.Current(t), testdb.NewDatabase(t)
	build(t, server, source, []string{"CREATE TABLE t (id INT PRIMARY KEY)"})
	_, err := Make(t.Context(), mysqlTarget(t, server, source), Options{MaxBytes: 1000})
	var large *TooLargeError
	if !errors.As(err, &large) || large.Size <= 1000 || large.Max != 1000 {
		t.Errorf("got %v", err)
	}
	noCopies(t, server)
}

// noCopies fails where copies are left.
func noCopies(t *testing.T, s mysqlServer) {
	t.Helper()
	if left := texts(t, open(t, s, ""), "SHOW DATABASES LIKE 'isotap\\_clone\\_%'"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// login makes a login with rights, and returns its address.
func login(t *testing.T, s mysqlServer, database, name string, grants ...string) dsn.Target {
	t.Helper()
	db := open(t, s, "")
	testdb.Exec(t, db, "DROP USER IF EXISTS "+name, "CREATE USER "+name+" IDENTIFIED BY 'word'")
	t.Cleanup(func() { db.Exec("DROP USER " + name) })
	for _, g := range grants {
		testdb.Exec(t, db, "GRANT "+strings.ReplaceAll(g, "#", backquoted(database))+" TO "+name)
	}
	target := mysqlTarget(t, s, database)
	target.User, target.Password = name, "word"
	return target
}

const onCopies = "ALL PRIVILEGES ON `isotap\\_clone\\_%`.*"

func TestALoginWithoutRightsIsToldWhatToGrant(t *testing.T) {
	for _, tt := range []struct {
		name   string
		grants []string
		allow  string
	}{
		{"no rights on copies", []string{"ALL PRIVILEGES ON #.*"}, "GRANT " + onCopies + " TO 'poor'@'%'"},
		{"a copy that stays half", []string{"ALL PRIVILEGES ON #.*", "CREATE, DROP ON `isotap\\_clone\\_%`.*"},
			"GRANT " + onCopies + " TO 'poor'@'%'"},
		{"the rows may not be read", []string{"INSERT, TRIGGER, EXECUTE, SHOW VIEW ON #.*", onCopies}, "GRANT SELECT, SHOW VIEW, TRIGGER"},
		{"triggers may not be seen", []string{"SELECT, SHOW VIEW, EXECUTE ON #.*", onCopies}, "GRANT SELECT, SHOW VIEW, TRIGGER"},
		{"routines may not be seen", []string{"SELECT, SHOW VIEW, TRIGGER ON #.*", onCopies}, "GRANT SELECT, SHOW VIEW, TRIGGER"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server, source := testdb.Current(t), testdb.NewDatabase(t)
			build(t, server, source, []string{"CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"})
			_, err := Make(t.Context(), login(t, server, source, "poor", tt.grants...), Options{})
			var refused *RefusedError
			if !errors.As(err, &refused) || !strings.Contains(refused.Allow, tt.allow) || refused.Err == nil {
				t.Errorf("got %v", err)
			}
			noCopies(t, server)
		})
	}
}

// What a login may by its role, it may.
func TestALoginMayByItsRole(t *testing.T) {
	server, source := testdb.Current(t), testdb.NewDatabase(t)
	build(t, server, source, []string{"CREATE TABLE t (id INT PRIMARY KEY)"})
	admin := testdb.Open(t, "")
	target := login(t, server, source, "acting")
	testdb.Exec(t, admin, "DROP ROLE IF EXISTS cloner", "CREATE ROLE cloner", "GRANT "+onCopies+" TO cloner",
		"GRANT SELECT, SHOW VIEW, TRIGGER, EXECUTE ON "+source+".* TO cloner", "GRANT cloner TO acting")
	t.Cleanup(func() { open(t, server, "").Exec("DROP ROLE cloner") })
	setDefault := "SET DEFAULT ROLE cloner FOR acting"
	if testdb.EngineName() == "mysql" {
		setDefault = "SET DEFAULT ROLE cloner TO acting"
	}
	testdb.Exec(t, admin, setDefault)
	c, err := Make(t.Context(), target, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A login that may not make things in another's name is their definer itself.
func TestADefinerIsKeptIfTheLoginMay(t *testing.T) {
	testdb.Only(t, "it has no programs", "mariadb", "mariadb118", "mysql")
	server, source := testdb.Current(t), testdb.NewDatabase(t)
	build(t, server, source, []string{"CREATE TABLE t (id INT PRIMARY KEY)", "CREATE VIEW v AS SELECT id FROM t",
		"CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.id = NEW.id + 1"})
	target := login(t, server, source, "modest", "SELECT, SHOW VIEW, TRIGGER, EXECUTE ON #.*", onCopies)
	const trust = "SET GLOBAL log_bin_trust_function_creators = 1"
	if testdb.EngineName() == "mysql" { // it has a binary log
		_, err := Make(t.Context(), target, Options{})
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Allow != trust {
			t.Errorf("with a binary log: %v", err)
		}
		testdb.Exec(t, testdb.Open(t, ""), trust)
		t.Cleanup(func() { open(t, server, "").Exec("SET GLOBAL log_bin_trust_function_creators = 0") })
	}
	c, err := Make(t.Context(), target, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(texts(t, testdb.Open(t, ""), "SELECT DEFINER FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ?"+
		" UNION ALL SELECT DEFINER FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = ?", c.Target().Database, c.Target().Database))
	if want := "[[modest@%] [modest@%]]"; got != want {
		t.Errorf("definers %s, want %s", got, want)
	}
	if err := c.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Whoever waits no longer for a copy leaves nothing of it.
func TestACopyThatIsGivenUpIsDropped(t *testing.T) {
	server, source := testdb.Current(t), testdb.NewDatabase(t)
	build(t, server, source, []string{"CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"})
	db := testdb.Open(t, source)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("UPDATE t SET id = 2"); err != nil { // the copy's rows wait for it
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if c, err := Make(ctx, mysqlTarget(t, server, source), Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, %v", c, err)
	}
	noCopies(t, server)
	if testing.Short() {
		t.Skip("slow: make check runs the rest")
	}
	var refused *RefusedError
	if _, err := Make(t.Context(), mysqlTarget(t, server, source), Options{}); !errors.As(err, &refused) {
		t.Errorf("while somebody writes: %v", err)
	}
	noCopies(t, server)
}

// What clients left in a copy does not keep it.
func TestACopyWithSessionsIsDropped(t *testing.T) {
	server, source := testdb.Current(t), testdb.NewDatabase(t)
	build(t, server, source, []string{"CREATE TABLE t (id INT PRIMARY KEY)"})
	c, err := Make(t.Context(), mysqlTarget(t, server, source), Options{})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := testdb.Open(t, c.Target().Database).Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("INSERT INTO t VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if err := c.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	noCopies(t, server)
}

func TestWhatIsNotThereIsNotCopied(t *testing.T) {
	target := mysqlTarget(t, testdb.Current(t), "isotap_not_there")
	if _, err := Make(t.Context(), target, Options{}); err == nil || !strings.Contains(err.Error(), "Unknown database") {
		t.Errorf("a database that is not there: %v", err)
	}
	target.Database = ""
	if _, err := Make(t.Context(), target, Options{}); err == nil || !strings.Contains(err.Error(), "names no database") {
		t.Errorf("without a database: %v", err)
	}
	if err := (&Clone{dsn.Target{Family: target.Family, Network: "tcp", Address: "127.0.0.1:1", Database: "x"}}).Drop(t.Context()); err == nil {
		t.Error("without a server: no error")
	}
}
