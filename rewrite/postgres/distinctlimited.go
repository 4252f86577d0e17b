package postgres

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
)

// Programs look for the objects of a page by DISTINCT, an order and a LIMIT over what they join:
//
//	SELECT DISTINCT d.item_id FROM (SELECT ... FROM item LEFT JOIN orders ON ...) d ORDER BY item_id LIMIT 10
//
// The server may end there, so that no column within the statement shows the rows of what it gives and no others. They
// stand beside each row of the result, looked up by the key that it shows. Of the last one the server need not have
// read more than one row where the LIMIT is reached: if it is made of several, which one that was is not known.

// A pageRead is such a statement.
type pageRead struct {
	*reading
	// equal are conditions by which a row belongs to one of the result.
	equal []string
}

// tellDistinct puts such a statement into a SELECT that shows what it reads.
func (pl *planner) tellDistinct(n *ast.SelectStmt) error {
	missed := refusal(history.ReasonDistinct)
	u, err := pl.inspect(&ast.SubLink{Subselect: n})
	own, fails := pl.inspect(n.TargetList, n.WhereClause, n.SortClause, n.LimitCount, n.LimitOffset)
	if err != nil || fails != nil || u.function || u.volatile || u.unsure || own.subquery || own.aggregate || own.window || locks(n) ||
		n.Op != ast.SETOP_NONE || n.WithClause != nil || n.IntoClause != nil || n.GroupClause != nil || n.HavingClause != nil || n.WindowClause != nil ||
		n.DistinctClause == nil || len(nodes(n.DistinctClause)) > 0 || n.LimitCount == nil || len(nodes(n.SortClause)) == 0 || pl.mayFail(n) {
		return missed
	}
	p := &pageRead{reading: newReading(pl, n, nil)}
	if err := p.places.place(n, 0, len(pl.st.toks)); err != nil {
		return err
	}
	limit := p.limitOf(n)
	if limit.from >= limit.to || !p.byKey(n) || !p.keepsAll(n) || p.session.Version >= 16 && p.pinned(&block{n: n}) {
		return missed
	}
	x, told := p.copy(n)
	if told == nil {
		return missed
	}
	l := &looker{reading: p.reading, present: p.unlessLast(limit)}
	var c column
	p.tell(&c, x, told)
	return l.wrapIn(n, nil, c.edits, c.sources, " OFFSET 0")
}

// limitOf returns the tokens behind LIMIT, where that is a number or a parameter.
func (p *pageRead) limitOf(n *ast.SelectStmt) span {
	switch c := n.LimitCount.(type) {
	case *ast.ParamRef:
	case *ast.A_Const:
		if _, ok := c.Val.(*ast.Integer); !ok {
			return span{}
		}
	default:
		return span{}
	}
	here := p.places.queries[n]
	at := p.places.findIn(here.from, here.to, "LIMIT")
	if at < 0 || at+1 >= here.to || at+2 < here.to && !p.st.is(at+2, "OFFSET") {
		return span{}
	}
	return span{at + 1, at + 2}
}

// unlessLast spells what is false of the last of as many rows as LIMIT lets through, and true of others.
func (p *pageRead) unlessLast(limit span) (s spelling) {
	s.text("COALESCE(NOT (pg_catalog.count(*) OVER () OPERATOR(pg_catalog.>=) ")
	s.copy(p.st, limit.from, limit.to)
	s.text(" AND pg_catalog.row_number() OVER () OPERATOR(pg_catalog.=) pg_catalog.count(*) OVER ()), true)")
	return s
}

// byKey spells how the columns of the result tell the rows that one of them is made of. It reports whether the key of a
// table, which has a row for each, is among them.
func (p *pageRead) byKey(n *ast.SelectStmt) (found bool) {
	var names []string
	for _, item := range nodes(n.TargetList) {
		t, ok := item.(*ast.ResTarget)
		if !ok || star(item) != nil {
			return false
		}
		ref, ok := bare(t.Val).(*ast.ColumnRef)
		if !ok || len(fields(ref)) > 2 {
			return false
		}
		parts := fields(ref)
		name := cmp.Or(t.Name, parts[len(parts)-1])
		if slices.Contains(names, name) {
			return false
		}
		names = append(names, name)
		var spelled []string
		for _, part := range parts {
			spelled = append(spelled, quoted(part))
		}
		expr, shown := strings.Join(spelled, "."), asideRows+"."+quoted(name)
		if p.isKeyOf(n, parts) {
			found = true
			p.equal = append(p.equal, expr+" OPERATOR(pg_catalog.=) "+shown)
		} else {
			p.equal = append(p.equal, expr+" IS NOT DISTINCT FROM "+shown)
		}
	}
	return found
}

