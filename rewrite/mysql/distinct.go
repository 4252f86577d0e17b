package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// SELECT DISTINCT compares whole rows, so no column may tell of one. A column that is the same in all rows leaves the
// duplicates what they are: an array of all the rows that the statement reads of a table, by a subquery with its own
// FROM clause and condition (ADR 62). The server computes it once. Where the snapshot lasts, and for what does not fit,
// there is a companion instead (ADR 17): it can show more rows. So there is where an index may give the rows without
// their duplicates: with one more column, whatever it is, the server reads them in another way, and what it says of its
// columns is not the same. With subqueries in its condition it shows its rows itself where the snapshot lasts, too: a
// companion does not show what those read.

// distinctRows has a SELECT DISTINCT show the rows that it reads. It reports whether it does; otherwise the planner is
// as it was.
func (pl *planner) distinctRows(n *ast.SelectStmt) bool {
	if pl.session.Lasts && !hasSubquery(n) || !pl.readsAgain(n) || n.LockInfo != nil ||
		n.GroupBy != nil || n.Having != nil || n.Limit != nil || n.With != nil || n.From == nil || len(n.WindowSpecs) > 0 || !pl.st.is(0, "SELECT") ||
		merges(n.From.TableRefs) || !innerJoins(n.From.TableRefs) {
		return false
	}
	c := &planner{rewriter: pl.rewriter, session: pl.session, st: pl.st, edits: append([]edit(nil), pl.edits...),
		plan: &Plan{Statement: pl.plan.Statement}}
	c.plan.Observation, c.plan.Reason = history.Exact, history.Reason{}
	all := *n
	all.Distinct = false
	b, use, err := c.block(&all)
	if err != nil || b.list == nil || b.grouped || mayHideLocks(n, b.srcs) || ordersGroups(n, b.srcs) || use.window ||
		c.plan.Observation != history.Exact && (!use.subquery || c.plan.Reason != history.ReasonSubquery) {
		return false
	}
	if use.subquery && n.OrderBy != nil && !ordersAll(n.OrderBy, []arm{{node: n}}) {
		return false // rows that are equal in that order came in another one
	}
	if !c.aside(&all, &c.besides) || len(c.besides) > maxBesideColumns {
		return false
	}
	for _, of := range c.besides {
		of.limit = 0
	}
	if c.appendBesides(b) != nil || len(c.plan.Upstream.Copies) > 0 {
		return false // read again by a parameter, a table is read otherwise than by a literal: the reply's status tells it
	}
	for i, of := range c.besides {
		// Where there is no row of the result, none was read but by a subquery that hangs on none.
		c.plan.Result.Sources[i].Whole = of.node != nil && of.node != &all
	}
	pl.edits, pl.literal = c.edits, true
	pl.plan.Observation, pl.plan.Reason = history.Exact, history.Reason{}
	pl.plan.Result.Reply, pl.plan.Result.Sources = c.plan.Result.Reply, c.plan.Result.Sources
	pl.plan.Upstream.Repeats = true
	return true
}

// ordersGroups reports whether an index of several columns may give the rows without their duplicates: it begins with
// one that is asked for.
func ordersGroups(n *ast.SelectStmt, srcs sources) bool {
	needed := neededColumns(n, srcs)
	return slices.ContainsFunc(srcs, func(s *source) bool {
		return s.table == nil || slices.ContainsFunc(s.table.Indexes, func(x rewrite.Index) bool {
			return len(x.Columns) > 1 && (x.Columns[0] == "" || needed[s][strings.ToLower(x.Columns[0])])
		})
	})
}

// readsAgain reports whether a SELECT may read rows a second time, in the same snapshot, to show which they are. A
// locking clause does not reach into its subqueries: they read the snapshot, and lock nothing.
func (pl *planner) readsAgain(n *ast.SelectStmt) bool {
	if !pl.session.Repeats || !pl.session.arraysAreCut() || n.TableHints != nil ||
		!pl.into.empty() || pl.st.executable() >= 0 || pl.rewriter.options.StrictPlans {
		return false
	}
	limit, err := pl.session.arrayLimit()
	return err == nil && (limit == 0 || limit >= MaxBeside)
}

// arraysAreCut reports whether the server can bound how much an array beside a row is made of: JSON_ARRAYAGG has a
// LIMIT on MariaDB, and a query in FROM that has one may name the row around it on MySQL from 8.0.14 on.
func (s *Session) arraysAreCut() bool {
	return s.Dialect == MariaDB || s.Dialect == MySQL && s.Version >= 80014
}

// plainTable reports whether nothing but a name says what is read of a table.
func plainTable(n *ast.TableName) bool {
	return len(n.IndexHints)+len(n.PartitionNames) == 0 && n.TableSample == nil && n.AsOf == nil
}

// A clauseSpan is where a query's FROM clause begins, its condition, -1 where there is none, and where they end.
type clauseSpan struct{ from, where, end int }

// clauseSpans finds the FROM clause and the condition of a query whose SELECT is token verb, and which ends before
// token end.
func (pl *planner) clauseSpans(n *ast.SelectStmt, verb, end int) (at clauseSpan, ok bool) {
	st := pl.st
	depth := st.Tokens[verb].Depth
	from := st.find(verb+1, end, depth, "FROM")
	if from < 0 {
		return at, false
	}
	if at := st.find(from, end, depth, "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "FETCH", "OFFSET", "FOR", "LOCK",
		"PROCEDURE", "INTO", "UNION", "INTERSECT", "EXCEPT"); at >= 0 {
		end = at
	}
	if slices.ContainsFunc(st.Tokens[from:end], func(t mysqltoken.Token) bool { return t.Kind == mysqltoken.Variable }) {
		return at, false
	}
	at = clauseSpan{from, st.find(from, end, depth, "WHERE"), end}
	return at, (at.where >= 0) == (n.Where != nil) && at.where != end-1 && from+1 < end
}

// clausesIn returns the text of the FROM clause and the condition of such a query, for another copy that means the
// same, with other pieces in the place of some tokens of the FROM clause.
func (pl *planner) clausesIn(n *ast.SelectStmt, verb, end int, by []replacement) (c clauses, ok bool) {
	at, ok := pl.clauseSpans(n, verb, end)
	switch {
	case !ok:
		return c, false
	case at.where < 0:
		return clauses{from: pl.replaced(span{at.from, at.end}, by)}, true
	}
	return clauses{pl.replaced(span{at.from, at.where}, by), pl.copied(at.where+1, at.end)}, true
}
