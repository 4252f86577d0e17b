package postgres

import (
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
)

// A subquery of an UPDATE that names a column which the statement assigns saw the row as it was, and RETURNING has it
// as it is. So what the hidden column names by the table's name is another row: from PostgreSQL 18 on that of OLD.
// Before, it is the one that the statement's snapshot has of the same key: RETURNING is evaluated in that snapshot,
// which does not have what the statement wrote. That is the version which was replaced if it was the writer of the new
// one that ended it. A transaction that the statement waited for may have written the row in between: then it is not
// known.

// A renewal says what of a value that a subquery read RETURNING has.
type renewal uint8

const (
	same    renewal = iota // the value
	renewed                // that of the new version alone
	lost                   // nothing: a system column, or the whole row
)

// renews tells whether what a subquery reads may hang on a value that the statement changes: RETURNING has the new
// ones. Those are of the columns that it assigns and what the server computes of them, and of the system columns.
func (w *write) renews(at link, q *subquery, assignments []ast.Node) renewal {
	return w.renewsAs(w.target.ref, at, q, assignments)
}

// renewsAs is as renews, of what calls the row so.
func (w *write) renewsAs(as string, at link, q *subquery, assignments []ast.Node) (r renewal) {
	switch {
	case q.whole && len(at.tests) == 0:
		return same
	case len(assignments) > 0 && w.target.table.UpdateTrigger:
		return lost
	}
	of := func(name string) renewal {
		switch {
		case isSystemColumn(name), name == "*":
			return lost
		case w.writesColumn(name, assignments):
			return renewed
		}
		return same
	}
	refers := func(own []*relation) func(n ast.Node) bool {
		return func(n ast.Node) bool {
			ref, ok := n.(*ast.ColumnRef)
			if !ok {
				return true
			}
			names := fields(ref)
			last := names[len(names)-1]
			switch {
			case len(names) > 2:
				r = lost
			case len(names) == 2 && names[0] == as:
				r = max(r, of(last))
			case len(names) == 2, slices.ContainsFunc(own, func(rel *relation) bool { return rel.has(last) }):
			case last == as && len(assignments) > 0:
				r = lost
			default:
				r = max(r, of(last))
			}
			return true
		}
	}
	for _, t := range at.tests {
		if t.node == nil { // whether a join has found a row
			continue
		}
		if !pgtree.Walk(refers(nil), t.node) || t.ofNode != nil && !pgtree.Walk(refers(nil), t.ofNode) {
			return lost
		}
	}
	if q.whole {
		return r
	}
	if !pgtree.Walk(refers(nil), at.Testexpr) || !pgtree.Walk(refers(q.relations()), at.Subselect) {
		return lost
	}
	return r
}

// writesColumn reports whether the statement gives a column of its table another value.
func (w *write) writesColumn(name string, assignments []ast.Node) bool {
	i := slices.Index(w.target.names, name)
	return len(assignments) > 0 && i >= 0 && w.target.table.Columns[i].Generated ||
		anyAssigned(assignments, func(column string) bool { return column == name })
}

// A replaced is what a FROM clause has in the place of the row that is written: the row as it was before.
type replaced struct {
	begin, from string
	// checked says that it may turn out to be another row.
	checked bool
}

// end is what stands behind what sees the row. Missing is shown where that is another one.
func (r *replaced) end(missing string) string {
	if !r.checked {
		return r.from + ")"
	}
	return " ELSE " + missing + " END" + r.from + "), " + missing + ")"
}

// The names of the new version's key and writer.
const (
	newName = "isotap_new"
	newXmin = "isotap_xmin"
	newKey  = "isotap_key_"
)

// replacedRow returns what a subquery, where it stands, can see in the place of the row that is written, which it calls
// so; nil where there is nothing.
func (w *write) replacedRow(at link, as string, around []*relation, assignments []ast.Node) *replaced {
	if w.session.Version >= 18 &&
		!slices.ContainsFunc(around, func(rel *relation) bool { return w.versions.hide(rel.ref) }) {
		return w.rowOf(w.versions.old, as, at)
	}
	return w.rowOfKey(as, assignments)
}

// rowOf has the columns of OLD, or of the row itself, that a subquery names.
func (w *write) rowOf(ref, as string, at link) *replaced {
	named := make(map[string]bool)
	parts := []ast.Node{at.SubLink}
	for _, t := range at.tests {
		for _, n := range []ast.Node{t.node, t.ofNode} {
			if n != nil {
				parts = append(parts, n)
			}
		}
	}
	if !pgtree.Walk(func(n ast.Node) bool {
		if ref, ok := n.(*ast.ColumnRef); ok {
			names := fields(ref)
			named[names[len(names)-1]] = true
		}
		return true
	}, parts...) {
		return nil
	}
	var columns []string
	for _, name := range w.target.names {
		if named[name] {
			columns = append(columns, quoted(ref)+"."+quoted(name)+" AS "+quoted(name))
		}
	}
	return &replaced{begin: "(SELECT ",
		from: " FROM (SELECT " + strings.Join(columns, ", ") + ") AS " + quoted(as)}
}

// rowOfKey looks the row up by its key in the statement's snapshot. That of a partitioned table has the columns by
// which it is partitioned, so that a row whose key stays stays in its partition. Tables that inherit may have equal
// keys.
func (w *write) rowOfKey(as string, assignments []ast.Node) *replaced {
	t := w.target.table
	if len(t.Key) == 0 || w.target.repeatsKeys() || t.Spelled == "" || w.st.reserved() != nil ||
		w.session.Serializable { // its index would be locked
		return nil
	}
	ref := quoted(as)
	columns := []string{quoted(w.target.ref) + ".xmin AS " + newXmin}
	var equal []string
	for i, name := range t.Key {
		c := t.Column(name)
		if c == nil || c.Custom || w.writesColumn(name, assignments) {
			return nil
		}
		key := newKey + strconv.Itoa(i+1)
		columns = append(columns, w.target.columnOf(name)+" AS "+key)
		equal = append(equal, ref+"."+quoted(name)+" OPERATOR(pg_catalog.=) "+newName+"."+key)
	}
	return &replaced{
		begin: "COALESCE((SELECT CASE WHEN " + ref + ".xmax OPERATOR(pg_catalog.=) " + newName + "." + newXmin + " THEN ",
		from: " FROM (SELECT " + strings.Join(columns, ", ") + ") AS " + newName + " JOIN " +
			t.Spelled + " AS " + ref + " ON " + strings.Join(equal, " AND "),
		checked: true}
}

// seesReplaced has the columns of a subquery that names such values see the row as it was.
func seesReplaced(found []*besides, row *replaced) {
	for _, c := range found {
		if !c.chain[0].whole || len(c.chain[0].tests) > 0 || c.unless != nil {
			c.row = row
		}
	}
}
