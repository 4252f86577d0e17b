package postgres

import (
	"fmt"

	"github.com/isotap/isotap/history"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// owedKind is what kind of message of the client's the server owes a reply for.
type owedKind uint8

const (
	owesQuery     owedKind = iota // Query: the statements' results, then ReadyForQuery
	owesCall                      // FunctionCall: FunctionCallResponse, then ReadyForQuery
	owesParse                     // ParseComplete
	owesBind                      // BindComplete
	owesStatement                 // Describe of a statement: ParameterDescription, then as of a portal
	owesPortal                    // Describe of a portal: RowDescription or NoData
	owesExecute                   // rows, then CommandComplete, PortalSuspended or EmptyQueryResponse
	owesClose                     // CloseComplete
	owesSync                      // ReadyForQuery
)

// An owed is the reply that the server owes for one message. The queue of them is answered in order, but for
// the rest of a segment that an error leaves out.
type owed struct {
	kind owedKind
	sent int64
	// silent says that the client gets nothing of the reply: the message is isotap's own, or the client has
	// had the reply before.
	silent bool
	// own says that the client did not send the message.
	own bool
	// name is that of the statement (owesParse, owesStatement, owesClose) or portal.
	name string
	// closes is what Close names.
	closes objectKind
	// statement is what owesParse makes, or what owesBind takes to stand under the name from; portal is what
	// owesBind makes.
	statement *statement
	// of is the client's statement beside which owesParse makes one of isotap's own.
	of     *statement
	from   string
	portal *portal
	// form is the text that owesQuery runs, and at which of its statements the reply is; and what owesStatement
	// describes where it is not what stands under the name.
	form *form
	at   int
	// copies is how many ends of data the client had sent before the message.
	copies int
	// halted is why the server was not sent what the client wrote, but something that it refuses; nil: it was.
	halted error
	// answer takes the rows of isotap's own question; nil for everything else.
	answer *answer
}

// A form is a text as it went upstream.
type form struct {
	script    *sqlpostgres.Script // nil: nothing is known of the text
	rewritten bool                // the script's pieces went upstream, not the client's text
	reason    history.Reason      // why they did not, where they would have been there
	namesOurs bool                // the text may name a column of isotap's
	bare      bool                // the client's text went, for the server has refused the plain one
	// runs is the prepared statement of isotap's own that an EXECUTE runs, and instead the one that the client named.
	runs, instead string
}

// upstream is the script whose pieces went upstream; nil where the client's own text did.
func (f *form) upstream() *sqlpostgres.Script {
	switch {
	case f.script == nil, f.bare:
		return nil
	case f.rewritten:
		return f.script
	}
	return f.script.Plain
}

// maxOwed bounds the replies that may be owed before the client must wait. The server sends what fills its
// own buffer of 8 KiB without being asked, so that some of so many replies are on their way.
const maxOwed = 1 << 14

// maxRoom bounds the room for replies that is kept while none is owed.
const maxRoom = 32

// owe notes that the server owes a reply.
func (s *Session) owe(x owed) {
	x.sent, x.copies = s.now, s.copiesSent
	if !x.own && s.replay.shown > 0 {
		x.silent = true
		s.replay.shown--
	}
	if len(s.queue) == 0 {
		s.queue = s.room[:0]
	}
	s.queue = append(s.queue, x)
	if grown := cap(s.queue); grown > cap(s.room) && grown <= maxRoom {
		s.room = s.queue
	}
	switch x.kind {
	case owesQuery, owesCall, owesSync:
		s.due = len(s.queue)
	}
}

// oweSync sends a Sync of isotap's own.
func (s *Session) oweSync() {
	s.owe(owed{kind: owesSync, own: true, silent: true})
	s.toServer = appendMessage(s.toServer, msgSync)
}

// head is the reply that the server's next message belongs to; nil when it owes none. It is gone once it is settled.
func (s *Session) head() *owed {
	if len(s.queue) == 0 {
		return nil
	}
	return &s.queue[0]
}

// settled takes the head off the queue.
func (s *Session) settled() {
	if x := s.head(); !x.own && !x.silent {
		s.segment.shown++
	}
	s.queue[0] = owed{}
	if s.queue = s.queue[1:]; len(s.queue) == 0 {
		s.queue = nil
	}
	s.due = max(s.due-1, 0)
	s.current = current{}
}

// skip leaves out the replies up to the next Sync, after an error: the server skips these messages. If the
// client has not sent the Sync yet, it will skip what comes.
func (s *Session) skip() {
	s.current = current{}
	for i := range s.queue {
		if s.queue[i].kind == owesSync {
			s.drop(i)
			return
		}
	}
	s.drop(len(s.queue))
	s.skipping = true
}

// drop takes the first n replies off the queue, as they never come.
func (s *Session) drop(n int) {
	if n > 0 {
		s.names.unsure = true
	}
	for i := range s.queue[:n] {
		if x := &s.queue[i]; x.of != nil {
			x.of.forget(x.name)
		}
	}
	clear(s.queue[:n])
	s.queue = s.queue[n:]
	s.due = max(s.due-n, 0)
}

// forward sends a reply on to the client, if it is to see it.
func (s *Session) forward(x *owed, m message) {
	s.server.passing = m.more
	if x == nil || !x.silent {
		s.toClient = append(s.toClient, m.raw...)
	} else {
		s.dropping = m.more > 0
	}
}

func unexpected(m message, x *owed) error {
	if x == nil {
		return fmt.Errorf("%w (%q) from the server: nothing was asked", errUnexpected, m.kind)
	}
	return fmt.Errorf("%w (%q) from the server, in the reply %d", errUnexpected, m.kind, x.kind)
}
