package mysql

import "github.com/pingcap/tidb/pkg/parser/ast"

// update makes a single-table UPDATE collect and tag the rows that it really changes, in the form of
// DESIGN 4.3: the old stored values are saved before the client's assignments and compared after them.
func (pl *planner) update(n *ast.UpdateStmt) error {
	if n.With != nil {
		return refusal("with")
	}
	t, err := pl.target(n.TableRefs, "multi-table UPDATE")
	if err != nil {
		return err
	}
	if n.MultipleTable {
		return refusal("multi-table UPDATE")
	}
	c, err := pl.capture(n.List, t, "")
	if err != nil {
		return err
	}
	if err := pl.spliceUpdate(c); err != nil {
		return err
	}
	if n.IgnoreErr {
		pl.lower("UPDATE IGNORE")
	}
	if t.CascadesUpdate {
		pl.lower("cascade")
	}
	pl.lowerBy(inspectWrite(n))
	return nil
}

// spliceUpdate puts the saving assignment before the client's and the tagging one behind them.
func (pl *planner) spliceUpdate(c *rowCapture) error {
	st := pl.st
	end := st.last() + 1
	set := st.find(1, end, 0, "SET")
	if set < 0 {
		return refusal("unparsable")
	}
	if clause := st.find(set+1, end, 0, "WHERE", "ORDER", "LIMIT"); clause >= 0 {
		end = clause
	}
	return pl.assign(c, set, end)
}