// isKeyOf reports whether a name in a query is that of the key of a table of which each row of its FROM clause has one.
func (pl *planner) isKeyOf(n *ast.SelectStmt, names []string) bool {
	column, qualified := names[len(names)-1], len(names) == 2
	firm := firmItems(n.FromClause)
	if n.Op != ast.SETOP_NONE || !qualified && (len(firm) != 1 || joins(n.FromClause)) {
		return false
	}
	for _, item := range firm {
		switch item := item.(type) {
		case *ast.RangeVar:
			if qualified && names[0] != refOf(item) || item.Alias != nil && len(nodes(item.Alias.ColNames)) > 0 {
				continue
			}
			t, _ := pl.table(item)
			if t == nil || len(t.Key) != 1 || t.Key[0] != column {
				return false
			}
			s, err := pl.sourceOf(t, item)
			return err == nil && !s.repeatsKeys()
		case *ast.RangeSubselect:
			query, ok := item.Subquery.(*ast.SelectStmt)
			if qualified && names[0] != aliasOf(item.Alias) || !ok || item.Alias == nil || len(nodes(item.Alias.ColNames)) > 0 {
				continue
			}
			return pl.isKeyOf(query, itemNamed(query, column))
		}
	}
	return false
}

// itemNamed returns the reference that is the only item of a query's list with a name; nil where there is none.
func itemNamed(n *ast.SelectStmt, name string) (ref []string) {
	times := 0
	for _, item := range nodes(n.TargetList) {
		t, ok := item.(*ast.ResTarget)
		if !ok || star(item) != nil {
			return []string{""}
		}
		of, ok := bare(t.Val).(*ast.ColumnRef)
		if !ok {
			if t.Name == name || t.Name == "" {
				return []string{""}
			}
			continue
		}
		if names := fields(of); cmp.Or(t.Name, names[len(names)-1]) == name {
			ref = names
			times++
		}
	}
	if times != 1 || len(ref) > 2 {
		return []string{""}
	}
	return ref
}

// firmItems are the items of a FROM clause that no outer join may show without a row.
func firmItems(from *ast.NodeList) (items []ast.Node) {
	var add func(n ast.Node)
	add = func(n ast.Node) {
		n = bare(n)
		j, ok := n.(*ast.JoinExpr)
		if !ok {
			items = append(items, n)
			return
		}
		if j.Jointype == ast.JOIN_INNER || j.Jointype == ast.JOIN_LEFT {
			add(j.Larg)
		}
		if j.Jointype == ast.JOIN_INNER || j.Jointype == ast.JOIN_RIGHT {
			add(j.Rarg)
		}
	}
	for _, item := range nodes(from) {
		add(item)
	}
	return items
}

// keepsAll reports whether what stands in the FROM clause are tables, and plain queries of tables, none of which the
// server may leave out: what LEFT JOIN adds is asked for by WHERE, or there may be several rows of it.
func (p *pageRead) keepsAll(n *ast.SelectStmt) bool {
	ok := true
	whole := pgtree.Walk(func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.SelectStmt:
			u, err := p.inspect(node.TargetList)
			ok = ok && (node == n || err == nil && !u.aggregate && !u.window && node.Op == ast.SETOP_NONE && node.WithClause == nil &&
				node.GroupClause == nil && node.HavingClause == nil && node.DistinctClause == nil && node.LimitCount == nil && node.LimitOffset == nil &&
				len(nodes(node.ValuesLists)) == 0) && p.joinsAll(node)
		case *ast.RangeVar:
			t, _ := p.table(node)
			ok = ok && t != nil
		case *ast.RangeSubselect:
			ok = ok && !node.Lateral
		case *ast.RangeFunction, *ast.RangeTableSample, *ast.RangeTableFunc, *ast.JsonTable, *ast.SubLink:
			ok = false
		}
		return ok
	}, n)
	return ok && whole
}

