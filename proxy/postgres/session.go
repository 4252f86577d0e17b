// Package postgres is the PostgreSQL frontend/backend protocol, version 3, as isotap speaks it between a
// client and a server: a state machine for one connection, without a socket, a goroutine or a clock.
//
// A [Session] is given the bytes that either side sent and answers with the bytes to send to either side and
// with the [session.Event]s to record. The authentication is relayed, so the proxy needs no user list. After the
// login, and before the client hears of it, isotap asks the server on the same connection what the session's
// statements are read under. From then on every message of the client that the server answers is noted in a
// pipeline, so that each reply is known by what it answers: a protocol whose messages may be sent ahead without
// end leaves no other way to tell whose row a row is.
//
// A session moves between its phases, and takes each message through stages. What it knows is in its parts, none of
// which knows the session: the pipeline, the names of statements and portals, the settings, the transaction, what this
// changed of the tables, what may have to be sent again, and what the server says of rewritten texts.
//
// The files follow a statement's way. What most of them rest on comes last.
//
//   - In: session.go takes the bytes of either side, by the phase that the session is in.
//   - Login: login.go relays the startup and the authentication, tls.go has either leg begin TLS, binding.go
//     sees to logins that are bound to it, refuse.go says why a client is not served.
//   - Messages of the client: command.go has the stages of a message, has texts planned, and has Query; extended.go
//     has the messages of the extended protocol, and rebind.go portals that are bound once more. prepared.go has
//     EXECUTE run what isotap prepared, and redeclare.go the server read cursors as the client declared them.
//     variants.go chooses among the forms of a prepared statement, questions.go asks the server on isotap's own
//     account, behind.go puts a question behind a statement that commits by itself, and unrecorded.go refuses what
//     could not be recorded.
//   - Replies: reply.go reads them, result.go has the result that comes in, the form that its statement went in, and
//     takes out of it hidden columns, and columns of isotap's that no plan has; identity.go and array.go read the
//     identities in rows. failure.go maps errors back to the client's text; after some resend.go sends again what the
//     client wrote.
//   - After the reply: completion.go has how a result begins and the stages of a statement that is done, and lost.go
//     ends what is open when the server is gone.
//   - Parts: session.go puts them together. pipeline.go has the replies to come, retry.go what may have to be sent
//     again and what is known of rewritten texts, settings.go what texts are read under. names.go has what names of
//     statements and portals mean, cursor.go those of SQL's cursors, preparations.go those of SQL's PREPARE; bind.go
//     has the parameters, pieces.go what was fetched in pieces. transaction.go has the transaction and what it changed
//     of the tables.
//   - Bytes: message.go cuts them into messages, and passes on in pieces what is long and needs no look. protocol.go
//     names the protocol's letters and codes.
//
// Sources: PostgreSQL's documentation, chapters "Message Flow" and "Message Formats", and for what they
// leave open the server's own loop (src/backend/tcop/postgres.c).
package postgres

