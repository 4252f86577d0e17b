// Package proxy stands between clients and a database server. It listens, dials the server once for
// every client, and moves the bytes: through the session of a protocol, which rewrites and records
// (proxy/mysql, proxy/postgres), or, in mode off, unchanged.
//
// The sessions own no socket. The driver here knows no protocol. It gives each connection one goroutine, which reads
// the side whose turn it is, feeds the session and writes what it answered: proxy.go accepts clients,
// local.go judges whether clients may be connected to a server on this host, logins.go bounds those that have
// not logged in, clientconn.go runs a connection and reads from the side that speaks next, nonblocking.go writes
// to a server that may not read, compress.go and tls.go change what a side is spoken over, meter.go counts,
// provoke.go and twin.go have clients wait, reloadable.go changes settings while the proxy runs, drain.go ends it.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/provoke"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/proxy/twin"
)

// A Recorder takes what the sessions did. Its methods may be called from many goroutines; Txn blocks
// while the recorder has more than it can hold, and for a committed transaction under
// Config.Durable until it is on disk, if there is anything in it that a crash must not lose.
type Recorder interface {
	Session(ctx context.Context, s history.Session) error
	Txn(ctx context.Context, t *history.Txn) error
	Defined(ctx context.Context, t *history.DefiningTxn) error
}

// A Protocol is what a Proxy must know of the protocol that it serves.
type Protocol struct {
	// NewSession makes the session of a new connection.
	NewSession func(session.Options) session.Session
	// Refuse tells a client, in the protocol's own way, why it is not served. The connection has a deadline
	// and is closed afterwards. What the client asked for may need no session, as a request to cancel what
	// another does: it is given back, for the server.
	Refuse func(client net.Conn, r Refusal, why string) (request []byte)
	// LoginTimeout is how long its servers give a client to log in, where Config does not say.
	LoginTimeout time.Duration
	// FirstMessage is set where the client speaks first. It reads what a client says first, or the part of it that
	// shows that it has spoken; nil where that is nothing the protocol knows. Sessions of such a protocol ask for their
	// connection to the server (session.ServerDial), which is made before the client is heard where it is nil.
	FirstMessage func(client io.Reader) []byte
}

// A Refusal is why a client is not served.
type Refusal uint8

const (
	// Unreachable: the server does not take a connection.
	Unreachable Refusal = iota
	// TooMany: there are as many clients as Reloadable.MaxConns allows, or as may be logging in.
	TooMany
)

// Config says what a Proxy does.
type Config struct {
	// Network and Address of the server, as for net.Dial.
	Network, Address string
	// Off rewrites and records nothing. Where the legs are alike and neither ends TLS, it copies bytes and
	// looks at nothing.
	Off      bool
	Recorder Recorder
	Run      history.Run
	// Started is when the run began: the zero of all recorded times. New fills in now.
	Started  time.Time
	Protocol Protocol
	// Reload brings the schema that the sessions plan by up to date when one of them asks for it. Its client waits, so
	// that Reload must give up in time.
	Reload func(ctx context.Context, s session.Schema) error
	// Ask asks the server a session's question. The session's client waits, so that Ask must give up in time. Nil:
	// nobody does.
	Ask func(ctx context.Context, q session.Question) error
	// Durable holds a transaction's end back from the client until the Recorder has taken it. What the Recorder does
	// not take ends the session with an error, unless Passes has it go on as without Durable.
	Durable, Passes bool
	// Halted returns why transactions that begin now could not be recorded: they are refused then. Nil: none is.
	Halted func() error
	// Args records the values of literals and parameters.
	Args bool
	// Texts records statements with all of their values, too, where Args does so.
	Texts bool
	// Provoke holds statements back; nil: none is.
	Provoke *provoke.Provoker
	// Twins is told of the clients' transactions, and plays twins beside them; nil: nobody does.
	Twins twin.Player
	// AllowLocal permits a server on this host or a unix socket behind a listener that others can
	// reach. The server would take those others for local clients.
	AllowLocal bool
	// TLS of the two legs.
	TLS TLS
	// LoginTimeout bounds how long it may take from a client's connection to its login; 0 is the
	// Protocol's.
	LoginTimeout time.Duration
	// Drain bounds how long Serve waits for open transactions when its context ends.
	Drain               time.Duration
	MaxConns            int    // see Reloadable
	MaxLogins           int    // see Reloadable
	MaxLoginsPerAddress int    // see Reloadable
	TxnMemory           int    // see Reloadable
	RowMemory           int    // bounds what is held of long rows, in bytes; 0: there is no bound
	LogSQL              LogSQL // see Reloadable
	Logger              *zap.Logger
}

