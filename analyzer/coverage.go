package analyzer

import "github.com/isotap/isotap/history"

func newCoverage() Coverage {
	return Coverage{Reasons: make(map[string]int), Causes: make(map[string]Observed), Kinds: make(map[history.Kind]Observed),
		Levels: make(map[history.Level]int)}
}

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
	one := Observed{}
	switch s.Observation {
	case history.Nothing:
	case history.Exact:
		c.Exact++
		one.Exact++
	case history.Inexact:
		c.Inexact++
		one.Inexact++
	default:
		c.Opaque++
		one.Opaque++
	}
	if n := one.Statements(); n > 0 {
		c.Statements += n
		c.Kinds[s.Kind] = c.Kinds[s.Kind].Plus(one)
		if one.Exact == 0 {
			c.Reasons[s.Reason]++
			c.Causes[s.Reason] = c.Causes[s.Reason].Plus(one)
		}
	}
	for i := range s.Accesses {
		switch a := &s.Accesses[i]; {
		case a.Op != history.Read:
			c.Writes++
		case !a.Absent && !a.Gone:
			c.Reads++
		}
	}
}

// Plus adds two counts.
func (o Observed) Plus(p Observed) Observed {
	return Observed{o.Exact + p.Exact, o.Inexact + p.Inexact, o.Opaque + p.Opaque}
}
