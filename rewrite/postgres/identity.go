package postgres

import (
	"strconv"
	"strings"

	"github.com/isotap/isotap/rewrite"
)

// An identity is what a statement is made to tell of the rows of one table: expressions, and the items that
// these are the values of, one for one.
type identity struct {
	exprs []string
	items []rewrite.Item
}

func (id *identity) add(item rewrite.Item, expr string) {
	id.items = append(id.items, item)
	id.exprs = append(id.exprs, expr)
}

// source is what the plan says about the identity.
func (id *identity) source(s *source) rewrite.Source {
	p := &rewrite.Physical{Items: id.items}
	if s.inherited() {
		p.Leaves = s.table.Leaves
	}
	return rewrite.Source{Table: s.table.Name, Physical: p}
}

// inherited says whether the rows may be in other tables than the one that is named.
func (s *source) inherited() bool { return len(s.table.Leaves) > 0 && !s.only || s.table.Partitioned }

// columnOf gives the reference to a column of the source.
func (s *source) columnOf(name string) string { return quoted(s.ref) + "." + quoted(name) }

// system gives the reference to a system column, which has no other name.
func (s *source) system(name string) string { return quoted(s.ref) + "." + name }

// place adds the table that holds the version where others may than the one that is named.
func (id *identity) place(s *source) {
	if s.inherited() {
		id.add(rewrite.ItemTable, s.system("tableoid"))
	}
}

// key adds the columns of the primary key, if there is one.
func (id *identity) key(s *source) error {
	for _, name := range s.table.Key {
		c := s.table.Column(name)
		if c == nil {
			return refusal("unknown table")
		}
		here, err := s.column(name)
		if err != nil {
			return err
		}
		item, ok := keyItems[c.Type]
		if ok {
			id.add(item, s.columnOf(here))
			continue
		}
		send, ok := sendFunctions[c.Type]
		if !ok {
			return refusal("key type")
		}
		id.add(rewrite.ItemKeyHex, "pg_catalog.encode(pg_catalog."+send+"("+s.columnOf(here)+"), 'hex')")
	}
	return nil
}

// keyItems are the types whose values tell themselves, in text and binary.
var keyItems = map[string]rewrite.Item{
	"int2": rewrite.ItemKeyInt, "smallint": rewrite.ItemKeyInt,
	"int4": rewrite.ItemKeyInt, "integer": rewrite.ItemKeyInt,
	"int8": rewrite.ItemKeyInt, "bigint": rewrite.ItemKeyInt,
	"text": rewrite.ItemKeyText, "varchar": rewrite.ItemKeyText, "character varying": rewrite.ItemKeyText,
	"uuid": rewrite.ItemKeyUUID,
}

// sendFunctions give the binary form of the other types.
var sendFunctions = map[string]string{
	"bool": "boolsend", "boolean": "boolsend", "bpchar": "bpcharsend", "character": "bpcharsend", "char": "charsend", "name": "namesend",
	"bytea": "byteasend", "numeric": "numeric_send", "float4": "float4send", "real": "float4send", "float8": "float8send",
	"double precision": "float8send", "money": "cash_send", "oid": "oidsend", "date": "date_send", "time": "time_send",
	"time without time zone": "time_send", "timetz": "timetz_send", "time with time zone": "timetz_send",
	"timestamp": "timestamp_send", "timestamp without time zone": "timestamp_send", "timestamptz": "timestamptz_send",
	"timestamp with time zone": "timestamptz_send", "interval": "interval_send", "inet": "inet_send", "cidr": "cidr_send",
	"macaddr": "macaddr_send", "macaddr8": "macaddr8_send", "bit": "bit_send", "varbit": "varbit_send", "bit varying": "varbit_send",
}

// aliased gives the expressions under names that no other column of a result has, for ORDER BY would take
// them for its own. from is the number of the first.
func (id *identity) aliased(from int) string {
	var b strings.Builder
	for i, e := range id.exprs {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(e + " AS isotap_" + strconv.Itoa(from+i))
	}
	return b.String()
}
