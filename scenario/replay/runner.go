// Package replay runs scenarios on a server of the MySQL family or PostgreSQL: the statements of a few sessions
// are sent in one fixed order, each to its end or until it waits for a lock. That a statement waits the server is
// asked, so that slow statements are not taken for waiting ones and the same scenario gives the same [Trace] each
// time.
//
// A [Runner] runs scenarios against any address, and [Compare] tells two runs of one scenario apart: run directly
// and through the proxy, there must be no difference.
//
// play.go sends the steps, order.go has what a scenario says of their order; isolationtester.go writes a trace as
// PostgreSQL's isolationtester would. What a run needs of a server is in server.go; mysql.go and postgresql.go have it
// for the two families, mysql_waits.go, tidb_waits.go and postgresql_waits.go how each server tells who waits for a
// lock. outside.go lets somebody else have one of the sessions.
package replay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
)

// Options change how a scenario is run. The zero Options send text and nothing of their own.
type Options struct {
	// Prepared sends every statement through COM_STMT_PREPARE and COM_STMT_EXECUTE, except those
	// that the server cannot prepare; on PostgreSQL by the extended query protocol.
	Prepared bool
	// Settings are variables that each session sets after its isolation level.
	Settings scenario.Settings
	// Whoever says that it does not matter for whom steps wait, so that the server is not asked. On MySQL that takes
	// rights on the schema sys.
	Whoever bool
	// Again has sessions begin on connections that earlier ones left, where the family can clear these: a session of
	// PostgreSQL is a process.
	Again bool
	// Grace is how long a statement has for its reply before the server is asked whether it waits; 0: 5 ms. On MariaDB
	// and MySQL the answer takes as long as twenty of these.
	Grace time.Duration
	// Session holds statements that each session runs after that.
	Session []string
	// Outside are sessions, by their names, that somebody else has: the run has them do their steps, in their places.
	Outside map[string]Outsider
	// SetUpDirect runs the set-up on the control server instead of the target.
	SetUpDirect bool
	// Ready is called with the name of the database (PostgreSQL: the schema) when the set-up is done and no session is
	// connected yet: to instrument the tables, say.
	Ready func(ctx context.Context, database string) error
	// Existing runs the scenario in the target's own Database, which stays as the run leaves it. A trace has the
	// server's own names and numbers then.
	Existing bool
	// Fill returns the text of a step, by its number from 1, at the moment that it is sent, with what came of the steps
	// so far; nil: the text is the scenario's.
	Fill func(step int, so []Result) string
	// Ended is called when the sessions have ended and the database is still there: to ask the server about its rows,
	// say.
	Ended func() error
}

// A Runner runs scenarios, each in a database (PostgreSQL: a schema) of its own that it drops afterwards. It is safe
// for concurrent use. Several of them on a server of the MySQL family take turns to learn who waits, so one that both
// halves of a comparison share is faster.
type Runner struct {
	control Server
	dialect dialect
	watcher watcher
	prefix  string
	count   atomic.Int64

	idle struct {
		sync.Mutex
		conns []conn // to the control server, cleared
	}

	admin     sync.Mutex
	adminConn conn
}

// NewRunner connects to the server that all targets of the Runner lead to: directly, not through a
// proxy, as a user who may create databases, see other connections and end them. The caller closes
// the Runner.
func NewRunner(ctx context.Context, control Server) (*Runner, error) {
	r, err := NewUnwatchedRunner(ctx, control)
	if err != nil {
		return nil, err
	}
	r.prefix = "isotap_replay_" + strings.ToLower(rand.Text()[:8]) + "_"
	if err := r.administer(r.dialect.administer()...); err != nil {
		return nil, errors.Join(err, r.adminConn.quit())
	}
	if r.watcher, err = r.dialect.watch(ctx, control); err != nil {
		return nil, errors.Join(r.dialect.rights(err), r.adminConn.quit())
	}
	return r, nil
}

// NewUnwatchedRunner returns a Runner as [NewRunner] does, for a user who may not see who waits: a statement that takes
// longer than its time (Options.Grace) counts as waiting.
func NewUnwatchedRunner(ctx context.Context, control Server) (*Runner, error) {
	d, err := control.dialect()
	if err != nil {
		return nil, err
	}
	admin, err := control.connect(ctx, "")
	if err != nil {
		return nil, err
	}
	return &Runner{control: control, dialect: d, adminConn: admin, watcher: blindWatcher{}}, nil
}

// A blindWatcher takes all for waiting that do not answer.
type blindWatcher struct{}

func (blindWatcher) waits(context.Context, uint32, []uint32, time.Time) (waits, known bool, err error) {
	return true, true, nil
}
func (blindWatcher) blockers(context.Context, uint32) ([]uint32, error) { return nil, nil }
func (blindWatcher) close() error                                       { return nil }

// Names are what the names of the runs' databases (PostgreSQL: schemas) begin with, drawn at random.
func (r *Runner) Names() string { return r.prefix }

// Close ends the Runner's connections. No run may be under way.
func (r *Runner) Close() error {
	for _, c := range r.idle.conns {
		_ = c.quit() // a courtesy: the socket is closed in any case
		c.abandon()
	}
	return errors.Join(r.watcher.close(), r.adminConn.quit())
}

