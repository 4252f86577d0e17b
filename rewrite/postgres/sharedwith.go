package postgres

import (
	"errors"
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
)

// Parts of a WITH clause that write may name its queries, and so may the statement. These queries pass their rows'
// identities outwards to all of them, once: each says what it reads of them as of any query in FROM.

// A sharing is the queries of a WITH clause that its parts name.
type sharing struct {
	common []*common
	edits  []edit
	// columns is how many names of columns the queries took; looked are the queries, and stars the stars, of all that
	// was looked into, so that no column which they got shows there.
	columns int
	looked  map[*ast.SelectStmt]bool
	stars   map[*ast.ColumnRef]bool
	// inTheWay are those that must stay as they are.
	inTheWay map[string]bool
}

// shareQueries has the queries of the WITH clause that parts name show what they read.
func (pl *planner) shareQueries(tree ast.Stmt, with *ast.WithClause, p placer) {
	pl.shares.looked, pl.shares.stars = make(map[*ast.SelectStmt]bool), make(map[*ast.ColumnRef]bool)
	names := pl.namedByParts(tree, with)
	if len(names) == 0 || with.Recursive {
		return
	}
	barred := pl.barredFromSharing(with)
	for {
		q := &planner{rewriter: pl.rewriter, session: pl.session, st: pl.st, masked: pl.masked,
			plan: &Plan{Statement: rewrite.Statement{Kind: history.Select, Observation: history.Exact}}}
		r := newReading(q, &ast.SelectStmt{}, barred)
		r.stmt, r.places.queries, r.forParts = tree, p.queries, true
		err := pl.shareBy(r, with, names)
		var b *queryRefusal
		switch {
		case errors.As(err, &b) && len(barred) < maxBars:
			barred[b.node] = b.reason
			continue
		case err != nil:
			pl.shares.common, pl.shares.edits = nil, nil
		}
		return
	}
}

// barredFromSharing are the queries that are known to be in the way.
func (pl *planner) barredFromSharing(with *ast.WithClause) map[ast.Node]history.Reason {
	barred := make(map[ast.Node]history.Reason)
	for _, c := range nodes(with.Ctes) {
		if def, ok := c.(*ast.CommonTableExpr); ok && pl.shares.inTheWay[def.Ctename] {
			barred[def] = history.ReasonWith
		}
	}
	return barred
}

// namedByParts returns the names of those queries that parts of the clause name, or a statement that writes.
func (pl *planner) namedByParts(tree ast.Stmt, with *ast.WithClause) (names []string) {
	_, reads := tree.(*ast.SelectStmt)
	for _, c := range nodes(with.Ctes) {
		def, ok := c.(*ast.CommonTableExpr)
		if !ok || kindOf(def.Ctequery) != history.Other || pl.shares.inTheWay[def.Ctename] {
			continue
		}
		byPart := slices.ContainsFunc(nodes(with.Ctes), func(c ast.Node) bool {
			part, ok := c.(*ast.CommonTableExpr)
			return ok && kindOf(part.Ctequery) != history.Other && mentions(part.Ctequery, def.Ctename) > 0
		})
		if byPart || !reads && mentions(tree, def.Ctename) > 0 {
			names = append(names, def.Ctename)
		}
	}
	return names
}

// shareBy is one attempt.
func (pl *planner) shareBy(r *reading, with *ast.WithClause, names []string) error {
	sc := &scope{}
	for _, c := range nodes(with.Ctes) {
		def, ok := c.(*ast.CommonTableExpr)
		if !ok {
			return refusal(history.ReasonUnparsable)
		}
		if kindOf(def.Ctequery) != history.Other {
			r.silent = append(r.silent, def.Ctename)
			continue
		}
		sc.common = append(sc.common, &common{def: def, once: mentions(r.stmt, def.Ctename) == 1,
			sc: &scope{common: slices.Clone(sc.common)}})
	}
	w := &walker{reading: r, sc: sc, filters: true, joined: true, around: &ast.SelectStmt{}}
	for _, name := range names {
		w.rels = nil
		if err := w.common(sc.find(name), &ast.RangeVar{RelName: name}, false); err != nil {
			return err
		}
		r.wide = slices.DeleteFunc(r.wide, func(n wideName) bool { return n.relation == w.rels[0] }) // named by nobody
	}
	clear(r.uses) // who takes all of their columns is found when all is looked into
	if err := r.checkNames(); err != nil {
		return err
	}
	for _, c := range sc.common {
		if c.known && r.barred[c.def].IsZero() && len(c.shows) > 0 {
			pl.shares.common = append(pl.shares.common, c)
		}
	}
	if !r.unseen.IsZero() {
		pl.downgrade(r.unseen)
	}
	for _, change := range r.changes {
		change()
	}
	pl.shares.edits, pl.shares.columns = r.edits, r.columns
	pl.shares.saw(r)
	return nil
}

// saw takes note of what a reading looked into.
func (s *sharing) saw(r *reading) {
	for n := range r.known {
		s.looked[n] = true
	}
	for n := range r.stars {
		s.stars[n] = true
	}
}

// sharedBy returns the query that a definition of the WITH clause is; nil where it is not shared.
func (pl *planner) sharedBy(def ast.Node) *common {
	if pl.shares == nil {
		return nil
	}
	if i := slices.IndexFunc(pl.shares.common, func(c *common) bool { return ast.Node(c.def) == def }); i >= 0 {
		return pl.shares.common[i]
	}
	return nil
}

// mayBar reports whether a query may stay as it is for one statement alone. A shared one may not.
func (pl *planner) mayBar(node ast.Node) bool {
	c := pl.sharedBy(node)
	if c != nil {
		pl.shares.inTheWay[c.def.Ctename] = true
	}
	return c == nil
}

// seenByPart is the scope of the queries that a part sees.
func (pl *planner) seenByPart() *scope {
	if pl.shares == nil {
		return nil
	}
	sc := &scope{}
	for _, c := range pl.shares.common {
		if slices.Contains(pl.ctes, c.def.Ctename) {
			sc.common = append(sc.common, c)
		}
	}
	return sc
}

// shown takes note of the queries that something might show all columns of, which was not looked into.
func (s *sharing) shown(roots ...ast.Node) {
	for _, c := range s.common {
		refs := map[string]bool{c.def.Ctename: true}
		pgtree.Each(func(n ast.Node) bool {
			if v, ok := n.(*ast.RangeVar); ok && v.RelName == c.def.Ctename && v.Alias != nil {
				refs[v.Alias.AliasName] = true
			}
			return true
		}, roots...)
		whole := pgtree.Walk(func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectStmt:
				if !s.looked[n] && takesAll(n) && mentionsIn(n.FromClause, c.def.Ctename) {
					s.inTheWay[c.def.Ctename] = true
				}
			case *ast.ColumnRef:
				names := fields(n)
				if !s.stars[n] && len(names) <= 2 && refs[names[0]] &&
					(len(names) == 1 || names[1] == "*" ||
						ofRecords[names[1]] && !c.as.has(names[1])) {
					s.inTheWay[c.def.Ctename] = true
				}
			}
			return true
		}, roots...)
		if !whole {
			s.inTheWay[c.def.Ctename] = true
		}
	}
}
