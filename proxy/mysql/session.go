// Package mysql is the MySQL protocol as isotap speaks it between a client and a server of the MySQL family: a state
// machine for one connection, without a socket, a goroutine or a clock.
//
// A [Session] is given the bytes that either side sent and answers with the bytes to send to either side and with the
// [session.Event]s to record. The server's greeting and the authentication are relayed, so the proxy needs no user list
// and keeps no password; TLS ends at the session, which says when a leg begins it. Afterwards each command of the
// client becomes a short queue of exchanges with the server: isotap's own before it (ask for the session's settings,
// read the captured entries), the statement itself, and isotap's own after it (ask whether an error ended the
// transaction, read again what the statement did not show). Every exchange knows how to read its reply, and which part
// of it the client sees. Commands of one client are answered one after the other, as the protocol has it; what a client
// sends before that waits.
//
// The files follow a statement's way. In the first list are those in which the session acts; it owns the parts in the
// second, each of which keeps one thing, and knows nothing of the session.
//
//   - session.go is given bytes and gives them, stream.go has them cut into packets and passes on what is too
//     large to keep.
//   - login.go relays the greeting and the authentication, and has either leg begin TLS.
//   - command.go takes the client's commands and decides with the plan what is sent, statement by statement where
//     one text has several. prepare.go prepares statements, and variants of them that the client does not see;
//     execute.go executes them.
//   - exchange.go has what was sent and waits for its reply, relay.go passes replies on to the client.
//   - finish.go takes a statement's end stage by stage, own.go has the queries that isotap adds, ending.go what
//     becomes of all when a side is gone.
//
// The parts:
//
//   - auth.go takes passwords between connections of which only one is safe.
//   - settings.go has what the session's statements are read under, prepared.go the prepared statements, params.go
//     their parameters, multi.go a text of several statements.
//   - pending.go has the commands whose replies are due and how far these have come, identities.go takes the identities
//     out of rows, mask.go isotap's columns.
//   - txn.go is the record of a statement and the transaction that it belongs to, writes.go compares what it collected
//     with what the server counted, captures.go has who waits for what was collected.
//   - diagnostics.go has what the client may still ask about its last statement: ROW_COUNT(), FOUND_ROWS(), SHOW
//     WARNINGS.
//   - packet.go cuts bytes into packets, reads and writes what is in these, value.go the values of rows and parameters.
//     compress.go opens what a client and a server compress, below the session.
//
// Sources: the MySQL client/server protocol as documented in the MySQL Server Doxygen documentation and in MariaDB's
// Knowledge Base ("Client/Server Protocol").
package mysql

