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
	// looked says that the server has looked at what stands around it when it comes to RETURNING. Rehearsed are the
	// tokens of that where they stand before the copy once more, so that it does.
	looked    bool
	rehearsed span
}

// names reports whether the subquery, of which q is a query, may name what it does not see, or hangs on what the client
// has around it where a copy of that would come before it, and so would its error.
func (at mergeLink) names(q *subquery) bool {
	around := &ast.SelectStmt{WhereClause: at.Testexpr}
	return !at.looked && at.rehearsed == span{} && slices.ContainsFunc(at.tests, test.ofText) ||
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
	links, ok := w.linksOfMerge(b, n, clauses)
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
	rehearsed := make(map[int]span) // by the column
	for _, link := range links {
		if w.readsNothing(link.link) {
			continue
		}
		l.behind = link.at == inReturning // the server looks at RETURNING before the clauses
		all, ok := l.look(link.link, b.rels, 1)
		if !ok || link.at != inReturning && (!b.meansTheSame(link.SubLink) || !w.testsMeanTheSame(link.tests, b)) {
			return false, l.bar
		}
		for _, q := range all {
			before := len(l.found)
			l.columns(nil, q)
			for i := before; i < len(l.found) && slices.ContainsFunc(link.tests, test.ofText); i++ {
				rehearsed[i] = link.rehearsed
			}
			if link.at != inReturning && (link.names(q) || !w.seesWritten(link.link, q, b.rels, assignments, l.found[before:])) {
				return false, l.bar
			}
		}
	}
	if len(l.found) > maxBesideColumns {
		return false, nil
	}
	for i, c := range l.found {
		s := c.spell(l.reading, b)
		if at := rehearsed[i]; at.from < at.to {
			s = rehearse(w.st, at, s)
		}
		w.columns = append(w.columns, column{edits: s, text: s.in(w.st), sources: []Source{c.source(b)}})
	}
	return true, nil
}

// rehearsable returns the tokens of a clause's condition if it can stand before the copies of what it has: the server
// looks at the first clause's behind RETURNING, and at no other before. None where it cannot.
func (w *write) rehearsable(s *seeker, c *ast.MergeWhenClause, k int) (at span) {
	where, ok := bare(c.Condition).(*ast.BoolExpr)
	if !ok || k > 0 || c.MatchKind != ast.MERGE_WHEN_MATCHED {
		return span{}
	}
	u, err := w.inspect(where)
	if err != nil || u.aggregate || u.unsure || u.window || u.function || u.volatile {
		return span{}
	}
	for i := range w.st.toks {
		if !w.st.is(i, "WHEN") || !w.st.is(i+1, "MATCHED") || !w.st.is(i+2, "AND") {
			continue
		}
		for then := w.st.find(i+3, "THEN"); then > 0; then = w.st.find(then+1, "THEN") {
			if at = (span{i + 3, then}); s.reads(c.Condition, at) {
				return at
			}
		}
		break
	}
	return span{}
}

// rehearse puts a condition before a column, where it is never evaluated.
func rehearse(st *statement, at span, column spelling) spelling {
	var s spelling
	s.text("CASE WHEN false THEN (SELECT NULL::pg_catalog.text[] WHERE ")
	s.copy(st, at.from, at.to)
	s.text(") ELSE ")
	s = append(slices.Clip(s), column...)
	s.text(" END")
	return s
}

