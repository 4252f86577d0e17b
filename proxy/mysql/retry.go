package mysql

import (
	"bytes"
	"strconv"
	"weak"

	"github.com/isotap/isotap/history"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

const maxRefused = 1000

// refuse remembers that the server does not take the statement as rewritten.
func (s *Session) refuse(o *pendingStatement, e serverError) {
	if s.refused == nil || len(s.refused) >= maxRefused {
		s.refused = make(map[weak.Pointer[sqlmysql.Plan]]history.Reason)
	}
	s.refused[weak.Make(o.plan)] = history.ReasonRefused.With(strconv.Itoa(int(e.code)))
}

// runOriginal runs the statement as the client wrote it, after the server refused the rewritten one.
func (s *Session) runOriginal(o *pendingStatement, x *exchange) error {
	if s.runUnpictured(o, x) {
		return nil
	}
	o.rewritten = false
	o.downgrade(history.Opaque, s.refused[weak.Make(o.plan)])
	if x.prepared != nil {
		s.command = bytes.Clone(s.original)
		s.resumed = o
		return nil
	}
	s.sendFor(s.statement(o), s.original, len(s.original))
	return nil
}

// runUnpictured runs a statement without the images that the server refused to collect, where it has such a form.
func (s *Session) runUnpictured(o *pendingStatement, x *exchange) bool {
	if x.prepared != nil || o.plan.Writes.Images.Empty() {
		return false
	}
	plan := s.plan(s.original[1:])
	if plan.Upstream.Pieces == nil || plan.Observation != o.plan.Observation || !s.leavesAlone(plan).IsZero() {
		return false
	}
	o.plan = plan
	s.sendFor(s.statement(o), s.rewritten(o), len(s.original))
	return true
}
