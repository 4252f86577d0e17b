// Package tap puts a running isotap together: the schema of the server behind it, the planner, the
// recording and the proxy. It is what `isotap proxy`, `isotap run` and `isotap demo` share.
//
// tap.go starts and ends it; listen.go opens its addresses, tls.go its certificates, backend.go says what
// a tap needs of the server behind it, mysql.go is that for the MySQL family, postgres.go for PostgreSQL; health.go and metrics.go answer on the admin address. environment.go tells
// a client program where the tap is. definitions.go and predicates.go have the recording hold more than the proxy sees.
// watch.go and follow.go hand what is recorded to the live analysis and to those who follow.
package tap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/admin"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/follow"
	"github.com/isotap/isotap/internal/live"
	"github.com/isotap/isotap/proxy"
	"github.com/isotap/isotap/proxy/wire"
	"github.com/isotap/isotap/recorder"
)

// Options of a tap.
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
	// Predicates records by which conditions statements chose rows, and which versions match them. Not for TiDB.
	Predicates bool
	Recording  string // the recording's directory
	// Definitions records how the tables are defined that statements use.
	Definitions bool
	Durability  recorder.Durability
	WhenFull    recorder.WhenFull
	MinFree     int64  // see recorder.Options
	AllowLocal  bool   // see proxy.Config
	Version     string // isotap's own, for the recording
	Logger      *zap.Logger
	// Admin is the address of the admin server (internal/admin); empty: there is none.
	Admin      string
	AdminPprof bool // serve profiles there
	// Watch has what is recorded analysed as it comes; nil: it is not. Its Clock is the tap's.
	Watch *live.Options

	// What [Tap.Reconfigure] changes: see Live.
	Args                           bool
	Drain                          time.Duration
	MaxConns                       int
	MaxLogins, MaxLoginsPerAddress int
	TxnMemory                      int // in bytes
	LogSQL                         proxy.LogSQL
	StrictPlans                    bool
}

// Live is what of a tap's options may change while it runs: see [Tap.Reconfigure].
type Live struct {
	proxy.Live
	StrictPlans bool // see sqlmysql.Options
}

// Live is the part of the options that a running tap takes.
func (o *Options) Live() Live {
	return Live{proxy.Live{Args: o.Args, Drain: o.Drain, MaxConns: o.MaxConns, MaxLogins: o.MaxLogins, MaxLoginsPerAddress: o.MaxLoginsPerAddress, TxnMemory: o.TxnMemory, LogSQL: o.LogSQL}, o.StrictPlans}
}

// A Tap is a running proxy.
type Tap struct {
	listeners []net.Listener
	stop      context.CancelFunc
	served    chan error
	wait      func() error // for served, and what is closed then: once
	writer    *recorder.Writer
	recorder  proxy.Recorder // the writer, and the watch where there is one
	watch     *live.Watch    // nil: there is none
	follow    *follow.Server // nil where nobody can follow the recording
	result    *analyzer.Result
	settle    func()  // ends the testing of predicates; nil where there is none
	defined   func()  // ends the recording of definitions; nil where there is none
	backend   backend // open; nil in mode off
	proxy     *proxy.Proxy
	watching  sync.WaitGroup
	upstream  dsn.Target
	url       string
	version   string
	started   time.Time
	serving   context.Context // ends when no more clients are taken
	asking    context.Context // ends when the server is asked nothing more
	giveUp    context.CancelFunc
	log       *zap.Logger
	admin     *admin.Server // nil when there is none
	probe     probe
	tls       wire.TLSUse // of clients
}

// Start connects to the server, reads its schema, opens the recording and listens. The Tap serves
// until ctx ends or [Tap.Stop].
func Start(ctx context.Context, o Options) (*Tap, error) {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	t := &Tap{served: make(chan error, 1), upstream: o.Upstream, url: o.URL, version: o.Version, started: time.Now(), tls: o.ClientTLS.Use, log: o.Logger}
	t.asking, t.giveUp = context.WithCancel(context.WithoutCancel(ctx))
	legs, err := o.legs()
	if err != nil {
		return nil, err
	}
	o.warnOfPlainLegs()
	cfg := proxy.Config{Network: o.Upstream.Network, Address: o.Upstream.Address, Off: o.Off, TLS: legs,
		Durable: o.Durability == recorder.Commit, AllowLocal: o.AllowLocal, LoginTimeout: o.LoginTimeout, Logger: o.Logger}
	if o.SocketMode == 0 {
		o.SocketMode = defaultSocketMode
	}
	if t.listeners, err = listen(o.Listen, o.SocketMode, o.ReusePort); err != nil {
		return nil, err
	}
	// An address that will not do is found before a recording is begun for it.
	for _, l := range t.listeners {
		if err := cfg.Permits(ctx, l.Addr()); err != nil {
			return nil, errors.Join(err, closeAll(t.listeners))
		}
	}
	if err := t.openAdmin(&o); err != nil {
		return nil, errors.Join(err, closeAll(t.listeners))
	}
	b := newBackend(&o)
	if !o.Off {
		if err := t.observe(ctx, o, b, &cfg); err != nil {
			return nil, errors.Join(err, t.close(), closeAll(t.listeners))
		}
	}
	cfg.Protocol = b.protocol(legs, cfg.Durable)
	serving, stop := context.WithCancel(ctx)
	t.serving, t.stop = serving, stop
	t.proxy = proxy.New(cfg)
	t.proxy.Reconfigure(o.Live().Live)
	go func() { t.served <- t.proxy.Serve(serving, t.listeners...) }()
	t.wait = sync.OnceValue(func() error { return errors.Join(<-t.served, t.close()) })
	if t.admin != nil {
		t.admin.Serve()
	}
	if t.backend != nil {
		t.watching.Go(func() { t.backend.watch(serving, o.Logger) })
	}
	return t, nil
}

