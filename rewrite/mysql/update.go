package mysql

import (
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
)

// update makes an UPDATE collect and tag the rows that it really changes, in the form of ADR 7: the
// old stored values are saved before the client's assignments and compared after them. Where the server
// does not evaluate the assignments one by one, as it does for joins, it has another form.
func (pl *planner) update(n *ast.UpdateStmt) error {
	several := history.ReasonJoinedUpdate
	_, err := onlyTable(n.TableRefs, several)
	switch {
	case n.With != nil:
		return refusal(history.ReasonWith)
	case n.TableRefs != nil && (n.MultipleTable || err != nil):
		return pl.updateJoined(n, several)
	case pl.makesJoin(n):
		return pl.updateJoined(n, history.ReasonSubquery)
	}
	t, err := pl.target(n.TableRefs, several)
	if err != nil {
		return err
	}
	c, err := pl.capture(n.List, t, "")
	if err != nil {
		return err
	}
	set, end, err := pl.assignments()
	if err != nil {
		return err
	}
	if srcs := flatten(n.TableRefs.TableRefs); pl.baseSources(srcs) {
		_, c.single = pl.asksForOneRow(n.Where, srcs[0])
	}
	pl.imageUpdate(c, n.List, t)
	use := inspectWrite(n)
	if use.subquery && pl.readsNone(n, n.Where, pl.tablesOf(n.TableRefs)) {
		use.subquery = false
	} else if use.subquery && !cascadesFrom(n.List, t) && pl.lookIntoUpdate(n, t) {
		c.beside, use.subquery = pl.collectingBesides(pl.besides), false
	}
	if err := pl.assign(c, set, end); err != nil {
		return err
	}
	if n.IgnoreErr {
		pl.downgrade(history.ReasonUpdateIgnore)
	}
	pl.cascades(n.List, t)
	pl.downgradeBy(use)
	return nil
}

// cascadesFrom reports whether an update of the table's rows by these assignments changes rows of others.
func cascadesFrom(list []*ast.Assignment, t *Table) bool {
	return slices.ContainsFunc(list, func(a *ast.Assignment) bool { return t.CascadesFrom(a.Column.Name.O) })
}

// cascades lowers the plan if an update of the table's rows by these assignments changes rows of others.
func (pl *planner) cascades(list []*ast.Assignment, t *Table) {
	if cascadesFrom(list, t) {
		pl.downgradeCascading()
	}
}

// assignments finds those of an UPDATE: the tokens behind set, up to end.
func (pl *planner) assignments() (set, end int, err error) {
	st := pl.st
	end = st.last() + 1
	if set = st.find(1, end, 0, "SET"); set < 0 {
		return 0, 0, refusal(history.ReasonUnparsable)
	}
	if clause := st.find(set+1, end, 0, "WHERE", "ORDER", "LIMIT"); clause >= 0 {
		end = clause
	}
	return set, end, nil
}

// updateTiDB makes a single-table UPDATE on TiDB collect and tag the rows that it really changes. TiDB
// evaluates every assignment over the row as it was, so what it is about to store cannot be compared with
// what is stored: that a row stays as it is must follow from the assignments themselves. It does for
// literals, parameters and simple arithmetic of a column's own kind; of the rest the statement is opaque.
func (pl *planner) updateTiDB(n *ast.UpdateStmt) error {
	switch {
	case n.With != nil:
		return refusal(history.ReasonWith)
	case n.IgnoreErr:
		return refusal(history.ReasonUpdateIgnore)
	case !pl.session.Strict:
		return refusal(history.ReasonNotStrict) // a value that does not fit becomes another
	}
	t, err := pl.target(n.TableRefs, history.ReasonJoinedUpdate)
	if err != nil {
		return err
	}
	if n.MultipleTable {
		return refusal(history.ReasonJoinedUpdate)
	}
	if err := pl.collectable(t); err != nil {
		return err
	}
	set, end, err := pl.assignments()
	if err != nil {
		return err
	}
	srcs := flatten(n.TableRefs.TableRefs)
	if err := pl.resolveBase(srcs); err != nil {
		return err
	}
	j := judge{planner: pl, sources: srcs}
	same, err := j.staysSame(n.List, set+1, end)
	if err != nil {
		return err
	}
	c := rowCapture{wlistBytes: t.WListBytes, limit: pl.session.maxPacket() / 4}
	pl.imageTiDB(&c, t, j.gives)
	use := inspectWrite(n)
	if use.subquery && pl.readsNone(n, n.Where, pl.tablesOf(n.TableRefs)) {
		use.subquery = false
	} else if use.subquery && !cascadesFrom(n.List, t) && pl.lookIntoUpdateTiDB(n, t) {
		c.beside, use.subquery = pl.collectingBesides(pl.besides), false
	}
	pos, gap := pl.after(end - 1)
	pl.insertAt(pos, slices.Concat([]Piece{text(", ")}, c.tagUnless(same[0]), []Piece{text(gap)})...)
	pl.plan.Writes.Captured, pl.plan.Writes.Retried = true, true
	pl.cascades(n.List, t)
	pl.downgradeBy(use)
	return nil
}

// tagUnless returns the assignment that tags a row unless the condition holds for it. The client's own text stays as it
// is.
func (c *rowCapture) tagUnless(same []Piece) []Piece {
	c.same = []Piece{c.mark(same)}
	return c.unmarked(asFunctions(c.tag()))
}
