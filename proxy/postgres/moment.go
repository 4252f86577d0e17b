package postgres

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// Conditions may ask when their transaction began: now(). isotap asks the server the same, right before the transaction
// commits. Until then the conditions have a hole in the moment's place, and what counts without the moment stands
// behind each. No text of a client's has a zero byte.
const (
	momentHole = "\x00"
	insteadOf  = "\x00\x00" // begins what counts where the moment is not known
)

// momentQuery asks for the moment. It calls nothing that a search path could lead elsewhere.
const momentQuery = "SELECT pg_catalog.to_char(pg_catalog.timezone('UTC', pg_catalog.now()), " +
	"'YYYY-MM-DD HH24:MI:SS.US+00')"

// askBeforeEnd asks, before a statement that is to commit or prepare the transaction, what only the server can tell of
// it. While something else is pending it is not known when the transaction began that can be asked.
func (s *Session) askBeforeEnd(p *sqlpostgres.Plan) {
	idle := s.pipeline.idle()
	if s.askXID(p); idle {
		s.askMoment(p)
	}
}

// askMoment asks when the transaction began before a statement that is to commit or prepare it, as [Session.askXID]
// asks for its id: the statement is sent right behind the question, and nobody waits.
func (s *Session) askMoment(p *sqlpostgres.Plan) {
	if p == nil || !p.Commits() || !s.txn.asksMoment || s.txn.moment != "" || s.txn.status != txnOpen {
		return
	}
	s.expect(pendingReply{kind: pendingQuery, form: &form{}, own: true, silent: true, answer: &answer{take: s.takeMoment}})
	s.toServer = appendMessage(s.toServer, msgQuery, append([]byte(momentQuery), 0)...)
}

// askMomentWithin asks it at the end of a transaction within a segment, if conditions of that ask for it.
func (s *Session) askMomentWithin() {
	if s.speculative.asksMoment && !s.speculative.copies && s.pipeline.runsInSegment() {
		s.speculative.asksMoment = false
		s.askWithin(momentQuery, s.takeMoment)
	}
}

// takeMoment takes when the transaction began.
func (s *Session) takeMoment(a *answer) {
	switch {
	case a.failed != nil:
		s.txn.interrupt(a)
	case len(a.values) == 1 && len(a.values[0]) > 0 && !strings.Contains(string(a.values[0]), "'"):
		s.txn.moment = "'" + string(a.values[0]) + "'"
	}
}

// user returns the literal for the role that statements run for; empty where it is not known.
func (x *settings) user() string {
	if !x.known || x.unsure || x.stale || x.env.Role == "" || strings.Contains(x.env.Role, `\`) {
		return ""
	}
	return "'" + strings.ReplaceAll(x.env.Role, "'", "''") + "'"
}

// closedWith returns predicates of a plan, closed but for their moment, for a result of so many rows.
func closedWith(all []rewrite.Predicate, with rewrite.Literals, rows uint64, last []string,
	settings history.LiteralSettings) (out []history.Predicate) {
	with.Moment = momentHole
	closed, open := false, false
	for i := range all {
		p := &all[i]
		if p.Instead && closed && !open {
			continue
		}
		where, ok := p.CloseFor(with, rows, last)
		switch {
		case !p.Instead:
			closed, open = ok, ok && p.Asks().Has(history.AskedTime)
		case open:
			where = insteadOf + where
		}
		if ok {
			out = append(out, history.Predicate{Table: p.Table, Of: p.Of, As: p.As, Where: where, Settings: settings,
				Told: p.Asks(), Wide: p.Wide})
		}
	}
	return out
}

// fillMoments closes the conditions of a transaction that ask when it began.
func (t *transaction) fillMoments(of *history.Txn) {
	if !t.asksMoment || of == nil {
		return
	}
	for i := range of.Stmts {
		st := &of.Stmts[i]
		if !slices.ContainsFunc(st.Predicates, func(p history.Predicate) bool { return hasHole(p.Where) }) {
			continue
		}
		var out []history.Predicate
		for _, p := range st.Predicates {
			rest, instead := strings.CutPrefix(p.Where, insteadOf)
			switch {
			case instead && t.moment != "", !instead && t.moment == "" && hasHole(p.Where):
				continue
			case instead:
				p.Where = rest
			default:
				p.Where = strings.ReplaceAll(p.Where, momentHole, t.moment)
			}
			out = append(out, p)
		}
		st.Predicates = out
	}
}

func hasHole(where string) bool { return strings.Contains(where, momentHole) }
