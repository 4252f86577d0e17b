package cases

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
)

// A Server is an address that speaks the MySQL protocol, and who to log in as.
type Server struct {
	Addr           string // host:port, or the path of a unix socket
	User, Password string
}

// connectTimeout bounds one log-in.
const connectTimeout = 10 * time.Second

func (s Server) connect(ctx context.Context, database string) (*client.Conn, error) {
	conn, err := client.ConnectWithContext(ctx, s.Addr, s.User, s.Password, database, connectTimeout)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", s.Addr, err)
	}
	return conn, nil
}

// Options change how a case is run. The zero Options send text and nothing of their own.
type Options struct {
	// Prepared sends every statement through COM_STMT_PREPARE and COM_STMT_EXECUTE, except those
	// that the server cannot prepare.
	Prepared bool
	// Session holds statements that each session runs after its isolation level was set.
	Session []string
	// SetUpDirect runs the set-up on the control server instead of the target.
	SetUpDirect bool
	// Ready is called with the database's name when the set-up is done and no session is connected
	// yet: to instrument the tables, say.
	Ready func(ctx context.Context, database string) error
}

// A Runner runs cases, each in a database of its own that it drops afterwards. It is safe for
// concurrent use. There must be only one at a time on a server, because two would keep each other
// from learning who waits (InnoDB renews INNODB_TRX only when nobody has read it for 0.1 s): run the
// direct and the proxied half of a comparison on the same one.
type Runner struct {
	control Server
	monitor *monitor
	prefix  string
	count   atomic.Int64

	admin     sync.Mutex
	adminConn *client.Conn
}

// NewRunner connects to the server that all targets of the Runner lead to: directly, not through a
// proxy, as a user who may create databases, see other connections and end them. The caller closes
// the Runner.
func NewRunner(ctx context.Context, control Server) (*Runner, error) {
	admin, err := control.connect(ctx, "")
	if err != nil {
		return nil, err
	}
	r := &Runner{control: control, adminConn: admin, prefix: "isotap_case_" + strings.ToLower(rand.Text()[:8]) + "_"}
	// A session that does not end must not keep the DROP waiting for its default of a day.
	if err := r.administer("SET SESSION lock_wait_timeout = 20"); err != nil {
		return nil, errors.Join(err, admin.Close())
	}
	watch, err := control.connect(ctx, "")
	if err != nil {
		return nil, errors.Join(err, admin.Close())
	}
	if r.monitor, err = newMonitor(watch); err != nil {
		return nil, errors.Join(err, watch.Close(), admin.Close())
	}
	return r, nil
}

// Close ends the Runner's connections. No run may be under way.
func (r *Runner) Close() error {
	return errors.Join(r.monitor.close(), r.adminConn.Quit())
}

func (r *Runner) administer(sql string) error {
	r.admin.Lock()
	defer r.admin.Unlock()
	if _, err := r.adminConn.Execute(sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// Run runs a case at a level. An error means that the case could not be run to its end; a
// statement's own error is part of the trace.
func (r *Runner) Run(ctx context.Context, target Server, c Case, level Level, o Options) (Trace, error) {
	t, err := r.run(ctx, target, &c, level, o)
	if err != nil {
		return Trace{}, fmt.Errorf("case %s at %s: %w", c.ID, level, err)
	}
	return t, nil
}

func (r *Runner) run(ctx context.Context, target Server, c *Case, level Level, o Options) (t Trace, err error) {
	if level.SQL() == "" {
		return Trace{}, fmt.Errorf("there is no such level")
	}
	database := fmt.Sprintf("%s%d", r.prefix, r.count.Add(1))
	if err := r.administer("CREATE DATABASE " + database); err != nil {
		return Trace{}, err
	}
	defer func() { err = errors.Join(err, r.administer("DROP DATABASE "+database)) }()
	if err := r.setUp(ctx, target, c, database, o); err != nil {
		return Trace{}, err
	}
	p := newPlay(r, target, c, level, database, o)
	defer func() { err = errors.Join(err, p.close()) }()
	return p.perform(ctx)
}

func (r *Runner) setUp(ctx context.Context, target Server, c *Case, database string, o Options) error {
	if o.SetUpDirect {
		target = r.control
	}
	conn, err := target.connect(ctx, database)
	if err != nil {
		return err
	}
	for _, sql := range c.Setup {
		if _, err := conn.Execute(sql); err != nil {
			return errors.Join(fmt.Errorf("set-up %q: %w", sql, err), conn.Close())
		}
	}
	if err := conn.Quit(); err != nil {
		return fmt.Errorf("ending the set-up's session: %w", err)
	}
	if o.Ready != nil {
		return o.Ready(ctx, database)
	}
	return nil
}

// A Planned run is a case and one of the levels it is run at.
type Planned struct {
	Case  Case
	Level Level
}

// Plan gives every case at each of its levels.
func Plan(all []Case) []Planned {
	var plan []Planned
	for _, c := range all {
		for _, level := range c.RunsAt() {
			plan = append(plan, Planned{Case: c, Level: level})
		}
	}
	return plan
}

// RunAll runs the planned cases, as many at once as workers says, and gives their traces in the
// plan's order. The first run that fails ends the others.
func (r *Runner) RunAll(ctx context.Context, target Server, plan []Planned, workers int, o Options) ([]Trace, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	traces := make([]Trace, len(plan))
	var next atomic.Int64
	var all sync.WaitGroup
	for range max(workers, 1) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(plan)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				var err error
				if traces[i], err = r.Run(ctx, target, plan[i].Case, plan[i].Level, o); err != nil {
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
