package clone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/guard"
)

// PostgreSQL's SQLSTATEs.
const (
	duplicateDatabase     = "42P04"
	uniqueViolation       = "23505" // another session is just making a database of the name
	insufficientPrivilege = "42501"
	objectInUse           = "55006"
	lockNotAvailable      = "55P03"
)

// sqlState returns the SQLSTATE of an error of PostgreSQL's; empty where it is none.
func sqlState(err error) string {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return said.Code
	}
	return ""
}

// pgLibrary is whose panics become errors.
const pgLibrary = "pgx"

// A pgCopying is the work on a copy, over a connection to another database.
type pgCopying struct {
	conn   *pgx.Conn
	source string
	login  string // current_user, quoted
	owner  string // of the source, quoted
	owns   bool   // the login is the source's owner, or a member of it, or may copy it for it is a template
	makes  bool   // the login may create databases
	size   int64
}

func makePostgreSQL(ctx context.Context, target dsn.Target, most int64, patience time.Duration) (c *Clone, err error) {
	err = guard.Call(pgLibrary, func() error {
		conn, source, err := connectBeside(ctx, target)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		p := &pgCopying{conn: conn, source: source}
		if err := p.rests(ctx, patience); err != nil {
			return err
		}
		c, err = p.run(ctx, target, most)
		return err
	})
	return c, err
}

// run makes the copy, with the rights and settings of the database itself.
func (p *pgCopying) run(ctx context.Context, target dsn.Target, most int64) (*Clone, error) {
	if err := p.look(ctx); err != nil {
		return nil, fmt.Errorf("look at the database %s: %w", p.source, err)
	}
	if p.size > most {
		return nil, &TooLargeError{p.source, p.size, most}
	}
	name, err := newDatabase(func(name string) error { return p.create(ctx, name) }, nameIsTaken)
	target.Database = name
	c := &Clone{target}
	switch {
	case err != nil && sqlState(err) == "":
		// Nobody knows what became of the statement.
		return nil, c.abandon(ctx, fmt.Errorf("copy the database %s: %w", p.source, err))
	case err != nil:
		return nil, p.refused(ctx, err)
	}
	if err := p.settle(ctx, name); err != nil {
		return nil, c.abandon(ctx, fmt.Errorf("copy the settings of the database %s: %w", p.source, err))
	}
	return c, nil
}

// emptyPostgreSQL makes an empty database.
func emptyPostgreSQL(ctx context.Context, target dsn.Target) (c *Clone, err error) {
	err = guard.Call(pgLibrary, func() error {
		conn, _, err := connectBeside(ctx, target)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		target.Database, err = newDatabase(func(name string) error {
			_, err := conn.Exec(ctx, "CREATE DATABASE "+name)
			return err
		}, nameIsTaken)
		c = &Clone{target}
		return err
	})
	return c, err
}

// nameIsTaken reports whether PostgreSQL refused a new database since there is one of that name.
func nameIsTaken(err error) bool {
	code := sqlState(err)
	return code == duplicateDatabase || code == uniqueViolation
}

// databasesOfPostgreSQL returns those of the server.
func databasesOfPostgreSQL(ctx context.Context, target dsn.Target) (all []string, err error) {
	err = guard.Call(pgLibrary, func() error {
		conn, _, err := connectBeside(ctx, target)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		rows, err := conn.Query(ctx, "SELECT datname::text FROM pg_catalog.pg_database")
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return all, err
}

// look asks what decides whether the source can be copied.
func (p *pgCopying) look(ctx context.Context) error {
	err := p.conn.QueryRow(ctx, `SELECT pg_catalog.quote_ident(current_user), pg_catalog.quote_ident(o.rolname),
			pg_catalog.pg_has_role(d.datdba, 'USAGE') OR d.datistemplate, u.rolcreatedb OR u.rolsuper,
			pg_catalog.pg_database_size(d.oid)
		FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles o ON o.oid = d.datdba
			JOIN pg_catalog.pg_roles u ON u.rolname = current_user
		WHERE d.datname = $1`, p.source).Scan(&p.login, &p.owner, &p.owns, &p.makes, &p.size)
	if errors.Is(err, pgx.ErrNoRows) {
		return errors.New("it is not there")
	}
	return err
}

// create copies the source. The copy has its owner if the login may give it away: on it hangs who may make tables.
func (p *pgCopying) create(ctx context.Context, name string) error {
	text := "CREATE DATABASE " + name + " TEMPLATE " + quoted(p.source)
	_, err := p.conn.Exec(ctx, text+" OWNER "+p.owner)
	if sqlState(err) == insufficientPrivilege && p.makes && p.owns {
		_, err = p.conn.Exec(ctx, text)
	}
	return err
}

// refused is why the server did not copy the source, if that is something that somebody can do about.
func (p *pgCopying) refused(ctx context.Context, err error) error {
	e := &RefusedError{Database: p.source, Err: err}
	switch code := sqlState(err); {
	case code == insufficientPrivilege && !p.makes:
		e.Allow = fmt.Sprintf("ALTER ROLE %s CREATEDB", p.login)
		if !p.owns {
			e.Allow += fmt.Sprintf(", and GRANT %s TO %s", p.owner, p.login)
		}
	case code == insufficientPrivilege:
		e.Allow = fmt.Sprintf("GRANT %s TO %s, for who copies a database owns it", p.owner, p.login)
	case code == objectInUse:
		e.Allow = "that they leave the database first"
		e.Others, err = p.others(ctx)
		e.Err = errors.Join(e.Err, err)
	case code == lockNotAvailable:
		e.Allow = "that whoever alters or drops the database has ended"
	default:
		return fmt.Errorf("copy the database %s: %w", p.source, errors.Join(ctx.Err(), err))
	}
	return e
}

// askAgain is how often it is asked who is in a database: who has said goodbye may still be seen for a moment.
const askAgain = 50 * time.Millisecond

// errConnected is why a database is not copied that others are in.
var errConnected = errors.New("others are connected to it")

// rests waits until nobody is in the source; not at all where patience is 0: then the server waits.
func (p *pgCopying) rests(ctx context.Context, patience time.Duration) error {
	for end := time.Now().Add(patience); patience > 0; {
		others, err := p.others(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("ask who is in the database %s: %w", p.source, err)
		case len(others) == 0:
			return nil
		case time.Now().After(end):
			return &RefusedError{Database: p.source, Allow: "that they leave the database first", Others: others, Err: errConnected}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(askAgain):
		}
	}
	return nil
}

// others are those that are in the source. An autovacuum worker leaves when the source is copied.
func (p *pgCopying) others(ctx context.Context) ([]Session, error) {
	rows, err := p.conn.Query(ctx, `SELECT pid, coalesce(usename, '')::text, coalesce(application_name, '')
		FROM pg_catalog.pg_stat_activity WHERE datname = $1 AND backend_type IS DISTINCT FROM 'autovacuum worker'
		UNION ALL SELECT 0, owner::text, gid FROM pg_catalog.pg_prepared_xacts WHERE database = $1 ORDER BY 1`, p.source)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Session])
}

