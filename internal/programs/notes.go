package programs

import (
	"fmt"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/mining"
)

// evidence returns what a recording cannot tell.
func evidence(m *mining.Mined) []string {
	calls := 0
	for _, p := range m.Programs {
		calls += p.Calls
	}
	notes := []string{fmt.Sprintf("programs that the recording does not have are not covered, "+
		"nor are other ways through those that it has: it has %d calls", calls)}
	if m.LeftOut > 0 {
		notes = append(notes, fmt.Sprintf("%d programs with fewer calls than --min-calls are left out, and not covered",
			m.LeftOut))
	}
	if m.Ended > 0 {
		notes = append(notes, fmt.Sprintf("%d transactions were rolled back, or it is not known how they ended: "+
			"they are no evidence", m.Ended))
	}
	if len(m.Locks) > 0 {
		notes = append(notes, "locks of tables as a whole and of names are not counted: what these keep apart is told as not "+
			"safe all the same: "+strings.Join(m.Locks, "; "))
	}
	notes = append(notes, kept(m.Workload)...)
	for _, what := range m.Unreadable {
		notes = append(notes, "not covered: "+what)
	}
	return notes
}

// kept reports whether the transactions that were recorded keep what is assumed of programs (5.4).
func kept(w *robust.Workload) []string {
	noted := func(what string) []string {
		return labels(w, func(q *robust.Statement) bool {
			return q.Type.ByPredicate() && strings.Contains(strings.Join(q.Notes, " "), what)
		})
	}
	changed := labels(w, func(q *robust.Statement) bool {
		r := w.Schema.Relation(q.Relation)
		return r != nil && q.Type != robust.Ins && q.Type != robust.KeyDel && q.Type != robust.PredDel &&
			q.Write.Meets(robust.Of(r.Key...))
	})
	var notes []string
	say := func(assumption string, broken []string, then string) {
		if len(broken) == 0 {
			notes = append(notes, "checked in the recording: "+assumption+": kept")
		} else {
			notes = append(notes, fmt.Sprintf("checked in the recording: %s: NOT kept by %s: %s", assumption,
				strings.Join(broken, ", "), then))
		}
	}
	say("statements by key find a row", noted("may not be there"), "they are taken as by predicate")
	say("statements by key use one row", noted("it used several rows"), "they are taken as by predicate")
	say("primary keys are never updated", changed, "statements by these keys are taken as by predicate")
	return notes
}

// labels names the statements of which something is so.
func labels(w *robust.Workload, is func(*robust.Statement) bool) (which []string) {
	for _, p := range w.Programs {
		for _, q := range p.Statements() {
			if is(q) {
				which = append(which, p.Label()+" "+q.Name)
			}
		}
	}
	return which
}

// assumptions returns which of the assumptions about servers are kept (5.4): as the server answered, or else by what is
// known of its family. PostgreSQL keeps them: each statement of a transaction at READ COMMITTED takes a snapshot, and a
// row that was changed since is looked at once more as it is then. InnoDB's UPDATE and DELETE at READ COMMITTED pass
// over rows by what was committed before they waited (semi-consistent reads), so that a statement by predicate is no
// atomic chunk: case troc-fig1.
func (o *Options) assumptions(family dbms.Family, w *robust.Workload) []string {
	which := labels(w, func(q *robust.Statement) bool {
		return q.Type == robust.PredUpd || q.Type == robust.PredDel || q.Type == robust.PredSel &&
			q.Lock != robust.NoLock
	})
	var notes []string
	for i := range o.Answers {
		a := &o.Answers[i]
		note := a.String()
		if a.Predicate && len(a.Broken) > 0 && len(which) > 0 {
			note += ": the answers do not hold for " + strings.Join(which, ", ")
		}
		notes = append(notes, note)
	}
	if o.Answers == nil && family == dbms.MySQLFamily && len(which) > 0 {
		notes = append(notes, "not checked (--check-engine), by what is known of MySQL and MariaDB: "+
			"UPDATE, DELETE and locking SELECT by predicate see no single state of the table at READ COMMITTED "+
			"(semi-consistent reads), which the answers assume: they do not hold for "+strings.Join(which, ", "))
	}
	return notes
}
