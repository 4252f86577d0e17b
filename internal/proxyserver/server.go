// Package proxyserver puts a running isotap together: the schema of the server behind it, the planner, the
// recording and the proxy. It is what `isotap proxy`, `isotap run` and `isotap demo` share.
//
// server.go starts and ends it; listen.go opens its addresses, tls.go its certificates, backend.go says what
// isotap needs of the server behind it, mysql.go is that for the MySQL family, postgres.go for PostgreSQL; health.go
// and metrics.go answer on the admin address. environment.go tells a client program where isotap is. definitions.go and
// predicates.go have the recording hold more than the proxy sees, and serverlog.go what the server's own log says.
// watch.go and follow.go hand what is recorded to the
// live analysis and to those who follow.
package proxyserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/admin"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/monitor"
	"github.com/isotap/isotap/internal/sliding"
	"github.com/isotap/isotap/internal/tail"
	"github.com/isotap/isotap/proxy"
	"github.com/isotap/isotap/proxy/provoke"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/proxy/twin"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/serverlog"
)

// Options say what [Start] starts.
type Options struct {
	// Upstream is the server, and the login for isotap's own connection to it.
	Upstream dsn.Target
	// URL is what Upstream was read from, for the address that clients get; empty: one is made.
	URL string
	// Listen are the addresses for clients, separated by commas: "host:port", port 0 for a free one, or
	// "unix:/path", or "systemd" for the sockets that systemd opened.
	Listen string
	// ReusePort lets other processes of the same user listen on the TCP addresses too.
	ReusePort bool
	// SocketMode is that of unix sockets; 0 is 0600: isotap's own user.
	SocketMode fs.FileMode
	// LoginTimeout: see proxy.Config.
	LoginTimeout time.Duration
	// ClientTLS is offered to clients; that of the server is Upstream's.
	ClientTLS ClientTLS
	// Off passes bytes on unchanged and records nothing.
	Off bool
	// Columns has PostgreSQL's row versions known by isotap's columns, in the tables that have them.
	Columns bool
	// Predicates records by which conditions statements chose rows, and which versions match them.
	Predicates bool
	// Auto is Predicates where the server has them, with tests for no more than a fifth of the time.
	Auto      bool
	Recording string // the recording's directory
	// Recorder takes what is observed in the place of a recording; nil: Recording has it. What needs one is left
	// out then: conditions, definitions, the server's log and a watch.
	Recorder proxy.Recorder
	// Definitions records how the tables are defined that statements use.
	Definitions bool
	Texts       bool // see proxy.Config
	// ServerLog says whether what the server's own log says of writes is recorded, too.
	ServerLog  serverlog.Use
	Durability recorder.Durability
	WhenFull   recorder.WhenFull
	MinFree    int64  // see recorder.Options
	RowMemory  int    // see proxy.Config
	AllowLocal bool   // see proxy.Config
	Version    string // isotap's own, for the recording
	Logger     *zap.Logger
	// Provoke has statements held back, so that transactions cross; nil: none is.
	Provoke *provoke.Options
	// Twins plays twins beside the clients' transactions; nil: nobody does.
	Twins twin.Player
	// Admin is the address of the admin server (internal/admin); empty: there is none.
	Admin      string
	AdminPprof bool // serve profiles there
	// Watch has what is recorded analyzed as it comes; nil: it is not. Its Clock is isotap's.
	Watch *monitor.Options
	// Slide has stretches of what is watched analyzed, for what is known later than transactions are. Its Every or its
	// Limit is 0 where that is left to the end; Tell and Complain are isotap's.
	Slide sliding.Options

	// What [Server.Reconfigure] changes: see Reloadable.
	Args                           bool
	Drain                          time.Duration
	MaxConns                       int
	MaxLogins, MaxLoginsPerAddress int
	TxnMemory                      int // in bytes
	LogSQL                         proxy.LogSQL
	StrictPlans                    bool
}

