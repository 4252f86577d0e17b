package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/provoke"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/proxy/twin"
)

const (
	// idleRead is how long a client is quiet before isotap reads what its last write captured.
	idleRead = 50 * time.Millisecond
	// lastReply is how long a client connection waits for the server's last replies when its client is gone.
	lastReply = 10 * time.Second
)

// A clientConn is one client's connection and the one to the server that belongs to it. One goroutine runs
// it; others may only drain and end it.
type clientConn struct {
	proxy          *Proxy
	client, server side

	session    session.Session
	provoked   *provoke.Session // nil: nothing is held back
	twin       twin.Session     // nil: nobody plays twins
	info       history.Session
	relayed    *relayPair // what moves the bytes in the client connection's place; under proxy.mu
	buffered   []byte     // what the client sent and the session does not take yet
	begun      time.Time  // when the client connected
	loginBy    time.Time  // when the client must have logged in
	login      *login
	loggedIn   bool // as far as the login is counted
	lends      bool // see Proxy.dial
	inside     bool // the schema's keeper knows that the session is in its database
	clientGone bool
	// serverReset says that the server's connection ended with RST, as the client's is to.
	serverReset bool
	catchingUp  bool
	closed      bool

	draining atomic.Bool
}

// run drives the session until it is done or either side is gone.
func (l *clientConn) run(ctx context.Context) {
	defer l.finish(ctx)
	defer l.survive()
	for !l.closed {
		client, server := l.read()
		switch {
		case server.something():
			l.fromServer(ctx, server)
		case l.clientGone:
			l.fromServer(ctx, readResult{ended: true}) // it did not say its last words in time
		case !client.something():
			l.idle(ctx)
		}
		if !l.closed {
			l.fromClient(ctx, client)
		}
		if !l.closed && l.session.Copying() {
			l.copy()
			return
		}
	}
}

// finish records the session's end, and whatever its last moments left, even if the drain is over.
func (l *clientConn) finish(ctx context.Context) {
	defer l.survive()
	defer l.leave(ctx)
	ctx = context.WithoutCancel(ctx)
	l.session.ServerClosed(l.proxy.now())
	if l.twin != nil {
		l.twin.Ends()
	}
	for toClient, _ := l.session.Output(); len(toClient) > 0; toClient, _ = l.session.Output() { // it gives room back
	}
	if l.proxy.cfg.Off || l.server.conn == nil {
		return // no session of the server's has begun
	}
	err := l.record(ctx)
	l.info.End = l.proxy.now()
	if err := errors.Join(err, l.proxy.cfg.Recorder.Session(ctx, l.info)); err != nil {
		l.proxy.notRecording(err)
	}
}

// leave tells that the session is no longer in its database.
func (l *clientConn) leave(ctx context.Context) {
	if !l.inside {
		return
	}
	if err := l.reload(ctx, session.Schema{Database: l.info.Database, Ends: true}); err != nil {
		l.log().Warn("the session's end", zap.Error(err))
	}
}

// survive ends the client connection alone when its session panicked: a fault of isotap's on the bytes of one client is
// no reason to hang up on all others.
func (l *clientConn) survive() {
	if fault := session.Caught(recover()); fault != nil {
		l.fault(fault, "isotap failed in this session, which ends: please report it")
		l.close()
	}
}

// fault counts a fault, and logs it if the last one was logged long enough ago: what a client can cause it can cause
// again and again.
func (l *clientConn) fault(f *session.Fault, message string) {
	if n, log := l.proxy.meter.fault(time.Now()); log {
		l.log().Error(message, zap.String("fault", f.What), zap.Uint64("faults", n), zap.String("stack", f.Stack))
	}
}

func (l *clientConn) log() *zap.Logger {
	return l.proxy.cfg.Logger.With(zap.Uint32("session", uint32(l.info.ID)))
}

// fromClient feeds the session what the client sent. Nothing is read of the client while something of before is
// buffered.
func (l *clientConn) fromClient(ctx context.Context, r readResult) {
	if len(r.bytes) > 0 {
		l.buffered = r.bytes
	}
	for len(l.buffered) > 0 && !l.closed {
		n, err := l.session.FromClient(l.proxy.now(), l.buffered)
		l.buffered = l.buffered[n:]
		l.step(ctx, err)
		if n == 0 {
			return
		}
	}
	if r.ended && !l.closed {
		l.clientClosed(ctx)
	}
}

// clientClosed lets the session finish what it has in flight: an update that the client did not wait
// for has happened all the same.
func (l *clientConn) clientClosed(ctx context.Context) {
	l.clientGone = true
	l.server.setDeadline(time.Now().Add(lastReply))
	l.session.ClientClosed(l.proxy.now())
	l.step(ctx, nil)
}

// fromServer feeds the session what the server sent.
func (l *clientConn) fromServer(ctx context.Context, r readResult) {
	conn := l.server.conn
	if len(r.bytes) > 0 {
		l.step(ctx, l.session.FromServer(l.proxy.now(), r.bytes))
	}
	if r.ended && !l.closed && conn == l.server.conn {
		l.serverReset = r.reset
		l.session.ServerClosed(l.proxy.now())
		l.step(ctx, nil)
	}
}

