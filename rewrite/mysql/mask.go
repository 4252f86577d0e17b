package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
	"github.com/isotap/isotap/sqltoken/shape"
)

// mask makes the edits by which a statement means what it would mean without isotap's columns, on a
// server where they are columns like any other (TiDB): stars become lists of the client's columns,
// INSERT gets the list that the client left out, NATURAL JOIN becomes USING. It does so for statements
// that isotap cannot observe too, whatever the reason. What it does not find its way through stays as
// the client wrote it; isotap's columns are then taken out of the reply by their names.
func (pl *planner) mask(reason history.Reason) {
	if pl.session.Dialect != TiDB || !pl.st.mayExpose() {
		return
	}
	switch reason {
	case history.Reason{}, history.ReasonExecutableComment, history.ReasonSeveralStatements, history.ReasonOwnVariable:
	default:
		return // the text cannot be trusted to be what it looks like, or is too much for recursion
	}
	trees, err := pl.parseAll()
	if err != nil {
		return
	}
	c := &masker{pl: pl}
	for _, tree := range trees {
		tree.Accept(c)
	}
	c.naturalJoins()
	if len(trees) == 1 { // else where a query ends is not certain
		for _, n := range c.queries {
			c.keepNames(n)
		}
	}
	pl.plan.Upstream.ListsColumns = len(pl.edits) > 0
}

// mayExpose reports whether the statement holds anything that depends on which columns a table has.
func (st *statement) mayExpose() bool {
	for i := range st.Tokens {
		if st.mark(i, "*") || st.is(i, "INSERT", "REPLACE", "NATURAL", "TABLE", "LOAD", "PREPARE") {
			return true
		}
	}
	return false
}

// A masker visits a statement. It looks at a query when it leaves it: by then the names of the WITH
// clauses around it are known.
type masker struct {
	pl      *planner
	ctes    []*ast.CommonTableExpression // whose names hold, the innermost last
	scopes  []int                        // for each query around the node, where its own begin
	natural []naturalJoin                // in the order of the text
	queries []*ast.SelectStmt            // all that there are
	unasked []*ast.SelectStmt            // of whose columns nobody asks: behind EXISTS. Their text may name the client's
	inserts int                          // the token to look for the next INSERT from
}

func (c *masker) edit(start, end int, insert string) {
	c.pl.edits = append(c.pl.edits, edit{start: start, end: end, pieces: []Piece{text(insert)}, plain: true})
}

// Enter implements ast.Visitor.
func (c *masker) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.SelectStmt, *ast.SetOprStmt, *ast.UpdateStmt, *ast.DeleteStmt:
		c.scopes = append(c.scopes, len(c.ctes))
	case *ast.CommonTableExpression:
		if n.IsRecursive {
			c.ctes = append(c.ctes, n)
		}
	case *ast.ExistsSubqueryExpr:
		if query, ok := subqueryOf(n.Sel); ok && query.GroupBy == nil {
			c.unasked = append(c.unasked, query)
		}
	case *ast.InsertStmt:
		c.insertList(n)
	case *ast.LoadDataStmt:
		c.loadList(n)
	case *ast.PrepareStmt:
		c.prepared(n)
	case *ast.Join:
		if n.NaturalJoin {
			c.enterNatural(n)
			return n, true
		}
	}
	return n, false
}

// Leave implements ast.Visitor.
func (c *masker) Leave(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.CommonTableExpression:
		if !n.IsRecursive {
			c.ctes = append(c.ctes, n)
		}
	case *ast.SelectStmt:
		c.stars(n)
		c.queries = append(c.queries, n)
		c.leaveScope()
	case *ast.SetOprStmt, *ast.UpdateStmt, *ast.DeleteStmt:
		c.leaveScope()
	}
	return n, true
}

func (c *masker) leaveScope() {
	last := len(c.scopes) - 1
	c.ctes = c.ctes[:c.scopes[last]]
	c.scopes = c.scopes[:last]
}

// exposed finds the table that a name means, if the server shows isotap's columns of it. A common table
// expression or a temporary table may have its name.
func (c *masker) exposed(n *ast.TableName) *Table {
	if c.cte(n) != nil {
		return nil
	}
	schema := c.schema(n)
	if c.pl.session.hasTempTable(schema, n.Name.O) {
		return nil
	}
	if t := c.pl.rewriter.schema.Table(schema, n.Name.O); t != nil && t.Exposed {
		return t
	}
	return nil
}

// schema returns the schema that a table's name is looked up in.
func (c *masker) schema(n *ast.TableName) string {
	if n.Schema.O != "" {
		return n.Schema.O
	}
	return c.pl.session.Schema
}

func (c *masker) cte(n *ast.TableName) *ast.CommonTableExpression {
	if n.Schema.O != "" {
		return nil
	}
	for _, e := range slices.Backward(c.ctes) {
		if e.Name.L == n.Name.L {
			return e
		}
	}
	return nil
}