import (
	"errors"
	"fmt"

	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/proxy/twin"
	"github.com/isotap/isotap/proxy/txnstate"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A Planner makes the plan of a text, usually out of a cache. The text belongs to the caller and must not be
// kept.
type Planner interface {
	Plan(text []byte, s sqlpostgres.Session) *sqlpostgres.Script
	// TooLarge takes note that a statement of the plan's kind reads too many rows to collect their identities
	// in its reply, and IsTooLarge asks for that.
	TooLarge(shape string)
	IsTooLarge(shape string) bool
	// SubqueriesTooLarge and AreSubqueriesTooLarge are likewise about what the statement's subqueries read.
	SubqueriesTooLarge(shape string)
	AreSubqueriesTooLarge(shape string) bool
	// Misplanned takes note that a statement of the plan's shape has shown columns of isotap's that the plan does not
	// know of, and reports whether it is the first that is told of; IsMisplanned asks for that.
	Misplanned(shape string) bool
	IsMisplanned(shape string) bool
	// CursorsAreRead reports whether the server itself may read cursors by their names, ReadCursors notes that a client
	// has it do so.
	CursorsAreRead() bool
	ReadCursors()
	// Exposes reports whether tables have columns of isotap's that clients would see.
	Exposes() bool
}

// Config is what a Session needs of the world around it.
type Config struct {
	session.Options
	// Planners gives the planner for a database whose tables were read (the session's first [session.Schema]
	// event asks for that); nil where there is none, and the session goes unobserved. Planners is nil for
	// sessions that only pass on: nothing is rewritten, nothing recorded.
	Planners func(database string) Planner
	// Prepared are the transactions that PREPARE TRANSACTION took out of the sessions of this server. Nil:
	// what becomes of these is not known.
	Prepared *txnstate.Prepared
	// Logged says that the server's own log is read beside: transactions then tell the ids by which it knows them.
	Logged bool
	// Durable holds the reply that ends a transaction back until the caller has stored the transaction
	// (durability: commit).
	Durable bool
	// Own begins the names of statements and portals that isotap makes itself, so that no client has one of these
	// (see [NewOwn]). Empty: [rewrite.NamePrefix].
	Own string
	// ClientTLS and ServerTLS say which leg is encrypted.
	ClientTLS, ServerTLS session.TLSUse
	// DirectTLS begins TLS with the server without asking it (sslnegotiation=direct).
	DirectTLS bool
	// Certificate is what clients are shown that use TLS, in DER form.
	Certificate []byte
}

// phase is where a session stands in the protocol.
type phase uint8

const (
	phaseStartup phase = iota // the client's startup message has not come yet
	phaseLeg                  // the server's leg is made what it should be
	phaseAuth                 // authentication goes back and forth, until the first ReadyForQuery
	phaseAsk                  // isotap's first question is answered; the client's login waits for that
	phaseReady                // statements and replies
	phaseCopy                 // bytes are copied; nothing is parsed any more
	phaseCancel               // the server is asked to cancel something, and closes
	phaseClosing              // the client is gone; the last replies are read
	phaseClosed
)

// Session is the state machine of one client connection. It is not safe for concurrent use.
type Session struct {
	cfg   Config
	phase phase

	now      int64 // of the call at hand
	toClient []byte
	toServer []byte
	withheld bool // output to the client waits for the server's next message
	// replyAt is where in the output to the client the reply to the server's message in hand begins, and ackAt that of
	// the first one that ended a transaction among the events.
	replyAt, ackAt int
	events         []session.Event
	tap            *twin.Tap // nil: nobody plays twins

	client, server frameReader
	row            *heldRow   // a long row of which not all has come; nil: none
	long           longOutput // goes to the client before toClient
	reserved       int        // of cfg.RowMemory, for an incomplete message of the server
	// misread says that the client's bytes are no messages any more: they are passed on.
	misread bool
	// dropping says that the rest of a long message of the server is not for the client.
	dropping bool
	// held is a message of the client's that waits for replies before it: nothing is taken of the client meanwhile.
	held       message
	describing bool // it waits for a description that isotap has asked for
	asking     bool // it waits for the answer to a question of isotap's own
	planning   bool // the planner is to be found before the next message
	listens    bool // the server may have notifications for the client at any time

	login
	planner      Planner // nil: nothing is planned
	settings     settings
	descriptions descriptionReader

	// What was sent, and is expected of it.
	pipeline    pipeline
	speculative speculativeTxn
	names       names
	ran         uint64 // how many texts and portals the client has sent to be run
	retry       retryBuffer
	resending   resend
	scripts     scriptVerdicts

	// What the replies have told. Of a Query behind which a question goes (behind.go), unshown is the description of
	// its rows, until these come, and unended the end of its result, until the transaction is committed.
	result           resultInProgress
	unshown, unended []byte
	seen             rowIdentities
	txn              transaction
	schema           schemaChanges
}

// NewSession returns a session that waits for the client's startup message.
func NewSession(cfg Config) *Session {
	s := &Session{cfg: cfg, names: names{speculative: newNamespace(), confirmed: newNamespace(), own: cfg.Own}}
	s.txn = transaction{session: cfg.ID, nextID: cfg.NextTxn, unrecorded: txnstate.NewUnrecorded(cfg.TxnMemory)}
	s.seen.of = &s.txn.unrecorded
	if cfg.Twin != nil {
		s.tap = &twin.Tap{}
	}
	s.clientLeg.local, s.serverLeg.local = cfg.ClientLocal, cfg.ServerLocal
	return s
}

// watches reports whether the session looks at its statements.
func (s *Session) watches() bool { return s.cfg.Planners != nil && !s.replication }

var errUnexpected = errors.New("unexpected message")

// Output returns the bytes to send to each side and forgets them. They are valid until the session is given
// bytes again, or asked for more. While a reply waits for the recording toClient is empty. There may be more output to
// the client until it is.
func (s *Session) Output() (toClient, toServer []byte) {
	toServer, s.toServer = s.toServer, txnstate.Reusable(s.toServer)
	if s.withheld {
		return nil, toServer
	}
	if toClient = s.long.next(); toClient == nil {
		s.tap.Sent(s.toClient)
		toClient, s.toClient = s.toClient, txnstate.Reusable(s.toClient)
	} else {
		s.tap.Lose()
	}
	return toClient, toServer
}

// Events returns what happened since the last call. The caller deals with all of it before it sends the Output
// that follows.
func (s *Session) Events() []session.Event {
	events := s.events
	s.events = nil
	return events
}

func (s *Session) note(format string, args ...any) {
	s.events = append(s.events, session.Event{Note: fmt.Sprintf(format, args...)})
}

// copyOn passes all bytes on from here on, and those first that are here already.
func (s *Session) copyOn() {
	s.phase = phaseCopy
	s.toServer = append(s.toServer, s.client.rest()...)
	s.toClient = append(s.toClient, s.server.rest()...)
}

// expect notes that a reply is to come.
func (s *Session) expect(x pendingReply) {
	x.sent = s.now
	if !x.own && s.resending.hidesReply() {
		x.silent = true
	}
	s.pipeline.add(x)
}

// sendSync sends a Sync of isotap's own.
func (s *Session) sendSync() {
	s.expect(pendingReply{kind: pendingSync, own: true, silent: true})
	s.toServer = appendMessage(s.toServer, msgSync)
}

// replyEnds takes the reply to the oldest message as complete.
func (s *Session) replyEnds() {
	if x := s.pipeline.head(); !x.own && !x.silent {
		s.retry.shown++
	}
	s.pipeline.pop()
	s.result = resultInProgress{}
}

// skip leaves out the replies up to the next Sync, after an error.
func (s *Session) skip() {
	s.result = resultInProgress{}
	if s.pipeline.skip() {
		s.names.unsure = true
	}
}

// forward sends a reply on to the client, if it is to see it.
func (s *Session) forward(x *pendingReply, m message) {
	s.server.passing = m.more
	if x == nil || !x.silent {
		s.toClient = append(s.toClient, m.raw...)
	} else {
		s.dropping = m.more > 0
	}
}

func unexpected(m message, x *pendingReply) error {
	if x == nil {
		return fmt.Errorf("%w (%q) from the server: nothing was asked", errUnexpected, m.kind)
	}
	return fmt.Errorf("%w (%q) from the server, in the reply %d", errUnexpected, m.kind, x.kind)
}

// withhold keeps the end of a statement's result back that may have ended a transaction, until the server's next
// message says so: the transaction is to be stored before the client hears of it. Only a Query ends one so; in the
// extended protocol the Sync does.
func (s *Session) withhold(x *pendingReply) {
	if s.cfg.Durable && x.kind == pendingQuery && !s.txn.block {
		s.withheld = true
	}
}

// release gives free what was withheld.
func (s *Session) release() { s.withheld = false }

// FromClient takes bytes that the client sent at now (nanoseconds since the run's start) and returns how many
// of them it used. The rest must be offered again once FromServer made progress. The bytes may be reused
// afterwards.
func (s *Session) FromClient(now int64, p []byte) (n int, err error) {
	s.now = now
	if s.planning {
		s.findPlanner()
	}
	for n < len(p) && s.wantsClient() {
		used, err := s.clientBytes(p[n:])
		n += used
		if err != nil {
			return n, fmt.Errorf("from client: %w", err)
		}
	}
	return n, nil
}

// wantsClient reports whether the session can take the client's next message.
func (s *Session) wantsClient() bool {
	switch s.phase {
	case phaseStartup, phaseAuth:
		return s.upgrade == session.NoLeg
	case phaseCopy:
		return true
	case phaseReady:
		return s.held.raw == nil
	}
	return false
}

// Turn returns whose turn it is. The other side can still speak.
func (s *Session) Turn() session.Turn {
	switch s.phase {
	case phaseStartup:
		return session.ClientTurn
	case phaseLeg, phaseAsk, phaseClosing:
		return session.ServerTurn
	case phaseReady:
		switch {
		case s.pipeline.due > 0 && !s.pipeline.copyIn.active() || s.held.raw != nil:
			return session.ServerTurn
		case !s.listens && !s.pipeline.copyIn.active():
			return session.ClientTurn
		}
		// Notifications come at any time, and so does the error that ends a COPY.
	}
	return session.EitherTurn
}

func (s *Session) clientBytes(p []byte) (int, error) {
	switch s.phase {
	case phaseCopy:
		s.toServer = append(s.toServer, p...)
		return len(p), nil
	case phaseStartup:
		return s.startupBytes(p)
	case phaseReady:
		return s.readyBytes(p)
	}
	m, used, err := s.client.next(p, loginLimit, never)
	if m.raw == nil || err != nil {
		return used, err
	}
	return used, s.authFromClient(m)
}

// FromServer takes bytes that the server sent at now. It uses all of them; they may be reused afterwards. An
// error means that the replies cannot be followed: close both sides.
func (s *Session) FromServer(now int64, p []byte) error {
	s.now = now
	for len(p) > 0 {
		used, err := s.serverBytes(p)
		if err != nil {
			return fmt.Errorf("from server: %w", err)
		}
		p = p[used:]
	}
	return nil
}

func (s *Session) serverBytes(p []byte) (int, error) {
	if s.upgrade == session.ServerAgain {
		return len(p), nil // of a connection that is given up
	}
	switch s.phase {
	case phaseCopy:
		s.toClient = append(s.toClient, p...)
		return len(p), nil
	case phaseLeg:
		s.legFromServer(p)
		return len(p), nil
	case phaseCancel, phaseClosed:
		return len(p), nil
	case phaseAuth:
		m, used, err := s.server.next(p, serverLoginLimit, never)
		if m.raw == nil || err != nil {
			return used, err
		}
		return used, s.authFromServer(m)
	case phaseAsk, phaseReady, phaseClosing:
		return s.replyBytes(p)
	}
	return 0, fmt.Errorf("%w from the server (%q)", errUnexpected, p[0])
}

// Copying reports whether bytes may be copied from now on without the session.
func (s *Session) Copying() bool { return s.phase == phaseCopy }

// LoggedIn reports whether the client's login is over.
func (s *Session) LoggedIn() bool { return s.phase > phaseAsk }

// InTransaction reports whether the server has a transaction open for the client, or a reply is due.
func (s *Session) InTransaction() bool {
	return s.phase == phaseReady && (s.txn.status != txnIdle || !s.pipeline.idle() || s.held.raw != nil)
}

// Unread reports whether Idle has something to do, which is never so: what a statement did is known with its reply.
func (s *Session) Unread() bool { return false }

// Idle tells the session that nothing has come from either side for a while.
func (s *Session) Idle(now int64) { s.now = now }

// Dismiss tells the client that its connection ends now, as a server does that shuts down.
func (s *Session) Dismiss(now int64) {
	s.now = now
	switch s.phase {
	case phaseLeg, phaseAuth, phaseAsk:
		s.turnAway(sqlstateCannotConnectNow, "the database system is shutting down", "")
	case phaseReady:
		s.toClient = append(s.toClient, fatal(sqlstateAdminShutdown,
			"terminating connection due to administrator command", "")...)
		s.close()
	}
}

// ClientClosed tells the session that the client will send nothing more. Replies that are to come are
// still read; when they have come, [Session.Done] says so.
func (s *Session) ClientClosed(now int64) {
	s.now = now
	switch {
	case s.phase >= phaseClosing:
	case s.phase == phaseCancel: // the server takes note of it, and closes
	case s.phase == phaseReady && (s.pipeline.due > 0 || s.held.raw != nil) && !s.pipeline.copyIn.active():
		s.phase = phaseClosing
	default:
		s.close()
	}
}

// ServerClosed tells the session that the server is gone. Transactions that it may or may not have committed
// become indeterminate. The client sees its connection end, as it would without isotap; words come from the server
// alone, but for where isotap must begin TLS on its own account, of which the client knows nothing.
func (s *Session) ServerClosed(now int64) {
	s.now = now
	if s.phase == phaseLeg && s.cfg.ServerTLS == session.MustTLS {
		s.turnAway(sqlstateConnectionFailure, "isotap lost its connection to the server during the login", "")
	}
	if s.phase != phaseClosed {
		s.release()
		s.close()
	}
}

// Done reports whether the session has nothing more to do: close both sides once the output is sent.
func (s *Session) Done() bool { return s.phase == phaseClosed }
