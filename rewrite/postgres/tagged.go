package postgres

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// Tables may carry isotap's columns (ADR 28). A row's id is made by the default of isotap_rowid. isotap_wlist holds
// the tags of those who wrote the row, oldest first: the id of the transaction and the position of the write-ahead
// log when the tag was made, eight bytes each. Defaults make the first tag, UPDATEs append theirs: the server knows
// both numbers itself, so that no value has to be sent.

// tagBytes is the size of a tag.
const tagBytes = 16

// tag is the expression for the tag of a row that is written now.
const tag = "pg_catalog.int8send(pg_catalog.txid_current()) OPERATOR(pg_catalog.||) pg_catalog.pg_lsn_send(" +
	logPosition + ")"

// DefaultWListBytes is how long a row's list may grow unless it is said otherwise.
const DefaultWListBytes = 240

// unbounded is what the default of isotap_wlist is cut to where lists are not: no value is that long.
const unbounded = 1 << 30

// RowIDDefinition is the column isotap_rowid on a major version of PostgreSQL. It may be NULL, so that it is
// never what makes a write fail.
func RowIDDefinition(version int) string {
	id := "pg_catalog.gen_random_uuid()"
	if version < 13 {
		id = "pg_catalog.md5(pg_catalog.random()::pg_catalog.text OPERATOR(pg_catalog.||) pg_catalog.clock_timestamp()::pg_catalog.text " +
			"OPERATOR(pg_catalog.||) pg_catalog.random()::pg_catalog.text)::pg_catalog.uuid"
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
		list = "pg_catalog.substr(" + list + ", pg_catalog.octet_length(" + list + ") OPERATOR(pg_catalog.-) " +
			strconv.Itoa(keep-1) + ")"
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

// tagged reports whether the rows of a table are known by isotap's columns.
func (pl *planner) tagged(t *Table) bool {
	return pl.rewriter.options.Columns && t.Instrumented
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

// provenTags reports whether a statement with its edits has the assignments that append was to add, and before these no
// others than the client's.
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
