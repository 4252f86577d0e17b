package postgres

import (
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A portal's rows may be fetched in pieces, by several Executes with a row limit. What they show is one statement's:
// all of it is as old as the portal, and belongs to the record of the first Execute.

// pieces is what a portal that is fetched in pieces has shown so far.
type pieces struct {
	txn *history.Txn // that has the record; nil: there is none
	at  int          // the record among its statements
	// observation and reason are what they would be if all rows had come.
	observation history.Observation
	reason      history.Reason
	rows        uint64
	arrays      uint64
	// interrupted says that some rows may have been fetched in another way.
	interrupted bool
}

// piecesOf returns the pieces that the result which comes in is one of; nil where each is a statement of its own: what
// is fetched from SQL's cursors is put elsewhere, and rows that are locked are read as they are fetched.
func piecesOf(c *resultInProgress) *pieces {
	if c.portal == nil || c.portal.cursor != nil || c.plan != nil && c.plan.Locking != history.NoLock {
		return nil
	}
	return &c.portal.pieces
}

// before counts what earlier pieces have shown among what this one has, before it is judged.
func (g *pieces) before(s *rowIdentities, c *resultInProgress, st *history.Stmt) {
	if g == nil {
		return
	}
	// The last tag of a write in pieces counts the last of them, before version 13 all.
	if s.rows += g.rows; c.plan != nil && counts(c.plan) && st.Affected == c.rows {
		st.Affected += g.rows
	}
	s.arrays |= g.arrays
	g.rows, g.arrays = g.rows+c.rows, s.arrays
}

// shownInPart reports whether the rows that a statement has shown tell all that it has read for them, as if it had a
// LIMIT. The rows of a write are all written, and groups tell of more than was shown.
func shownInPart(p *sqlpostgres.Plan) bool {
	return p != nil && p.Kind == history.Select &&
		!slices.ContainsFunc(p.Result.Sources, func(s sqlpostgres.Source) bool {
			return s.Array || writes(&s)
		})
}

// hasLimit reports whether one of a plan's predicates holds for results of few rows only.
func hasLimit(plan *sqlpostgres.Plan) bool {
	return plan != nil && slices.ContainsFunc(plan.Predicates, func(p rewrite.Predicate) bool { return p.Limit != nil })
}

// record puts what an Execute has shown into the record of its portal in a transaction: the first one's is the record.
// The last one tells that there are no more rows. It reports whether the portal's rows are seen to; nil is no portal.
func (g *pieces) record(t *transaction, level history.Level, plan *sqlpostgres.Plan, st *history.Stmt, last bool) bool {
	switch {
	case g == nil, g.txn != nil && g.txn != t.open:
		return false
	case g.txn == nil && last: // all rows came at once
		return true
	case g.txn == nil:
		g.observation, g.reason = st.Observation, st.Reason
		if st.Predicates = nil; !shownInPart(plan) { // rows that match may come
			downgrade(st, history.Inexact, history.ReasonRowLimit)
		}
		if t.record(st, level); t.open != nil && st.Observation != history.Nothing && !t.unrecorded.Full() {
			g.txn, g.at = t.open, len(t.open.Stmts)-1
		}
		return true
	}
	record := &g.txn.Stmts[g.at]
	t.append(record, st, st)
	if g.observation < st.Observation {
		g.observation, g.reason = st.Observation, st.Reason
	}
	record.Observation, record.Reason, record.Rows = g.observation, g.reason, record.Rows+st.Rows
	record.Affected = st.Affected
	if whole := last && !g.interrupted; whole {
		if !hasLimit(plan) { // st has counted the last rows only
			record.Predicates = st.Predicates
		}
	} else if !shownInPart(plan) {
		downgrade(record, history.Inexact, history.ReasonRowLimit)
	}
	st.Observation, st.Reason = history.Nothing, history.Reason{}
	st.Accesses, st.TupleIDs, st.Images, st.Predicates = nil, nil, nil, nil
	return true
}
