package postgres

import (
	"bytes"
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// Some forms of a text show what it reads only if all of its rows are fetched at once ([sqlpostgres.Plan].AtOnce), and
// whether they are a client says as late as with Execute. So the Bind of such a form is kept, and is done once more
// with the client's own text where the client turns out to fetch in pieces. No other statement runs in between: at
// SERIALIZABLE both see the same rows.

// mayRebind keeps the Bind of a portal that may have to be bound once more.
func (s *Session) mayRebind(name string, p *portal, bind []byte) {
	if !p.form.rewritten || p.plan == nil || !p.plan.Result.AtOnce {
		return
	}
	p.kept = bytes.Clone(bind)
	if !slices.Contains(s.names.rebindable, name) {
		s.names.rebindable = append(s.names.rebindable, name)
	}
}

// runs takes note that a statement is sent to be run, of the portal of that name or of none. Portals that were bound
// to run at once and are not the next to run are bound once more: another statement must not come before.
func (s *Session) runs(name string) {
	for _, other := range s.names.rebindable {
		if other != name {
			s.rebind(other, history.ReasonBoundEarly)
		}
	}
	s.names.rebindable = s.names.rebindable[:0]
	s.ran++
}

// runsAlone takes note that a Query or a FunctionCall is sent. What is bound once more before it has a Sync of its own,
// unless one is to come from the client: the server leaves out what follows an error.
func (s *Session) runsAlone() {
	open, pending := s.retry.open, len(s.pipeline.pending)
	if s.runs(""); !open && len(s.pipeline.pending) > pending {
		s.sendSync()
	}
}

// rebind binds a portal to the client's own text instead of what was made of it, for a reason, and returns it.
func (s *Session) rebind(name string, reason history.Reason) *portal {
	p := s.names.speculative.portals[name]
	if p == nil || p.kept == nil {
		return p
	}
	b, err := readBind(p.kept, false)
	if err != nil {
		return p
	}
	original := *p
	original.form, original.reason, original.kept = form{script: p.form.script, reason: reason}, reason, nil
	s.expect(pendingReply{kind: pendingClose, own: true, silent: true, closes: ofPortal, name: name})
	s.toServer = appendNamed(s.toServer, msgClose, ofPortal, name)
	st := p.of
	stands := s.names.speculative.stands(st)
	if !stands { // neither do its variants
		st = &statement{text: st.text, types: st.types, form: st.form}
	}
	on := s.original(st, nil)
	original.on = on
	s.expect(pendingReply{kind: pendingBind, own: true, silent: true, name: name, from: b.statement, portal: &original})
	s.sendBind(message{body: p.kept}, &b, on, widened(b.codes, p.of.cut))
	if !stands {
		s.closeOwn(on)
	}
	s.names.speculative.portals[name] = &original
	return &original
}

// rerun prepares for the client's Execute of a portal that has run to its end. The server refuses that for a
// write that returns nothing; one that returns what only isotap sees it would take, and find nothing more. So a
// portal that has run a statement without an effect takes its place, and the server refuses that one.
func (s *Session) rerun(name string, p *portal) {
	if !s.hasRun(name, p) {
		return
	}
	own := s.names.ownName()
	idle := &statement{text: []byte("UNLISTEN " + own)}
	spent := &portal{form: form{script: p.form.script}, plan: p.plan}
	s.expect(pendingReply{kind: pendingClose, own: true, silent: true, closes: ofPortal, name: name})
	s.toServer = appendNamed(s.toServer, msgClose, ofPortal, name)
	s.expect(pendingReply{kind: pendingParse, own: true, silent: true, name: own, statement: idle})
	s.sendParse(own, &statement{text: idle.text, types: []byte{0, 0}}, &idle.form)
	s.expect(pendingReply{kind: pendingBind, own: true, silent: true, name: name, from: own,
		statement: idle, portal: spent})
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
	if !p.sent || s.txn.status == txnFailed || !p.form.rewritten || plan == nil ||
		plan.Result.Reply != rewrite.Returning {
		return false
	}
	runs, sure := s.pipeline.executes(name)
	return sure && (p.done || runs)
}
