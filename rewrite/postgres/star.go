package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/rewrite"
)

// An output is a column that a FROM clause gives to a star, as it is referred to. One that a join has merged has no
// qualifier.
type output struct{ qualifier, name string }

func (o output) String() string {
	if o.qualifier == "" {
		return quoted(o.name)
	}
	return quoted(o.qualifier) + "." + quoted(o.name)
}

// An item is a relation of a FROM clause as stars see it.
type item struct {
	ref, schema string
	table       *Table   // that is known; nil for all others
	outputs     []output // of a table, or of a join that has a name
	joins       bool     // it is such a join, of tables that carry isotap's columns
	within      bool     // it is a query of the statement itself
}

// scopeOf is what names mean within a query or a statement that writes.
type scopeOf struct {
	items []item
	from  []ast.Node
	// versions are the names by which RETURNING tells old and new rows apart.
	versions []item
}

// enter looks at a node and what it brings into scope.
func (c *masking) enter(cursor *ast.Cursor) bool {
	switch n := cursor.Node().(type) {
	case *ast.SelectStmt:
		c.push(nodes(n.FromClause)...)
		c.list(n.TargetList)
	case *ast.InsertStmt:
		c.push(n.Relation)
		c.versions(n.Relation)
		c.list(n.ReturningList)
	case *ast.UpdateStmt:
		c.push(append([]ast.Node{n.Relation}, nodes(n.FromClause)...)...)
		c.versions(n.Relation)
		c.list(n.ReturningList)
	case *ast.DeleteStmt:
		c.push(append([]ast.Node{n.Relation}, nodes(n.UsingClause)...)...)
		c.versions(n.Relation)
		c.list(n.ReturningList)
	case *ast.MergeStmt:
		c.push(n.SourceRelation, n.Relation)
		c.versions(n.Relation)
		c.list(n.ReturningList)
	case *ast.RowExpr:
		c.list(n.Args)
	case *ast.NodeList:
		if _, values := cursor.Parent().(*ast.NodeList); values {
			c.list(n)
		}
	case *ast.JoinExpr:
		c.natural(n)
	case *ast.ColumnRef:
		c.reference(n)
	}
	return true
}

func (c *masking) leave(cursor *ast.Cursor) bool {
	switch cursor.Node().(type) {
	case *ast.SelectStmt, *ast.InsertStmt, *ast.UpdateStmt, *ast.DeleteStmt, *ast.MergeStmt:
		c.scopes = c.scopes[:len(c.scopes)-1]
	}
	return true
}

func (c *masking) push(from ...ast.Node) {
	s := scopeOf{from: from}
	for _, n := range from {
		s.items = c.items(n, s.items)
	}
	c.scopes = append(c.scopes, s)
}

// versions brings the names of old and new rows of a target into scope.
func (c *masking) versions(target *ast.RangeVar) {
	if c.session.Version < 18 {
		return
	}
	s := &c.scopes[len(c.scopes)-1]
	for _, ref := range []string{"old", "new"} {
		it := c.table(target)
		it.ref, it.schema = ref, ""
		it.outputs = slices.Clone(it.outputs)
		for i := range it.outputs {
			it.outputs[i].qualifier = ref
		}
		s.versions = append(s.versions, it)
	}
}

// items adds the relations of a part of a FROM clause, in the order of the text.
func (c *masking) items(n ast.Node, found []item) []item {
	switch n := bare(n).(type) {
	case *ast.RangeVar:
		return append(found, c.table(n))
	case *ast.JoinExpr:
		if n.Alias != nil {
			return append(found, c.aliased(n))
		}
		return c.items(n.Rarg, c.items(n.Larg, found))
	case *ast.RangeTableSample:
		return c.items(n.Relation, found)
	case *ast.RangeSubselect:
		return append(found, item{ref: aliasOf(n.Alias), within: true})
	case *ast.RangeFunction:
		return append(found, item{ref: functionRef(n)})
	case *ast.RangeTableFunc:
		return append(found, item{ref: aliasOf(n.Alias)})
	}
	return append(found, item{})
}

