package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// What the subqueries of a query in FROM, or of the WITH clause, read is shown beside the rows of the statement. So the
// query passes outwards what its subqueries name of its own tables, as it does its rows' identities, and their copies
// have these names (ADR 62). In the query's own select list the copies would run for rows that the statement leaves
// out, and MySQL would not make such a query a part of the statement.

// A carried is a column that a query passes outwards since its subqueries name it.
type carried struct {
	name  string // the same in all queries around
	value string // as the query itself spells it
	of    *ast.SelectStmt
	used  bool // a copy has it
}

// lookOutwards finds out how the subqueries of a query in FROM can be run again beside the statement's rows. It reports
// whether that is so for all of them.
func (pl *planner) lookOutwards(b *block) bool {
	n, top := b.n, pl.alone
	if top == nil || n == top || top.LockInfo != nil || n.LockInfo != nil || !pl.readsAgain(top) {
		return false
	}
	rest := &usage{}
	for _, part := range []ast.Node{n.GroupBy, n.Having, n.OrderBy, n.From} {
		if !missing(part) {
			part.Accept(rest)
		}
	}
	if rest.subquery {
		return false
	}
	names := &namesAround{pl: pl, b: b, as: make(map[int]renaming)}
	at := pl.whereOf(n)
	asked, ok := names.findListed()
	if !ok || n.Where != nil && (at.empty() || !names.find(n.Where, at, nil)) {
		return false
	}
	pl.renamed = names
	defer func() { pl.renamed = nil }()
	found, ok := pl.lookInList(b, asked)
	if !ok {
		return false
	}
	if n.Where != nil {
		where, ok := pl.lookInWhere(b, at)
		if found = append(found, where...); !ok || len(pl.besides)+len(found) > maxBesideColumns {
			return false
		}
	}
	for _, c := range found {
		c.rowsOf = n
	}
	if pl.copiesLimits(found) || pl.nesting.optional && !names.whereThere(found) {
		return false
	}
	b.carries = slices.DeleteFunc(names.columns, func(c carried) bool { return !c.used })
	pl.besides, pl.literal = append(pl.besides, found...), true
	return true
}

// whereThere has columns show something only where there is a row of the block, which may be missing in a row of the
// statement. It reports whether that is so for all: what hangs on no row may have run without one.
func (f *namesAround) whereThere(found []*besides) bool {
	at := slices.IndexFunc(f.b.srcs, func(s *source) bool { return s.table != nil && !s.outer })
	if len(found) == 0 {
		return true
	}
	if at < 0 || slices.ContainsFunc(found, func(c *besides) bool { return c.whole }) || f.pl.checkSpelling(f.b.srcs[at].name) != nil {
		return false
	}
	there := carried{name: f.pl.columnName(), value: quoted(f.b.srcs[at].name) + "." + rewrite.RowIDColumn, of: f.b.n, used: true}
	f.columns = append(f.columns, there)
	for _, c := range found {
		missing := []Piece{text(there.name + " IS NULL")}
		if c.decided != nil {
			missing = slices.Concat([]Piece{text("(")}, c.decided, []Piece{text(") OR ")}, missing)
		}
		c.decided = missing
	}
	return true
}

// lookInList returns the columns that show what the subqueries of a block's select list read, in items of these names.
func (pl *planner) lookInList(b *block, asked []string) ([]*besides, bool) {
	links, arms, ok := pl.listed(b)
	if !ok || len(asked) > 0 && b.grouped {
		return nil, false
	}
	found, ok := pl.lookAll(links, arms, b)
	for _, c := range found {
		c.asked = asked
	}
	return found, ok
}

// lookInWhere returns the columns that show what the subqueries of a block's condition read, the tokens at.
func (pl *planner) lookInWhere(b *block, at span) ([]*besides, bool) {
	links, arms, ok := pl.hanging(b.n.Where, at, b)
	if !ok || len(arms) > 0 && b.grouped {
		return nil, false
	}
	return pl.lookAll(links, arms, b)
}

// lookAll returns the columns that show what the subqueries of a block read.
func (pl *planner) lookAll(links []link, arms []alternative, b *block) ([]*besides, bool) {
	var found []*besides
	for i := range links {
		columns, ok := pl.look(&links[i], b)
		if !ok {
			return nil, false
		}
		found = append(found, columns...)
	}
	decided, ok := pl.lookIntoArms(arms, b, false)
	found = append(found, decided...)
	return found, ok && len(pl.besides)+len(found) <= maxBesideColumns
}

// whereOf returns the tokens of a query's condition; none where they are not certain.
func (pl *planner) whereOf(n *ast.SelectStmt) span {
	verb := pl.armVerb(n)
	if verb < 0 {
		return span{}
	}
	at, ok := pl.clauseSpans(n, verb, pl.endOf(verb))
	if !ok || at.where < 0 {
		return span{}
	}
	return span{at.where + 1, at.end}
}

