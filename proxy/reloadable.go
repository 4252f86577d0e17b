package proxy

import (
	"context"
	"io"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/history"
)

// Reloadable is what of a Proxy's configuration may change while it serves: see [Proxy.Reconfigure].
type Reloadable struct {
	// Args records the values of literals and parameters, of clients that connect from now on.
	Args bool
	// Drain bounds how long Serve waits for open transactions when its context ends.
	Drain time.Duration
	// MaxConns bounds the clients that are connected at once; 0: no bound. Those who are connected stay.
	MaxConns int
	// MaxLogins bounds the clients that have a connection to the server and are not logged in, MaxLoginsPerAddress
	// those of one client address (of IPv6: of a /64); 0: no bound. Others wait for their turn.
	MaxLogins, MaxLoginsPerAddress int
	// TxnMemory bounds what is kept of an open transaction until it is recorded, in bytes, of clients that connect from
	// now on; 0: no bound.
	TxnMemory int
	// LogSQL says what of the statements is logged.
	LogSQL LogSQL
}

// LogSQL says what of the clients' statements goes to the log.
type LogSQL uint8

const (
	// LogNone logs no statement.
	LogNone LogSQL = iota
	// LogShape logs statements with ? in place of their literals.
	LogShape
	// LogFull logs the values too, as far as they are recorded.
	LogFull
)

// Reconfigure changes what may be changed while the Proxy serves.
func (p *Proxy) Reconfigure(l Reloadable) { p.reloadable.Store(&l) }

// admit reports whether one more client may connect, and counts it if so.
func (p *Proxy) admit() bool {
	most := p.reloadable.Load().MaxConns
	p.meter.accepted.Add(1)
	if n := p.conns.Add(1); most > 0 && n > int64(most) {
		p.conns.Add(-1)
		p.meter.tooMany.Add(1)
		return false
	}
	return true
}

// refuse tells a client that there are too many, as a server does.
func (p *Proxy) refuse(client net.Conn, lends bool) {
	defer client.Close()
	if request := p.turnAway(client, TooMany, "too many clients"); len(request) > 0 {
		p.meter.tooMany.Add(^uint64(0)) // it was none
		p.hand(request, lends)
		return
	}
	p.seldom.Warn("too many clients: one was refused", zap.Int("max_connections", p.reloadable.Load().MaxConns))
}

// refuseLogin tells a client that there are too many that have not logged in.
func (p *Proxy) refuseLogin(client net.Conn, why string, lends bool) {
	if request := p.turnAway(client, TooMany, "too many logins"); len(request) > 0 {
		p.hand(request, lends)
		return
	}
	p.meter.tooManyLogins.Add(1)
	p.sayTooManyLogins(client.RemoteAddr(), why)
}

func (p *Proxy) sayTooManyLogins(client net.Addr, why string) {
	limit := p.loginLimit()
	p.seldom.Warn("too many logins at once: a client was refused", zap.Stringer("client", client),
		zap.String("why", why),
		zap.Int("max_logins", limit.most), zap.Int("max_logins_per_address", limit.each))
}

// hand gives the server a request that needs no session, and returns when the server has taken it.
func (p *Proxy) hand(request []byte, lends bool) {
	ctx, cancel := context.WithTimeout(p.closing, refusalPatience)
	defer cancel()
	server, err := p.dial(ctx, lends)
	if err != nil {
		p.cannotReach(err)
		return
	}
	defer server.Close()
	server.SetDeadline(time.Now().Add(refusalPatience))
	if _, err := server.Write(request); err == nil {
		io.Copy(io.Discard, server) // it says nothing, and closes
	}
}

// refusalPatience is how long a client that is refused may take to ask, and to read why.
const refusalPatience = time.Second

// turnAway tells a client why it is not served, and returns what it asked for if that needs no session.
func (p *Proxy) turnAway(client net.Conn, r Refusal, why string) (request []byte) {
	client.SetDeadline(time.Now().Add(refusalPatience))
	return p.cfg.Protocol.Refuse(client, r, why)
}

// logStatements logs the statements of a transaction that has ended.
func (l *clientConn) logStatements(t *history.Txn, how LogSQL) {
	log := l.log().With(zap.Stringer("txn", t.ID), zap.Stringer("outcome", t.Status))
	for i := range t.Stmts {
		s := &t.Stmts[i]
		fields := []zap.Field{zap.Uint32("statement", s.Num), zap.Stringer("observation", s.Observation),
			zap.String("sql", s.Shape),
			zap.Duration("took", time.Duration(s.End-s.Start))}
		if !s.Reason.IsZero() {
			fields = append(fields, zap.Stringer("reason", s.Reason))
		}
		if s.Error.Code != 0 {
			fields = append(fields, zap.Uint16("error", s.Error.Code))
		} else if s.Error.SQLState != "" {
			fields = append(fields, zap.String("error", s.Error.SQLState))
		}
		if how == LogFull {
			fields = append(fields, zap.Strings("values", s.Args))
		}
		log.Info("statement", fields...)
	}
}
