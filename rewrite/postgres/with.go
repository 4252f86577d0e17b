package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
)

// find returns the expression of a name, innermost first; nil where there is none.
func (sc *scope) find(name string) *common {
	for ; sc != nil; sc = sc.up {
		for i := len(sc.common) - 1; i >= 0; i-- {
			if sc.common[i].def.Ctename == name {
				return sc.common[i]
			}
		}
	}
	return nil
}

// enter returns the scope within a WITH clause. Statements that write are not looked into.
func (r *reading) enter(clause *ast.WithClause, up *scope) (*scope, error) {
	if clause == nil {
		return up, nil
	}
	sc := &scope{up: up}
	for _, item := range nodes(clause.Ctes) {
		def, ok := item.(*ast.CommonTableExpr)
		if !ok {
			return nil, refusal(history.ReasonUnparsable)
		}
		query, ok := def.Ctequery.(*ast.SelectStmt)
		if !ok {
			p := r.partOf(def)
			if p == nil {
				return nil, refusal(history.ReasonWith)
			}
			sc.common = append(sc.common, &common{def: def, known: true, as: p.columns()})
			continue
		}
		if c := r.sharedBy(def); c != nil {
			sc.common = append(sc.common, c)
			continue
		}
		// A query sees the expressions before its own or, if they may be recursive, all of them.
		c := &common{def: def, sc: sc, once: mentions(r.stmt, def.Ctename) == 1}
		if clause.Recursive {
			c.recursive = mentions(query, def.Ctename) > 0
		} else {
			c.sc = &scope{up: up, common: append([]*common(nil), sc.common...)}
		}
		sc.common = append(sc.common, c)
	}
	return sc, nil
}

// kept are the expressions of a WITH clause that must stay as they are, since parts that write read them.
func (pl *planner) kept(with *ast.WithClause) map[ast.Node]history.Reason {
	barred := make(map[ast.Node]history.Reason)
	if with == nil {
		return barred
	}
	for _, c := range nodes(with.Ctes) {
		if def, ok := c.(*ast.CommonTableExpr); ok && slices.Contains(pl.shared, def.Ctename) && pl.sharedBy(def) == nil {
			barred[def] = history.ReasonWith
		}
	}
	return barred
}

// partOf returns the part of the statement that an expression is; nil where it is none.
func (pl *planner) partOf(def *ast.CommonTableExpr) *part {
	if i := slices.IndexFunc(pl.parts, func(p *part) bool { return p.def == def }); i >= 0 {
		return pl.parts[i]
	}
	return nil
}

// mentions is how often a name stands in the place of a table within a query.
func mentions(n ast.Node, name string) (times int) {
	whole := pgtree.Walk(func(n ast.Node) bool {
		if v, ok := n.(*ast.RangeVar); ok && v.SchemaName == "" && v.RelName == name {
			times++
		}
		return true
	}, n)
	if !whole {
		return 2
	}
	return times
}

// common adds a use of a common table expression.
func (w *walker) common(c *common, n *ast.RangeVar, nullable bool) error {
	rel := &relation{node: c.def, ref: n.RelName, open: true}
	if n.Alias != nil {
		rel.ref = n.Alias.AliasName
	}
	w.rels = append(w.rels, rel)
	w.uses[n] = c
	switch {
	case !w.barred[c.def].IsZero():
		w.markUnseen(w.barred[c.def])
		return nil
	case c.looking: // the rows that it has so far, which show what they are made of themselves
		w.wide = append(w.wide, wideName{rel, c.def})
		return nil
	case !c.known:
		query := c.def.Ctequery.(*ast.SelectStmt)
		w.ask(query, rel.ref, c.renames(n.Alias), nullable)
		if c.once && w.unasked(query, nullable) {
			w.unread = true
			w.markUnseen(history.ReasonPlan)
			return nil
		}
		if err := w.define(c, nullable); err != nil {
			return err
		}
	}
	rel.names, rel.open, rel.count, rel.counted = c.as.names, c.as.open, c.as.count, c.as.counted
	rel.keys, rel.whole, rel.explicit = c.as.keys, c.as.whole, c.as.explicit
	if n.Alias == nil || len(nodes(n.Alias.ColNames)) == 0 {
		rel.types = c.as.types
	}
	if n.Alias != nil && len(c.shows) > 0 {
		if len(nodes(n.Alias.ColNames)) > rel.count {
			return &queryRefusal{c.def, history.ReasonColumnNames}
		}
		rel.rename(nodes(n.Alias.ColNames))
	}
	w.take(rel, c.shows, nullable)
	return nil
}

