package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// body takes note of a block's sources.
func (n *nesting) body(b *block) {
	if n.bodies == nil {
		n.bodies = make(map[*ast.SelectStmt]*block)
	}
	n.bodies[b.n] = b
}

// checkBlock refuses a block whose names or positions the identity columns would change.
func (pl *planner) checkBlock(b *block) error {
	starred := slices.ContainsFunc(b.srcs, func(s *source) bool {
		return s.table == nil && len(s.shows) > 0 &&
			b.stars(s) > 0
	})
	switch {
	case positionBeyond(b.n, b.srcs), starred && usesPositions(b.n):
		return refusal(history.ReasonOrderByPosition)
	case starred && (b.grouped || pl.session.Dialect == TiDB && merges(b.n.From.TableRefs)):
		return refusal(history.ReasonDerivedStar)
	case merges(b.n.From.TableRefs) && b.srcs.repeatNames():
		return refusal(history.ReasonNaturalJoin)
	}
	if b.grouped {
		var err error
		b.limit, err = pl.session.arrayLimit()
		return err
	}
	return nil
}

// lowerBlock lowers the plan for what the block reads and does not show.
func (pl *planner) lowerBlock(b *block, use *usage) {
	n := b.n
	for _, s := range b.srcs {
		if !s.reason.IsZero() {
			pl.downgrade(s.reason)
		}
	}
	pl.downgradeBy(use)
	if use.window && n.Limit != nil {
		pl.downgrade(history.ReasonWindowFunction) // its values came from rows that are not among the result's
	}
	arrays := slices.ContainsFunc(b.srcs, func(s *source) bool {
		return slices.ContainsFunc(s.shows, func(i identity) bool { return i.source.Array })
	})
	switch {
	case arrays && b.grouped:
		pl.downgrade(history.ReasonNestedAggregate)
	case b.grouped && hidesGroups(n), arrays && (n.Where != nil || n.Having != nil || n.Limit != nil ||
		len(b.srcs) > 1):
		pl.downgrade(history.ReasonGroupsLeftOut)
	}
}

// stars is how many stars of the block's select list hold the columns of a source.
func (b *block) stars(s *source) int {
	n := 0
	for _, f := range b.n.Fields.Fields {
		if f.WildCard != nil && (f.WildCard.Table.L == "" || strings.EqualFold(f.WildCard.Table.O, s.name)) {
			n++
		}
	}
	return n
}

// shown returns the identities that the block's rows can show, as expressions, in the order of the sources.
func (b *block) shown() []shownIdentity {
	var all []shownIdentity
	for _, s := range b.srcs {
		for _, i := range s.shows {
			if b.grouped && i.source.Array {
				continue // arrays of arrays would be cut
			}
			all = append(all, b.show(s, i))
		}
	}
	return all
}

// A shownIdentity is an identity at the outside of a block: the expressions of its columns.
type shownIdentity struct {
	identity
	from        *source
	expressions []string
}

func (b *block) show(s *source, i identity) shownIdentity {
	out := shownIdentity{identity: i, from: s}
	out.outer = i.outer || s.outer
	rowID, wList := quoted(s.name)+"."+i.rowID, quoted(s.name)+"."+i.wList
	switch {
	case b.grouped:
		out.expressions = []string{array(rowID, wList, b.limit, out.outer)}
		out.source = Source{Table: i.source.Table, Array: true, Limit: b.limit}
	case i.source.Array:
		out.expressions = []string{rowID}
	default:
		out.expressions = []string{rowID, wList}
	}
	return out
}

// showOutwards appends what a block in a FROM clause shows to its select list under names of their own,
// and returns it as the block around it sees it. What a star of the block holds is shown already.
func (pl *planner) showOutwards(b *block) []identity {
	var text strings.Builder
	var out []identity
	for _, s := range b.shown() {
		i := s.identity
		if s.from.table == nil && b.stars(s.from) > 0 {
			i.outer = s.outer
			out = append(out, i)
			continue
		}
		i.rowID, i.wList = pl.columnName(), ""
		fmt.Fprintf(&text, ", %s AS %s", s.expressions[0], i.rowID)
		if len(s.expressions) > 1 {
			i.wList = pl.columnName()
			fmt.Fprintf(&text, ", %s AS %s", s.expressions[1], i.wList)
		}
		i.source, i.outer = s.source, s.outer
		out = append(out, i)
	}
	pl.appendToList(b, text.String())
	return out
}

