package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
)

// enterWith takes a WITH clause into account, until the function that it gives is called.
func (pl *planner) enterWith(clause *ast.WithClause) (leave func()) {
	before := pl.nesting.with
	if clause != nil {
		w := &withScope{up: before}
		for _, def := range clause.CTEs {
			// A query sees the expressions before its own, or, if they may be recursive, all of them.
			sees := w
			if !clause.IsRecursive {
				sees = &withScope{up: before, ctes: slices.Clone(w.ctes)}
			}
			w.ctes = append(w.ctes, &cte{def: def, scope: sees})
		}
		pl.nesting.with = w
	}
	return func() { pl.nesting.with = before }
}

// find returns the expression of a name, innermost first; uncertain says that servers may differ about
// whether one has it.
func (w *withScope) find(name string) (found *cte, uncertain bool) {
	for ; w != nil; w = w.up {
		for _, c := range w.ctes {
			switch {
			case c.def.Name.O == name:
				return c, false
			case strings.EqualFold(c.def.Name.O, name):
				return nil, true
			}
		}
	}
	return nil, false
}

// common has a common table expression show its identities, and returns why it does not show all.
func (pl *planner) common(c *cte) ([]identity, []carried, history.Reason) {
	if c.known && pl.stopCarrying(c.carries) {
		c.reason = history.ReasonSubquery // its rows come by several names
	}
	if !c.known {
		besides, parameters := pl.besides, pl.parameters
		c.known, c.reason = true, history.ReasonRecursive // as long as its own query is being looked at
		outside := pl.nesting.with
		pl.nesting.with = c.scope
		if len(c.def.ColNameList) > 0 || !pl.namedOnce(c.def) {
			pl.nesting.shown = pl.nesting.joins.someColumns()
		}
		c.edits, _, _ = pl.apart(func() error {
			c.shows, c.carries, c.reason = pl.derived(c.def.Query.Query)
			if len(c.shows) > 0 && len(c.def.ColNameList) > 0 {
				pl.nameColumns(c)
			}
			return nil
		})
		pl.nesting.with = outside
		if len(c.shows) > 0 {
			pl.nesting.ctes = append(pl.nesting.ctes, c)
		} else {
			pl.besides, pl.parameters = besides, parameters
		}
	}
	return c.shows, c.carries, c.reason
}

// nameColumns adds the identity columns to the column list of a common table expression, which it finds
// before the parenthesis of its query. Where a star holds some of them their place is not the end.
func (pl *planner) nameColumns(c *cte) {
	query := c.def.Query.Query.(*ast.SelectStmt)
	for _, f := range query.Fields.Fields {
		if f.WildCard != nil && !baseTables(query) {
			c.shows, c.reason, pl.edits = nil, history.ReasonDerivedStar, nil
			return
		}
	}
	st := pl.st
	first := st.tokenAt(query.Fields.Fields[0].Offset)
	i := first
	for i > 0 && (st.Tokens[i].Depth >= st.Tokens[first].Depth || !st.is(i, "AS")) {
		i--
	}
	if i < 1 || !st.mark(i-1, ")") {
		c.shows, c.reason, pl.edits = nil, history.ReasonWith, nil
		return
	}
	var names strings.Builder
	for _, s := range c.shows {
		for _, name := range [...]string{s.rowID, s.wList} {
			if name != "" {
				names.WriteString(", " + name)
			}
		}
	}
	for _, s := range c.carries {
		names.WriteString(", " + s.name)
	}
	pl.insertAt(st.Tokens[i-1].Start, text(names.String()))
}

// baseTables reports whether a SELECT's FROM clause holds tables only, of which stars show no identities.
func baseTables(n *ast.SelectStmt) bool {
	return !slices.ContainsFunc(flatten(n.From.TableRefs), func(s *source) bool {
		name, ok := s.node.Source.(*ast.TableName)
		return !ok || name.Schema.L == ""
	})
}

// changeCommon puts the common table expressions that are used into their new form. It refuses where a
// query that isotap does not look into would see their new columns.
func (pl *planner) changeCommon(root ast.Node) error {
	if len(pl.nesting.ctes) == 0 {
		return nil
	}
	v := strangers{nesting: &pl.nesting}
	root.Accept(&v)
	if v.harmed {
		return refusal(history.ReasonWith)
	}
	for _, c := range pl.nesting.ctes {
		pl.edits = append(pl.edits, c.edits...)
	}
	return nil
}

// strangers looks for queries that are not observed and take all columns of a common table expression.
type strangers struct {
	nesting *nesting
	harmed  bool
}

// Enter implements ast.Visitor.
func (v *strangers) Enter(n ast.Node) (ast.Node, bool) {
	s, ok := n.(*ast.SelectStmt)
	if !ok || slices.Contains(v.nesting.observed, s) || s.From == nil {
		return n, false
	}
	all := s.Kind != ast.SelectStmtKindSelect || merges(s.From.TableRefs) ||
		slices.ContainsFunc(s.Fields.Fields, func(f *ast.SelectField) bool { return f.WildCard != nil })
	if !all {
		return n, false
	}
	for _, source := range flatten(s.From.TableRefs) {
		name, ok := source.node.Source.(*ast.TableName)
		v.harmed = v.harmed || ok && name.Schema.L == "" &&
			slices.ContainsFunc(v.nesting.ctes, func(c *cte) bool { return c.def.Name.L == name.Name.L })
	}
	return n, false
}

// Leave implements ast.Visitor.
func (v *strangers) Leave(n ast.Node) (ast.Node, bool) { return n, true }
