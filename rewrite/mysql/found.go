package mysql

// findsRows reports whether a statement shows no rows, and leaves a number in FOUND_ROWS() all the same. Measured on
// MariaDB 10.11 and 11.8 and on MySQL 9.7: INSERT ... SELECT and SELECT ... INTO leave how many rows their query found.
// MariaDB does so with each query that it executes, subqueries among them. On MySQL each UPDATE, DO and DELETE of
// several tables leaves a number, SET and CREATE TABLE ... SELECT leave none. A subquery that is not evaluated leaves
// none either, which cannot be told: it is taken for one that is.
func (v verb) findsRows() bool {
	query := v.st.find(v.from, v.to, -1, "SELECT") >= 0
	switch v.session.Dialect {
	case MySQL:
		switch {
		case v.is(0, "UPDATE", "DO"), v.is(0, "WITH") && v.has("UPDATE"):
			return true
		case v.is(0, "DELETE"), v.is(0, "WITH") && v.has("DELETE"):
			return query || v.joins()
		case v.is(0, "SELECT", "WITH"):
			return v.has("INTO")
		}
		return query && v.is(0, "INSERT", "REPLACE")
	case MariaDB:
		switch {
		case v.is(0, "UPDATE", "DELETE"):
			return query || v.joins()
		case v.is(0, "SELECT", "WITH"):
			return v.has("INTO")
		}
		return query && v.is(0, "INSERT", "REPLACE", "DO", "SET", "CREATE")
	}
	return false
}

// joins reports whether an UPDATE or DELETE may be of several tables.
func (v verb) joins() bool {
	end := v.st.find(v.from, v.to, 0, "SET", "WHERE")
	if end < 0 {
		end = v.to
	}
	for i := v.from + 1; i < end; i++ {
		if v.st.mark(i, ",") || v.st.is(i, "JOIN", "STRAIGHT_JOIN", "USING") {
			return true
		}
	}
	return false
}
