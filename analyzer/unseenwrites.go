package analyzer

import (
	"github.com/isotap/isotap/history"
)

// mayHaveWritten reports whether a statement may have written rows without leaving its tag: a procedure, a trigger,
// a cascade, or whatever else was not observed. Of a SELECT that was not, it must be known why.
func mayHaveWritten(s *history.Stmt, sh shape) bool {
	switch s.Observation {
	case history.Nothing, history.Exact:
		return false
	}
	switch s.Kind {
	case history.Insert, history.Update, history.Delete, history.Replace, history.Merge, history.Copy:
		return !s.Void
	case history.Select:
		known := s.Observation == history.Inexact || s.Reason.TablesKnown()
		return sh.calls || !known
	}
	return true
}
