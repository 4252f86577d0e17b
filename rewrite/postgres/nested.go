package postgres

import (
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"
)

// Queries in a FROM clause that group pass arrays outwards, one with each row. A query around them may show an array
// in many rows, collect it again, or leave rows out: then it is not known what these were made of.

// maxRepeated is how many bytes an array may have that a join may show in many rows.
const maxRepeated = 4096

// lacking is an array of the mark that identities are missing.
const lacking = "ARRAY['" + Lacking + "']::pg_catalog.text[]"

// again makes an array that a query passes outwards one that this block can show and collect.
func (s *sight) again(joined bool) {
	array := s.exprs[0]
	if s.repeated = joined; joined {
		array = "CASE WHEN pg_catalog.pg_column_size(" + array + ") OPERATOR(pg_catalog.>) " +
			strconv.Itoa(maxRepeated) +
			" THEN " + lacking + " ELSE " + array + " END"
		s.exprs = []string{array}
	}
	s.text = "pg_catalog.array_to_string(" + array + ", '" + ElementSeparator + "')"
}

// collected is the sight's text as the argument of an aggregate. What a join repeats is collected once: sorting may
// go to the disk, an array must fit into one value.
func (s *sight) collected() string {
	if s.repeated {
		return `DISTINCT ` + s.text + ` COLLATE pg_catalog."C"`
	}
	return s.text
}

// grouped reports whether the relation is a query that passes arrays outwards.
func (rel *relation) grouped() bool {
	return slices.ContainsFunc(rel.sights, func(s *sight) bool { return s.source.Array && !s.lookup })
}

// oneRow reports whether the block gives one row, whatever its tables hold, but for functions that return sets, and the
// same one wherever a join shows it.
func (b *block) oneRow() bool {
	return b.grouped && !b.lateral && b.n.GroupClause == nil && b.n.HavingClause == nil && b.n.LimitCount == nil &&
		b.n.LimitOffset == nil
}

// keys returns the names of the block's columns by which its rows are picked, whether before it groups them or
// afterwards: those that it groups by.
func (b *block) keys() []string {
	names, open := b.outputs()
	switch {
	case b.unique:
		return names
	case open, len(names) != len(nodes(b.n.TargetList)):
		return nil
	}
	var out []string
	for i, item := range nodes(b.n.TargetList) {
		if t, ok := item.(*ast.ResTarget); ok && b.picks(t, i+1) {
			out = append(out, names[i])
		}
	}
	return out
}

// picks reports whether an item of the select list, at a position, is a column of a table or a key.
func (b *block) picks(t *ast.ResTarget, position int) bool {
	ref, ok := bare(t.Val).(*ast.ColumnRef)
	if !ok {
		return false
	}
	if b.grouped {
		return slices.ContainsFunc(nodes(b.n.GroupClause), func(item ast.Node) bool {
			switch by := bare(item).(type) {
			case *ast.A_Const:
				i, ok := by.Val.(*ast.Integer)
				return ok && i.IVal == position
			case *ast.ColumnRef:
				return slices.Equal(fields(by), fields(ref))
			}
			return false
		})
	}
	names := fields(ref)
	column := names[len(names)-1]
	return !slices.ContainsFunc(b.rels, func(rel *relation) bool {
		of := len(names) == 1 || len(names) == 2 && names[0] == rel.ref
		return len(names) > 2 || of && rel.base == nil && rel.has(column) && !slices.Contains(rel.keys, column)
	})
}

// hides reports whether a block may leave out rows of a relation for another reason than the keys that they have.
func (r *reading) hides(b *block, rel *relation) bool {
	u, err := r.inspect(b.n.WhereClause, b.n.FromClause)
	dotted := func(name string) bool { return strings.Contains(name, ".") }
	if err != nil || u.subquery || dotted(rel.ref) || slices.ContainsFunc(rel.names, dotted) {
		return true
	}
	for name := range u.columns {
		if !rel.spares(name) {
			return true
		}
	}
	return slices.ContainsFunc(nodes(b.n.FromClause), func(item ast.Node) bool { return rel.merged(item) })
}

// spares reports whether a column, by its name as written, is none of the relation's but a key.
func (rel *relation) spares(name string) bool {
	of, column, qualified := strings.Cut(name, ".")
	if !qualified {
		column = of
	}
	switch {
	case !qualified && column == rel.ref: // the whole row
		return false
	case qualified && of != rel.ref:
		return true
	}
	return !qualified && !rel.has(column) || slices.Contains(rel.keys, column)
}

// merged reports whether an item of a FROM clause may join by another column of the relation than a key, or hands its
// columns to a query.
func (rel *relation) merged(item ast.Node) bool {
	switch n := bare(item).(type) {
	case *ast.RangeSubselect:
		return n.Lateral && ast.Node(n) != rel.node
	case *ast.JoinExpr:
		if n.IsNatural && slices.ContainsFunc(rel.names,
			func(name string) bool { return !slices.Contains(rel.keys, name) }) {
			return true
		}
		for _, name := range nodes(n.UsingClause) {
			s, ok := name.(*ast.String)
			if !ok || rel.has(s.SVal) && !slices.Contains(rel.keys, s.SVal) {
				return true
			}
		}
		return n.IsNatural && rel.open || rel.merged(n.Larg) || rel.merged(n.Rarg)
	}
	return false
}
