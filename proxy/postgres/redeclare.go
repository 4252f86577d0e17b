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

// mustRedeclare reports whether a message of the client has to wait until cursors are declared anew, or it is known
// that they cannot be.
func (s *Session) mustRedeclare(m message) bool {
	if s.txn.status != txnOpen || s.planner == nil || s.retry.open || !begins(m.kind) || s.pipeline.skipping ||
		s.pipeline.copyIn.active() {
		return false
	}
	// The cheap questions come first: most sessions declare no cursor, and to know whether a text reads one it is
	// planned.
	if !s.names.declares || !s.names.speculative.hasRedeclarable() || !s.planner.CursorsAreRead() &&
		!s.readsCursors(m) {
		return false
	}
	return !s.pipeline.idle() || s.beginsRedeclaring()
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
const sameSnapshot = "SELECT (SELECT a.backend_xmin::pg_catalog.text::pg_catalog.int8 " +
	"FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()) AS a) " +
	"OPERATOR(pg_catalog.=) (pg_catalog.txid_snapshot_xmax(pg_catalog.txid_current_snapshot()) " +
	"OPERATOR(pg_catalog.%) 4294967296)"

// beginsRedeclaring begins to declare cursors anew, if there are any. Nothing is pending.
func (s *Session) beginsRedeclaring() bool {
	cursors := make(map[string]*portal)
	for name, p := range s.names.confirmed.portals {
		if p.redeclarable() {
			cursors[name] = p
		}
	}
	switch {
	case len(cursors) == 0:
		return false
	case s.txn.level == history.RepeatableRead || s.txn.level == history.Serializable:
		s.redeclareCursors(cursors)
	default:
		s.sendOwn(func(a *answer) { s.tookSnapshots(cursors, a) }, []byte(sameSnapshot))
	}
	return true
}

// redeclareCursors sends what closes cursors and declares them as the client did, where they stood.
func (s *Session) redeclareCursors(cursors map[string]*portal) {
	var b []byte
	for name, p := range cursors {
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
	s.sendOwn(func(a *answer) { s.redeclared(cursors, a) }, b)
}

// tookSnapshots takes the answer to the question whether the snapshots see the same.
func (s *Session) tookSnapshots(cursors map[string]*portal, a *answer) {
	if a.failed == nil && len(a.values) == 1 && string(a.values[0]) == "t" {
		s.redeclareCursors(cursors)
		return
	}
	s.noteFailed(a)
	for _, p := range cursors {
		p.cursor.redeclaration.settled = false
	}
	s.names.unsure = true
}

// redeclared takes the answer to the text that declares cursors anew.
func (s *Session) redeclared(cursors map[string]*portal, a *answer) {
	s.noteFailed(a)
	for _, p := range cursors {
		p.cursor.redeclaration.settled = false
		if a.failed == nil {
			p.form.rewritten, p.reason, p.layout = false, history.ReasonReadOnServer, layout{}
		}
	}
	s.names.unsure = true
}

func (s *Session) noteFailed(a *answer) {
	if a.failed != nil {
		s.note("cannot declare a cursor anew that the server is to read (SQLSTATE %s: %s)",
			a.failed.code, a.failed.message)
	}
}
