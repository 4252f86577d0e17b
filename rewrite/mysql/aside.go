package mysql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// UNION compares whole rows, so no column may tell from which row of a table one of the result came. Rows may: what the
// arms read stands in rows of isotap's own behind the client's, which the client does not see (ADR 62). Each arm stands
// a second time behind UNION ALL, with the identities behind its columns. It has the types of the arm that it repeats,
// so those of the result stay. In the client's own arms there is NULL in the place of the identities: in all rows the
// same, it leaves duplicates what they are.

const (
	// MaxAside is how many rows of one arm may be shown behind the client's.
	MaxAside = 1000
	// maxAsideArms is how many arms a set operation has at most whose rows are shown so.
	maxAsideArms = 8
	// maxAsideColumns is how many columns they take at most.
	maxAsideColumns = 32
)

// aside has a set operation that removes duplicates show behind its rows what it read. It reports whether it does;
// otherwise the planner is as it was.
func (pl *planner) aside(n *ast.SetOprStmt, arms []arm, operators []int) bool {
	end, ok := pl.endOfArms(n, arms)
	if !ok || !pl.unites(operators) || !pl.readsArmsAgain(arms) {
		return false
	}
	c := &planner{rewriter: pl.rewriter, session: pl.session, st: pl.st, again: true,
		plan: &Plan{Statement: rewrite.Statement{Kind: history.Select, Observation: history.Exact}}}
	shown := slices.Clone(arms)
	shown[len(shown)-1].to = end
	for i := range shown {
		if c.openArm(&shown[i], i) != nil {
			return false
		}
	}
	for _, i := range operators {
		c.unionAll(i)
	}
	if c.armRows(shown) != nil || len(c.plan.Result.Sources) == 0 || c.plan.Observation != history.Exact {
		return false
	}
	for i := range shown {
		c.closeArm(&shown[i])
	}
	columns := 1 + c.plan.HiddenColumns()
	if columns > maxAsideColumns {
		return false
	}
	padding, err := pl.padArms(arms, columns)
	if err != nil {
		return false
	}
	pos, gap := pl.after(end - 1)
	pl.edits = append(pl.edits, padding...)
	pl.insertAt(pos, text(" UNION ALL "+c.edited(pl.st.Tokens[0].Start, pos)+gap))
	pl.plan.Result.Reply = rewrite.Trimmed
	pl.plan.Result.Sources = append([]Source{{Aside: true, Limit: MaxAside}}, c.plan.Result.Sources...)
	pl.plan.Upstream.Repeats, pl.literal = true, true // the copies hold literals
	return true
}

// unites reports whether the operators are UNION alone. Behind INTERSECT and EXCEPT MariaDB's rows came in another
// order, and MySQL no longer said that a column is never NULL.
func (pl *planner) unites(operators []int) bool {
	return !slices.ContainsFunc(operators, func(i int) bool { return !pl.st.is(i, "UNION") })
}

// endOfArms returns the token behind the last arm, before the ORDER BY of the whole. It reports whether more rows leave
// the order of the others as it is: that is so where no two rows are equal by all that they are ordered by.
func (pl *planner) endOfArms(n *ast.SetOprStmt, arms []arm) (end int, ok bool) {
	last := arms[len(arms)-1]
	if pl.st.find(0, len(pl.st.Tokens), -1, "LIMIT", "FETCH", "OFFSET") >= 0 {
		return 0, false // it would count isotap's rows
	}
	if n.OrderBy == nil {
		return last.to, true
	}
	fields := arms[0].node.Fields.Fields
	positions := make(map[int]bool)
	for _, item := range n.OrderBy.Items {
		p, is := item.Expr.(*ast.PositionExpr)
		if !is || p.N > len(fields) {
			return 0, false
		}
		positions[p.N] = true
	}
	duplicates := slices.ContainsFunc(arms[1:], func(a arm) bool { return a.all })
	stars := slices.ContainsFunc(fields, func(f *ast.SelectField) bool { return f.WildCard != nil })
	end = pl.st.find(last.from, last.to, 0, "ORDER")
	return end, end > last.from && !duplicates && !stars && len(positions) == len(fields)
}