// aliased returns a join under its name. Columns of equal names cannot be told apart by it.
func (c *masking) aliased(n *ast.JoinExpr) item {
	it := item{ref: n.Alias.AliasName}
	inside := c.items(n.Rarg, c.items(n.Larg, nil))
	if !slices.ContainsFunc(inside, func(in item) bool { return in.exposed() }) {
		return it
	}
	unnamed := *n
	unnamed.Alias = nil
	outs, ok := c.outputs(&unnamed)
	seen := make(map[string]bool)
	for _, o := range outs {
		ok = ok && !seen[o.name]
		seen[o.name] = true
		it.outputs = append(it.outputs, output{it.ref, o.name})
	}
	if !ok || len(nodes(n.Alias.ColNames)) > 0 {
		c.visible = true
		return item{ref: it.ref}
	}
	it.joins = true
	return it
}

// table returns a table as stars see it.
func (c *masking) table(n *ast.RangeVar) item {
	it := item{ref: n.RelName, schema: n.SchemaName}
	if n.Alias != nil {
		it.ref, it.schema = n.Alias.AliasName, ""
	}
	if it.within = n.SchemaName == "" && c.ctes[n.RelName]; it.within {
		return it
	}
	ctes := c.planner.ctes
	c.planner.ctes = nil
	it.table, _ = c.lookup(n)
	c.planner.ctes = ctes
	if it.table == nil {
		it.table = c.session.created(n)
	}
	if it.table == nil {
		return it
	}
	names := it.table.Stored
	if names == nil {
		for _, column := range it.table.Columns {
			names = append(names, column.Name)
		}
	}
	var aliases []ast.Node
	if n.Alias != nil {
		aliases = nodes(n.Alias.ColNames)
	}
	for i, name := range names {
		ours := it.table.Exposed && isOurs(name)
		if i < len(aliases) {
			alias, ok := aliases[i].(*ast.String)
			if c.visible = c.visible || ours || !ok; !ok {
				continue
			}
			name = alias.SVal
		}
		if !ours {
			it.outputs = append(it.outputs, output{it.ref, name})
		}
	}
	return it
}

// functionRef is the name by which columns of a function in a FROM clause are qualified: its own where it has no
// alias; empty where it is not known.
func functionRef(n *ast.RangeFunction) string {
	if n.Alias != nil || n.IsRowsFrom {
		return aliasOf(n.Alias)
	}
	for _, f := range nodes(n.Functions) {
		if list, ok := f.(*ast.NodeList); ok && len(list.Items) > 0 {
			f = list.Items[0]
		}
		if call, ok := f.(*ast.FuncCall); ok {
			names := nodes(call.Funcname)
			if s, ok := names[len(names)-1].(*ast.String); ok {
				return s.SVal
			}
		}
	}
	return ""
}

func isOurs(name string) bool { return name == rewrite.RowIDColumn || name == rewrite.WListColumn }

// unknown reports whether the relation may have columns of isotap's that nobody knows of.
func (it *item) unknown() bool { return it.table == nil && !it.joins && !it.within }

func (it *item) exposed() bool { return it.joins || it.table != nil && it.table.Exposed }

// list replaces the stars of a list that would show isotap's columns.
func (c *masking) list(list *ast.NodeList) {
	for _, n := range nodes(list) {
		value := n
		if t, ok := n.(*ast.ResTarget); ok {
			value = t.Val
		}
		at, ref := c.mark(value)
		if at < 0 {
			continue
		}
		c.listed[ref] = true
		names := fields(ref)
		text, ok := c.expansion(names[:len(names)-1])
		if !ok {
			continue
		}
		wanted, err := parse("SELECT " + text)
		if err != nil {
			c.visible = true
			continue
		}
		first := at - 2*(len(names)-1)
		c.replaceStar(first, at, text)
		c.changes = append(c.changes, func() { exchange(list, n, nodes(wanted.(*ast.SelectStmt).TargetList)) })
	}
}

