package postgres

import (
	"reflect"
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// learn takes in a condition that rows of some tables must fulfill to matter.
func (c *conditions) learn(s *selection, condition ast.Node, about []*chosen) {
	if pgtree.Missing(condition) || len(about) == 0 {
		return
	}
	condition = bare(condition)
	if and, ok := condition.(*ast.BoolExpr); ok && and.Boolop == ast.AND_EXPR {
		for _, part := range nodes(and.Args) {
			c.learn(s, part, about)
		}
		return
	}
	if e, ok := condition.(*ast.A_Expr); ok && e.Kind == ast.AEXPR_OP && isString(nodes(e.Name), "=") {
		a, isColumn := s.resolve(e.Lexpr)
		b, areColumns := s.resolve(e.Rexpr)
		if isColumn && areColumns {
			s.equate(a, b, about)
		}
	}
	f := fact{node: condition, about: about}
	single, known := true, true
	pgtree.Each(func(n ast.Node) bool {
		ref, ok := n.(*ast.ColumnRef)
		if !ok {
			return true
		}
		column, ok := s.resolve(ref)
		known = known && ok && (f.of == nil || f.of == column.of) && slices.Contains(s.tables, column.of)
		single = single && (f.of == nil || f.only == column.name)
		f.of, f.only = column.of, column.name
		return true
	}, condition)
	var settled bool
	f.asked, settled = c.settledByRow(condition)
	if calls, _ := withins(condition); calls > 0 { // of a wide condition it matters where it does not hold, too
		settled = false
	}
	if !known || f.of == nil || f.of.optional && !rejectsNull(condition) || !settled {
		return
	}
	if !single {
		f.only = ""
	}
	s.facts = append(s.facts, f)
}

// An optionalJoin is a join with an optional side.
type optionalJoin struct {
	optional []*chosen // the tables on it
	full     bool      // both sides are
	// What its condition says are the facts and equalities of the block from these on, and up to these.
	facts, equal       int
	factsEnd, equalEnd int
}

// simplify makes inner joins of outer ones that another condition wants a row of their optional side for, as the server
// does: what their own conditions say holds for all rows then.
func (s *selection) simplify() {
	for {
		i := slices.IndexFunc(s.outer, func(j optionalJoin) bool { return !j.full && slices.ContainsFunc(j.optional, s.requires) })
		if i < 0 {
			break
		}
		j := s.outer[i]
		for i := j.facts; i < j.factsEnd; i++ {
			s.facts[i].about = s.tables
		}
		for i := j.equal; i < j.equalEnd; i++ {
			s.equal[i].about = s.tables
		}
		s.outer = slices.Delete(s.outer, i, i+1)
	}
	for _, t := range s.tables {
		t.optional = slices.ContainsFunc(s.outer, func(j optionalJoin) bool { return slices.Contains(j.optional, t) })
	}
}

// requires reports whether a condition on all rows of a block is true of no NULL of a table.
func (s *selection) requires(t *chosen) bool {
	return slices.ContainsFunc(s.facts, func(f fact) bool { return f.of == t && rejectsNull(f.node) && s.holds(f.about) }) ||
		slices.ContainsFunc(s.equal, func(e equality) bool { return (e.a.of == t || e.b.of == t) && s.holds(e.about) })
}

// holds reports whether what is said of rows of some tables is true of all rows of the block: it is not where these are
// optional.
func (s *selection) holds(about []*chosen) bool {
	return !slices.ContainsFunc(s.outer, func(j optionalJoin) bool {
		return !slices.ContainsFunc(about, func(t *chosen) bool { return !slices.Contains(j.optional, t) })
	})
}

// rejectsNull reports whether a condition does not hold where a column in it is NULL.
func rejectsNull(condition ast.Node) bool {
	e, ok := condition.(*ast.A_Expr)
	if !ok {
		return false
	}
	switch e.Kind {
	case ast.AEXPR_OP, ast.AEXPR_OP_ANY, ast.AEXPR_IN, ast.AEXPR_LIKE, ast.AEXPR_ILIKE, ast.AEXPR_BETWEEN:
		_, column := bare(e.Lexpr).(*ast.ColumnRef)
		return column
	}
	return false
}

// equate takes in that two columns are equal.
func (s *selection) equate(a, b chosenColumn, about []*chosen) {
	if a.of != nil && b.of != nil && len(about) > 0 {
		s.equal = append(s.equal, equality{a, b, about})
	}
}

// resolve returns the column that an expression is, of the block or of one around. It reports whether it is one of a
// table.
func (s *selection) resolve(n ast.Node) (chosenColumn, bool) {
	if pgtree.Missing(n) {
		return chosenColumn{}, false
	}
	ref, ok := bare(n).(*ast.ColumnRef)
	if !ok {
		return chosenColumn{}, false
	}
	names := fields(ref)
	name := names[len(names)-1]
	if len(names) > 2 || name == "*" {
		return chosenColumn{}, false
	}
	for ; s != nil; s = s.up {
		for _, t := range s.tables {
			if t.has(name) && (len(names) == 1 || names[0] == t.ref) {
				return chosenColumn{t, name}, true
			}
		}
		if len(s.unknown) > 0 && (len(names) == 1 || slices.Contains(s.unknown, names[0])) {
			break // it may be a column of these
		}
	}
	return chosenColumn{}, false
}

// tellsOf reports whether what holds for rows of some tables that matter, and is about others, tells of the rows of t:
// these matter only beside such rows.
func tellsOf(t *chosen, about []*chosen, of ...*chosen) bool {
	return slices.Contains(about, t) || !slices.ContainsFunc(of, func(other *chosen) bool {
		return other.optional || !slices.Contains(about, other)
	})
}

// choosesOf adds the condition for one table of a block.
func (c *conditions) choosesOf(s *selection, t *chosen) {
	plain := slices.EqualFunc(t.names, t.table.Columns, func(name string, c Column) bool { return name == c.Name })
	if !plain || !c.returnsImages(t.table) || len(c.found) == maxConditions {
		return
	}
	parts, asking := c.partsOf(s, t)
	for _, all := range [][]string{append(slices.Clone(parts), asking...), parts} {
		if len(all) == 0 {
			return
		}
		text := strings.Join(all, " AND ")
		toks, _ := pgtoken.Scan(nil, text, c.session.Backslashes)
		p := rewrite.Predicate{Table: t.table.Name, Of: t.table.Spelled, As: quoted(t.ref), Limit: s.limit, Wide: true,
			Instead: len(all) < len(parts)+len(asking)}
		p.Where, p.Params = (&statement{text: text, toks: toks}).cutAtParams(0, len(toks))
		if s.order.of == t {
			p.Order = s.order.keys
		}
		if c.found = append(c.found, p); len(asking) == 0 {
			return
		}
	}
}

// partsOf returns the texts of what is known of a table's rows that matter to a block: what hangs on them alone, and
// what calls one of the askingFunctions.
func (c *conditions) partsOf(s *selection, t *chosen) (parts, asking []string) {
	add := func(n ast.Node, asked int) {
		text, ok := c.spelled(n, asked)
		switch {
		case !ok || slices.Contains(parts, text) || slices.Contains(asking, text):
		case asked > 0:
			asking = append(asking, text)
		default:
			parts = append(parts, text)
		}
	}
	for _, f := range s.facts {
		if f.of == t && slices.Contains(f.about, t) {
			add(f.node, f.asked)
		}
	}
	for _, name := range t.names {
		for _, same := range s.equalTo(chosenColumn{t, name}) {
			for _, f := range s.factsOf(t, same) {
				if n, ok := c.aboutColumn(f, t.ref, name); ok {
					add(n, f.asked)
				}
			}
		}
	}
	return parts, asking
}

// equalTo returns the columns of other tables that are surely equal to one, in the rows of its table that matter, and
// have its type.
func (s *selection) equalTo(column chosenColumn) []chosenColumn {
	all := []chosenColumn{column}
	for i := 0; i < len(all); i++ {
		for at := s; at != nil; at = at.up {
			for _, e := range at.equal {
				other := e.b
				if all[i] == e.b {
					other = e.a
				} else if all[i] != e.a {
					continue
				}
				if !slices.Contains(all, other) && other.of.typeOf(other.name) == column.of.typeOf(column.name) &&
					tellsOf(column.of, e.about, e.a.of, e.b.of) {
					all = append(all, other)
				}
			}
		}
	}
	return slices.DeleteFunc(all[1:], func(c chosenColumn) bool { return c.of == column.of })
}

// typeOf returns what decides whether equal values of two columns mean the same.
func (t *chosen) typeOf(name string) [2]string {
	if c := t.table.Column(name); c != nil {
		return [2]string{c.Type, c.Collation}
	}
	return [2]string{}
}

// factsOf returns what is known of a column alone that tells of the rows of t.
func (s *selection) factsOf(t *chosen, column chosenColumn) (facts []fact) {
	for at := s; at != nil; at = at.up {
		for _, f := range at.facts {
			if f.of == column.of && f.only == column.name && tellsOf(t, f.about, f.of) {
				facts = append(facts, f)
			}
		}
	}
	return facts
}

// aboutColumn returns a fact about a column as one about another that is equal to it.
func (c *conditions) aboutColumn(f fact, ref, name string) (ast.Node, bool) {
	n, err := readCondition(f.node.SqlString())
	if err != nil || !reflect.DeepEqual(n, f.node) {
		return nil, false
	}
	pgtree.Each(func(n ast.Node) bool {
		if column, ok := n.(*ast.ColumnRef); ok {
			column.Fields = ast.NewNodeList(ast.NewString(ref), ast.NewString(name))
		}
		return true
	}, n)
	return n, true
}

// spelled returns the text of a condition, if the grammar reads it as what it is, none of its literals stands for a
// moment that is another one later, and it calls the askingFunctions as often as it is said to.
func (c *conditions) spelled(n ast.Node, asked int) (string, bool) {
	text := n.SqlString()
	again, err := readCondition(text)
	if err != nil || !reflect.DeepEqual(again, n) {
		return "", false
	}
	toks, _ := pgtoken.Scan(nil, text, c.session.Backslashes)
	if st := (&statement{text: text, toks: toks}); st.tellsTime(0, len(toks)) || st.countAsks(0, len(toks)) != asked {
		return "", false
	}
	if or, ok := n.(*ast.BoolExpr); ok && or.Boolop == ast.OR_EXPR {
		text = "(" + text + ")"
	}
	return text, true
}

// readCondition reads the text of a condition.
func readCondition(text string) (ast.Node, error) {
	tree, err := parse("SELECT WHERE " + text)
	if err != nil {
		return nil, err
	}
	return tree.(*ast.SelectStmt).WhereClause, nil
}
