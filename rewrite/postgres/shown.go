package postgres

import (
	"strconv"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

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
	item := b.sights[0].first()
	if len(b.sights) > 1 {
		item = spelling{{text: "ARRAY["}}
		for i, s := range b.sights {
			if i > 0 {
				item.text(", ")
			}
			item.text("pg_catalog.array_to_string(")
			item = append(item, s.first()...)
			item.text(", '" + ElementSeparator + "')")
		}
		item.text("]")
	}
	for _, s := range b.sights {
		r.plan.Result.Sources = append(r.plan.Result.Sources, s.source)
	}
	if r.listed && !r.limited {
		return r.putInstead(b, item)
	}
	return r.addItems(b, item)
}

// putInstead puts an item in the place of a copy's list.
func (r *reading) putInstead(b *block, item spelling) error {
	at := r.places.queries[b.n]
	wanted, err := parse("SELECT " + r.readable(item.in(r.st)))
	if err != nil {
		return err
	}
	start, end := r.st.toks[at.from+1].Start, r.st.toks[at.listEnd].End
	for i, e := range item {
		if e.start, e.end = end, end; i == 0 {
			e.start = start
		}
		r.edits = append(r.edits, e)
	}
	r.changes = append(r.changes, func() { b.n.TargetList = wanted.(*ast.SelectStmt).TargetList })
	return nil
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
	for _, s := range added {
		s.names = nil
		for range s.exprs {
			r.hidden++
			s.names = append(s.names, rewrite.NamePrefix+strconv.Itoa(r.hidden))
		}
		r.plan.Result.Sources = append(r.plan.Result.Sources, s.source)
	}
	r.plan.Result.Reply = rewrite.Trimmed
	return r.extend(blocks, added)
}

// extend adds sights to the select lists of the blocks that they are seen from, and NULLs to those of the others.
func (r *reading) extend(blocks []*block, added []*sight) error {
	for _, b := range blocks {
		var items spelling
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
				if width++; len(items) > 0 {
					items.text(", ")
				}
				switch {
				case !own:
					items.text("NULL::" + s.types[i])
				case s.spelled != nil:
					items = append(items, s.spelled...)
				default:
					items.text(e)
				}
				items.text(" AS " + s.names[i])
			}
		}
		if width > maxTargets {
			return refusal(history.ReasonColumns)
		}
		if err := r.addItems(b, items); err != nil {
			return err
		}
	}
	return nil
}

// addItems adds items to the select list of a block.
func (r *reading) addItems(b *block, spelled spelling) error {
	items := spelled.in(r.st)
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
	wanted, err := parse("SELECT " + r.readable(items))
	if err != nil {
		return err
	}
	n, at := b.n, r.places.queries[b.n]
	switch {
	case r.st.is(at.from, "TABLE"):
		t := r.st.toks[at.from]
		r.edits = append(r.edits, edit{start: t.Start, end: t.End, text: "SELECT *, " + items + " FROM"})
	case len(nodes(n.TargetList)) > 0:
		r.insertSpelled(at.listEnd, ", ", spelled)
	default:
		r.insertSpelled(at.listEnd, " ", spelled)
	}
	r.changes = append(r.changes, func() {
		if n.TargetList == nil {
			n.TargetList = ast.NewNodeList()
		}
		n.TargetList.Items = append(n.TargetList.Items, wanted.(*ast.SelectStmt).TargetList.Items...)
	})
	return nil
}
