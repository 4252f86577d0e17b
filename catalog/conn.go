package catalog

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
)

const (
	// connectTimeout bounds how long a server may take to accept a connection and a login.
	connectTimeout = 10 * time.Second
	// killTimeout bounds how long a server may take to end a statement that nobody waits for: whoever gave it up is waiting.
	killTimeout = time.Second
)

// A Conn is isotap's own connection to the server, for what no client asked. It connects anew when
// the server has closed it. It is safe for concurrent use: statements wait for each other.
type Conn struct {
	target Target
	mu     sync.Mutex
	client *client.Conn // nil while not connected
}

// Connect opens a connection to a server of the MySQL family. The caller closes it.
func Connect(ctx context.Context, target Target) (*Conn, error) {
	if target.Family != MySQL {
		return nil, fmt.Errorf("%s is an address of %s: this needs a server of the MySQL family", target, target.Family)
	}
	c := &Conn{target: target}
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// sessionSettings make a session independent of the server's defaults. Without a strict sql_mode
// and without checks, ALTER TABLE and the back-fill leave rows as they are that today's sql_mode
// and constraints would not let in (the comment is MariaDB's alone to read). A client's statement that waits behind an ALTER TABLE of ours
// for a table in use does so for no longer than lock_wait_timeout.
const sessionSettings = "SET NAMES utf8mb4, SESSION autocommit = 1, SESSION sql_mode = 'ALLOW_INVALID_DATES', SESSION lock_wait_timeout = 30" +
	" /*M! , SESSION check_constraint_checks = 0 */"

// connect needs c.mu, or a Conn that nobody else has yet.
func (c *Conn) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var socket net.Conn
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		var err error
		if socket, err = d.DialContext(ctx, network, address); err != nil {
			return nil, err
		}
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
	login := func(o ...client.Option) (*client.Conn, error) {
		o = append(o, func(c *client.Conn) error { return c.SetCapability(mysql.CLIENT_MULTI_STATEMENTS) })
		return client.ConnectWithDialer(ctx, c.target.Network, c.target.Address, c.target.User, c.target.Password, "", dial, o...)
	}
	var conn *client.Conn
	if secure == nil {
		conn, err = login()
	} else {
		conn, err = login(func(c *client.Conn) error { c.SetTLSConfig(secure); return nil })
		if c.target.TLS.Mode == TLSPrefer && err != nil && strings.Contains(err.Error(), "does not support TLS") {
			conn, err = login()
		}
	}
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", c.target, err)
	}
	if _, err = conn.Execute(sessionSettings); err == nil {
		err = socket.SetDeadline(time.Time{})
	}
	if err != nil {
		return errors.Join(fmt.Errorf("preparing the session at %s: %w", c.target, err), conn.Close())
	}
	c.client = conn
	return nil
}

// Target is the server that the connection leads to.
func (c *Conn) Target() Target { return c.target }

// Query runs a statement that only reads, with args for its placeholders, and gives its whole
// result. When the server turns out to have closed the connection, it connects anew and asks again.
// An error of the server's own is a *mysql.MyError.
func (c *Conn) Query(ctx context.Context, text string, args ...any) (*mysql.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wasOpen := c.client != nil
	r, err := c.execute(ctx, text, args...)
	if err != nil && wasOpen && c.client == nil && ctx.Err() == nil {
		r, err = c.execute(ctx, text, args...)
	}
	return r, err
}

// QueryAll runs a text of several statements that only read, and returns their results. It deals with errors as Query does.
func (c *Conn) QueryAll(ctx context.Context, text string) (results []*mysql.Result, err error) {
	run := func(conn *client.Conn) error {
		results = nil
		var failed error
		_, err := conn.ExecuteMultiple(text, func(r *mysql.Result, err error) {
			results = append(results, r)
			failed = errors.Join(failed, err)
		})
		return errors.Join(failed, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	wasOpen := c.client != nil
	err = c.run(ctx, text, run)
	if err != nil && wasOpen && c.client == nil && ctx.Err() == nil {
		err = c.run(ctx, text, run)
	}
	return results, err
}

// Exec runs a statement that changes something. When ctx ends first, the statement is killed.
func (c *Conn) Exec(ctx context.Context, text string, args ...any) (*mysql.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.execute(ctx, text, args...)
}

// execute needs c.mu. After an error that is not the server's own, c.client is nil.
func (c *Conn) execute(ctx context.Context, text string, args ...any) (r *mysql.Result, err error) {
	err = c.run(ctx, text, func(conn *client.Conn) (err error) {
		r, err = conn.Execute(text, args...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// run has the client do what the text says; as execute it needs c.mu, and deals with errors.
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
	err := do(conn)
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

// Close ends the connection.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil {
		return nil
	}
	err := c.client.Quit()
	c.client = nil
	return err
}

// isServerError says whether the server itself refused a statement; the connection is then still good.
func isServerError(err error) bool {
	var e *mysql.MyError
	return errors.As(err, &e)
}

// head gives a statement's beginning, for an error message.
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

// text gives a value of a result as text; empty for NULL.
func text(r *mysql.Result, row, column int) (string, error) {
	s, err := r.GetString(row, column)
	// GetString's result shares memory with the reply.
	return strings.Clone(s), err
}
