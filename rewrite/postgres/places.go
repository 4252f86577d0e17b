package postgres

import (
	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
)

// A querySpan is where one SELECT, VALUES, TABLE or set operation stands in the text: the tokens [from, to), without
// parentheses around it and its WITH clause. What follows the last query of a set operation may be the operation's own.
type querySpan struct {
	from, to int
	listEnd  int // the last token of a SELECT's list, or of what stands before an empty one
	operator int // the token between the sides of a set operation
}

// A placer finds queries of the tree in the text. It goes by the tokens alone: what it finds is proven by
// the changed statement's tree (see [reading.prove]).
type placer struct {
	*statement
	queries map[*ast.SelectStmt]querySpan
	// common are the expressions of the last WITH clause that was read.
	common []commonPlace
	steps  int
}

// maxOperators is how many set operators of one statement are looked at: the text is read anew for each.
const maxOperators = 500

var errUnplaced = refusal(history.ReasonUnparsable)

// place finds a query that is the tokens [from, to), and those in its WITH and FROM clauses.
func (p *placer) place(n *ast.SelectStmt, from, to int) error {
	for {
		switch {
		case from >= to:
			return errUnplaced
		case p.is(from, "WITH"):
			after, err := p.with(n.WithClause, from, to)
			if err != nil {
				return err
			}
			from = after
			continue
		case p.mark(from, "("):
			closing := p.closing(from)
			if closing < 0 || closing >= to {
				return errUnplaced
			}
			if p.operator(closing+1, to) < 0 {
				from, to = from+1, closing // what follows the parenthesis belongs to the query in it
				continue
			}
		}
		break
	}
	if n.Op != ast.SETOP_NONE {
		return p.operands(n, from, to)
	}
	return p.simple(n, from, to)
}

// operator returns the set operator that binds least among those in [from, to) outside of parentheses, of
// several the last; -1 where there is none.
func (p *placer) operator(from, to int) int {
	weak, strong := -1, -1
	for i := from; i < to; i++ {
		if i = p.findIn(i, to, "UNION", "EXCEPT", "INTERSECT"); i < 0 {
			break
		}
		if p.is(i, "INTERSECT") {
			strong = i
		} else {
			weak = i
		}
	}
	if weak >= 0 {
		return weak
	}
	return strong
}

// findIn is as find, before token to.
func (p *placer) findIn(i, to int, keywords ...string) int {
	if i = p.find(i, keywords...); i >= to {
		return -1
	}
	return i
}

// operands places both sides of a set operation.
func (p *placer) operands(n *ast.SelectStmt, from, to int) error {
	if p.steps++; p.steps > maxOperators {
		return refusal(history.ReasonSize)
	}
	at := p.operator(from, to)
	if at < 0 || n.Larg == nil || n.Rarg == nil {
		return errUnplaced
	}
	p.queries[n] = querySpan{from: from, to: to, operator: at}
	if err := p.place(n.Larg, from, at); err != nil {
		return err
	}
	at++
	if p.is(at, "ALL", "DISTINCT") {
		at++
	}
	return p.place(n.Rarg, at, to)
}

// lastOperand returns the last token of a set operation's last query.
func (p *placer) lastOperand(at querySpan) int {
	i := at.operator + 1
	if p.is(i, "ALL", "DISTINCT") {
		i++
	}
	if p.mark(i, "(") {
		return p.closing(i)
	}
	if end := p.findIn(i, at.to, "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR"); end >= 0 {
		return end - 1
	}
	return at.to - 1
}

