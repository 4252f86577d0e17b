package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/rewrite"
)

// maxTargets is how many columns a result may have (MaxTupleAttributeNumber).
const maxTargets = 1664

// selectRows makes a SELECT tell which versions its rows are made of: it appends the identity columns of every
// base table to the select list, and the client does not see them.
func (pl *planner) selectRows(n *ast.SelectStmt) error {
	if reason := collapsing(n); reason != "" {
		return refusal(reason)
	}
	u, err := inspect(n.TargetList, n.FromClause, n.WhereClause, n.SortClause, n.LimitCount, n.LimitOffset, n.WindowClause)
	if err != nil {
		return err
	}
	sources, err := pl.sources(nodes(n.FromClause))
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		return pl.selectNothing(u)
	}
	switch {
	case u.aggregate, u.reachesOut(sources):
		return refusal("aggregate")
	case u.function && pl.mayAggregate(n):
		return refusal("function")
	case pl.mayHidePlan(n) && covered(sources, u):
		return refusal("plan")
	}
	if u.subquery {
		pl.lower("subquery")
	}
	if u.function {
		pl.lower("function")
	}
	return pl.appendTargets(n, sources)
}

// collapsing gives the reason why more columns would change which rows a SELECT returns, or where they stand.
func collapsing(n *ast.SelectStmt) string {
	switch {
	case n.WithClause != nil:
		return "with"
	case n.Op != ast.SETOP_NONE:
		return "set operation"
	case len(nodes(n.ValuesLists)) > 0:
		return "VALUES"
	case n.IntoClause != nil:
		return "SELECT INTO"
	case n.DistinctClause != nil:
		return "distinct"
	case n.GroupClause != nil, n.HavingClause != nil:
		return "aggregate"
	}
	return ""
}

// selectNothing plans a SELECT without a table.
func (pl *planner) selectNothing(u *usage) error {
	switch {
	case u.subquery:
		return refusal("subquery")
	case u.function:
		return refusal("function")
	}
	pl.nothing()
	return nil
}

// mayAggregate says whether a function that is not the server's own stands where an aggregate may.
func (pl *planner) mayAggregate(n *ast.SelectStmt) bool {
	u, err := inspect(n.TargetList, n.SortClause)
	return err != nil || u.function
}

// mayHidePlan says whether it matters that an index alone might answer. It cannot where rows are locked: for these
// the server goes to the table in any case.
func (pl *planner) mayHidePlan(n *ast.SelectStmt) bool {
	return n.LockingClause == nil && (pl.session.Serializable || pl.rewriter.options.StrictPlans)
}

// covered says whether an index alone might answer for one of the tables.
func covered(sources []source, u *usage) bool {
	for i := range sources {
		s := &sources[i]
		if u.columns[s.ref] { // the whole row
			continue
		}
		for _, x := range s.table.Indexes {
			if s.within(x, u) {
				return true
			}
		}
	}
	return false
}

// within says whether an index holds all columns of the source that the statement uses.
func (s *source) within(x rewrite.Index, u *usage) bool {
	all := u.columns["*"] || u.columns[s.ref+".*"]
	for i, c := range s.table.Columns {
		used := all || u.columns[s.names[i]] || u.columns[s.ref+"."+s.names[i]]
		if used && !slices.Contains(x.Columns, c.Name) {
			return false
		}
	}
	return true
}

// appendTargets puts the identity columns behind the last item of the select list.
func (pl *planner) appendTargets(n *ast.SelectStmt, sources []source) error {
	var added []string
	width, count := len(nodes(n.TargetList)), 0
	for i := range sources {
		s := &sources[i]
		id, err := readIdentity(s)
		if err != nil {
			return err
		}
		added = append(added, id.aliased(count+1))
		count += len(id.items)
		width += len(s.table.Columns) + len(id.items)
		pl.plan.Sources = append(pl.plan.Sources, id.source(s))
	}
	if width > maxTargets {
		return refusal("columns")
	}
	return pl.extendList(n, strings.Join(added, ", "))
}

// extendList adds items to the select list.
func (pl *planner) extendList(n *ast.SelectStmt, added string) error {
	end, ok := pl.endOfSelectList()
	if !ok {
		return refusal(unparsable)
	}
	pl.plan.Reply = rewrite.Trimmed
	if len(nodes(n.TargetList)) > 0 {
		pl.insertAfter(end, ", "+added)
	} else {
		pl.insertAfter(end, " "+added)
	}
	return pl.proven(nodes(n.TargetList), added, selectList)
}

// endOfSelectList gives the last token of the select list of a plain SELECT.
func (pl *planner) endOfSelectList() (int, bool) {
	st := pl.st
	if !st.is(0, "SELECT") {
		return 0, false
	}
	from := 1
	if st.is(1, "ALL") {
		from = 2
	}
	for i := from; ; i++ {
		i = st.find(i, "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR", "INTO")
		if i < 0 {
			return len(st.toks) - 1, true
		}
		if !st.is(i-1, "DISTINCT") { // IS DISTINCT FROM
			return i - 1, true
		}
	}
}
