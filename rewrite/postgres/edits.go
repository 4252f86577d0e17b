package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// added returns what the edit puts into a text. A copy shares no memory with the place that it was taken from.
func (e *edit) added(text string) string {
	if e.from < e.to {
		return strings.Clone(text[e.from:e.to])
	}
	return e.text
}

// insertAfter puts text right behind token i, with a blank behind it where it would run into what follows.
func (pl *planner) insertAfter(i int, s string) {
	at := pl.st.toks[i].End
	if at < len(pl.st.text) {
		switch c := pl.st.text[at]; {
		case pgtoken.IsSpace(c), c == ';', c == ')', c == ',':
		default:
			s += " "
		}
	}
	pl.edits = append(pl.edits, edit{start: at, end: at, text: s})
}

// pieces returns text[from:to] with its edits.
func pieces(text string, from, to int, edits []edit) []string {
	out := make([]string, 0, 2*len(edits)+1)
	for _, e := range edits {
		if from < e.start {
			out = append(out, text[from:e.start])
		}
		if added := e.added(text); added != "" {
			out = append(out, added)
		}
		from = e.end
	}
	if from < to {
		out = append(out, text[from:to])
	}
	return out
}

// spliced returns text[from:to] with its edits, as one text.
func spliced(text string, from, to int, edits []edit) string {
	return strings.Join(pieces(text, from, to, edits), "")
}

// sorted returns the planner's edits in the order of their places.
func (pl *planner) sorted() []edit {
	slices.SortStableFunc(pl.edits, func(a, b edit) int { return a.start - b.start })
	return pl.edits
}

// script makes the edits of all statements the pieces of a script, after a model or none.
func (d *draft) script(model *Script) *Script {
	s := &Script{Statements: d.plans, text: d.text, model: model}
	if d.observes {
		s.splice(d.edits)
	}
	if len(d.plain) > 0 {
		s.Plain = &Script{Statements: d.plans, text: d.text}
		if model != nil {
			s.Plain.model = model.Plain
		}
		s.Plain.splice(d.plain)
	}
	return s
}

// plainNames reports whether all names are of ASCII.
func (pl *planner) plainNames() bool {
	for i, t := range pl.st.toks {
		if (t.Kind == pgtoken.Word || t.Kind == pgtoken.Name) && !ascii(pl.st.tok(i)) {
			return false
		}
	}
	return true
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// readable returns the statement's text, with what was added behind its last token, as the grammar reads it: where
// backslashes escape in plain strings, those that have one become strings of as many letters. The others stay, whatever
// stands beside them: a statement and what is added to it may be read apart.
func (pl *planner) readable(text string) string {
	text = pl.versions.hidden(text)
	if !pl.session.Backslashes || !strings.Contains(text, `\`) {
		return text
	}
	toks, _ := pgtoken.Scan(nil, text, true)
	b := []byte(text)
	for _, t := range toks {
		if t.Kind != pgtoken.String || text[t.Start] != '\'' || !strings.Contains(text[t.Start:t.End], `\`) {
			continue
		}
		for i := t.Start + 1; i < t.End-1; i++ {
			b[i] = 'x'
		}
		if text[t.End-2] == '\\' {
			b[t.End-2] = '\\' // a pattern of LIKE may fail then
		}
	}
	return string(b)
}

// parse returns the tree of the only statement in a text. It never shares a tree.
func parse(text string) (tree ast.Stmt, err error) {
	defer rewrite.ParseSlot(len(text))()
	trees, err := pgtree.Parse(text)
	if err != nil || len(trees) != 1 {
		return nil, refusal(history.ReasonUnparsable)
	}
	return trees[0], nil
}

// nodes returns the items of a list that may be missing.
func nodes(l *ast.NodeList) []ast.Node {
	if l == nil {
		return nil
	}
	return l.Items
}

// clausesOf returns the clauses that may stand in a statement that reads or writes rows: WITH, and the list of
// RETURNING, which a SELECT does not have.
func clausesOf(s ast.Stmt) (with *ast.WithClause, returning *ast.NodeList) {
	switch n := s.(type) {
	case *ast.SelectStmt:
		return n.WithClause, nil
	case *ast.InsertStmt:
		return n.WithClause, n.ReturningList
	case *ast.UpdateStmt:
		return n.WithClause, n.ReturningList
	case *ast.DeleteStmt:
		return n.WithClause, n.ReturningList
	case *ast.MergeStmt:
		return n.WithClause, n.ReturningList
	}
	return nil, nil
}

// withOf returns the WITH clause of a statement; nil where it has none.
func withOf(s ast.Stmt) *ast.WithClause {
	with, _ := clausesOf(s)
	return with
}

// returningList returns the list of a statement's RETURNING; nil where it has none.
func returningList(s ast.Stmt) *ast.NodeList {
	_, list := clausesOf(s)
	return list
}

// bare takes the parentheses off an expression or a join.
func bare(n ast.Node) ast.Node {
	for {
		p, ok := n.(*ast.ParenExpr)
		if !ok {
			return n
		}
		n = p.Expr
	}
}
