// Package runner plays scenarios on a server, through isotap: each with a recording of its own, so that what is found
// is about that scenario alone. It is what `isotap replay` and the reducer stand on. record.go has what oracles ask for
// that only need what was observed, many times over: it is kept in memory.
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/engine"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/serverlog"
	"github.com/isotap/isotap/workload"
)

// Options say how a Runner plays.
type Options struct {
	Direct     bool // play on the server itself: nothing is recorded, and so nothing found
	Columns    bool // see proxyserver.Options
	Predicates bool // see proxyserver.Options
	// ServerLog says whether the server's own log is recorded, too: see proxyserver.Options.
	ServerLog serverlog.Use
	Version   string // isotap's own
	// Settings are made in every session, after its level.
	Settings scenario.Settings
}

// A Runner is a server that scenarios are played on. It is safe for concurrent use.
type Runner struct {
	// Server is what it says of itself.
	Server  history.Server
	facts   engine.Facts
	target  dsn.Target
	direct  replay.Server
	runner  *replay.Runner
	isotaps *isotaps
	options Options
}

// A Result is one scenario played at one level.
type Result struct {
	Scenario *scenario.Scenario
	Server   history.Server
	Level    history.Level
	Settings scenario.Settings
	Trace    replay.Trace
	Result   *analyzer.Result // nil when it was played directly
}

// Open connects to a server, as a user who may make databases (PostgreSQL: schemas) and see other connections. The
// caller closes it.
func Open(ctx context.Context, target dsn.Target, o Options) (*Runner, error) {
	s := &Runner{target: target, options: o, isotaps: &isotaps{}}
	if target.Family == dbms.PostgreSQLFamily {
		s.target.Database = cmp.Or(target.Database, "postgres")
	}
	var err error
	if s.direct, err = Server(s.target); err != nil {
		return nil, err
	}
	if s.facts, err = engine.Ask(ctx, s.target); err != nil {
		return nil, err
	}
	s.Server = s.facts.Server
	if s.runner, err = replay.NewRunner(ctx, s.direct); err != nil {
		return nil, err
	}
	return s, nil
}

// Server returns a target as package replay has it. Its database is PostgreSQL's: of the MySQL family a run makes one.
func Server(target dsn.Target) (replay.Server, error) {
	s := replay.Server{Family: target.Family, Addr: target.Address, User: target.User, Password: target.Password,
		MayBePlain: target.TLS.Mode == dsn.TLSAllow || target.TLS.Mode == dsn.TLSPrefer}
	if target.Family == dbms.PostgreSQLFamily {
		s.Database = target.Database
	}
	var err error
	s.TLS, err = target.TLSConfig()
	return s, err
}

// Target is the server's address.
func (s *Runner) Target() dsn.Target { return s.target }

// Names are what the names of its databases (PostgreSQL: schemas) begin with.
func (s *Runner) Names() string { return s.runner.Names() }

// Facts are what the server says of itself, and what sessions on it begin with.
func (s *Runner) Facts() engine.Facts { return s.facts }

// Options are those that it was opened with, as far as the server has what they ask for.
func (s *Runner) Options() Options { return s.options }

// With returns the runner with other settings in the place of its own. The two share their connections; one of them is
// closed.
func (s *Runner) With(settings scenario.Settings) *Runner {
	other := *s
	other.options.Settings = settings
	return &other
}

// Close ends the Runner's connections. Nothing may be playing.
func (s *Runner) Close() error { return errors.Join(s.isotaps.close(), s.runner.Close()) }

// Levels are the isolation levels that the server has, weakest first.
func (s *Runner) Levels() []history.Level { return workload.Levels(s.Server.Engine) }

// Direct plays a scenario at a level on the server itself, whatever the Options say.
func (s *Runner) Direct(ctx context.Context, sc *scenario.Scenario, level history.Level) (replay.Trace, error) {
	return s.runner.Run(ctx, s.direct, sc, level, replay.Options{Settings: s.options.Settings})
}

// Scratch makes a database on the server itself for statements that are in no scenario. The caller closes it.
func (s *Runner) Scratch(context.Context) (*replay.Scratch, error) {
	return s.runner.Scratch(s.direct, s.options.Settings)
}

// Play plays a scenario at a level through isotap, and analyzes what was recorded.
func (s *Runner) Play(ctx context.Context, sc *scenario.Scenario, level history.Level) (p *Result, err error) {
	p = &Result{Scenario: sc, Server: s.Server, Level: level, Settings: s.options.Settings}
	if s.options.Direct {
		if p.Trace, err = s.Direct(ctx, sc, level); err != nil {
			return nil, err
		}
		return p, nil
	}
	dir, err := os.MkdirTemp("", "isotap-replay-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the recording: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	recording := filepath.Join(dir, "recording")
	run, err := s.record(ctx, p, recording)
	if err != nil {
		return nil, err
	}
	if p.Result, err = analysis.AnalyzeRun(ctx, recording, run, analyzer.Options{}); err != nil {
		return nil, err
	}
	return p, nil
}

// Replies plays a scenario at a level on the server itself, whatever the Options say, for what its replies tell: for
// whom steps wait is not asked, and sessions begin on connections that others left where these can be cleared.
func (s *Runner) Replies(ctx context.Context, sc *scenario.Scenario, level history.Level) (replay.Trace, error) {
	return s.runner.Run(ctx, s.direct, sc, level, replay.Options{Settings: s.options.Settings, Whoever: true, Again: true})
}

// Witness is Replies with what else a result has.
func (s *Runner) Witness(ctx context.Context, sc *scenario.Scenario, level history.Level) (*Result, error) {
	t, err := s.Replies(ctx, sc, level)
	if err != nil {
		return nil, err
	}
	return &Result{Scenario: sc, Server: s.Server, Level: level, Settings: s.options.Settings, Trace: t}, nil
}

// drain is how long isotap may go on with sessions whose client has left: it may still be asking what a write did.
const drain = 10 * time.Second

// record plays the scenario through isotap.
func (s *Runner) record(ctx context.Context, p *Result, recording string) (run history.Run, err error) {
	srv, err := proxyserver.Start(ctx, proxyserver.Options{Upstream: s.target, Listen: "127.0.0.1:0",
		Recording: recording, Args: true, Drain: drain,
		Columns: s.options.Columns, Predicates: s.options.Predicates, ServerLog: s.options.ServerLog,
		Version: s.options.Version})
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()
	through := s.direct
	through.Addr, through.TLS = srv.Addr().String(), nil
	// Isotap asks the server which rows fit which predicates until it has stopped.
	p.Trace, err = s.runner.Run(ctx, through, p.Scenario, p.Level,
		replay.Options{Settings: p.Settings, Ended: srv.Stop})
	return srv.Run(), err
}
