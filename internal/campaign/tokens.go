//go:build linux

package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/history"
)

// The tables that clients of tokens write to: no two write the same row, so that none waits for another. Those whose
// statements are changed on their way have a table of their own.
const (
	tokenTables = "token, prey"
	makeTokens  = "CREATE TABLE token (marker VARCHAR(60) PRIMARY KEY, n INT NOT NULL)"
	makePrey    = "CREATE TABLE prey (marker VARCHAR(60) PRIMARY KEY, n INT NOT NULL)"
)

// A truth is what clients were told, and what they were told that was wrong.
type truth struct {
	job *job
	mu  sync.Mutex
	// acknowledged are committed transactions by their markers.
	acknowledged map[string]told
}

// told is what a client was told: that a row with n is there, and when.
type told struct {
	n  int
	at time.Time
}

func newTruth(j *job) *truth { return &truth{job: j, acknowledged: make(map[string]told)} }

// committed notes that a client was told that a transaction committed.
func (t *truth) committed(marker string, n int) {
	t.mu.Lock()
	t.acknowledged[marker] = told{n, time.Now()}
	t.mu.Unlock()
	t.job.count(func(r *row) { r.acknowledged++ })
}

// compare looks for everything acknowledged in the database.
func (t *truth) compare(ctx context.Context, s *site) error {
	found := make(map[string]int)
	err := read(ctx, s.db, "SELECT marker, n FROM token", func(scan func(...any) error) error {
		var marker string
		var n int
		err := scan(&marker, &n)
		found[marker] = n
		return err
	})
	if err != nil {
		return err
	}
	for marker, told := range t.acknowledged {
		if got, ok := found[marker]; !ok || got != told.n {
			t.job.lost("%s was acknowledged with %d, and the database has it: %t, with %d", marker, told.n, ok, got)
		}
	}
	return nil
}

// compareRecording looks for what was acknowledged in a recording, if that is sure to be there by the time at which it
// was.
func (t *truth) compareRecording(ctx context.Context, recording string, sure func(at time.Time) bool) error {
	recorded, _, err := recordedTxns(ctx, recording)
	if err != nil {
		return err
	}
	for marker, told := range t.acknowledged {
		if txn := recorded[marker]; txn == nil {
			if sure(told.at) {
				t.job.lost("%s was acknowledged at %v, and is not in the recording", marker, told.at)
			}
		} else if txn.Status != history.Committed {
			t.job.wrong("%s was acknowledged, and is recorded as %v", marker, txn.Status)
		}
	}
	return nil
}

// A client asks questions whose answers it knows. Its connection is its own.
type client struct {
	*truth
	family *family
	table  string
	name   string // no other client of the database has it
	random *rand.Rand
	limit  time.Duration // for one answer
}

// errWrongAnswer is a reply that was not the one to what the client asked.
var errWrongAnswer = errors.New("wrong answer")

// ask connects, and asks until something fails, the client has asked so often, or ctx ends.
func (c *client) ask(ctx context.Context, address string, questions int) error {
	asked := 0
	return c.askWhile(ctx, address, func() bool { asked++; return asked <= questions })
}

// askWhile connects, and asks until something fails, more says that it is enough, or ctx ends.
func (c *client) askWhile(ctx context.Context, address string, more func() bool) error {
	w := &c.family.works[c.random.IntN(len(c.family.works))]
	db, err := c.family.open(address, w.parameters+c.family.timeouts(c.limit)) // as text, or prepared
	if err != nil {
		return err
	}
	defer db.Close()
	limited, cancel := context.WithTimeout(ctx, c.limit)
	conn, err := db.Conn(limited)
	cancel()
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	for n := 0; ctx.Err() == nil && more(); n++ {
		if err := c.askOnce(ctx, conn, n); err != nil {
			return err
		}
	}
	return nil
}

// askOnce asks one of the questions, the client's n-th.
func (c *client) askOnce(ctx context.Context, conn *sql.Conn, n int) error {
	limited, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	c.job.count(func(r *row) { r.operations++ })
	asks := []func(context.Context, *sql.Conn, string) error{c.echo, c.rows, c.long, c.insert, c.transact}
	return asks[c.random.IntN(len(asks))](limited, conn, fmt.Sprintf("%s-%d", c.name, n))
}

