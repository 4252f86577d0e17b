package postgres

import (
	"strings"

	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// Restores and suites define a table and fill it at once. What plain definitions say of a table is all that the server
// would answer about it, but for the table's oid; so nobody has to wait for that answer (ADR 51). Whatever stands in
// such a text that is not known here makes it one that does not tell.

// tells returns what the statement defines, if the server takes it, where its text says all of that; nil where it may
// not.
func (v verb) tells() *rewrite.TableDefinition {
	if !v.session.utf8() {
		return nil
	}
	switch {
	case v.is(0, "CREATE") && v.is(1, "TABLE"):
		return v.tellsTable()
	case v.is(0, "CREATE") && v.is(1, "INDEX"), v.is(0, "CREATE") && v.is(1, "UNIQUE") && v.is(2, "INDEX"):
		return v.tellsIndex()
	case v.is(0, "ALTER") && v.is(1, "TABLE"):
		return v.tellsAlter()
	}
	return nil
}

// home returns the name with the schema that it is in, or is created in; empty where that is not certain. Types are the
// server's own wherever its schema comes first in the path.
func (v verb) home(n rewrite.TableName) rewrite.TableName {
	path := v.session.Path.Texts()
	if n.Schema == "" && len(path) == 2 {
		n.Schema = path[1]
	}
	if len(path) < 2 || path[0] != "pg_catalog" || n.Table == "" || n.Schema == "" ||
		strings.HasPrefix(n.Schema, "pg_") || n.Schema == "information_schema" {
		return rewrite.TableName{}
	}
	return n
}

// tellsTable reads CREATE TABLE name (columns and a primary key).
func (v verb) tellsTable() *rewrite.TableDefinition {
	name, i := v.tableName(2)
	d := &rewrite.TableDefinition{Table: v.home(name), Creates: true, Role: v.session.Role}
	if d.Table == (rewrite.TableName{}) || d.Role == "" || !v.mark(i, "(") {
		return nil
	}
	for ok := true; ok; ok = v.mark(i, ",") {
		if i = v.element(i+1, d); i < 0 {
			return nil
		}
	}
	if !v.mark(i, ")") || i+1 != len(v.toks) || !keyIsOfColumns(d) {
		return nil
	}
	return d
}

// keyIsOfColumns reports whether the primary key, if there is one, is of the columns, which are not NULL then.
func keyIsOfColumns(d *rewrite.TableDefinition) bool {
	if d.Index == nil {
		return true
	}
	for _, name := range d.Index.Columns {
		c := rewrite.ColumnNamed(d.Columns, name)
		if c == nil {
			return false
		}
		c.NotNull = true
	}
	return true
}

// element reads a column of a table, or its primary key, and returns the token behind; negative where it is anything
// else.
func (v verb) element(i int, d *rewrite.TableDefinition) int {
	at := i
	if v.is(at, "CONSTRAINT") {
		at += 2
	}
	switch {
	case v.is(at, "PRIMARY"):
		return v.primaryKey(i, d)
	case v.is(at, "UNIQUE", "CHECK", "FOREIGN", "EXCLUDE", "LIKE", "NOT") || at != i:
		return -1
	}
	name, ok := v.ident(i)
	if !ok || isOwnName(name) {
		return -1
	}
	c := rewrite.Column{Name: name}
	if i = v.typeOf(i+1, &c); i < 0 {
		return -1
	}
	for !v.mark(i, ",") && !v.mark(i, ")") {
		switch {
		case v.is(i, "NOT") && v.is(i+1, "NULL"):
			c.NotNull = true
			i += 2
		case v.is(i, "NULL"):
			i++
		case v.is(i, "PRIMARY") && v.is(i+1, "KEY") && d.Index == nil:
			c.NotNull = true
			d.Index = &rewrite.Index{Name: primaryKeyOf(d.Table.Table), Columns: []string{name}, Primary: true, Unique: true}
			i += 2
		case v.is(i, "DEFAULT"):
			if i = v.literal(i + 1); i < 0 {
				return -1
			}
		default:
			return -1
		}
	}
	d.Columns = append(d.Columns, c)
	return i
}

// isOwnName reports whether a column may be one of isotap's.
func isOwnName(name string) bool { return strings.HasPrefix(name, rewrite.NamePrefix) }

// primaryKeyOf is the name that the server gives to the primary key of a table; one that is too long it cuts.
func primaryKeyOf(table string) string {
	const suffix, most = "_pkey", 63
	return strings.ToValidUTF8(table[:min(len(table), most-len(suffix))], "") + suffix
}

// literal reads a default that calls no function of the database's own.
func (v verb) literal(i int) int {
	switch {
	case v.sign(i, "-") && v.kind(i+1, pgtoken.Number):
		i += 2
	case v.kind(i, pgtoken.Number), v.kind(i, pgtoken.String),
		v.is(i, "NULL", "TRUE", "FALSE", "CURRENT_TIMESTAMP", "CURRENT_DATE"):
		i++
	case v.is(i, "NOW") && v.mark(i+1, "(") && v.mark(i+2, ")"):
		i += 3
	default:
		return -1
	}
	if v.mark(i, "::") {
		return v.typeOf(i+1, &rewrite.Column{})
	}
	return i
}

func (st *statement) kind(i int, k pgtoken.Kind) bool {
	return i >= 0 && i < len(st.toks) && st.toks[i].Kind == k
}

// A plainType is a type of the server's own: its name in pg_type, how the server spells it, and how many numbers may
// stand in parentheses behind it.
type plainType struct {
	name, full string
	sizes      int
	serial     bool // a sequence is its default
}

// plainTypes are those that columns mostly have, by their words.
var plainTypes = map[string]plainType{
	"smallint": {"int2", "smallint", 0, false}, "int2": {"int2", "smallint", 0, false},
	"int": {"int4", "integer", 0, false}, "integer": {"int4", "integer", 0, false}, "int4": {"int4", "integer", 0, false},
	"bigint": {"int8", "bigint", 0, false}, "int8": {"int8", "bigint", 0, false},
	"smallserial": {"int2", "smallint", 0, true}, "serial2": {"int2", "smallint", 0, true},
	"serial": {"int4", "integer", 0, true}, "serial4": {"int4", "integer", 0, true},
	"bigserial": {"int8", "bigint", 0, true}, "serial8": {"int8", "bigint", 0, true},
	"numeric": {"numeric", "numeric", 2, false}, "decimal": {"numeric", "numeric", 2, false},
	"real": {"float4", "real", 0, false}, "float4": {"float4", "real", 0, false},
	"double precision": {"float8", "double precision", 0, false}, "float8": {"float8", "double precision", 0, false},
	"boolean": {"bool", "boolean", 0, false}, "bool": {"bool", "boolean", 0, false},
	"text":    {"text", "text", 0, false},
	"varchar": {"varchar", "character varying", 1, false}, "character varying": {"varchar", "character varying", 1, false},
	"uuid": {"uuid", "uuid", 0, false}, "json": {"json", "json", 0, false}, "jsonb": {"jsonb", "jsonb", 0, false},
	"bytea": {"bytea", "bytea", 0, false}, "date": {"date", "date", 0, false},
	"timestamp":                   {"timestamp", "timestamp without time zone", 0, false},
	"timestamptz":                 {"timestamptz", "timestamp with time zone", 0, false},
	"timestamp without time zone": {"timestamp", "timestamp without time zone", 0, false},
	"timestamp with time zone":    {"timestamptz", "timestamp with time zone", 0, false},
}

// maxTypeWords is how many words a type of [plainTypes] has at most.
const maxTypeWords = 4

// typeOf reads a type into a column, and returns the token behind; negative where it is none of [plainTypes]. The
// longest is meant.
func (v verb) typeOf(i int, c *rewrite.Column) int {
	var t plainType
	n, words := 0, ""
	for k := range maxTypeWords {
		if !v.kind(i+k, pgtoken.Word) {
			break
		}
		words = strings.TrimPrefix(words+" "+strings.ToLower(v.tok(i+k)), " ")
		if known, ok := plainTypes[words]; ok {
			t, n = known, k+1
		}
	}
	if n == 0 {
		return -1
	}
	i += n
	c.Type, c.Full, c.NotNull = t.name, t.full, c.NotNull || t.serial
	if c.Type == "text" || c.Type == "varchar" {
		c.Collation = "default"
	}
	if !v.mark(i, "(") {
		return i
	}
	sizes := []string{}
	for ok := true; ok && len(sizes) < t.sizes; ok = v.mark(i, ",") {
		if !v.size(i + 1) {
			return -1
		}
		sizes = append(sizes, v.tok(i+1))
		i += 2
	}
	if len(sizes) == 0 || !v.mark(i, ")") {
		return -1
	}
	if t.sizes == 2 && len(sizes) == 1 {
		sizes = append(sizes, "0")
	}
	c.Full += "(" + strings.Join(sizes, ",") + ")"
	return i + 1
}

// size reports whether a token is a number as the server would print it.
func (v verb) size(i int) bool {
	text := v.tok(i)
	return v.kind(i, pgtoken.Number) && strings.Trim(text, "0123456789") == "" && (text[0] != '0' || text == "0")
}

// primaryKey reads [CONSTRAINT name] PRIMARY KEY (columns), and returns the token behind; negative where it is more.
func (v verb) primaryKey(i int, d *rewrite.TableDefinition) int {
	x := &rewrite.Index{Name: primaryKeyOf(d.Table.Table), Primary: true, Unique: true}
	if v.is(i, "CONSTRAINT") {
		x.Name, _ = v.ident(i + 1)
		i += 2
	}
	if x.Name == "" || d.Index != nil || !v.is(i, "PRIMARY") || !v.is(i+1, "KEY") || !v.mark(i+2, "(") {
		return -1
	}
	d.Index = x
	return v.indexed(i+2, x, false)
}

// indexed reads the columns of an index in parentheses, with their orders where these may be.
func (v verb) indexed(i int, x *rewrite.Index, ordered bool) int {
	for ok := true; ok; ok = v.mark(i, ",") {
		name, known := v.ident(i + 1)
		if !known {
			return -1
		}
		x.Columns = append(x.Columns, name)
		i += 2
		if ordered && v.is(i, "ASC", "DESC") {
			i++
		}
		if ordered && v.is(i, "NULLS") && v.is(i+1, "FIRST", "LAST") {
			i += 2
		}
	}
	if !v.mark(i, ")") {
		return -1
	}
	return i + 1
}

// tellsIndex reads CREATE [UNIQUE] INDEX name ON table [USING btree] (columns).
func (v verb) tellsIndex() *rewrite.TableDefinition {
	i := 2
	x := &rewrite.Index{Unique: v.is(1, "UNIQUE")}
	if x.Unique {
		i++
	}
	if x.Name, _ = v.ident(i); x.Name == "" || !v.is(i+1, "ON") || v.is(i, "CONCURRENTLY", "IF") {
		return nil
	}
	table, i := v.tableName(i + 2)
	if v.is(i, "USING") && v.is(i+1, "BTREE") {
		i += 2
	}
	d := &rewrite.TableDefinition{Table: v.home(table), Index: x}
	if d.Table == (rewrite.TableName{}) || !v.mark(i, "(") || v.indexed(i, x, true) != len(v.toks) {
		return nil
	}
	return d
}

// tellsAlter reads ALTER TABLE [ONLY] table ADD ... PRIMARY KEY, and OWNER TO who has it anyway.
func (v verb) tellsAlter() *rewrite.TableDefinition {
	i := 2
	if v.is(i, "ONLY") {
		i++
	}
	table, i := v.tableName(i)
	d := &rewrite.TableDefinition{Table: v.home(table), Role: v.session.Role}
	switch owner, _ := v.ident(i + 2); {
	case d.Table == rewrite.TableName{}:
		return nil
	case v.is(i, "OWNER") && v.is(i+1, "TO") && i+3 == len(v.toks) && owner == d.Role &&
		!v.is(i+2, "CURRENT_USER", "CURRENT_ROLE", "SESSION_USER"):
		return d
	case v.is(i, "ADD") && v.primaryKey(i+1, d) == len(v.toks):
		return d
	}
	return nil
}
