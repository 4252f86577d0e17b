package clone

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
)

// The MySQL family's numbers of errors.
const (
	databaseExists   = 1007
	noSuchTable      = 1146
	noSuchRoutine    = 1305
	viewInvalid      = 1356
	accessDenied     = 1227 // for want of one of the privileges that concern the whole server
	noLogOfFunctions = 1418 // the binary log wants functions to be declared deterministic
	noLogOfTriggers  = 1419 // the binary log wants SUPER of who makes triggers and routines
	lockWaitTimeout  = 1205
	databaseDenied   = 1044
	tableDenied      = 1142
	columnDenied     = 1143
	routineDenied    = 1370
	badFieldError    = 1054
)

// numberOf returns the number of an error of the server's; 0 where it is none.
func numberOf(err error) uint16 {
	var said *mysql.MyError
	if errors.As(err, &said) {
		return said.Code
	}
	return 0
}

// A mysqlCopying is the work on a copy, over one session.
type mysqlCopying struct {
	conn   *catalogmysql.Conn
	source string
	login  string // CURRENT_USER, quoted
	id     string // of the session
	engine dbms.Engine
	names  renaming
}

func makeMySQL(ctx context.Context, target dsn.Target, most int64) (*Clone, error) {
	if target.Database == "" {
		return nil, errors.New("the address names no database: write it behind the last /")
	}
	conn, err := catalogmysql.Connect(ctx, target)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	m := &mysqlCopying{conn: conn, source: target.Database}
	size, err := m.prepare(ctx)
	if err != nil {
		return nil, m.refused(fmt.Errorf("look at the database %s: %w", m.source, err))
	}
	if size > most {
		return nil, &TooLargeError{m.source, size, most}
	}
	o, err := m.read(ctx)
	if err != nil {
		return nil, m.refused(fmt.Errorf("read the database %s: %w", m.source, err))
	}
	target.Database, err = newDatabase(func(name string) error { return m.create(ctx, name, &o) },
		func(err error) bool { return numberOf(err) == databaseExists })
	c := &Clone{target}
	switch {
	case err == nil:
		m.names.to = target.Database
		if err = m.fill(ctx, &o); err == nil {
			return c, nil
		}
	case numberOf(err) != 0:
		return nil, m.refused(fmt.Errorf("copy the database %s: %w", m.source, err))
	}
	return nil, c.abandon(ctx, m.refused(fmt.Errorf("copy the database %s: %w", m.source, err)))
}

// emptyMySQL makes an empty database.
func emptyMySQL(ctx context.Context, target dsn.Target) (*Clone, error) {
	conn, err := catalogmysql.Connect(ctx, target)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	target.Database, err = newDatabase(func(name string) error {
		_, err := conn.Exec(ctx, "CREATE DATABASE "+name)
		return err
	}, func(err error) bool { return numberOf(err) == databaseExists })
	return &Clone{target}, err
}