// Reloadable is what of isotap's options may change while it runs: see [Server.Reconfigure].
type Reloadable struct {
	proxy.Reloadable
	StrictPlans bool // see the Options of either rewriter
}

// Reloadable is the part of the options that a running isotap takes.
func (o *Options) Reloadable() Reloadable {
	return Reloadable{proxy.Reloadable{Args: o.Args, Drain: o.Drain, MaxConns: o.MaxConns, MaxLogins: o.MaxLogins,
		MaxLoginsPerAddress: o.MaxLoginsPerAddress, TxnMemory: o.TxnMemory, LogSQL: o.LogSQL}, o.StrictPlans}
}

// A Server is a running isotap.
type Server struct {
	listeners  []net.Listener
	stop       context.CancelFunc
	served     chan error
	wait       func() error     // for served, and what is closed then: once
	writer     *recorder.Writer // nil without a recording
	info       history.Info     // of the run that Options.Recorder has
	recorder   proxy.Recorder   // the writer, behind all who look at events before it
	inserts    *insertCount
	watch      *monitor.Monitor             // nil: there is none
	window     *sliding.Window              // nil: there is none
	later      map[string]*analyzer.Finding // what it found, by id; its goroutine's until it is closed
	leftOut    uint64
	slideLimit uint64
	follow     *tail.Server // nil where nobody can follow the recording
	result     *analyzer.Result
	settle     func() (untested, beyond int) // ends the testing of predicates; nil where there is none
	predicates bool                          // conditions are recorded
	defined    func()                        // ends the recording of definitions; nil where there is none
	logged     loggedBy                      // the server's own log
	backend    backend                       // open; nil in mode off
	provoker   *provoke.Provoker             // nil: nothing is held back
	proxy      *proxy.Proxy
	watching   sync.WaitGroup
	upstream   dsn.Target
	url        string
	version    string
	started    time.Time
	serving    context.Context // ends when no more clients are taken
	asking     context.Context // ends when the server is asked nothing more
	giveUp     context.CancelFunc
	log        *zap.Logger
	admin      *admin.Server // nil when there is none
	probe      probe
	tls        session.TLSUse // of clients
}

// Start connects to the server, reads its schema, opens the recording and listens. It serves
// until ctx ends or [Server.Stop].
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	srv := &Server{served: make(chan error, 1), upstream: o.Upstream, url: o.URL, version: o.Version,
		started: time.Now(), tls: o.ClientTLS.Use, log: o.Logger,
		later: make(map[string]*analyzer.Finding), slideLimit: o.Slide.Limit}
	srv.asking, srv.giveUp = context.WithCancel(context.WithoutCancel(ctx))
	legs, err := o.legs()
	if err != nil {
		return nil, err
	}
	o.warnOfPlainLegs()
	cfg := proxy.Config{Network: o.Upstream.Network, Address: o.Upstream.Address, Off: o.Off, TLS: legs,
		Durable: o.Durability == recorder.Commit, AllowLocal: o.AllowLocal, Texts: o.Texts, LoginTimeout: o.LoginTimeout,
		RowMemory: o.RowMemory, Logger: o.Logger}
	if o.SocketMode == 0 {
		o.SocketMode = defaultSocketMode
	}
	if srv.listeners, err = listen(o.Listen, o.SocketMode, o.ReusePort); err != nil {
		return nil, err
	}
	// An address that will not do is found before a recording is begun for it.
	for _, l := range srv.listeners {
		if err := cfg.Permits(ctx, l.Addr()); err != nil {
			return nil, errors.Join(err, closeAll(srv.listeners))
		}
	}
	if err := srv.openAdmin(&o); err != nil {
		return nil, errors.Join(err, closeAll(srv.listeners))
	}
	b := newBackend(&o)
	if !o.Off {
		if err := srv.observe(ctx, o, b, &cfg); err != nil {
			return nil, errors.Join(err, srv.close(), closeAll(srv.listeners))
		}
	}
	if o.Provoke != nil && !o.Off {
		how := *o.Provoke
		how.Family = o.Upstream.Family
		srv.provoker = provoke.New(how)
		cfg.Provoke = srv.provoker
	}
	cfg.Twins = o.Twins
	cfg.Protocol = b.protocol(legs, cfg.Durable, srv.logged.reader != nil)
	serving, stop := context.WithCancel(ctx)
	srv.serving, srv.stop = serving, stop
	srv.proxy = proxy.New(cfg)
	srv.proxy.Reconfigure(o.Reloadable().Reloadable)
	go func() { srv.served <- srv.proxy.Serve(serving, srv.listeners...) }()
	srv.wait = sync.OnceValue(func() error { return errors.Join(<-srv.served, srv.close()) })
	if srv.admin != nil {
		srv.admin.Serve()
	}
	if srv.backend != nil {
		srv.watching.Go(func() { watchSchema(serving, o.Logger, srv.backend.reloadAll) })
	}
	return srv, nil
}

