package mysql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/packet"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/guard"
)

const (
	// connectTimeout bounds how long a server may take to accept a connection and a login.
	connectTimeout = 10 * time.Second
	// killTimeout bounds how long a server may take to end a statement that nobody waits for: whoever gave it up is
	// waiting.
	killTimeout = time.Second
)

// A Conn is isotap's own connection to the server, for what no client asked. It connects anew when
// the server has closed it. It is safe for concurrent use: statements wait for each other.
type Conn struct {
	target dsn.Target
	mu     sync.Mutex
	client *client.Conn // nil while not connected
}

// Connect opens a connection to a server of the MySQL family. The caller closes it.
func Connect(ctx context.Context, target dsn.Target) (*Conn, error) {
	if target.Family != dbms.MySQLFamily {
		return nil, fmt.Errorf("%s is an address of %s: this needs a server of the MySQL family", target,
			target.Family.Title())
	}
	c := &Conn{target: target}
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// sessionSettings make a session independent of the server's defaults. Without a strict sql_mode
// and without checks, ALTER TABLE and the back-fill leave rows as they are that today's sql_mode
// and constraints would not let in (the comment is MariaDB's alone to read). A client's statement that waits behind an
// ALTER TABLE of ours for a table in use does so for no longer than lock_wait_timeout.
const sessionSettings = "SET NAMES utf8mb4, SESSION autocommit = 1, SESSION sql_mode = 'ALLOW_INVALID_DATES', " +
	"SESSION lock_wait_timeout = 30 /*M! , SESSION check_constraint_checks = 0 */"

// connect needs c.mu, or a Conn that nobody else has yet.
func (c *Conn) connect(ctx context.Context) error {
	patience := ctx // of who asks, where the login takes too long
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var socket *catalog.Answers
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		dialed, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		socket = catalog.BoundLogin(dialed)
		// The library's login does not look at ctx.
		if deadline, ok := ctx.Deadline(); ok {
			err = socket.SetDeadline(deadline)
		}
		return socket, err
	}
	secure, err := c.target.TLSConfig()
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", c.target, err)
	}
	login := func(o ...client.Option) (conn *client.Conn, err error) {
		o = append(o, func(c *client.Conn) error { return c.SetCapability(mysql.CLIENT_MULTI_STATEMENTS) })
		err = guard.Call(library, func() error {
			conn, err = client.ConnectWithDialer(ctx, c.target.Network, c.target.Address, c.target.User,
				c.target.Password, "", dial, o...)
			return err
		})
		if err != nil && socket != nil {
			_ = socket.Close() // a panic left it open
		}
		return conn, err
	}
	var conn *client.Conn
	if secure == nil {
		conn, err = login()
	} else {
		conn, err = login(func(c *client.Conn) error { c.SetTLSConfig(secure); return nil })
		if c.target.TLS.Mode == dsn.TLSPrefer && err != nil && strings.Contains(err.Error(), "does not support TLS") {
			conn, err = login()
		}
	}
	if err != nil {
		return catalog.NewLoginError(patience, c.target, err, refusal(err))
	}
	socket.Lift()
	conn.Conn = packet.NewConn(catalog.BoundMySQLAnswers(conn.Conn.Conn)) // above TLS
	err = guard.Call(library, func() error {
		_, err := conn.Execute(sessionSettings)
		return err
	})
	if err == nil {
		err = socket.SetDeadline(time.Time{})
	}
	if err != nil {
		return errors.Join(fmt.Errorf("preparing the session at %s: %w", c.target, err), conn.Close())
	}
	c.client = conn
	return nil
}

// refusal is what the server answered to a login; nil where an error is no answer of it.
func refusal(err error) *catalog.Refusal {
	var said *mysql.MyError
	if !errors.As(err, &said) {
		return nil
	}
	const accessDenied, accessDeniedNoPassword = mysql.ER_ACCESS_DENIED_ERROR, 1698
	return &catalog.Refusal{Message: said.Message, Code: fmt.Sprint("error ", said.Code),
		Credentials: said.Code == accessDenied || said.Code == accessDeniedNoPassword}
}

