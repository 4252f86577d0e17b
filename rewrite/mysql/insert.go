package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// insert gives each row of INSERT or REPLACE ... VALUES or SET its id and its first version.
func (pl *planner) insert(n *ast.InsertStmt) error {
	switch {
	case n.Select != nil && pl.session.Dialect == TiDB:
		return refusal(fromSelect(n))
	case n.IsReplace && pl.session.Dialect == TiDB:
		return refusal(history.ReasonReplace)
	case len(n.OnDuplicate) > 0 && pl.session.Dialect == TiDB:
		return refusal(history.ReasonOnDuplicateKey)
	}
	t, err := pl.target(n.Table, history.ReasonUnparsable)
	if err != nil {
		return err
	}
	switch {
	case n.Select != nil:
		err = pl.insertSelect(n, t)
	case n.Setlist:
		err = pl.insertSet(n, t)
	default:
		err = pl.insertValues(n, t)
	}
	if err == nil {
		err = pl.extendRowAlias()
	}
	if err == nil && len(n.OnDuplicate) > 0 {
		err = pl.duplicates(n, t)
	}
	if err != nil {
		return err
	}
	pl.lowerInsert(n, t)
	return nil
}

func (pl *planner) lowerInsert(n *ast.InsertStmt, t *Table) {
	if n.IgnoreErr {
		pl.downgrade(history.ReasonInsertIgnore)
	}
	if n.IsReplace && !pl.beyond.returning.empty() {
		pl.downgrade(history.ReasonReplace) // no count tells whether it replaced anything
	}
	if t.InsertTrigger {
		pl.downgrade(history.ReasonTrigger)
	}
	pl.downgradeBy(inspectWrite(n))
	pl.downgradeByReturning()
}

// fromSelect returns the reason of an INSERT or REPLACE ... SELECT that is not observed.
func fromSelect(n *ast.InsertStmt) history.Reason {
	if n.IsReplace {
		return history.ReasonReplaceFromSelect
	}
	return history.ReasonInsertFromSelect
}

// rowsEnd returns the token behind the rows or the assignments of an INSERT.
func (pl *planner) rowsEnd() int {
	end := pl.st.last() + 1
	if !pl.beyond.returning.empty() {
		end = pl.beyond.returning.from
	}
	if on := pl.st.onDuplicate(); on >= 0 {
		end = on
	}
	if !pl.beyond.rowAlias.empty() {
		end = pl.beyond.rowAlias.from
	}
	return end
}

func (pl *planner) insertSet(n *ast.InsertStmt, t *Table) error {
	st, end := pl.st, pl.rowsEnd()
	if st.find(0, end, 0, "SET") < 0 || len(n.Lists) != 1 {
		return refusal(history.ReasonUnparsable)
	}
	pos, gap := pl.after(end - 1)
	pl.insertAt(pos, slices.Concat([]Piece{text(", " + rewrite.RowIDColumn + " = "), {Hole: RowIDHole},
		text(", " + rewrite.WListColumn + " = ")}, pl.pictureInsert(n, t), []Piece{text(gap)})...)
	pl.plan.Writes.Inserts = 1
	return nil
}

// insertValues appends the two columns to the column list, or makes one of all visible columns, and
// the two values to every row.
func (pl *planner) insertValues(n *ast.InsertStmt, t *Table) error {
	at := pl.insertLayout()
	if !pl.st.is(at.rows, "VALUES", "VALUE") {
		return refusal(history.ReasonUnparsable)
	}
	columns := visibleColumns(t)
	values := len(n.Columns)
	if values == 0 && len(n.Lists[0]) > 0 {
		values = len(columns)
		if err := pl.checkSpelling(columns...); err != nil {
			return err
		}
	} else {
		columns = nil
	}
	for _, row := range n.Lists {
		if len(row) != values {
			return refusal(history.ReasonColumnCount)
		}
	}
	pl.plan.Upstream.ListsColumns = pl.plan.Upstream.ListsColumns || len(columns) > 0
	if !pl.extendList(at.columns) {
		pl.insertAt(at.columns, text(columnList(columns, values, at.list)))
	}
	return pl.insertRows(at.rows, n.Lists, pl.pictureInsert(n, t))
}

// columnList returns what is put into the column list before its closing parenthesis or, when the
// statement has no list, before VALUES. columns are those that the statement leaves to the server to
// name; values is the number of columns that the client gives values for.
func columnList(columns []string, values int, inList bool) string {
	var b strings.Builder
	if !inList {
		b.WriteByte('(')
	}
	for _, c := range columns {
		b.WriteString(quoted(c) + ", ")
	}
	if values > 0 && len(columns) == 0 {
		b.WriteString(", ")
	}
	b.WriteString(rewrite.RowIDColumn + ", " + rewrite.WListColumn)
	if !inList {
		b.WriteString(") ")
	}
	return b.String()
}

// An insertLayout says where the parts of INSERT ... VALUES and INSERT ... SELECT are.
type insertLayout struct {
	columns int  // byte where names of columns are put
	list    bool // there is a column list, perhaps an empty one
	rows    int  // the token behind the column list: VALUES or SELECT
}

// insertLayout reads INSERT or REPLACE [modifiers] [INTO] name [PARTITION (...)] [(columns)].
func (pl *planner) insertLayout() insertLayout {
	st := pl.st
	i := 1
	for st.is(i, "LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE") {
		i++
	}
	if st.is(i, "INTO") {
		i++
	}
	i++ // the table's name
	if st.mark(i, ".") {
		i += 2
	}
	if st.is(i, "PARTITION") {
		i = st.group(i+1) + 1
	}
	var at insertLayout
	if end := st.group(i); end >= 0 {
		at.list, at.columns = true, st.Tokens[end].Start
		i = end + 1
	}
	if at.rows = i; !at.list && i < len(st.Tokens) {
		at.columns = st.Tokens[i].Start
	}
	return at
}

// insertRows appends the values of the two columns to each row behind the token VALUES. first are the pieces of its
// first version, the tag.
func (pl *planner) insertRows(values int, rows [][]ast.ExprNode, first []Piece) error {
	st := pl.st
	i := values + 1
	for ordinal, row := range rows {
		end := st.group(i)
		if end < 0 || (len(row) == 0) != (end == i+1) {
			return refusal(history.ReasonUnparsable)
		}
		comma := ", "
		if len(row) == 0 {
			comma = ""
		}
		pl.insertAt(st.Tokens[end].Start, append([]Piece{text(comma), {Hole: RowIDHole, Ordinal: ordinal},
			text(", ")}, first...)...)
		if i = end + 1; ordinal < len(rows)-1 && !st.mark(i, ",") {
			return refusal(history.ReasonUnparsable)
		}
		i++
	}
	if i-1 != pl.rowsEnd() {
		return refusal(history.ReasonUnparsable)
	}
	pl.plan.Writes.Inserts = len(rows)
	return nil
}