// Unwatched returns what of the upstream's database the proxy cannot watch, as sentences: tables with the reason, or
// that there is no such database.
func (srv *Server) Unwatched(ctx context.Context) ([]string, error) {
	if srv.backend == nil {
		return nil, nil
	}
	return srv.backend.unwatched(ctx)
}

// observe opens what a proxy needs that looks at its traffic.
func (srv *Server) observe(ctx context.Context, o Options, b backend, cfg *proxy.Config) error {
	if err := b.open(ctx, o.StrictPlans); err != nil {
		return err
	}
	srv.backend = b
	cfg.Started = time.Now()
	info := history.Info{Started: cfg.Started, Isotap: o.Version, Mode: "items"}
	tester := b.tester()
	if srv.predicates = o.Predicates || o.Auto && tester != nil; srv.predicates {
		info.Mode = "predicates"
	}
	b.describe(&info)
	cfg.Reload = b.reload
	if o.Recorder != nil {
		info.Run = 1 + history.Run(rand.Uint64N(uint64(history.MaxRun)-1))
		srv.info, srv.recorder = info, o.Recorder
		cfg.Recorder, cfg.Run = o.Recorder, info.Run
		return nil
	}
	clock := func() int64 { return int64(time.Since(cfg.Started)) }
	var err error
	if srv.logged, err = openLog(ctx, &o, b, clock); err != nil {
		return err
	}
	if srv.writer, err = recorder.Create(o.Recording, info, recorder.Options{Durability: o.Durability,
		WhenFull: o.WhenFull, MinFree: o.MinFree, Logger: o.Logger}); err != nil {
		return fmt.Errorf("open the recording: %w", err)
	}
	srv.recorder = srv.writer
	if err := srv.logged.start(ctx, srv.writer, clock()); err != nil {
		return fmt.Errorf("record the server's log: %w", err)
	}
	srv.serveFollowers(o.Recording, o.Logger)
	if o.Watch != nil {
		info.Run = srv.writer.Run()
		if err := srv.startWatch(ctx, &o, info); err != nil {
			return err
		}
	}
	if srv.predicates {
		srv.recorder = srv.match(tester, !o.Predicates, o.Logger, cfg.Started)
	}
	cfg.Passes = o.WhenFull == recorder.Pass
	if !cfg.Passes {
		cfg.Halted = srv.writer.Err
	}
	if a, asks := b.(answering); asks && srv.predicates {
		cfg.Ask = a.answer
	}
	if o.Definitions {
		srv.define(&o, cfg)
	}
	srv.inserts = &insertCount{Recorder: srv.recorder}
	srv.inserts.before, srv.inserts.known = b.inserted(ctx)
	cfg.Recorder, cfg.Run = srv.inserts, srv.writer.Run()
	return nil
}

// Reconfigure changes what may be changed while clients are served.
func (srv *Server) Reconfigure(l Reloadable) {
	srv.proxy.Reconfigure(l.Reloadable)
	if srv.backend != nil {
		srv.backend.setStrictPlans(l.StrictPlans)
	}
}

