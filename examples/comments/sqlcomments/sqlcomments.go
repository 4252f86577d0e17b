// Package sqlcomments says in a comment of each SQL statement what a Go program is doing, and from which line it sends
// it. isotap, and whoever else reads sqlcommenter's comments, then names findings by it. It wraps a driver of
// database/sql, and so works for GORM, sqlx, ent and others that use that package:
//
//	connector, err := mysql.NewConnector(config)   // or stdlib.GetConnector(pgxConfig)
//	db := sql.OpenDB(sqlcomments.Wrap(connector))
//
//	ctx := sqlcomments.Action(r.Context(), "orders#create")   // in a handler, or where the route is known
//	db.ExecContext(ctx, ...)
//
// Programs that use pgx without database/sql have [WrapPgx], in pgx.go. It is an example: copy the files into your
// program.
package sqlcomments

import (
	"context"
	"database/sql/driver"
	"net/url"
	"path"
	"reflect"
	"runtime"
	"strconv"
	"strings"
)

type actionKey struct{}

// Action returns a context whose statements belong to what the name says.
func Action(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, actionKey{}, name)
}

// Wrap returns a connector whose connections add a comment to each statement that they are given.
func Wrap(c driver.Connector) driver.Connector { return connector{c} }

type connector struct{ driver.Connector }

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{inner}, nil
}

// A conn has the optional methods of the connection that it wraps; where that lacks one, it says what database/sql
// takes for an answer.
type conn struct{ driver.Conn }

// Prepare implements driver.Conn.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	query += comment(ctx)
	if of, ok := c.Conn.(driver.ConnPrepareContext); ok {
		return of.PrepareContext(ctx, query)
	}
	return c.Conn.Prepare(query)
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if of, ok := c.Conn.(driver.ExecerContext); ok {
		return of.ExecContext(ctx, query+comment(ctx), args)
	}
	return nil, driver.ErrSkip
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if of, ok := c.Conn.(driver.QueryerContext); ok {
		return of.QueryContext(ctx, query+comment(ctx), args)
	}
	return nil, driver.ErrSkip
}

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if of, ok := c.Conn.(driver.ConnBeginTx); ok {
		return of.BeginTx(ctx, opts)
	}
	return c.Conn.Begin() //lint:ignore SA1019 what older drivers have
}

// Ping implements driver.Pinger.
func (c *conn) Ping(ctx context.Context) error {
	if of, ok := c.Conn.(driver.Pinger); ok {
		return of.Ping(ctx)
	}
	return nil
}

// ResetSession implements driver.SessionResetter.
func (c *conn) ResetSession(ctx context.Context) error {
	if of, ok := c.Conn.(driver.SessionResetter); ok {
		return of.ResetSession(ctx)
	}
	return nil
}

// IsValid implements driver.Validator.
func (c *conn) IsValid() bool {
	of, ok := c.Conn.(driver.Validator)
	return !ok || of.IsValid()
}

// CheckNamedValue implements driver.NamedValueChecker.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if of, ok := c.Conn.(driver.NamedValueChecker); ok {
		return of.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// comment returns the comment for a statement, with a blank before it.
func comment(ctx context.Context) string {
	var pairs []string
	if name, _ := ctx.Value(actionKey{}).(string); name != "" {
		pairs = append(pairs, "controller='"+encode(name)+"'")
	}
	if file, line := place(); file != "" {
		pairs = append(pairs, "file='"+encode(file)+"'", "line='"+strconv.Itoa(line)+"'")
	}
	if len(pairs) == 0 {
		return ""
	}
	return " /*" + strings.Join(pairs, ",") + "*/"
}

// encode encodes a value as sqlcommenter says, so that nothing in it ends the comment.
func encode(value string) string {
	return strings.NewReplacer("'", "%27", "*", "%2A", "+", "%20").Replace(url.QueryEscape(value))
}

// between are packages that stand between a program and its driver.
var between = []string{"database/sql.", "gorm.io/", "github.com/jmoiron/sqlx", "entgo.io/", "github.com/jackc/pgx", "runtime."}

// place returns the directory and file of the program, and the line, that a statement comes from.
func place() (file string, line int) {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers[:])])
	for {
		f, more := frames.Next()
		if f.Function != "" && !own(f.Function) {
			return path.Join(path.Base(path.Dir(f.File)), path.Base(f.File)), f.Line
		}
		if !more {
			return "", 0
		}
	}
}

func own(function string) bool {
	for _, p := range between {
		if strings.HasPrefix(function, p) {
			return true
		}
	}
	return strings.HasPrefix(function, ownPackage)
}

// ownPackage is the path of this package, with a dot behind it.
var ownPackage = reflect.TypeFor[connector]().PkgPath() + "."
