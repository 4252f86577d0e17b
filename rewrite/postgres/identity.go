package postgres

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

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
	p := &Physical{Items: id.items, Types: id.types, OID: s.table.OID}
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

// system returns the reference to a system column, which has no other name.
func (s *source) system(name string) string { return quoted(s.ref) + "." + name }

// table adds the table that holds the version: another one may than the plan names, as a partition, and one that took
// the name while the statement waited for its lock. Where rows have identities of their own, only the former matters.
func (id *identity) table(s *source) {
	if !s.tagged || s.inherited() || s.table.Root != "" || s.table.MadeBy != "" {
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

// Tables may carry isotap's columns (ADR 28). A row's id is made by the default of isotap_rowid. isotap_wlist holds
// the tags of those who wrote the row, oldest first: the id of the transaction and the position of the write-ahead
// log when the tag was made, eight bytes each. Defaults make the first tag, UPDATEs append theirs: the server knows
// both numbers itself, so that no value has to be sent.

// tagBytes is the size of a tag.
const tagBytes = 16

// tag is the expression for the tag of a row that is written now.
const tag = "pg_catalog.int8send(pg_catalog.txid_current()) OPERATOR(pg_catalog.||) " +
	"pg_catalog.pg_lsn_send(" + logPosition + ")"

// DefaultWListBytes is how long a row's list may grow unless it is said otherwise.
const DefaultWListBytes = 240

// unbounded is what the default of isotap_wlist is cut to where lists are not: no value is that long.
const unbounded = 1 << 30

// RowIDDefinition is the column isotap_rowid on a major version of PostgreSQL. It may be NULL, so that it is
// never what makes a write fail.
func RowIDDefinition(version int) string {
	id := "pg_catalog.gen_random_uuid()"
	if version < 13 {
		id = "pg_catalog.md5(pg_catalog.random()::pg_catalog.text OPERATOR(pg_catalog.||) " +
			"pg_catalog.clock_timestamp()::pg_catalog.text OPERATOR(pg_catalog.||) " +
			"pg_catalog.random()::pg_catalog.text)::pg_catalog.uuid"
	}
	return rewrite.RowIDColumn + " pg_catalog.uuid DEFAULT " + id
}

// WListDefinition is the column isotap_wlist with lists of up to so many bytes; 0: without bound. The server keeps
// the bound in the default, which is never as long.
func WListDefinition(bytes int) string {
	if bytes == 0 {
		bytes = unbounded
	}
	return fmt.Sprintf("%s pg_catalog.bytea DEFAULT pg_catalog.substr(%s, 1, %d)", rewrite.WListColumn, tag, bytes)
}

// appended is the table's list with a tag behind it, cut to what the table's lists may hold.
func (s *source) appended() string {
	list := s.columnOf(rewrite.WListColumn)
	if bytes := s.table.WListBytes; bytes > 0 {
		keep := max(bytes/tagBytes-1, 1) * tagBytes
		list = "pg_catalog.substr(" + list + ", pg_catalog.octet_length(" + list +
			") OPERATOR(pg_catalog.-) " + strconv.Itoa(keep-1) + ")"
	}
	return list + " OPERATOR(pg_catalog.||) " + tag
}

// lastTags is the expression for the last tags of the table's list.
func (s *source) lastTags(n int) string {
	list := s.columnOf(rewrite.WListColumn)
	return "pg_catalog.encode(pg_catalog.substr(" + list + ", pg_catalog.octet_length(" + list +
		") OPERATOR(pg_catalog.-) " +
		strconv.Itoa(n*tagBytes-1) + "), 'hex')"
}

// leftTags adds the version that a write of a tagged row left, and the one that it replaced.
func (w *write) leftTags() {
	w.id.table(&w.target)
	w.id.add(ItemNewTags, w.target.lastTags(2))
	if !w.target.table.Partitioned {
		w.id.add(ItemNewXID, w.target.system("xmin"))
	}
}

// append puts the tag of an UPDATE behind the row's list: before the client's assignments in each of the lists, which
// follow a SET behind one of the keywords, in the order of the text.
func (w *write) append(keyword string, assignments ...[]ast.Node) error {
	if !w.target.tagged {
		return nil
	}
	if !w.rewriter.schema.Tags(w.session.Role, w.target.table) {
		return refusal(history.ReasonPrivilege)
	}
	at := w.st.find(0, keyword)
	for range assignments {
		if at = w.st.find(at+1, "SET"); at < 0 {
			return refusal(history.ReasonUnparsable)
		}
		w.insertAfter(at, " "+rewrite.WListColumn+" = "+w.target.appended()+",")
	}
	w.tags = assignments
	return nil
}

// provenTags refuses the statement unless with its edits it has the assignments that append was to add, and behind
// these no others than the client's.
func (pl *planner) provenTags(tree ast.Stmt) error {
	if len(pl.tags) == 0 {
		return nil
	}
	after := assignmentsOf(tree)
	if len(after) != len(pl.tags) {
		return refusal(history.ReasonUnparsable)
	}
	for i, list := range after {
		if len(list) == 0 || !reflect.DeepEqual(list[1:], pl.tags[i]) {
			return refusal(history.ReasonUnparsable)
		}
		if first, ok := list[0].(*ast.ResTarget); !ok || first.Name != rewrite.WListColumn {
			return refusal(history.ReasonUnparsable)
		}
	}
	return nil
}

// assignmentsOf returns the lists of assignments that a statement makes of its target's rows.
func assignmentsOf(tree ast.Node) (lists [][]ast.Node) {
	switch n := tree.(type) {
	case *ast.UpdateStmt:
		lists = append(lists, nodes(n.TargetList))
	case *ast.InsertStmt:
		if n.OnConflictClause != nil {
			lists = append(lists, nodes(n.OnConflictClause.TargetList))
		}
	case *ast.MergeStmt:
		for _, c := range nodes(n.MergeWhenClauses) {
			if clause, ok := c.(*ast.MergeWhenClause); ok && clause.CommandType == ast.CMD_UPDATE {
				var list []ast.Node
				for _, t := range clause.TargetList {
					list = append(list, t)
				}
				lists = append(lists, list)
			}
		}
	}
	return lists
}

// mergedTags adds the versions that a MERGE ended and left in a tagged table, and appends to the lists.
func (w *write) mergedTags(n *ast.MergeStmt) error {
	w.id.table(&w.target)
	xmin := w.target.system("xmin")
	w.id.add(ItemTag, whenMerged("=", w.target.lastTags(1)))
	w.id.add(ItemNewTags, whenMerged("<>", w.target.lastTags(2)))
	if !w.target.table.Partitioned {
		w.id.add(ItemXID, whenMerged("=", xmin))
		w.id.add(ItemNewXID, whenMerged("<>", xmin))
	}
	return w.append("WHEN", assignmentsOf(n)...)
}

// logPosition is a function that tells where the write-ahead log ends. It is called for each row after that was
// written and while it is locked, so it orders the writers of a row.
const logPosition = "pg_catalog.pg_current_wal_insert_lsn()"

// whenMerged returns an expression for the rows that a MERGE deleted (=), or for the others (<>); NULL elsewhere.
func whenMerged(sign, expr string) string {
	return "CASE WHEN merge_action() OPERATOR(pg_catalog." + sign + ") 'DELETE' THEN " + expr + " END"
}
