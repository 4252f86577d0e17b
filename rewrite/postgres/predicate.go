package postgres

import (
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// returnsImages reports whether writes of a table show the rows that they leave. Reading or writing these as text must
// call nothing but the server's own functions: isotap's login may have more rights than the client's.
func (pl *planner) returnsImages(t *Table) bool {
	return pl.rewriter.options.Predicates && pl.session.utf8() && !pl.session.Backslashes && !t.Partitioned &&
		t.Root == "" && len(t.Leaves) == 0 && !t.View && !t.Foreign && !t.Materialized &&
		!slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Custom || c.Type == "money" })
}

// maxImage bounds what the values of a row that is shown may take where they are stored, in bytes.
const maxImage = 32 << 10

// image is an expression for the row as the write leaves it, NULL where it is large.
func (w *write) image() string {
	row := "(" + quoted(w.target.ref) + ".*)::pg_catalog.text"
	var sizes []string
	for _, c := range w.target.table.Columns {
		if !short[c.Type] {
			sizes = append(sizes, "COALESCE(pg_catalog.pg_column_size("+w.target.columnOf(c.Name)+"), 0)")
		}
	}
	if len(sizes) == 0 {
		return row
	}
	return "CASE WHEN " + strings.Join(sizes, " OPERATOR(pg_catalog.+) ") + " OPERATOR(pg_catalog.<) " +
		strconv.Itoa(maxImage) + " THEN " + row + " END"
}

// short are common types whose values take a few bytes.
var short = map[string]bool{"bool": true, "int2": true, "int4": true, "int8": true, "float4": true, "float8": true,
	"uuid": true, "date": true, "time": true,
	"timetz": true, "timestamp": true, "timestamptz": true, "interval": true, "oid": true, "name": true,
	"macaddr": true}

// chooses takes note of the condition by which a write chooses its rows, where these are of one table.
func (w *write) chooses(where ast.Node, alone bool) {
	if alone {
		w.choose(&w.target, where, nil, nil)
	}
}

// chooses takes note of the condition by which a query chooses its rows, if every row of its one table that matches
// is among those that it shows, as long as these are fewer than its limit.
func (r *reading) chooses(blocks []*block) {
	n := r.tree
	if len(blocks) != 1 || n.Op != ast.SETOP_NONE || n.WithClause != nil || r.st.has(0, "SKIP") {
		return
	}
	limit, known := limitOf(n)
	if !known {
		return
	}
	if r.oneRow(n) {
		limit = nil
	}
	b := blocks[0]
	if len(nodes(n.FromClause)) != 1 || len(b.rels) != 1 || b.rels[0].base == nil {
		return
	}
	if _, plain := nodes(n.FromClause)[0].(*ast.RangeVar); !plain {
		return
	}
	r.choose(b.rels[0].base, n.WhereClause, limit,
		[]string{"GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR"})
}

// limitOf returns how many rows a query shows at most; nil without a limit. It reports whether the query surely skips
// no rows.
func limitOf(n *ast.SelectStmt) (limit *rewrite.Limit, known bool) {
	if n.LimitOffset != nil {
		c, constant := n.LimitOffset.(*ast.A_Const)
		if !constant {
			return nil, false
		}
		if skipped, ok := countIn(c); !ok || skipped > 0 {
			return nil, false
		}
	}
	switch count := n.LimitCount.(type) {
	case nil:
		return nil, true
	case *ast.ParamRef:
		if count.Number > 0 {
			return &rewrite.Limit{Param: count.Number - 1}, true
		}
	case *ast.A_Const:
		if rows, ok := countIn(count); ok {
			return &rewrite.Limit{Rows: rows, Param: -1}, true
		}
	}
	return &rewrite.Limit{Open: true}, true
}

// countIn returns the number of rows that a constant is, which drivers that put parameters into the text quote. It
// reports whether it is one.
func countIn(c *ast.A_Const) (rows uint64, ok bool) {
	switch v := c.Val.(type) {
	case *ast.Integer:
		return uint64(v.IVal), v.IVal >= 0
	case *ast.String:
		rows, err := strconv.ParseUint(v.SVal, 10, 64)
		return rows, err == nil
	}
	return 0, false
}

