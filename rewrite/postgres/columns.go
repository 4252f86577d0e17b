package postgres

import (
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// held returns the relations whose columns a star of the block's select list holds: the block's own, or, where its
// qualifier names none of these, one of a block around, whose columns a star of a LATERAL query shows.
func (b *block) held(star *ast.ColumnRef) []*relation {
	within := func(rels []*relation) []*relation {
		return slices.DeleteFunc(slices.Clone(rels), func(rel *relation) bool { return !rel.within(star) })
	}
	if own := within(b.rels); len(own) > 0 || len(fields(star)) == 1 {
		return own
	}
	if around := within(b.outer); len(around) > 0 {
		return around[:1]
	}
	return nil
}

// expands reports whether a star of the block's select list is of the block's own relations.
func (b *block) expands(star *ast.ColumnRef) bool {
	return len(fields(star)) == 1 || slices.ContainsFunc(b.rels, func(rel *relation) bool { return rel.within(star) })
}

// columns is how many columns the client's select list surely has.
func (b *block) columns() int {
	if slices.ContainsFunc(nodes(b.n.FromClause), merges) {
		return len(nodes(b.n.TargetList))
	}
	n := 0
	for _, item := range nodes(b.n.TargetList) {
		held := 0
		if ref := star(item); ref != nil {
			for _, rel := range b.held(ref) {
				held += rel.count
			}
		}
		n += max(held, 1)
	}
	return n
}

// counted reports whether the client's select list surely has no more columns than that.
func (b *block) counted() bool {
	return len(nodes(b.n.ValuesLists)) == 0 && !slices.ContainsFunc(nodes(b.n.TargetList), func(item ast.Node) bool {
		ref := star(item)
		if ref == nil {
			return false
		}
		held := b.held(ref)
		return len(held) == 0 || slices.ContainsFunc(nodes(b.n.FromClause), merges) ||
			slices.ContainsFunc(held, func(rel *relation) bool { return !rel.counted })
	})
}

// within reports whether a star holds the relation's columns.
func (rel *relation) within(star *ast.ColumnRef) bool {
	names := fields(star)
	return len(names) == 1 || names[len(names)-2] == rel.ref
}

// outputs returns the names of the block's columns, as far as they are known; open says that there may be others.
func (b *block) outputs() (names []string, open bool) {
	if b.n.TargetList == nil || len(nodes(b.n.ValuesLists)) > 0 {
		return nil, true
	}
	for _, item := range nodes(b.n.TargetList) {
		if ref := star(item); ref != nil {
			held := b.held(ref)
			open = open || len(held) == 0
			for _, rel := range held {
				open = open || rel.open
				names = append(names, rel.columnNames()...)
			}
			continue
		}
		t, ok := item.(*ast.ResTarget)
		if !ok {
			return nil, true
		}
		name := t.Name
		if ref, ok := bare(t.Val).(*ast.ColumnRef); ok && name == "" {
			all := fields(ref)
			name = all[len(all)-1]
		}
		open = open || name == "" // it has a name of the server's choice
		names = append(names, name)
	}
	return names, open
}

// columnNames are the names of the relation's columns that are known.
func (rel *relation) columnNames() []string {
	if rel.base != nil {
		return rel.base.names
	}
	return rel.names
}

// merges reports whether an item of a FROM clause joins columns of two tables to one.
func merges(item ast.Node) bool {
	j, ok := bare(item).(*ast.JoinExpr)
	return ok && (j.IsNatural || j.UsingClause != nil || merges(j.Larg) || merges(j.Rarg))
}

// beyond reports whether a clause may name a column by a position behind the client's own columns.
func beyond(clause *ast.NodeList, columns int) bool {
	for _, item := range nodes(clause) {
		if s, ok := item.(*ast.SortBy); ok {
			item = s.Node
		}
		if c, ok := bare(item).(*ast.A_Const); ok {
			if i, ok := c.Val.(*ast.Integer); ok && i.IVal > columns {
				return true
			}
		}
		if set, ok := item.(*ast.GroupingSet); ok && beyond(set.Content, columns) {
			return true
		}
	}
	return false
}

// carriedFirst puts what a star carries before what is added behind it.
func carriedFirst(shown []*sight) []*sight {
	var carried, added []*sight
	for _, s := range shown {
		if s.carried {
			carried = append(carried, s)
		} else {
			added = append(added, s)
		}
	}
	return append(carried, added...)
}

// joint makes all sights of the statement's only block one array, with an element for each if there are several.
func (r *reading) joint(b *block) error {
	item := b.sights[0].exprs[0]
	if len(b.sights) > 1 {
		var elements []string
		for _, s := range b.sights {
			elements = append(elements, "pg_catalog.array_to_string("+s.exprs[0]+", '"+ElementSeparator+"')")
		}
		item = "ARRAY[" + strings.Join(elements, ", ") + "]"
	}
	for _, s := range b.sights {
		r.plan.Result.Sources = append(r.plan.Result.Sources, s.source)
	}
	return r.addItems(b, item)
}

// append puts the identities behind the columns of the client's result.
func (r *reading) append(blocks []*block, shown []*sight) error {
	if r.of != nil {
		return r.joint(blocks[0])
	}
	var added []*sight
	for _, s := range carriedFirst(shown) {
		if s.carried {
			r.plan.Result.Sources = append(r.plan.Result.Sources, s.source)
		} else {
			added = append(added, s)
		}
	}
	count := 0
	for _, s := range added {
		s.names = nil
		for range s.exprs {
			count++
			s.names = append(s.names, rewrite.NamePrefix+strconv.Itoa(count))
		}
		r.plan.Result.Sources = append(r.plan.Result.Sources, s.source)
	}
	r.plan.Result.Reply = rewrite.Trimmed
	return r.extend(blocks, added)
}

// extend adds sights to the select lists of the blocks that they are seen from, and NULLs to those of the others.
func (r *reading) extend(blocks []*block, added []*sight) error {
	for _, b := range blocks {
		var items []string
		width := len(nodes(b.n.TargetList))
		for _, rel := range b.rels {
			width += rel.count + rel.added
		}
		for _, s := range added {
			own := false
			for _, mine := range b.sights {
				own = own || mine == s
			}
			for i, e := range s.exprs {
				if !own {
					e = "NULL::" + s.types[i]
				}
				items = append(items, e+" AS "+s.names[i])
			}
		}
		if width+len(items) > maxTargets {
			return refusal(history.ReasonColumns)
		}
		if err := r.addItems(b, strings.Join(items, ", ")); err != nil {
			return err
		}
	}
	return nil
}

// addItems adds items to the select list of a block.
func (r *reading) addItems(b *block, items string) error {
	if b.union != nil {
		return r.groupUnion(b, items)
	}
	if b.unique {
		if err := r.groupInstead(b); err != nil {
			return err
		}
	}
	if items == "" {
		return nil
	}
	wanted, err := parse("SELECT " + items)
	if err != nil {
		return err
	}
	n, at := b.n, r.places.queries[b.n]
	switch {
	case r.st.is(at.from, "TABLE"):
		t := r.st.toks[at.from]
		r.edits = append(r.edits, edit{start: t.Start, end: t.End, text: "SELECT *, " + items + " FROM"})
	case len(nodes(n.TargetList)) > 0:
		r.insertAfter(at.listEnd, ", "+items)
	default:
		r.insertAfter(at.listEnd, " "+items)
	}
	r.changes = append(r.changes, func() {
		if n.TargetList == nil {
			n.TargetList = ast.NewNodeList()
		}
		n.TargetList.Items = append(n.TargetList.Items, wanted.(*ast.SelectStmt).TargetList.Items...)
	})
	return nil
}
