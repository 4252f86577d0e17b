package postgres

// tellsItsText reports whether a statement asks for the text that runs, or calls a function of the database's own that
// does.
func (pl *planner) tellsItsText() bool {
	for i := range pl.st.toks {
		name, ok := pl.st.ident(i)
		if !ok {
			continue
		}
		switch name {
		case "current_query", "pg_stat_activity", "pg_stat_get_activity", "pg_stat_get_backend_activity", "pg_cursors",
			"pg_prepared_statements":
			return true
		}
		if pl.st.mark(i+1, "(") && pl.functions(name) == TellingFunction {
			return true
		}
	}
	return false
}