// renames returns the names that the first columns of a common table expression have where it stands by an alias.
func (c *common) renames(a *ast.Alias) []ast.Node {
	names := slices.Clone(nodes(c.def.Aliascolnames))
	if a == nil {
		return names
	}
	given := nodes(a.ColNames)
	return append(slices.Clone(given), names[min(len(given), len(names)):]...)
}

// define looks at the query of a common table expression.
func (w *walker) define(c *common, nullable bool) error {
	query := c.def.Ctequery.(*ast.SelectStmt)
	c.known, c.looking = true, true
	w.alone[query] = w.standsByName(c, nullable)
	defer func() { c.looking = false }()
	blocks, err := w.query(query, c.sc)
	if err != nil {
		return err
	}
	c.as.describe(blocks)
	shown := all(blocks)
	if c.recursive {
		if err := w.recursive(c, query, blocks, shown); err != nil {
			return err
		}
	}
	for _, s := range shown {
		if s.source.Array && !s.single && s.within == nil && c.once && c.def.Ctematerialized != ast.CTEMaterializeAlways && w.filters {
			// Volatile functions in its arrays would have the server compute the whole of it.
			return &queryRefusal{c.def, history.ReasonWith}
		}
	}
	if reason := w.priced(shown); !reason.IsZero() {
		return &queryRefusal{c.def, reason}
	}
	if err := c.rename(shown); err != nil {
		return err
	}
	inner := &walker{reading: w.reading, sc: c.sc}
	c.shows, err = inner.outwards(blocks, shown, c.def)
	return err
}

// recursive has the blocks of a recursive query show arrays of one text: what follows UNION ALL must be of the
// very types of what stands before it.
func (w *walker) recursive(c *common, query *ast.SelectStmt, blocks []*block, shown []*sight) error {
	if len(shown) > 0 && (query.Op != ast.SETOP_UNION || !query.All) {
		return &queryRefusal{c.def, history.ReasonRecursive}
	}
	for _, b := range blocks {
		if len(shown) > 0 && takesAll(b.n) && mentionsIn(b.n.FromClause, c.def.Ctename) {
			return &queryRefusal{c.def, history.ReasonDerivedStar}
		}
	}
	for _, s := range shown {
		if s.text == "" || s.carried {
			return &queryRefusal{c.def, history.ReasonRecursive}
		}
		element := "CASE WHEN " + s.exprs[0] + " IS NOT NULL THEN " + s.text + ` COLLATE pg_catalog."default" END`
		s.exprs, s.types, s.text = []string{"ARRAY[" + element + "]"}, []string{"pg_catalog.text[]"}, ""
		s.source = Source{Table: s.source.Table, Array: true, Physical: s.source.Physical}
		s.single = true
	}
	return nil
}

// mentionsIn reports whether a FROM clause names a table.
func mentionsIn(from *ast.NodeList, name string) bool {
	return mentions(&ast.SelectStmt{FromClause: from}, name) > 0
}

// rename takes the expression's list of column names into account.
func (c *common) rename(shown []*sight) error {
	list := nodes(c.def.Aliascolnames)
	if len(list) == 0 || len(shown) == 0 {
		return nil
	}
	if len(list) > c.as.count {
		return &queryRefusal{c.def, history.ReasonColumnNames}
	}
	c.as.rename(list)
	return nil
}
