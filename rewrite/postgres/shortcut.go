package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/guard"
	"github.com/isotap/isotap/internal/pgtree"
)

// The server may answer without looking at all rows, and then does not meet the errors that are in the others: a
// division by zero in a row that was never read. Identities would have it read them.

// ends returns the reason why identities would have the server read rows that it might not read for the block alone.
func (r *reading) ends(b *block, u *usage) history.Reason {
	plan := history.ReasonPlan
	limited := b.n.LimitCount != nil || b.n.LimitOffset != nil
	switch {
	case b.grouped && !u.aggregate && !groupsBy(b.n.GroupClause) && !r.inPlace(b.n):
		return plan // HAVING alone: there is one row, whatever the tables hold
	case b.n.GroupClause != nil || b.unique || !extremes(u) || b.beyondEnds():
	case b.looksUp(), r.mayFail(b.n.WhereClause, b.n.FromClause, argumentsOf(u)):
		return plan // the minimum may come from the end of an index
	case b.n.WhereClause == nil && len(b.rels) == 1 && b.rels[0].base != nil && b.rels[0].base.leads(u):
		return plan
	}
	switch {
	case !limited && !(b.unique && r.session.Version >= 16 && r.pinned(b)), !b.unique && !b.grouped:
	case b.looksUp(), r.mayFail(b.n.TargetList, b.n.FromClause, b.n.WhereClause, b.n.GroupClause):
		return plan
	}
	return history.Reason{}
}

// beyondEnds reports whether no end of an index can answer the block: it joins tables, or reads a query that groups.
func (b *block) beyondEnds() bool {
	stay := 0
	for _, rel := range b.rels {
		if rel.grouped() {
			return true
		}
		if rel.base != nil {
			stay++
		}
	}
	return stay > 1
}

// pinned reports whether DISTINCT may be of values that are the same in all rows, of which the server needs one, from
// 16 on: there is no column but those that a condition may fix.
func (r *reading) pinned(b *block) bool {
	conditions, err := r.inspect(append(mayFix(b.n.WhereClause, nil), b.n.FromClause)...)
	if err != nil {
		return true
	}
	fixed := make(map[string]bool)
	for name := range conditions.columns {
		fixed[name[strings.LastIndexByte(name, '.')+1:]] = true
	}
	return !slices.ContainsFunc(nodes(b.n.TargetList), func(item ast.Node) bool {
		t, ok := item.(*ast.ResTarget)
		if !ok {
			return false
		}
		ref, ok := bare(t.Val).(*ast.ColumnRef)
		if !ok {
			return false
		}
		names := fields(ref)
		return !fixed[names[len(names)-1]]
	})
}

// mayFix appends the parts of a condition that may give a column one value: no comparisons of other kinds.
func mayFix(condition ast.Node, parts []ast.Node) []ast.Node {
	if pgtree.Missing(condition) {
		return parts
	}
	switch n := bare(condition).(type) {
	case *ast.BoolExpr:
		if n.Boolop == ast.AND_EXPR {
			for _, part := range nodes(n.Args) {
				parts = mayFix(part, parts)
			}
			return parts
		}
	case *ast.A_Expr:
		if of := operatorOf(n); n.Kind == ast.AEXPR_OP && len(of) == 1 && slices.Contains([]string{"<", ">", "<=", ">=", "<>", "!="}, of[0]) {
			return parts
		}
	}
	return append(parts, condition)
}

// argumentsOf returns the arguments of the aggregates.
func argumentsOf(u *usage) *ast.NodeList {
	all := ast.NewNodeList()
	for _, n := range u.calls {
		all.Items = append(all.Items, nodes(n.Args)...)
		if n.AggFilter != nil {
			all.Append(n.AggFilter)
		}
	}
	return all
}

// groupsBy reports whether a GROUP BY clause has anything in it but empty sets.
func groupsBy(clause *ast.NodeList) bool {
	return slices.ContainsFunc(nodes(clause), func(item ast.Node) bool {
		set, ok := item.(*ast.GroupingSet)
		return !ok || groupsBy(set.Content)
	})
}

// removable takes the sights off the relations of a block that the server may leave out: of which nothing is used
// but in the condition of an outer join, where that may fail.
func (r *reading) removable(b *block) error {
	if r.copies {
		return nil // it has what the client's query leaves out
	}
	shown, err := r.inspect(b.n.TargetList, b.n.DistinctClause, b.n.WhereClause, b.n.GroupClause, b.n.HavingClause,
		b.n.WindowClause,
		b.n.SortClause)
	if err != nil {
		return err
	}
	fails := r.mayFail(b.n.FromClause)
	if r.failure() != never {
		if err = r.hideCovered(b); err == nil && outerJoin(b.n.FromClause) {
			fails = true
			_, shown, err = r.computed(b)
		}
		if err != nil {
			return err
		}
	}
	for _, rel := range b.rels {
		if !fails && !rel.looksUp() && !rel.lifts() || len(rel.sights) == 0 || !rel.sights[0].nullable || rel.used(shown) {
			continue
		}
		if rel.base == nil {
			return &queryRefusal{rel.node, history.ReasonPlan}
		}
		r.markUnseen(history.ReasonPlan)
		rel.sights = nil
	}
	return nil
}

