package postgres

import (
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
)

// COPY returns nothing, and its rows are none of isotap's to change. But a row tells which transaction left it (xmin),
// and which of that one's commands (cmin). So in mode predicates the rows of a COPY FROM are read once the transaction
// has committed: by another connection, which takes no part in what clients do.

// A Copied says how to read the rows that a COPY FROM left, and what they tell.
type Copied struct {
	Source Source
	// Query asks for them, by the id of the transaction and by the table's name as the server reads it. A row has cmin,
	// and behind that the values of Source's items.
	Query string
	Table string // as the server reads it
}

// lastBlocks is how many blocks at the end of a table are looked at. COPY adds rows there, but for what fills gaps.
const lastBlocks = 4096

// copied takes note of how the rows of a COPY FROM can be read.
func (pl *planner) copied() {
	if !pl.rewriter.options.Predicates || !pl.session.utf8() && !pl.plainNames() {
		return
	}
	tree, err := parse(pl.readable(pl.st.source()))
	if err != nil {
		return
	}
	n, ok := tree.(*ast.CopyStmt)
	if !ok || !n.IsFrom || n.Relation == nil {
		return
	}
	t, _ := pl.table(n.Relation)
	if t == nil || len(t.Key) == 0 || pl.tagged(t) || !pl.returnsImages(t) || t.Spelled == "" {
		return
	}
	if t.InsertTrigger { // it may take the rows away again and change as many others
		return
	}
	s, err := pl.sourceOf(t, &ast.RangeVar{RelName: "isotap_c"})
	if err != nil {
		return
	}
	w := &write{planner: pl, target: s}
	w.id.table(&s)
	w.id.add(ItemNewTID, s.system("ctid"))
	w.id.add(ItemNewXID, s.system("xmin"))
	if w.id.key(&s) != nil {
		return
	}
	w.id.add(ItemImage, w.image())
	pl.plan.Copied = &Copied{Source: w.id.source(&s), Query: copiedQuery(&s, w.id.exprs, pl.session.Version),
		Table: t.Spelled}
}

// copiedQuery is Copied's Query. A row that another transaction may have locked, or replaced, is not known to be as it
// was left. Before version 14 the server reads all of a table for its last blocks: it does so where these are all.
func copiedQuery(s *source, exprs []string, version int) string {
	const blocks = "pg_catalog.pg_relation_size($2::pg_catalog.regclass) OPERATOR(pg_catalog./) " +
		"pg_catalog.current_setting('block_size')::pg_catalog.int8"
	last := strconv.Itoa(lastBlocks)
	xmin, xmax := s.system("xmin"), s.system("xmax")
	query := "SELECT " + s.system("cmin") + ", " + strings.Join(exprs, ", ") + " FROM ONLY " + s.table.Spelled + " AS " +
		quoted(s.ref) + " WHERE " + xmin + " OPERATOR(pg_catalog.=) $1::pg_catalog.xid AND (" + xmax +
		" OPERATOR(pg_catalog.=) '0'::pg_catalog.xid OR " + xmax + " OPERATOR(pg_catalog.=) $1::pg_catalog.xid) AND "
	if version < 14 {
		return query + "(SELECT " + blocks + " OPERATOR(pg_catalog.<=) " + last + ")"
	}
	return query + s.system("ctid") + " OPERATOR(pg_catalog.>=) (SELECT pg_catalog.format('(%s,0)', GREATEST(" + blocks +
		" OPERATOR(pg_catalog.-) " + last + ", 0))::pg_catalog.tid)"
}

// copies reports whether a plan is that of a COPY FROM.
func (p *Plan) copies() bool { return p.Kind == history.Insert && p.Reason == history.ReasonCopy }