// Target is the server that the connection leads to.
func (c *Conn) Target() dsn.Target { return c.target }

// A Query is one of isotap's own that only reads, and what its answer must look like: of another answer nothing reaches
// whoever asked.
type Query struct {
	Purpose string // what is asked for, for errors: "the indexes of tables"
	Text    string
	Args    []any // for its placeholders
	Columns int   // of its result
	Else    int   // columns of another result that it may have; 0: none
}

// A row of a result as text, empty for NULL.
type row = []string

// Query asks, and returns all rows of the answer, each with as many texts as the query has columns; NULL is empty. When
// the server turns out to have closed the connection, it connects anew and asks again. An error of the server's own is
// a *mysql.MyError; a [*UnexpectedAnswer] is no answer to the query.
func (c *Conn) Query(ctx context.Context, q Query) ([][]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wasOpen := c.client != nil
	rows, err := c.query(ctx, q)
	if c.mayAskAgain(ctx, wasOpen, err) {
		rows, err = c.query(ctx, q)
	}
	return rows, err
}

// QueryAll asks several queries without arguments in one round trip, and returns the rows of each. It is otherwise as
// Query.
func (c *Conn) QueryAll(ctx context.Context, queries ...Query) ([][][]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wasOpen := c.client != nil
	rows, err := c.queryAll(ctx, queries)
	if c.mayAskAgain(ctx, wasOpen, err) {
		rows, err = c.queryAll(ctx, queries)
	}
	return rows, err
}

// mayAskAgain reports whether a question that was asked on an open connection found it closed.
func (c *Conn) mayAskAgain(ctx context.Context, wasOpen bool, err error) bool {
	var unexpected *catalog.UnexpectedAnswer
	return err != nil && wasOpen && c.client == nil && ctx.Err() == nil && !errors.As(err, &unexpected)
}

// queryOnce is Query for what rests on the session: it does not connect anew.
func (c *Conn) queryOnce(ctx context.Context, q Query) ([][]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.query(ctx, q)
}

