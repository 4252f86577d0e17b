package mysql

import (
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
)

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
	pos, gap := pl.after(end - 1)
	pl.insertAt(pos, slices.Concat([]Piece{text(", ")}, c.tagUnless(same[0]), []Piece{text(gap)})...)
	pl.plan.Writes.Captured = true
	pl.cascades(n.List, t)
	pl.downgradeBy(inspectWrite(n))
	return nil
}

// tagUnless returns the assignment that tags a row unless the condition holds for it.
func (c *rowCapture) tagUnless(same []Piece) []Piece {
	condition := Piece{Hole: CopyHole} // stands in for it: it holds the client's own text
	c.same = []Piece{condition}
	pieces := asFunctions(c.tag())
	at := slices.Index(pieces, condition)
	return slices.Replace(pieces, at, at+1, same...)
}
