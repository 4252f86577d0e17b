package mysql

import (
	"github.com/isotap/isotap/history"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// readVariables asks for the identities that a SELECT ... INTO left in variables, where it found its row.
// The statement's transaction waits for the answer.
func (s *Session) readVariables(o *observed, x *exchange) {
	if x.failed || !o.rewritten || o.plan.Result.Variables == 0 || x.ok.affected != 1 {
		return
	}
	s.keepConditions()
	// The query changes ROW_COUNT(), and FOUND_ROWS() to what it is already.
	s.counts.rowCountGone = true
	s.counts.foundRows, s.counts.foundRowsGone = 1, false
	s.sendQuery(&exchange{hidden: o.plan.Result.Variables,
		stmt: &observed{plan: o.plan, rewritten: true, stmt: history.Stmt{Observation: o.stmt.Observation,
			Reason: o.stmt.Reason}},
		done: func(s *Session, x *exchange) error {
			defer s.seen.forget()
			if x.failed || x.rows != 1 {
				o.lowerRecorded(history.ReasonVariablesUnread)
			} else {
				s.takeBeside(o, x.stmt)
			}
			s.release(s.captures.answered(s.events))
			return nil
		},
	}, sqlmysql.IntoRead(o.plan.Result.Variables))
	s.captures.wait([]*observed{o})
}
