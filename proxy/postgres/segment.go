package postgres

import (
	"strings"
	"weak"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/proxy/txnstate"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A retryBuffer is what the client sends up to a ReadyForQuery: a Query, or the messages up to a Sync. Outside of
// a transaction block it is a transaction of its own. It is kept as the client sent it while it may have to be
// sent again: the server may refuse what isotap made of a text, for a reason that the original does not have.
type retryBuffer struct {
	open bool // messages were sent, and no Sync yet
	// kept holds the client's messages, as long as keeping.
	kept    []byte
	keeping bool
	// tried says that something is sent as rewritten that the server has not taken before.
	tried bool
	// ran says that a statement has begun to give its result.
	ran     bool
	shown   int      // replies that the client has had
	notices []uint64 // hashes of the notices that it has had
	parsed  []string // the named statements among the replies
}

// maxKept bounds what is kept of a segment.
const maxKept = 256 << 10

// trial reports whether the segment may have to be sent again.
func (g *retryBuffer) trial() bool { return g.keeping && g.tried }

// beginSegment is called with each message that may begin a segment.
func (s *Session) beginSegment() {
	if g := &s.retry; !g.open {
		if s.pipeline.idle() {
			s.pipeline.copyIn = copyIn{}
		}
		*g = retryBuffer{open: true, kept: txnstate.Reusable(g.kept), keeping: s.pipeline.idle() && s.txn.status == txnIdle &&
			!s.resending.resending,
			parsed: g.parsed[:0]}
	}
}

// keep keeps a message of the segment.
func (s *Session) keep(m message) {
	switch g := &s.retry; {
	case !g.keeping || m.kind == msgTerminate || m.kind == msgCopyData:
	case m.more > 0 || len(g.kept)+len(m.raw) > maxKept:
		g.keeping = false
	default:
		g.kept = append(g.kept, m.raw...)
	}
}

// maxScripts bounds what a session remembers of scripts.
const maxScripts = 10_000

// try notes that a script is sent as rewritten.
func (s *Session) try(script *sqlpostgres.Script) {
	if script == nil {
		return
	}
	if _, ok := s.scripts.proven[weak.Make(script.Model())]; !ok {
		s.retry.tried = true
	}
}

// prove notes that the server takes a script as rewritten.
func (s *Session) prove(f *form) {
	sent := f.upstream().Model()
	if _, ok := s.scripts.proven[weak.Make(sent)]; ok || sent == nil {
		return
	}
	if s.scripts.proven == nil || len(s.scripts.proven) >= maxScripts {
		s.scripts.proven = make(map[weak.Pointer[sqlpostgres.Script]]struct{})
	}
	s.scripts.proven[weak.Make(sent)] = struct{}{}
}

// scriptVerdicts are what a session remembers of the scripts that it sent as rewritten.
type scriptVerdicts struct {
	// All by [sqlpostgres.Script.Model]. One that the planner has let go is met no more: it is not kept for these.
	proven  map[weak.Pointer[sqlpostgres.Script]]struct{}       // the server took them
	refused map[weak.Pointer[sqlpostgres.Script]]history.Reason // it did not, and why
	cleared map[weak.Pointer[sqlpostgres.Script]]struct{}       // a description bore them out
}

// A resend sends a segment again.
type resend struct {
	on        bool // once the server is ready
	resending bool
	shown     int // replies to come that the client has had
	// plain is what does not go upstream this time: it names columns that may not be there any more.
	plain *sqlpostgres.Script
}

// refuse takes an error as the answer to what isotap made of a text, if it may be that: the text is not
// rewritten again. It says whether the segment is sent again as the client wrote it, unseen by the client.
func (s *Session) refuse(x *pendingReply, e *serverError) bool {
	f := s.formOf(x)
	if f == nil || f.upstream() == nil || !doubtful(e.code) && !(e.routine == resultFormats && !s.isCleared(f)) {
		return false
	}
	sent := f.upstream().Model()
	if !f.rewritten && !outdated(e.code) {
		return false
	}
	outlived := s.outlived(x, e.code)
	if _, ok := s.scripts.proven[weak.Make(sent)]; ok && !outlived {
		return false
	}
	if f.rewritten {
		s.remember(sent, e.code)
	}
	if outlived && !s.retry.tried {
		s.events = append(s.events, session.Event{Schema: &session.Schema{Database: s.settings.database}})
	}
	if !s.retry.keeping || !s.retry.tried && !(outlived && s.pipeline.oneSegment()) || s.retry.ran || s.txn.status != txnIdle {
		return false
	}
	s.resending = resend{on: true, shown: s.retry.shown}
	if plain := f.script.Plain.Model(); plain != nil && outdated(e.code) {
		s.remember(plain, e.code)
		s.resending.plain = plain
	}
	if x.kind == pendingQuery {
		x.silent = true
		s.result = resultInProgress{}
		return true
	}
	s.skip()
	if s.pipeline.skipping {
		s.pipeline.skipping = false
		s.sendSync()
	}
	s.pipeline.head().silent = true
	return true
}

// remember takes note of a script that the server has refused.
func (s *Session) remember(script *sqlpostgres.Script, code string) {
	if s.scripts.refused == nil || len(s.scripts.refused) >= maxScripts {
		s.scripts.refused = make(map[weak.Pointer[sqlpostgres.Script]]history.Reason)
	}
	s.scripts.refused[weak.Make(script)] = refusedWith(code)
}

// outdated reports whether an error may come from a definition that isotap has not read yet: of a name that is not
// there.
func outdated(code string) bool {
	return code == sqlstateUndefinedColumn || code == sqlstateUndefinedTable
}

// outlived reports whether an error is about a prepared statement that the client's own text stands beside: what isotap
// added to it may rest on what is not there any more. A privilege can be missed as late as when it runs.
func (s *Session) outlived(x *pendingReply, code string) bool {
	switch x.kind {
	case pendingExecute:
		p := s.names.confirmed.portals[x.name]
		return code == sqlstateInsufficientPrivilege && p != nil && p.of != nil && p.of.hasOriginal()
	case pendingBind:
		return x.statement != nil && x.statement.hasOriginal()
	case pendingDescribeStatement:
		st := s.names.confirmed.statements[x.name]
		return st != nil && st.hasOriginal()
	}
	return false
}

// refusedWith is the reason why a text goes as the client wrote it that the server has refused once.
func refusedWith(code string) history.Reason { return history.ReasonRefusedState.With(code) }

// doubtful reports whether an error may come from what isotap added.
func doubtful(code string) bool {
	return strings.HasPrefix(code, classSyntaxErrorOrAccessRule) || strings.HasPrefix(code, classFeatureNotSupported) ||
		strings.HasPrefix(code, classProgramLimitExceeded)
}

// formOf is the form of the text that a reply is about; nil when it is about none.
func (s *Session) formOf(x *pendingReply) *form {
	switch x.kind {
	case pendingQuery:
		return x.form
	case pendingParse:
		return &x.statement.form
	case pendingBind:
		return &x.portal.form
	case pendingDescribeStatement:
		if x.form != nil {
			return x.form
		}
		if st := s.names.confirmed.statements[x.name]; st != nil {
			return &st.form
		}
	case pendingDescribePortal, pendingExecute:
		if p := s.names.confirmed.portals[x.name]; p != nil {
			return &p.form
		}
	}
	return nil
}

// resend sends the segment again. Statements that it prepared stand on the server already: unlike all else
// they outlive the error.
func (s *Session) resend() error {
	kept, shown := s.retry.kept, s.resending.shown
	s.noticesShown = s.retry.notices
	defer delete(s.scripts.refused, weak.Make(s.resending.plain))
	parsed := s.retry.parsed
	s.retry = retryBuffer{}
	s.resending = resend{resending: true, shown: shown}
	s.names.unsure = true
	s.names.agree()
	s.speculative = speculativeTxn{level: s.settings.level}
	for _, name := range parsed {
		s.closeOwn(name)
	}
	var in frameReader
	for len(kept) > 0 {
		m, used, err := in.next(kept, serverLimit, never)
		if err != nil {
			return err
		}
		kept = kept[used:]
		if err := s.clientMessage(m); err != nil {
			return err
		}
	}
	s.resending = resend{}
	return nil
}
