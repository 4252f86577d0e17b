package mysql

import (
	"strconv"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
)

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
	reads, err := pl.sourceEntries(n, sel, t)
	if err != nil {
		return err
	}
	pl.plan.Upstream.ListsColumns = len(columns) > 0
	pl.plan.Writes.Inserts = Numbered
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
	if sel.From == nil {
		if len(n.OnDuplicate) > 0 || !pl.beyond.returning.empty() {
			return nil, refusal(history.ReasonUnparsable) // where the select list ends is not certain
		}
		return nil, nil
	}
	srcs := flatten(sel.From.TableRefs)
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
		// MySQL has no row alias here.
		if target, err := onlyTable(n.Table, history.ReasonOnDuplicateKey); err != nil ||
			srcs.named(target.Name.O) != nil || pl.session.Dialect == MySQL {
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
		if !s.reason.IsZero() {
			pl.downgrade(s.reason)
		}
		if s.table == nil || covered {
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
