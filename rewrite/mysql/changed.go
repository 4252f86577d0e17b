package mysql

import "github.com/isotap/isotap/rewrite"

// changedTables gives the tables that a DDL statement makes, changes or drops, nil where it may be others
// too. The object that it is about is the token at the given place.
func (v verb) changedTables(object int) []rewrite.TableName {
	if v.has("RENAME", "EXCHANGE", "LIKE") {
		return nil
	}
	switch {
	case v.is(0, "CREATE") && v.is(object, "TABLE", "VIEW"), v.is(0, "ALTER") && v.is(object, "TABLE"):
		return v.namedTables(object+1, false)
	case v.is(0, "DROP") && v.is(object, "TABLE", "TABLES", "VIEW"):
		return v.namedTables(object+1, true)
	case v.is(0, "CREATE") && v.is(object, "INDEX"), v.is(0, "CREATE") && v.is(object, "UNIQUE", "FULLTEXT", "SPATIAL") && v.is(object+1, "INDEX"),
		v.is(0, "DROP") && v.is(object, "INDEX"):
		if on := v.st.find(v.from, v.to, 0, "ON"); on >= 0 {
			return v.namedTables(on+1-v.from, false)
		}
	}
	return nil
}

// namedTables reads a name behind [IF [NOT] EXISTS], or a list of them.
func (v verb) namedTables(i int, list bool) []rewrite.TableName {
	for v.is(i, "IF", "NOT", "EXISTS") {
		i++
	}
	var names []rewrite.TableName
	for at := v.from + i; at < v.to; at += 2 {
		if k := v.st.toks[at].kind; k != word && k != name {
			return nil
		}
		t := rewrite.TableName{Schema: v.session.Schema, Table: unquoted(v.st.tok(at))}
		if v.st.mark(at+1, ".") && at+2 < v.to {
			t = rewrite.TableName{Schema: t.Table, Table: unquoted(v.st.tok(at + 2))}
			at += 2
		}
		if t.Schema == "" {
			return nil
		}
		names = append(names, t)
		if !list || !v.st.mark(at+1, ",") {
			break
		}
	}
	return names
}