import (
	"crypto/rsa"
	"fmt"
	"net"
	"weak"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/proxy/txnstate"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// A Planner makes the plan of a statement's text, usually out of a cache. The text belongs to the
// caller and must not be kept.
type Planner interface {
	Plan(text []byte, s sqlmysql.Session) *sqlmysql.Plan
	// TooLarge takes note that a statement of the plan's kind reads too many rows to collect their
	// identities in its reply, and IsTooLarge asks for that.
	TooLarge(shape string)
	IsTooLarge(shape string) bool
	// Misplanned takes note that a statement of the plan's shape has shown columns of isotap's that the plan does not
	// know of, and reports whether it is the first that is told of; IsMisplanned asks for that.
	Misplanned(shape string) bool
	IsMisplanned(shape string) bool
}

// Config is what a Session needs of the world around it.
type Config struct {
	session.Options
	// Planner is nil for a session that only passes on: nothing is rewritten, nothing recorded.
	Planner Planner
	// Durable holds the reply that ends a transaction back until everything the transaction wrote is
	// known, so that the caller can store it first (durability: commit).
	Durable bool
	// AsksConflicts says that the server has the session settings that history.Conflicts rests on: MariaDB's
	// innodb_snapshot_isolation, TiDB's tidb_txn_mode and tidb_disable_txn_auto_retry.
	AsksConflicts bool
	// Predicates says that the planner's plans have predicates and collect images.
	Predicates bool
	// ClientTLS and ServerTLS say which leg is encrypted.
	ClientTLS, ServerTLS session.TLSUse
	// Key gives the key pair that clients encrypt their passwords for where the leg to the server is the
	// safe one.
	Key func() (*rsa.PrivateKey, error)
}

// phase is where a session stands in the protocol.
type phase uint8

const (
	phaseGreeting phase = iota // the server's greeting has not come yet
	phaseLogin                 // the client's answer to it has not come yet
	phaseAuth                  // authentication goes back and forth until OK or ERR
	phaseCommand               // commands and replies
	phaseInfile                // the client streams a file that the server asked for
	phaseCopy                  // bytes are copied; nothing is parsed any more
	phaseClosing               // the client is gone; the last exchanges finish
	phaseClosed
)

// Session is the state machine of one client connection. It is not safe for concurrent use.
//
// At most one command of the client is under way: in command while it waits for exchanges of isotap's own, then in
// pending. The next is taken when both are empty, see wantsClient. A session that only passes on (no Planner) has no
// transaction and no captures.
type Session struct {
	cfg   Config
	phase phase
	now   int64 // when the call that is under way was made

	// The connections, as the login has settled them. Until phaseCommand all of it may change.

	legs
	upgrade  session.Leg // that is to begin TLS; no packet is taken of either before Upgraded
	auth     auth
	loggedIn bool
	caps     uint32 // as both sides agreed
	// compresses says that the client asked for compression that it was not offered. Most go on without;
	// PHP's mysqlnd compresses all the same.
	compresses bool
	// What the server's greeting says it is.
	dialect sqlmysql.Dialect
	version uint32

	// What has come, up to less than a packet, and what is passed on before it has come whole.

	clientPackets, serverPackets packetReader
	upload                       upload
	row                          rowStream

	// What goes out with the next Output.

	toClient []byte
	toServer []byte
	holding  bool // output to the client waits for the recording
	// holdingHead says that output to the client waits until it is known which columns of a result are isotap's: where
	// the result's head begins in it, the first exchange's mask has.
	holdingHead bool
	final       finalPacket
	events      []session.Event

	// The commands under way.

	command []byte          // the client's command that waits for exchanges before it
	multi   *multiStatement // nil but for a text of several statements
	pending pending
	// resumed is a statement whose rewritten form was refused: command is its execution, which is to run again.
	resumed *observed
	// identities are of the statement in flight; each statement's end makes them ready for the next.
	identities rowIdentities
	scratch    []byte // the command or the row being built; valid until the next
	original   []byte // the client's own form of the rewritten command in flight
	// lastError is an error that ends the connection, and that an exchange got which the client does not know of.
	// Any other reply clears it.
	lastError []byte

	// What is known of the session.

	settings   settings
	txn        transaction
	captures   captures
	counts     counts
	conditions conditions
	prepared   preparedStatements
	// refused holds why the server did not take plans as rewritten. Those that the planner has let go come no more:
	// they are not kept for this.
	refused map[weak.Pointer[sqlmysql.Plan]]history.Reason
}

// NewSession returns a session that waits for the server's greeting.
func NewSession(cfg Config) *Session {
	s := &Session{cfg: cfg, prepared: newPreparedStatements(),
		txn: newTransaction(cfg.Options), auth: auth{key: cfg.Key},
		legs: legs{client: leg{seq: 0xff, local: cfg.ClientLocal}, server: leg{local: cfg.ServerLocal}}}
	s.identities.of = &s.txn.unrecorded
	return s
}

// watches reports whether the session looks at its statements.
func (s *Session) watches() bool { return s.cfg.Planner != nil }

// FromClient takes bytes that the client sent at now (nanoseconds since the run's start) and returns
// how many of them it used. The rest must be offered again once FromServer made progress: the
// session answers one command before it takes the next. The bytes may be reused afterwards.
func (s *Session) FromClient(now int64, p []byte) (n int, err error) {
	s.now = now
	for n < len(p) && s.wantsClient() {
		used, err := s.clientBytes(p[n:])
		n += used
		if err != nil {
			return n, fmt.Errorf("from client: %w", err)
		}
	}
	return n, nil
}

// wantsClient reports whether the session can take the client's next packet.
func (s *Session) wantsClient() bool {
	switch s.phase {
	case phaseLogin:
		return s.upgrade == session.NoLeg
	case phaseAuth, phaseInfile, phaseCopy:
		return true
	case phaseCommand:
		return s.upload.open || s.command == nil && s.pending.none()
	}
	return false
}

// Turn returns whose turn it is. The other side can still end the connection, and the server say why.
func (s *Session) Turn() session.Turn {
	switch s.phase {
	case phaseGreeting, phaseClosing:
		return session.ServerTurn
	case phaseLogin, phaseInfile:
		return session.ClientTurn
	case phaseCommand:
		if s.wantsClient() {
			return session.ClientTurn
		}
		return session.ServerTurn
	}
	return session.EitherTurn
}

// FromServer takes bytes that the server sent at now. It uses all of them; they may be reused
// afterwards. An error means that the reply cannot be followed: close both sides.
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

// Output returns the bytes to send to each side and forgets them. They are valid until the session is
// given bytes again. While a reply waits for the recording toClient is empty.
func (s *Session) Output() (toClient, toServer []byte) {
	toServer, s.toServer = s.toServer, txnstate.Reusable(s.toServer)
	if !s.holding && !s.holdingHead {
		toClient, s.toClient = s.toClient, txnstate.Reusable(s.toClient)
		s.final = finalPacket{}
	}
	return toClient, toServer
}

// Events returns what happened since the last call. The caller deals with all of it before it sends
// the Output that follows.
func (s *Session) Events() []session.Event {
	events := s.events
	s.events = nil
	return events
}

func (s *Session) note(format string, args ...any) {
	s.events = append(s.events, session.Event{Note: fmt.Sprintf(format, args...)})
}

// Idle tells the session that nothing has come from either side for a while: entries that an
// autocommitted write left behind are read now.
func (s *Session) Idle(now int64) {
	s.now = now
	if s.phase == phaseCommand && s.wantsClient() && len(s.clientPackets.packet) == 0 {
		if len(s.captures.unread) > 0 {
			s.keepConditions()
		}
		s.readCaptures()
	}
}

// Dismiss says nothing to the client: a server that shuts down just hangs up on those who are idle.
func (s *Session) Dismiss(now int64) { s.now = now }

// ClientClosed tells the session that the client will send nothing more. Exchanges in flight go on;
// when they are done, and the last captured entries are read, [Session.Done] says so.
func (s *Session) ClientClosed(now int64) {
	s.now = now
	switch s.phase {
	case phaseClosing, phaseClosed:
		return
	case phaseCommand:
	default:
		s.lostServer() // a file that is not sent to its end, say: the server will not answer
		s.phase = phaseClosed
		return
	}
	s.phase = phaseClosing
	s.command = nil
	if s.pending.none() {
		s.close()
	}
}

// ServerClosed tells the session that the server is gone. Transactions that it may or may not have
// committed become indeterminate.
func (s *Session) ServerClosed(now int64) {
	s.now = now
	if s.phase != phaseClosed {
		s.dropHead()
		s.passLastError()
		s.lostServer()
		s.phase = phaseClosed
	}
}

// Done reports whether the session has nothing more to do: close both sides once the output is sent.
func (s *Session) Done() bool { return s.phase == phaseClosed }

// InTransaction reports whether the server has a transaction open for the client, or a reply is due.
func (s *Session) InTransaction() bool { return s.txn.inTrans || !s.pending.none() }

// Unread reports whether entries of ended transactions wait to be read: call [Session.Idle] when the
// client stays quiet.
func (s *Session) Unread() bool { return len(s.captures.ended) > 0 && s.pending.none() }

// Compressed returns a leg of the session's as it is spoken over from now on, nil where it goes on as it is: before the
// end of the login, or where compression was not agreed on.
func (s *Session) Compressed(leg session.Leg, c net.Conn) net.Conn {
	if !s.loggedIn || s.caps&compressionCaps == 0 {
		return nil
	}
	// A client that asks for both gets zlib.
	return NewCompressed(c, s.caps&gomysql.CLIENT_COMPRESS == 0, leg == session.ServerLeg)
}

// Copying reports whether the session only passes bytes on from now on: the caller may do so itself, once it
// has sent the Output.
func (s *Session) Copying() bool { return s.phase == phaseCopy && s.equallySafe() }

// Upgrade returns which leg is to begin TLS: the caller sends the Output, does the handshake and calls
// [Session.Upgraded]. Bytes of the client that the session has not taken by then belong to TLS.
func (s *Session) Upgrade() session.Leg { return s.upgrade }

// LoggedIn reports whether the client's first login is over.
func (s *Session) LoggedIn() bool { return s.loggedIn }
