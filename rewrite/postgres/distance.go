package postgres

import (
	"slices"
	"strings"
)

// An index that gives rows by their distance may have to compute it anew from the row. Where the index alone would
// answer the server cannot, and fails ("lossy distance functions are not supported in index-only scans"). With
// identities it goes to the rows, and the error that the client's own text meets would not come.

// byDistance reports whether an index alone might answer for a source in the order of an operator that the statement
// has. Of a query within others it is not known which columns are asked of it.
func (r *reading) byDistance(b *block, s *source, u *usage) bool {
	return slices.ContainsFunc(r.indexesOf(s.table), func(x Index) bool {
		return r.orders(x) && (b.n != r.tree || !u.columns[s.ref] && s.within(x, u))
	})
}

// indexesOf returns the indexes of a table and of those that belong to it.
func (pl *planner) indexesOf(t *Table) []Index {
	all := t.Indexes
	for _, leaf := range t.Leaves {
		schema, name, _ := strings.Cut(leaf, ".")
		if l := pl.rewriter.schema.Table(schema, name); l != nil && l != t {
			all = append(slices.Clip(all), l.Indexes...)
		}
	}
	return all
}

// orders reports whether the statement has an operator by which an index gives rows in order. One may be in a function
// of the database's own, which the server reads as if it stood there.
func (pl *planner) orders(x Index) bool {
	if len(x.Orders) == 0 {
		return false
	}
	for i := range pl.st.toks {
		if slices.ContainsFunc(x.Orders, func(o string) bool { return pl.st.sign(i, o) }) {
			return true
		}
		if name, ok := pl.st.ident(i); ok && pl.st.mark(i+1, "(") {
			if _, own := functions[name]; !own || pl.functions(name) != NoFunction {
				return true
			}
		}
	}
	return false
}
