package mysql

import (
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// transaction classifies what begins and ends transactions, and what stands in them.
func (v verb) transaction() {
	p := v.p
	switch {
	case v.is(0, "BEGIN") && v.is(1, "NOT"):
		v.unknown(history.ReasonCompound)
	case v.is(0, "BEGIN"), v.is(0, "START") && v.is(1, "TRANSACTION"):
		p.Kind, p.Txn.Ends = history.Begin, true
	case v.is(0, "START"):
		p.Txn.Ends = true
	case v.is(0, "COMMIT"):
		p.Kind = history.Commit
		p.Txn.Ends = true
	case v.is(0, "ROLLBACK"):
		p.Kind = history.Rollback
		if i := v.st.find(v.from, v.to, 0, "TO"); i >= 0 {
			p.Txn.Savepoint = v.savepoint()
			return
		}
		p.Txn.Ends = true
	case v.is(0, "SAVEPOINT"):
		p.Kind, p.Txn.Savepoint = history.Savepoint, v.savepoint()
	case v.is(0, "RELEASE"):
		p.Txn.Savepoint = v.savepoint()
	default:
		v.xa()
	}
}

// savepoint returns the name, which is the last token, folded to lower case.
func (v verb) savepoint() string { return strings.ToLower(unquoted(v.st.tok(v.to - 1))) }

// xa classifies the statements of two-phase commit. After XA PREPARE the branch belongs to no
// session, so only those before it and the one-phase endings end this session's transaction.
func (v verb) xa() {
	switch {
	case v.is(1, "START", "BEGIN"):
		v.p.Kind, v.p.Txn.Ends = history.Begin, true
	case v.is(1, "COMMIT"):
		v.p.Kind, v.p.Txn.Ends = history.Commit, true
	case v.is(1, "ROLLBACK"):
		v.p.Kind, v.p.Txn.Ends = history.Rollback, true
	case v.is(1, "END", "PREPARE"):
		v.p.Txn.Ends, v.p.Txn.Branch = true, true
	}
}

// set classifies SET. Only assignments to user variables leave the session as it was.
func (v verb) set() {
	p := v.p
	p.Kind = history.Set
	v.expressions()
	switch {
	case v.is(1, "STATEMENT"):
		v.unknown(history.ReasonSetStatement)
		return
	case v.is(1, "PASSWORD"), v.is(1, "DEFAULT") && v.is(2, "ROLE"):
		p.Txn.Ends = true // implicit commit
		return
	case v.is(1, "TRANSACTION"):
		p.Txn.NextLevel = v.level()
		p.Txn.SetsNext = p.Txn.NextLevel == history.LevelUnknown && v.has("LEVEL")
	}
	p.Session.Changes = !v.onlyUserVariables()
	for i := v.from + 1; i < v.to; i++ {
		s := strings.ToLower(v.st.tok(i))
		s = s[strings.LastIndexByte(s, '.')+1:]
		switch strings.Trim(s, "@`") {
		case "autocommit":
			p.Txn.Ends = true
		case "tx_isolation", "transaction_isolation":
			// Without a scope, @@name sets the level of the next transaction only; name sets the session's.
			if strings.HasPrefix(v.st.tok(i), "@@") && !strings.Contains(v.st.tok(i), ".") {
				p.Txn.NextLevel = v.assignedLevel(i)
				p.Txn.SetsNext = p.Txn.NextLevel == history.LevelUnknown
			}
		}
	}
}

// onlyUserVariables reports whether every assignment outside of parentheses is to a user variable.
func (v verb) onlyUserVariables() bool {
	for i := v.from; i < v.to; i++ {
		if i != v.from && !(v.st.Tokens[i].Depth == 0 && v.st.mark(i, ",")) {
			continue
		}
		if i+1 >= v.to || v.st.Tokens[i+1].Kind != mysqltoken.Variable || strings.HasPrefix(v.st.tok(i+1), "@@") {
			return false
		}
	}
	return true
}

// level reads SET TRANSACTION ... ISOLATION LEVEL <words>.
func (v verb) level() history.Level {
	i := v.st.find(v.from, v.to, 0, "LEVEL")
	if i < 0 || i+1 >= v.to {
		return history.LevelUnknown
	}
	words := strings.ToUpper(v.st.tok(i + 1))
	if i+2 < v.to && !v.st.mark(i+2, ",") {
		words += " " + strings.ToUpper(v.st.tok(i+2))
	}
	level, _ := history.ParseLevel(words)
	return level
}

// assignedLevel reads the value that the variable at token i is set to.
func (v verb) assignedLevel(i int) history.Level {
	if i+2 >= v.to {
		return history.LevelUnknown
	}
	level, _ := history.ParseLevel(strings.ToUpper(strings.Trim(v.st.tok(i+2), `'"`)))
	return level
}
