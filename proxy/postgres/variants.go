package postgres

import (
	"cmp"
	"regexp"
	"slices"

	"github.com/isotap/isotap/history"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// chooseVariant decides in which form a statement runs that is bound, and by which plan its rows are understood. It
// gives the name that the form has on the server, where it may have to be prepared first.
//
// The server reads a prepared text anew under the settings of the moment, and refuses it when its columns have
// changed, be they those that isotap added. So the client's own text is a variant of what was made of it, prepared at
// the same time: it runs once the tables are others than then, or where the role may not read what is hidden, or
// the message is too long to have anything added at its end. For another level of the transaction, or another role,
// another form is made. first is what variantNamed takes.
func (s *Session) chooseVariant(name string, st *statement, p *portal, long bool, first func()) string {
	p.plan = p.form.plan(0)
	script, env := st.form.script, s.envOf(st)
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
		return s.variantNamed(st, p.form, first)
	}
	p.reason = cmp.Or(p.reason, history.ReasonPreparedBefore)
	if s.txn.status == txnFailed || !st.form.rewritten {
		return name // in a failed transaction nothing can be prepared, and all is refused
	}
	p.form = form{script: st.form.script, reason: p.reason}
	return s.original(st, first)
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
	return cmp.Or(s.scripts.refusal(st.form.script), s.scripts.refusal(script))
}

// adapts reports whether a statement gets another form for its transaction's level, or its role, or because its
// subqueries read too much: its tables are what they were when it was prepared.
func (s *Session) adapts(st *statement, env sqlpostgres.Session) bool {
	env.Narrow = s.narrows(st.form.script)
	if env == st.env || !alike(env, st.env) && (env.Role == st.env.Role || !st.form.rewritten) {
		return false
	}
	script, ok := s.planUnder(st.text, st.env)
	return ok && sameForm(script, st.form.script)
}