// outerJoin reports whether a FROM clause has one, but for what queries in it have.
func outerJoin(from *ast.NodeList) (has bool) {
	pgtree.Walk(func(n ast.Node) bool {
		join, ok := n.(*ast.JoinExpr)
		has = has || ok && join.Jointype != ast.JOIN_INNER
		_, query := n.(*ast.SelectStmt)
		return !query && !has
	}, from)
	return has
}

// used reports whether one of the relation's columns surely occurs.
func (rel *relation) used(u *usage) bool {
	if u.columns["*"] || u.columns[rel.ref+".*"] || u.columns[rel.ref] {
		return true
	}
	return slices.ContainsFunc(rel.columnNames(), func(name string) bool { return u.columns[rel.ref+"."+name] })
}

// comparisons are operators of which it is known that they do not fail, for the types that have them by default; those
// of LIKE as far as their pattern goes.
var comparisons = []string{"=", "<>", "!=", "<", ">", "<=", ">=", "~~", "!~~", "~~*", "!~~*"}

// mayFail reports whether an expression may fail for the values of some rows.
func mayFail(parts ...ast.Node) (may bool) { return failing(true, parts...) }

// failing is as mayFail. Unless subqueries are to count, what stands in them does not.
func failing(subqueries bool, parts ...ast.Node) (may bool) {
	return (*planner)(nil).failing(subqueries, parts...)
}

// mayFail is as the function, of an expression of the statement.
func (pl *planner) mayFail(parts ...ast.Node) bool { return pl.failing(true, parts...) }

// failing is as the function, of an expression of the statement.
func (pl *planner) failing(subqueries bool, parts ...ast.Node) (may bool) {
	whole := pgtree.Walk(func(n ast.Node) bool {
		if sub, ok := n.(*ast.SubLink); ok {
			may = may || subqueries || !pgtree.Missing(sub.Testexpr) && pl.failing(true, sub.Testexpr)
			return false
		}
		fails, within := pl.failsItself(n)
		may = may || fails
		return within
	}, parts...)
	return may || !whole
}

// failsItself reports whether a call, a cast or an operation may fail for some values, and whether those within it are
// to be looked at.
func (pl *planner) failsItself(n ast.Node) (may, within bool) {
	switch n := n.(type) {
	case *ast.FuncCall:
		return !neverFails(n) && !pl.surely(n) && (pl == nil || pl.sums == nil || !pl.sums(n)), true
	case *ast.TypeCast:
		_, literal := bare(n.Arg).(*ast.A_Const)
		return !literal && !pl.namesType(n), true
	case *ast.A_Expr:
		if negativeNumber(n) {
			return false, false
		}
		switch n.Kind {
		case ast.AEXPR_BETWEEN, ast.AEXPR_NOT_BETWEEN, ast.AEXPR_BETWEEN_SYM, ast.AEXPR_NOT_BETWEEN_SYM:
			return false, true // comparisons
		}
		return patternMayFail(n) && (pl == nil || pl.patterns == nil || !pl.patterns(n)) ||
			slices.ContainsFunc(nodes(n.Name), func(part ast.Node) bool {
				name, ok := part.(*ast.String)
				return ok && !slices.Contains(comparisons, name.SVal)
			}), true
	}
	return false, true
}

// negativeNumber reports whether an expression is a minus sign before a number, which the server reads as one number.
func negativeNumber(n *ast.A_Expr) bool {
	number, ok := bare(n.Rexpr).(*ast.A_Const)
	if !ok || n.Kind != ast.AEXPR_OP || !pgtree.Missing(n.Lexpr) || !slices.Equal(operatorOf(n), []string{"-"}) {
		return false
	}
	switch number.Val.(type) {
	case *ast.Integer, *ast.Float:
		return true
	}
	return false
}

// operatorOf returns the parts of an expression's operator.
func operatorOf(n *ast.A_Expr) (parts []string) {
	for _, part := range nodes(n.Name) {
		if name, ok := part.(*ast.String); ok {
			parts = append(parts, name.SVal)
		}
	}
	return parts
}