// idle is for when neither side has said anything for a while, or a drain woke the client connection: captured
// entries are read, and a client connection that drains ends with its transaction.
func (l *clientConn) idle(ctx context.Context) {
	switch {
	case l.leaving() && !l.session.InTransaction():
		if l.session.Unread() {
			l.clientClosed(ctx)
			return
		}
		l.dismiss()
	case !l.session.LoggedIn() && !time.Now().Before(l.loginBy):
		l.proxy.meter.overdue.Add(1)
		l.session.LoginOverdue(l.proxy.now())
		l.step(ctx, nil)
	case l.session.Unread():
		l.session.Idle(l.proxy.now())
		l.step(ctx, nil)
	}
}

// step deals with what the session answered: first the events, so that nothing is acknowledged that
// was to be recorded before, then the bytes. failed is the session's own error, if it had one.
func (l *clientConn) step(ctx context.Context, failed error) {
	if err := l.record(ctx); err != nil {
		l.proxy.notRecording(err)
		if l.proxy.cfg.Durable && !l.proxy.cfg.Passes && failed == nil {
			l.session.Unrecorded(l.proxy.now(), err)
			l.proxy.meter.unrecorded.Add(1)
		}
	}
	if failed != nil {
		l.log().Error("the session cannot go on", zap.Error(failed))
		l.close()
		return
	}
	if !l.loggedIn && l.session.LoggedIn() && !l.session.Done() {
		l.noteLogin()
	}
	l.send()
	for l.session.Upgrade() != session.NoLeg {
		with, err := l.upgrade(ctx, l.session.Upgrade())
		l.session.Upgraded(l.proxy.now(), with, err)
		l.send()
	}
	l.compress()
	l.catchUp(ctx)
	switch {
	case l.session.Done():
		l.close()
	case l.leaving() && !l.session.InTransaction() && !l.session.Unread():
		l.dismiss()
	}
}

// noteLogin counts a login that went well, and gives its place to the next.
func (l *clientConn) noteLogin() {
	l.loggedIn = true
	l.login.leave(l.proxy.loginLimit())
	client, server := l.client.safety(), l.server.safety()
	l.proxy.meter.logins[client][server].Add(1)
	if l.proxy.cfg.TLS.ClientUse == session.MustTLS && server == Plain {
		l.log().Warn("a client logged in over TLS, and isotap's connection to the server is not encrypted (--upstream-tls)",
			zap.String("client", l.info.Client), zap.String("user", l.info.User))
	}
}

// leaving reports whether the client connection is to end as soon as its client has no transaction open.
func (l *clientConn) leaving() bool { return l.draining.Load() }

// dismiss ends a client connection that has nothing under way.
func (l *clientConn) dismiss() {
	l.session.Dismiss(l.proxy.now())
	l.send()
	l.close()
}

// send writes what the session has for either side.
func (l *clientConn) send() {
	for {
		toClient, toServer := l.session.Output()
		if l.provoked != nil {
			l.holdBack(len(toClient) == 0)
		}
		if l.twin != nil && len(toServer) > 0 {
			l.playBefore(len(toClient) == 0)
		}
		if err := l.server.write(toServer); err != nil {
			// The server's last words may still be on their way: its side is read to the end.
			l.log().Debug("write to server", zap.Error(err))
		}
		if l.twin != nil && len(toClient) > 0 {
			l.twin.After()
		}
		if err := l.client.write(toClient); err != nil {
			l.session.ClientClosed(l.proxy.now())
		}
		if len(toClient) == 0 {
			return
		}
	}
}

// inDatabase takes in which database the session is connected to.
func (l *clientConn) inDatabase(ctx context.Context, database string) error {
	if database == "" || l.info.Database == database {
		return nil
	}
	l.info.Database = database
	return l.proxy.cfg.Recorder.Session(ctx, l.info)
}

// record hands the session's events over.
func (l *clientConn) record(ctx context.Context) error {
	cfg := &l.proxy.cfg
	for _, e := range l.session.Events() {
		if e.Misplanned {
			l.proxy.meter.misplanned.Add(1)
		}
		switch {
		case e.Fault != nil:
			l.fault(e.Fault, "isotap failed on a statement, which goes unobserved: please report it")
		case e.Downgraded != "":
			l.proxy.meter.downgrades.Add(1)
			l.log().Warn("the connection to the server is not encrypted, although TLS is preferred "+
				"(--upstream-tls require or verify-full would refuse)",
				zap.String("client", l.info.Client), zap.String("reason", e.Downgraded))
		case cfg.Off && e.Note == "":
		case e.Txn != nil:
			l.ask(ctx, e.Questions)
			l.proxy.meter.count(e.Txn)
			if how := l.proxy.reloadable.Load().LogSQL; how != LogNone {
				l.logStatements(e.Txn, how)
			}
			if err := cfg.Recorder.Txn(ctx, e.Txn); err != nil {
				return err
			}
		case e.Defined != nil:
			if err := cfg.Recorder.Defined(ctx, e.Defined); err != nil {
				return err
			}
		case e.User != nil:
			l.info.User = *e.User
			if err := cfg.Recorder.Session(ctx, l.info); err != nil {
				return err
			}
		case e.Schema != nil && e.Schema.Expected:
			l.expect(ctx, *e.Schema)
		case e.Schema != nil:
			if err := l.inDatabase(ctx, e.Schema.Database); err != nil {
				return err
			}
			l.inside = l.inside || e.Schema.Begins
			if err := l.reload(ctx, *e.Schema); err != nil {
				l.log().Warn("cannot read the schema again: changed tables may go unobserved", zap.Error(err))
			}
		case e.Note != "":
			l.log().Warn(e.Note)
		}
	}
	return nil
}

