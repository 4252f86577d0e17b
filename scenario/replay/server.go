package replay

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// A Server is an address that speaks a family's protocol, and who to log in as.
type Server struct {
	Family         dbms.Family
	Addr           string // host:port, or the path of a unix socket
	User, Password string
	// Database is the one that PostgreSQL's runs have their schemas in; empty means postgres. With Options.Existing it
	// is the one that a scenario is run in, of either family.
	Database string
	// FoundRows has MySQL's family count the rows that an UPDATE found, also those that it leaves as they were.
	FoundRows bool
	// TLS encrypts the connections; nil: they are plain. MayBePlain takes a server that has none.
	TLS        *tls.Config
	MayBePlain bool
}

// connectTimeout bounds one log-in.
const connectTimeout = 10 * time.Second

// A conn is one connection. It belongs to one goroutine, but for abandon.
type conn interface {
	// execute runs one statement and reads the whole reply. What the server refuses is a Failed result, an
	// error is the connection's own.
	execute(sql string, prepared bool) (Result, error)
	// id is the server's number for the connection.
	id() uint32
	// notices returns those that have come so far, also while execute runs.
	notices() []Notice
	// quit says good-bye and closes.
	quit() error
	// abandon closes the socket, also while execute reads from it.
	abandon()
}

// A watcher asks a server, on a connection of its own that goes past any proxy, which of its connections
// wait for a lock. It is safe for concurrent use.
type watcher interface {
	// waits reports whether a connection was waiting for a lock at some moment after the given one. It answers
	// known = false when it could not learn it. Where the server tells for whom it waits, only waits for one of the
	// others count, on whatever way: one for the server's own work ends by itself.
	waits(ctx context.Context, connection uint32, others []uint32, after time.Time) (waits, known bool, err error)
	// blockers returns the connections that a connection waits for, which the last answer of waits was about;
	// none where the server does not tell.
	blockers(ctx context.Context, connection uint32) ([]uint32, error)
	close() error
}

// A dialect is what a run needs to know of a family.
type dialect interface {
	// connect logs in to the database of a run; with none, to where one can be made. What is a database of
	// the MySQL family is a schema of PostgreSQL, where a database takes far longer to make.
	connect(ctx context.Context, s Server, database string) (conn, error)
	// watch begins to watch the server for lock waits.
	watch(ctx context.Context, s Server) (watcher, error)
	// administer are statements that a connection begins with which makes and drops databases.
	administer() []string
	// setLevel returns the statement by which a session has all its transactions run at a level.
	setLevel(l history.Level) string
	// set returns the statement by which a session sets a variable.
	set(variable, value string) string
	// kill returns the statement that ends a connection, and gone says whether its refusal only means that
	// there is no such connection.
	kill(connection uint32) string
	gone(refusal *Result) bool
	// create and drop give the statements that make and remove a database.
	create(database string) string
	drop(database string) string
	// clear takes from a connection all that its session left, an open transaction too, and is false where it cannot;
	// enter has it go on in the database of another run.
	clear(c conn) bool
	enter(c conn, database string) error
	// rights adds to an error which rights would help, where the server refuses a statement of isotap's own for want of
	// them.
	rights(err error) error
	// anonymize takes from a trace what is the run's own: names and numbers that another run has otherwise.
	anonymize(t *Trace, database string)
}

func (s Server) dialect() (dialect, error) {
	switch s.Family {
	case dbms.MySQLFamily:
		return mysqlDialect{}, nil
	case dbms.PostgreSQLFamily:
		return postgresqlDialect{}, nil
	}
	return nil, fmt.Errorf("there is no family %d", s.Family)
}

// connect logs in to a database.
func (s Server) connect(ctx context.Context, database string) (conn, error) {
	d, err := s.dialect()
	if err != nil {
		return nil, err
	}
	c, err := d.connect(ctx, s, database)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", s.Addr, err)
	}
	return c, nil
}

// quoted is a setting's value as a literal; see [scenario.ParseSettings] for what is in one.
func quoted(value string) string { return "'" + value + "'" }

// run executes a statement as text whose refusal is an error.
func run(c conn, sql string) error {
	_, err := ask(c, sql)
	return err
}

// ask is run with the result.
func ask(c conn, sql string) (Result, error) {
	r, err := c.execute(sql, false)
	if err == nil && r.Status == Failed {
		err = &refusalError{r}
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", sql, err)
	}
	return r, nil
}

// A refusalError is a server's error.
type refusalError struct{ result Result }

func (e *refusalError) Error() string { return e.result.ErrorCode() + ": " + e.result.Message }
