package postgres

import (
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
)

// A LIMIT that was filled hangs on its rows and, where they are ordered, on what would stand before the last of them.
// So each row shows the values that it is ordered by, as far as they are columns of one table.

// ordering is what the statement's rows are ordered by before all else.
type ordering struct {
	of   *chosen
	keys []rewrite.SortKey
	text []string // expressions for the values, as texts
}

// orderingOf returns what a block's rows are ordered by, up to the first that is no column of the first one's table.
func (s *selection) orderingOf(n *ast.SelectStmt) (o ordering) {
	for _, item := range nodes(n.SortClause) {
		by, ok := item.(*ast.SortBy)
		if !ok || by.SortbyDir == ast.SORTBY_USING {
			break
		}
		ref, ok := sortedBy(n, by.Node)
		if !ok {
			break
		}
		column, ok := s.resolve(ref)
		if !ok || o.of != nil && o.of != column.of || !slices.Contains(s.tables, column.of) {
			break
		}
		of := column.of.table.Column(column.name)
		if of == nil || of.Generated || !ordered[of.Type] {
			break
		}
		expr := quoted(column.of.ref) + "." + quoted(column.name)
		key := rewrite.SortKey{Expr: expr, Descending: by.SortbyDir == ast.SORTBY_DESC}
		key.NullsLast = by.SortbyNulls == ast.SORTBY_NULLS_LAST ||
			by.SortbyNulls == ast.SORTBY_NULLS_DEFAULT && !key.Descending
		o.of, o.keys, o.text = column.of, append(o.keys, key), append(o.text, expr+"::pg_catalog.text")
	}
	return o
}

// ordered are types whose texts stand for the same values everywhere, and are ordered by the server's own operators.
var ordered = map[string]bool{"bool": true, "int2": true, "int4": true, "int8": true, "numeric": true, "text": true,
	"varchar": true, "bpchar": true, "uuid": true, "date": true, "time": true, "timestamp": true, "timestamptz": true}

// sortedBy returns the column that an item of ORDER BY means: a position, the name of an item of the select list, or a
// column of the FROM clause. It reports whether that is certain.
func sortedBy(n *ast.SelectStmt, by ast.Node) (ref *ast.ColumnRef, ok bool) {
	list := nodes(n.TargetList)
	switch by := bare(by).(type) {
	case *ast.A_Const:
		i, ok := by.Val.(*ast.Integer)
		if !ok || i.IVal < 1 || i.IVal > len(list) ||
			slices.ContainsFunc(list[:i.IVal], func(item ast.Node) bool { return star(item) != nil }) {
			return nil, false
		}
		return shownColumn(list[i.IVal-1])
	case *ast.ColumnRef:
		names := fields(by)
		if len(names) > 1 {
			return by, true
		}
		for _, item := range list {
			if star(item) != nil {
				continue
			}
			ref, column := shownColumn(item)
			switch name := item.(*ast.ResTarget).Name; {
			case name == names[0], name == "" && column && fields(ref)[len(fields(ref))-1] == names[0]:
				return ref, column
			case name == "" && !column:
				return nil, false // the server gives it a name
			}
		}
		return by, true
	}
	return nil, false
}

// shownColumn returns the column that an item of a select list is.
func shownColumn(item ast.Node) (ref *ast.ColumnRef, ok bool) {
	if t, is := item.(*ast.ResTarget); is && !pgtree.Missing(t.Val) {
		ref, ok = bare(t.Val).(*ast.ColumnRef)
	}
	return ref, ok
}

// showOrder puts the values that the statement's rows are ordered by behind all other columns, if there is a LIMIT that
// may be filled, and the rows are those of the only block.
func (r *reading) showOrder(blocks []*block) error {
	o := r.order
	if len(o.keys) == 0 || r.of != nil || r.plan.Session.Cursor != nil || r.plan.Result.Reply != rewrite.Trimmed ||
		len(blocks) != 1 || blocks[0].n != r.tree || blocks[0].grouped || blocks[0].unique ||
		len(nodes(r.tree.TargetList))+r.hidden+len(o.text) > maxTargets ||
		slices.ContainsFunc(r.plan.Result.Sources, func(s Source) bool { return s.Array && !s.Beside }) {
		return nil
	}
	var items []string
	for _, text := range o.text {
		r.hidden++
		items = append(items, text+" AS "+rewrite.NamePrefix+strconv.Itoa(r.hidden))
	}
	r.plan.Result.Sources = append(r.plan.Result.Sources, Source{Order: len(items)})
	return r.addItems(blocks[0], spelling{{text: strings.Join(items, ", ")}})
}

// Ordered reports whether the rows that the statement shows at a level have the values that they were ordered by. One
// that somebody changes while the statement waits for its lock is shown as it is then.
func (p *Plan) Ordered(level history.Level) bool {
	return p.Locking == history.NoLock || level == history.RepeatableRead || level == history.Serializable
}
