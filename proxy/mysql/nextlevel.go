package mysql

import "github.com/isotap/isotap/history"

// nextLevel is what SET TRANSACTION ISOLATION LEVEL said of the next transaction only. The server cannot
// be asked for it, so what may have set it or used it up without a trace leaves the next transaction's
// level unknown.
type nextLevel struct {
	level  history.Level // history.LevelUnknown: the session's
	unsure bool
}

// set reports whether the next transaction may have a level of its own.
func (n nextLevel) set() bool { return n.unsure || n.level != history.LevelUnknown }

// of returns the next transaction's level, where the session's is known.
func (n nextLevel) of(session history.Level) history.Level {
	switch {
	case n.unsure:
		return history.LevelUnknown
	case n.level != history.LevelUnknown:
		return n.level
	}
	return session
}

// followNext finds out what a finished statement made of the next transaction's level.
func (s *Session) followNext(o *observed, x *exchange) {
	plan, next := o.plan, &s.next
	opaque := plan.Observation == history.Opaque
	switch {
	case plan.Txn.NextLevel != history.LevelUnknown && !opaque:
		if !x.failed {
			*next = nextLevel{level: plan.Txn.NextLevel}
		}
	case plan.Txn.SetsNext, opaque && plan.Session.Changes:
		next.unsure = true
	case o.tookNext:
		// One that failed may have begun no transaction, nor need one that nobody has looked into.
		next.unsure = next.unsure || x.failed || opaque
	case next.set() && plan.Kind != history.Set:
		next.unsure = true // COMMIT uses it up; SHOW does on MySQL
	}
}