// login returns a connection to a run's database: one that was left, if there is one and the options allow it.
func (r *Runner) login(ctx context.Context, target Server, database string, o *Options) (conn, error) {
	r.idle.Lock()
	var left conn
	if n := len(r.idle.conns); o.Again && target == r.control && n > 0 {
		left, r.idle.conns = r.idle.conns[n-1], r.idle.conns[:n-1]
	}
	r.idle.Unlock()
	if left == nil {
		return target.connect(ctx, database)
	}
	if err := r.dialect.enter(left, database); err != nil {
		left.abandon()
		return nil, fmt.Errorf("entering %s: %w", database, err)
	}
	return left, nil
}

// leave ends the use of a connection on which nothing runs.
func (r *Runner) leave(c conn, target Server, o *Options) error {
	if o.Again && target == r.control && r.dialect.clear(c) {
		r.idle.Lock()
		defer r.idle.Unlock()
		r.idle.conns = append(r.idle.conns, c)
		return nil
	}
	err := c.quit()
	c.abandon()
	return err
}

// administer runs statements on the control server.
func (r *Runner) administer(statements ...string) error {
	r.admin.Lock()
	defer r.admin.Unlock()
	for _, sql := range statements {
		if err := run(r.adminConn, sql); err != nil {
			return err
		}
	}
	return nil
}

// Run runs a scenario, its sessions at a level unless they have one of their own. An error means that the scenario
// could not be run to its end; a statement's own error is part of the trace.
func (r *Runner) Run(ctx context.Context, target Server, s *scenario.Scenario, level history.Level,
	o Options) (Trace, error) {
	t, err := r.run(ctx, target, s, level, o)
	if err != nil {
		return Trace{}, fmt.Errorf("%s at %s: %w", s.Name, level, err)
	}
	return t, nil
}

func (r *Runner) run(ctx context.Context, target Server, s *scenario.Scenario, level history.Level,
	o Options) (t Trace, err error) {
	if level == history.LevelUnknown {
		return Trace{}, fmt.Errorf("there is no such level")
	}
	if o.Existing {
		return newPlay(r, target, s, level, "", o).inPlace(ctx)
	}
	database := fmt.Sprintf("%s%d", r.prefix, r.count.Add(1))
	if err := r.administer(r.dialect.create(database)); err != nil {
		return Trace{}, r.dialect.rights(err)
	}
	p := newPlay(r, target, s, level, database, o)
	defer func() {
		if t.ServerGone {
			return
		}
		dropped := r.administer(r.dialect.drop(database))
		switch {
		case dropped != nil && s.Loses() && ctx.Err() == nil && r.isGone(ctx):
			t, err = p.trace, nil // what failed is of the server's end
			t.gone()
		case dropped != nil:
			err = errors.Join(err, &LeftError{database, dropped})
		}
	}()
	from := target
	if o.SetUpDirect {
		from = r.control
	}
	if err := p.once(ctx, from, SetUp, s.Setup); err != nil {
		return Trace{}, &SetUpError{err}
	}
	if o.Ready != nil {
		if err := o.Ready(ctx, database); err != nil {
			return Trace{}, err
		}
	}
	if t, err = p.perform(ctx); p.endedServer(ctx, err) {
		p.abandon()
		return p.trace, nil
	}
	if err = errors.Join(err, p.close()); err == nil && o.Ended != nil {
		err = o.Ended()
	}
	if err != nil {
		return t, err
	}
	if err := p.once(ctx, r.control, TornDown, s.Teardown); err != nil {
		return t, fmt.Errorf("tear-down: %w", err)
	}
	t.Events = p.trace.Events
	return t, nil
}

// goneWithin bounds how long a server may go on to take connections after it has cut some: one that shuts down does.
const goneWithin = 5 * time.Second

// isGone reports whether the server takes no connection any more.
func (r *Runner) isGone(ctx context.Context) bool {
	for end := time.Now().Add(goneWithin); time.Now().Before(end); time.Sleep(grace) {
		if !r.answers(ctx) {
			return true
		}
	}
	return false
}

// answers reports whether the server takes a connection.
func (r *Runner) answers(ctx context.Context) bool {
	c, err := r.control.connect(ctx, "")
	if err == nil {
		_ = c.quit() // a courtesy: nothing was asked on it
	}
	return err == nil
}

// A SetUpError says that the server refused a statement of a scenario's set-up, as one in the SQL of another engine.
type SetUpError struct{ err error }

// Error makes SetUpError an error.
func (e *SetUpError) Error() string { return "set-up: " + e.err.Error() }

// Unwrap returns why.
func (e *SetUpError) Unwrap() error { return e.err }

// A LeftError says that the database (PostgreSQL: the schema) of a run is still there.
type LeftError struct {
	Database string
	err      error
}

// Error makes LeftError an error.
func (e *LeftError) Error() string { return e.Database + " is still there: " + e.err.Error() }

// Unwrap returns why.
func (e *LeftError) Unwrap() error { return e.err }

// A Job is a scenario and the level that it is run at.
type Job struct {
	Scenario *scenario.Scenario
	Level    history.Level
}

// RunAll runs jobs, as many at once as workers says, and returns their traces in the jobs' order. The first run that
// fails ends the others.
func (r *Runner) RunAll(ctx context.Context, target Server, jobs []Job, workers int, o Options) ([]Trace, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	traces := make([]Trace, len(jobs))
	var next atomic.Int64
	var all sync.WaitGroup
	for range max(workers, 1) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(jobs)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				var err error
				if traces[i], err = r.Run(ctx, target, jobs[i].Scenario, jobs[i].Level, o); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return traces, nil
}