// ask asks the server what a transaction did not show. What it does not tell stays unknown.
func (l *clientConn) ask(ctx context.Context, questions []session.Question) {
	for _, q := range questions {
		if l.proxy.cfg.Ask == nil {
			return
		}
		if err := l.proxy.cfg.Ask(ctx, q); err != nil {
			l.log().Debug("ask what a transaction wrote", zap.Error(err))
		}
	}
}

// expect tells that a session may begin. Nothing rests on it yet: what fails shows when the session begins.
func (l *clientConn) expect(ctx context.Context, where session.Schema) {
	if err := l.reload(ctx, where); err != nil {
		l.log().Debug("expect a session", zap.Error(err))
	}
}

// reload has the schema read again, for as long as the client connection is served.
func (l *clientConn) reload(ctx context.Context, changed session.Schema) error {
	ctx, cancel := l.proxy.untilClosing(ctx)
	defer cancel()
	return l.proxy.cfg.Reload(ctx, changed)
}

// drain ends the client connection as soon as its client has no transaction open: now, or after the step that is
// under way. It may have to be called again, and may be called while the client connection runs.
func (l *clientConn) drain() {
	if l.session == nil || l.isRelayed() {
		l.disconnect()
		return
	}
	l.draining.Store(true)
	l.client.wake()
}

func (l *clientConn) isRelayed() bool {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	return l.relayed != nil
}

// close ends the client connection, by its own goroutine.
func (l *clientConn) close() {
	l.closed = true
	l.client.closeAs(l.serverReset)
	if l.server.conn != nil {
		l.server.stream().Close()
	}
}

// disconnect closes both sockets, which ends the client connection. It may be called while the client connection runs.
func (l *clientConn) disconnect() {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	if l.relayed != nil {
		l.relayed.stop()
		return
	}
	l.client.conn.Close()
	if l.server.conn != nil {
		l.server.conn.Close()
	}
}

// reach makes the client connection's connection to the server. If there can be none, the client is told and reach
// returns false.
func (l *clientConn) reach(ctx context.Context) bool {
	err := l.dial(ctx)
	switch {
	case err == nil:
		return true
	case errors.Is(err, session.ErrTooManyLogins):
		l.proxy.turnAway(l.unread(), TooMany, "too many logins")
	case !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed):
		l.proxy.turnAway(l.unread(), Unreachable, err.Error())
	}
	return false
}

// unread is the client's connection with what was read of it ahead.
func (l *clientConn) unread() net.Conn { return &resumed{Conn: l.client.conn, ahead: l.buffered} }

// read waits until either side says something, or the client connection is woken. The protocol has turns, so mostly
// one side is read, by the client connection's own goroutine: from a command to its reply no other needs to run. Both
// are read when it may be either side's turn, and when the one whose turn it is has been quiet for a
// while: the other may end the connection at any time.
func (l *clientConn) read() (client, server readResult) {
	switch {
	case l.server.conn == nil:
		l.client.setDeadline(l.loginBy)
		return l.client.read(), readResult{}
	case l.clientGone:
		return readResult{}, l.server.read()
	case len(l.buffered) > 0:
		return readResult{}, l.server.readSoon()
	}
	switch l.session.Turn() {
	case session.ClientTurn:
		client = l.client.readSoon()
	case session.ServerTurn:
		server = l.server.readSoon()
	}
	if client.something() || server.something() {
		return client, server
	}
	return l.readBoth()
}

// readBoth reads both sides until one of them says something, the client connection is woken, or entries are due to
// be read.
func (l *clientConn) readBoth() (client, server readResult) {
	l.server.setDeadline(time.Time{})
	l.client.setDeadline(time.Time{})
	switch {
	case !l.session.LoggedIn():
		l.client.setDeadline(l.loginBy)
	case l.session.Unread():
		l.client.setDeadline(time.Now().Add(idleRead))
	}
	fromServer := make(chan readResult, 1)
	go func() {
		r := l.server.read()
		l.client.wake()
		fromServer <- r
	}()
	client = l.client.read()
	l.server.wake()
	server = <-fromServer
	l.server.setDeadline(time.Time{})
	l.client.setDeadline(time.Time{})
	return client, server
}