// databasesOfMySQL returns those of the server.
func databasesOfMySQL(ctx context.Context, target dsn.Target) ([]string, error) {
	conn, err := catalogmysql.Connect(ctx, target)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	rows, err := (&mysqlCopying{conn: conn}).ask(ctx, "the databases", 1, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")
	all := make([]string, len(rows))
	for i, row := range rows {
		all[i] = row[0]
	}
	return all, err
}

// prepare makes the session one to copy in, and asks for the size of the source.
func (m *mysqlCopying) prepare(ctx context.Context) (size int64, err error) {
	server, err := catalogmysql.ServerFacts(ctx, m.conn)
	if err != nil {
		return 0, err
	}
	m.engine = server.Engine
	m.names = renaming{from: m.source, folds: server.FoldsNames(), things: make(map[string]bool)}
	settings := "SET SESSION foreign_key_checks = 0, SESSION lock_wait_timeout = 10, SESSION innodb_lock_wait_timeout = 10"
	if server.Engine == dbms.MySQL && server.Numbers[0] >= 8 {
		settings += ", SESSION information_schema_stats_expiry = 0" // sizes are as old as a day otherwise
	}
	if server.Engine == dbms.TiDB {
		settings += ", SESSION allow_auto_random_explicit_insert = 1"
	}
	if _, err := m.conn.Exec(ctx, settings); err != nil {
		return 0, err
	}
	rows, err := m.ask(ctx, "who the login is", 2, "SELECT CURRENT_USER(), CONNECTION_ID()")
	if err != nil {
		return 0, err
	}
	user, host := rows[0][0], ""
	if at := strings.LastIndexByte(user, '@'); at >= 0 {
		user, host = user[:at], user[at+1:]
	}
	m.login, m.id = "'"+user+"'@'"+host+"'", rows[0][1]
	if err := m.seesPrograms(ctx); err != nil {
		return 0, err
	}
	rows, err = m.ask(ctx, "the database's size", 1, `SELECT CAST(COALESCE(SUM(DATA_LENGTH + INDEX_LENGTH), 0) AS SIGNED)
		FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?`, m.source)
	if err != nil {
		return 0, err
	}
	if size, err = strconv.ParseInt(rows[0][0], 10, 64); err != nil {
		return 0, fmt.Errorf("the database's size: %w", err)
	}
	return size, nil
}

// seesPrograms fails where the server would not show the login all triggers and routines: it shows less without a word.
// What a role may is not asked, and TiDB has none of these.
func (m *mysqlCopying) seesPrograms(ctx context.Context) error {
	if m.engine == dbms.TiDB {
		return nil
	}
	rows, err := m.ask(ctx, "the login's rights", 2, `SELECT COUNT(DISTINCT PRIVILEGE_TYPE), COALESCE(CURRENT_ROLE(), 'NONE') FROM (
		SELECT PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = ?
		UNION ALL SELECT PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE = ? AND ? LIKE TABLE_SCHEMA
		) AS p WHERE PRIVILEGE_TYPE IN ('TRIGGER', 'EXECUTE')`, m.login, m.login, m.source)
	if err != nil || rows[0][0] == "2" || rows[0][1] != "NONE" {
		return err
	}
	return &RefusedError{m.source, m.allowRights(), nil,
		errors.New("it does not show a login all triggers and routines without the rights TRIGGER and EXECUTE")}
}

// create makes an empty copy.
func (m *mysqlCopying) create(ctx context.Context, name string, o *schemaObjects) error {
	_, err := m.conn.Exec(ctx, fmt.Sprintf("CREATE DATABASE %s CHARACTER SET %s COLLATE %s", name, o.charset, o.collation))
	return err
}

// copyMode is the sql_mode of tables and rows: a 0 stays one where numbers are given, dates are as they are, and
// nothing is refused that was let in.
const copyMode = "NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES"

// fill makes all that is in the source. What fires or is called comes behind the rows; functions may use views that are
// not there yet, views use functions.
func (m *mysqlCopying) fill(ctx context.Context, o *schemaObjects) error {
	if _, err := m.conn.Exec(ctx, "USE "+m.names.to); err != nil {
		return err
	}
	if err := m.makeAll(ctx, o.sequences); err != nil {
		return err
	}
	if err := m.setSequences(ctx, o.sequences); err != nil {
		return err
	}
	if err := m.copyTables(ctx, o.tables); err != nil {
		return err
	}
	for _, definitions := range [][]definition{o.routines, o.triggers} {
		if err := m.makeAll(ctx, definitions); err != nil {
			return err
		}
	}
	if err := m.makeViews(ctx, o.views); err != nil {
		return err
	}
	rows, err := m.ask(ctx, "whether the session is the same", 1, "SELECT CONNECTION_ID()")
	if err == nil && rows[0][0] != m.id {
		err = errors.New("the server closed the connection meanwhile")
	}
	return err
}

// makeAll makes what definitions say.
func (m *mysqlCopying) makeAll(ctx context.Context, definitions []definition) error {
	for i := range definitions {
		if err := m.make(ctx, &definitions[i]); err != nil {
			return err
		}
	}
	return nil
}

// make makes in the copy what a definition says, under what it was made under.
func (m *mysqlCopying) make(ctx context.Context, d *definition) error {
	text, err := m.names.text(d.text, d.mode())
	if err != nil {
		return fmt.Errorf("the %s %s: %w", strings.ToLower(d.kind), d.name, err)
	}
	sqlMode := d.sqlMode
	if d.kind == "TABLE" || d.kind == "SEQUENCE" || d.kind == "VIEW" {
		sqlMode = copyMode
	}
	settings := "SET SESSION sql_mode = '" + sqlMode + "'"
	if d.charset != "" {
		settings += ", character_set_client = " + d.charset + ", collation_connection = " + d.collation
	} else {
		settings += ", NAMES utf8mb4"
	}
	if _, err := m.conn.Exec(ctx, settings); err != nil {
		return err
	}
	_, err = m.conn.Exec(ctx, text)
	if numberOf(err) == accessDenied {
		_, err = m.conn.Exec(ctx, withoutDefiner(text, d.mode()))
	}
	if err != nil {
		return fmt.Errorf("the %s %s: %w", strings.ToLower(d.kind), d.name, err)
	}
	return nil
}

// makeViews makes the views, each behind those that it uses.
func (m *mysqlCopying) makeViews(ctx context.Context, views []definition) error {
	for len(views) > 0 {
		var waiting []definition
		var missing error
		for _, v := range views {
			err := m.make(ctx, &v)
			switch numberOf(err) {
			case noSuchTable, noSuchRoutine, viewInvalid, badFieldError:
				waiting, missing = append(waiting, v), err
			default:
				if err != nil {
					return err
				}
			}
		}
		if len(waiting) == len(views) {
			return m.allBroken(ctx, waiting, missing)
		}
		views = waiting
	}
	return nil
}

// allBroken returns why views cannot be made; nil if the source's cannot be used either.
func (m *mysqlCopying) allBroken(ctx context.Context, views []definition, err error) error {
	for _, v := range views {
		rows, asked := m.ask(ctx, "a view", 1, "SELECT COUNT(*) FROM (SELECT 1 FROM "+backquoted(m.source)+"."+
			backquoted(v.name)+" LIMIT 0) AS v")
		if asked == nil && len(rows) == 1 {
			return err
		}
	}
	return nil
}

// refused makes an error for want of rights, or for somebody in the way, one that says what allows the copy.
func (m *mysqlCopying) refused(err error) error {
	number := numberOf(err)
	var allow string
	switch {
	case slices.Contains([]uint16{databaseDenied, tableDenied, columnDenied, routineDenied, accessDenied}, number):
		allow = m.allowRights()
	case number == noLogOfFunctions || number == noLogOfTriggers:
		allow = "SET GLOBAL log_bin_trust_function_creators = 1"
	case number == lockWaitTimeout:
		allow = "that whoever writes or alters the database has ended"
	default:
		return err
	}
	return &RefusedError{Database: m.source, Allow: allow, Err: err}
}

func (m *mysqlCopying) allowRights() string {
	return "GRANT ALL PRIVILEGES ON `isotap\\_clone\\_%`.* TO " + m.login + ", and GRANT SELECT, SHOW VIEW, TRIGGER, EXECUTE ON " +
		backquoted(m.source) + ".* TO " + m.login
}

// allowRoutines is what lets the login see the texts of routines.
func (m *mysqlCopying) allowRoutines() string {
	if m.engine == dbms.MariaDB {
		return "GRANT SELECT ON mysql.proc TO " + m.login
	}
	return "GRANT SHOW_ROUTINE ON *.* TO " + m.login
}

// dropMySQL ends who is in a copy, and removes it.
func dropMySQL(ctx context.Context, copied dsn.Target) error {
	conn, err := catalogmysql.Connect(ctx, copied)
	if err != nil {
		return err
	}
	defer conn.Close()
	ids, err := conn.Query(ctx, catalogmysql.Query{Purpose: "the sessions", Columns: 1,
		Text: "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = ? AND ID <> CONNECTION_ID()",
		Args: []any{copied.Database}})
	if err != nil {
		return err
	}
	for _, id := range ids {
		_, _ = conn.Exec(ctx, "KILL "+id[0]) // who is gone already, or may not be ended: then the lock says so
	}
	_, err = conn.Exec(ctx, "DROP DATABASE IF EXISTS "+backquoted(copied.Database))
	return err
}
