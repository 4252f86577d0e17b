package postgres

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
)

// ungroupable returns the reason why SELECT DISTINCT is not surely the same as grouping by all columns.
func (b *block) ungroupable(u *usage) history.Reason {
	n := b.n
	switch {
	case b.grouped, u.window, n.WindowClause != nil, len(nodes(n.TargetList)) == 0, len(nodes(n.LockingClause)) > 0:
		return history.ReasonDistinct
	case slices.ContainsFunc(nodes(n.TargetList), func(item ast.Node) bool { return !b.groups(item) }):
		return history.ReasonDistinct
	case slices.ContainsFunc(nodes(n.SortClause), func(item ast.Node) bool { return !b.sortsOutput(item) }):
		return history.ReasonDistinct
	}
	return history.Reason{}
}

// groups reports whether an item of the select list can be grouped by: a star is of an unknown number of columns,
// and errors about types that do not compare would point elsewhere.
func (b *block) groups(item ast.Node) bool {
	t, ok := item.(*ast.ResTarget)
	if !ok || star(item) != nil {
		return false
	}
	ref, ok := bare(t.Val).(*ast.ColumnRef)
	if !ok {
		return !document(t.Val)
	}
	all := fields(ref)
	for _, rel := range b.rels {
		if rel.base == nil {
			continue
		}
		i := slices.Index(rel.base.names, all[len(all)-1])
		if i >= 0 && slices.Contains([]string{"json", "xml", "point", "polygon", "refcursor"},
			rel.base.table.Columns[i].Type) {
			return false
		}
	}
	return true
}

// document reports whether an expression may be of a type that does not compare: json, xml.
func document(n ast.Node) (may bool) {
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.String:
			may = may || strings.Contains(n.SVal, "json") || strings.Contains(n.SVal, "xml") ||
				strings.ContainsAny(n.SVal, "#") || n.SVal == "->"
		case *ast.XmlExpr, *ast.JsonObjectConstructor, *ast.JsonArrayConstructor:
			may = true
		}
		return true
	}, n)
	return may || !whole
}

// sortsOutput reports whether an item of ORDER BY is one of the select list's.
func (b *block) sortsOutput(item ast.Node) bool {
	s, ok := item.(*ast.SortBy)
	if !ok {
		return false
	}
	if c, ok := bare(s.Node).(*ast.A_Const); ok {
		_, position := c.Val.(*ast.Integer)
		return position
	}
	names, _ := b.outputs()
	ref, ok := bare(s.Node).(*ast.ColumnRef)
	if ok && len(fields(ref)) == 1 && slices.Contains(names, fields(ref)[0]) {
		return true
	}
	// Whether literals are equal must not count: the plan is one for all texts that differ in them.
	return !literals(s.Node) && slices.ContainsFunc(nodes(b.n.TargetList), func(t ast.Node) bool {
		target, ok := t.(*ast.ResTarget)
		return ok && reflect.DeepEqual(target.Val, s.Node)
	})
}

// literals reports whether an expression may hold literals.
func literals(n ast.Node) (found bool) {
	whole := pgtree.Walk(func(n ast.Node) bool {
		_, literal := n.(*ast.A_Const)
		found = found || literal
		return true
	}, n)
	return found || !whole
}

// groupInstead makes SELECT DISTINCT a SELECT that groups by all of its columns.
func (r *reading) groupInstead(b *block) error {
	n, at := b.n, r.places.queries[b.n]
	distinct := at.from + 1
	if !r.st.is(distinct, "DISTINCT") || r.plan.Locking != history.NoLock {
		return errUnplaced
	}
	var positions []string
	for i := range nodes(n.TargetList) {
		positions = append(positions, strconv.Itoa(i+1))
	}
	by := strings.Join(positions, ", ")
	wanted, err := parse("SELECT 1 GROUP BY " + by)
	if err != nil {
		return err
	}
	r.edits = append(r.edits, edit{start: r.st.toks[distinct].Start, end: r.st.toks[distinct].End, text: "ALL"})
	end := r.places.clause(at.listEnd+1, at.to)
	for r.st.is(end, "FROM", "WHERE") && end < at.to {
		end = r.places.clause(end+1, at.to)
	}
	r.insertAfter(end-1, " GROUP BY "+by)
	r.changes = append(r.changes, func() {
		n.DistinctClause = nil
		n.GroupClause = wanted.(*ast.SelectStmt).GroupClause
	})
	return nil
}
