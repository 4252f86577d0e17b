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
	pl.pictureUpdate(c, n.List, t)
	if n.Limit == nil {
		pl.choose(n.TableRefs, n.Where)
	}
	if err := pl.assign(c, set, end); err != nil {
		return err
	}
	if n.IgnoreErr {
		pl.downgrade(history.ReasonUpdateIgnore)
	}
	pl.cascades(n.List, t)
	pl.downgradeBy(inspectWrite(n))
	return nil
}

// cascades lowers the plan if an update of the table's rows by these assignments changes rows of others.
func (pl *planner) cascades(list []*ast.Assignment, t *Table) {
	if slices.ContainsFunc(list, func(a *ast.Assignment) bool { return t.CascadesFrom(a.Column.Name.O) }) {
		pl.downgrade(history.ReasonCascade)
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
