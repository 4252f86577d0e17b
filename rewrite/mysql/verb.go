package mysql

import (
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
	"github.com/isotap/isotap/sqltoken/namedlock"
)

// refusal returns the reason why the text cannot be looked at more closely; empty when it can.
func (st *statement) refusal(s *Session) history.Reason {
	switch {
	case st.executable() >= 0 && !st.commentedOptions(s.Dialect):
		return history.ReasonExecutableComment
	case !s.lexable(st.SQL), !st.plainNames(s.utf8()):
		return history.ReasonCharset
	case st.Broken():
		return history.ReasonUnparsable
	case st.Long:
		return history.ReasonSize
	case s.Oracle:
		return history.ReasonModeOracle
	case len(st.split()) > 1:
		return history.ReasonSeveralStatements
	case st.mentionsCapture():
		return history.ReasonOwnVariable
	case st.deep():
		return history.ReasonNesting
	}
	return history.Reason{}
}

// split returns the statements of the text as ranges of tokens, empty ones left out.
func (st *statement) split() [][2]int {
	var ranges [][2]int
	from := 0
	for i := 0; i <= len(st.Tokens); i++ {
		if i == len(st.Tokens) || st.mark(i, ";") {
			if from < i {
				ranges = append(ranges, [2]int{from, i})
			}
			from = i + 1
		}
	}
	return ranges
}

// maxParts is how many statements a text may have that is cut into them.
const maxParts = 1000

// parts returns the ends of the statements of the text, as Upstream.Parts has them. From the first one on of which it
// is not certain that it means alone what it means in the text, the rest is one part; nil where that is all. A text
// with empty statements is not cut: they are errors. Nor is one that asks for files, or runs statements that are not in
// it: their errors may be those of syntax, though the statement has been at work. TiDB reads all of a text before it
// runs any of it.
func (st *statement) parts(s *Session) []int {
	if s.Dialect == TiDB || st.Placeholders > 0 || st.find(0, len(st.Tokens), -1, "LOAD", "CALL", "EXECUTE") >= 0 {
		return nil
	}
	var ends []int
	last := st.last()
	for i := 0; i <= last; i++ {
		if !st.mark(i, ";") {
			continue
		}
		if i == 0 || st.mark(i-1, ";") || len(ends) == maxParts {
			return nil
		}
		ends = append(ends, st.Tokens[i].Start)
	}
	if last+1 < len(st.Tokens) && strings.Trim(st.SQL[st.Tokens[last+1].Start:], "; \t\r\n\v\f") != "" {
		return nil // a comment behind the last semicolon is an empty statement
	}
	ends = append(ends, len(st.SQL))
	tok, from := 0, 0
	for i, end := range ends {
		n, same := st.meansTheSame(tok, from, end, s)
		switch {
		case !same && i == 0:
			return nil
		case !same:
			return append(ends[:i], len(st.SQL))
		}
		tok, from = tok+n+1, end+1
	}
	return ends
}

// meansTheSame reports whether text[from:end], which begins with the token tok and is followed by a semicolon or
// nothing, means alone what it means here, and how many tokens it has: it is of a kind that a semicolon ends, and is
// cut into the same tokens. What ends a text is not what a semicolon is: two dashes before it begin a comment.
func (st *statement) meansTheSame(tok, from, end int, s *Session) (n int, same bool) {
	alone := scan(st.SQL[from:end], s.ANSIQuotes, s.NoBackslashEscapes)
	n = len(alone.Tokens)
	if alone.Broken() || !st.semicolonEnds(tok) || n > len(st.Tokens)-tok {
		return n, false
	}
	for i, a := range alone.Tokens {
		t := st.Tokens[tok+i]
		if a.Start+from != t.Start || a.End+from != t.End || a.Kind != t.Kind {
			return n, false
		}
	}
	return n, end == len(st.SQL) || tok+n < len(st.Tokens) && st.Tokens[tok+n].Start == end
}