// readsArmsAgain reports whether each arm can be read a second time in the statement, without another warning.
func (pl *planner) readsArmsAgain(arms []arm) bool {
	st := pl.st
	if pl.session.Dialect == TiDB || pl.plan.Locking != history.NoLock || len(arms) > maxAsideArms || !pl.repeatable() ||
		slices.ContainsFunc(st.Tokens, func(t mysqltoken.Token) bool {
			return t.Kind == mysqltoken.Placeholder || t.Kind == mysqltoken.Variable
		}) {
		return false
	}
	return !slices.ContainsFunc(arms, func(a arm) bool { return !pl.readsArmAgain(a.node) })
}

func (pl *planner) readsArmAgain(n *ast.SelectStmt) bool {
	// Beside NULL, MySQL reads SELECT DISTINCT by another index, in another order.
	if !pl.readsAgain(n) || n.Distinct || n.Kind != ast.SelectStmtKindSelect || n.LockInfo != nil || n.GroupBy != nil ||
		n.Having != nil || n.OrderBy != nil || len(n.WindowSpecs) > 0 {
		return false
	}
	var srcs sources
	if n.From != nil {
		if merges(n.From.TableRefs) {
			return false
		}
		srcs = flatten(n.From.TableRefs)
	}
	for _, s := range srcs {
		base, ok := s.node.Source.(*ast.TableName)
		if !ok || !plainTable(base) {
			return false
		}
	}
	if pl.resolveBase(srcs) != nil {
		return false
	}
	l := listener{srcs: srcs, inner: pl.baseTable}
	var all []ast.ExprNode
	if n.From != nil {
		ons(n.From.TableRefs, &all)
	}
	if n.Where != nil {
		all = append(all, n.Where)
	}
	return !slices.ContainsFunc(all, func(e ast.ExprNode) bool { return !l.truth(e) }) &&
		!slices.ContainsFunc(n.Fields.Fields, func(f *ast.SelectField) bool {
			return f.Expr != nil && l.kind(f.Expr) == noisy
		})
}

// openArm has an arm say with each of its rows which one it is: a letter, before the identities.
func (pl *planner) openArm(a *arm, number int) error {
	st := pl.st
	list, err := (&planner{st: st.part(a.from, a.to)}).selectList(a.node)
	if err != nil {
		return err
	}
	if st.mark(a.from, "(") && (st.mark(a.from+1, "(") || st.group(a.from) != a.to-1) {
		return refusal(history.ReasonUnion)
	}
	if !st.mark(a.from, "(") {
		pl.insertAt(st.Tokens[a.from].Start, text("("))
	}
	pos, gap := pl.after(a.from + list[len(list)-1].last)
	pl.insertAt(pos, text(", _binary'"+string(rune('a'+number))+"'"+gap))
	return nil
}

// closeArm has an arm show so many rows at most.
func (pl *planner) closeArm(a *arm) {
	limit := " LIMIT " + strconv.Itoa(MaxAside+1)
	if pl.st.mark(a.from, "(") {
		pl.insertAt(pl.st.Tokens[a.to-1].Start, text(limit))
		return
	}
	pos, gap := pl.after(a.to - 1)
	pl.insertAt(pos, text(limit+")"+gap))
}

// padArms puts so many NULLs behind the select list of each arm.
func (pl *planner) padArms(arms []arm, columns int) ([]edit, error) {
	c := &planner{}
	for _, a := range arms {
		c.st = pl.st.part(a.from, a.to)
		list, err := c.selectList(a.node)
		if err != nil {
			return nil, err
		}
		pos, gap := c.after(list[len(list)-1].last)
		c.insertAt(pos, text(strings.Repeat(", NULL", columns)+gap))
	}
	return c.edits, nil
}

// edited returns the text from start to end, with the edits in it.
func (pl *planner) edited(start, end int) string {
	slices.SortStableFunc(pl.edits, func(a, b edit) int { return a.start - b.start })
	var b strings.Builder
	for _, e := range pl.edits {
		b.WriteString(pl.st.SQL[start:e.start])
		for _, piece := range e.pieces {
			b.WriteString(piece.Text)
		}
		start = e.end
	}
	b.WriteString(pl.st.SQL[start:end])
	return b.String()
}