// neverFails reports whether a call, whatever its arguments are, is of an aggregate that cannot fail.
func neverFails(n *ast.FuncCall) bool {
	names := nodes(n.Funcname)
	last, ok := names[len(names)-1].(*ast.String)
	return ok && len(names) == 1 && slices.Contains([]string{"count", "min", "max"}, last.SVal) && n.Over == nil
}

// An index that gives rows by their distance may have to compute it anew from the row. Where the index alone would
// answer the server cannot, and fails ("lossy distance functions are not supported in index-only scans"). With
// identities it goes to the rows, and the error that the client's own text meets would not come.

// byDistance reports whether an index alone might answer for a source in the order of an operator that the statement
// has. Of a query within others it is not known which columns are asked of it.
func (r *reading) byDistance(b *block, s *source, u *usage) bool {
	return slices.ContainsFunc(r.indexesOf(s.table), func(x Index) bool {
		return r.orders(x) && (b.n != r.tree || !u.columns[s.ref] && s.within(x, u))
	})
}

// indexesOf returns the indexes of a table and of those that belong to it.
func (pl *planner) indexesOf(t *Table) []Index {
	all := t.Indexes
	for _, leaf := range t.Leaves {
		schema, name, _ := strings.Cut(leaf, ".")
		if l := pl.rewriter.schema.Table(schema, name); l != nil && l != t {
			all = append(slices.Clip(all), l.Indexes...)
		}
	}
	return all
}

// orders reports whether the statement has an operator by which an index gives rows in order. One may be in a function
// of the database's own, which the server reads as if it stood there.
func (pl *planner) orders(x Index) bool {
	if len(x.Orders) == 0 {
		return false
	}
	for i := range pl.st.toks {
		if slices.ContainsFunc(x.Orders, func(o string) bool { return pl.st.sign(i, o) }) {
			return true
		}
		if name, ok := pl.st.ident(i); ok && pl.st.mark(i+1, "(") {
			if _, own := functions[name]; !own || pl.functions(name) != NoFunction {
				return true
			}
		}
	}
	return false
}

// At SERIALIZABLE a read conflicts with the writes to what its plan looked at: rows, pages of indexes, whole tables. A
// statement that shows identities must look at no more than the client's own would. The server plans both from the same
// conditions, so it finds the rows by the same paths, but where an index alone could answer, where an order is of use
// to make groups, and where it need not look at all (ADR 32).

// otherLocks returns the reason "plan" where identities could have the server take other predicate locks for a block.
func (r *reading) otherLocks(b *block, u *usage) (history.Reason, error) {
	plan := history.ReasonPlan
	limited := b.n.LimitCount != nil || b.n.LimitOffset != nil
	switch {
	case (b.grouped || b.unique) && limited:
		return plan, nil // it stops when it has enough groups, in the order of its plan
	case extremes(u) && !b.beyondEnds() && b.indexed(argumentsOf(u), false):
		return plan, nil
	case b.indexed(b.n.GroupClause, true), b.unique && b.indexed(b.n.TargetList, true):
		// Groups may come in an index's order, from all of it or, one by one, from a part.
		if b.n.WhereClause != nil || b.n != r.tree {
			return plan, nil
		}
		r.atOnce = r.session.Extended
	}
	if b.n.LockingClause != nil {
		return history.Reason{}, nil
	}
	computed, shown, err := r.computed(b)
	if err != nil {
		return history.Reason{}, err
	}
	for _, rel := range b.rels {
		switch {
		case len(rel.sights) == 0:
		case rel.sights[0].nullable && !rel.used(shown), rel.base != nil &&
			covered(rel.base, computed) && !b.readsAll(rel):
			return plan, nil
		}
	}
	return history.Reason{}, nil
}

// readsAll reports whether a block that groups reads all rows of a table, whatever its plan: nothing but outer joins
// come to it. It conflicts with every write to the table then. A scan locks the table; one of an index locks each page
// where an entry could come, and the rows or their pages.
func (b *block) readsAll(rel *relation) bool {
	n := b.n
	if !b.grouped || n.WhereClause != nil || n.HavingClause != nil || n.LimitCount != nil || n.LimitOffset != nil ||
		len(nodes(n.FromClause)) != 1 {
		return false
	}
	item := bare(n.FromClause.Items[0])
	for {
		join, ok := item.(*ast.JoinExpr)
		if !ok || join.Jointype != ast.JOIN_LEFT {
			return item == rel.node
		}
		item = bare(join.Larg)
	}
}

