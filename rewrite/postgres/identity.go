package postgres

import (
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// An identity is what a statement is made to tell of the rows of one table: expressions, and the items that
// these are the values of, one for one.
type identity struct {
	exprs []string
	items []Item
	types []string // of the key's columns that are passed on as they are
}

func (id *identity) add(item Item, expr string) {
	id.items = append(id.items, item)
	id.exprs = append(id.exprs, expr)
}

// source is what the plan says about the identity. A row of a partition is one of the partitioned table at the
// top, for it may move to another partition; one of a table that inherits stays there.
func (id *identity) source(s *source) Source {
	p := &Physical{Items: id.items, Types: id.types}
	table := s.table.Name
	switch {
	case s.table.Root != "":
		table = s.table.Root
	case s.inherited() && !s.table.Partitioned:
		p.Leaves = s.table.Leaves
	}
	return Source{Table: table, Physical: p}
}

// inherited reports whether the rows may be in other tables than the one that is named.
func (s *source) inherited() bool { return len(s.table.Leaves) > 0 && !s.only || s.table.Partitioned }

// columnOf returns the reference to a column of the source.
func (s *source) columnOf(name string) string { return quoted(s.ref) + "." + quoted(name) }

// system returns the reference to a system column, which has no other name.
func (s *source) system(name string) string { return quoted(s.ref) + "." + name }

// table adds the table that holds the version where others may than the one that the plan names.
func (id *identity) table(s *source) {
	if s.inherited() || s.table.Root != "" {
		id.add(ItemTable, s.system("tableoid"))
	}
}

// readIdentity is the identity of a version that is read.
func readIdentity(s *source) (*identity, error) {
	if s.tagged {
		return tagIdentity(s), nil
	}
	id := &identity{}
	id.table(s)
	id.add(ItemTID, s.system("ctid"))
	id.add(ItemXID, s.system("xmin"))
	return id, id.key(s)
}

// key adds the columns of the primary key, if there is one.
func (id *identity) key(s *source) error {
	if s.tagged {
		id.rowID(s)
		return nil
	}
	for _, name := range s.table.Key {
		c := s.table.Column(name)
		if c == nil {
			return refusal(history.ReasonUnknownTable)
		}
		here, err := s.column(name)
		if err != nil {
			return err
		}
		if item, ok := keyItems[c.Type]; ok {
			id.add(item, s.columnOf(here))
			id.types = append(id.types, c.Full+" "+c.Collation)
			continue
		}
		id.add(ItemKeyHex, "pg_catalog.encode("+binary(c.Type, s.columnOf(here))+", 'hex')")
	}
	return nil
}

// binary returns the expression for a value as bytea, the same for equal values of a type that [Tells]: its binary
// form, or where the type's function for it is not known, its text.
func binary(typ, column string) string {
	switch typ {
	case "float4", "float8": // -0, and the signs of NaN
		const nan = "'NaN'::pg_catalog.float8"
		column += "::pg_catalog.float8"
		return "pg_catalog.float8send(CASE WHEN " + column + " OPERATOR(pg_catalog.=) " + nan + " THEN " + nan +
			" ELSE " + column + " OPERATOR(pg_catalog.+) 0 END)"
	case "numeric": // 1.0 and 1.00
		text := column + "::pg_catalog.text"
		column = "CASE WHEN pg_catalog.strpos(" + text + ", '.') OPERATOR(pg_catalog.>) 0 " +
			"THEN pg_catalog.rtrim(pg_catalog.rtrim(" + text + ", '0'), '.') ELSE " + text + " END"
		return "pg_catalog.convert_to(" + column + ", 'UTF8')"
	case "bpchar": // blanks at the end
		return "pg_catalog.convert_to(" + column + "::pg_catalog.text, 'UTF8')"
	}
	if send, ok := sendFunctions[typ]; ok {
		return "pg_catalog." + send + "(" + column + ")"
	}
	if strings.HasPrefix(typ, "_") {
		return "pg_catalog.array_send(" + column + ")"
	}
	return "pg_catalog.convert_to(" + column + "::pg_catalog.text, 'UTF8')"
}

// Tells reports whether equal values of a type, by its name in pg_type, make the same row id: the binary forms of
// intervals, of arrays, of jsonb and of ranges of numerics differ where values are equal, and of types that are
// not the server's own that is not known.
func Tells(typ string) bool {
	if _, ok := keyItems[typ]; ok {
		return true
	}
	if _, ok := sendFunctions[typ]; ok {
		return typ != "interval" && typ != "jsonb" && typ != "numrange"
	}
	return false
}

// keyItems are the types, by their names in pg_type, whose values tell themselves in text and binary.
var keyItems = map[string]Item{"int2": ItemKeyInt, "int4": ItemKeyInt,
	"int8": ItemKeyInt,
	"text": ItemKeyText, "varchar": ItemKeyText, "uuid": ItemKeyUUID}

// sendFunctions give the binary form of other types.
var sendFunctions = map[string]string{
	"bool": "boolsend", "bpchar": "bpcharsend", "char": "charsend", "name": "namesend", "bytea": "byteasend",
	"numeric": "numeric_send", "float4": "float4send", "float8": "float8send", "money": "cash_send", "oid": "oidsend",
	"date": "date_send", "time": "time_send", "timetz": "timetz_send", "timestamp": "timestamp_send",
	"timestamptz": "timestamptz_send", "interval": "interval_send", "inet": "inet_send", "cidr": "cidr_send",
	"macaddr": "macaddr_send", "macaddr8": "macaddr8_send", "bit": "bit_send", "varbit": "varbit_send",
	"jsonb": "jsonb_send", "int4range": "range_send", "int8range": "range_send", "numrange": "range_send",
	"daterange": "range_send", "tsrange": "range_send", "tstzrange": "range_send",
}

// tagIdentity is the identity of a version of a tagged row that is read, or that a DELETE ended. The list may
// stay as it was when somebody writes the row: xmin tells.
func tagIdentity(s *source) *identity {
	id := &identity{}
	id.table(s)
	id.add(ItemTag, s.lastTags(1))
	id.add(ItemXID, s.system("xmin"))
	id.rowID(s)
	return id
}

func (id *identity) rowID(s *source) { id.add(ItemKeyUUID, s.columnOf(rewrite.RowIDColumn)) }
