package postgres

import (
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// ddl classifies definitions. They are part of the transaction they stand in.
func (v verb) ddl() {
	p, object := v.p, 1
	p.Kind = history.DDL
	switch {
	case v.is(0, "COMMENT", "SECURITY"):
		return
	case v.is(0, "TRUNCATE"):
		v.opaque("truncate")
	case v.is(0, "REFRESH"):
		v.opaque("materialized view")
	case v.is(0, "CLUSTER", "REPACK"):
		v.opaque("table rewrite") // the versions get other places
	case v.is(0, "CREATE") && v.is(1, "OR") && v.is(2, "REPLACE"):
		object = 3
	}
	for v.is(object, "GLOBAL", "LOCAL", "UNLOGGED", "RECURSIVE", "FOREIGN", "MATERIALIZED", "UNIQUE", "CONSTRAINT", "TRUSTED",
		"PROCEDURAL", "EVENT") {
		object++
	}
	temporary := v.is(object, "TEMP", "TEMPORARY")
	for v.is(object, "TEMP", "TEMPORARY", "RECURSIVE") {
		object++
	}
	p.ChangesSchema = !v.is(object, "PROCEDURE", "OPERATOR", "CAST", "COLLATION", "CONVERSION",
		"SEQUENCE", "STATISTICS", "PUBLICATION", "SUBSCRIPTION", "TABLESPACE", "TEXT", "LANGUAGE", "SERVER", "LARGE", "DATABASE")
	v.definition(object, temporary)
	if p.ChangesSchema {
		p.Changed = v.changed(object)
	}
}

// definition looks at what kind of object is defined.
func (v verb) definition(object int, temporary bool) {
	p, create, alter := v.p, v.is(0, "CREATE"), v.is(0, "ALTER")
	switch {
	case create && v.is(object, "TABLE", "VIEW", "SEQUENCE"):
		if temporary {
			p.Shadows, p.ChangesSession = []rewrite.TableName{{Table: v.nameBehind(object).Table}}, true // pg_temp comes into the search path
		}
		if v.is(object, "TABLE") && v.find(object, "AS") >= 0 && v.mentions("SELECT", "TABLE", "VALUES", "EXECUTE", "WITH") {
			v.opaque("CREATE TABLE AS")
		}
	case v.is(0, "DROP") && v.is(object, "TABLE", "VIEW"):
		p.Reveals = v.dropped(object)
	case create && v.is(object, "SCHEMA"), v.is(0, "DROP") && v.is(object, "SCHEMA"), alter && v.is(object, "SCHEMA"):
		p.ChangesSession = true // of the search path, those schemas count that exist
	case alter && v.is(object, "ROLE", "USER", "SYSTEM"):
		p.ChangesSession = true
	case v.is(0, "DROP") && v.is(object, "OWNED"), v.is(0, "REASSIGN"):
		p.ChangesSession = true
	}
}

// changed gives the tables and functions that the statement names, where it can change no others; nil where it may.
func (v verb) changed(object int) []rewrite.TableName {
	switch {
	case v.is(0, "CREATE") && v.is(object, "FUNCTION", "AGGREGATE"):
		return []rewrite.TableName{v.nameBehind(object)}
	case v.is(0, "TRUNCATE"):
		return v.names(1, "TABLE", "ONLY")
	case v.is(0, "CREATE", "ALTER") && v.is(object, "TABLE", "VIEW"):
		if v.mentions("INHERITS", "INHERIT", "PARTITION", "REFERENCES", "ALL", "RENAME", "SCHEMA") {
			return nil
		}
		return []rewrite.TableName{v.nameBehind(object)}
	case v.is(0, "CREATE") && v.is(object, "INDEX"):
		if on := v.find(object, "ON"); on >= 0 {
			return []rewrite.TableName{v.nameBehind(on)}
		}
	case v.is(0, "CREATE") && v.is(object, "TRIGGER", "POLICY"):
		if on := v.find(object, "ON"); on >= 0 {
			return []rewrite.TableName{v.nameBehind(on)}
		}
	}
	return nil
}

// names gives the names behind token i, separated by commas.
func (v verb) names(i int, skip ...string) []rewrite.TableName {
	var out []rewrite.TableName
	for {
		for v.is(i, skip...) {
			i++
		}
		n, next := v.tableName(i)
		if n.Table == "" {
			return nil
		}
		out = append(out, n)
		if v.sign(next, "*") {
			next++
		}
		if !v.mark(next, ",") {
			return out
		}
		i = next + 1
	}
}

// dropped gives the tables and views of a DROP that may be temporary ones, as [rewrite.Plan].Reveals has them.
func (v verb) dropped(object int) []rewrite.TableName {
	var names []rewrite.TableName
	for _, n := range v.names(object, "TABLE", "VIEW", "IF", "EXISTS") {
		if n.Schema == "" {
			names = append(names, n)
		}
	}
	return names
}

// nameBehind gives the name behind a keyword and what may stand between.
func (v verb) nameBehind(i int) rewrite.TableName {
	for i++; v.is(i, "IF", "NOT", "EXISTS", "ONLY"); {
		i++
	}
	n, _ := v.tableName(i)
	return n
}

// tableName reads a name, qualified or not, at token i, and gives the token behind it.
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
	if strings.EqualFold(first, "pg_temp") {
		first = ""
	}
	return rewrite.TableName{Schema: first, Table: second}, i + 3
}