// alike reports whether two environments differ at most in what lasts as long as a transaction.
func alike(a, b sqlpostgres.Session) bool {
	a.Serializable, a.Nested, a.Narrow = b.Serializable, b.Nested, b.Narrow
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
func (s *Session) original(st *statement, first func()) string {
	return s.variantNamed(st, form{script: st.form.script}, first)
}

// variantNamed returns the name under which that form of a statement stands on the server. It is prepared, unseen
// by the client, when it does not.
//
// first is not nil where an earlier segment is not answered yet, of which nobody knows whether it will fail. What was
// to be prepared in that one is prepared once more, and first is called before: it has the server say what it has
// against the client's message, in whose place it would have something against isotap's Parse.
func (s *Session) variantNamed(st *statement, f form, first func()) string {
	for i := range st.variants {
		other := &st.variants[i]
		if !other.is(&f) {
			continue
		}
		if first != nil && other.segment != s.pipeline.segment && s.names.confirmed.statements[other.name] == nil {
			first()
			s.closeOwn(other.name)
			s.prepareVariant(st, other)
		}
		return other.name
	}
	if first != nil {
		first()
	}
	st.variants = append(st.variants, variant{name: s.names.ownName(), form: f})
	made := &st.variants[len(st.variants)-1]
	s.prepareVariant(st, made)
	return made.name
}

// is reports whether a variant has that form.
func (v *variant) is(f *form) bool {
	return v.form.rewritten == f.rewritten && v.form.bare == f.bare && (!f.rewritten || sameForm(v.form.script, f.script))
}

// prepareVariant sends the Parse of a variant.
func (s *Session) prepareVariant(st *statement, v *variant) {
	v.segment = s.pipeline.segment
	s.expect(pendingReply{kind: pendingParse, own: true, silent: true, name: v.name,
		statement: &statement{form: v.form}, of: st})
	s.sendParse(v.name, st, &v.form)
}

// closeVariants closes the variants of a statement; nil is none.
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

// closeOrphans closes the variants of statements that SQL took away.
func (s *Session) closeOrphans() {
	for _, name := range s.names.orphans {
		s.closeOwn(name)
	}
	s.names.orphans = s.names.orphans[:0]
}

// A prepared star stands for the columns that its tables had when it was prepared: once they have others, the server
// refuses to run the statement. It does not see a star in what isotap sends in the place of one.

var anotherQuery = regexp.MustCompile(`(?i)\bselect\b(?s:.*)\bselect\b|\b(?:natural|table|with)\b`)

// keepStars has the client's own text of a query stand as a variant of what was made of it, if it has stars that isotap
// expands. Where a part of it joins, compares or counts columns it might mean something else with isotap's, or fail.
func (s *Session) keepStars(st *statement) {
	plan := st.form.plan(0)
	if plan == nil || plan.Kind != history.Select || st.form.script.Plain == nil || st.form.bare ||
		anotherQuery.Match(st.text) {
		return
	}
	s.variantNamed(st, form{script: st.form.script, bare: true}, nil)
}

// tryStars has the server look at the client's own text of a statement whose stars may have come to stand for other
// columns, before the statement is bound: its error is the client's.
func (s *Session) tryStars(m message, b *bound, st *statement) {
	at := slices.IndexFunc(st.variants, func(b variant) bool { return b.form.bare })
	if at < 0 || m.more > 0 || s.planner == nil || s.txn.status == txnFailed {
		return
	}
	env := s.planEnv(true)
	if env.TempTables != "" { // a temporary table does not have isotap's columns, and may have all others
		if !sqlpostgres.KnowsTables(s.schema.temporaries.columns, env.TempTables, string(st.text)) {
			return
		}
		env.Created = s.schema.temporaries.columns.Append(env.Created.Texts()...) // what a name means first, first
	}
	script, _ := s.planSafely(st.text, env)
	switch {
	case script == nil:
		return
	case script.Plain == nil && s.settings.env.Unsettled == "" &&
		!s.settings.env.AllUnsettled: // the table has isotap's columns no more
		return
	case script.Plain != nil && slices.Equal(script.Plain.Pieces, st.form.script.Plain.Pieces):
		return
	}
	s.tryBind(m, b, s.names.ownName(), st.variants[at].name, st.variants[at].form)
}

// tryBind has the server bind a statement to the parameters of a client's Bind, in a portal that is closed at once.
func (s *Session) tryBind(m message, b *bound, name, on string, f form) {
	s.expect(pendingReply{kind: pendingBind, own: true, silent: true, name: name, from: on,
		portal: &portal{form: f, on: on}})
	out, start := beginMessage(s.toServer, msgBind)
	out = append(append(append(out, name...), 0), on...)
	out = append(append(out, 0), m.body[b.head:b.results]...)
	s.toServer = endMessage(append(out, 0, 0), start)
	s.expect(pendingReply{kind: pendingClose, own: true, silent: true, closes: ofPortal, name: name})
	s.toServer = appendNamed(s.toServer, msgClose, ofPortal, name)
}

// bindFirst returns what has the server bind what stands under the client's name before a variant of it is prepared,
// for chooseVariant; nil where it need not.
func (s *Session) bindFirst(m message, b *bound, st *statement) func() {
	if m.more > 0 || !s.pipeline.behindOthers() {
		return nil
	}
	return func() { s.tryBind(m, b, b.portal, b.statement, st.form) }
}

// describeFirst is the same for a Describe.
func (s *Session) describeFirst(m message, name string) func() {
	if !s.pipeline.behindOthers() {
		return nil
	}
	return func() {
		s.expect(pendingReply{kind: pendingDescribeStatement, own: true, silent: true, name: name})
		s.toServer = append(s.toServer, m.raw...)
	}
}

// sendParse sends the statement's text in that form under a name.
func (s *Session) sendParse(name string, st *statement, f *form) {
	b, start := beginMessage(s.toServer, msgParse)
	b = append(append(b, name...), 0)
	if sent := f.upstream(); sent != nil {
		b = sent.Append(b)
	} else {
		b = append(b, st.text...)
	}
	s.toServer = endMessage(append(append(b, 0), st.types...), start)
}