// replaceStar puts columns in the place of a star's tokens. TABLE becomes a SELECT.
func (c *masking) replaceStar(first, at int, text string) {
	if c.st.is(at, "TABLE") {
		text = "SELECT " + text + " FROM"
	}
	c.edits = append(c.edits, edit{start: c.st.toks[first].Start, end: c.st.toks[at].End, text: text})
}

// exchange puts items in the place of one of a list's.
func exchange(list *ast.NodeList, old ast.Node, items []ast.Node) {
	at := slices.Index(list.Items, old)
	if _, targets := old.(*ast.ResTarget); !targets {
		for i, n := range items {
			items[i] = n.(*ast.ResTarget).Val
		}
	}
	list.Items = slices.Replace(list.Items, at, at+1, items...)
}

// expansion returns the columns that a star stands for, of which names are the qualifiers; not ok where it may stay.
func (c *masking) expansion(names []string) (string, bool) {
	if len(names) > 0 {
		it := c.qualified(names)
		if it == nil || !it.exposed() {
			c.plan.Schema.Open = c.plan.Schema.Open || it == nil || it.unknown()
			return "", false
		}
		return spelled(it.outputs, &c.visible)
	}
	s := c.scopes[len(c.scopes)-1]
	c.plan.Schema.Open = c.plan.Schema.Open || slices.ContainsFunc(s.items, func(it item) bool { return it.unknown() })
	if !slices.ContainsFunc(s.items, func(it item) bool { return it.exposed() }) {
		return "", false
	}
	if slices.ContainsFunc(s.from, merges) {
		var outs []output
		for _, n := range s.from {
			more, ok := c.outputs(n)
			if !ok {
				c.visible = true
				return "", false
			}
			outs = append(outs, more...)
		}
		if ambiguous(outs) {
			c.visible = true
			return "", false
		}
		return spelled(outs, &c.visible)
	}
	var lists []string
	for _, it := range s.items {
		switch {
		case it.exposed():
			if list, ok := spelled(it.outputs, &c.visible); ok {
				lists = append(lists, list)
			}
		case it.ref == "":
			c.visible = true
			return "", false
		default:
			lists = append(lists, quoted(it.ref)+".*")
		}
	}
	return strings.Join(lists, ", "), len(lists) > 0
}

// ambiguous reports whether a merged column's name is also that of another.
func ambiguous(outs []output) bool {
	count := make(map[string]int)
	for _, o := range outs {
		count[o.name]++
	}
	return slices.ContainsFunc(outs, func(o output) bool { return o.qualifier == "" && count[o.name] > 1 })
}

// spelled returns columns as a list. No column cannot be spelled.
func spelled(outs []output, visible *bool) (string, bool) {
	texts := make([]string, len(outs))
	for i, o := range outs {
		texts[i] = o.String()
	}
	*visible = *visible || len(outs) == 0
	return strings.Join(texts, ", "), len(outs) > 0
}

// qualified finds the relation that a qualifier names, innermost scope first.
func (c *masking) qualified(names []string) *item {
	for i := len(c.scopes) - 1; i >= 0; i-- {
		for _, it := range append(slices.Clone(c.scopes[i].items), c.scopes[i].versions...) {
			if it.ref == names[len(names)-1] &&
				(len(names) == 1 || it.table != nil && it.table.Name == strings.Join(names, ".")) {
				return &it
			}
		}
	}
	return nil
}

// outputs returns the columns that a star shows of a part of a FROM clause, isotap's left out; not ok when they cannot
// be told.
func (c *masking) outputs(n ast.Node) ([]output, bool) {
	switch n := bare(n).(type) {
	case *ast.RangeVar:
		it := c.table(n)
		return it.outputs, it.table != nil
	case *ast.RangeTableSample:
		return c.outputs(n.Relation)
	case *ast.JoinExpr:
		if n.Alias != nil || n.JoinUsingAlias != nil {
			return nil, false
		}
		left, ok := c.outputs(n.Larg)
		if !ok {
			return nil, false
		}
		right, ok := c.outputs(n.Rarg)
		if !ok {
			return nil, false
		}
		return c.merged(n, left, right), true
	}
	return nil, false
}