// endOf returns the token behind the query that begins at one.
func (pl *planner) endOf(verb int) int {
	end := verb
	for end <= pl.st.last() && pl.st.Tokens[end].Depth >= pl.st.Tokens[verb].Depth {
		end++
	}
	return end
}

// stopUnasked gives up what subqueries in the select lists of a block's sources read, where the block need not ask for
// their values, and reports whether there are such.
func (pl *planner) stopUnasked(b *block) bool {
	before := len(pl.besides)
	for _, s := range b.srcs {
		pl.besides = slices.DeleteFunc(pl.besides, func(c *besides) bool {
			return s.rows != nil && c.rowsOf == s.rows && slices.ContainsFunc(c.asked, func(name string) bool {
				return b.n != pl.alone || b.grouped || s.query == nil || !showsColumnOf(b, s, name)
			})
		})
	}
	return len(pl.besides) < before
}

// showsColumnOf reports whether a block's select list surely has a column of a source.
func showsColumnOf(b *block, s *source, name string) bool {
	return slices.ContainsFunc(b.n.Fields.Fields, func(f *ast.SelectField) bool {
		if f.WildCard != nil {
			return f.WildCard.Table.L == "" || strings.EqualFold(f.WildCard.Table.O, s.name)
		}
		c, ok := f.Expr.(*ast.ColumnNameExpr)
		return ok && c.Name.Name.L == name && (strings.EqualFold(c.Name.Table.O, s.name) || c.Name.Table.O == "" && len(b.srcs) == 1)
	})
}

// groupCarried has what subqueries of the queries read that pass columns outwards stand beside the groups of a block.
// It reports whether it has left out some, which cannot.
func (pl *planner) groupCarried(b *block) bool {
	columns, before := b.passOn(), len(pl.besides)
	pl.besides = slices.DeleteFunc(pl.besides, func(c *besides) bool {
		return c.rowsOf != nil && c.whole && c.decided != nil // a row that came to it is among others in its group
	})
	if len(pl.besides) < before {
		return true
	}
	if b.n != pl.alone || hidesGroups(b.n) || !pl.nestsArrays(b.n) {
		return pl.stopCarrying(columns)
	}
	for _, c := range pl.besides {
		if slices.ContainsFunc(columns, func(of carried) bool { return of.of == c.rowsOf }) {
			pl.nest(c, b)
		}
	}
	return false
}

// stopCarrying gives up what subqueries of the queries read that pass columns outwards, where each row of theirs is not
// one of the statement's, and reports whether there are such.
func (pl *planner) stopCarrying(columns []carried) bool {
	before := len(pl.besides)
	pl.besides = slices.DeleteFunc(pl.besides, func(c *besides) bool {
		return !c.whole && slices.ContainsFunc(columns, func(of carried) bool { return of.of == c.rowsOf })
	})
	return len(pl.besides) < before
}

// passOn returns the columns that a block's sources pass outwards, and which it passes on.
func (b *block) passOn() (all []carried) {
	for _, s := range b.srcs {
		all = append(all, s.carries...)
	}
	return all
}

// A renaming is what stands in a copy in the place of some tokens that name a column.
type renaming struct {
	to   int // the token behind them
	name string
}

// namesAround finds the columns of a block that its subqueries name, in the text.
type namesAround struct {
	pl      *planner
	b       *block
	as      map[int]renaming // by the first token
	columns []carried
}

// find looks through an expression, the tokens at, within subqueries that have these tables. It reports whether each
// name's meaning is certain.
func (f *namesAround) find(e ast.Node, at span, within []sources) bool {
	var names columnNames
	e.Accept(&names)
	spans := make([]span, len(names.queries))
	for i, q := range names.queries {
		n, ok := q.Query.(*ast.SelectStmt)
		if !ok || n.With != nil || n.Kind != ast.SelectStmtKindSelect {
			return false
		}
		verb := f.pl.verbOf(n)
		if verb < 0 || f.pl.st.group(verb-1) < 0 {
			return false
		}
		spans[i] = span{verb, f.pl.st.group(verb - 1)}
		var own sources
		if n.From != nil {
			if own = flatten(n.From.TableRefs); !f.pl.baseSources(own) || !f.pl.sameOutside(own) {
				return false
			}
		}
		if !f.within(n, spans[i], append(within[:len(within):len(within)], own)) {
			return false
		}
	}
	counts := make(map[string]int)
	for _, name := range names.all {
		counts[nameKey(name.Table.L, name.Name.L)]++
	}
	for _, name := range names.all {
		key := nameKey(name.Table.L, name.Name.L)
		if name.Schema.L != "" || counts[key] > 0 && !f.rename(name, at, spans, within, counts[key]) {
			return false
		}
		counts[key] = 0
	}
	return true
}

// findListed looks through the block's select list. It returns the names of the items that have subqueries, and reports
// whether each name's meaning is certain.
func (f *namesAround) findListed() (asked []string, ok bool) {
	for i, field := range f.b.n.Fields.Fields {
		if field.Expr == nil || !hasSubquery(field.Expr) {
			continue
		}
		if i >= len(f.b.list) || field.AsName.L == "" || !f.find(field.Expr, span{f.b.list[i].first, f.b.list[i].last + 1}, nil) {
			return nil, false
		}
		asked = append(asked, field.AsName.L)
	}
	return asked, true
}