// insertList gives INSERT and REPLACE the list of columns that the client left out.
func (c *masker) insertList(n *ast.InsertStmt) {
	st := c.pl.st
	for c.inserts < len(st.Tokens) && (!st.is(c.inserts, "INSERT", "REPLACE") || st.mark(c.inserts+1, "(")) {
		c.inserts++ // the functions of these names are followed by a parenthesis
	}
	i := c.inserts + 1
	c.inserts = i
	name, err := onlyTable(n.Table, history.ReasonUnparsable)
	if err != nil || len(n.Columns) > 0 || n.Setlist || len(n.Lists) > 0 && len(n.Lists[0]) == 0 {
		return
	}
	t := c.exposed(name)
	if t == nil || c.pl.checkSpelling(visibleColumns(t)...) != nil {
		return
	}
	for st.is(i, "LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO") {
		i++
	}
	if i = c.behindName(i, name); i < 0 || i > st.last() || st.mark(i, "(") && st.mark(i+1, ")") {
		return
	}
	pos := st.Tokens[i].Start
	c.edit(pos, pos, "("+quotedList(visibleColumns(t)))
	c.edit(pos, pos, ") ")
}

// behindName returns the token behind the table's name at token i, and behind its partitions; -1 if the
// name is not there.
func (c *masker) behindName(i int, n *ast.TableName) int {
	st := c.pl.st
	if st.mark(i+1, ".") {
		i += 2
	}
	if i >= len(st.Tokens) || unquoted(st.tok(i)) != n.Name.O {
		return -1
	}
	if i++; st.is(i, "PARTITION") {
		i = st.group(i+1) + 1
	}
	return i
}

// extendList puts isotap's columns into the list that insertList made at pos, if it made one.
func (pl *planner) extendList(pos int) bool {
	i := slices.IndexFunc(pl.edits, func(e edit) bool { return e.plain && e.start == pos && e.end == pos })
	if i < 0 {
		return false
	}
	pl.edits = slices.Insert(pl.edits, i+1, edit{start: pos, end: pos,
		pieces: []Piece{text(", " + rewrite.RowIDColumn + ", " + rewrite.WListColumn)}})
	return true
}

// loadList gives LOAD DATA the list of columns that the client left out.
func (c *masker) loadList(n *ast.LoadDataStmt) {
	t, st := c.exposed(n.Table), c.pl.st
	if t == nil || len(n.ColumnsAndUserVars) > 0 || c.pl.checkSpelling(visibleColumns(t)...) != nil ||
		len(st.split()) > 1 || st.executable() >= 0 { // of what such a comment holds there are no tokens
		return
	}
	pos, gap := c.pl.after(st.last())
	if i := st.find(0, len(st.Tokens), 0, "SET", "WITH"); i >= 0 {
		if st.is(i-1, "CHARACTER", "CHAR") {
			i = st.find(i+1, len(st.Tokens), 0, "SET", "WITH")
		}
		if i >= 0 {
			pos, gap = st.Tokens[i].Start, " "
		}
	}
	c.edit(pos, pos, " ("+quotedList(visibleColumns(t))+")"+gap)
}

// prepared masks isotap's columns in the statement that PREPARE ... FROM has as a string.
func (c *masker) prepared(n *ast.PrepareStmt) {
	st := c.pl.st
	last := st.last()
	if n.SQLVar != nil || st.Tokens[last].Kind != mysqltoken.String ||
		shape.MarkOfString(st.tok(last)) != shape.StringMark {
		return
	}
	from, to := st.Tokens[last].Start+1, st.Tokens[last].End-1
	inner := c.pl.rewriter.Plan(st.SQL[from:to], *c.pl.session)
	if inner.Upstream.Plain == "" || strings.Contains(inner.Upstream.Plain, st.SQL[from-1:from]) ||
		strings.Contains(inner.Upstream.Plain, `\`) {
		return
	}
	c.edit(from, to, inner.Upstream.Plain)
}

// quotedList returns names between backticks, with commas.
func quotedList(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoted(n))
	}
	return b.String()
}

// asFunctions returns pieces of isotap's in which variables are read and assigned by the functions that
// TiDB itself makes of them: GETVAR('x') for @x and SETVAR('x', y) for @x := y. As variables they would
// keep the plan of a prepared statement out of TiDB's cache, which it says in a warning to the client.
func asFunctions(pieces []Piece) []Piece {
	var w variableWriter
	out := make([]Piece, len(pieces))
	for i, p := range pieces {
		if out[i] = p; p.Hole == NoHole {
			out[i].Text = w.write(p.Text)
		}
	}
	return out
}

// A variableWriter rewrites a text that comes in parts.
type variableWriter struct {
	depth int   // of parentheses
	open  []int // the depths at which a SETVAR is to be closed
}

func (w *variableWriter) write(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\'', '`':
			end := i + 1 + strings.IndexByte(s[i+1:], s[i])
			b.WriteString(s[i:end])
			i = end
		case '(':
			w.depth++
		case ')', ',':
			w.close(&b)
			if s[i] == ')' {
				w.depth--
			}
		case '@':
			end := i + 1
			for end < len(s) && mysqltoken.IsWord(s[end]) {
				end++
			}
			rest, assigned := strings.CutPrefix(s[end:], " := ")
			function := "GETVAR('" + s[i+1:end] + "')"
			if assigned {
				function = "SETVAR('" + s[i+1:end] + "', "
				w.open = append(w.open, w.depth)
			}
			b.WriteString(function)
			i = len(s) - len(rest) - 1
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// close ends the assignments whose value ends here.
func (w *variableWriter) close(b *strings.Builder) {
	for n := len(w.open); n > 0 && w.open[n-1] == w.depth; n = len(w.open) {
		b.WriteByte(')')
		w.open = w.open[:n-1]
	}
}
