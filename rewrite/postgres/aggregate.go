package postgres

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
)

// MaxArray is how many identities isotap collects from an aggregate at most: one with more is remembered as
// too large.
const MaxArray = 10_000

// collectFor is how long a statement collects identities if [Options] do not say.
const collectFor = 2 * time.Second

// elapsed returns the condition that less (<) or more (>) than a time has gone by since the statement was sent.
func (r *reading) elapsed(sign string, d time.Duration) string {
	since := "pg_catalog.statement_timestamp()"
	if r.of != nil { // it may begin later, after waiting for a lock
		since = "(SELECT pg_catalog.clock_timestamp())"
	}
	return "(pg_catalog.clock_timestamp() OPERATOR(pg_catalog." + sign + ") (" + since + " OPERATOR(pg_catalog.+) '" +
		strconv.FormatInt(d.Milliseconds(), 10) + " ms'::pg_catalog.interval))"
}

// collect makes a block's sights arrays of what each row stands for. Collecting ends some time after the statement
// was sent: the server's memory must not fill with identities, and an array must not outgrow what a value can be. If
// some may be missing for it, the first array has an element that says so: it is there for rows that come a little
// before the end, since it takes another look at the clock.
func (r *reading) collect(b *block) {
	var out []*sight
	end := r.rewriter.options.CollectFor
	if end <= 0 {
		end = collectFor
	}
	for _, s := range b.sights {
		var array spelling
		if len(out) == 0 {
			array.text("pg_catalog.array_cat(")
		}
		array.text("pg_catalog.array_agg(")
		array = append(array, s.collected()...)
		array.text(") FILTER (WHERE ")
		if s.nullable {
			array = append(array, s.first()...)
			array.text(" IS NOT NULL AND ")
		}
		array.text(r.elapsed("<", end) + ")")
		if len(out) == 0 { // the mark counts for all of them
			array.text(", CASE WHEN pg_catalog.bool_or(" + r.elapsed(">", end*9/10) + ") THEN " + lacking + " END)")
		}
		of := &sight{source: Source{Table: s.source.Table, Array: true, Whole: s.source.Whole,
			Beside: s.within != nil, Marked: s.source.Marked, Physical: s.source.Physical},
			exprs: []string{array.in(r.st)}, types: []string{"pg_catalog.text[]"}}
		if s.spelled != nil {
			of.spelled = array
		}
		out = append(out, of)
	}
	b.sights = out
}

// tooMuch returns the reason why a block must not collect what it reads: its tables are known to be large.
func (b *block) tooMuch() history.Reason {
	if b.n.WhereClause != nil {
		return history.Reason{}
	}
	for _, rel := range b.rels {
		if rel.base != nil && rel.base.table.Rows > MaxArray {
			return history.ReasonLargeAggregate
		}
	}
	return history.Reason{}
}

// fromEnds are the aggregates that the server can answer from an end of an index.
var fromEnds = []string{"min", "max", "bool_and", "bool_or", "every"}

// extremes reports whether all aggregates are such, and there are any.
func extremes(u *usage) bool {
	return len(u.calls) > 0 && !slices.ContainsFunc(u.calls, func(n *ast.FuncCall) bool {
		names := nodes(n.Funcname)
		last, ok := names[len(names)-1].(*ast.String)
		return !ok || !slices.Contains(fromEnds, last.SVal)
	})
}

// leads reports whether the arguments of all aggregates may each be the first column of an index. An index on an
// expression has no name for it.
func (s *source) leads(u *usage) bool {
	for _, n := range u.calls {
		args := nodes(n.Args)
		if len(args) != 1 {
			return false
		}
		name := ""
		if ref, ok := args[0].(*ast.ColumnRef); ok {
			all := fields(ref)
			name = all[len(all)-1]
		}
		if !slices.ContainsFunc(s.table.Indexes, func(x Index) bool {
			if len(x.Columns) == 0 {
				return false
			}
			i := slices.IndexFunc(s.table.Columns, func(c Column) bool { return c.Name == x.Columns[0] })
			return x.Columns[0] == name || i >= 0 && s.names[i] == name
		}) {
			return false
		}
	}
	return true
}

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
func (s *sight) collected() (text spelling) {
	of := spelling{{text: s.text}}
	if s.spelled != nil {
		of = s.spelled
	}
	if !s.repeated {
		return of
	}
	text.text("DISTINCT ")
	text = append(text, of...)
	text.text(` COLLATE pg_catalog."C"`)
	return text
}

// first is the first of the sight's expressions.
func (s *sight) first() spelling {
	if s.spelled != nil {
		return s.spelled
	}
	return spelling{{text: s.exprs[0]}}
}

// grouped reports whether the relation is a query that passes arrays outwards.
func (rel *relation) grouped() bool {
	return slices.ContainsFunc(rel.sights, func(s *sight) bool { return s.source.Array && !s.lookup && s.within == nil })
}

// oneRow reports whether the block gives one row, whatever its tables hold, but for functions that return sets, and the
// same one wherever a join shows it.
func (b *block) oneRow() bool {
	return b.grouped && !b.lateral && b.n.GroupClause == nil && b.n.HavingClause == nil &&
		b.n.LimitCount == nil && b.n.LimitOffset == nil
}

// keys returns the names of the block's columns by which its rows are picked, whether before it groups them or
// afterwards: those that it groups by.
func (b *block) keys() []string {
	names, open := b.outputs()
	switch {
	case b.unique && !slices.ContainsFunc(b.rels, (*relation).grouped):
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
	if b.grouped && !slices.ContainsFunc(nodes(b.n.GroupClause), func(item ast.Node) bool {
		switch by := bare(item).(type) {
		case *ast.A_Const:
			i, ok := by.Val.(*ast.Integer)
			return ok && i.IVal == position
		case *ast.ColumnRef:
			return slices.Equal(fields(by), fields(ref))
		}
		return false
	}) {
		return false
	}
	names := fields(ref)
	column := names[len(names)-1]
	return !slices.ContainsFunc(b.rels, func(rel *relation) bool {
		of := (len(names) == 1 || len(names) == 2 && names[0] == rel.ref) && (!b.grouped || rel.grouped())
		return len(names) > 2 || of && rel.base == nil && rel.has(column) && !slices.Contains(rel.keys, column)
	})
}

// hides reports whether a block may leave out rows of a relation for another reason than the keys that they have.
func (r *reading) hides(b *block, rel *relation) bool {
	u, err := r.inspect(b.n.WhereClause, b.n.FromClause)
	dotted := func(name string) bool { return strings.Contains(name, ".") }
	if err != nil || u.subquery || len(u.columns) > 0 && (dotted(rel.ref) || slices.ContainsFunc(rel.names, dotted)) {
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