// indexed reports whether a part of the block may be of a column in an index of one of its tables, or as the first one.
// An index on an expression has no name for it.
func (b *block) indexed(part *ast.NodeList, first bool) bool {
	return slices.ContainsFunc(b.rels, func(rel *relation) bool {
		return rel.base != nil && slices.ContainsFunc(rel.base.table.Indexes, func(x Index) bool {
			columns := x.Columns
			if first {
				columns = columns[:min(1, len(columns))]
			}
			return slices.ContainsFunc(columns, func(c string) bool { return c == "" || b.mayName(part, rel.base, c) })
		})
	})
}

// mayName reports whether a list of expressions may hold a column of a table.
func (b *block) mayName(part *ast.NodeList, s *source, column string) (may bool) {
	whole := guard.Whole(func() {
		i := slices.IndexFunc(s.table.Columns, func(c Column) bool { return c.Name == column })
		for _, item := range nodes(part) {
			if c, ok := bare(item).(*ast.A_Const); ok { // a position, or a value
				if position, ok := c.Val.(*ast.Integer); ok && len(nodes(b.n.TargetList)) >= position.IVal &&
					position.IVal > 0 {
					item = b.n.TargetList.Items[position.IVal-1]
				}
			}
			pgtree.Each(func(n ast.Node) bool {
				if ref, ok := n.(*ast.ColumnRef); ok {
					names := fields(ref)
					last := names[len(names)-1]
					may = may || i < 0 || last == s.names[i] || last == "*" || b.aliased(last, s.names[i])
				}
				return true
			}, item)
		}
	})
	return may || !whole
}

// aliased reports whether a name is the select list's for something that may be of a column.
func (b *block) aliased(name, column string) bool {
	return slices.ContainsFunc(nodes(b.n.TargetList), func(item ast.Node) bool {
		t, ok := item.(*ast.ResTarget)
		return ok && t.Name == name && name != column
	})
}

// computed returns what the server surely computes of a block, and what of it beside joining. Of a query in a FROM
// clause these are the columns that are asked of it.
func (r *reading) computed(b *block) (all, shown *usage, err error) {
	n := b.n
	list := nodes(n.TargetList)
	switch {
	case r.inPlace(n):
		list = nodes(r.of.TargetList)
	case n != r.tree && !b.unique:
		list = r.askedOf(b)
	}
	parts := []ast.Node{ast.NewNodeList(list...), n.WhereClause, n.GroupClause, n.HavingClause, n.WindowClause,
		n.DistinctClause, n.SortClause}
	if shown, err = r.inspect(parts...); err == nil {
		all, err = r.inspect(append(parts, n.FromClause)...)
	}
	return all, shown, err
}

// otherPlan returns the reason "plan" where the server might answer a block without reading the rows, or with
// other indexes: identities would have it read more, in another order, and at SERIALIZABLE lock more (ADR 3).
func (r *reading) otherPlan(b *block, u *usage) (history.Reason, error) {
	plan := history.ReasonPlan
	if !r.rewriter.options.StrictPlans && r.plan.Session.Cursor == nil {
		return r.otherLocks(b, u)
	}
	switch {
	case b.n.GroupClause != nil, b.unique, extremes(u):
		return plan, nil // groups may come in an index's order, minimum and maximum from its ends
	case slices.ContainsFunc(b.rels, func(rel *relation) bool { return rel.base == nil && len(rel.sights) > 0 }):
		return plan, nil // of a query only those columns are computed that are asked of it
	case b.n.LockingClause != nil:
		return history.Reason{}, nil // for these the server goes to the tables in any case
	}
	shown, err := r.inspect(b.n.TargetList, b.n.DistinctClause, b.n.WhereClause, b.n.HavingClause, b.n.WindowClause,
		b.n.SortClause)
	if err != nil {
		return history.Reason{}, err
	}
	for _, rel := range b.rels {
		if len(rel.sights) == 0 {
			continue
		}
		if rel.sights[0].nullable && !rel.used(shown) || covered(rel.base, u) {
			return plan, nil
		}
	}
	return history.Reason{}, nil
}

// maxTargets is how many columns a result may have (MaxTupleAttributeNumber), less two that a SELECT around it adds.
const maxTargets = 1664 - 2

// covered reports whether an index alone might answer for a table.
func covered(s *source, u *usage) bool {
	if u.columns[s.ref] { // the whole row
		return false
	}
	return slices.ContainsFunc(s.table.Indexes, func(x Index) bool { return s.within(x, u) })
}

// within reports whether an index holds all columns of the source that the statement uses.
func (s *source) within(x Index, u *usage) bool {
	all := u.columns["*"] || u.columns[s.ref+".*"]
	for i, c := range s.table.Columns {
		used := all || u.columns[s.names[i]] || u.columns[s.ref+"."+s.names[i]]
		if used && !slices.Contains(x.Columns, c.Name) {
			return false
		}
	}
	return true
}
