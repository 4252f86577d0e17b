package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"
)

// A row that MERGE returns tells by merge_action() what was done to it. Where one WHEN clause alone does that, it tells
// which conditions were evaluated for the row: those up to that clause, of the clauses for rows of that kind. What
// their subqueries read, and those of its values, stands beside the row. Of a row that no clause wrote a subquery that
// hangs on the row is a matter of the condition; one that hangs on none is not known to have run if no row shows it.

// A mergeLink is a subquery of a MERGE; hidden is what it does not see.
type mergeLink struct {
	writtenLink
	hidden []*relation
}

// names reports whether the subquery, of which q is a query, may name what it does not see, or hangs on what the client
// has around it: a copy of that would come before it, and so would its error.
func (at mergeLink) names(q *subquery) bool {
	around := &ast.SelectStmt{WhereClause: at.Testexpr}
	return slices.ContainsFunc(at.tests, func(t test) bool { return t.node != nil || t.ofNode != nil }) ||
		len(at.hidden) > 0 && (mayReferTo(q.query, q.own(), at.hidden) || mayReferTo(around, nil, at.hidden))
}

// lookIntoMerge has a MERGE show, beside each row that it writes, what its subqueries read. It reports whether that is
// so for all that read tables.
func (w *write) lookIntoMerge(sc *scope, n *ast.MergeStmt) (bool, error) {
	if !w.runsSubqueriesAgain() || w.part != nil || len(w.parts) > 0 || len(w.silent) > 0 || w.target.tagged {
		return false, nil
	}
	if sc == nil {
		sc = w.seenByPart()
	}
	clauses, ok := mergeClauses(n)
	if !ok {
		return false, nil
	}
	b := w.beside()
	links, ok := w.linksOfMerge(b, n.JoinCondition, clauses)
	if !ok {
		return false, nil
	}
	var assignments []ast.Node
	for _, c := range clauses {
		if c.CommandType == ast.CMD_UPDATE {
			for _, t := range c.TargetList {
				assignments = append(assignments, t)
			}
		}
	}
	l := looker{reading: w.joined, sc: sc, block: b}
	if w.joined == nil {
		l.reading = newReading(w.planner, nil, nil)
	}
	for _, link := range links {
		if w.readsNothing(link.link) {
			continue
		}
		l.behind = link.at == inReturning // the server looks at RETURNING before the clauses
		all, ok := l.look(link.link, b.rels, 1)
		if !ok || link.at != inReturning && !b.meansTheSame(link.link) {
			return false, l.bar
		}
		for _, q := range all {
			before := len(l.found)
			l.columns(nil, q)
			if link.at != inReturning && (link.names(q) || !w.seesWritten(link.link, q, b.rels, assignments, l.found[before:])) {
				return false, l.bar
			}
		}
	}
	if len(l.found) > maxBesideColumns {
		return false, nil
	}
	for _, c := range l.found {
		s := c.spell(l.reading, b)
		w.columns = append(w.columns, column{edits: s, text: s.in(w.st), sources: []Source{c.source(b)}})
	}
	return true, nil
}

// mergeClauses returns the WHEN clauses of a MERGE.
func mergeClauses(n *ast.MergeStmt) (clauses []*ast.MergeWhenClause, ok bool) {
	for _, c := range nodes(n.MergeWhenClauses) {
		clause, ok := c.(*ast.MergeWhenClause)
		if !ok {
			return nil, false
		}
		clauses = append(clauses, clause)
	}
	return clauses, true
}

// linksOfMerge collects the subqueries of a MERGE. It reports whether it is known of all when they are evaluated.
func (w *write) linksOfMerge(b *block, on ast.Node, clauses []*ast.MergeWhenClause) (links []mergeLink, ok bool) {
	s := seeker{planner: w.planner, fails: true}
	all := span{0, len(w.st.toks)}
	add := func(at written, hidden []*relation) {
		for _, link := range s.links {
			links = append(links, mergeLink{writtenLink{link, at}, hidden})
		}
		s.links = nil
	}
	if hasSubquery(on) { // it is true of each row that a clause for matched ones wrote
		tests, acting := actionsOf(clauses, func(j int) bool { return clauses[j].MatchKind == ast.MERGE_WHEN_MATCHED })
		if acting == 0 || !s.seek(on, all, ofAll, tests) {
			return nil, false
		}
		add(inCondition, nil)
	}
	for k, c := range clauses {
		if hasSubquery(c.Condition) {
			tests, acting := actionsOf(clauses, func(j int) bool { return j >= k && clauses[j].MatchKind == c.MatchKind })
			value := anyValue
			if acting == 1 && c.CommandType != ast.CMD_NOTHING {
				value = ofAll // the row was written since it is true
			}
			if acting == 0 || !s.seek(c.Condition, all, value, tests) {
				return nil, false
			}
			add(inCondition, hides(c, w.target.ref, b))
		}
		values := nodes(c.Values)
		for _, t := range c.TargetList {
			values = append(slices.Clone(values), t.Val)
		}
		if !slices.ContainsFunc(values, hasSubquery) {
			continue
		}
		tests, acting := actionsOf(clauses, func(j int) bool { return j == k })
		if acting == 0 || slices.ContainsFunc(values, func(v ast.Node) bool { return !s.seek(v, all, anyValue, tests) }) {
			return nil, false
		}
		add(inValues, hides(c, w.target.ref, b))
	}
	for _, item := range w.client {
		t, ok := item.(*ast.ResTarget)
		if !ok || hasSubquery(item) && w.namesVersions(item) || !s.seek(t.Val, all, anyValue, nil) {
			return nil, false
		}
	}
	add(inReturning, nil)
	return links, true
}

// hides returns the relations that a clause does not see, and RETURNING does: the table's row where none was matched,
// and the source's where the table's row has none.
func hides(c *ast.MergeWhenClause, target string, b *block) (hidden []*relation) {
	for _, rel := range b.rels {
		if c.MatchKind == ast.MERGE_WHEN_NOT_MATCHED_BY_TARGET && rel.ref == target ||
			c.MatchKind == ast.MERGE_WHEN_NOT_MATCHED_BY_SOURCE && rel.ref != target {
			hidden = append(hidden, rel)
		}
	}
	return hidden
}

// actionNames are what merge_action() says of a row.
var actionNames = map[ast.CmdType]string{ast.CMD_INSERT: "'INSERT'", ast.CMD_UPDATE: "'UPDATE'", ast.CMD_DELETE: "'DELETE'"}

// actionsOf returns the test that one of some clauses wrote a row, and how many of these can; 0 where another clause
// does the same.
func actionsOf(clauses []*ast.MergeWhenClause, among func(int) bool) (tests []test, acting int) {
	var names []string
	for j, c := range clauses {
		if name, ok := actionNames[c.CommandType]; ok && among(j) {
			names = append(names, name)
			acting++
		}
	}
	for j, c := range clauses {
		if !among(j) && slices.Contains(names, actionNames[c.CommandType]) {
			return nil, 0
		}
	}
	return []test{{must: must{before: "merge_action() IN (" + strings.Join(names, ", ") + ")"}}}, acting
}