// query needs c.mu, as queryAll does.
func (c *Conn) query(ctx context.Context, q Query) (rows [][]string, err error) {
	err = c.run(ctx, q.Text, func(conn *client.Conn) error {
		r, err := conn.Execute(q.Text, q.Args...)
		if err != nil {
			return err
		}
		rows, err = q.rows(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

func (c *Conn) queryAll(ctx context.Context, queries []Query) (rows [][][]string, err error) {
	texts := make([]string, len(queries))
	for i, q := range queries {
		texts[i] = q.Text
	}
	text := strings.Join(texts, ";")
	err = c.run(ctx, text, func(conn *client.Conn) error {
		results, err := executeAll(conn, text)
		if err != nil {
			return err
		}
		if len(results) != len(queries) {
			return unexpected(queries[min(len(results), len(queries)-1)].Purpose, "%d results to %d queries",
				len(results), len(queries))
		}
		rows = make([][][]string, len(queries))
		for i, q := range queries {
			if rows[i], err = q.rows(results[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// QueryInSnapshot asks in a transaction of its own, whose snapshot is taken right before and given up right after. A
// connection that the server has closed is an error, and made anew for the next question.
func (c *Conn) QueryInSnapshot(ctx context.Context, q Query) (rows [][]string, err error) {
	text := "START TRANSACTION WITH CONSISTENT SNAPSHOT;" + q.Text + ";COMMIT"
	c.mu.Lock()
	defer c.mu.Unlock()
	err = c.run(ctx, text, func(conn *client.Conn) error {
		results, err := executeAll(conn, text)
		if err != nil {
			return err
		}
		const statements = 3
		if len(results) != statements {
			return unexpected(q.Purpose, "%d results to %d statements", len(results), statements)
		}
		rows, err = q.rows(results[1])
		return err
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// executeAll runs a text of several statements.
func executeAll(conn *client.Conn, text string) (results []*mysql.Result, err error) {
	var failed error
	_, err = conn.ExecuteMultiple(text, func(r *mysql.Result, err error) {
		results = append(results, r)
		failed = errors.Join(failed, err)
	})
	return results, errors.Join(failed, err)
}

// rows checks that a result is one of the query's, and returns its rows. They share no memory with it.
func (q Query) rows(r *mysql.Result) ([][]string, error) {
	columns := 0
	if r != nil && r.Resultset != nil {
		columns = r.ColumnNumber()
	}
	if columns == 0 || columns != q.Columns && columns != q.Else {
		return nil, unexpected(q.Purpose, "%d columns instead of %d", columns, q.Columns)
	}
	rows := make([][]string, len(r.Values))
	for i, values := range r.Values {
		if len(values) != columns {
			return nil, unexpected(q.Purpose, "a row of %d columns instead of %d", len(values), columns)
		}
		rows[i] = make([]string, columns)
		for j := range values {
			s, err := r.GetString(i, j)
			if err != nil {
				return nil, unexpected(q.Purpose, "a value that cannot be read: %v", err)
			}
			rows[i][j] = strings.Clone(s)
		}
	}
	return rows, nil
}

func unexpected(purpose, format string, args ...any) error {
	return &catalog.UnexpectedAnswer{Purpose: purpose, Got: fmt.Sprintf(format, args...)}
}

// Exec runs a statement that changes something, and returns how many rows the server says that it affected. When ctx
// ends first, the statement is killed.
func (c *Conn) Exec(ctx context.Context, text string, args ...any) (affected uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err = c.run(ctx, text, func(conn *client.Conn) error {
		r, err := conn.Execute(text, args...)
		if err == nil {
			affected = r.AffectedRows
		}
		return err
	})
	return affected, err
}

// library is whose panics become errors.
const library = "go-mysql"

// run has the client do what the text says. It needs c.mu. After an error that is not the server's own, c.client is
// nil.
func (c *Conn) run(ctx context.Context, text string, do func(*client.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", head(text), err)
	}
	if c.client == nil {
		if err := c.connect(ctx); err != nil {
			return err
		}
	}
	conn := c.client
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = conn.SetDeadline(time.Unix(1, 0)) // ends the wait for the reply
		c.kill(conn.GetConnectionID())
	})
	err := guard.Call(library, func() error { return do(conn) })
	if !stop() {
		<-interrupted
		err = errors.Join(ctx.Err(), err)
	}
	if err == nil {
		return nil
	}
	if !isServerError(err) || ctx.Err() != nil {
		_ = conn.Close() // it is of no more use; why is in err
		c.client = nil
	}
	return fmt.Errorf("%s: %w", head(text), err)
}

// kill ends the session that runs a statement nobody waits for any more: the server would not
// notice before the statement's end. It is a courtesy; that it fails changes nothing.
func (c *Conn) kill(id uint32) {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	killer := &Conn{target: c.target}
	if _, err := killer.Exec(ctx, fmt.Sprintf("KILL %d", id)); err == nil {
		_ = killer.Close()
	}
}

// Close ends the connection. That it broke before is no error: nothing is lost with it.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil {
		return nil
	}
	if err := c.client.Quit(); err != nil {
		_ = c.client.Close() // Quit does not, when the server cannot be told
	}
	c.client = nil
	return nil
}

// isServerError reports whether the server itself refused a statement; the connection is then still good.
func isServerError(err error) bool {
	var e *mysql.MyError
	return errors.As(err, &e)
}

// head returns a statement's beginning, for an error message.
func head(text string) string {
	const length = 60
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > length {
		return strings.ToValidUTF8(text[:length], "") + " ..."
	}
	return text
}

// quote quotes an identifier.
func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
