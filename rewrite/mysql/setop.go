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

// An arm is one of the queries that a set operation combines: the tokens [from, to).
type arm struct {
	node     *ast.SelectStmt
	from, to int
	all      bool // all its rows are in the result: it is the first, or stands behind UNION ALL
}

// setOperation plans UNION, INTERSECT and EXCEPT. Where no duplicates are removed, the identities of
// all arms' tables stand behind each arm's columns; the others have a companion.
func (pl *planner) setOperation(n *ast.SetOprStmt) error {
	arms, operators := pl.arms(n)
	if arms == nil {
		return refusal(history.ReasonUnion)
	}
	if !keepsAll(arms) {
		if pl.collectRows(n, arms, operators) {
			return nil
		}
		pl.accompany(arms, operators)
		return refusal(history.ReasonUnion)
	}
	if pl.plan.Locking != history.NoLock {
		return refusal(history.ReasonUnion) // the clause is one arm's: the others read their snapshot
	}
	if n.OrderBy != nil {
		if positionAfter(n.OrderBy, len(arms[0].node.Fields.Fields)) {
			return refusal(history.ReasonOrderByPosition)
		}
		use := &usage{}
		n.OrderBy.Accept(use)
		pl.downgradeBy(use)
	}
	pl.united = true
	if err := pl.armRows(arms); err != nil {
		return err
	}
	if len(pl.plan.Result.Sources) == 0 {
		pl.plan.Observation = history.Nothing
		return nil
	}
	if pl.rewriter.options.StrictPlans && pl.plan.Upstream.MayHideLocks {
		return refusal(history.ReasonPlan)
	}
	return nil
}

// keepsAll reports whether every row of every arm is in the result.
func keepsAll(arms []arm) bool {
	return !slices.ContainsFunc(arms, func(a arm) bool { return a.node.Distinct || !a.all })
}

// arms finds the queries of a set operation in the text, and the first tokens of the operators between
// them. It finds none when a query is a set operation of its own.
func (pl *planner) arms(n *ast.SetOprStmt) (arms []arm, operators []int) {
	if n.With != nil || n.IsInBraces || n.SelectList == nil || n.SelectList.With != nil {
		return nil, nil
	}
	st, from := pl.st, 0
	for i := 0; i <= st.last()+1; i++ {
		atEnd := i == st.last()+1
		if !atEnd && (st.Tokens[i].Depth != 0 || !st.is(i, "UNION", "INTERSECT", "EXCEPT")) {
			continue
		}
		if len(arms) == len(n.SelectList.Selects) {
			return nil, nil
		}
		query, after := onlyQuery(n.SelectList.Selects[len(arms)])
		if query == nil {
			return nil, nil
		}
		arms = append(arms, arm{query, from, i, len(arms) == 0 || after != nil && *after == ast.UnionAll})
		if atEnd {
			break
		}
		operators = append(operators, i)
		if from = i + 1; st.is(from, "ALL", "DISTINCT") {
			from++
		}
	}
	if len(arms) != len(n.SelectList.Selects) {
		return nil, nil
	}
	return arms, operators
}

// onlyQuery returns the query that is an operand of a set operation, out of its parentheses, and the
// operator before it. It is nil when the operand is more than one query.
func onlyQuery(n ast.Node) (query *ast.SelectStmt, after *ast.SetOprType) {
	switch n := n.(type) {
	case *ast.SelectStmt:
		query, after = n, n.AfterSetOperator
	case *ast.SetOprSelectList:
		if len(n.Selects) != 1 || n.With != nil || n.OrderBy != nil || n.Limit != nil {
			return nil, nil
		}
		query, _ = onlyQuery(n.Selects[0])
		after = n.AfterSetOperator
	}
	if query == nil || query.With != nil {
		return nil, nil
	}
	return query, after
}

