package mysql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/rewrite"
)

// covers reports whether a schema is among those to look at.
func covers(o catalog.Options, schema string) bool {
	if systemSchema(strings.ToLower(schema)) {
		return false
	}
	return len(o.Schemas) == 0 || slices.Contains(o.Schemas, schema)
}

// defaultBatch rows of a back-fill take some ten milliseconds, during which they are locked.
const defaultBatch = 10_000

// Instrument adds isotap's columns to every InnoDB base table that can have them, and gives every row
// its id. Clients notice nothing: the columns are invisible (on TiDB, which has no such columns, the proxy
// hides them), no trigger fires, no column that is set ON UPDATE changes. Whoever holds rights on single columns of a
// table gets them on isotap's.
//
// MariaDB gives each row its id while it copies the table, which is locked against writes meanwhile.
// MySQL does not (error 1674), TiDB gives all rows the same, and where MariaDB has a binary log, which would hold the
// ALTER TABLE and not the ids, its replicas would make up ids of their own: there an UPDATE fills them in, in batches,
// and tables with an UPDATE trigger are left out.
//
// Interrupted or failed, it can be called again: it goes on where it stopped. An error of the server
// that concerns one table only leaves that table out; any other ends the work.
func Instrument(ctx context.Context, c *Conn, o catalog.Options) (catalog.Result, error) {
	server, err := ServerFacts(ctx, c)
	if err != nil {
		return catalog.Result{}, err
	}
	if !server.InvisibleColumns() && !server.tidb() {
		return catalog.Result{}, fmt.Errorf("the server (%s %s) has no invisible columns, which isotap needs: "+
			"use MariaDB from 10.3, MySQL from 8.0.23 on, or TiDB", server.Engine, server.Version)
	}
	if server.BinaryLog && server.BinaryLogFormat == "STATEMENT" {
		return catalog.Result{}, errors.New("the server's binlog_format is STATEMENT: " +
			"row ids would differ on its replicas; set it to MIXED or ROW")
	}
	o.BackFill = o.BackFill || server.BinaryLog || server.Engine != dbms.MariaDB
	j, err := newJob(ctx, c, o, server)
	if err != nil {
		return catalog.Result{}, err
	}
	err = j.each(ctx, j.instrument)
	return j.result, err
}

// Strip takes isotap's columns, and the rights on them, away again: every table is as it was before
// [Instrument]. The server rebuilds each table, so no trace remains in its files either; but TiDB does not.
// Errors are dealt with as by Instrument.
func Strip(ctx context.Context, c *Conn, o catalog.Options) (catalog.Result, error) {
	server, err := ServerFacts(ctx, c)
	if err != nil {
		return catalog.Result{}, err
	}
	j, err := newJob(ctx, c, o, server)
	if err != nil {
		return catalog.Result{}, err
	}
	if err := j.each(ctx, j.strip); err != nil {
		return j.result, err
	}
	return j.result, j.revokeAll(ctx)
}

// A job is one run of [Instrument] or [Strip].
type job struct {
	conn     *Conn
	options  catalog.Options
	columns  columns
	subjects []*subject
	rights   map[name][]*holder
	done     int // subjects
	result   catalog.Result
}

func newJob(ctx context.Context, c *Conn, o catalog.Options, server Server) (*job, error) {
	j := &job{conn: c, options: o, columns: server.columns(o.WListBytes)}
	if j.options.Batch == 0 {
		j.options.Batch = defaultBatch
	}
	var err error
	if j.subjects, err = survey(ctx, c, o, j.columns); err != nil {
		return nil, fmt.Errorf("looking at the tables: %w", err)
	}
	if j.rights, err = columnRights(ctx, c); err != nil {
		return nil, fmt.Errorf("looking at the rights on columns: %w", err)
	}
	all, err := seesAllRights(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("looking at the rights on columns: %w", err)
	}
	if !all {
		j.result.Notes = append(j.result.Notes,
			"isotap's user may not read the tables of privileges (SELECT ON mysql.*), "+
				"so the users who hold rights on single columns are not known: "+
				"with isotap's columns they may be refused their own statements")
	}
	return j, j.noteMissing(ctx, c)
}

// noteMissing notes the databases asked for that the server does not have: there is nothing to do in them,
// which may be a slip of the pen.
func (j *job) noteMissing(ctx context.Context, c *Conn) error {
	missing := slices.Clone(j.options.Schemas)
	err := each(ctx, c, Query{Purpose: "the databases", Text: "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA",
		Columns: 1}, func(r row) {
		missing = slices.DeleteFunc(missing, func(s string) bool { return strings.EqualFold(s, r[0]) })
	})
	if err != nil {
		return fmt.Errorf("looking for the databases: %w", err)
	}
	for _, s := range missing {
		j.result.Notes = append(j.result.Notes, "the server has no database "+s+" yet, or isotap's user may not see it")
	}
	return nil
}

func (j *job) each(ctx context.Context, work func(context.Context, *subject) error) error {
	for i, s := range j.subjects {
		j.done = i
		j.progress(s, 0)
		if err := work(ctx, s); err != nil {
			return fmt.Errorf("table %s: %w", s, err)
		}
	}
	return nil
}

func (j *job) progress(s *subject, rows int) {
	if j.options.Progress != nil {
		j.options.Progress(catalog.Progress{Table: s.String(), Done: j.done, Tables: len(j.subjects), Rows: rows})
	}
}

func (j *job) leaveOut(s *subject, reason string) {
	j.result.LeftOut = append(j.result.LeftOut, catalog.LeftOut{Table: s.String(), Reason: reason})
}

// refused leaves a table out that the server refused to alter. Any other error it gives back.
func (j *job) refused(ctx context.Context, s *subject, err error) error {
	if !isServerError(err) || ctx.Err() != nil {
		return err
	}
	j.leaveOut(s, err.Error())
	return nil
}

func (j *job) instrument(ctx context.Context, s *subject) error {
	reason := s.obstacle()
	if reason == "" && s.updateTrigger && j.mustFill(s) {
		reason = "it has an UPDATE trigger, which would fire while row ids are filled in " +
			"(by UPDATE: on MySQL, and on MariaDB with a binary log, there is no other way)"
	}
	if reason != "" {
		j.leaveOut(s, reason)
		return nil
	}
	if s.instrumented() {
		j.result.Already = append(j.result.Already, s.String())
	} else if err := j.addColumns(ctx, s); err != nil {
		return j.refused(ctx, s, err)
	} else {
		j.result.Changed = append(j.result.Changed, s.String())
	}
	return j.extendRights(ctx, s)
}

func (j *job) strip(ctx context.Context, s *subject) error {
	var drop []string
	if s.rowID != nil && s.rowID.ours {
		drop = append(drop, "DROP COLUMN "+rewrite.RowIDColumn)
	}
	if s.wList != nil && s.wList.ours {
		drop = append(drop, "DROP COLUMN "+rewrite.WListColumn)
	}
	if len(drop) == 0 {
		return nil
	}
	if _, err := j.conn.Exec(ctx, "ALTER TABLE "+s.quoted()+" "+strings.Join(append(drop, j.columns.rebuild...),
		", ")); err != nil {
		return j.refused(ctx, s, err)
	}
	j.result.Changed = append(j.result.Changed, s.String())
	return nil
}
