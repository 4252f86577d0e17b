package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/catalog"
)

const (
	// connectTimeout bounds how long a server may take to accept a connection and a login.
	connectTimeout = 10 * time.Second
	// linger is how long a connection stays after its last use. The server waits five seconds for others
	// to leave a database before it refuses to drop or copy it.
	linger = 250 * time.Millisecond
)

// A Conn is isotap's own way to one database of a server, for what no client asked. It connects when it is
// used, and leaves shortly after. It is safe for concurrent use: readings wait for each other.
type Conn struct {
	target catalog.Target
	config *pgconn.Config

	mu    sync.Mutex
	pg    *pgconn.PgConn // nil while not connected
	leave *time.Timer    // closes pg; nil while not connected
}

// NewConn gives the way to a database with the target's login. It does not connect yet. An empty name means
// the target's database, or else the one that is named as the user.
func NewConn(target catalog.Target, database string) (*Conn, error) {
	if target.Family != catalog.PostgreSQL {
		return nil, fmt.Errorf("%s is an address of %s: this needs a PostgreSQL server", target, target.Family)
	}
	if database != "" {
		target.Database = database
	}
	// What the address leaves out (user, password) libpq's environment and ~/.pgpass may say.
	config, err := pgconn.ParseConfig(target.URL())
	if err != nil {
		return nil, fmt.Errorf("the address %s, or libpq's environment (PG...): %s", target, cause(err, target.Password))
	}
	// Settings of the environment's are for its programs' sessions.
	config.RuntimeParams = map[string]string{"application_name": "isotap", "client_encoding": "UTF8"}
	config.ConnectTimeout = connectTimeout
	return &Conn{target: target, config: config}, nil
}

// cause is what the library found wrong with an address. It quotes the address before that, which it may fail
// to free of the password.
func cause(err error, password string) string {
	inner := errors.Unwrap(err)
	if inner == nil || password != "" && strings.Contains(inner.Error(), password) {
		return "a setting has a value that it does not take"
	}
	return inner.Error()
}

// Target is the server and database that the connection leads to.
func (c *Conn) Target() catalog.Target { return c.target }

// A query and its arguments as text.
type query struct {
	text string
	args []string
}

// A row of a result as text, empty for NULL.
type row []string

func (r row) oid(i int) uint32 {
	n, _ := strconv.ParseUint(r[i], 10, 32) // the server's number
	return uint32(n)
}

// begin begins a transaction that sees one state of the catalog. It waits neither long nor for anybody's
// lock, and names are the system's whatever the login's settings say.
var begin = []query{
	{text: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"},
	{text: "SET LOCAL statement_timeout = '30s'"},
	{text: "SET LOCAL lock_timeout = '1s'"},
	{text: "SET LOCAL search_path = pg_catalog, pg_temp"},
	{text: "SET LOCAL jit = off"},
}

// read runs queries in one transaction and gives their rows. When the server turns out to have closed the
// connection, it connects anew and asks again. An error of the server's own is a *pgconn.PgError.
func (c *Conn) read(ctx context.Context, queries ...query) ([][]row, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	again := c.pg != nil
	for {
		results, err := c.transact(ctx, queries)
		if err == nil || !again || c.pg != nil || ctx.Err() != nil {
			return results, err
		}
		again = false
	}
}

// Ping has the server answer.
func (c *Conn) Ping(ctx context.Context) error {
	_, err := c.read(ctx)
	return err
}

// transact needs c.mu. After an error c.pg is nil.
func (c *Conn) transact(ctx context.Context, queries []query) ([][]row, error) {
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if c.pg != nil {
			c.leave.Reset(linger)
		}
	}()
	var batch pgconn.Batch
	for _, q := range begin {
		batch.ExecParams(q.text, nil, nil, nil, nil)
	}
	for _, q := range queries {
		args := make([][]byte, len(q.args))
		for i, a := range q.args {
			args[i] = []byte(a)
		}
		batch.ExecParams(q.text, args, nil, nil, nil)
	}
	batch.ExecParams("COMMIT", nil, nil, nil, nil)
	results, err := c.pg.ExecBatch(ctx, &batch).ReadAll()
	if err != nil {
		c.close()
		return nil, fmt.Errorf("reading the catalog of %s: %w", c.target, err)
	}
	rows := make([][]row, len(queries))
	for i := range queries {
		rows[i] = texts(results[len(begin)+i])
	}
	return rows, nil
}

func texts(r *pgconn.Result) []row {
	rows := make([]row, len(r.Rows))
	for i, values := range r.Rows {
		rows[i] = make(row, len(values))
		for j, v := range values {
			rows[i][j] = string(v)
		}
	}
	return rows
}

// connect needs c.mu.
func (c *Conn) connect(ctx context.Context) error {
	if c.pg != nil {
		c.leave.Stop()
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	pg, err := pgconn.ConnectConfig(ctx, c.config)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", c.target, reason(err))
	}
	c.pg = pg
	c.leave = time.AfterFunc(linger, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.pg == pg {
			c.close()
		}
	})
	return nil
}

// reason is what went wrong with a connection, without the library's description of where it led to. It may have
// been tried with TLS and without: what failed alike is told once.
func reason(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg
	}
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) && connect.Unwrap() != nil {
		err = connect.Unwrap()
	}
	var tries interface{ Unwrap() []error }
	if !errors.As(err, &tries) {
		return err
	}
	var distinct []error
	for _, try := range tries.Unwrap() {
		if !slices.ContainsFunc(distinct, func(e error) bool { return e.Error() == try.Error() }) {
			distinct = append(distinct, try)
		}
	}
	return errors.Join(distinct...)
}

// close needs c.mu.
func (c *Conn) close() {
	if c.pg == nil {
		return
	}
	c.leave.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.pg.Close(ctx) // it is of no more use
	c.pg, c.leave = nil, nil
}

// Close ends the connection, if there is one.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close()
	return nil
}

// array gives texts as an array's literal.
func array(texts []string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	var b strings.Builder
	b.WriteByte('{')
	for i, t := range texts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + escape.Replace(t) + `"`)
	}
	b.WriteByte('}')
	return b.String()
}
