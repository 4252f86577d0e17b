package postgres

import (
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// transaction classifies what begins and ends transactions, and what stands in them.
func (v verb) transaction() {
	p := v.p
	switch {
	case v.is(0, "BEGIN"), v.is(0, "START"):
		p.Kind, p.Txn.Level = history.Begin, v.level(1)
	case v.is(1, "PREPARED"):
		p.Kind = history.Commit
		if v.is(0, "ROLLBACK") {
			p.Kind = history.Rollback
		}
		p.Txn.Global, _ = v.value(2)
	case v.is(0, "PREPARE"):
		p.Txn.Ends = true
		p.Txn.Global, _ = v.value(2)
	case v.is(0, "COMMIT", "END"):
		p.Kind, p.Txn.Ends, p.Txn.Chains = history.Commit, true, v.chains()
	case v.is(0, "ROLLBACK") && v.has(1, "TO"):
		p.Kind, p.Txn.Savepoint = history.Rollback, v.savepoint()
	case v.is(0, "ROLLBACK", "ABORT"):
		p.Kind, p.Txn.Ends, p.Txn.Chains = history.Rollback, true, v.chains()
	case v.is(0, "SAVEPOINT"):
		p.Kind, p.Txn.Savepoint = history.Savepoint, v.savepoint()
	case v.is(0, "RELEASE"):
		p.Kind, p.Txn.Savepoint = history.Release, v.savepoint()
	}
}

// chains reports whether the next transaction begins at once.
func (v verb) chains() bool {
	i := len(v.toks) - 1
	return v.is(i, "CHAIN") && !v.is(i-1, "NO")
}

// savepoint returns the name, which is the last token.
func (v verb) savepoint() string {
	s, _ := v.ident(len(v.toks) - 1)
	return s
}

// level returns the level that ISOLATION LEVEL names from token i on; of several the last.
func (v verb) level(i int) history.Level {
	l := history.LevelUnknown
	for ; i < len(v.toks); i++ {
		if v.is(i, "ISOLATION") && v.is(i+1, "LEVEL") {
			l = levelNamed(v.tok(i+2) + " " + v.tok(i+3))
		}
	}
	return l
}

// levelNamed reads a level whose name begins the text.
func levelNamed(s string) history.Level {
	s = strings.ToUpper(strings.Join(strings.Fields(s), " "))
	for l := history.ReadUncommitted; l <= history.Serializable; l++ {
		if strings.HasPrefix(s, l.String()) {
			return l
		}
	}
	return history.LevelUnknown
}

// set classifies SET. A setting of the transaction counts for it alone; any other may matter to the
// session: ask the server.
func (v verb) set() {
	p := v.p
	p.Kind = history.Set
	switch i := 1; {
	case v.is(1, "CONSTRAINTS"):
		return
	case v.is(1, "TRANSACTION"), v.is(1, "LOCAL", "SESSION") && v.is(2, "TRANSACTION"):
		p.Txn.Level = v.level(1)
		if v.has(1, "SNAPSHOT") {
			p.Txn.ImportsSnapshot = true
			return // its level must have been set before
		}
	case v.is(1, "SESSION") && v.is(2, "CHARACTERISTICS"):
		p.Session.Changes = true
	default:
		if v.is(1, "SESSION", "LOCAL") && !v.is(2, "TO") && !v.sign(2, "=") {
			i = 2
		}
		p.Session.Changes = v.matters(i)
		if v.is(i, "TRANSACTION_ISOLATION") {
			if s, ok := v.value(i + 2); ok {
				p.Txn.Level = levelNamed(s)
			}
			p.Session.Changes = p.Txn.Level == history.LevelUnknown
		}
	}
}

// matters reports whether the setting that token i names may change what texts mean, what the session sees, or
// its transactions' level. Some that surely do not are named: clients set them with every connection.
func (v verb) matters(i int) bool {
	return !v.is(i, "APPLICATION_NAME", "EXTRA_FLOAT_DIGITS", "DATESTYLE", "INTERVALSTYLE", "TIMEZONE", "TIME",
		"STATEMENT_TIMEOUT",
		"LOCK_TIMEOUT", "IDLE_IN_TRANSACTION_SESSION_TIMEOUT", "CLIENT_MIN_MESSAGES", "BYTEA_OUTPUT", "WORK_MEM",
		"SYNCHRONOUS_COMMIT", "SEED", "JIT", "ENABLE_SEQSCAN", "ENABLE_INDEXSCAN", "ENABLE_BITMAPSCAN",
		"DEADLOCK_TIMEOUT")
}

// reset classifies RESET and DISCARD.
func (v verb) reset() {
	v.p.Kind = history.Set
	if v.is(0, "RESET") {
		v.p.Session.Changes = v.matters(1)
		return
	}
	all := v.is(1, "ALL")
	v.p.Session.Changes = all
	if v.p.Schema.Changes = all || v.is(1, "TEMP", "TEMPORARY"); v.p.Schema.Changes {
		v.p.Schema.Change = &rewrite.SchemaChange{} // temporary tables are nobody else's
	}
}
