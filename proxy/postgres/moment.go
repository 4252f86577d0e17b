package postgres

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// Conditions may ask when their transaction began: now(); or for a moment while their statement ran. isotap asks the
// server when the transaction began, and what time it is, right before the transaction commits. Until then the
// conditions are open.

// momentsQuery asks for both. It calls nothing that a search path could lead elsewhere.
const momentsQuery = "SELECT " + utcBefore + "pg_catalog.now()" + utcBehind + ", " + utcBefore +
	"pg_catalog.clock_timestamp()" + utcBehind

// What stands around a moment that is to be told in UTC.
const (
	utcBefore = "pg_catalog.to_char(pg_catalog.timezone('UTC', "
	utcBehind = "), 'YYYY-MM-DD HH24:MI:SS.US+00')"
)

// moments are literals for when a transaction began, and for a moment behind what its statements did; empty: not known.
type moments struct{ began, behind string }

// openConditions are those of a statement that ask for its transaction's moments.
type openConditions struct {
	all      []rewrite.Predicate
	with     rewrite.Literals
	rows     uint64   // that the statement showed
	last     []string // what the last of them was ordered by
	settings history.LiteralSettings
	// stand says that the statement has an empty predicate in their place, since it has none without the moments.
	stand bool
}

// closed returns those of them of which all is known that they ask for.
func (o *openConditions) closed(at moments) (out []history.Predicate) {
	o.with.Moment, o.with.Since = at.began, at.began
	if o.with.Until = at.behind; at.behind < at.began { // the clock was put back
		o.with.Until = ""
	}
	for p, where := range rewrite.Closed(o.all, o.with, o.rows, o.last) {
		out = append(out, history.Predicate{Table: p.Table, Of: p.Of, As: p.As, Where: where, Settings: o.settings,
			Told: p.Asks(), Wide: p.Wide})
	}
	return out
}

// asks reports whether one of them can be closed once its transaction's moments are known, and not before.
func (o *openConditions) asks() bool {
	some := moments{"''", "''"}
	return rewrite.AsksForTime(o.all) && slices.ContainsFunc(o.closed(some), func(p history.Predicate) bool {
		return p.Told.Has(history.AskedTime)
	})
}

// close returns the conditions of a statement, and keeps them open in its transaction if they ask for moments.
func (t *transaction) close(o openConditions) []history.Predicate {
	out := o.closed(t.moments)
	if t.moments.began != "" || !o.asks() {
		return out
	}
	if o.stand = len(out) == 0; o.stand {
		out = make([]history.Predicate, 1)
	}
	for _, literal := range o.with.Params {
		t.unrecorded.Take(len(literal))
	}
	if t.conditions == nil {
		t.conditions = make(map[*history.Predicate]openConditions)
	}
	t.conditions[&out[0]] = o
	return out
}

// closeConditions closes the conditions of a transaction that are open.
func (t *transaction) closeConditions() {
	if t.open == nil || len(t.conditions) == 0 {
		return
	}
	for i := range t.open.Stmts {
		st := &t.open.Stmts[i]
		if len(st.Predicates) == 0 {
			continue
		}
		switch o, open := t.conditions[&st.Predicates[0]]; {
		case open && t.moments.began != "":
			st.Predicates = o.closed(t.moments)
		case open && o.stand:
			st.Predicates = nil
		}
	}
}

// askBeforeEnd asks, before a statement that is to commit or prepare the transaction, what only the server can tell of
// it. While something else is pending it is not known when the transaction began that can be asked.
func (s *Session) askBeforeEnd(p *sqlpostgres.Plan) {
	idle := s.pipeline.idle()
	if s.askXID(p); idle {
		s.askMoments(p)
	}
}

// askMoments asks for the moments before a statement that is to commit or prepare the transaction, as [Session.askXID]
// asks for its id: the statement is sent right behind the question, and nobody waits.
func (s *Session) askMoments(p *sqlpostgres.Plan) {
	if p == nil || !p.Commits() || len(s.txn.conditions) == 0 || s.txn.moments.began != "" || s.txn.status != txnOpen {
		return
	}
	s.expect(pendingReply{kind: pendingQuery, form: &form{}, own: true, silent: true, answer: &answer{take: s.takeMoments}})
	s.toServer = appendMessage(s.toServer, msgQuery, append([]byte(momentsQuery), 0)...)
}

// askMomentsWithin asks for them at the end of a transaction within a segment, if conditions of that ask for them.
func (s *Session) askMomentsWithin() {
	if s.speculative.asksMoment && !s.speculative.copies && s.pipeline.runsInSegment() {
		s.speculative.asksMoment = false
		s.askWithin(momentsQuery, s.takeMoments)
	}
}

// takeMoments takes the answer.
func (s *Session) takeMoments(a *answer) {
	switch {
	case a.failed != nil:
		s.txn.interrupt(a)
	case len(a.values) == 2:
		s.txn.moments = moments{momentLiteral(a.values[0]), momentLiteral(a.values[1])}
	}
}

// momentLiteral returns the literal for a moment; empty where there is none.
func momentLiteral(moment []byte) string {
	if len(moment) == 0 || strings.Contains(string(moment), "'") {
		return ""
	}
	return "'" + string(moment) + "'"
}

// user returns the literal for the role that statements run for; empty where it is not known.
func (x *settings) user() string {
	if !x.known || x.unsure || x.stale || x.env.Role == "" || strings.Contains(x.env.Role, `\`) {
		return ""
	}
	return "'" + strings.ReplaceAll(x.env.Role, "'", "''") + "'"
}