// joinsAll reports so of the outer joins in the FROM clause of a query.
func (p *pageRead) joinsAll(n *ast.SelectStmt) bool {
	ok := true
	whole := pgtree.Walk(func(node ast.Node) bool {
		j, is := node.(*ast.JoinExpr)
		if _, query := node.(*ast.SelectStmt); query || !is {
			return !query
		}
		optional := []ast.Node{}
		switch {
		case j.Alias != nil || j.IsNatural || j.UsingClause != nil || j.Jointype == ast.JOIN_FULL:
			ok = false
		case j.Jointype == ast.JOIN_LEFT:
			optional = append(optional, j.Rarg)
		case j.Jointype == ast.JOIN_RIGHT:
			optional = append(optional, j.Larg)
		}
		for _, item := range optional {
			table, is := bare(item).(*ast.RangeVar)
			ok = ok && is && (p.joinsSeveral(table, j.Quals) || p.names(n.WhereClause, refOf(table)))
		}
		return ok
	}, n.FromClause)
	return ok && whole
}

// names reports whether a condition surely names a column of a table, with the table's name before it.
func (p *pageRead) names(n ast.Node, ref string) (found bool) {
	pgtree.Each(func(n ast.Node) bool {
		of, ok := n.(*ast.ColumnRef)
		found = found || ok && len(fields(of)) == 2 && fields(of)[0] == ref
		return !found
	}, n)
	return found
}

// joinsSeveral reports whether a join's condition may hold for several rows of a table, by its unique indexes.
func (p *pageRead) joinsSeveral(item *ast.RangeVar, on ast.Node) bool {
	t, _ := p.table(item)
	u, err := p.inspect(on)
	if t == nil || err != nil {
		return false
	}
	named := func(column string) bool {
		return column == "" || u.columns[column] || u.columns[refOf(item)+"."+column]
	}
	alone := func(columns []string) bool {
		return !slices.ContainsFunc(columns, func(c string) bool { return !named(c) })
	}
	return (len(t.Key) == 0 || !alone(t.Key)) &&
		!slices.ContainsFunc(p.indexesOf(t), func(x Index) bool { return x.Unique && alone(x.Columns) })
}

// copy returns a copy of the FROM and WHERE clauses, and what tells its rows.
func (p *pageRead) copy(n *ast.SelectStmt) (*excerpt, *planner) {
	from, to := p.st.rowsOf(p.places.queries[n])
	if from < 0 {
		return nil, nil
	}
	x, where := &excerpt{}, p.places.findIn(from, to, "WHERE")
	x.add("SELECT ")
	if where < 0 {
		x.take(p.st, from, to)
		x.add(" WHERE (true)")
	} else {
		x.take(p.st, from, where)
		x.add(" WHERE (")
		x.take(p.st, where+1, to)
		x.add(")")
	}
	tree, err := parse(p.readable(x.text))
	if err != nil || !p.readsAlike(tree) {
		return nil, nil
	}
	told, ok := p.tellingAs(n, x.text, func(*planner) {})
	if !ok || told.plan.Observation != history.Exact || len(told.plan.Result.Sources) == 0 {
		return nil, nil
	}
	return x, told
}

// tell adds what shows, beside a row of the result, the rows that it is made of.
func (p *pageRead) tell(c *column, x *excerpt, told *planner) {
	sources := slices.Clone(told.plan.Result.Sources)
	for i := range sources {
		sources[i].Joint = -1
	}
	sources[0].Joint = len(sources)
	edits, head := told.sorted(), told.st.toks[0].End
	at := slices.IndexFunc(edits, func(e edit) bool { return e.start > head })
	if at < 0 {
		at = len(edits)
	}
	edits = slices.Insert(slices.Clone(edits), at, edit{start: head, end: head, text: ", pg_catalog.count(*)"})
	edits = append(edits, edit{start: len(x.text), end: len(x.text), text: " AND " + strings.Join(p.equal, " AND ")})
	intime := p.elapsed("<", cmp.Or(p.rewriter.options.CollectFor, collectFor))
	c.add(edit{text: ", (SELECT CASE WHEN " + intime + " THEN (SELECT CASE WHEN pg_catalog.pg_column_size(" + identitiesRead +
		") OPERATOR(pg_catalog.>) " + strconv.Itoa(maxTold) + " OR NOT " + asideRows + "." + presentName +
		" AND isotap_read.rows OPERATOR(pg_catalog.>) 1 THEN " + lacking + " ELSE " + identitiesRead + " END FROM ("})
	c.excerpt(x, edits)
	c.add(edit{text: ") AS isotap_read (identities, rows)) ELSE " + lacking + " END) AS " + rewrite.NamePrefix + "1"})
	c.sources = sources
}