// merged returns the columns of a join: those that its sides share come first, and once.
func (c *masking) merged(n *ast.JoinExpr, left, right []output) []output {
	shared := c.shared(n, left, right)
	isShared := func(o output) bool { return slices.Contains(shared, o.name) }
	var outs []output
	for _, name := range shared {
		outs = append(outs, output{name: name}) // which may have another type than either side's
	}
	outs = append(outs, slices.DeleteFunc(slices.Clone(left), isShared)...)
	return append(outs, slices.DeleteFunc(slices.Clone(right), isShared)...)
}

// shared returns the names of the columns that a join merges.
func (c *masking) shared(n *ast.JoinExpr, left, right []output) []string {
	var names []string
	for _, u := range nodes(n.UsingClause) {
		s, ok := u.(*ast.String)
		if !ok {
			continue
		}
		if _, natural := c.marked[s.SVal]; !natural {
			names = append(names, s.SVal)
			continue
		}
		for _, l := range left {
			if slices.ContainsFunc(right, func(r output) bool { return r.name == l.name }) {
				names = append(names, l.name)
			}
		}
	}
	return names
}

// natural has a NATURAL JOIN of two tables that carry isotap's columns say which columns it means.
func (c *masking) natural(n *ast.JoinExpr) {
	using := nodes(n.UsingClause)
	if len(using) != 1 {
		return
	}
	s, ok := using[0].(*ast.String)
	if !ok {
		return
	}
	at, ok := c.marked[s.SVal]
	if !ok {
		return
	}
	keep := func() { n.IsNatural, n.UsingClause = true, nil }
	exposed := func(n ast.Node) bool {
		return slices.ContainsFunc(c.items(n, nil), func(it item) bool { return it.exposed() })
	}
	if !exposed(n.Larg) || !exposed(n.Rarg) {
		c.changes = append(c.changes, keep)
		return
	}
	left, ok1 := c.outputs(n.Larg)
	right, ok2 := c.outputs(n.Rarg)
	if !ok1 || !ok2 {
		c.visible = true
		c.changes = append(c.changes, keep)
		return
	}
	list, condition := c.shared(n, left, right), " ON (true)" // nothing in common
	if len(list) > 0 {
		condition = " USING (" + listed(list) + ")"
	}
	form, err := parse("SELECT FROM t JOIN u" + condition)
	if err != nil {
		c.visible = true
		return
	}
	c.changes = append(c.changes, func() {
		join := form.(*ast.SelectStmt).FromClause.Items[0].(*ast.JoinExpr)
		n.UsingClause, n.Quals = join.UsingClause, join.Quals
	})
	last := c.st.toks[c.st.joined(at)].End
	c.edits = append(c.edits, edit{start: c.st.toks[at].Start, end: c.st.toks[at].End},
		edit{start: last, end: last, text: condition})
}

// reference notices a reference to a whole row that has isotap's columns.
func (c *masking) reference(n *ast.ColumnRef) {
	names := fields(n)
	if at, _ := c.mark(n); at >= 0 && len(names) > 1 &&
		!c.listed[n] { // of a function, which takes the row as one value
		it := c.qualified(names[:len(names)-1])
		c.visible = c.visible || it != nil && it.exposed()
	}
	if len(names) != 1 {
		return
	}
	for i := len(c.scopes) - 1; i >= 0; i-- {
		for k := range c.scopes[i].items {
			it := &c.scopes[i].items[k]
			if slices.ContainsFunc(it.outputs, func(o output) bool { return o.name == names[0] }) {
				return
			}
			if it.ref == names[0] && it.exposed() {
				c.visible = true
			}
			if it.table == nil && !it.joins { // it may be a column of this one
				return
			}
		}
	}
}
