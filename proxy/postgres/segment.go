package postgres

import (
	"strings"
	"weak"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/proxy/txnstate"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A segment is what the client sends up to a ReadyForQuery: a Query, or the messages up to a Sync. Outside of
// a transaction block it is a transaction of its own. It is kept as the client sent it while it may have to be
// sent again: the server may refuse what isotap made of a text, for a reason that the original does not have.
type segment struct {
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
func (g *segment) trial() bool { return g.keeping && g.tried }

// beginSegment is called with each message that may begin a segment.
func (s *Session) beginSegment() {
	if g := &s.segment; !g.open {
		if len(s.queue) == 0 {
			s.copying = copying{}
		}
		*g = segment{open: true, kept: txnstate.Reusable(g.kept), keeping: len(s.queue) == 0 && s.status == txnIdle &&
			!s.replay.resending,
			parsed: g.parsed[:0]}
	}
}

// keep keeps a message of the segment.
func (s *Session) keep(m message) {
	switch g := &s.segment; {
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
	if _, ok := s.proven[weak.Make(script.Model())]; !ok {
		s.segment.tried = true
	}
}

// prove notes that the server takes a script as rewritten.
func (s *Session) prove(f *form) {
	sent := f.upstream().Model()
	if _, ok := s.proven[weak.Make(sent)]; ok || sent == nil {
		return
	}
	if s.proven == nil || len(s.proven) >= maxScripts {
		s.proven = make(map[weak.Pointer[sqlpostgres.Script]]struct{})
	}
	s.proven[weak.Make(sent)] = struct{}{}
}

// refusals are what a session remembers of the scripts that it sent as rewritten.
type refusals struct {
	// All by [sqlpostgres.Script.Model]. One that the planner has let go is met no more: it is not kept for these.
	proven  map[weak.Pointer[sqlpostgres.Script]]struct{}       // the server took them
	refused map[weak.Pointer[sqlpostgres.Script]]history.Reason // it did not, and why
	cleared map[weak.Pointer[sqlpostgres.Script]]struct{}       // a description bore them out
	replay  replay
	// told are, of a segment that was sent again, the notices to come that the client has had.
	told []uint64
}

// A replay sends a segment again.
type replay struct {
	on        bool // once the server is ready
	resending bool
	shown     int // replies to come that the client has had
	// plain is what does not go upstream this time: it names columns that may not be there any more.
	plain *sqlpostgres.Script
}

// refuse takes an error as the answer to what isotap made of a text, if it may be that: the text is not
// rewritten again. It says whether the segment is sent again as the client wrote it, unseen by the client.
func (s *Session) refuse(x *owed, e *serverError) bool {
	f := s.formOf(x)
	if f == nil || f.upstream() == nil || !doubtful(e.code) && !(e.routine == resultFormats && !s.isCleared(f)) {
		return false
	}
	sent := f.upstream().Model()
	if !f.rewritten && !outdated(e.code) {
		return false
	}
	outlived := s.outlived(x, e.code)
	if _, ok := s.proven[weak.Make(sent)]; ok && !outlived {
		return false
	}
	if f.rewritten {
		s.remember(sent, e.code)
	}
	if outlived && !s.segment.tried {
		s.events = append(s.events, session.Event{Schema: &session.Schema{Database: s.database}})
	}
	if !s.segment.keeping || !s.segment.tried && !(outlived && s.alone()) || s.segment.ran || s.status != txnIdle {
		return false
	}
	s.replay = replay{on: true, shown: s.segment.shown}
	if plain := f.script.Plain.Model(); plain != nil && outdated(e.code) {
		s.remember(plain, e.code)
		s.replay.plain = plain
	}
	if x.kind == owesQuery {
		x.silent = true
		s.current = current{}
		return true
	}
	s.skip()
	if s.skipping {
		s.skipping = false
		s.oweSync()
	}
	s.head().silent = true
	return true
}

// remember takes note of a script that the server has refused.
func (s *Session) remember(script *sqlpostgres.Script, code string) {
	if s.refused == nil || len(s.refused) >= maxScripts {
		s.refused = make(map[weak.Pointer[sqlpostgres.Script]]history.Reason)
	}
	s.refused[weak.Make(script)] = refusedWith(code)
}

// outdated reports whether an error may come from a definition that isotap has not read yet: of a name that is not
// there.
func outdated(code string) bool {
	return code == sqlstateUndefinedColumn || code == sqlstateUndefinedTable
}

// outlived reports whether an error is about a prepared statement that the client's own text stands beside: what isotap
// added to it may rest on what is not there any more. A privilege can be missed as late as when it runs.
func (s *Session) outlived(x *owed, code string) bool {
	switch x.kind {
	case owesExecute:
		p := s.names.real.portals[x.name]
		return code == sqlstateInsufficientPrivilege && p != nil && p.of != nil && p.of.hasOriginal()
	case owesBind:
		return x.statement != nil && x.statement.hasOriginal()
	case owesStatement:
		st := s.names.real.statements[x.name]
		return st != nil && st.hasOriginal()
	}
	return false
}

// alone reports whether nothing was sent behind the segment that the server is at.
func (s *Session) alone() bool {
	ends := 0
	for _, x := range s.queue {
		switch x.kind {
		case owesQuery, owesCall, owesSync:
			ends++
		}
	}
	return ends <= 1
}

// refusedWith is the reason why a text goes as the client wrote it that the server has refused once.
func refusedWith(code string) history.Reason { return history.ReasonRefusedState.With(code) }

// doubtful reports whether an error may come from what isotap added.
func doubtful(code string) bool {
	return strings.HasPrefix(code, classSyntaxErrorOrAccessRule) || strings.HasPrefix(code, classFeatureNotSupported) ||
		strings.HasPrefix(code, classProgramLimitExceeded)
}

// formOf is the form of the text that a reply is about; nil when it is about none.
func (s *Session) formOf(x *owed) *form {
	switch x.kind {
	case owesQuery:
		return x.form
	case owesParse:
		return &x.statement.form
	case owesBind:
		return &x.portal.form
	case owesStatement:
		if x.form != nil {
			return x.form
		}
		if st := s.names.real.statements[x.name]; st != nil {
			return &st.form
		}
	case owesPortal, owesExecute:
		if p := s.names.real.portals[x.name]; p != nil {
			return &p.form
		}
	}
	return nil
}

// resend sends the segment again. Statements that it prepared stand on the server already: unlike all else
// they outlive the error.
func (s *Session) resend() error {
	kept, shown := s.segment.kept, s.replay.shown
	s.told = s.segment.notices
	defer delete(s.refused, weak.Make(s.replay.plain))
	parsed := s.segment.parsed
	s.segment = segment{}
	s.replay = replay{resending: true, shown: shown}
	s.names.unsure = true
	s.names.agree()
	s.ahead = ahead{level: s.level}
	for _, name := range parsed {
		s.closeOwn(name)
	}
	var in inlet
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
	s.replay = replay{}
	return nil
}
