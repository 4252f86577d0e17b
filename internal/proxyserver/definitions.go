package proxyserver

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/schemalog"
	"github.com/isotap/isotap/proxy"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/robust/definitions"
)

// A defining recorder shows a schemaLog of definitions what it records.
type defining struct {
	proxy.Recorder
	schemaLog *schemalog.Log
	schemas   bool // statements name them: sessions are in none for long
	databases databases
}

// Session records a session.
func (d *defining) Session(ctx context.Context, s history.Session) error {
	d.databases.note(s)
	return d.Recorder.Session(ctx, s)
}

// Txn records a transaction.
func (d *defining) Txn(ctx context.Context, t *history.Txn) error {
	if in := d.databases.of(t.Session); in != "" || d.schemas {
		d.schemaLog.Txn(in, t) // before its recorder owns it
	}
	return d.Recorder.Txn(ctx, t)
}

// reload has the schema read again that sessions plan by, and tells the schemaLog why.
func (d *defining) reload(reload func(context.Context,
	session.Schema) error) func(context.Context, session.Schema) error {
	return func(ctx context.Context, s session.Schema) error {
		err := reload(ctx, s)
		switch {
		case s.Begins:
			d.schemaLog.Use(s.Database)
		case s.Expected, s.Ends:
		case d.schemas && len(s.Tables) > 0:
			for _, t := range s.Tables {
				d.schemaLog.Change(t.Schema)
			}
		case len(s.Changes) == 0 || slices.ContainsFunc(s.Changes,
			func(c rewrite.SchemaChange) bool { return !c.Empties }):
			d.schemaLog.Change(s.Database)
		}
		return err
	}
}

// lastDefinitions is how long the definitions may be read when a run ends.
const lastDefinitions = 5 * time.Second

// define begins to record how the tables that are used are defined. It reads them over connections of its own, which
// leave at once: the server drops no database that somebody is in.
func (srv *Server) define(o *Options, cfg *proxy.Config) {
	source := func(ctx context.Context, database string) ([]definitions.Table, error) {
		target := o.Upstream
		target.Database = database
		return definitions.Tables(ctx, target, definitions.AsUsed)
	}
	k := schemalog.New(source, srv.writer, func() int64 { return int64(time.Since(cfg.Started)) }, o.Logger)
	d := &defining{Recorder: srv.recorder, schemaLog: k, schemas: o.Upstream.Family == dbms.MySQLFamily,
		databases: newDatabases()}
	srv.recorder, cfg.Reload = d, d.reload(cfg.Reload)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { k.Run(ctx) })
	srv.defined = func() {
		stop()
		running.Wait()
		last, cancel := context.WithTimeout(srv.asking, lastDefinitions)
		defer cancel()
		k.Finish(last)
	}
}

// databases are those that open sessions are in, where a session stays in one (PostgreSQL). It is safe for concurrent
// use.
type databases struct {
	mu *sync.Mutex
	in map[history.SessionID]string
}

func newDatabases() databases {
	return databases{new(sync.Mutex), make(map[history.SessionID]string)}
}

// note takes note of a session's beginning and end.
func (d databases) note(s history.Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.End == 0 {
		d.in[s.ID] = s.Database
	} else {
		delete(d.in, s.ID)
	}
}

// of returns the database of a session; empty where it is not known.
func (d databases) of(id history.SessionID) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.in[id]
}
