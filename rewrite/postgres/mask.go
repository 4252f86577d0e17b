package postgres

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/guard"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// PostgreSQL has no invisible columns. Where tables carry isotap's, a statement that takes all columns without naming
// them is made to name the client's, whether or not it is observed: what it then means is what its text would
// mean if isotap's columns were not there. The grammar's tree has no places, so the text is read with marks in the
// places of what may have to be replaced.

// markPrefix begins names that no client has.
const markPrefix = rewrite.CarriedPrefix + "mark_"

// A masking is a statement on its way to a text that names the client's columns only.
type masking struct {
	*planner
	tree   ast.Stmt
	ctes   map[string]bool         // names of common table expressions, anywhere in the statement
	marked map[string]int          // the marks' tokens
	listed map[*ast.ColumnRef]bool // marks that are items of lists
	scopes []scopeOf
	edits  []edit
	// changes make the marked tree what the text with its edits is to be read as.
	changes []func()
	// visible says that the client may see isotap's columns all the same.
	visible bool
}

// mask returns the statement without isotap's columns; nil where it means the same as it stands. It reports whether
// the client may see some of them all the same.
func (pl *planner) mask() (plain *statement, edits []edit, shows bool) {
	if !pl.takesColumns() {
		return nil, nil, false
	}
	if pl.session.Version >= 18 {
		if v := pl.st.versionNames(); v.to > 0 {
			return nil, nil, true
		}
	}
	c := &masking{planner: pl, ctes: make(map[string]bool), marked: make(map[string]int),
		listed: make(map[*ast.ColumnRef]bool)}
	if !c.look() {
		return nil, nil, c.visible
	}
	start, end := pl.st.span()
	slices.SortStableFunc(c.edits, func(a, b edit) int { return a.start - b.start })
	text := spliced(pl.st.text, start, end, c.edits)
	tree, err := parse(pl.readable(text))
	if err != nil || !pl.session.utf8() && !ascii(text) {
		return nil, nil, true
	}
	for _, change := range c.changes {
		change()
	}
	if !reflect.DeepEqual(tree, c.tree) {
		return nil, nil, true
	}
	toks, _ := pgtoken.Scan(nil, text, pl.session.Backslashes)
	return &statement{text: text, toks: toks}, c.edits, c.visible
}

// takesColumns reports whether the statement may take columns that it does not name, or creates a table.
func (pl *planner) takesColumns() bool {
	st := pl.st
	if st.is(0, "CREATE") && (pl.createsTagged() || pl.createsTemp()) {
		return true
	}
	if !pl.rewriter.exposes() && pl.session.Created == "" {
		return false
	}
	switch {
	case st.is(0, "COPY", "INSERT"):
		return true
	case !st.mark(0, "(") && !st.is(0, "SELECT", "UPDATE", "DELETE", "MERGE", "WITH", "VALUES", "TABLE", "DECLARE",
		"EXPLAIN", "PREPARE", "CREATE"):
		return false
	}
	return true
}

// look reads the statement with its marks, and finds what is to be replaced. It reports whether there is anything.
func (c *masking) look() (found bool) {
	if !guard.Whole(func() { found = c.find() }) {
		c.visible = true
	}
	return found
}

func (c *masking) find() bool {
	var err error
	if c.tree, err = parse(c.readable(c.marks())); err != nil {
		return false // the statement goes as it is, and the session looks at what it shows
	}
	pgtree.Each(func(n ast.Node) bool {
		if cte, ok := n.(*ast.CommonTableExpr); ok {
			c.ctes[cte.Ctename] = true
		}
		return true
	}, c.tree)
	if _, copies := c.tree.(*ast.CopyStmt); copies {
		// Nothing is taken out of the rows of a COPY later. What may have been changed most likely was not.
		c.session.AllUnsettled = c.session.manyNames()
	}
	c.statement()
	ast.Rewrite(c.tree, c.enter, c.leave)
	c.keepMarks()
	return len(c.edits) > 0
}

// marks returns the statement's text with marks in it.
func (c *masking) marks() string {
	st := c.st
	start, end := st.span()
	var marks []edit
	add := func(i, to int, before, after string) {
		name := markPrefix + strconv.Itoa(i)
		c.marked[name] = i
		marks = append(marks, edit{start: st.toks[i].Start, end: to, text: before + name + after})
	}
	for i := range st.toks {
		switch {
		case st.isStar(i):
			add(i, st.toks[i].End, "", "")
		case st.isTable(i):
			add(i, st.toks[i].End, "SELECT ", " FROM")
		case st.is(i, "NATURAL"):
			if last := st.joined(i); last > 0 {
				marks = append(marks, edit{start: st.toks[i].Start, end: st.toks[i].End})
				name := markPrefix + strconv.Itoa(i)
				c.marked[name] = i
				marks = append(marks, edit{start: st.toks[last].End, end: st.toks[last].End, text: " USING (" + name +
					")"})
			}
		}
	}
	slices.SortStableFunc(marks, func(a, b edit) int { return a.start - b.start })
	return spliced(st.text, start, end, marks)
}