// choose adds the predicate of a statement's WHERE clause over a source, if its value hangs on the row alone. The
// clause ends with the text, or before one of the keywords.
func (pl *planner) choose(s *source, where ast.Node, limit *rewrite.Limit, before []string) {
	t := s.table
	if !pl.returnsImages(t) || !slices.EqualFunc(s.names, t.Columns,
		func(name string, c Column) bool { return name == c.Name }) {
		return
	}
	p := rewrite.Predicate{Table: t.Name, Of: t.Spelled, As: quoted(s.ref), Where: []string{""}, Limit: limit}
	if limit != nil {
		p.Order = pl.order.keys
	}
	if where != nil {
		asked, settled := pl.settledByRow(where)
		if !settled || !holdsBetween(where) {
			return
		}
		from := pl.st.find(0, "WHERE")
		if from < 0 {
			return
		}
		to := len(pl.st.toks)
		for _, end := range append(before, "RETURNING") {
			if at := pl.st.find(from, end); at >= 0 {
				to = min(to, at)
			}
		}
		if pl.st.tellsTime(from, to) || pl.st.countAsks(from+1, to) != asked {
			return
		}
		p.Where, p.Params = pl.st.cutAtParams(from+1, to)
	}
	pl.plan.Predicates = append(pl.plan.Predicates, p)
}

// settledByRow reports whether the value of a condition hangs on the row alone, and on what it asks for by
// askingFunctions, as often as it says: not on other rows, another time, or what functions of the database's own do.
func (pl *planner) settledByRow(where ast.Node) (asked int, settled bool) {
	u, err := pl.inspect(where)
	if err != nil || u.function || len(u.reads) > 0 {
		return 0, false
	}
	settled = true
	whole := pgtree.Walk(func(n ast.Node) bool {
		if _, ok := asks(n); ok {
			asked++
			return true
		}
		switch n := n.(type) {
		case *ast.SubLink, *ast.SQLValueFunction, *ast.CurrentOfExpr:
			settled = false
		case *ast.FuncCall:
			names := nodes(n.Funcname)
			last, ok := names[len(names)-1].(*ast.String)
			settled = settled && ok && immutable[last.SVal]
		case *ast.A_Expr:
			// OPERATOR(schema.+); what @@ makes of a text hangs on a setting.
			settled = settled && len(nodes(n.Name)) < 2 && !isString(nodes(n.Name), "@@")
		case *ast.TypeName:
			settled = settled && (len(nodes(n.Names)) < 2 || isCatalog(n))
		case *ast.ColumnRef:
			names := fields(n)
			settled = settled && len(names) <= 2 && !isSystemColumn(names[len(names)-1])
		}
		return settled
	}, where)
	return asked, settled && whole
}

// isString reports whether a list of names begins with one.
func isString(names []ast.Node, s string) bool {
	if len(names) == 0 {
		return false
	}
	name, ok := names[0].(*ast.String)
	return ok && name.SVal == s
}

// isCatalog reports whether a type's name is one of pg_catalog's, as the grammar gives those that SQL has words for.
func isCatalog(n *ast.TypeName) bool {
	return isString(nodes(n.Names), "pg_catalog")
}

// immutable are common functions whose value hangs on their arguments alone, whatever these are.
var immutable = map[string]bool{"abs": true, "ceil": true, "floor": true, "round": true, "mod": true, "sign": true,
	"trunc": true, "lower": true, "upper": true, "length": true,
	"char_length": true, "btrim": true, "ltrim": true, "rtrim": true, "substr": true, "substring": true,
	"position": true, "strpos": true, "left": true, "right": true,
	"replace": true, "starts_with": true, "like_escape": true, "array_length": true, "cardinality": true,
	"coalesce": true, "greatest": true, "least": true, "md5": true, "overlaps": true,
	"jsonb_exists": true, "lower_inc": true, "upper_inc": true, "isempty": true, "range_merge": true, "int4range": true,
	"int8range": true, "numrange": true, "tsrange": true, "tstzrange": true, "daterange": true}

// tellsTime reports whether one of the literals among tokens [from, to) may stand for a moment that is another one
// later.
func (st *statement) tellsTime(from, to int) bool {
	return slices.ContainsFunc(st.toks[from:to], func(t pgtoken.Token) bool {
		text := strings.ToLower(st.text[t.Start:t.End])
		return t.Kind == pgtoken.String && slices.ContainsFunc([]string{"now", "today", "tomorrow", "yesterday"},
			func(word string) bool { return strings.Contains(text, word) })
	})
}

// cutAtParams returns the text of tokens [from, to), cut where parameters stand, and these, counted from 0; calls of
// the askingFunctions are parameters, too.
func (st *statement) cutAtParams(from, to int) (texts []string, params []int) {
	start, before := st.toks[from].Start, ""
	for i := from; i < to; i++ {
		upTo := before + st.text[start:st.toks[i].Start]
		if a, end := st.asksAt(i); a != nil {
			open, behind := a.around()
			texts, params = append(texts, upTo+open), append(params, a.param)
			start, before = st.toks[end-1].End, behind
			i = end - 1
			continue
		}
		if st.toks[i].Kind != pgtoken.Param {
			continue
		}
		n, err := strconv.Atoi(st.tok(i)[1:])
		if err != nil {
			n = 0
		}
		texts, params = append(texts, upTo), append(params, n-1)
		start, before = st.toks[i].End, ""
	}
	return append(texts, before+st.text[start:st.toks[to-1].End]), params
}
