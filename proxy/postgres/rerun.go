package postgres

import (
	"strconv"

	"github.com/isotap/isotap/rewrite"
)

// rerun prepares for the client's Execute of a portal that has run to its end. The server refuses that for a
// write that returns nothing; one that returns what only isotap sees it would take, and find nothing more. So a
// portal that has run a statement without an effect takes its place, and the server refuses that one.
func (s *Session) rerun(name string, p *portal) {
	if !s.hasRun(name, p) {
		return
	}
	s.names.made++
	own := "isotap_" + strconv.Itoa(s.names.made)
	idle := &statement{text: []byte("UNLISTEN " + own)}
	spent := &portal{form: form{script: p.form.script}, plan: p.plan}
	s.expect(pendingReply{kind: pendingClose, own: true, silent: true, closes: ofPortal, name: name})
	s.toServer = appendNamed(s.toServer, msgClose, ofPortal, name)
	s.expect(pendingReply{kind: pendingParse, own: true, silent: true, name: own, statement: idle})
	s.sendParse(own, &statement{text: idle.text, types: []byte{0, 0}}, &idle.form)
	s.expect(pendingReply{kind: pendingBind, own: true, silent: true, name: name, from: own, statement: idle, portal: spent})
	b, start := beginMessage(s.toServer, msgBind)
	b = append(append(append(b, name...), 0), own...)
	s.toServer = endMessage(append(b, 0, 0, 0, 0, 0, 0, 0), start)
	s.closeOwn(own)
	s.expect(pendingReply{kind: pendingExecute, own: true, silent: true, name: name})
	b, start = beginMessage(s.toServer, msgExecute)
	s.toServer = endMessage(append(append(b, name...), 0, 0, 0, 0, 0), start)
	s.names.speculative.portals[name] = spent
}

// hasRun reports whether a portal of a write whose rows are isotap's alone has run, or will have with what is
// sent. A portal that the end of a transaction may have closed has not.
func (s *Session) hasRun(name string, p *portal) bool {
	plan := p.form.plan(0)
	if !p.sent || s.txn.status == txnFailed || !p.form.rewritten || plan == nil || plan.Result.Reply != rewrite.Returning {
		return false
	}
	runs, sure := s.pipeline.executes(name)
	return sure && (p.done || runs)
}