// Predicates reports whether it records by which conditions statements chose rows.
func (srv *Server) Predicates() bool { return srv.predicates }

// Stats are what the proxy has counted.
func (srv *Server) Stats() proxy.Stats { return srv.proxy.Stats() }

// Upstream is the server behind isotap, with the login for isotap's own connection to it.
func (srv *Server) Upstream() dsn.Target { return srv.upstream }

// ReadSchema has all that plans rest on read from the server again, as happens every few seconds. Not for isotap that
// is off.
func (srv *Server) ReadSchema(ctx context.Context) error { return srv.backend.reloadAll(ctx) }

// SchemaEpoch is another number once the tables that plans rest on were found changed. Not for isotap that is off.
func (srv *Server) SchemaEpoch() uint64 { return srv.backend.epoch() }

// Run is isotap's run of the recording; 0 for isotap that is off.
func (srv *Server) Run() history.Run {
	if srv.writer == nil {
		return srv.info.Run
	}
	return srv.writer.Run()
}

// Info describes the run that [Options.Recorder] has, as if it ended now.
func (srv *Server) Info(ctx context.Context) history.Info {
	info := srv.info
	info.Rewritten, info.Ended = srv.backend.rewritten(ctx), time.Now()
	return info
}

// Wait returns when the context of [Start] has ended and every client is gone, with the recording
// closed. It may be called again, as [Server.Stop] may, and gives the same then.
func (srv *Server) Wait() error {
	return srv.wait()
}

// Stop ends isotap: open transactions may finish for as long as Options.Drain says, and the recording
// is closed.
func (srv *Server) Stop() error {
	srv.stop()
	return srv.Wait()
}

const (
	// lastLook is how long the server has to say what became of its tables when a run ends.
	lastLook = 5 * time.Second
	// lastWord is how long a server may take to show that it answers at all. One that does not is not asked any more.
	lastWord = time.Second
)

func (srv *Server) close() error {
	var errs []error
	if srv.stop != nil {
		srv.stop()
	}
	if srv.admin != nil {
		errs = append(errs, srv.admin.Close())
	}
	if srv.writer != nil {
		ctx, cancel := context.WithTimeout(srv.asking, lastWord)
		if err := srv.ask(ctx); err != nil {
			srv.log.Warn("the server does not answer: what it was to tell for the end of the recording is left out",
				zap.Error(err))
			srv.giveUp()
		}
		cancel()
		errs = append(errs, srv.closeRecording())
	}
	srv.logged.end(srv.asking) // where there was no recording for it
	srv.giveUp()
	srv.watching.Wait()
	if srv.backend != nil {
		errs = append(errs, srv.backend.close())
	}
	return errors.Join(errs...)
}

// closeRecording ends the run.
func (srv *Server) closeRecording() error {
	var errs []error
	for _, txn := range srv.backend.outlived() {
		errs = append(errs, srv.recorder.Txn(context.Background(), txn))
	}
	srv.logged.end(srv.asking)
	if srv.settle != nil {
		srv.writer.Untested(srv.settle())
	}
	if srv.defined != nil {
		srv.defined()
	}
	ctx, cancel := context.WithTimeout(srv.asking, lastLook)
	srv.writer.Rewritten(srv.backend.rewritten(ctx))
	if srv.inserts.all(srv.backend.inserted(ctx)) {
		srv.writer.NothingPutBack()
	}
	cancel()
	srv.endWindow(srv.slideLimit)
	if srv.follow != nil {
		srv.follow.Drain()
	}
	failed := srv.writer.Close()
	if srv.follow != nil {
		errs = append(errs, srv.follow.Close(ended(srv.writer.Info())))
	}
	if srv.watch != nil {
		errs = append(errs, srv.endWatch())
	}
	return errors.Join(append(errs, failed)...)
}

// Provoked returns what was held back.
func (srv *Server) Provoked() provoke.Stats {
	if srv.provoker == nil {
		return provoke.Stats{}
	}
	return srv.provoker.Stats()
}