// semicolonEnds reports whether the statement that begins at token i is of a kind that ends with the first semicolon:
// no compound statement, whose body holds others, and nothing that holds any statement.
func (st *statement) semicolonEnds(i int) bool {
	next := i + 1
	if st.is(next, "OR") && st.is(next+1, "REPLACE") {
		next += 2
	}
	switch {
	case st.is(i, "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "VALUES", "TABLE", "USE", "SHOW", "DO",
		"START", "COMMIT", "ROLLBACK",
		"SAVEPOINT", "RELEASE", "TRUNCATE", "LOCK", "UNLOCK"), st.mark(i, "("):
		return true
	case st.is(i, "BEGIN"):
		return next == len(st.Tokens) || st.mark(next, ";") || st.is(next, "WORK")
	case st.is(i, "SET"):
		return !st.is(next, "STATEMENT")
	case st.is(i, "CREATE", "ALTER", "DROP", "RENAME"):
		return st.is(next, "TABLE", "TABLES", "TEMPORARY", "INDEX", "UNIQUE", "DATABASE", "SCHEMA", "VIEW")
	}
	return false
}

// classify sets what the verb says: kind, boundaries, what changes. A statement whose Observation is
// Exact afterwards needs a closer look; Nothing and Opaque are final. For a text of several
// statements, or one that cannot be read for sure, it assumes the worst of all readings.
func (st *statement) classify(p *Plan, s *Session) {
	ranges := st.split()
	uses := false
	for i, r := range ranges {
		one := Plan{Statement: rewrite.Statement{Observation: history.Nothing}}
		v := verb{st, s, &one, r[0], r[1]}
		v.classify()
		v.diagnostics()
		one.Session.FindsRows = v.findsRows()
		uses = uses || v.is(0, "USE")
		if i == 0 {
			one.Shape, one.Args, one.Text, one.Sender, one.Params = p.Shape, p.Args, p.Text, p.Sender, p.Params
			*p = one
			continue
		}
		p.Kind, p.Txn.Savepoint, p.Txn.Global, p.Schema.DropsTemp = history.Other, "", "", nil
		p.Txn.SetsNext = p.Txn.SetsNext || one.Txn.SetsNext || p.Txn.NextLevel != history.LevelUnknown ||
			one.Txn.NextLevel != history.LevelUnknown
		p.Txn.Commits, p.Txn.NextLevel = false, history.LevelUnknown
		p.Schema.CreatesTemp = append(p.Schema.CreatesTemp, one.Schema.CreatesTemp...)
		p.Txn.Ends = p.Txn.Ends || one.Txn.Ends
		p.Txn.MayRestart, p.Txn.MayTakeSnapshot = p.Txn.Ends, p.Txn.MayTakeSnapshot || one.Txn.MayTakeSnapshot
		p.Session.Changes = true
		joinChanges(p, &one, uses)
		if one.Session.TableLocks != KeepsTableLocks {
			p.Session.TableLocks = one.Session.TableLocks
		}
		p.Session.FindsRows = p.Session.FindsRows || one.Session.FindsRows
		p.Session.ReadsDiagnostics = p.Session.ReadsDiagnostics || one.Session.ReadsDiagnostics
		if p.Session.Conditions != NoConditions || one.Session.Conditions != NoConditions {
			p.Session.Conditions = CountsConditions
		}
	}
	hidden := st.GoesOn || st.executable() >= 0 &&
		(st.Separated || len(ranges) == 0 || st.Tokens[0].Start > st.executable())
	misread := (st.Broken() || !s.lexable(st.SQL)) && strings.IndexByte(st.SQL, ';') >= 0
	if hidden || misread {
		p.Kind, p.Txn.Global = history.Other, ""
		p.Txn.SetsNext, p.Txn.Ends, p.Session.Changes = true, true, true
		p.Schema.Changes, p.Schema.Changed, p.Schema.References = true, nil, nil
		if !misread && s.lexable(st.SQL) {
			st.hiddenChanges(p, s)
		}
	}
}

// A verb looks at one statement, the tokens [from, to).
type verb struct {
	st       *statement
	session  *Session
	p        *Plan
	from, to int
}

func (v verb) is(i int, keywords ...string) bool {
	return v.from+i < v.to && v.st.is(v.from+i, keywords...)
}

// has reports whether one of the keywords occurs outside of parentheses.
func (v verb) has(keywords ...string) bool { return v.st.find(v.from, v.to, 0, keywords...) >= 0 }

func (v verb) opaque(reason history.Reason) { v.p.Observation, v.p.Reason = history.Opaque, reason }

