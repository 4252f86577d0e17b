package postgres

import (
	"github.com/multigres/multigres/go/common/parser"

	"github.com/isotap/isotap/sqltoken/namedlock"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// calls reports whether the statement, as it is written, may run a function that is not the server's own. Where it
// cannot be told it says yes: of what was prepared or declared elsewhere, and of some names before a parenthesis.
// Definitions run none that matter here, and DO and CALL may do anything.
func (st *statement) calls() bool {
	if st.is(0, "EXECUTE", "FETCH", "MOVE") {
		return true
	}
	if !st.mark(0, "(") && !st.is(0, "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "VALUES", "COPY",
		"EXPLAIN", "DECLARE") {
		return false
	}
	for i := range st.toks {
		if st.mark(i+1, "(") && st.callsForeign(i) {
			return true
		}
	}
	return false
}

// locksByName reports whether the statement calls a function that takes or releases locks that have a name.
func (st *statement) locksByName() bool {
	for i := range st.toks {
		if st.mark(i+1, "(") && st.toks[i].Kind == pgtoken.Word && namedlock.EffectOf(st.tok(i)) != namedlock.None {
			return true
		}
	}
	return false
}

// callsForeign reports whether token i, before a parenthesis, may name a function that is not the server's own.
func (st *statement) callsForeign(i int) bool {
	head := i
	for st.mark(head-1, ".") {
		head -= 2
	}
	switch {
	case st.is(head-1, "INTO", "COPY", "AS"), head == i && st.syntax(i):
		return false // a table, or the names of columns
	case st.toks[i].Kind != pgtoken.Word && st.toks[i].Kind != pgtoken.Name:
		return false
	}
	called, plain := st.ident(i)
	_, known := functions[called]
	return !plain || !known || head < i && !(head == i-2 && st.is(head, "PG_CATALOG"))
}

// syntax reports whether token i belongs to the grammar where a parenthesis follows it, and names no function.
func (st *statement) syntax(i int) bool {
	if st.toks[i].Kind != pgtoken.Word {
		return false
	}
	if st.is(i, "SET", "SETS", "CONFLICT", "OVER", "FILTER", "BY", "CUBE", "ROLLUP", "MATERIALIZED", "ESCAPE", "ZONE",
		"REPLACE",
		"JOIN", "LIKE", "ILIKE", "EXPLAIN") {
		return true
	}
	k := parser.LookupKeyword(st.tok(i))
	return k != nil && (k.Category == parser.ReservedKeyword || k.Category == parser.ColNameKeyword)
}

// tellsItsText reports whether a statement asks for the text that runs, or calls a function of the database's own that
// does.
func (pl *planner) tellsItsText() bool {
	for i := range pl.st.toks {
		name, ok := pl.st.ident(i)
		if !ok {
			continue
		}
		switch name {
		case "current_query", "pg_stat_activity", "pg_stat_get_activity", "pg_stat_get_backend_activity",
			"pg_cursors", "pg_prepared_statements":
			return true
		}
		if pl.st.mark(i+1, "(") && pl.functions(name) == TellingFunction {
			return true
		}
	}
	return false
}