// columnName returns a name that no other column of the statement has.
func (pl *planner) columnName() string {
	pl.nesting.columns++
	return fmt.Sprintf("%s%d", rewrite.CarriedPrefix, pl.nesting.columns)
}

// appendToList puts items, each behind a comma, at the end of a block's select list.
func (pl *planner) appendToList(b *block, items string) {
	if items == "" {
		return
	}
	pos, gap := pl.after(b.list[len(b.list)-1].last)
	pl.insertAt(pos, text(items+gap))
}

// derived has a query in a FROM clause show its identities, or the reason why it cannot.
func (pl *planner) derived(query ast.ResultSetNode) ([]identity, history.Reason) {
	n, ok := query.(*ast.SelectStmt)
	if !ok {
		return nil, history.ReasonUnion
	}
	var shows []identity
	within, joined := len(pl.nesting.observed), pl.nesting.joined
	edits, lowered, err := pl.apart(func() error {
		b, use, err := pl.block(n)
		if err != nil {
			return err
		}
		pl.nesting.body(b)
		if b.list != nil && b.grouped && joined {
			return refusal(history.ReasonJoinedAggregate)
		}
		if b.list == nil {
			pl.downgradeBy(use)
			return b.srcs.unobservable()
		}
		shows = pl.showOutwards(b)
		if len(shows) == 0 {
			return refusal(history.ReasonNestedAggregate)
		}
		return nil
	})
	if err != nil {
		pl.nesting.observed = pl.nesting.observed[:within]
		return nil, reasonOf(err)
	}
	pl.observed(n)
	pl.edits = append(pl.edits, edits...)
	return shows, lowered
}

// observed takes note that a block is one whose columns isotap may add to.
func (pl *planner) observed(n *ast.SelectStmt) {
	pl.nesting.observed = append(pl.nesting.observed, n)
}

// apart runs f and returns the edits that it made and the reason for which it lowered the plan, without
// either being done.
func (pl *planner) apart(f func() error) (edits []edit, lowered history.Reason, err error) {
	before, observation, reason := pl.edits, pl.plan.Observation, pl.plan.Reason
	pl.edits, pl.plan.Observation, pl.plan.Reason = nil, history.Exact, history.Reason{}
	err = f()
	edits, lowered = pl.edits, pl.plan.Reason
	pl.edits, pl.plan.Observation, pl.plan.Reason = before, observation, reason
	return edits, lowered, err
}

// usesPositions reports whether a SELECT names columns by their position.
func usesPositions(n *ast.SelectStmt) bool {
	position := func(item *ast.ByItem) bool {
		_, ok := item.Expr.(*ast.PositionExpr)
		return ok
	}
	return n.OrderBy != nil && slices.ContainsFunc(n.OrderBy.Items, position) ||
		n.GroupBy != nil && slices.ContainsFunc(n.GroupBy.Items, position)
}

// block looks at a SELECT and at the queries in its FROM clause. What these cannot show lowers the
// plan; the error is the reason why the block itself cannot be observed. A block without a FROM clause,
// or none of whose sources shows anything, has no list.
func (pl *planner) block(n *ast.SelectStmt) (*block, *usage, error) {
	if reason := collapsing(n); !reason.IsZero() {
		return nil, nil, refusal(reason)
	}
	leave := pl.enterWith(n.With)
	defer leave()
	use := pl.inspectSelect(n)
	b := &block{n: n, grouped: use.aggregate || n.GroupBy != nil}
	switch {
	case use.window && b.grouped && pl.session.Dialect == MariaDB:
		return nil, nil, refusal(history.ReasonWindowFunction) // beside JSON_ARRAYAGG, ORDER BY is not obeyed
	case b.grouped && pl.session.Dialect == MySQL && changesTypes(n):
		return nil, nil, refusal(history.ReasonAggregate)
	case use.outward && !b.grouped, b.grouped && n.Having != nil && n.Limit != nil:
		// Whether there is one row or many is not certain.
		return nil, nil, refusal(history.ReasonAggregate)
	case n.From == nil:
		return b, use, nil
	}
	b.srcs = flatten(n.From.TableRefs)
	if err := pl.resolve(b.srcs); err != nil {
		return nil, nil, err
	}
	if !b.srcs.observable() {
		return b, use, nil
	}
	if pl.mayWarn(n, b.srcs) {
		return nil, nil, refusal(history.ReasonWarnings)
	}
	var err error
	if b.list, err = pl.selectList(n); err != nil {
		return nil, nil, err
	}
	if err := pl.checkBlock(b); err != nil {
		return nil, nil, err
	}
	pl.lowerBlock(b, use)
	return b, use, nil
}