// sql writes a statement with the engine's placeholders.
func (f *family) sql(statement string) string {
	if f.mysql() {
		return statement
	}
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(statement, "?") {
		if n++; n > 1 {
			fmt.Fprintf(&b, "$%d", n-1)
		}
		b.WriteString(part)
	}
	return b.String()
}

func (c *client) one(ctx context.Context, q interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, want any, statement string, args ...any) error {
	var got string
	if err := q.QueryRowContext(ctx, c.family.sql(statement), args...).Scan(&got); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	if got != fmt.Sprint(want) {
		return fmt.Errorf("%w to %s: %.100q, not %.100q", errWrongAnswer, statement, got, fmt.Sprint(want))
	}
	return nil
}

func (c *client) echo(ctx context.Context, conn *sql.Conn, marker string) error {
	return c.one(ctx, conn, marker+"!", "SELECT CONCAT(TRIM(CAST(? AS CHAR(60))), '!')", marker)
}

// long is a question whose answer needs several pieces.
func (c *client) long(ctx context.Context, conn *sql.Conn, marker string) error {
	n := 1 + c.random.IntN(3000)
	return c.one(ctx, conn, strings.Repeat(marker, n), fmt.Sprintf("SELECT REPEAT(TRIM(CAST(? AS CHAR(60))), %d)", n),
		marker)
}

// rows is a question whose answer has a row for each slot.
func (c *client) rows(ctx context.Context, conn *sql.Conn, marker string) error {
	const statement = "SELECT id, TRIM(CAST(? AS CHAR(60))) FROM slot ORDER BY id"
	rows, err := conn.QueryContext(ctx, c.family.sql(statement), marker)
	if err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var id int
		var got string
		if err := rows.Scan(&id, &got); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
		if id != n || got != marker {
			return fmt.Errorf("%w to %s: row %d is %d, %q", errWrongAnswer, statement, n, id, got)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	if want := len(c.family.works) + 1; n != want {
		return fmt.Errorf("%w to %s: %d rows, not %d", errWrongAnswer, statement, n, want)
	}
	return nil
}

func (c *client) insert(ctx context.Context, conn *sql.Conn, marker string) error {
	if err := c.changeOne(ctx, conn, "INSERT INTO "+c.table+" (marker, n) VALUES (?, 0)", marker); err != nil {
		return err
	}
	c.committed(marker, 0)
	return nil
}

func (c *client) changeOne(ctx context.Context, q interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, statement, marker string) error {
	result, err := q.ExecContext(ctx, c.family.sql(statement), marker)
	if err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("%w to %s: %d rows, %v", errWrongAnswer, statement, n, err)
	}
	return nil
}

func (c *client) transact(ctx context.Context, conn *sql.Conn, marker string) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback()
	if err := c.changeOne(ctx, tx, "INSERT INTO "+c.table+" (marker, n) VALUES (?, 0)", marker); err != nil {
		return err
	}
	if err := c.changeOne(ctx, tx, "UPDATE "+c.table+" SET n = n + 1 WHERE marker = ?", marker); err != nil {
		return err
	}
	if err := c.one(ctx, tx, 1, "SELECT n FROM "+c.table+" WHERE marker = ?", marker); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	c.committed(marker, 1)
	return nil
}

// broken reports whether an error says that a connection broke, or could not be made, or that an answer did not come in
// time.
func broken(err error) bool {
	for _, is := range []error{driver.ErrBadConn, mysql.ErrInvalidConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		sql.ErrConnDone, context.DeadlineExceeded,
		context.Canceled, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED, syscall.ETIMEDOUT,
		syscall.ENETUNREACH, syscall.EHOSTUNREACH} {
		if errors.Is(err, is) {
			return true
		}
	}
	var server *mysql.MySQLError
	if errors.As(err, &server) {
		// Of the server: it is ending, the client was too slow. Of isotap: the server cannot be reached.
		return server.Number == 1053 || server.Number == 1429 || server.Number == 1159 || server.Number == 1160 ||
			server.Number == 2003 || server.Number == 2013
	}
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return strings.HasPrefix(said.Code, "08") || strings.HasPrefix(said.Code, "57P")
	}
	var connecting *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connecting) || errors.As(err, &network) || strings.Contains(err.Error(), "conn closed")
}