// observe opens what a proxy needs that looks at its traffic.
func (t *Tap) observe(ctx context.Context, o Options, b backend, cfg *proxy.Config) error {
	if err := b.open(ctx, o.StrictPlans); err != nil {
		return err
	}
	t.backend = b
	cfg.Started = time.Now()
	info := history.Info{Started: cfg.Started, Isotap: o.Version, Mode: "items"}
	tester := b.tester()
	if o.Predicates {
		if tester == nil {
			return errors.New("mode predicates is not for TiDB: an UPDATE does not show the rows that it leaves there")
		}
		info.Mode = "predicates"
	}
	b.describe(&info)
	var err error
	if t.writer, err = recorder.Create(o.Recording, info, recorder.Options{Durability: o.Durability, WhenFull: o.WhenFull, MinFree: o.MinFree, Logger: o.Logger}); err != nil {
		return fmt.Errorf("open the recording: %w", err)
	}
	t.recorder = t.writer
	t.serveFollowers(o.Recording, o.Logger)
	if o.Watch != nil {
		info.Run = t.writer.Run()
		if err := t.startWatch(ctx, o.Watch, info); err != nil {
			return err
		}
	}
	if o.Predicates {
		t.recorder = t.match(tester, o.Logger, cfg.Started)
	}
	cfg.Passes = o.WhenFull == recorder.Pass
	if !cfg.Passes {
		cfg.Halted = t.writer.Err
	}
	cfg.Reload = b.reload
	if o.Definitions {
		t.define(&o, cfg)
	}
	cfg.Recorder, cfg.Run = t.recorder, t.writer.Run()
	return nil
}

// Reconfigure changes what may be changed while clients are served.
func (t *Tap) Reconfigure(l Live) {
	t.proxy.Reconfigure(l.Live)
	if t.backend != nil {
		t.backend.setStrictPlans(l.StrictPlans)
	}
}

// Run is the tap's run of the recording; 0 for a tap that is off.
func (t *Tap) Run() history.Run {
	if t.writer == nil {
		return 0
	}
	return t.writer.Run()
}

// Wait returns when the context of [Start] has ended and every client is gone, with the recording
// closed. It may be called again, as [Tap.Stop] may, and gives the same then.
func (t *Tap) Wait() error {
	return t.wait()
}

// Stop ends the tap: open transactions may finish for as long as Options.Drain says, and the recording
// is closed.
func (t *Tap) Stop() error {
	t.stop()
	return t.Wait()
}

const (
	// lastLook is how long the server has to say what became of its tables when a run ends.
	lastLook = 5 * time.Second
	// lastWord is how long a server may take to show that it answers at all. One that does not is not asked any more.
	lastWord = time.Second
)

func (t *Tap) close() error {
	var errs []error
	if t.stop != nil {
		t.stop()
	}
	if t.admin != nil {
		errs = append(errs, t.admin.Close())
	}
	if t.writer != nil {
		ctx, cancel := context.WithTimeout(t.asking, lastWord)
		if err := t.ask(ctx); err != nil {
			t.log.Warn("the server does not answer: what it was to tell for the end of the recording is left out", zap.Error(err))
			t.giveUp()
		}
		cancel()
		errs = append(errs, t.closeRecording())
	}
	t.giveUp()
	t.watching.Wait()
	if t.backend != nil {
		errs = append(errs, t.backend.close())
	}
	return errors.Join(errs...)
}

// closeRecording ends the run.
func (t *Tap) closeRecording() error {
	var errs []error
	for _, txn := range t.backend.outlived() {
		errs = append(errs, t.recorder.Txn(context.Background(), txn))
	}
	if t.settle != nil {
		t.settle()
	}
	if t.defined != nil {
		t.defined()
	}
	ctx, cancel := context.WithTimeout(t.asking, lastLook)
	rewritten := t.backend.rewritten(ctx)
	cancel()
	t.writer.Rewritten(rewritten)
	if t.follow != nil {
		t.follow.Drain()
	}
	failed := t.writer.Close()
	if t.follow != nil {
		errs = append(errs, t.follow.Close(ended(t.writer.Info())))
	}
	if t.watch != nil {
		errs = append(errs, t.endWatch())
	}
	return errors.Join(append(errs, failed)...)
}
