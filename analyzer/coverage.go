package analyzer

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// A coverageCount counts what a [Coverage] tells. What there are few values of is counted without a map.
type coverageCount struct {
	Coverage
	kinds  [1 << 8]Observed // by history.Kind
	levels [1 << 8]int      // by history.Level
	// families are those of the runs in mode predicates, and limited what their shapes are, as far as somebody asked.
	families map[history.Run]dbms.Family
	limited  map[statementShape]bool
}

func newCoverageCount() *coverageCount {
	return &coverageCount{Coverage: Coverage{Reasons: make(map[history.Reason]int),
		Causes: make(map[history.Reason]Observed)},
		families: make(map[history.Run]dbms.Family), limited: make(map[statementShape]bool)}
}

// began takes in a run, before its transactions.
func (c *coverageCount) began(info *history.Info) {
	if info.Mode == "predicates" {
		c.families[info.Run] = info.Server.Engine.Family()
	}
}

// countCondition counts a statement of a run in mode predicates, on a server of the given family.
func (c *coverageCount) countCondition(family dbms.Family, s *history.Stmt) {
	switch s.Kind {
	case history.Select, history.Update, history.Delete:
	default:
		return
	}
	if s.Observation == history.Nothing {
		return
	}
	c.Looked++
	if len(s.Predicates) > 0 {
		c.Conditions++
		return
	}
	of := statementShape{family, s.Shape}
	limited, known := c.limited[of]
	if !known {
		of.text = strings.Clone(of.text)
		limited = hasLimit(wordsOf(family, of.text))
		c.limited[of] = limited
	}
	if limited {
		c.Limited++
	}
}

// hasLimit reports whether a statement, or a query in it, takes no more than so many rows.
func hasLimit(words []word) bool {
	return slices.ContainsFunc(words, func(w word) bool { return w.keyword("LIMIT") || w.keyword("FETCH") })
}

// coverage returns what was counted of the runs' transactions, and what is known to be missing.
func (c *coverageCount) coverage(infos []history.Info) Coverage {
	all := c.Coverage
	for i := range infos {
		for _, g := range infos[i].Gaps {
			all.Unrecorded += int(g.Txns)
		}
		all.Unreadable += int(infos[i].Unreadable)
		all.Damaged = all.Damaged || infos[i].Damaged
	}
	all.Kinds, all.Levels = make(map[history.Kind]Observed), make(map[history.Level]int)
	for kind, n := range c.kinds {
		if n.Statements() > 0 {
			all.Kinds[history.Kind(kind)] = n
		}
	}
	for level, n := range c.levels {
		if n > 0 {
			all.Levels[history.Level(level)] = n
		}
	}
	return all
}

// count adds a transaction.
func (c *coverageCount) count(t *history.Txn) {
	c.Txns++
	c.levels[t.Level]++
	switch t.Status {
	case history.Committed:
		c.Committed++
	case history.Aborted:
		c.Aborted++
	default:
		c.Indeterminate++
	}
	before := c.Statements
	family, conditions := c.families[t.ID.Run()]
	for i := range t.Stmts {
		c.countStmt(&t.Stmts[i])
		if conditions {
			c.countCondition(family, &t.Stmts[i])
		}
		c.countAccesses(t.Stmts[i].Accesses)
	}
	if c.Statements > before+1 {
		c.Several++
	}
}

func (c *coverageCount) countStmt(s *history.Stmt) {
	switch s.Observation {
	case history.Nothing:
		return
	case history.Exact:
		c.Exact++
		c.kinds[s.Kind].Exact++
	case history.Inexact:
		c.Inexact++
		c.kinds[s.Kind].Inexact++
		c.cause(s.Reason, Observed{Inexact: 1})
	default:
		c.Opaque++
		c.kinds[s.Kind].Opaque++
		c.cause(s.Reason, Observed{Opaque: 1})
	}
	c.Statements++
}

// cause counts a statement that is not exact.
func (c *coverageCount) cause(reason history.Reason, how Observed) {
	c.Reasons[reason]++
	c.Causes[reason] = c.Causes[reason].Plus(how)
}

func (c *coverageCount) countAccesses(accesses []history.Access) {
	for i := range accesses {
		switch a := &accesses[i]; {
		case a.Op != history.Read:
			c.Writes++
		case !a.Absent && !a.Gone:
			c.Reads++
			if a.Version.Txn.Run() == history.Unrecorded {
				c.UnseenOrigins++
			}
		}
	}
}

// Plus adds two counts.
func (o Observed) Plus(p Observed) Observed {
	return Observed{o.Exact + p.Exact, o.Inexact + p.Inexact, o.Opaque + p.Opaque}
}