// with places the queries of a WITH clause at token i, and returns the token behind the clause.
func (p *placer) with(clause *ast.WithClause, i, to int) (int, error) {
	if clause == nil {
		return 0, errUnplaced
	}
	if i++; p.is(i, "RECURSIVE") {
		i++
	}
	var common []commonPlace
	defer func() { p.common = common }()
	for k, item := range nodes(clause.Ctes) {
		cte, ok := item.(*ast.CommonTableExpr)
		if !ok || cte.SearchClause != nil || cte.CycleClause != nil {
			return 0, refusal(history.ReasonWith)
		}
		if k > 0 {
			if !p.mark(i, ",") {
				return 0, errUnplaced
			}
			i++
		}
		name := i
		if i++; p.mark(i, "(") {
			i = p.closing(i) + 1
		}
		for p.is(i, "AS", "NOT", "MATERIALIZED") {
			i++
		}
		closing := p.closing(i)
		if !p.mark(i, "(") || closing < 0 || closing >= to {
			return 0, errUnplaced
		}
		if query, ok := cte.Ctequery.(*ast.SelectStmt); ok {
			if err := p.place(query, i+1, closing); err != nil {
				return 0, err
			}
		}
		common = append(common, commonPlace{name, i, closing})
		i = closing + 1
	}
	return i, nil
}

// simple places a query that is no set operation.
func (p *placer) simple(n *ast.SelectStmt, from, to int) error {
	at := querySpan{from: from, to: to, listEnd: from}
	if p.is(from, "TABLE", "VALUES") {
		p.queries[n] = at
		return nil
	}
	if !p.is(from, "SELECT") {
		return errUnplaced
	}
	next := p.clause(from+1, to)
	at.listEnd = next - 1
	p.queries[n] = at
	if !p.is(next, "FROM") || next >= to {
		return nil
	}
	var inner []*ast.RangeSubselect
	for _, item := range nodes(n.FromClause) {
		inner = queriesIn(item, inner)
	}
	rest, err := p.from(inner, next+1, p.clause(next+1, to))
	if err == nil && len(rest) > 0 {
		return errUnplaced
	}
	return err
}

// clause returns the first token from i on at which the next clause of a query begins; to where none does.
func (p *placer) clause(i, to int) int {
	for ; ; i++ {
		i = p.findIn(i, to, "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR",
			"INTO")
		switch {
		case i < 0:
			return to
		case p.is(i-1, "DISTINCT"), p.is(i-1, "WITHIN"), p.is(i-1, "ROWS"): // IS DISTINCT FROM, WITHIN GROUP, ROWS FROM
		default:
			return i
		}
	}
}

// from places the queries that stand in the place of tables in [i, to), and returns those that are left over.
func (p *placer) from(inner []*ast.RangeSubselect, i, to int) ([]*ast.RangeSubselect, error) {
	table := true // a table may stand here
	for ; i < to && len(inner) > 0; i++ {
		if !p.mark(i, "(") && !p.mark(i, "[") {
			table = p.mark(i, ",") || p.is(i, "JOIN") || table && p.is(i, "LATERAL")
			continue
		}
		closing := p.closing(i)
		if closing < 0 || closing > to {
			return nil, errUnplaced
		}
		var err error
		switch {
		case !table:
		case p.query(i+1, closing):
			err = p.place(inner[0].Subquery.(*ast.SelectStmt), i+1, closing)
			inner = inner[1:]
		default:
			inner, err = p.from(inner, i+1, closing)
		}
		if err != nil {
			return nil, err
		}
		i, table = closing, false
	}
	return inner, nil
}

// query reports whether the tokens in parentheses are a query rather than joined tables.
func (p *placer) query(i, to int) bool {
	for p.mark(i, "(") {
		closing := p.closing(i)
		if closing < 0 || closing >= to {
			return false
		}
		if closing+1 < to && !p.is(closing+1, "UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT", "OFFSET", "FETCH",
			"FOR") {
			return false
		}
		i, to = i+1, closing
	}
	return p.is(i, "SELECT", "WITH", "VALUES", "TABLE")
}

// queriesIn returns the queries that stand in the place of tables in an item of a FROM clause, in the order of
// the text.
func queriesIn(item ast.Node, found []*ast.RangeSubselect) []*ast.RangeSubselect {
	switch n := bare(item).(type) {
	case *ast.RangeSubselect:
		if _, ok := n.Subquery.(*ast.SelectStmt); ok {
			return append(found, n)
		}
	case *ast.JoinExpr:
		return queriesIn(n.Rarg, queriesIn(n.Larg, found))
	}
	return found
}
