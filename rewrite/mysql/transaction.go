package mysql

import (
	"encoding/hex"
	"fmt"
	"strconv"
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
		p.Kind, p.Txn.Savepoint = history.Release, v.savepoint()
	default:
		v.xa()
	}
}

// savepoint returns the name, which is the last token, folded to lower case.
func (v verb) savepoint() string { return strings.ToLower(unquoted(v.st.tok(v.to - 1))) }

// xa classifies the statements of two-phase commit. A branch that is prepared may be in no session, and any may end it
// by its name.
func (v verb) xa() {
	if v.is(1, "PREPARE", "COMMIT", "ROLLBACK") && v.to == len(v.st.Tokens) && v.st.executable() < 0 {
		v.p.Txn.Global = v.branch()
	}
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

// branch returns the name that a statement of two-phase commit gives: two strings and a number, of which the first must
// be there. It is empty where that is not all that the statement says, as ONE PHASE, or where what a string stands for
// hangs on the character set or on escapes.
func (v verb) branch() string {
	var parts [2]string
	format, at := uint64(1), v.from+2
	for i := 0; i < len(parts) && (i == 0 || at < v.to); i++ {
		value, ok := v.plainString(at)
		if !ok || at+1 < v.to && !v.st.mark(at+1, ",") || at+2 == v.to {
			return ""
		}
		parts[i] = hex.EncodeToString(value)
		at += 2
	}
	if at < v.to {
		var err error
		if format, err = strconv.ParseUint(v.st.tok(at), 10, 32); err != nil || at+1 < v.to {
			return ""
		}
	}
	return fmt.Sprintf("%s,%s,%d", parts[0], parts[1], format)
}

// plainString returns the bytes of the string at token i, of letters or of hexadecimal digits.
func (v verb) plainString(i int) (value []byte, ok bool) {
	if i >= v.to {
		return nil, false
	}
	text := v.st.tok(i)
	if digits, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok && v.st.Tokens[i].Kind == mysqltoken.Number {
		value, err := hex.DecodeString(digits)
		return value, err == nil
	}
	letters := strings.TrimLeft(text, "xX")
	last := len(letters) - 1
	if v.st.Tokens[i].Kind != mysqltoken.String || last < 1 || letters[last] != letters[0] || // it has no end
		letters[0] != '\'' && letters[0] != '"' {
		return nil, false
	}
	letters = letters[1:last]
	if text[0] == 'x' || text[0] == 'X' {
		value, err := hex.DecodeString(letters)
		return value, err == nil
	}
	return []byte(letters), !strings.ContainsAny(letters, `\'"`) && ascii(text)
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
