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
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/guard"
)

const (
	// connectTimeout bounds how long a server may take to accept a connection and a login.
	connectTimeout = 10 * time.Second
	// linger is how long a connection stays after its last use when it is alone in the database. The server waits five
	// seconds for others to leave a database before it refuses to drop or copy it.
	linger = 250 * time.Millisecond
)

// A Conn is isotap's own way to one database of a server, for what no client asked. It connects when it is
// used, and leaves shortly after, unless clients are in the database anyway: a new one costs more than most readings.
// It is safe for concurrent use: readings wait for each other.
type Conn struct {
	target dsn.Target
	config *pgconn.Config
	stays  func() bool // whether clients are in the database; set before the first use
	leave  *time.Timer // calls goUnused

	mu       sync.Mutex
	pg       *pgconn.PgConn    // nil while not connected
	used     time.Time         // when pg was last used
	prepared map[string]string // the names of queries that were prepared on pg
	prepares bool              // the server keeps what is prepared
	builtins *builtins         // of the server that pg leads to; nil: not read yet
}

// NewConn returns the way to a database with the target's login. It does not connect yet. An empty name means
// the target's database, or else the one that is named as the user.
func NewConn(target dsn.Target, database string) (*Conn, error) {
	if target.Family != dbms.PostgreSQLFamily {
		return nil, fmt.Errorf("%s is an address of %s: this needs a PostgreSQL server", target, target.Family.Title())
	}
	if database != "" {
		target.Database = database
	}
	// What the address leaves out (user, password) libpq's environment and ~/.pgpass may say.
	config, err := pgconn.ParseConfig(target.URL())
	if err != nil {
		return nil, fmt.Errorf("the address %s, or libpq's environment (PG...): %s", target,
			cause(err, target.Password))
	}
	// Settings of the environment's are for its programs' sessions.
	config.RuntimeParams = map[string]string{"application_name": "isotap", "client_encoding": "UTF8"}
	config.ConnectTimeout = connectTimeout
	catalog.BoundPostgreSQL(config)
	c := &Conn{target: target, config: config, prepares: true, stays: func() bool { return false }}
	c.leave = time.AfterFunc(linger, c.goUnused)
	c.leave.Stop() // until the connection is used: before that the caller may say who else is in the database
	return c, nil
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
func (c *Conn) Target() dsn.Target { return c.target }

// A query and its arguments as text, and what its answer must look like.
type query struct {
	purpose string // what is asked for, for errors: "the indexes of tables"
	text    string
	args    []string
	columns int
	row     bool // the answer is one row
	once    bool // it will not come again
}

// check compares an answer with what was asked for.
func (q *query) check(r *pgconn.Result) error {
	if n := len(r.FieldDescriptions); n != q.columns {
		return q.unexpected("%d columns instead of %d", n, q.columns)
	}
	for _, values := range r.Rows {
		if len(values) != q.columns {
			return q.unexpected("a row of %d columns instead of %d", len(values), q.columns)
		}
	}
	if q.row && len(r.Rows) != 1 {
		return q.unexpected("%d rows instead of one", len(r.Rows))
	}
	return nil
}

func (q *query) unexpected(format string, args ...any) error {
	return &catalog.UnexpectedAnswer{Purpose: q.purpose, Got: fmt.Sprintf(format, args...)}
}

// A row of a result as text, empty for NULL.
type row []string

func (r row) oid(i int) uint32 {
	n, _ := strconv.ParseUint(r[i], 10, 32) // the server's number
	return uint32(n)
}

// statementTimeout is after what time the server ends a query.
const statementTimeout = 30 * time.Second

// begin begins a transaction that sees one state of the catalog. It waits neither long nor for anybody's
// lock, names are the system's whatever the login's settings say, and a query is planned once, whatever it is asked
// with.
var begin = []query{
	{purpose: "a transaction", text: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"},
	{purpose: "settings for a transaction", columns: 5, row: true,
		text: "SELECT pg_catalog.set_config('statement_timeout', '" + statementTimeout.String() + "', true), " +
			"pg_catalog.set_config('lock_timeout', '1s', true), " +
			"pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), " +
			"pg_catalog.set_config('jit', 'off', true), " +
			"pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', true)"},
}

// read runs queries in one transaction and returns their rows. When the server turns out to have closed the
// connection, it connects anew and asks again. An error of the server's own is a *pgconn.PgError.
func (c *Conn) read(ctx context.Context, queries ...query) (rows [][]row, err error) {
	err = c.transact(ctx, func(t *transaction) error {
		rows, err = t.last(queries...)
		return err
	})
	return rows, err
}

// Ping has the server answer.
func (c *Conn) Ping(ctx context.Context) error {
	_, err := c.read(ctx)
	return err
}

// endedAgain is how often a reading that somebody ended is done again: who ends what runs may end the next one, too.
const endedAgain = 2

// transact does work in one transaction, whose last questions are asked by [transaction.last]. It does it again when
// the server turns out to have closed the connection, or keeps no prepared statements, and when somebody ended it.
func (c *Conn) transact(ctx context.Context, work func(*transaction) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, ended, began := c.pg != nil, 0, time.Now()
	for {
		err := c.try(ctx, work)
		var unexpected *catalog.UnexpectedAnswer
		switch {
		case err == nil, c.pg != nil, ctx.Err() != nil, errors.As(err, &unexpected):
			return err
		case c.losesPrepared(err):
		case isEnded(err) && ended < endedAgain && time.Since(began) < statementTimeout:
			ended++
		case kept:
			kept = false
		default:
			return err
		}
	}
}

// isEnded reports whether an error says that somebody ended a query, or its session. The server ends one alike that
// takes longer than statementTimeout.
func isEnded(err error) bool {
	const queryCanceled, adminShutdown = "57014", "57P01"
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == queryCanceled || e.Code == adminShutdown)
}

// try needs c.mu. After an error c.pg is nil.
func (c *Conn) try(ctx context.Context, work func(*transaction) error) error {
	if err := c.connect(ctx); err != nil {
		return err
	}
	if err := work(&transaction{ctx: ctx, conn: c, unsent: begin}); err != nil {
		c.close()
		return fmt.Errorf("reading the catalog of %s: %w", c.target, err)
	}
	c.rest()
	return nil
}

// losesPrepared reports whether an error is about a prepared statement that is not there, or was: a pooler before the
// server has another connection for each transaction. From then on none are prepared. It needs c.mu.
func (c *Conn) losesPrepared(err error) bool {
	const noSuchStatement, suchStatement = "26000", "42P05"
	var e *pgconn.PgError
	if c.prepares && errors.As(err, &e) && (e.Code == noSuchStatement || e.Code == suchStatement) {
		c.prepares = false
		return true
	}
	return false
}

// A transaction is one that reads.
type transaction struct {
	ctx    context.Context
	conn   *Conn
	unsent []query // that go before the next ones
}

// byIndexes has the server look up what is asked for: a plan is made once, when it is
// not known of how little.
var byIndexes = query{purpose: "settings for a plan", columns: 3, row: true,
	text: "SELECT pg_catalog.set_config('enable_hashjoin', 'off', true), " +
		"pg_catalog.set_config('enable_mergejoin', 'off', true), " +
		"pg_catalog.set_config('enable_seqscan', 'off', true)"}

// byIndexes has it so from here on.
func (t *transaction) byIndexes() {
	if len(t.unsent) == 0 {
		t.unsent = []query{byIndexes}
		return
	}
	t.unsent = slices.Clone(t.unsent)
	last := &t.unsent[len(t.unsent)-1]
	last.text += ", " + strings.TrimPrefix(byIndexes.text, "SELECT ")
	last.columns += byIndexes.columns
}

// ask runs queries and returns their rows.
func (t *transaction) ask(queries ...query) ([][]row, error) {
	sent := append(slices.Clip(t.unsent), queries...)
	results, err := t.conn.exchange(t.ctx, sent)
	if err != nil {
		return nil, err
	}
	rows := make([][]row, len(queries))
	for i := range queries {
		rows[i] = texts(results[len(t.unsent)+i])
	}
	t.unsent = nil
	return rows, nil
}

// last is ask with the transaction's end.
func (t *transaction) last(queries ...query) ([][]row, error) {
	rows, err := t.ask(append(slices.Clip(queries), query{purpose: "a transaction's end", text: "COMMIT"})...)
	if err != nil {
		return nil, err
	}
	return rows[:len(queries)], nil
}

// library is whose panics become errors.
const library = "pgx"

// exchange sends queries at once, and returns an answer to each that looks as it must. It needs c.mu.
func (c *Conn) exchange(ctx context.Context, queries []query) (results []*pgconn.Result, err error) {
	err = guard.Call(library, func() error {
		results, err = c.pipeline(ctx, queries)
		return err
	})
	if err != nil {
		return nil, err
	}
	if n := len(results); n != len(queries) {
		return nil, queries[min(n, len(queries)-1)].unexpected("%d results to %d queries", n, len(queries))
	}
	for i := range queries {
		if err := queries[i].check(results[i]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// pipeline sends queries at once, and returns what comes back. Those that come again are prepared: the server takes
// longer to plan them than to answer. It needs c.mu.
func (c *Conn) pipeline(ctx context.Context, queries []query) ([]*pgconn.Result, error) {
	p := c.pg.StartPipeline(ctx)
	var results []*pgconn.Result
	for _, q := range queries {
		args := make([][]byte, len(q.args))
		for i, a := range q.args {
			args[i] = []byte(a)
		}
		name, there := c.prepared[q.text]
		switch {
		case !c.prepares || q.once:
			p.SendQueryParams(q.text, args, nil, nil, nil)
			continue
		case !there:
			name = "isotap_catalog_" + strconv.Itoa(len(c.prepared))
			c.prepared[q.text] = name
			p.SendPrepare(name, q.text, nil)
		}
		p.SendQueryPrepared(name, args, nil, nil)
	}
	err := p.Sync()
	for err == nil {
		var got any
		if got, err = p.GetResults(); err != nil {
			break
		}
		switch got := got.(type) {
		case *pgconn.ResultReader:
			columns := slices.Clone(got.FieldDescriptions()) // the result has them only with rows
			r := got.Read()
			r.FieldDescriptions = columns
			results, err = append(results, r), r.Err
		case *pgconn.PipelineSync:
			return results, p.Close()
		case nil: // the library expects no more, and the transaction's end was not among what came
			err = errors.New("the server's answers end too early")
		}
	}
	return nil, errors.Join(err, p.Close())
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
		return nil
	}
	connecting, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var pg *pgconn.PgConn
	err := guard.Call(library, func() (err error) {
		pg, err = pgconn.ConnectConfig(connecting, c.config)
		return err
	})
	if err != nil {
		return catalog.NewLoginError(ctx, c.target, reason(err), refusal(err))
	}
	c.pg, c.prepared, c.builtins = pg, make(map[string]string), nil
	return nil
}

// refusal is what the server answered to a login; nil where an error is no answer of it.
func refusal(err error) *catalog.Refusal {
	var said *pgconn.PgError
	if !errors.As(err, &said) {
		return nil
	}
	const invalidAuthorization, invalidPassword = "28000", "28P01"
	return &catalog.Refusal{Message: said.Message, Code: "SQLSTATE " + said.Code,
		Credentials: said.Code == invalidAuthorization || said.Code == invalidPassword}
}

// connected reports whether there is a connection that nobody uses just now.
func (c *Conn) connected() bool {
	if !c.mu.TryLock() {
		return false
	}
	defer c.mu.Unlock()
	return c.pg != nil
}

// rest notes that the connection was used. It needs c.mu.
func (c *Conn) rest() {
	c.used = time.Now()
	c.leave.Reset(linger)
}

// goUnused ends a connection that is alone in the database, once it has not been used for long enough. Whoever leaves
// it alone calls again.
func (c *Conn) goUnused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	unused := time.Since(c.used)
	switch {
	case c.pg == nil, c.stays():
	case unused < linger:
		c.leave.Reset(linger - unused)
	default:
		c.close()
	}
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
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = guard.Call(library, func() error { return c.pg.Close(ctx) }) // it is of no more use
	c.pg = nil
}

// Close ends the connection, if there is one.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close()
	return nil
}

// array returns texts as an array's literal.
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
