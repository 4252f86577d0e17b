package postgres

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// takeSightings turns what a statement's rows showed into accesses and places. All ids of a statement share
// one allocation. A write that failed wrote nothing, whatever it had returned by then.
func (s *Session) takeSightings(c *resultInProgress, st *history.Stmt, failed bool) {
	defer s.seen.forget()
	if c.plan == nil || c.hidden == 0 {
		return
	}
	s.judge(c.plan, st, failed)
	if len(s.seen.list) == 0 || st.Observation == history.Opaque {
		return
	}
	text, start := string(s.seen.arena), 0
	accesses, places := slices.Grow(st.Accesses, len(s.seen.list)), make([]history.TupleID, 0, len(s.seen.list))
	for i := range s.seen.list {
		seen := &s.seen.list[i]
		id := text[start:seen.end]
		start = seen.end
		source := &c.plan.Result.Sources[seen.source]
		if failed && seen.op != history.Read {
			continue
		}
		place := seen.place
		row := history.Row{Table: source.Table, ID: id}
		if leaves := source.Physical.Leaves; leaves != nil {
			row.Table, place.Leaf = leaves[place.Leaf], 0
		}
		if row.Table == "" {
			downgrade(st, history.Inexact, history.ReasonUnknownRow)
			continue
		}
		if seen.moved {
			downgrade(st, history.Inexact, history.ReasonKeyChanged)
		}
		accesses = append(accesses, history.Access{Row: row, Op: seen.op, Inexact: seen.moved})
		places = append(places, place)
		if seen.image != "" && unambiguous(s.settings.literals) {
			if st.Images == nil {
				st.Images = make([]string, len(st.Accesses)+len(s.seen.list))
			}
			st.Images[len(accesses)-1] = seen.image
		}
	}
	st.Accesses, st.TupleIDs = accesses, places
	if st.Images != nil {
		st.Images = st.Images[:len(accesses)]
	}
}

// lack reports whether the only array of a source did not come.
func (s *sightings) lack(sources []sqlpostgres.Source) bool {
	for i := range sources {
		if sources[i].Whole && s.arrays&(1<<i) == 0 {
			return true
		}
	}
	return false
}

// leftOut is the reason why a statement that shows no row does not tell what it read.
func leftOut(p *sqlpostgres.Plan) history.Reason {
	switch {
	case p.Result.Tag != "":
		return history.ReasonWith
	case p.Kind == history.Insert:
		return history.ReasonInsertSelect
	}
	return history.ReasonGroupsLeftOut
}

// judge lowers the observation of a statement whose rows did not show all that the plan promised.
func (s *Session) judge(p *sqlpostgres.Plan, st *history.Stmt, failed bool) {
	if p.Kind == history.Select && (s.seen.partial || s.seen.collected > sqlpostgres.MaxArray) {
		s.planner.TooLarge(p.Shape)
	}
	switch {
	case s.seen.unread:
		downgrade(st, history.Inexact, history.ReasonUnreadableIdentity)
	case !s.seen.more.IsZero():
		downgrade(st, history.Inexact, s.seen.more)
	case s.seen.partial:
		downgrade(st, history.Inexact, history.ReasonLargeAggregate)
	case s.seen.lack(p.Result.Sources):
		downgrade(st, history.Inexact, leftOut(p))
	case !failed && counts(p) && st.Affected != s.seen.rows:
		downgrade(st, history.Inexact, history.ReasonCount)
	}
}

// closed returns the predicates of a plan with the parameters of a portal in their places; nil portal: there are none.
// A predicate of a parameter whose value cannot be read is left out.
func (s *Session) closed(p *sqlpostgres.Plan, portal *portal) []history.Predicate {
	var out []history.Predicate
	var literals []string
	if portal != nil {
		literals = portal.literals
	}
	for i := range p.Predicates {
		open := &p.Predicates[i]
		if where, ok := open.Close(literals); ok {
			out = append(out, history.Predicate{Table: open.Table, Of: open.Of, As: open.As, Where: where,
				Settings: s.settings.literals})
		}
	}
	return out
}

// unambiguous says that what the session shows of dates, times and intervals means the same to every other session.
func unambiguous(s history.LiteralSettings) bool {
	return strings.HasPrefix(s.DateStyle, "ISO") && s.IntervalStyle != "sql_standard"
}