// testsMeanTheSame reports whether the names in tests mean in RETURNING what they mean in the clauses.
func (w *write) testsMeanTheSame(tests []test, b *block) bool {
	return !slices.ContainsFunc(tests, func(t test) bool {
		return slices.ContainsFunc([]ast.Node{t.node, t.ofNode}, func(n ast.Node) bool {
			return n != nil && (!b.meansTheSame(n) || w.namesVersions(n))
		})
	})
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
func (w *write) linksOfMerge(b *block, n *ast.MergeStmt, clauses []*ast.MergeWhenClause) (links []mergeLink, ok bool) {
	s, source := seeker{planner: w.planner, fails: true}, w.sourceTable(n, b)
	all := span{0, len(w.st.toks)}
	add := func(of mergeLink) {
		for _, link := range s.links {
			of.link = link
			links = append(links, of)
		}
		s.links = nil
	}
	if on := n.JoinCondition; hasSubquery(on) { // it is true of each row that a clause for matched ones wrote
		tests, acting := actionsOf(clauses, source, func(j int) bool { return clauses[j].MatchKind == ast.MERGE_WHEN_MATCHED })
		if acting == 0 || !s.seek(on, all, ofAll, tests) {
			return nil, false
		}
		add(mergeLink{writtenLink: writtenLink{at: inCondition}, looked: true})
	}
	for k, c := range clauses {
		if hasSubquery(c.Condition) {
			tests, acting := actionsOf(clauses, source, func(j int) bool { return j >= k && clauses[j].MatchKind == c.MatchKind })
			value := anyValue
			if acting == 1 && c.CommandType != ast.CMD_NOTHING {
				value = ofAll // the row was written since it is true
			}
			if acting == 0 || !s.seek(c.Condition, all, value, tests) {
				return nil, false
			}
			add(mergeLink{writtenLink: writtenLink{at: inCondition}, hidden: hides(c, w.target.ref, b),
				rehearsed: w.rehearsable(&s, c, k)})
		}
		values := nodes(c.Values)
		for _, t := range c.TargetList {
			values = append(slices.Clone(values), t.Val)
		}
		if !slices.ContainsFunc(values, hasSubquery) {
			continue
		}
		tests, acting := actionsOf(clauses, source, func(j int) bool { return j == k })
		if acting == 0 || slices.ContainsFunc(values, func(v ast.Node) bool { return !s.seek(v, all, anyValue, tests) }) {
			return nil, false
		}
		add(mergeLink{writtenLink: writtenLink{at: inValues}, hidden: hides(c, w.target.ref, b)})
	}
	for _, item := range w.client {
		t, ok := item.(*ast.ResTarget)
		if !ok || hasSubquery(item) && w.namesVersions(item) || !s.seek(t.Val, all, anyValue, nil) {
			return nil, false
		}
	}
	add(mergeLink{writtenLink: writtenLink{at: inReturning}})
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

// actionsOf returns the test that one of some clauses, for rows of one kind, wrote a row, and how many of these can; 0
// where another clause does the same, and nothing tells them apart. Of a row without one of the source a table there
// has no ctid.
func actionsOf(clauses []*ast.MergeWhenClause, source string, among func(int) bool) (tests []test, acting int) {
	var names []string
	var kind ast.MergeMatchKind
	for j, c := range clauses {
		if name, ok := actionNames[c.CommandType]; ok && among(j) {
			names, kind = append(names, name), c.MatchKind
			acting++
		}
	}
	tells := ""
	for j, c := range clauses {
		if among(j) || !slices.Contains(names, actionNames[c.CommandType]) {
			continue
		}
		if c.MatchKind == kind || source == "" {
			return nil, 0
		}
		if tells = " AND " + source + ".ctid IS NOT NULL"; kind == ast.MERGE_WHEN_NOT_MATCHED_BY_SOURCE {
			tells = " AND " + source + ".ctid IS NULL"
		}
	}
	return []test{{must: must{before: "merge_action() IN (" + strings.Join(names, ", ") + ")" + tells}}}, acting
}

// sourceTable returns the name of a MERGE's source if that is a table; an empty text otherwise.
func (w *write) sourceTable(n *ast.MergeStmt, b *block) string {
	of, ok := n.SourceRelation.(*ast.RangeVar)
	if !ok {
		return ""
	}
	name := of.RelName
	if of.Alias != nil {
		name = of.Alias.AliasName
	}
	t, _ := w.table(of)
	one := slices.ContainsFunc(b.rels, func(rel *relation) bool { return rel.ref == name && rel.base != nil && rel.base.table == t })
	if t == nil || !one || len(b.rels) != 2 {
		return ""
	}
	return quoted(name)
}
