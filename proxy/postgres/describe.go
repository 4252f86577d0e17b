package postgres

import (
	"bytes"

	"github.com/isotap/isotap/rewrite"
)

// describesNothing answers a Describe of a write that gives the client no rows, in a transaction that has failed:
// the server then describes only what gives none, and the rewritten write gives isotap's. It says whether it did.
// What is owed goes first, and parameters that the server never told it alone can tell.
func (s *Session) describesNothing(x *pendingReply) bool {
	f := s.formOf(x)
	if s.txn.status != txnFailed || !s.pipeline.idle() || f == nil || !f.rewritten {
		return false
	}
	if plan := f.plan(0); plan == nil || plan.Result.Reply != rewrite.Returning {
		return false
	}
	if x.kind == pendingDescribeStatement {
		st := s.names.confirmed.statements[x.name]
		if st.parameters == nil {
			return false
		}
		s.toClient = append(s.toClient, st.parameters...)
	}
	s.toClient = append(s.toClient, noData...)
	return true
}

// noData is the message that says that a statement gives no rows.
var noData = []byte{msgNoData, 0, 0, 0, 4}

// described keeps what the server said of a statement's parameters.
func (s *Session) described(x *pendingReply, m message) {
	if st := s.names.confirmed.statements[x.name]; x.kind == pendingDescribeStatement && st != nil {
		st.parameters = bytes.Clone(m.raw)
	}
}
