package postgres

import (
	"cmp"
	"slices"
	"strconv"
	"weak"

	"github.com/isotap/isotap/history"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A variant is another form of a client's statement.
type variant struct {
	name string
	form form
}

// dropVariant takes a form away that does not stand on the server.
func (st *statement) dropVariant(name string) {
	st.variants = slices.DeleteFunc(st.variants, func(b variant) bool { return b.name == name })
}

// chooseVariant decides in which form a statement runs that is bound, and by which plan its rows are understood. It
// gives the name that the form has on the server, where it may have to be prepared first.
//
// The server reads a prepared text anew under the settings of the moment, and refuses it when its columns have
// changed, be they those that isotap added. So the client's own text stands beside what was made of it, prepared at
// the same time: it runs once the tables are others than then, or where the role may not read what is hidden, or
// the message is too long to have anything added at its end. For another level of the transaction, or another role,
// another form is made.
func (s *Session) chooseVariant(name string, st *statement, p *portal, long bool) string {
	p.plan = p.form.plan(0)
	script, env := st.form.script, s.planEnv(true)
	if s.planner != nil && s.settings.known && !s.settings.stale {
		script, _ = s.planSafely(st.text, env)
	}
	p.reason = s.obstacle(st, script, long)
	switch {
	case p.reason.IsZero() && sameForm(script, st.form.script):
		if p.plan = (&form{script: script}).plan(0); !st.form.rewritten {
			p.reason = st.form.reason
		}
		return name
	case p.reason.IsZero() && s.txn.status != txnFailed && !long && s.adapts(st, env):
		p.form = form{script: script, rewritten: script.Pieces != nil}
		p.plan = p.form.plan(0)
		return s.variantNamed(st, p.form)
	}
	p.reason = cmp.Or(p.reason, history.ReasonPreparedBefore)
	if s.txn.status == txnFailed || !st.form.rewritten { // in a failed transaction nothing can be prepared, and all is refused
		return name
	}
	p.form = form{script: st.form.script, reason: p.reason}
	return s.original(st)
}

// obstacle returns the reason why no form of a statement may run but the client's own, whatever the tables are; empty
// where there is none.
func (s *Session) obstacle(st *statement, script *sqlpostgres.Script, long bool) history.Reason {
	switch {
	case script == nil, s.settings.stale, !s.settings.known: // the role may be another one, which may read less
		return history.ReasonSettingsNotKnown
	case long && st.form.hidden(st.form.plan(0)) > 0: // what stands behind its parameters would have to change
		return history.ReasonSize
	case st.form.rewritten && s.isMisplanned(script.Statements):
		return history.ReasonMisplanned
	case st.form.rewritten && s.mayBeRead(script.Statements):
		return history.ReasonReadOnServer
	case st.form.rewritten && s.tooLarge(script.Statements):
		return history.ReasonLargeAggregate
	}
	return cmp.Or(s.scripts.refused[weak.Make(st.form.script.Model())], s.scripts.refused[weak.Make(script.Model())])
}

// adapts reports whether a statement gets another form for its transaction's level, or its role: its tables are what
// they were when it was prepared.
func (s *Session) adapts(st *statement, env sqlpostgres.Session) bool {
	if env == st.env || !alike(env, st.env) && (env.Role == st.env.Role || !st.form.rewritten) {
		return false
	}
	script, ok := s.planSafely(st.text, st.env)
	return ok && sameForm(script, st.form.script)
}

// alike reports whether two environments differ at most in what lasts as long as a transaction.
func alike(a, b sqlpostgres.Session) bool {
	a.Serializable, a.Nested = b.Serializable, b.Nested
	return a == b
}

// sameForm reports whether two scripts of one text send the same text upstream, and the columns that it adds have the
// same types.
func sameForm(a, b *sqlpostgres.Script) bool {
	return a == b || a != nil && b != nil && slices.Equal(a.Pieces, b.Pieces) &&
		slices.EqualFunc(a.Statements, b.Statements, sameTypes)
}

func sameTypes(a, b *sqlpostgres.Plan) bool {
	return slices.EqualFunc(a.Result.Sources, b.Result.Sources, func(a, b sqlpostgres.Source) bool {
		return a.Physical == b.Physical || slices.Equal(a.Physical.Types, b.Physical.Types)
	})
}

// original returns the name under which the client's own text of a statement stands on the server.
func (s *Session) original(st *statement) string {
	return s.variantNamed(st, form{script: st.form.script})
}

// variantNamed returns the name under which that form of a statement stands on the server. It is prepared, unseen
// by the client, when it does not.
func (s *Session) variantNamed(st *statement, f form) string {
	for _, other := range st.variants {
		if other.form.rewritten == f.rewritten && other.form.bare == f.bare &&
			(!f.rewritten || sameForm(other.form.script, f.script)) {
			return other.name
		}
	}
	s.names.made++
	name := "isotap_" + strconv.Itoa(s.names.made)
	st.variants = append(st.variants, variant{name, f})
	s.expect(pendingReply{kind: pendingParse, own: true, silent: true, name: name, statement: &statement{form: f}, of: st})
	s.sendParse(name, st, &f)
	return name
}

// hasOriginal reports whether the client's own text stands on the server beside what was made of it.
func (st *statement) hasOriginal() bool {
	return slices.ContainsFunc(st.variants, func(b variant) bool { return !b.form.rewritten && !b.form.bare })
}

// closeVariants closes what isotap prepared beside a statement; nil is none.
func (s *Session) closeVariants(st *statement) {
	if st == nil {
		return
	}
	for _, other := range st.variants {
		s.closeOwn(other.name)
	}
}

// closeOwn closes a statement, unseen by the client.
func (s *Session) closeOwn(name string) {
	s.expect(pendingReply{kind: pendingClose, own: true, silent: true, closes: ofStatement, name: name})
	s.toServer = appendNamed(s.toServer, msgClose, ofStatement, name)
}

// closeOrphans closes what stands beside statements that SQL took away.
func (s *Session) closeOrphans() {
	for _, name := range s.names.orphans {
		s.closeOwn(name)
	}
	s.names.orphans = s.names.orphans[:0]
}