// dropPostgreSQL ends who is in a copy, and removes it.
func dropPostgreSQL(ctx context.Context, copied dsn.Target) error {
	return guard.Call(pgLibrary, func() error {
		conn, name, err := connectBeside(ctx, copied)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		// DROP DATABASE WITH (FORCE) is of version 13. Without, it waits for those who are told to go; it says itself
		// who may not be told.
		_, _ = conn.Exec(ctx, "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE datname = $1",
			name)
		if err := rollBackPrepared(ctx, conn, copied); err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "DROP DATABASE IF EXISTS "+quoted(name))
		return err
	})
}

// rollBackPrepared ends the transactions that were prepared in a copy, which would keep it. That takes a session in it.
func rollBackPrepared(ctx context.Context, beside *pgx.Conn, copied dsn.Target) error {
	rows, err := beside.Query(ctx, "SELECT pg_catalog.quote_literal(gid) FROM pg_catalog.pg_prepared_xacts WHERE database = $1",
		copied.Database)
	if err != nil {
		return err
	}
	prepared, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(prepared) == 0 {
		return err
	}
	conn, _, err := connectPostgreSQL(ctx, copied, copied.Database)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, gid := range prepared {
		if _, err := conn.Exec(ctx, "ROLLBACK PREPARED "+gid); err != nil {
			return err
		}
	}
	return nil
}

// connectBeside connects to a database of the server that is not the target's, whose name it returns.
func connectBeside(ctx context.Context, target dsn.Target) (conn *pgx.Conn, name string, err error) {
	for _, beside := range []string{"postgres", "template1"} {
		if beside == target.Database {
			continue
		}
		var failed error
		if conn, name, failed = connectPostgreSQL(ctx, target, beside); failed == nil && name != beside {
			return conn, name, nil
		} else if failed == nil {
			failed = conn.Close(ctx)
		}
		if err == nil {
			err = failed
		}
	}
	return nil, "", fmt.Errorf("connect to the server of %s beside its database: %w", target, err)
}

const (
	connectTimeout = 10 * time.Second
	// cancelPatience is how long the server may take to end a statement that nobody waits for any more.
	cancelPatience = 10 * time.Second
)

// connectPostgreSQL connects to a database with the target's login, and returns the name of the target's own, which
// libpq's environment may say. A statement whose ctx ends is cancelled and its end waited for, so that it is known what
// became of it.
func connectPostgreSQL(ctx context.Context, target dsn.Target, database string) (*pgx.Conn, string, error) {
	config, err := pgx.ParseConfig(target.URL())
	if err != nil {
		return nil, "", fmt.Errorf("the address: %w", err)
	}
	name := cmp.Or(config.Database, config.User)
	config.Database = database
	config.ConnectTimeout = connectTimeout
	config.RuntimeParams = map[string]string{"application_name": "isotap", "client_encoding": "UTF8",
		"lock_timeout": "10s", "statement_timeout": "0", "default_transaction_read_only": "off",
		"standard_conforming_strings": "on"}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: cancelPatience}
	}
	catalog.BoundPostgreSQL(&config.Config)
	conn, err := pgx.ConnectConfig(ctx, config)
	return conn, name, err
}

// quoted quotes an identifier.
func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
