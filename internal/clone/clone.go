// Package clone copies a database on its own server, so that what could have happened can be played on the copy while
// the client's own database stays as it is.
//
// PostgreSQL copies the files (postgres.go), with the rights and settings of the database itself (pgsettings.go). A
// server of the MySQL family has no such command. There mysql.go makes the copy of the definitions that definitions.go
// has read, and rows.go fills the tables. rename.go has texts name the copy in the place of the source. errors.go says
// why a database is not copied.
package clone

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
)

// Prefix is what the names of all copies begin with.
const Prefix = "isotap_clone_"

// Options bound a copy.
type Options struct {
	// MaxBytes is the size of the largest database that is copied; 0: 1 GiB. Servers of the MySQL family estimate it.
	MaxBytes int64
	// Patience is how long to wait on PostgreSQL until nobody else is connected to the source; 0: the server's five
	// seconds.
	Patience time.Duration
}

const defaultMaxBytes = 1 << 30

// A Clone is a copy of a database. The caller ends it with [Clone.Drop].
type Clone struct{ target dsn.Target }

// Target is the copy's server and login, which are the source's, with the copy's database.
func (c *Clone) Target() dsn.Target { return c.target }

// Make copies the target's database under a name that is new on its server, and leaves the source as it is. The error
// may be a [*TooLargeError] or a [*RefusedError]; whatever it is, nothing of the copy is left.
//
// It is for a database at rest. PostgreSQL refuses to copy one that others are connected to, after it has waited for
// five seconds. A server of the MySQL family does not: there tables are copied one after the other, and are of one
// moment only if nobody writes.
//
// A server of the MySQL family shows a login no tables that it has no right to: those are not in the copy. It needs
// SELECT, SHOW VIEW, TRIGGER and EXECUTE on the source. Other differences from the source there:
//   - What others may do with the source, they may not do with the copy.
//   - Events are not copied, for they would run.
//   - A definer stays where the login may set it; else the login is the definer.
//   - Where a text names the source's schema, the copy's names the copy. Other schemas stay the same: what is written
//     there is written there. A routine that makes statements of strings (PREPARE) is an error if one of them names the
//     source.
//   - A sequence goes on behind the values that the server has cached.
//   - Of system-versioned tables only the present rows are copied.
//   - Views that are broken in the source are left out.
//
// On PostgreSQL foreign tables lead where the source's lead.
func Make(ctx context.Context, target dsn.Target, o Options) (*Clone, error) {
	most := cmp.Or(o.MaxBytes, defaultMaxBytes)
	if target.Family == dbms.PostgreSQLFamily {
		return makePostgreSQL(ctx, target, most, o.Patience)
	}
	return makeMySQL(ctx, target, most)
}

// TemporaryEmpty is Empty in the form of Temporary.
func TemporaryEmpty(ctx context.Context, beside dsn.Target) (empty dsn.Target, drop func() error, err error) {
	c, err := Empty(ctx, beside)
	return c.temporary(ctx, err)
}

// temporary returns the copy, unless there was an error, and what drops it whether ctx has ended or not.
func (c *Clone) temporary(ctx context.Context, err error) (dsn.Target, func() error, error) {
	if err != nil {
		return dsn.Target{}, nil, err
	}
	return c.target, func() error { return c.Drop(context.WithoutCancel(ctx)) }, nil
}

// Temporary is Make with the defaults, in the form that package explore asks for: what drops the copy does so whether
// ctx has ended or not.
func Temporary(ctx context.Context, of dsn.Target) (copied dsn.Target, drop func() error, err error) {
	c, err := Make(ctx, of, Options{})
	return c.temporary(ctx, err)
}

// Empty makes an empty database on the target's server, under a name that is new there.
func Empty(ctx context.Context, target dsn.Target) (c *Clone, err error) {
	if target.Family == dbms.PostgreSQLFamily {
		c, err = emptyPostgreSQL(ctx, target)
	} else {
		c, err = emptyMySQL(ctx, target)
	}
	if err != nil {
		err = fmt.Errorf("make an empty database: %w", err)
		if c != nil && c.target.Database != target.Database { // nobody knows what became of it
			err = c.abandon(ctx, err)
		}
		return nil, err
	}
	return c, nil
}

// Databases returns the names of the databases on the target's server, as far as the login sees them.
func Databases(ctx context.Context, target dsn.Target) (all []string, err error) {
	if target.Family == dbms.PostgreSQLFamily {
		all, err = databasesOfPostgreSQL(ctx, target)
	} else {
		all, err = databasesOfMySQL(ctx, target)
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the server's databases: %w", err)
	}
	return all, nil
}

// Drop removes the copy, and ends the sessions that are still in it. That it is gone already is no error.
func (c *Clone) Drop(ctx context.Context) error {
	drop := dropMySQL
	if c.target.Family == dbms.PostgreSQLFamily {
		drop = dropPostgreSQL
	}
	if err := drop(ctx, c.target); err != nil {
		return fmt.Errorf("drop the copy %s: %w", c.target.Database, err)
	}
	return nil
}

// dropPatience is how long removing half a copy may take, when whoever asked for it waits no longer.
const dropPatience = time.Minute

// abandon drops what was made of a copy that failed, and returns why it failed.
func (c *Clone) abandon(ctx context.Context, err error) error {
	dropping, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropPatience)
	defer cancel()
	return errors.Join(err, c.Drop(dropping))
}

const (
	nameLetters = 8
	mostNames   = 8 // that are tried: one that is taken comes once in 2^40
)

// newDatabase has a database made under new names until one is free, and returns its name. The server decides whether
// a name is free: what is there already is never taken for a copy of ours.
func newDatabase(create func(name string) error, taken func(error) bool) (name string, err error) {
	for range mostNames {
		name = Prefix + strings.ToLower(rand.Text()[:nameLetters])
		if err = create(name); err == nil || !taken(err) {
			return name, err
		}
	}
	return name, err
}