// isStar reports whether token i is a star that stands for columns.
func (st *statement) isStar(i int) bool {
	if !st.sign(i, "*") {
		return false
	}
	switch {
	case st.mark(i-1, "."), st.mark(i-1, ","), st.is(i-1, "SELECT", "ALL", "DISTINCT", "RETURNING"):
		return true
	case st.mark(i-1, ")"): // DISTINCT ON (...) *
		return i+1 == len(st.toks) || st.mark(i+1, ",") || st.mark(i+1, ")") || st.is(i+1, "FROM", "INTO")
	}
	return false
}

// isTable reports whether token i is the TABLE that stands for SELECT * FROM.
func (st *statement) isTable(i int) bool {
	if !st.is(i, "TABLE") {
		return false
	}
	if _, name := st.ident(i + 1); !name {
		return false
	}
	switch {
	case i == 0, st.is(i-1, "UNION", "EXCEPT", "INTERSECT", "ALL", "FOR"):
		return true
	case st.is(i-1, "AS"): // CREATE VIEW v AS TABLE t, not DROP ... AS
		return st.is(0, "CREATE", "PREPARE")
	case st.mark(i-1, "("):
		return !st.is(i-2, "FUNCTION")
	case st.mark(i-1, ")"):
		return st.is(0, "WITH", "INSERT", "EXPLAIN")
	}
	return st.is(0, "EXPLAIN") && st.is(i-1, "EXPLAIN", "ANALYZE", "VERBOSE") || st.is(0, "INSERT") && i > 2
}

// joined returns the last token of what a NATURAL at token i joins, its alias with it; -1 where it is not clear.
func (st *statement) joined(i int) int {
	for i++; st.is(i, "INNER", "LEFT", "RIGHT", "FULL", "OUTER"); {
		i++
	}
	if !st.is(i, "JOIN") {
		return -1
	}
	for i++; st.is(i, "LATERAL", "ONLY"); {
		i++
	}
	if st.mark(i, "(") {
		if i = st.closing(i); i < 0 {
			return -1
		}
	} else {
		for st.mark(i+1, ".") {
			i += 2
		}
		if st.mark(i+1, "(") { // a function
			return -1
		}
	}
	if st.sign(i+1, "*") {
		i++
	}
	if st.is(i+1, "AS") {
		i += 2
	} else if _, alias := st.ident(i + 1); alias &&
		!st.is(i+1, "NATURAL", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "WHERE", "GROUP", "HAVING",
			"WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR", "UNION", "EXCEPT", "INTERSECT", "ON", "USING",
			"TABLESAMPLE", "SET", "RETURNING", "WHEN") {
		i++
	}
	if st.mark(i+1, "(") {
		i = st.closing(i + 1)
	}
	return i
}

// mark returns the token of the mark in a reference's last place; -1 where there is none.
func (c *masking) mark(n ast.Node) (int, *ast.ColumnRef) {
	ref, ok := n.(*ast.ColumnRef)
	if !ok {
		return -1, nil
	}
	all := nodes(ref.Fields)
	s, ok := all[len(all)-1].(*ast.String)
	if !ok || !strings.HasPrefix(s.SVal, markPrefix) {
		return -1, nil
	}
	at, ok := c.marked[s.SVal]
	if !ok {
		return -1, nil
	}
	return at, ref
}

// keepMarks makes the marks that were left stars again. One that is no item of a list takes a whole row.
func (c *masking) keepMarks() {
	pgtree.Each(func(n ast.Node) bool {
		if at, ref := c.mark(n); at >= 0 {
			c.changes = append(c.changes, func() {
				all := ref.Fields.Items
				all[len(all)-1] = ast.NewA_Star(0)
			})
		}
		return true
	}, c.tree)
}

// moved returns edits that stand so many bytes further.
func moved(edits []edit, by int) []edit {
	out := slices.Clone(edits)
	for i := range out {
		out[i].start += by
		out[i].end += by
	}
	return out
}

// composed returns the edits that make of a text what the first edits and then the later ones, which count in the
// text that the first ones leave, make of it.
func composed(first, later []edit) []edit {
	out := slices.Clone(first)
	type span struct{ at, len int } // of the inserted texts, in the text that the first edits leave
	spans := make([]span, len(first))
	grown := 0
	for i, e := range first {
		spans[i] = span{e.start + grown, len(e.text)}
		grown += len(e.text) - (e.end - e.start)
	}
	original := func(pos int) int { // of a place outside of the inserted texts
		back := 0
		for i, s := range spans {
			if s.at+s.len <= pos {
				back = s.at + s.len - first[i].end
			}
		}
		return pos - back
	}
	added := make([]int, len(first)) // bytes by which the inserted texts have grown
	for _, e := range later {
		i := slices.IndexFunc(spans, func(s span) bool { return s.len > 0 && s.at <= e.start && e.end <= s.at+s.len })
		if i < 0 {
			out = append(out, edit{start: original(e.start), end: original(e.end), text: e.text})
			continue
		}
		from := e.start - spans[i].at + added[i]
		out[i].text = out[i].text[:from] + e.text + out[i].text[from+e.end-e.start:]
		added[i] += len(e.text) - (e.end - e.start)
	}
	slices.SortStableFunc(out, func(a, b edit) int { return a.start - b.start })
	return out
}
