package postgres

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A cursor that is open with hidden columns when the first text comes by which the server reads one by its name is
// declared anew, as the client wrote it, before that text is sent: where that is certain to give the same rows (ADR
// 48).

// redeclaration is what a cursor can be declared anew by.
type redeclaration struct {
	script *sqlpostgres.Script // of the text that declared it alone; nil: there is none
	// settled says that nothing has happened since the DECLARE that a new one could see, and that position is how many
	// rows the cursor has gone forward, ended that it has gone behind the last one.
	settled  bool
	position uint64
	ended    bool
}

// maxPassed bounds how many rows are passed again.
const maxPassed = 10_000

func redeclarationOf(f *form) redeclaration {
	if plan := f.plan(0); len(f.statements()) != 1 || !f.rewritten || plan.Params > 0 || plan.Session.Calls ||
		plan.Session.Changes {
		return redeclaration{}
	}
	return redeclaration{script: f.script, settled: true}
}

// moved takes a statement that has succeeded for what it did to the session's cursors.
func (s *Session) moved(x *pendingReply, c *resultInProgress, tag string) {
	p := c.form.plan(x.at)
	quiet := still(p)
	if c.cursor != nil {
		c.cursor.cursor.redeclaration.moved(p, tag)
		quiet = quiet && still(c.cursor.plan)
	}
	if !quiet {
		s.unsettleCursors()
	}
}

// still reports whether a statement changes nothing that a DECLARE could see, and no savepoint stands behind it that a
// cursor would be lost with.
func still(p *sqlpostgres.Plan) bool {
	switch {
	case p == nil, p.Session.Changes, p.Schema.Changes:
		return false
	case p.Session.Cursor != nil && p.Session.Cursor.Verb != sqlpostgres.DeclareCursor: // what its query calls the cursor's plan says
		return true
	}
	return p.Kind == history.Select && !p.Session.Calls && p.Reason != history.ReasonCopy
}

// unsettleCursors notes that a new DECLARE may see what those before did not. There may be thousands of portals: only
// sessions that have declared a cursor look through them.
func (s *Session) unsettleCursors() {
	if !s.names.declares {
		return
	}
	for _, p := range s.names.confirmed.portals {
		if p.cursor != nil {
			p.cursor.redeclaration.settled = false
		}
	}
}

// moved takes a FETCH or MOVE that has succeeded, or an Execute of the cursor itself.
func (a *redeclaration) moved(p *sqlpostgres.Plan, tag string) {
	if p == nil || p.Session.Cursor == nil || !p.Session.Cursor.Forward {
		a.settled = false
		return
	}
	asked := uint64(1)
	if len(p.Args) > 0 {
		var err error
		if asked, err = strconv.ParseUint(p.Args[0], 10, 64); err != nil || asked == 0 { // FETCH 0 stays where it is
			a.settled = false
			return
		}
	}
	n := rowsOf(tag)
	a.position += n
	a.ended = a.ended || p.Session.Cursor.All || n < asked
}

// mustRedeclare reports whether a message of the client has to wait until cursors are declared anew, or it is known
// that they cannot be.
func (s *Session) mustRedeclare(m message) bool {
	if s.txn.status != txnOpen || s.planner == nil || s.retry.open || !begins(m.kind) || s.pipeline.skipping || s.pipeline.copyIn.active() {
		return false
	}
	// The cheap questions come first: most sessions declare no cursor, and to know whether a text reads one it is
	// planned.
	if !s.names.declares || !s.names.speculative.hasRedeclarable() || !s.planner.CursorsAreRead() && !s.readsCursors(m) {
		return false
	}
	return !s.pipeline.idle() || s.beginsRedeclaring()
}

// hasRedeclarable reports whether there is a cursor with hidden columns that may be declared anew.
func (n namespace) hasRedeclarable() bool {
	for _, p := range n.portals {
		if p.redeclarable() {
			return true
		}
	}
	return false
}

// redeclarable reports whether a portal is a cursor with hidden columns that may be declared anew.
func (p *portal) redeclarable() bool {
	return p.cursor != nil && p.cursor.redeclaration.settled && p.form.hidden(p.form.plan(0)) > 0 && !p.cursor.hold &&
		p.cursor.redeclaration.position <= maxPassed
}

// readsCursors reports whether a message has a text by which the server may read cursors by their names.
func (s *Session) readsCursors(m message) bool {
	text, extended := m.body, m.kind == msgParse
	switch {
	case m.more > 0:
		return false
	case extended:
		_, text, _ = bytes.Cut(text, []byte{0})
	case m.kind != msgQuery:
		return false
	}
	text, _, ok := bytes.Cut(text, []byte{0})
	if !ok {
		return false
	}
	script, _ := s.planSafely(text, s.planEnv(extended))
	return script != nil && slices.ContainsFunc(script.Statements,
		func(p *sqlpostgres.Plan) bool { return p.Session.ReadsCursors })
}

// sameSnapshot asks whether a snapshot of now sees what the oldest one of the session does: every transaction before
// the number had ended then that none has ended from, now.
const sameSnapshot = "SELECT (SELECT a.backend_xmin::pg_catalog.text::pg_catalog.int8 FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()) AS a) " +
	"OPERATOR(pg_catalog.=) (pg_catalog.txid_snapshot_xmax(pg_catalog.txid_current_snapshot()) OPERATOR(pg_catalog.%) 4294967296)"

// beginsRedeclaring begins to declare cursors anew, if there are any. The server owes nothing.
func (s *Session) beginsRedeclaring() bool {
	a := &answer{redeclare: make(map[string]*portal)}
	for name, p := range s.names.confirmed.portals {
		if p.redeclarable() {
			a.redeclare[name] = p
		}
	}
	switch {
	case len(a.redeclare) == 0:
		return false
	case s.txn.level == history.RepeatableRead || s.txn.level == history.Serializable:
		s.redeclareCursors(a)
	default:
		s.send(a, []byte(sameSnapshot))
	}
	return true
}

// redeclareCursors sends what closes cursors and declares them as the client did, where they stood.
func (s *Session) redeclareCursors(a *answer) {
	var b []byte
	for name, p := range a.redeclare {
		quoted, from := `"`+strings.ReplaceAll(name, `"`, `""`)+`"`, &p.cursor.redeclaration
		b = append(append(b, "CLOSE "...), quoted...)
		b = append(from.script.AppendWritten(append(b, "; "...)), "\n; "...)
		switch {
		case from.ended:
			b = append(append(append(b, "MOVE FORWARD ALL IN "...), quoted...), "; "...)
		case from.position > 0:
			b = strconv.AppendUint(append(b, "MOVE FORWARD "...), from.position, 10)
			b = append(append(append(b, " IN "...), quoted...), "; "...)
		}
	}
	s.send(&answer{redeclare: a.redeclare, declared: true}, b)
}

// redeclared takes the answer to the question, or that to the text that declares cursors anew.
func (s *Session) redeclared(a *answer) {
	switch {
	case a.failed != nil:
		s.note("cannot declare a cursor anew that the server is to read (SQLSTATE %s: %s)", a.failed.code,
			a.failed.message)
	case !a.declared && len(a.values) == 1 && string(a.values[0]) == "t":
		s.redeclareCursors(a)
		return
	}
	for _, p := range a.redeclare {
		p.cursor.redeclaration.settled = false
		if a.declared && a.failed == nil {
			p.form.rewritten, p.reason, p.layout = false, history.ReasonReadOnServer, layout{}
		}
	}
	s.names.unsure = true
}
