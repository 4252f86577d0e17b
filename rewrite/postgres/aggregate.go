package postgres

import (
	"slices"
	"strconv"
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
		there := ""
		if s.nullable {
			there = s.exprs[0] + " IS NOT NULL AND "
		}
		array := "pg_catalog.array_agg(" + s.collected() + ") FILTER (WHERE " + there + r.elapsed("<", end) + ")"
		if len(out) == 0 { // the mark counts for all of them
			array = "pg_catalog.array_cat(" + array + ", CASE WHEN pg_catalog.bool_or(" + r.elapsed(">", end*9/10) +
				") THEN " + lacking + " END)"
		}
		out = append(out, &sight{source: Source{Table: s.source.Table, Array: true, Whole: s.source.Whole,
			Physical: s.source.Physical},
			exprs: []string{array}, types: []string{"pg_catalog.text[]"}})
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
