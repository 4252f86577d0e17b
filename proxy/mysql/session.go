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
//   - session.go is given bytes and gives them. It has them cut into packets, and passes on what is too large to keep.
//   - login.go relays the greeting and the authentication, and has either leg begin TLS.
//   - command.go takes the client's commands and decides with the plan what is sent, statement by statement where
//     one text has several. prepare.go prepares statements, and variants of them that the client does not see;
//     execute.go executes them.
//   - exchange.go has what was sent, the commands whose replies are due and how far these have come. relay.go passes
//     replies on to the client: mask.go keeps isotap's columns out of results, describing.go out of what describes
//     tables.
//   - completion.go takes a statement's end stage by stage, retry.go runs the original of one that was refused; twin.go
//     tells of both to who plays the transaction once more.
//   - questions.go has the queries that isotap adds, ending.go what becomes of all when a side is gone.
//
// The parts:
//
//   - auth.go takes passwords between connections of which only one is safe.
//   - settings.go has what the session's statements are read under, prepared.go the prepared statements, params.go
//     their parameters, multi.go a text of several statements.
//   - identities.go takes the identities out of rows, row.go the visible part out of binary ones.
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
	"github.com/isotap/isotap/proxy/twin"
	"github.com/isotap/isotap/proxy/txnstate"
	"github.com/isotap/isotap/rewrite"
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
	// SubqueriesTooLarge and AreSubqueriesTooLarge are likewise about what the statement's subqueries read.
	SubqueriesTooLarge(shape string)
	AreSubqueriesTooLarge(shape string) bool
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
	// Prepared are the branches (XA) that were prepared and have left the sessions of this server. Nil: what becomes of
	// these is not known.
	Prepared *txnstate.Prepared
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
	// What the server's greeting says it is, and its number for the connection.
	dialect    sqlmysql.Dialect
	version    uint32
	connection uint32
	// What the client has logged in with.
	user      string
	collation byte

	// What has come, up to less than a packet, and what is passed on before it has come whole.

	clientPackets, serverPackets packetReader
	upload                       upload

	// postponed is a question that waits for the client's next command: the server has sent an error behind which it
	// may close the connection. nil where there is none.
	postponed *transactionQuestion

	row rowStream
	// reserved is how much of cfg.RowMemory the packets take of a row that has not come whole.
	reserved int

	// What goes out with the next Output.

	toClient []byte
	toServer []byte
	tap      *twin.Tap // nil: nobody plays twins
	holding  bool      // output to the client waits for the recording
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
	resumed *pendingStatement
	// identities are of the statement in flight; each statement's end makes them ready for the next.
	identities rowIdentities
	scratch    []byte // the command or the row being built; valid until the next
	original   []byte // the client's own form of the rewritten command in flight
	// lastError is an error that ends the connection, and that an exchange got which the client does not know of.
	// Any other reply clears it.
	lastError []byte
	// farewell says that the client has got such an error as its last reply: the server closes the connection.
	farewell bool

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
	if cfg.Twin != nil {
		s.tap = &twin.Tap{}
	}
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
// given bytes again. While a reply waits for the recording, or
// the head of a result for the rest of its head, toClient is empty.
func (s *Session) Output() (toClient, toServer []byte) {
	toServer, s.toServer = s.toServer, txnstate.Reusable(s.toServer)
	if !s.holding && !s.holdingHead {
		s.tap.Sent(s.toClient)
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
	if s.phase == phaseCommand && s.wantsClient() && len(s.clientPackets.packet) == 0 && !s.farewell {
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
	s.dropRow()
}

// Done reports whether the session has nothing more to do: close both sides once the output is sent.
func (s *Session) Done() bool { return s.phase == phaseClosed }

// InTransaction reports whether the server has a transaction open for the client, or a reply is due.
func (s *Session) InTransaction() bool { return s.txn.inTrans || !s.pending.none() }

// Unread reports whether entries of ended transactions wait to be read: call [Session.Idle] when the
// client stays quiet.
func (s *Session) Unread() bool { return len(s.captures.ended) > 0 && s.pending.none() && !s.farewell }

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

// clientBytes takes one packet out of p, or what there is of it.
func (s *Session) clientBytes(p []byte) (int, error) {
	switch {
	case s.phase == phaseCopy && s.equallySafe():
		s.toServer = append(s.toServer, p...)
		return len(p), nil
	case s.phase == phaseCopy:
		return s.passCopy(p), nil
	case s.phase == phaseInfile:
		return s.passFile(p), nil
	case s.upload.open:
		return s.passRest(p), nil
	}
	if !s.admits(p) {
		return len(p), nil
	}
	packet, used := s.clientPackets.next(p)
	if packet == nil {
		return used, nil
	}
	payload, whole := s.clientPackets.join(packet)
	if !whole {
		if s.phase == phaseCommand && len(s.clientPackets.payload) == longCommand {
			s.beginLong()
		}
		return used, nil
	}
	return used, s.clientPacket(firstSeq(packet, payload), payload)
}

func (s *Session) serverBytes(p []byte) (int, error) {
	if s.phase == phaseClosed {
		return len(p), nil
	}
	if s.phase == phaseCopy {
		s.toClient = append(s.toClient, p...)
		return len(p), nil
	}
	if s.row.open() {
		var n int
		s.toClient, n = s.row.pass(p, &s.serverPackets, s.toClient)
		return n, nil
	}
	if !s.serverPackets.midway() {
		if n := s.passRows(p); n > 0 {
			return n, nil
		}
	}
	packet, used := s.serverPackets.next(p)
	if packet == nil {
		return used, nil
	}
	payload, whole := s.serverPackets.join(packet)
	if !s.reserveRow() {
		s.refuseRow(packet)
		return used, nil
	}
	if !whole {
		return used, s.bounded()
	}
	return used, s.serverPacket(firstSeq(packet, payload), payload)
}

func (s *Session) serverPacket(seq byte, payload []byte) error {
	if len(payload) == 0 && s.phase != phaseAuth {
		return fmt.Errorf("%w: an empty one", errMalformed)
	}
	switch s.phase {
	case phaseGreeting:
		return s.greeting(seq, payload)
	case phaseLogin:
		return s.beforeLogin(seq, payload)
	case phaseAuth:
		return s.authFromServer(seq, payload)
	case phaseCommand, phaseClosing, phaseInfile:
		return s.replyPacket(seq, payload)
	}
	return fmt.Errorf("%w from the server (it begins with 0x%02x)", errUnexpected, payload[0])
}

func (s *Session) clientPacket(seq byte, payload []byte) error {
	switch s.phase {
	case phaseLogin:
		return s.login(seq, payload)
	case phaseAuth:
		return s.authFromClient(seq, payload)
	case phaseCommand:
		return s.clientCommand(seq, payload)
	}
	return fmt.Errorf("%w from the client", errUnexpected)
}

// passRows passes rows on that need no trimming, as many as p holds and the beginning of the next,
// and returns how many bytes of p they were.
func (s *Session) passRows(p []byte) int {
	x := s.pending.first()
	if x == nil || !x.passesRows() {
		return 0
	}
	n := 0
	for len(p)-n > headerBytes && !s.row.long {
		size := payloadLen(p[n:])
		if endsRows(p[n+headerBytes], size, s.caps) {
			break
		}
		x.rows++
		s.row.long = size == maxPayload
		whole := headerBytes + size
		if whole > len(p)-n {
			s.row.left = whole - (len(p) - n)
			n = len(p)
			break
		}
		n += whole
	}
	s.toClient = append(s.toClient, p[:n]...)
	return n
}

// passFile passes a file on that the server asked for. An empty payload ends it.
func (s *Session) passFile(p []byte) int {
	var n int
	var ended bool
	s.toServer, n, ended = s.upload.pass(p, &s.clientPackets, s.toServer)
	if ended && s.upload.size == 0 {
		s.phase = phaseCommand
	}
	return n
}

// passRest passes the rest of a long command on.
func (s *Session) passRest(p []byte) int {
	var n int
	var ended bool
	s.toServer, n, ended = s.upload.pass(p, &s.clientPackets, s.toServer)
	if ended {
		s.upload = upload{}
	}
	return n
}

// tooLong is the plan for a statement that is not kept in memory whole. It may be anything.
var tooLong = &sqlmysql.Plan{Statement: rewrite.Statement{Observation: history.Opaque, Reason: history.ReasonTooLong},
	Txn: sqlmysql.TxnEffect{Ends: true}, Session: sqlmysql.SessionEffect{Changes: true},
	Schema: sqlmysql.SchemaEffect{Changes: true}}

// beginLong passes on what has come of a command that grows long, if it can go on without being
// looked at further. What has come is whole packets.
func (s *Session) beginLong() {
	parts := s.clientPackets.payload
	if parts[0] == gomysql.COM_STMT_SEND_LONG_DATA {
		if !s.addressLongData(parts) {
			return
		}
	} else {
		x := s.passedLong(parts)
		if x == nil {
			return
		}
		s.pending.add(x)
	}
	for seq := byte(0); len(parts) > 0; seq++ {
		s.toServer = append(s.toServer, 0xff, 0xff, 0xff, seq)
		s.toServer = append(s.toServer, parts[:maxPayload]...)
		parts = parts[maxPayload:]
	}
	s.clientPackets.payload = nil
	s.upload = upload{open: true, long: true}
}

// passedLong returns the exchange of a long command whose payload begins with parts, if it can go to the server
// without being looked at further; nil where it cannot.
func (s *Session) passedLong(parts []byte) *exchange {
	switch parts[0] {
	case gomysql.COM_QUERY:
		plan := tooLong
		if !s.watches() {
			plan = passedOn
		}
		s.beforeStatement(plan)
		return s.statement(s.txn.observe(plan, &s.settings, s.now))
	case gomysql.COM_STMT_EXECUTE:
		if s.watches() {
			return nil
		}
		x := s.statement(s.txn.observe(passedOn, &s.settings, s.now))
		x.binary, x.cursor = true, parts[5] != 0
		return x
	case gomysql.COM_STMT_PREPARE:
		if s.watches() {
			return nil
		}
		return &exchange{visible: true, prepared: &prepared{plan: passedOn},
			grammar: prepareReply, purpose: preparePurpose}
	}
	return nil
}

// passCopy passes bytes of a session on that is not followed any more. Where only one leg is safe, a
// change of user cannot be let through: its password could go where it must not.
func (s *Session) passCopy(p []byte) int {
	u := &s.upload
	if u.left > 0 {
		n := min(u.left, len(p))
		s.toServer = append(s.toServer, p[:n]...)
		u.left -= n
		return n
	}
	need := headerBytes
	if len(s.clientPackets.packet) >= headerBytes {
		need++
	}
	n := min(need-len(s.clientPackets.packet), len(p))
	s.clientPackets.packet = append(s.clientPackets.packet, p[:n]...)
	if len(s.clientPackets.packet) < headerBytes || len(s.clientPackets.packet) == headerBytes &&
		payloadLen(s.clientPackets.packet) > 0 {
		return n
	}
	begins := s.clientPackets.packet[3] == 0 && u.seq != 0xff // and not a file's or a long command's packet number 256
	u.seq = s.clientPackets.packet[3]
	if begins && len(s.clientPackets.packet) > headerBytes &&
		s.clientPackets.packet[headerBytes] == gomysql.COM_CHANGE_USER {
		s.client.seq = 0
		s.turnAway(gomysql.ER_NOT_SUPPORTED_AUTH_MODE, sqlstateConnectionRejected,
			"isotap cannot change the user of a session that it does not follow any more "+
				"where only one of its connections is encrypted: connect anew")
		return n
	}
	u.left = headerBytes + payloadLen(s.clientPackets.packet) - len(s.clientPackets.packet)
	s.toServer = append(s.toServer, s.clientPackets.packet...)
	s.clientPackets.packet = s.clientPackets.packet[:0]
	return n
}

// equallySafe reports whether passwords are as safe on one leg as on the other.
func (s *Session) equallySafe() bool {
	return s.client.tls == s.server.tls && s.client.local == s.server.local
}

// tooLarge is what a server says to a packet of more than max_allowed_packet bytes. It then ends the session.
var tooLarge = serverError{gomysql.ER_NET_PACKET_TOO_LARGE, sqlstateCommunicationLink,
	"Got a packet bigger than 'max_allowed_packet' bytes"}

// admits reports whether the client's next packet, of which p holds the rest of the header, may be kept. One that may
// not ends the session as it ends on a server: with an error, when it would have been read.
func (s *Session) admits(p []byte) bool {
	var header [headerBytes]byte
	n := copy(header[:], s.clientPackets.packet)
	if n == headerBytes || n+len(p) < headerBytes {
		return true
	}
	copy(header[n:], p)
	if len(s.clientPackets.payload)+payloadLen(header[:]) < s.clientLimit() {
		return true
	}
	s.client.seq = header[3]
	if s.phase == phaseCommand {
		s.lostServer()
	}
	s.sendClient(appendErr(nil, tooLarge))
	s.forgetSecrets()
	s.phase = phaseClosed
	return false
}

// clientLimit returns below how many bytes the payload must stay that the client is sending.
func (s *Session) clientLimit() int {
	switch {
	case s.phase != phaseCommand:
		return maxLogin
	case len(s.clientPackets.payload) == 0:
		return maxPayload + 1
	}
	switch s.clientPackets.payload[0] {
	case gomysql.COM_STMT_EXECUTE, gomysql.COM_STMT_PREPARE, gomysql.COM_STMT_SEND_LONG_DATA: // isotap may change them
		if s.settings.known && s.settings.env.MaxPacket > 0 {
			return s.settings.env.MaxPacket
		}
		return assumedPacket
	}
	return longCommand
}

// bounded returns an error when the payload that the server is sending grows beyond what any server may send.
func (s *Session) bounded() error {
	limit := maxReply
	if s.phase < phaseCommand {
		limit = maxLogin
	}
	if len(s.serverPackets.payload) > limit {
		return fmt.Errorf("%w: a payload of more than %d bytes", errMalformed, limit)
	}
	return nil
}

// reserveRow counts what has come of a row of several packets that isotap must look at, and reports whether there is
// room for it.
func (s *Session) reserveRow() bool {
	return s.cfg.RowMemory.Resize(&s.reserved, len(s.serverPackets.payload))
}

// refuseRow ends the session, as there is no room for a row of which a packet has come: the client has had nothing of
// it.
func (s *Session) refuseRow(packet []byte) {
	seq := firstSeq(packet, s.serverPackets.payload) + 1
	if x := s.pending.first(); x != nil && x.renumber {
		seq = x.seq
	}
	s.dropHead()
	s.lostServer()
	s.toClient, _ = appendPacket(s.toClient, seq, appendErr(nil, noRoom))
	s.dropRow()
	s.phase = phaseClosed
}

// noRoom is what a client hears for whose row there is no room.
var noRoom = serverError{gomysql.ER_OUT_OF_RESOURCES, sqlstateGeneral, "isotap has no room for a row this long: what it " +
	"holds of long rows is bounded for all clients together (max_row_memory)"}

// dropRow lets go of a row that has not come whole.
func (s *Session) dropRow() {
	s.serverPackets = packetReader{}
	s.reserveRow()
}

// What a session keeps in memory of what either side sends. docs/operating.md has the table of all bounds.
const (
	// maxLogin is the longest packet of a login, in bytes. Attributes and the answers of plug-ins have at most
	// 64 KiB each. A server takes as much as its max_allowed_packet from whoever connects.
	maxLogin = 256 << 10
	// longCommand is how much of a command that can be passed on unread is kept: one packet.
	longCommand = maxPayload
	// assumedPacket stands in for a max_allowed_packet that is not known: MySQL's default.
	assumedPacket = 64 << 20
	// maxReply is the longest payload of the server: the largest max_allowed_packet that there is.
	maxReply = 1 << 30
)
