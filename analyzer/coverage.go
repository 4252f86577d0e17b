package analyzer

import "github.com/isotap/isotap/history"

// count adds a transaction to the coverage.
func (c *Coverage) count(t *history.Txn) {
	c.Txns++
	c.Levels[t.Level]++
	switch t.Status {
	case history.Committed:
		c.Committed++
	case history.Aborted:
		c.Aborted++
	default:
		c.Indeterminate++
	}
	for i := range t.Stmts {
		c.countStmt(&t.Stmts[i])
	}
}

func (c *Coverage) countStmt(s *history.Stmt) {
	switch s.Observation {
	case history.Nothing:
	case history.Exact:
		c.Statements++
		c.Exact++
	case history.Inexact:
		c.Statements++
		c.Inexact++
		c.Reasons[s.Reason]++
	default:
		c.Statements++
		c.Opaque++
		c.Reasons[s.Reason]++
	}
	for i := range s.Accesses {
		if s.Accesses[i].Op == history.Read {
			c.Reads++
		} else {
			c.Writes++
		}
	}
}
