package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"
)

// A star holds what queries in FROM pass outwards, too. Where that would stand among the client's columns, these stand
// in the star's place, one by one: those of a query whose columns are named in the text. A table's stay a star, of its
// own: the schema may be older than the table.

// spellStar puts the columns that a star holds, an item of the select list, in its place. It reports whether it can.
func (r *reading) spellStar(b *block, ref *ast.ColumnRef, item int) bool {
	list, ok := b.spelledStar(ref)
	at, placed := r.places.queries[b.n]
	if !ok || !placed || !r.st.is(at.from, "SELECT") {
		return false
	}
	spans := r.st.cut(span{at.from + 1, at.listEnd + 1}, ",")
	if len(spans) != len(nodes(b.n.TargetList)) {
		return false
	}
	last := spans[item].to - 1
	first := last - 2*(len(fields(ref))-1)
	if first < spans[item].from || !r.st.sign(last, "*") {
		return false
	}
	wanted, err := parse("SELECT " + r.readable(list))
	if err != nil {
		return false
	}
	r.edits = append(r.edits, edit{start: r.st.toks[first].Start, end: r.st.toks[last].End, text: list})
	n, of := b.n, nodes(b.n.TargetList)[item]
	r.changes = append(r.changes, func() {
		i := slices.Index(n.TargetList.Items, of)
		n.TargetList.Items = slices.Replace(n.TargetList.Items, i, i+1, wanted.(*ast.SelectStmt).TargetList.Items...)
	})
	return true
}

// spelledStar returns the items that mean what a star means; ok is false where the text does not tell.
func (b *block) spelledStar(ref *ast.ColumnRef) (list string, ok bool) {
	if slices.ContainsFunc(nodes(b.n.FromClause), merges) {
		return "", false
	}
	var items []string
	for _, rel := range b.rels {
		if !rel.within(ref) {
			continue
		}
		same := 0
		for _, other := range b.rels {
			if other.ref == rel.ref {
				same++
			}
		}
		passes := rel.base == nil && len(rel.sights) > 0
		switch {
		case rel.ref == "", same > 1, passes && !rel.spelled():
			return "", false
		case !passes:
			items = append(items, quoted(rel.ref)+".*")
			continue
		}
		for _, name := range rel.names {
			items = append(items, quoted(rel.ref)+"."+quoted(name))
		}
	}
	return strings.Join(items, ", "), len(items) > 0
}

// spelled reports whether the text names all of the relation's columns, each once.
func (rel *relation) spelled() bool {
	sorted := slices.Sorted(slices.Values(rel.names))
	return rel.explicit && !rel.open && rel.counted && rel.count == len(rel.names) &&
		len(slices.Compact(sorted)) == len(rel.names)
}

// explicit reports whether the text names all columns of the block.
func (b *block) explicit() bool {
	return len(nodes(b.n.TargetList)) > 0 && !slices.ContainsFunc(nodes(b.n.TargetList), func(item ast.Node) bool {
		ref := star(item)
		return ref != nil && (len(b.held(ref)) == 0 ||
			slices.ContainsFunc(b.held(ref), func(rel *relation) bool { return !rel.explicit }))
	})
}
