package postgres

import (
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// classify is one long table of verbs. A statement whose Observation is Exact afterwards needs a closer look;
// Nothing and Opaque are final.
func (v verb) classify() {
	switch {
	case v.mark(0, "("), v.is(0, "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "VALUES", "TABLE"):
		v.query()
	case v.is(0, "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE"),
		v.is(0, "PREPARE") && v.is(1, "TRANSACTION"):
		v.transaction()
	case v.is(0, "SET"):
		v.set()
	case v.is(0, "RESET", "DISCARD"):
		v.reset()
	case v.is(0, "CREATE", "ALTER", "DROP", "TRUNCATE", "COMMENT", "GRANT", "REVOKE", "REINDEX", "CLUSTER", "REFRESH",
		"IMPORT", "SECURITY", "REASSIGN", "REPACK"):
		v.ddl()
	case v.is(0, "CALL"):
		// A procedure may commit, and begin the next transaction.
		v.p.Kind, v.p.Txn.Ends, v.p.Txn.MayRestart = history.Call, true, true
		v.anything(history.ReasonCall)
	case v.is(0, "DO"):
		v.p.Kind, v.p.Txn.Ends, v.p.Txn.MayRestart = history.Call, true, true
		v.anything(history.ReasonDoBlock)
	case v.is(0, "COPY"):
		v.copy()
	case v.is(0, "EXPLAIN"):
		v.explain()
		v.within()
	case v.is(0, "EXECUTE"):
		v.executes()
	case v.is(0, "DECLARE", "FETCH", "MOVE", "CLOSE"):
		v.cursor()
	case v.is(0, "PREPARE"):
		v.prepares()
	case v.is(0, "LOCK"):
		v.p.Kind = history.Lock
	case v.is(0, "DEALLOCATE", "SHOW", "LISTEN", "UNLISTEN", "NOTIFY", "CHECKPOINT", "LOAD",
		"VACUUM", "ANALYZE", "ANALYSE", "WAIT"):
		// They read and write no rows. VACUUM moves none either, but for VACUUM FULL.
		v.p.Schema.Changes = v.is(0, "VACUUM") && v.mentions("FULL")
	default:
		v.anything(history.ReasonUnparsable)
	}
}

// A verb makes of one statement's first words what they alone can tell.
type verb struct {
	*statement
	session *Session
	p       *Plan
}

func (v verb) opaque(reason history.Reason) { v.p.Observation, v.p.Reason = history.Opaque, reason }

// anything is what a statement gets that may do anything to the session and its tables.
func (v verb) anything(reason history.Reason) {
	v.opaque(reason)
	v.p.Session.Changes, v.p.Schema.Changes = true, true
}

// mentions reports whether one of the keywords occurs anywhere in the statement.
func (v verb) mentions(keywords ...string) bool {
	for i := range v.toks {
		if v.is(i, keywords...) {
			return true
		}
	}
	return false
}

// query classifies what reads and writes rows.
func (v verb) query() {
	first := 0
	for v.mark(first, "(") {
		first++
	}
	with := v.is(first, "WITH")
	if with {
		first = v.find(first, verbs...)
	}
	switch {
	case v.is(first, "SELECT", "VALUES", "TABLE"):
		v.p.Kind, v.p.Locking = history.Select, v.locking()
	case v.is(first, "INSERT"):
		v.p.Kind = history.Insert
	case v.is(first, "UPDATE", "MERGE"):
		v.p.Kind = history.Update
	case v.is(first, "DELETE"):
		v.p.Kind = history.Delete
	default: // WITH ... (SELECT ...)
		v.p.Kind, v.p.Locking = history.Select, v.locking()
	}
	if part := v.writingPart(); with && v.p.Kind == history.Select && part != history.Other {
		v.p.Kind = part // whoever reads the recording must not take it for a read
	}
	v.p.Observation = history.Exact
	v.p.Session.Changes = v.callsSettings()
	if into := v.find(first, "INTO"); into >= 0 && v.is(first, "SELECT") {
		v.p.Kind, v.p.Schema.Changes = history.DDL, true
		v.opaque(history.ReasonSelectInto)
		v.into(into)
	}
}

// verbs begin what reads and writes rows, behind a WITH clause.
var verbs = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "VALUES", "TABLE"}

// writingPart is what the first statement in parentheses does that may write; Other: there is none.
func (v verb) writingPart() history.Kind {
	for i := range v.toks {
		within := v.mark(i-1, "(")
		if within && v.is(i, "WITH") { // a clause of its own
			i = v.find(i, verbs...)
		}
		switch {
		case !within, i < 0:
		case v.is(i, "INSERT") && v.is(i+1, "INTO"):
			return history.Insert
		case v.is(i, "UPDATE", "MERGE"):
			return history.Update
		case v.is(i, "DELETE") && v.is(i+1, "FROM"):
			return history.Delete
		}
	}
	return history.Other
}

// into classifies the table that SELECT INTO creates.
func (v verb) into(i int) {
	for i++; v.is(i, "TEMP", "TEMPORARY", "LOCAL", "GLOBAL", "UNLOGGED", "TABLE"); i++ {
		v.p.Session.Changes = v.p.Session.Changes || v.is(i, "TEMP", "TEMPORARY")
	}
	n, _ := v.tableName(i)
	if v.p.Session.Changes {
		v.p.Schema.CreatesTemp = []rewrite.TableName{{Table: n.Table}}
	}
	v.p.Schema.Changed = []rewrite.TableName{n}
	v.p.Schema.Change = &rewrite.SchemaChange{Made: v.p.Schema.Changed}
}

// locking finds the strongest locking clause.
func (v verb) locking() history.Locking {
	l := history.NoLock
	for i := range v.toks {
		switch {
		case !v.is(i, "FOR"):
		case v.is(i+1, "UPDATE"), v.is(i+1, "NO") && v.is(i+2, "KEY") && v.is(i+3, "UPDATE"):
			l = history.LockUpdate
		case v.is(i+1, "SHARE"), v.is(i+1, "KEY") && v.is(i+2, "SHARE"):
			l = max(l, history.LockShare)
		}
	}
	return l
}

// callsSettings reports whether the statement does what changes settings as SET does: by a function, or in the
// view whose rows they are.
func (v verb) callsSettings() bool {
	for i := range v.toks {
		n, ok := v.ident(i)
		if ok && (n == "set_config" && v.mark(i+1, "(") || n == "pg_settings" && v.p.Kind == history.Update) {
			return true
		}
	}
	return false
}

// copy classifies COPY, of which only a table's name and the direction count.
func (v verb) copy() {
	v.p.Kind = history.Select
	if v.has(1, "FROM") {
		v.p.Kind = history.Insert
	}
	v.opaque(history.ReasonCopy)
}

// explain classifies EXPLAIN, which runs its statement only if it is to analyze it.
func (v verb) explain() {
	if v.is(1, "ANALYZE", "ANALYSE") || v.is(1, "VERBOSE") && v.is(2, "ANALYZE", "ANALYSE") {
		v.analyze()
		return
	}
	if !v.mark(1, "(") {
		return
	}
	for i := 2; i < len(v.toks) && !v.mark(i, ")"); i++ {
		if v.is(i, "ANALYZE", "ANALYSE") { // ANALYZE off runs nothing: at worst it is counted as not observed
			v.analyze()
			return
		}
	}
}

// analyze is what EXPLAIN gets that runs its statement.
func (v verb) analyze() {
	v.opaque(history.ReasonExplainAnalyze)
	v.p.Schema.Changes = v.mentions("CREATE")
}

// tableName reads a name, qualified or not, at token i, and returns the token behind it.
func (v verb) tableName(i int) (rewrite.TableName, int) {
	first, ok := v.ident(i)
	if !ok {
		return rewrite.TableName{}, i
	}
	if !v.mark(i+1, ".") {
		return rewrite.TableName{Table: first}, i + 1
	}
	second, ok := v.ident(i + 2)
	if !ok {
		return rewrite.TableName{}, i
	}
	if strings.EqualFold(first, TemporarySchema) {
		first = ""
	}
	return rewrite.TableName{Schema: first, Table: second}, i + 3
}
