package analyzer

import (
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// takesSnapshot reports whether a statement of a transaction surely took the snapshot of it, where the transaction had
// none before and its level has one: it read a row of another's.
func takesSnapshot(s *history.Stmt, sh shape, id history.TxnID, engine dbms.Engine) bool {
	if s.Void || s.End <= 0 {
		return false
	}
	postgres := engine == dbms.PostgreSQL // where every statement that reads or writes takes it
	switch s.Kind {
	case history.Begin:
		return !postgres && strings.Contains(strings.ToUpper(s.Shape), "SNAPSHOT")
	case history.Select:
		if !postgres && (s.Locking != history.NoLock || sh.nested || sh.calls) {
			return false
		}
	case history.Insert, history.Update, history.Delete, history.Merge:
		if !postgres {
			return false
		}
	default:
		return false
	}
	for i := range s.Accesses {
		a := &s.Accesses[i]
		if !a.Inexact && !a.Absent && !a.Gone && a.Version.Txn != id {
			return true
		}
	}
	return false
}

// interference finds the G-SIa that are forbidden. One that is on a cycle whose rw stand apart has a stricter name.
func (s *search) interference() {
	s.class, s.flow = Violation, flow
	work, ready := s.opts.Work, false
	for i := range s.o.interfering {
		d := &s.o.interfering[i]
		if s.judge.classOfInterference(d) != Violation {
			continue
		}
		if !ready {
			s.setTogether(false)
			ready = true
		}
		if !s.onStricter(d, &work) {
			s.found.add(GSIa, Violation, []dep{*d})
		}
	}
}

// onStricter reports whether a dependency is on a cycle that is a violation, and no two rw of which follow each other.
func (s *search) onStricter(d *dep, work *int) bool {
	if len(s.nodes) == 0 || s.local[d.from] < 0 || s.local[d.to] < 0 {
		return false
	}
	from := s.local[d.from]
	for _, e := range s.out[s.off[from]:s.off[from+1]] {
		if s.edges[e] == *d {
			return s.binds[e] && s.alternating(e, func(f int32) bool { return s.usable(f, flow) || s.open(f) },
				work) != nil
		}
	}
	return false
}
