package postgres

import (
	"github.com/isotap/isotap/history"
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
	case v.is(0, "DEALLOCATE", "SHOW", "LISTEN", "UNLISTEN", "NOTIFY", "LOCK", "CHECKPOINT", "LOAD",
		"VACUUM", "ANALYZE", "ANALYSE", "WAIT"):
		// They read and write no rows. VACUUM moves none either, but for VACUUM FULL.
		v.p.Schema.Changes = v.is(0, "VACUUM") && v.mentions("FULL")
	default:
		v.anything(history.ReasonUnparsable)
	}
}