// within looks through a subquery.
func (f *namesAround) within(n *ast.SelectStmt, at span, within []sources) bool {
	if n.GroupBy != nil || n.Having != nil || n.OrderBy != nil {
		for _, field := range n.Fields.Fields {
			if field.AsName.L != "" {
				return false // a name there may be the item's
			}
		}
	}
	return f.find(n, at, within)
}

// rename takes note of the places of a name if it is a column of the block, of which there must be so many.
func (f *namesAround) rename(name *ast.ColumnName, at span, but []span, within []sources, count int) bool {
	for _, own := range within {
		if name.Table.L != "" && own.named(name.Table.O) != nil || name.Table.L == "" &&
			slices.ContainsFunc(own, func(s *source) bool { return s.table.ColumnInAnyCase(name.Name.O) != nil }) {
			return true
		}
	}
	c, as, ok := f.b.srcs.owner(name)
	if !ok || c.Generated || f.pl.checkSpelling(as, c.Name) != nil {
		return false
	}
	var parts []string
	if name.Table.L != "" {
		parts = append(parts, name.Table.L)
	}
	parts = append(parts, name.Name.L)
	for i := at.from; i < at.to; i++ {
		if s := slices.IndexFunc(but, func(s span) bool { return s.from <= i && i < s.to }); s >= 0 {
			i = but[s].to - 1
			continue
		}
		if to := f.pl.st.nameAt(i, parts); to > 0 {
			f.as[i] = renaming{to, f.carry(as, c)}
			count--
			i = to - 1
		}
	}
	return count == 0
}

// carry returns the name under which the block passes a column outwards.
func (f *namesAround) carry(as string, c *Column) string {
	value := quoted(as) + "." + quoted(c.Name)
	for _, known := range f.columns {
		if known.value == value {
			return known.name
		}
	}
	f.columns = append(f.columns, carried{name: f.pl.columnName(), value: value, of: f.b.n})
	return f.columns[len(f.columns)-1].name
}

// use takes note that a copy has a name.
func (f *namesAround) use(name string) {
	for i := range f.columns {
		f.columns[i].used = f.columns[i].used || f.columns[i].name == name
	}
}

// nameAt returns the token behind the name that begins at token i, if it is made of these parts and no more; 0
// otherwise.
func (st *statement) nameAt(i int, parts []string) int {
	if st.mark(i-1, ".") {
		return 0
	}
	for k, part := range parts {
		if k > 0 {
			if !st.mark(i, ".") {
				return 0
			}
			i++
		}
		if i >= len(st.Tokens) || !st.isName(i, part) {
			return 0
		}
		i++
	}
	if st.mark(i, ".") || st.mark(i, "(") {
		return 0
	}
	return i
}

// isName reports whether a token is a name, quoted or not.
func (st *statement) isName(i int, name string) bool {
	switch st.Tokens[i].Kind {
	case mysqltoken.Word, mysqltoken.Name:
		return strings.EqualFold(strings.Trim(st.tok(i), "`\""), name)
	}
	return false
}

func nameKey(table, name string) string { return table + "." + name }

// sameOutside reports whether the names of tables mean the same outside of all queries in FROM and of the WITH clause.
func (pl *planner) sameOutside(srcs sources) bool {
	with := pl.alone.With
	return with == nil || !slices.ContainsFunc(srcs, func(s *source) bool {
		return slices.ContainsFunc(with.CTEs, func(c *ast.CommonTableExpression) bool {
			return strings.EqualFold(c.Name.O, s.node.Source.(*ast.TableName).Name.O)
		})
	})
}

// columnNames collects the columns that an expression names outside of its subqueries, and these.
type columnNames struct {
	all     []*ast.ColumnName
	queries []*ast.SubqueryExpr
}

// Enter implements ast.Visitor.
func (v *columnNames) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.SubqueryExpr:
		v.queries = append(v.queries, n)
		return n, true
	case *ast.ColumnNameExpr:
		v.all = append(v.all, n.Name)
	}
	return n, false
}

// Leave implements ast.Visitor.
func (v *columnNames) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// spelled returns how a copy spells a column of the tables around.
func (pl *planner) spelled(as string, c *Column, around sources) string {
	if pl.renamed != nil && around.named(as) == pl.renamed.b.srcs.named(as) {
		name := pl.renamed.carry(as, c)
		pl.renamed.use(name)
		return name
	}
	return quoted(as) + "." + quoted(c.Name)
}

// renaming returns what stands in a copy in the place of the tokens from one on, if that is something else.
func (pl *planner) renaming(i int) (r renaming, ok bool) {
	if pl.renamed == nil {
		return r, false
	}
	if r, ok = pl.renamed.as[i]; ok {
		pl.renamed.use(r.name)
	}
	return r, ok
}
