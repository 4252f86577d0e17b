package mysql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
	"github.com/pingcap/tidb/pkg/parser/ast"
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
	pl.downgradeInsert(n, t)
	return nil
}

func (pl *planner) downgradeInsert(n *ast.InsertStmt, t *Table) {
	if n.IgnoreErr {
		pl.downgrade(history.ReasonInsertIgnore)
	}
	if n.IsReplace && !pl.beyond.returning.empty() {
		pl.downgrade(history.ReasonReplace) // no count tells whether it replaced anything
	}
	if t.InsertTrigger {
		pl.downgrade(history.ReasonTrigger)
	}
	use := inspectWrite(n)
	use.subquery = use.subquery && len(pl.besides) == 0 && !pl.none
	pl.downgradeBy(use)
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
		text(", " + rewrite.WListColumn + " = ")}, pl.showing(n, t, pl.imageInsert(n, t)), []Piece{text(gap)})...)
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
	first := pl.imageInsert(n, t)
	return pl.insertRows(at.rows, n.Lists, first, pl.showing(n, t, first))
}

// showing returns the pieces of the tag of an INSERT's last row, those of first: they collect what the subqueries of
// all rows read.
func (pl *planner) showing(n *ast.InsertStmt, t *Table, first []Piece) []Piece {
	if !inspectWrite(n).subquery || !pl.lookIntoValues(n, t) {
		return first
	}
	shown := slices.DeleteFunc(slices.Clone(pl.besides), func(c *besides) bool { return c.instead })
	if pl.plan.Writes.Captured = true; len(shown) == 0 {
		return first
	}
	return slices.Concat([]Piece{text("CONCAT(")}, pl.collectingBesides(shown), []Piece{text(", ")}, first, []Piece{text(")")})
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
// first version, the tag, and last those of the last row's.
func (pl *planner) insertRows(values int, rows [][]ast.ExprNode, first, last []Piece) error {
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
		if ordinal == len(rows)-1 {
			first = last
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

// insertSelect makes INSERT ... SELECT number its rows as it evaluates the select list, and collect for
// each of them the rows that it was made from. With LIMIT the server may evaluate the list before it sorts
// and cuts: the numbers are then not those of the inserted rows, which the session finds by counting.
func (pl *planner) insertSelect(n *ast.InsertStmt, t *Table) error {
	sel, ok := n.Select.(*ast.SelectStmt)
	if !ok {
		return refusal(fromSelect(n))
	}
	use := pl.inspectSelect(sel)
	switch reason := collapsing(sel); {
	case !reason.IsZero():
		return refusal(reason)
	case sel.With != nil:
		return refusal(history.ReasonWith)
	case use.aggregate || use.outward || sel.GroupBy != nil:
		return refusal(history.ReasonAggregate)
	case use.window:
		return refusal(history.ReasonWindowFunction)
	case sel.Limit != nil && pl.rewriter.options.StrictPlans:
		return refusal(history.ReasonPlan)
	}
	at, columns := pl.insertLayout(), []string(nil)
	if !pl.st.is(at.rows, "SELECT") || at.list && len(n.Columns) == 0 {
		return refusal(history.ReasonUnparsable)
	}
	if !at.list {
		columns = visibleColumns(t)
		if err := pl.checkSpelling(columns...); err != nil {
			return err
		}
	}
	list, err := pl.selectList(sel)
	if err != nil {
		return err
	}
	pl.none = pl.readsNone(n, sel.Where, pl.tablesOf(sel.From))
	use.subquery = inspectWrite(n).subquery && !pl.none
	shows := use.subquery && (pl.lookForNone(n, sel) || pl.lookIntoInsert(n, sel, t))
	reads, err := pl.sourceEntries(n, sel, t)
	if err != nil {
		return err
	}
	beside := slices.DeleteFunc(slices.Clone(pl.besides), func(c *besides) bool { return c.instead })
	if shows && len(beside) > 0 {
		reads = append(append(reads, text(", ")), pl.collectingBesides(beside)...)
	}
	names := columns
	for _, name := range n.Columns {
		names = append(names, name.Name.O)
	}
	pl.constants(n, sel, t, names, list)
	pl.plan.Upstream.ListsColumns = len(columns) > 0
	pl.plan.Writes.Inserts = CountUnknown
	pl.insertAt(at.columns, text(columnList(columns, max(len(n.Columns), len(columns)), at.list)))
	pos, gap := pl.after(list[len(list)-1].last)
	pieces := append([]Piece{text(", ")}, numberedRowID(reads)...)
	pl.insertAt(pos, append(pieces, text(", "), tagPiece, text(gap))...)
	return nil
}

// sourceEntries returns expressions that collect the rows of the SELECT's tables, one entry for each table
// and row, and in any case one for each row. Where an index might cover the SELECT, its tables are left
// alone: reading more of them would lock more, and could change the order of the rows.
func (pl *planner) sourceEntries(n *ast.InsertStmt, sel *ast.SelectStmt, t *Table) ([]Piece, error) {
	if sel.From == nil && (len(pl.besides) > 0 || len(n.OnDuplicate) > 0) {
		if err := pl.collectable(t); err != nil {
			return nil, err
		}
		pl.plan.Writes.Captured = true
		return append([]Piece{text(", ")}, collect("_binary''", "_binary''", pl.session.maxPacket()/4, ", _binary'<'")...), nil
	}
	if sel.From == nil {
		if !pl.beyond.returning.empty() {
			return nil, refusal(history.ReasonUnparsable) // where the select list ends is not certain
		}
		return nil, nil
	}
	srcs := flatten(sel.From.TableRefs)
	pl.leaveOut(sel, srcs)
	if err := pl.resolveBase(srcs); err != nil {
		return nil, err
	}
	if err := pl.collectable(t); err != nil {
		return nil, err
	}
	if srcs.observable() && positionBeyond(sel, srcs) {
		return nil, refusal(history.ReasonOrderByPosition)
	}
	if len(n.OnDuplicate) > 0 {
		if target, err := onlyTable(n.Table, history.ReasonOnDuplicateKey); err != nil || srcs.named(target.Name.O) != nil {
			return nil, refusal(history.ReasonOnDuplicateKey)
		}
	}
	// What it reads, it reads as a locking read does.
	if pl.plan.Locking = history.LockShare; sel.LockInfo != nil &&
		locking(sel.LockInfo.LockType) == history.LockUpdate {
		pl.plan.Locking = history.LockUpdate
	}
	covered := srcs.observable() && mayHideLocks(sel, srcs)
	if covered {
		pl.downgrade(history.ReasonPlan)
	}
	pl.plan.Writes.Captured = true
	limit := pl.session.maxPacket() / 4
	var pieces []Piece
	for _, s := range srcs {
		if s.leftOut && len(n.OnDuplicate) > 0 {
			pl.downgrade(history.ReasonPlan) // what is assigned may ask for it
		}
		if !s.reason.IsZero() && !readsNothing(s.node.Source) {
			pl.downgrade(s.reason)
		}
		if s.table == nil || covered || s.leftOut {
			continue
		}
		if err := pl.collectable(s.table); err != nil {
			return nil, err
		}
		rowID, list := identityEntry(quoted(s.name)+".", s.table.WListBytes)
		pieces = append(append(pieces, text(", ")),
			collect(rowID, list, limit, ", _binary'<="+strconv.Itoa(len(pl.plan.Result.Sources))+"'")...)
		pl.plan.Result.Sources = append(pl.plan.Result.Sources, Source{Table: s.table.Name})
	}
	if pieces == nil {
		pieces = append([]Piece{text(", ")}, collect("_binary''", "_binary''", limit, ", _binary'<'")...)
	}
	return pieces, nil
}

// resolveBase finds the base tables among the sources of a write. Queries among them stay as they are.
func (pl *planner) resolveBase(srcs sources) error {
	for i, s := range srcs {
		if s.leftOut {
			continue
		}
		if base, ok := s.node.Source.(*ast.TableName); ok {
			s.name = base.Name.O
			if err := pl.resolveName(s, base); err != nil {
				return err
			}
		} else {
			s.reason = history.ReasonDerivedTable
		}
		if s.node.AsName.O != "" {
			s.name = s.node.AsName.O
		}
		if other := srcs[:i].named(s.name); other != nil && s.name != "" {
			return refusal(history.ReasonAmbiguousTable)
		}
	}
	return nil
}

// readsNothing reports whether a query in a FROM clause is one row of values.
func readsNothing(query ast.ResultSetNode) bool {
	n, ok := query.(*ast.SelectStmt)
	if !ok || n.Kind != ast.SelectStmtKindSelect || n.From != nil || n.With != nil {
		return false
	}
	use := inspectWrite(n)
	return !use.subquery && !use.function
}

// numberedRowID returns an expression for the id of a row that is the same as RowIDHole's: tag, colon and a
// number that counts the evaluations. more are further arguments of CONCAT.
func numberedRowID(more []Piece) []Piece {
	last := func(part string) string { return "SUBSTRING_INDEX(@isotap_c, _binary':', " + part + ")" }
	pieces := []Piece{
		text("CONCAT("), tagPiece, text(", _binary':', CONVERT(LOWER(CONV(SUBSTRING_INDEX((@isotap_c := CONCAT("),
		tagPiece,
		text(", _binary':', IF(" + last("1") + " = "), tagPiece,
		text(", CAST(" + last("-1") + " + 1 AS BINARY), _binary'0'))), _binary':', -1), 10, 36)) USING latin1)"),
	}
	return append(append(pieces, more...), text(")"))
}

// loadData makes LOAD DATA number its rows and tag them. It rests on the lexer alone.
func (pl *planner) loadData() error {
	st := pl.st
	if pl.session.Dialect == TiDB {
		return refusal(history.ReasonLoadData)
	}
	into := st.find(2, st.last(), 0, "INTO")
	if into < 0 || !st.is(into+1, "TABLE") || into+2 > st.last() {
		return refusal(history.ReasonUnparsable)
	}
	schema, table := "", unquoted(st.tok(into+2))
	end := into + 3
	if st.mark(end, ".") && end+1 <= st.last() {
		schema, table = table, unquoted(st.tok(end+1))
		end += 2
	}
	name := &ast.TableName{Schema: ast.NewCIStr(schema), Name: ast.NewCIStr(table)}
	t, err := pl.named(name)
	if err != nil {
		return err
	}
	keyword := " SET "
	for i := end; i <= st.last(); i++ {
		if st.Tokens[i].Depth == 0 && st.is(i, "SET") && !st.is(i-1, "CHARACTER") {
			keyword = ", "
		}
	}
	pieces := append([]Piece{text(keyword + rewrite.RowIDColumn + " = ")}, numberedRowID(nil)...)
	pos, gap := pl.after(st.last())
	pieces = append(append(pieces, text(", "+rewrite.WListColumn+" = ")), pl.imageLoad(t)...)
	pl.insertAt(pos, append(pieces, text(gap))...)
	pl.plan.Writes.Inserts = CountUnknown
	if t.InsertTrigger {
		pl.downgrade(history.ReasonTrigger)
	}
	if st.find(end, st.last()+1, -1, "SELECT") >= 0 {
		pl.downgrade(history.ReasonSubquery)
	}
	v := verb{st: st, session: pl.session}
	for i := end; i < st.last(); i++ {
		// The list of columns and variables stands in parentheses, too.
		if st.mark(i+1, "(") && st.Tokens[i].Kind == mysqltoken.Word && !st.is(i, "LINES", "ROWS", "BY") && i+1 > end &&
			!v.nativeCall(i) {
			pl.downgrade(history.ReasonFunction)
		}
	}
	return nil
}

// downgradeByReturning downgrades the plan for what the client's RETURNING does beside returning columns.
func (pl *planner) downgradeByReturning() {
	list, v := pl.beyond.returning, verb{st: pl.st, session: pl.session}
	if list.empty() {
		return
	}
	if pl.st.find(list.from, list.to, -1, "SELECT") >= 0 {
		pl.downgrade(history.ReasonSubquery)
	}
	for i := list.from + 1; i+1 < list.to; i++ {
		if pl.st.mark(i+1, "(") && !v.nativeCall(i) {
			pl.downgrade(history.ReasonFunction)
		}
	}
}
