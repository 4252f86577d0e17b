package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/internal/guard"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// Instrument adds isotap's columns to the tables of a database that can have them, and gives every row its id.
// There are no invisible columns: whoever does not come through isotap sees them in SELECT *. Tables where that
// could make a statement fail, or mean something else, are left out: their rows are known by PostgreSQL's own
// columns, as those of all tables are without Instrument. Inheriting tables get the columns with their parents.
//
// The server writes each table anew, which is locked meanwhile. One that is in use for lockTimeout is left
// out. Interrupted or failed, Instrument can be called again: every table is one transaction. An error of the server
// that concerns one table only leaves that table out; any other ends the work.
func Instrument(ctx context.Context, c *Conn, o catalog.Options) (catalog.Result, error) {
	facts, err := ServerFacts(ctx, c)
	if err != nil {
		return catalog.Result{}, err
	}
	j := job{conn: c, options: o,
		add: "ADD COLUMN " + sqlpostgres.RowIDDefinition(facts.Major) + ", ADD COLUMN " +
			sqlpostgres.WListDefinition(o.WListBytes)}
	return j.result, j.each(ctx, j.instrument)
}

// Strip takes isotap's columns, and the rights on them, away again: every table looks as it did before [Instrument].
// The server keeps the values in its files until a row is written again. Errors are dealt with as by Instrument.
func Strip(ctx context.Context, c *Conn, o catalog.Options) (catalog.Result, error) {
	j := job{conn: c, options: o}
	// What a table had before it began to inherit stays with it when its parent loses it.
	for {
		before := len(j.result.Changed)
		if err := j.each(ctx, j.strip); err != nil || len(j.result.Changed) == before {
			return j.result, err
		}
	}
}

// lockTimeout is how long a change waits for those who use the table. Others wait behind it.
const lockTimeout = "10s"

// A job is one run of [Instrument] or [Strip].
type job struct {
	conn    *Conn
	options catalog.Options
	add     string
	result  catalog.Result
}

// each does the work for every table that does not inherit its columns.
func (j *job) each(ctx context.Context, work func(context.Context, *subject) error) error {
	subjects, err := survey(ctx, j.conn, j.options.Schemas)
	if err != nil {
		return fmt.Errorf("looking at the tables: %w", err)
	}
	j.result.LeftOut = nil
	for i, s := range subjects {
		if j.options.Progress != nil {
			j.options.Progress(catalog.Progress{Table: s.String(), Done: i, Tables: len(subjects)})
		}
		if err := work(ctx, s); err != nil {
			return fmt.Errorf("table %s: %w", s, err)
		}
	}
	return nil
}

func (j *job) leaveOut(s *subject, reason string) {
	j.result.LeftOut = append(j.result.LeftOut, catalog.LeftOut{Table: s.String(), Reason: reason})
}

func (j *job) instrument(ctx context.Context, s *subject) error {
	switch reason := s.obstacle(); {
	case reason != "":
		j.leaveOut(s, reason)
		return nil
	case s.instrumented():
		j.result.Already = append(j.result.Already, s.String())
		return nil
	}
	statements := []string{"ALTER TABLE " + s.quoted() + " " + strings.Join(append(s.drops(), j.add), ", ")}
	for _, h := range s.holders {
		statements = append(statements, h.grant(s))
	}
	done, err := j.change(ctx, s, statements)
	if done {
		j.result.Rights += len(s.holders)
	}
	return err
}

func (j *job) strip(ctx context.Context, s *subject) error {
	if len(s.ours) == 0 || s.kind != "r" && s.kind != "p" { // a view has what it was made to show
		return nil
	}
	_, err := j.change(ctx, s, []string{"ALTER TABLE " + s.quoted() + " " + strings.Join(s.drops(), ", ")})
	return err
}

// change runs statements in one transaction, and reports whether the server did them. A table that it refuses to
// change is left out.
func (j *job) change(ctx context.Context, s *subject, statements []string) (done bool, err error) {
	err = j.conn.write(ctx, statements)
	var refused *pgconn.PgError
	switch {
	case err == nil:
		j.result.Changed = append(j.result.Changed, s.String())
		return true, nil
	case errors.As(err, &refused) && ctx.Err() == nil:
		j.leaveOut(s, strings.TrimSpace(refused.Message+" "+refused.Detail))
		return false, nil
	}
	return false, err
}

// write runs statements in a transaction.
func (c *Conn) write(ctx context.Context, statements []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.connect(ctx); err != nil {
		return err
	}
	text := "BEGIN; SET LOCAL lock_timeout = '" + lockTimeout + "'; SET LOCAL statement_timeout = 0; " +
		strings.Join(statements, "; ") + "; COMMIT"
	err := guard.Call(library, func() error {
		_, err := c.pg.Exec(ctx, text).ReadAll()
		return err
	})
	if err != nil {
		c.close()
		return fmt.Errorf("changing tables of %s: %w", c.target, err)
	}
	c.rest()
	return nil
}

// A holder is a role with rights on single columns of a table.
type holder struct {
	role           string // quoted, or PUBLIC
	reads, updates bool
}

// grant returns the statement that grants the holder the rights on isotap's columns that its rewritten statements need,
// and its own SELECT * of all columns.
func (h *holder) grant(s *subject) string {
	rights := []string{"SELECT (" + rewrite.RowIDColumn + ", " + rewrite.WListColumn + ")"}
	if h.updates {
		rights = append(rights, "UPDATE ("+rewrite.WListColumn+")")
	}
	return "GRANT " + strings.Join(rights, ", ") + " ON " + s.quoted() + " TO " + h.role
}

// drops are the parts of an ALTER TABLE that take away what there is of isotap's columns.
func (s *subject) drops() []string {
	var parts []string
	for _, column := range []string{rewrite.RowIDColumn, rewrite.WListColumn} {
		if slices.Contains(s.ours, column) {
			parts = append(parts, "DROP COLUMN "+column)
		}
	}
	return parts
}
