package tempdb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
)

// A Pool is [Run] for many runs on one server. PostgreSQL takes longer to make a database than a short run works in it,
// and its first connections to a new one take longer, too: so the next run has the database of one before, emptied. It
// is safe for concurrent use: runs at the same time have a database each.
type Pool struct {
	target   dsn.Target
	name     string
	patience time.Duration
	admin    *sql.DB

	mu   sync.Mutex
	idle []emptied
}

// An emptied database is one that a run may have.
type emptied struct {
	name string
	db   *sql.DB // to it, not through isotap
}

// NewPool returns a pool whose databases have a name, or that with a number behind it where it is taken. Making,
// emptying and dropping one may take as long as patience says; 0: a minute. The caller closes the pool.
func NewPool(target dsn.Target, name string, patience time.Duration) (*Pool, error) {
	if target.Family == dbms.PostgreSQLFamily {
		target.Database = cmp.Or(target.Database, "postgres")
	}
	admin, err := open(target)
	if err != nil {
		return nil, err
	}
	return &Pool{target: target, name: name, patience: cmp.Or(patience, defaultPatience), admin: admin}, nil
}

// Run is [Run] on a database of the pool. Options.Database and Options.Patience are the pool's.
func (p *Pool) Run(ctx context.Context, o Options, work func(ctx context.Context, dsn string) error) (*analyzer.Result,
	error) {
	return analyzed(ctx, o, func(o Options) (run history.Run, err error) {
		e, err := p.take(ctx)
		if err != nil {
			return run, err
		}
		defer func() {
			if failed := p.giveBack(ctx, e, err == nil); err == nil {
				err = failed
			}
		}()
		return through(ctx, p.target, e.name, o, work)
	})
}

// take returns a database that is empty.
func (p *Pool) take(ctx context.Context) (e emptied, err error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		e, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	p.mu.Unlock()
	if e.name != "" {
		return e, nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	if e.name, err = create(ctx, p.admin, p.name); err != nil {
		return e, fmt.Errorf("make the database %s: %w", p.name, err)
	}
	if p.target.Family == dbms.PostgreSQLFamily {
		inside := p.target
		inside.Database = e.name
		if e.db, err = open(inside); err != nil {
			return emptied{}, errors.Join(err, p.drop(ctx, e))
		}
	}
	return e, nil
}

// giveBack empties a database for the next run where that is the faster way and it can be done, and drops it elsewhere.
func (p *Pool) giveBack(ctx context.Context, e emptied, whole bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.patience)
	defer cancel()
	if !whole || e.db == nil || e.empty(ctx) != nil {
		return p.drop(ctx, e)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, e)
	return nil
}

// empty ends all sessions in a PostgreSQL database and drops what they made. A role that does not own the schema
// public, as before PostgreSQL 15, may not. Nothing is dropped where the connection leads to another database than the
// one that was made: behind a pooler, one that is somebody's.
func (e emptied) empty(ctx context.Context) error {
	conn, err := e.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("empty the database %s: %w", e.name, err)
	}
	defer conn.Close()
	var in string
	if err := conn.QueryRowContext(ctx, "SELECT current_database()").Scan(&in); err != nil {
		return fmt.Errorf("empty the database %s: %w", e.name, err)
	}
	if in != e.name {
		return fmt.Errorf("empty the database %s: connections to it lead to %s", e.name, in)
	}
	for _, text := range []string{
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity " +
			"WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
		"DROP SCHEMA public CASCADE", "CREATE SCHEMA public"} {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("empty the database %s: %w", e.name, err)
		}
	}
	return nil
}

func (p *Pool) drop(ctx context.Context, e emptied) error {
	if e.db != nil {
		_ = e.db.Close() // a courtesy: the server ends what is there
	}
	if err := drop(ctx, p.admin, p.target.Family, e.name); err != nil {
		return fmt.Errorf("drop the database %s: %w", e.name, err)
	}
	return nil
}

// Close drops the databases. No run may be under way.
func (p *Pool) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), p.patience)
	defer cancel()
	var errs []error
	for _, e := range p.idle {
		errs = append(errs, p.drop(ctx, e))
	}
	p.idle = nil
	return errors.Join(append(errs, p.admin.Close())...)
}
