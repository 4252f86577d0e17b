package postgres

import (
	"regexp"
	"slices"

	"github.com/isotap/isotap/history"
)

// A prepared star stands for the columns that its tables had when it was prepared: once they have others, the server
// refuses to run the statement. It does not see a star in what isotap sends in the place of one.

// starsPortal is the portal in which a client's own text is tried.
const starsPortal = "isotap_stars"

var anotherQuery = regexp.MustCompile(`(?i)\bselect\b(?s:.*)\bselect\b|\b(?:natural|table|with)\b`)

// keepStars has the client's own text of a query stand beside what was made of it, if it has stars that isotap expands.
// Where a part of it joins, compares or counts columns it might mean something else with isotap's, or fail.
func (s *Session) keepStars(st *statement) {
	plan := st.form.plan(0)
	if plan == nil || plan.Kind != history.Select || st.form.script.Plain == nil || st.form.bare ||
		anotherQuery.Match(st.text) {
		return
	}
	s.variantNamed(st, form{script: st.form.script, bare: true})
}

// tryStars has the server look at the client's own text of a statement whose stars may have come to stand for other
// columns, before the statement is bound: its error is the client's.
func (s *Session) tryStars(m message, b *bound, st *statement) {
	at := slices.IndexFunc(st.variants, func(b variant) bool { return b.form.bare })
	if at < 0 || m.more > 0 || s.planner == nil || s.txn.status == txnFailed || s.settings.env.TempTables != "" {
		return // a temporary table does not have isotap's columns, and may have all others
	}
	script, _ := s.planSafely(st.text, s.planEnv(true))
	switch {
	case script == nil:
		return
	case script.Plain == nil && s.settings.env.Unsettled == "" && !s.settings.env.AllUnsettled: // the table has isotap's columns no more
		return
	case script.Plain != nil && slices.Equal(script.Plain.Pieces, st.form.script.Plain.Pieces):
		return
	}
	name := st.variants[at].name
	s.expect(pendingReply{kind: pendingBind, own: true, silent: true, name: starsPortal, from: name,
		portal: &portal{form: st.variants[at].form, on: name}})
	out, start := beginMessage(s.toServer, msgBind)
	out = append(append(append(out, starsPortal...), 0), name...)
	out = append(append(out, 0), m.body[b.head:b.results]...)
	s.toServer = endMessage(append(out, 0, 0), start)
	s.expect(pendingReply{kind: pendingClose, own: true, silent: true, closes: ofPortal, name: starsPortal})
	s.toServer = appendNamed(s.toServer, msgClose, ofPortal, starsPortal)
}