// armRows appends the identity columns of all arms' tables to each arm: its own under their names, NULL
// in the place of the others.
func (pl *planner) armRows(arms []arm) error {
	planned, total := make([]*planner, len(arms)), 0
	for i, a := range arms {
		p, err := pl.planArm(a)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(p.plan.Result.Sources, func(s Source) bool { return s.Array && !s.Beside }) {
			return refusal(history.ReasonAggregate)
		}
		planned[i], total = p, total+p.plan.HiddenColumns()
		pl.plan.Upstream.MayHideLocks = pl.plan.Upstream.MayHideLocks || p.plan.Upstream.MayHideLocks
		pl.plan.Upstream.Copies = append(pl.plan.Upstream.Copies, p.plan.Upstream.Copies...)
		pl.plan.Upstream.Repeats, pl.literal = pl.plan.Upstream.Repeats || p.plan.Upstream.Repeats, pl.literal || p.literal
		if p.plan.Observation == history.Inexact {
			pl.downgrade(p.plan.Reason)
		}
	}
	if total == 0 {
		return nil
	}
	before := 0
	for i, p := range planned {
		list, err := p.selectList(arms[i].node)
		if err != nil {
			return err
		}
		pos, gap := p.after(list[len(list)-1].last)
		own := p.plan.HiddenColumns()
		if before > 0 {
			pl.insertAt(pos, text(strings.Repeat(", NULL", before)))
		}
		pl.edits = append(pl.edits, p.edits...)
		if behind := total - before - own; behind > 0 || before > 0 {
			pl.insertAt(pos, text(strings.Repeat(", NULL", behind)+gap))
		}
		before += own
		for _, s := range p.plan.Result.Sources {
			s.Always = false
			pl.plan.Result.Sources = append(pl.plan.Result.Sources, s)
		}
	}
	pl.plan.Result.Reply = rewrite.Trimmed
	return nil
}

// planArm plans one of the queries of a set operation, with columns that show what its subqueries read. Whether one ran
// that hangs on no row is told by rows of that query alone.
func (pl *planner) planArm(a arm) (*planner, error) {
	plan := func(alone *ast.SelectStmt) (*planner, error) {
		p := &planner{rewriter: pl.rewriter, session: pl.session, st: pl.st.part(a.from, a.to), alone: alone, oneOf: true,
			removed: pl.removed, plan: &Plan{Statement: rewrite.Statement{Observation: history.Exact}}}
		err := p.selectRows(a.node)
		if err == nil && p.plan.Result.Carried > 0 {
			err = refusal(history.ReasonDerivedStar) // the others have no such columns
		}
		return p, err
	}
	if pl.united && hasSubquery(a.node) && pl.st.executable() < 0 {
		p, err := plan(a.node)
		if err == nil && !slices.ContainsFunc(p.plan.Result.Sources, func(s Source) bool { return s.Array && !s.Beside }) {
			return p, nil
		}
	}
	return plan(nil)
}

// part is a stretch of the statement's tokens as a statement of its own, over the same text.
func (st *statement) part(from, to int) *statement {
	return &statement{Text: mysqltoken.Text{SQL: st.SQL, Tokens: st.Tokens[from:to], Open: -1}, before: st.params(from)}
}

// positionAfter reports whether ORDER BY might name the position of a column behind the first columns.
func positionAfter(by *ast.OrderByClause, columns int) bool {
	for _, item := range by.Items {
		if p, ok := item.Expr.(*ast.PositionExpr); ok && p.N > columns {
			return true
		}
	}
	return false
}

// MaxCompanionRows is how many rows of a companion are read. It asks for one more, which tells that
// there were more.
const MaxCompanionRows = 10_000

// accompanyDistinct gives a SELECT DISTINCT its companion.
func (pl *planner) accompanyDistinct(n *ast.SelectStmt) {
	pl.accompany([]arm{{node: n, to: pl.st.last() + 1}}, nil)
}

// accompany gives a statement that removes duplicates its companion: the same text with all rows, and
// their identities behind them. What must not run twice, or reads something else the second time, has
// none; nor has what locks, because the companion could be executed by another plan and lock more.
func (pl *planner) accompany(arms []arm, operators []int) {
	if pl.plan.Locking != history.NoLock || !pl.repeatable() {
		return
	}
	c := &planner{rewriter: pl.rewriter, session: pl.session, st: pl.st,
		plan: &Plan{Statement: rewrite.Statement{Kind: history.Select,
			Observation: history.Exact, Params: pl.plan.Params}}}
	c.removed = true
	for _, e := range pl.edits {
		if e.plain {
			c.edits = append(c.edits, e)
		}
	}
	for i := range arms {
		a := &arms[i]
		if a.node.Distinct && !c.keepDuplicates(a) {
			return
		}
	}
	for _, i := range operators {
		c.unionAll(i)
	}
	if err := c.armRows(arms); err != nil || len(c.plan.Result.Sources) == 0 || c.plan.Observation != history.Exact {
		return
	}
	if pl.st.find(0, len(pl.st.Tokens), -1, "LIMIT", "FETCH", "OFFSET") >= 0 {
		c.downgrade(history.ReasonLimit) // of the rows read, those are missing that gave way to duplicates
	} else {
		c.limitCompanion(arms)
	}
	pl.companion = c
}

