package proxy

import (
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isotap/isotap/history"
)

// Stats counts what a Proxy has done so far. Statements and transactions are counted when the
// transaction is handed to the recorder; in mode off there are none.
type Stats struct {
	Open        int64 // clients connected now
	Accepted    uint64
	TooMany     uint64 // clients refused for Reloadable.MaxConns
	Unreachable uint64 // clients refused because the server did not take a connection
	Faults      uint64 // panics of isotap's own, each of which cost a statement's observation or a session
	// TooManyLogins counts clients refused because too many others had not logged in, LocalUpstream those refused
	// because the server turned out to be on this host, Overdue those that took too long to log in.
	TooManyLogins, LocalUpstream, Overdue uint64
	// LoggingIn is the clients that have not logged in now, LoginsWaiting those of them that wait for a connection to
	// the server.
	LoggingIn, LoginsWaiting int
	// Logins counts those that went well, by how their connections are encrypted.
	Logins map[LegSafety]uint64
	// Downgrades counts connections to the server that are plain although TLS was preferred.
	Downgrades uint64
	Refused    uint64 // transactions refused since they could not be recorded
	Unrecorded uint64 // sessions ended with an error since a transaction that the server had committed was not recorded
	Txns       map[history.Status]uint64
	Stmts      map[StmtClass]uint64
	// Reasons says why statements were observed inexactly or not at all.
	Reasons map[StmtReason]uint64
	// Refusals counts statements that ran as the client wrote them because the server had refused
	// their rewritten form, by its error.
	Refusals map[string]uint64
	// Misplanned counts results out of which columns of isotap's were taken that their plans did not know of.
	Misplanned uint64
}

// A Safety says who could read along on a connection.
type Safety uint8

const (
	// Plain: whoever is on the network between.
	Plain Safety = iota
	// Encrypted: nobody.
	Encrypted
	// Local: nobody on a network; it is a unix socket.
	Local
	safeties
)

// String returns "plain", "tls" or "local".
func (s Safety) String() string { return [...]string{"plain", "tls", "local"}[s] }

// A LegSafety is that of a client's two connections.
type LegSafety struct{ Client, Server Safety }

// A StmtClass is what statements are counted by.
type StmtClass struct {
	Kind        history.Kind
	Observation history.Observation
}

// A StmtReason is why statements of an observation were not exact.
type StmtReason struct {
	Observation history.Observation
	Reason      string
}

// The sizes of what is counted. Reasons and errors are few; should they ever not be, the rest counts
// as "other": a metric must not grow with the traffic.
const (
	kinds        = 32
	observations = 4
	maxReasons   = 64
	maxRefusals  = 32
)

// A meter counts. Nothing in it allocates once a reason has been seen, and nothing is counted per
// packet: a transaction that ended is counted as a whole.
type meter struct {
	accepted, tooMany, unreachable, faults, misplanned atomic.Uint64
	tooManyLogins, localUpstream, overdue, downgrades  atomic.Uint64
	refused, unrecorded                                atomic.Uint64

	logins [safeties][safeties]atomic.Uint64 // by the client's leg and the server's

	faultLogged atomic.Int64          // when a fault was logged last, in nanoseconds since 1970
	down        atomic.Pointer[error] // why the last connection to the server failed; nil when it did not
	txns        [3]atomic.Uint64
	// The last kind and observation stand for all that there may be beyond.
	stmts [kinds][observations]atomic.Uint64

	mu       sync.Mutex
	reasons  map[StmtReason]uint64
	refusals map[string]uint64
}

// count counts a transaction and its statements.
func (m *meter) count(t *history.Txn) {
	m.txns[min(int(t.Status), len(m.txns)-1)].Add(1)
	for i := range t.Stmts {
		s := &t.Stmts[i]
		m.stmts[min(int(s.Kind), kinds-1)][min(int(s.Observation), observations-1)].Add(1)
		if !s.Reason.IsZero() && (s.Observation == history.Inexact || s.Observation == history.Opaque) {
			m.because(s.Observation, s.Reason)
		}
	}
}

func (m *meter) because(o history.Observation, reason history.Reason) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reasons == nil {
		m.reasons, m.refusals = make(map[StmtReason]uint64), make(map[string]uint64)
	}
	r := StmtReason{o, reason.String()}
	if reason.Is(history.ReasonRefused) {
		r.Reason = "refused by the server"
		code := reason.Detail()
		if _, known := m.refusals[code]; !known && len(m.refusals) >= maxRefusals {
			code = "other"
		}
		m.refusals[code]++
	}
	if _, known := m.reasons[r]; !known && len(m.reasons) >= maxReasons {
		r.Reason = "other"
	}
	m.reasons[r]++
}

// faultInterval is how long faults are counted only, once one was logged.
const faultInterval = time.Second

// fault counts a fault, and reports how many there were and whether to log it.
func (m *meter) fault(now time.Time) (n uint64, log bool) {
	last := m.faultLogged.Load()
	log = now.UnixNano()-last >= int64(faultInterval) && m.faultLogged.CompareAndSwap(last, now.UnixNano())
	return m.faults.Add(1), log
}

// dialed notes how a connection to the server went.
func (m *meter) dialed(err error) {
	if err == nil {
		m.down.Store(nil)
		return
	}
	if errors.Is(err, ErrLocalUpstream) {
		m.localUpstream.Add(1)
	} else {
		m.unreachable.Add(1)
	}
	m.down.Store(&err)
}

// Down returns why the last client could not be connected to the server; nil when it could, or there was
// none yet.
func (p *Proxy) Down() error {
	if err := p.meter.down.Load(); err != nil {
		return *err
	}
	return nil
}

// Stats returns the Proxy's counters.
func (p *Proxy) Stats() Stats {
	m := &p.meter
	s := Stats{Open: p.conns.Load(), Accepted: m.accepted.Load(), TooMany: m.tooMany.Load(),
		Unreachable: m.unreachable.Load(), Faults: m.faults.Load(), Misplanned: m.misplanned.Load(),
		Refused: m.refused.Load(), Unrecorded: m.unrecorded.Load(),
		TooManyLogins: m.tooManyLogins.Load(), LocalUpstream: m.localUpstream.Load(), Overdue: m.overdue.Load(),
		Downgrades: m.downgrades.Load(),
		Logins:     map[LegSafety]uint64{}, Txns: map[history.Status]uint64{}, Stmts: map[StmtClass]uint64{}}
	s.LoggingIn, s.LoginsWaiting = p.logins.counts()
	for client := range m.logins {
		for server := range m.logins[client] {
			s.Logins[LegSafety{Safety(client), Safety(server)}] = m.logins[client][server].Load()
		}
	}
	for status := range m.txns {
		s.Txns[history.Status(status)] = m.txns[status].Load()
	}
	for kind := range m.stmts {
		for o := range m.stmts[kind] {
			if n := m.stmts[kind][o].Load(); n > 0 {
				s.Stmts[StmtClass{history.Kind(kind), history.Observation(o)}] = n
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Reasons, s.Refusals = maps.Clone(m.reasons), maps.Clone(m.refusals)
	return s
}
