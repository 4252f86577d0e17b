package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// isotap's own statements change ROW_COUNT() and FOUND_ROWS() on the server. Where one ran since the client's last
// statement, a client's call of either is replaced by the value that it would have had: a hole in the text.

// maxItemName is how long the server lets the name of a column without an alias be.
const maxItemName = 64

// substituteCounts makes ROW_COUNT() and FOUND_ROWS() values, under the same column names.
func (pl *planner) substituteCounts() {
	st, p := pl.st, pl.plan
	if !p.Session.ReadsDiagnostics {
		return
	}
	before := slices.Clone(pl.edits) // a name stands before what isotap puts behind the last item
	switch {
	case st.is(0, "SET", "DO", "CALL", "INSERT", "REPLACE", "UPDATE", "DELETE"),
		st.is(0, "SELECT") && st.find(0, len(st.Tokens), 0, "INTO") >= 0:
		pl.countsToHoles() // no column names are shown
	case p.Kind == history.Select && (p.Result.Reply == rewrite.Unchanged || p.Result.Reply == rewrite.Trimmed):
		if pl.countsToHoles() && !pl.nameCounts() {
			pl.edits = before
		}
	}
	p.Upstream.Counts = len(pl.edits) > len(before)
	p.Upstream.Substitutes = p.Upstream.Counts && len(before) == 0
}

// countsToHoles puts holes in the place of ROW_COUNT() and FOUND_ROWS(), and reports whether there are any.
func (pl *planner) countsToHoles() bool {
	st, found := pl.st, false
	within := pl.asksBefore()
	for i := 0; i+2 < len(st.Tokens); i++ {
		hole := RowCountHole
		switch {
		case !st.mark(i+1, "(") || !st.mark(i+2, ")"), !st.is(i, "ROW_COUNT", "FOUND_ROWS"):
			continue
		case st.is(i, "FOUND_ROWS"):
			if hole = FoundRowsHole; i < within.from || i >= within.to {
				continue
			}
		}
		call := edit{start: st.Tokens[i].Start, end: st.Tokens[i+2].End, pieces: []Piece{{Hole: hole}}}
		if slices.ContainsFunc(pl.edits, func(e edit) bool { return e.start < call.end && call.start < e.end }) {
			continue
		}
		pl.edits, found = append(pl.edits, call), true
	}
	return found
}

// asksBefore returns the tokens among which FOUND_ROWS() surely counts the rows of the statement before. MariaDB counts
// anew with each query that it has executed, those of the same statement among them. So there it is the first query, if
// it has no other one in it. If it has some, it is the innermost one, if that reads no table and so runs once.
func (pl *planner) asksBefore() span {
	st := pl.st
	whole := span{0, len(st.Tokens)}
	if pl.session.Dialect != MariaDB || !st.is(0, "SELECT", "WITH") && !st.mark(0, "(") {
		return whole
	}
	end := st.find(0, len(st.Tokens), -1, "UNION", "INTERSECT", "EXCEPT")
	if end < 0 {
		end = len(st.Tokens)
	}
	at := st.find(0, end, -1, "SELECT")
	first := at
	for next := at; next >= 0; next = st.find(next+1, end, -1, "SELECT") {
		if next > at && st.Tokens[next].Depth <= st.Tokens[at].Depth {
			return span{}
		}
		at = next
	}
	if at == first {
		return span{0, end}
	}
	depth := st.Tokens[at].Depth
	for i := at; i < end; i++ {
		if st.Tokens[i].Depth < depth {
			end = i
		}
	}
	if st.find(at, end, depth, "FROM") >= 0 {
		return span{}
	}
	return span{at, end}
}

// nameCounts gives the columns without an alias whose items have a hole the names that they had, and reports whether
// these are known.
func (pl *planner) nameCounts() bool {
	node, err := pl.parse()
	if err != nil {
		return false
	}
	var queries allQueries
	node.Accept(&queries)
	for _, n := range queries {
		within, _, ok := pl.st.queryTokens(n)
		if !ok {
			return false
		}
		p := &planner{rewriter: pl.rewriter, session: pl.session, st: pl.st.part(0, within.to), into: pl.into}
		list, err := p.selectList(n)
		if err != nil {
			return false
		}
		for k, it := range list {
			if n.Fields.Fields[k].AsName.O == "" && !pl.nameCount(it) {
				return false
			}
		}
	}
	return true
}

// nameCount gives an item its text for a name if it has a hole, and reports whether that was its name.
func (pl *planner) nameCount(it item) bool {
	start, end := pl.st.Tokens[it.first].Start, pl.st.Tokens[it.last].End
	if !slices.ContainsFunc(pl.edits, func(e edit) bool {
		return start <= e.start && e.end <= end && (e.pieces[0].Hole == RowCountHole || e.pieces[0].Hole == FoundRowsHole)
	}) {
		return true
	}
	named, ok := pl.spelledAsIs(it, maxItemName)
	if ok {
		pl.edits = slices.Insert(pl.edits, 0, named)
	}
	return ok
}

// spelledAsIs returns the edit that gives an item its text for a name, and reports whether that was its name, where
// names have so many bytes at most.
func (pl *planner) spelledAsIs(it item, most int) (e edit, ok bool) {
	start, end := pl.st.Tokens[it.first].Start, pl.st.Tokens[it.last].End
	pos, gap := pl.after(it.last)
	spelled := pl.st.SQL[start:end]
	if pl.session.Dialect == TiDB { // a comment is in the name, but for its end
		ok = !strings.Contains(pl.st.SQL[start:pos], "/*!") && !strings.Contains(pl.st.SQL[start:pos], "/*T")
		spelled = strings.ReplaceAll(strings.TrimSpace(pl.st.SQL[start:pos]), "*/", "")
	} else {
		ok = !strings.ContainsAny(spelled, "#\n") && !strings.Contains(spelled, "/*") && !strings.Contains(spelled, "--")
	}
	return edit{start: pos, end: pos, pieces: []Piece{text(" AS " + quoted(spelled) + gap)}}, ok && len(spelled) <= most
}

// allQueries collects all queries of a statement.
type allQueries []*ast.SelectStmt

// Enter implements ast.Visitor.
func (q *allQueries) Enter(n ast.Node) (ast.Node, bool) {
	if n, ok := n.(*ast.SelectStmt); ok && n.Kind == ast.SelectStmtKindSelect {
		*q = append(*q, n)
	}
	return n, false
}

// Leave implements ast.Visitor.
func (q *allQueries) Leave(n ast.Node) (ast.Node, bool) { return n, true }