// limitCompanion ends a companion with a LIMIT, which stands in the place of an ORDER BY: the client sees none of its
// rows, and need not have them sorted once more. One with placeholders stays, for the client's parameters go with it.
func (pl *planner) limitCompanion(arms []arm) {
	st, last := pl.st, pl.st.last()
	limit := "LIMIT " + strconv.Itoa(MaxCompanionRows+1)
	if len(arms) == 1 && arms[0].node.OrderBy != nil {
		order := st.find(0, last, 0, "ORDER")
		if order >= 0 && st.params(order) == st.params(last+1) {
			pl.edits = append(pl.edits, edit{start: st.Tokens[order].Start, end: st.Tokens[last].End,
				pieces: []Piece{text(limit)}})
			return
		}
	}
	pos, gap := pl.after(last)
	pl.insertAt(pos, text(" "+limit+gap))
}

// keepDuplicates makes an arm a SELECT ALL, in the text and in its tree.
func (pl *planner) keepDuplicates(a *arm) bool {
	st := pl.st
	var words []int
	for i := a.from; i < a.to && st.Tokens[i].Start < a.node.Fields.Fields[0].Offset; i++ {
		switch {
		case st.is(i, "SELECT"):
			words = nil // those before it are in a WITH
		case st.is(i, "DISTINCT", "DISTINCTROW"):
			words = append(words, i) // the server takes several, but none beside ALL
		}
	}
	if len(words) == 0 {
		return false
	}
	for _, at := range words {
		pl.edits = append(pl.edits, edit{start: st.Tokens[at].Start, end: st.Tokens[at].End,
			pieces: []Piece{text("ALL")}})
	}
	node := *a.node
	node.Distinct = false
	a.node = &node
	return true
}

// unionAll makes the set operator that begins at token i a UNION ALL.
func (pl *planner) unionAll(i int) {
	st := pl.st
	end := st.Tokens[i].End
	if st.is(i+1, "ALL", "DISTINCT") {
		end = st.Tokens[i+1].End
	}
	pl.edits = append(pl.edits, edit{start: st.Tokens[i].Start, end: end, pieces: []Piece{text("UNION ALL")}})
}

// repeatable reports whether a statement run twice in one snapshot does the same twice, and has no other
// effect.
func (pl *planner) repeatable() bool {
	st := pl.st
	if strings.Contains(st.SQL, "/*+") {
		return false // a hint may set a variable for the statement
	}
	for i, t := range st.Tokens {
		switch t.Kind {
		case mysqltoken.Variable:
			if strings.HasPrefix(st.tok(i), "@@") {
				return false
			}
		case mysqltoken.Mark:
			if st.mark(i, ":=") {
				return false
			}
		case mysqltoken.Word:
			s := strings.ToLower(st.tok(i))
			if changing[s] || st.mark(i+1, "(") && !nativeFunctions[s] && !beforeParenthesis[s] && !beforeQuery[s] {
				return false
			}
		case mysqltoken.Name:
			if st.mark(i+1, "(") {
				return false
			}
		}
	}
	return true
}

// changing are the words, in lower case, of expressions whose value changes from one statement to the
// next, or that do more than give a value. As the name of a column they only cost an observation.
var changing = set(`
	benchmark curdate current_date current_time current_timestamp curtime des_encrypt encrypt found_rows get_lock
	getvar is_free_lock is_used_lock last_insert_id lastval load_file localtime localtimestamp master_gtid_wait
	master_pos_wait next nextval now previous procedure rand random_bytes release_all_locks release_lock row_count
	rownum setval sleep sql_calc_found_rows sys_guid sysdate unix_timestamp utc_date utc_time utc_timestamp uuid
	uuid_short wsrep_last_seen_gtid wsrep_last_written_gtid wsrep_sync_wait_upto_gtid
`)

// beforeQuery are the words that may stand before the parenthesis around a query or a list of tables.
var beforeQuery = set("all distinct distinctrow except from index intersect join key partition select union")