// A Proxy serves clients of one server.
type Proxy struct {
	cfg        Config
	reloadable atomic.Pointer[Reloadable]
	rowMemory  *session.RowMemory
	conns      atomic.Int64 // clients that were admitted and are not gone
	txns       atomic.Uint32
	ids        atomic.Uint32
	meter      meter
	// logins are those of the clients that are connected and not logged in.
	logins *logins
	// seldom is the log for what clients can make happen as often as they like: each message once in seldomEvery.
	seldom *zap.Logger

	unrecorded sync.Once

	relays relays

	mu     sync.Mutex
	served map[*clientConn]struct{}
	closed bool // no client connection is begun any more
	// closing ends when closed is set: nobody waits for the server any more.
	closing context.Context
	close   context.CancelFunc
}

// seldomEvery is how often a message is logged that clients can cause.
const seldomEvery = 10 * time.Second

// New returns a proxy that is ready to [Proxy.Serve].
func New(cfg Config) *Proxy {
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.LoginTimeout == 0 {
		cfg.LoginTimeout = cmp.Or(cfg.Protocol.LoginTimeout, DefaultLoginTimeout)
	}
	if cfg.Started.IsZero() {
		cfg.Started = time.Now()
	}
	p := &Proxy{cfg: cfg, served: make(map[*clientConn]struct{}), logins: newLogins(),
		rowMemory: session.NewRowMemory(cfg.RowMemory)}
	p.seldom = cfg.Logger.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(c, seldomEvery, 1, 0)
	}))
	p.closing, p.close = context.WithCancel(context.Background())
	p.Reconfigure(Reloadable{Args: cfg.Args, Drain: cfg.Drain, MaxConns: cfg.MaxConns, MaxLogins: cfg.MaxLogins,
		MaxLoginsPerAddress: cfg.MaxLoginsPerAddress, TxnMemory: cfg.TxnMemory, LogSQL: cfg.LogSQL})
	return p
}

// A Resigner is a listener whose address another process may listen on too.
type Resigner interface {
	net.Listener
	// Resign has the other processes get the clients that are still to come, and returns when Accept has returned those
	// that were on their way here, or when ctx ends. With an error clients on their way are refused when the listener
	// is closed.
	Resign(ctx context.Context) error
}

// Serve accepts clients from the listeners until ctx ends or one of them fails, then lets open
// transactions finish for as long as Reloadable.Drain says, and closes what is left. It returns when every
// connection is closed. The error is nil when ctx ended it.
func (p *Proxy) Serve(ctx context.Context, listeners ...net.Listener) error {
	for _, l := range listeners {
		if err := p.cfg.Permits(ctx, l.Addr()); err != nil {
			return err
		}
	}
	var conns sync.WaitGroup
	defer p.relays.stop()
	defer conns.Wait()
	// Connections outlive ctx by the drain; work ends when all of them are closed.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	accepting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	resigning, end := context.WithCancel(work)
	defer end()
	var accepts sync.WaitGroup
	for _, l := range listeners {
		accepts.Go(func() {
			<-accepting.Done()
			if r, ok := l.(Resigner); ok && ctx.Err() != nil {
				if err := r.Resign(resigning); err != nil {
					p.cfg.Logger.Warn("clients that connect just now may be refused", zap.Error(err))
				}
			}
			l.Close()
		})
		accepts.Go(func() { stop(p.accept(accepting, work, l, &conns)) })
	}
	<-accepting.Done()
	if ctx.Err() != nil {
		p.drain(&accepts, end)
		return nil
	}
	p.closeAll()
	accepts.Wait()
	return context.Cause(accepting)
}

// accept takes clients from one listener until it is closed.
func (p *Proxy) accept(ctx, work context.Context, l net.Listener, conns *sync.WaitGroup) error {
	lends := !p.cfg.AllowLocal && reachable(l.Addr())
	for {
		client, err := l.Accept()
		switch {
		case err == nil && !p.admit():
			conns.Go(func() { p.refuse(client, lends) })
		case err == nil:
			conns.Go(func() {
				defer p.conns.Add(-1)
				p.serve(work, client, lends)
			})
		case ctx.Err() != nil:
			return nil
		case passes(err):
			p.seldom.Warn("cannot accept a client now", zap.Error(err))
			time.Sleep(acceptPause)
		default:
			return fmt.Errorf("accept: %w", err)
		}
	}
}