// unknown is what a statement gets of which nothing is known.
func (v verb) unknown(reason history.Reason) {
	v.opaque(reason)
	v.p.Txn.Ends, v.p.Session.Changes, v.p.Schema.Changes = true, true, true
}

// classify is one long table of verbs. "Implicit commit" refers to MariaDB's list, "SQL statements
// that cause an implicit commit"; where a statement commits only at times, it counts as one that does.
func (v verb) classify() {
	p := v.p
	switch first := v.from; {
	case v.st.mark(first, "(") || v.is(0, "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "VALUES", "TABLE"):
		v.dml()
	case v.is(0, "CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE"):
		v.ddl()
	case v.is(0, "BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA"):
		v.transaction()
	case v.is(0, "SET"):
		v.set()
	case v.is(0, "CALL"):
		// The procedure's own statements do not pass here. Its DDL leaves the schema cache stale, which
		// costs observations only: a rewritten statement that fails is followed by the original.
		p.Kind, p.Txn.Ends, p.Session.Changes = history.Call, true, true
		v.opaque(history.ReasonCall)
	case v.is(0, "EXECUTE"):
		p.Txn.Ends, p.Session.Changes = true, true
		v.opaque(history.ReasonExecute)
	case v.is(0, "USE"):
		p.Session.Changes = true
	case v.is(0, "DO"):
		v.expressions()
	case v.is(0, "LOAD") && v.is(1, "DATA"):
		p.Kind, p.Observation = history.Insert, history.Exact // as far as the verb goes; see loadData
	case v.is(0, "LOAD") && v.is(1, "XML"):
		p.Kind = history.Insert
		v.opaque(history.ReasonLoadXML)
	case v.is(0, "HANDLER"):
		v.opaque(history.ReasonHandler)
	case v.is(0, "BINLOG"):
		v.unknown(history.ReasonBinlog)
	case v.is(0, "EXPLAIN", "DESCRIBE", "DESC") && v.is(1, "ANALYZE"),
		v.is(0, "ANALYZE") && !v.is(1, "TABLE", "TABLES", "LOCAL", "NO_WRITE_TO_BINLOG"):
		v.opaque(history.ReasonAnalyzeStatement) // it runs the statement behind it
	case v.is(0, "LOCK", "UNLOCK", "LOAD", "FLUSH", "RESET", "ANALYZE", "OPTIMIZE", "REPAIR", "CHECK", "CHECKSUM",
		"CACHE",
		"INSTALL", "UNINSTALL", "CHANGE", "STOP", "PURGE", "BACKUP", "GRANT", "REVOKE"):
		p.Txn.Ends, p.Txn.Commits = true, true // implicit commit
		v.tableLocks()
		p.Txn.MayTakeSnapshot = v.is(0, "CHECKSUM")
	case v.is(0, "SHOW", "EXPLAIN", "DESCRIBE", "DESC"):
		v.show()
		// The optimizer reads a row that there is one of.
		p.Txn.MayTakeSnapshot = !v.is(0, "SHOW") &&
			v.st.find(v.from, v.to, 0, "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "VALUES", "TABLE") >= 0
	case v.is(0, "HELP", "KILL", "PREPARE", "DEALLOCATE", "GET", "SIGNAL", "RESIGNAL", "SHUTDOWN"):
	default:
		v.unknown(history.ReasonUnparsable)
	}
}

// tableLocks finds LOCK TABLES, UNLOCK TABLES, and FLUSH TABLES that locks tables of some names.
func (v verb) tableLocks() {
	at := 1
	if v.is(0, "FLUSH") && v.is(at, "LOCAL", "NO_WRITE_TO_BINLOG") {
		at++
	}
	switch {
	case !v.is(at, "TABLE", "TABLES"):
	case v.is(0, "UNLOCK"):
		v.p.Session.TableLocks = ReleasesTableLocks
	case v.is(0, "LOCK"), v.is(0, "FLUSH") && !v.is(at+1, "WITH") && v.st.find(v.from+at+1, v.to, -1, "READ", "EXPORT") >= 0:
		v.p.Session.TableLocks = TakesTableLocks
	}
}

// show finds the statements that would show isotap's columns. EXPLAIN of a table is SHOW COLUMNS; that
// of a statement has a number for its rows' first value.
func (v verb) show() {
	at := 1
	if v.is(at, "FULL", "EXTENDED") {
		at++
	}
	switch {
	case !v.is(0, "SHOW"), v.is(at, "COLUMNS", "FIELDS"):
		v.p.Result.Reply = rewrite.Listing
	case v.is(1, "CREATE") && v.is(2, "TABLE"):
		v.p.Result.Reply = rewrite.Definition
	}
}

func (v verb) dml() {
	first := v.from
	for first < v.to && v.st.mark(first, "(") {
		first++
	}
	var reason history.Reason
	if v.is(0, "WITH") {
		reason = history.ReasonWith
		if first = v.st.find(v.from, v.to, 0, "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE"); first < 0 {
			v.unknown(history.ReasonUnparsable)
			return
		}
	}
	switch {
	case v.st.is(first, "SELECT"):
		v.p.Kind, v.p.Locking, reason = history.Select, v.locking(), history.Reason{}
	case v.st.is(first, "INSERT"):
		v.p.Kind = history.Insert
	case v.st.is(first, "UPDATE"):
		v.p.Kind = history.Update
	case v.st.is(first, "DELETE"):
		v.p.Kind = history.Delete
	case v.st.is(first, "REPLACE"):
		v.p.Kind = history.Replace
	case v.st.is(first, "VALUES"):
		v.p.Kind, reason = history.Select, history.ReasonValuesStatement
	case v.st.is(first, "TABLE"):
		v.p.Kind, reason = history.Select, history.ReasonTableStatement
	case v.st.is(first, "WITH"):
		v.p.Kind, reason = history.Select, history.ReasonWith
	default:
		v.unknown(history.ReasonUnparsable)
		return
	}
	if v.p.Kind == history.Select && v.listsColumns() {
		v.p.Result.Reply = rewrite.Listing
	}
	v.p.Observation = history.Exact
	if !reason.IsZero() {
		v.opaque(reason)
	}
}

// listsColumns reports whether a SELECT reads information_schema.COLUMNS.
func (v verb) listsColumns() bool {
	for i := v.from; i < v.to; i++ {
		if !strings.EqualFold(unquoted(v.st.tok(i)), "COLUMNS") {
			continue
		}
		if v.st.mark(i-1, ".") && i >= 2 && strings.EqualFold(unquoted(v.st.tok(i-2)), "information_schema") ||
			!v.st.mark(i-1, ".") && strings.EqualFold(v.session.Schema, "information_schema") {
			return true
		}
	}
	return false
}

// locking finds the locking clause of a SELECT that the parser may not know.
func (v verb) locking() history.Locking {
	for i := v.from; i+1 < v.to; i++ {
		switch {
		case v.st.is(i, "FOR") && v.st.is(i+1, "UPDATE"):
			return history.LockUpdate
		case v.st.is(i, "FOR") && v.st.is(i+1, "SHARE"), v.st.is(i, "LOCK") && v.st.is(i+1, "IN"):
			return history.LockShare
		}
	}
	return history.NoLock
}

// ddl classifies definitions. All of them commit implicitly but those of temporary tables.
func (v verb) ddl() {
	p, object := v.p, 1
	switch {
	case v.is(0, "DROP") && v.is(1, "PREPARE"):
		return
	case v.is(0, "CREATE") && v.is(1, "OR") && v.is(2, "REPLACE"):
		object = 3
	}
	p.Kind = history.DDL
	if v.is(0, "DROP") {
		p.Schema.DropsTemp = v.droppedNames()
	}
	if v.is(object, "TEMPORARY") {
		if v.is(0, "CREATE") {
			p.Schema.CreatesTemp = []rewrite.TableName{v.temporaryName(object + 1)}
			v.opaque(history.ReasonTemporaryTable) // it may read tables
		}
		return
	}
	p.Txn.Ends = true
	v.changes(object)
	// Dropping the default schema leaves none; a new one is nobody's default.
	p.Session.Changes = v.is(object, "DATABASE", "SCHEMA") && !(v.is(0, "CREATE") && object == 1)
	switch {
	case v.is(0, "TRUNCATE"):
		v.opaque(history.ReasonTruncate)
	case v.is(0, "ALTER") && v.has("TRUNCATE", "EXCHANGE"), v.is(0, "ALTER") && v.has("DROP") && v.has("PARTITION"):
		v.opaque(history.ReasonPartition)
	case v.is(0, "ALTER") && v.has("IMPORT") && v.has("TABLESPACE"):
		v.opaque(history.ReasonTableRewrite)
	case v.is(0, "CREATE") && v.is(object, "TABLE"):
		p.Observation = history.Exact // as far as the verb goes; see createTable
	}
}

// droppedNames returns the names behind DROP [TEMPORARY] TABLE, as [SchemaEffect].DropsTemp lists them.
func (v verb) droppedNames() []rewrite.TableName {
	i := 1
	if v.is(i, "TEMPORARY") {
		i++
	}
	if !v.is(i, "TABLE", "TABLES") {
		return nil
	}
	names := []rewrite.TableName{v.temporaryName(i + 1)}
	for i += v.from; i < v.to; i++ {
		if v.st.mark(i, ",") {
			names = append(names, v.temporaryName(i+1-v.from))
		}
	}
	return names
}

// temporaryName returns the name behind [TABLE] [IF NOT EXISTS], as Session.TempTables lists it.
func (v verb) temporaryName(i int) rewrite.TableName {
	for v.is(i, "TABLE", "SEQUENCE", "IF", "NOT", "EXISTS") {
		i++
	}
	i += v.from
	switch {
	case i >= v.to:
		return rewrite.TableName{}
	case v.st.mark(i+1, ".") && i+2 < v.to:
		return tempTableName(unquoted(v.st.tok(i)), unquoted(v.st.tok(i+2)))
	}
	return tempTableName(v.session.Schema, unquoted(v.st.tok(i)))
}

// expressions classifies a statement that only evaluates expressions.
func (v verb) expressions() {
	if v.st.find(v.from, v.to, -1, "SELECT") >= 0 {
		v.opaque(history.ReasonSubquery)
		return
	}
	for i := v.from + 1; i < v.to; i++ {
		if i+1 < v.to && v.st.mark(i+1, "(") && !v.nativeCall(i) {
			v.opaque(history.ReasonFunction)
			return
		}
	}
}

// locksByName reports whether the statement calls a function that takes or releases locks that have a name.
func (st *statement) locksByName() bool {
	for i, t := range st.Tokens {
		if i+1 < len(st.Tokens) && st.mark(i+1, "(") && t.Kind == mysqltoken.Word &&
			namedlock.EffectOf(st.tok(i)) != namedlock.None {
			return true
		}
	}
	return false
}

// nativeCall reports whether what stands before a parenthesis cannot be a stored function.
func (v verb) nativeCall(i int) bool {
	switch v.st.Tokens[i].Kind {
	case mysqltoken.Word:
		s := strings.ToLower(v.st.tok(i))
		return nativeFunctions[s] || beforeParenthesis[s]
	case mysqltoken.Name:
		return false
	}
	return true
}

// diagnostics reports whether the statement asks about the one before it.
func (v verb) diagnostics() {
	switch {
	case v.is(0, "GET"):
		v.p.Session.ReadsDiagnostics, v.p.Session.Conditions = true, KeepsConditions
	case v.is(0, "SHOW") && v.is(1, "COUNT"):
		v.p.Session.ReadsDiagnostics, v.p.Session.Conditions = true, ShowsCount
	case v.is(0, "SHOW") && v.is(1, "WARNINGS", "ERRORS"):
		v.p.Session.ReadsDiagnostics, v.p.Session.Conditions = true, ListsConditions
	}
	for i := v.from; i < v.to; i++ {
		if v.st.is(i, "ROW_COUNT", "FOUND_ROWS") && v.st.mark(i+1, "(") {
			v.p.Session.ReadsDiagnostics = true
		}
		if v.st.Tokens[i].Kind == mysqltoken.Variable {
			s := strings.ToLower(strings.ReplaceAll(v.st.tok(i), "`", ""))
			if strings.HasPrefix(s, "@@") && (strings.HasSuffix(s, "warning_count") ||
				strings.HasSuffix(s, "error_count")) {
				v.p.Session.ReadsDiagnostics, v.p.Session.Conditions = true,
					max(v.p.Session.Conditions, CountsConditions)
			}
		}
	}
}
