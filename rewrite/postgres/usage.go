package postgres

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/guard"
	"github.com/isotap/isotap/internal/pgtree"
)

// functionList names the documented functions of PostgreSQL 12 to 18 in pg_catalog that read no tables, each
// on a line; aggregates are followed by an a, volatile functions by a v. Those for window frames only are not told
// apart: without OVER the server refuses them.
//
//go:embed functions.txt
var functionList string

// functions tells which names are the server's own functions, and which of these aggregate.
var functions = func() map[string]bool {
	m := make(map[string]bool)
	for line := range strings.Lines(functionList) {
		name, class, _ := strings.Cut(strings.TrimSpace(line), " ")
		m[name] = class == "a"
		if class == "v" {
			volatiles[name] = true
		}
	}
	return m
}()

// volatiles are those of them that the server calls volatile.
var volatiles = make(map[string]bool)

// usage is what a statement holds beside its own table accesses.
type usage struct {
	reads     []*ast.RangeVar // what subqueries read
	subquery  bool            // there are any outside of FROM
	aggregate bool            // an aggregate function outside of subqueries
	window    bool            // a window function
	function  bool            // a function that is not the server's own: it may read and write
	volatile  bool            // one of the server's own that does more than give the same value for the same arguments
	unsure    bool            // one of which it is not known whether it aggregates
	kinds     func(name string) FunctionKind
	// calls are the aggregates outside of subqueries, so far as they are spelled as functions.
	calls []*ast.FuncCall
	// columns are those that surely belong to the statement's own tables, by name or "qualifier.name"; a star
	// is a name.
	columns map[string]bool
	// inner are the columns that aggregates in subqueries are of, by their names as written.
	inner [][]string
}

// inspect looks through parts of a statement. Subqueries in FROM are not its own.
func (pl *planner) inspect(parts ...ast.Node) (u *usage, err error) {
	u = &usage{columns: make(map[string]bool), kinds: pl.functions}
	if !guard.Whole(func() { u.walk(0, parts...) }) {
		return u, refusal(history.ReasonUnparsable)
	}
	return u, nil
}

// walk looks through nodes within so many subqueries.
func (u *usage) walk(depth int, roots ...ast.Node) {
	pgtree.Each(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SubLink:
			u.subquery = true
			if n.Testexpr != nil {
				u.walk(depth, n.Testexpr)
			}
			u.walk(depth+1, n.Subselect)
			return false
		case *ast.RangeSubselect:
			return depth > 0
		case *ast.RangeVar:
			if depth > 0 {
				u.reads = append(u.reads, n)
			}
		case *ast.FuncCall:
			u.call(n, depth)
		case *ast.JsonObjectAgg, *ast.JsonArrayAgg, *ast.GroupingFunc: // GROUPING stands where aggregates may
			u.aggregates(n, depth)
		case *ast.ColumnRef:
			if depth == 0 {
				u.columns[strings.Join(fields(n), ".")] = true
			}
		}
		return true
	}, roots...)
}

// readsBeside reports whether subqueries read anything but the server's own catalogs. A name that a subquery's own
// WITH defines may pass for a catalog's: what it stands for is among the reads, too.
func (pl *planner) readsBeside(u *usage) bool {
	return slices.ContainsFunc(u.reads, func(n *ast.RangeVar) bool {
		t, reason := pl.table(n)
		return t != nil || !reason.IsZero()
	})
}

// call looks at a function call.
func (u *usage) call(n *ast.FuncCall, depth int) {
	u.window = u.window || depth == 0 && n.Over != nil
	names := nodes(n.Funcname)
	own := len(names) == 1
	if len(names) == 2 {
		s, ok := names[0].(*ast.String)
		own = ok && s.SVal == "pg_catalog"
	}
	last, _ := names[len(names)-1].(*ast.String)
	if last == nil {
		u.function, u.unsure = true, true
		return
	}
	u.volatile = u.volatile || volatiles[last.SVal]
	kind := u.kinds(last.SVal)
	aggregate, known := functions[last.SVal]
	switch {
	case !own || !known:
		u.function = true
		u.unsure = u.unsure || kind == NoFunction || kind == MixedFunction || kind == TellingFunction
		aggregate = kind == AggregateFunction
	case len(names) == 1 && (kind == MixedFunction || kind == TellingFunction || kind == PlainFunction && aggregate ||
		kind == AggregateFunction && !aggregate):
		u.function, u.unsure = true, true // the arguments' types decide which one it is
		return
	}
	if (aggregate || known && own && n.AggWithinGroup) && n.Over == nil {
		u.aggregates(n, depth)
	}
}

// functions returns what the functions of a name are as far as the session surely sees them so.
func (pl *planner) functions(name string) FunctionKind {
	if pl.session.unsettled(name) {
		return MixedFunction
	}
	if kind := pl.rewriter.schema.Functions(name); kind != FetchingFunction {
		return kind
	}
	return PlainFunction
}

// aggregates takes note of an aggregate.
func (u *usage) aggregates(n ast.Node, depth int) {
	if depth == 0 {
		u.aggregate = true
		if call, ok := n.(*ast.FuncCall); ok {
			u.calls = append(u.calls, call)
		}
		return
	}
	var of []string
	pgtree.Each(func(n ast.Node) bool {
		if ref, ok := n.(*ast.ColumnRef); ok {
			of = append(of, ofTable(ref)[0])
		}
		return true
	}, n)
	u.inner = append(u.inner, of)
}

// fields returns the names of a column reference, * for a star.
func fields(n *ast.ColumnRef) []string {
	var out []string
	for _, f := range nodes(n.Fields) {
		switch f := f.(type) {
		case *ast.String:
			out = append(out, f.SVal)
		default:
			out = append(out, "*")
		}
	}
	if len(out) == 0 {
		out = append(out, "*")
	}
	return out
}

// reachesOut reports whether an aggregate in a subquery may be one of the statement itself, as max(t.a) is in
// SELECT (SELECT max(t.a)) FROM t: what it is of may come from the statement's own tables.
func (u *usage) reachesOut(rels []*relation) bool {
	for _, of := range u.inner {
		for _, name := range of {
			for _, rel := range rels {
				if rel.ref == name || rel.has(name) {
					return true
				}
			}
		}
	}
	return false
}