// acceptPause is how long Serve waits after an error that passes.
const acceptPause = 100 * time.Millisecond

// passes reports whether an Accept that failed is worth another try: the client was gone already, or the
// process is out of file descriptors until others close theirs.
func passes(err error) bool {
	for _, e := range []error{syscall.ECONNABORTED, syscall.EMFILE, syscall.ENFILE, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// serve moves a client's bytes until it or its server is gone. See dial for lends.
func (p *Proxy) serve(ctx context.Context, client net.Conn, lends bool) {
	defer client.Close()
	login := p.logins.enter(client.RemoteAddr())
	if login == nil {
		p.refuseLogin(client, "as many clients are connected without having logged in as may be", lends)
		return
	}
	defer func() { login.leave(p.loginLimit()) }()
	l := p.newClientConn(client)
	l.login, l.lends = login, lends
	defer l.disconnect()
	if !p.begin(l) {
		return
	}
	defer p.end(l)
	switch {
	case l.session == nil:
		l.pass(ctx)
	case p.cfg.Protocol.FirstMessage != nil || l.reach(ctx):
		l.run(ctx)
	}
}

// begin reports whether the client connection may serve its client: not when all client connections are being closed.
func (p *Proxy) begin(l *clientConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.served[l] = struct{}{}
	}
	return !p.closed
}

func (p *Proxy) end(l *clientConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.served, l)
}

func (p *Proxy) newClientConn(client net.Conn) *clientConn {
	l := &clientConn{proxy: p, client: newSide(client), begun: time.Now()}
	l.loginBy = l.begun.Add(p.cfg.LoginTimeout)
	clientLocal, serverLocal := client.LocalAddr().Network() == "unix", p.cfg.Network == "unix"
	if p.cfg.Off && p.cfg.TLS.none() && clientLocal == serverLocal {
		return l // neither leg is safer for passwords than the other
	}
	l.info = history.Session{Run: p.cfg.Run, ID: history.SessionID(p.ids.Add(1)), Client: client.RemoteAddr().String(),
		Start: p.now()}
	if p.cfg.Provoke != nil {
		l.provoked = p.cfg.Provoke.NewSession(l.client.wake)
	}
	if p.cfg.Twins != nil && !p.cfg.Off {
		l.twin = p.cfg.Twins.Session(l.info.ID)
	}
	settings := p.reloadable.Load()
	l.session = p.cfg.Protocol.NewSession(session.Options{
		ID:          l.info.ID,
		NextTxn:     func() history.TxnID { return history.MakeTxnID(p.cfg.Run, p.txns.Add(1)) },
		Args:        settings.Args,
		Texts:       p.cfg.Texts && settings.Args,
		TxnMemory:   settings.TxnMemory,
		RowMemory:   p.rowMemory,
		Halted:      p.halted(),
		Provoke:     l.provoked,
		Twin:        l.twin,
		ClientLocal: clientLocal,
		ServerLocal: serverLocal,
	})
	return l
}

// halted is Config.Halted, and counts what is refused for it.
func (p *Proxy) halted() func() error {
	if p.cfg.Halted == nil {
		return nil
	}
	return func() error {
		err := p.cfg.Halted()
		if err != nil {
			p.meter.refused.Add(1)
		}
		return err
	}
}

// notRecording logs, once, that something was not recorded: the Recorder logs when it stops and goes on.
func (p *Proxy) notRecording(err error) {
	p.unrecorded.Do(func() {
		p.cfg.Logger.Error("what a client did was not recorded (this is said once)", zap.Error(err))
	})
}

// now is the time since the run's start, on the monotonic clock.
func (p *Proxy) now() int64 { return int64(time.Since(p.cfg.Started)) }

func (p *Proxy) closeAll() {
	p.mu.Lock()
	p.closed = true
	p.close()
	p.mu.Unlock()
	for _, l := range p.all() {
		l.disconnect()
	}
}

func (p *Proxy) all() []*clientConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	conns := make([]*clientConn, 0, len(p.served))
	for l := range p.served {
		conns = append(conns, l)
	}
	return conns
}
