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
	// families are those of the runs in mode predicates. causes keeps what was worked out for their shapes.
	families map[history.Run]dbms.Family
	tagged   map[history.Run]bool // those of the MySQL family, whose rows carry tags
	causes   map[shapeObserved]NoCondition
	// conditioned are the tables that conditions were about, and imageless counts the versions of each table that rows
	// were left in without their values.
	conditioned map[string]bool
	imageless   map[string]int
	without     [noConditions]int
	wide        [noConditions]int
	// tellsCascades are the runs whose server's log tells what foreign keys changed, as PostgreSQL's does.
	tellsCascades map[history.Run]bool
	doubtful      doubtfulReads
}

// A shapeObserved is a shape whose statements were observed so well.
type shapeObserved struct {
	statementShape
	history.Observation
}

func newCoverageCount() *coverageCount {
	return &coverageCount{Coverage: Coverage{Reasons: make(map[history.Reason]int),
		Causes: make(map[history.Reason]Observed)},
		families: make(map[history.Run]dbms.Family), causes: make(map[shapeObserved]NoCondition),
		tagged:      make(map[history.Run]bool),
		conditioned: make(map[string]bool), imageless: make(map[string]int), doubtful: newDoubtfulReads(),
		tellsCascades: make(map[history.Run]bool)}
}

// began takes in a run, before its transactions.
func (c *coverageCount) began(info *history.Info) {
	c.tagged[info.Run] = info.Server.Engine.Family() == dbms.MySQLFamily
	logged := slices.ContainsFunc(info.Log, func(s history.LogStretch) bool { return !s.Empty() })
	c.doubtful.logged[info.Run] = logged
	c.tellsCascades[info.Run] = logged && info.Server.Engine.Family() != dbms.MySQLFamily
	if info.Mode == "predicates" {
		c.families[info.Run] = info.Server.Engine.Family()
	}
}

// countCondition counts a statement of a run in mode predicates, on a server of the given family.
func (c *coverageCount) countCondition(family dbms.Family, s *history.Stmt) {
	switch s.Kind {
	case history.Select, history.Update, history.Delete:
	default:
		if len(s.Predicates) == 0 {
			return
		}
	}
	if s.Observation == history.Nothing {
		return
	}
	c.Looked++
	for i := range s.Predicates {
		if table := s.Predicates[i].Table; !c.conditioned[table] {
			c.conditioned[strings.Clone(table)] = true
		}
	}
	if len(s.Predicates) > 0 {
		c.Conditions++
		if !slices.ContainsFunc(s.Predicates, func(p history.Predicate) bool { return !p.Wide }) {
			c.Wide++
			if cause := c.causeOf(family, s); !told(s, cause) {
				c.wide[cause]++
			}
		}
		return
	}
	c.without[c.causeOf(family, s)]++
}

// countImageless counts the versions that a transaction left of which no condition can say whether they match.
func (c *coverageCount) countImageless(t *history.Txn) {
	if t.Status == history.Aborted {
		return
	}
	for i := range t.Stmts {
		s := &t.Stmts[i]
		for j := range s.Accesses {
			a := &s.Accesses[j]
			if s.Void || a.Op != history.InsertRow && a.Op != history.UpdateRow || j < len(s.Images) && s.Images[j] != "" {
				continue
			}
			if _, known := c.imageless[a.Row.Table]; !known {
				c.imageless[strings.Clone(a.Row.Table)] = 0
			}
			c.imageless[a.Row.Table]++
		}
	}
}

// told reports whether a condition of a statement has the value of what is a cause for others to be wide.
func told(s *history.Stmt, cause NoCondition) bool {
	var asked history.Asked
	switch cause {
	case Timed:
		asked = history.AskedTime
	case OfSession:
		asked = history.AskedUser
	default:
		return false
	}
	return slices.ContainsFunc(s.Predicates, func(p history.Predicate) bool { return p.Told.Has(asked) })
}

// causeOf returns why a statement left no condition, or a wide one.
func (c *coverageCount) causeOf(family dbms.Family, s *history.Stmt) NoCondition {
	of := shapeObserved{statementShape{family, s.Shape}, s.Observation}
	cause, known := c.causes[of]
	if !known {
		of.text = strings.Clone(of.text)
		cause = noConditionOf(family, of.text, s.Observation)
		c.causes[of] = cause
	}
	return cause
}

// coverage returns what was counted of the runs' transactions, and what is known to be missing.
func (c *coverageCount) coverage(infos []history.Info) Coverage {
	all := c.Coverage
	for i := range infos {
		for _, g := range infos[i].Gaps {
			all.Unrecorded += int(g.Txns)
		}
		all.Unreadable += int(infos[i].Unreadable)
		all.Untested += int(infos[i].Untested)
		all.BeyondBound += int(infos[i].BeyondBound)
		all.Log.Stretches = append(all.Log.Stretches, infos[i].Log...)
		all.Damaged = all.Damaged || infos[i].Damaged
	}
	for table := range c.conditioned {
		all.Imageless += c.imageless[table]
	}
	if all.Looked > 0 {
		all.Without, all.Widened = make(map[NoCondition]int), make(map[NoCondition]int)
	}
	for cause := range NoCondition(noConditions) {
		if n := c.without[cause]; n > 0 {
			all.Without[cause] = n
		}
		if n := c.wide[cause]; n > 0 && (cause == Volatile || cause == Timed || cause == OfSession) {
			all.Widened[cause] = n
		}
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

// count adds a transaction, which was noted.
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
	switch {
	case conditions:
		c.countImageless(t)
	case insertsUnfound(t):
		c.LookedAndInserted++
	}
	for i := range t.Stmts {
		if t.Stmts[i].Unseen {
			continue
		}
		c.countStmt(&t.Stmts[i])
		reason := t.Stmts[i].Reason
		if t.Status != history.Aborted && (reason == history.ReasonCascadeUnlogged ||
			reason == history.ReasonCascade && !c.tellsCascades[t.ID.Run()]) {
			c.Cascades++
		}
		if c.tagged[t.ID.Run()] && t.Status != history.Aborted && keepsTags(&t.Stmts[i]) {
			c.OldTags++
		}
		if conditions {
			c.countCondition(family, &t.Stmts[i])
		}
		c.countAccesses(t.Stmts[i].Accesses)
	}
	if c.Statements > before+1 {
		c.Several++
	}
}

// insertsUnfound reports whether a transaction inserted rows after it had looked for some and found none.
func insertsUnfound(t *history.Txn) bool {
	looked := false
	for i := range t.Stmts {
		switch s := &t.Stmts[i]; {
		case s.Void, s.Unseen, s.Observation == history.Nothing:
		case s.Kind == history.Select:
			looked = looked || s.Rows == 0
		case s.Kind == history.Insert && looked:
			return true
		}
	}
	return false
}

// keepsTags reports whether a statement of the MySQL family's may have changed rows and left them the tags that they
// had.
func keepsTags(s *history.Stmt) bool {
	if s.Observation != history.Opaque || s.Void {
		return false
	}
	if s.Kind != history.Insert {
		return s.Kind == history.Update
	}
	words := wordsOf(dbms.MySQLFamily, s.Shape)
	return slices.ContainsFunc(words, func(w word) bool { return w.keyword("DUPLICATE") })
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
