package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"
)

// statement sees to the columns that a statement as a whole takes without naming them.
func (c *masking) statement() {
	switch n := c.tree.(type) {
	case *ast.InsertStmt:
		c.inserted(n)
	case *ast.CopyStmt:
		c.copied(n)
	case *ast.CreateStmt:
		c.created(n)
	}
}

// inserted has an INSERT without a list of columns name them. Where isotap's are the last that is needed only if
// it gives more values than the client's columns take.
func (c *masking) inserted(n *ast.InsertStmt) {
	if len(nodes(n.Cols)) > 0 || n.SelectStmt == nil {
		return
	}
	it := c.table(&ast.RangeVar{SchemaName: n.Relation.SchemaName, RelName: n.Relation.RelName,
		CatalogName: n.Relation.CatalogName, Inh: true})
	if !it.exposed() {
		return
	}
	values, known := c.width(n.SelectStmt)
	names := clientColumns(it.table)
	if slices.Equal(names, it.table.Stored[:len(names)]) && (!known || values <= len(names)) {
		return
	}
	if known && values < len(names) {
		names = names[:values]
	}
	at := c.st.find(0, "INTO") + 1
	at = c.st.lastOfName(at)
	if c.st.is(at+1, "AS") {
		at += 2
	}
	c.insertList(at, names, func(list *ast.NodeList) { n.Cols = list })
}

// clientColumns are a table's columns without isotap's.
func clientColumns(t *Table) []string {
	names := make([]string, len(t.Columns))
	for i, column := range t.Columns {
		names[i] = column.Name
	}
	return names
}

// width is how many values each row of an INSERT's source has, where that can be told.
func (c *masking) width(source ast.Node) (int, bool) {
	q, ok := source.(*ast.SelectStmt)
	for ok && q.Op != ast.SETOP_NONE {
		q = q.Larg
	}
	if !ok || q == nil {
		return 0, false
	}
	list := q.TargetList
	if rows := nodes(q.ValuesLists); len(rows) > 0 {
		list, _ = rows[0].(*ast.NodeList)
	}
	c.push(nodes(q.FromClause)...)
	defer func() { c.scopes = c.scopes[:len(c.scopes)-1] }()
	n := 0
	for _, item := range nodes(list) {
		if t, ok := item.(*ast.ResTarget); ok {
			item = t.Val
		}
		_, ref := c.mark(item)
		if ref == nil {
			n++
			continue
		}
		names := fields(ref)
		items := c.scopes[len(c.scopes)-1].items
		if len(names) > 1 {
			it := c.qualified(names[:len(names)-1])
			if it == nil {
				return 0, false
			}
			items = items[:0:0]
			items = append(items, *it)
		}
		for _, it := range items {
			if it.table == nil {
				return 0, false
			}
			n += len(it.outputs)
		}
	}
	return n, true
}

// lastOfName returns the last token of the name at token i.
func (st *statement) lastOfName(i int) int {
	for st.mark(i+1, ".") {
		i += 2
	}
	return i
}

// insertList puts a list of columns behind token i.
func (c *masking) insertList(i int, names []string, change func(*ast.NodeList)) {
	text := " (" + listed(names) + ") "
	form, err := parse("INSERT INTO t" + text + "SELECT 1")
	if err != nil {
		c.visible = true
		return
	}
	list := form.(*ast.InsertStmt).Cols
	at := c.st.toks[i].End
	c.edits = append(c.edits, edit{start: at, end: at, text: text})
	c.changes = append(c.changes, func() { change(list) })
}

// copied has a COPY without a list of columns name them.
func (c *masking) copied(n *ast.CopyStmt) {
	if n.Relation == nil || len(nodes(n.Attlist)) > 0 {
		return
	}
	it := c.table(n.Relation)
	if !it.exposed() {
		return
	}
	at := 1
	if c.st.is(at, "BINARY") && !c.st.is(at+1, "FROM", "TO") && !c.st.mark(at+1, ".") {
		at++
	}
	var names []string
	list := ast.NewNodeList()
	for _, column := range it.table.Columns {
		if !column.Generated { // the server computes these when it reads the rows
			names = append(names, column.Name)
			list.Append(ast.NewString(column.Name))
		}
	}
	if len(names) > 0 {
		c.insertList(c.st.lastOfName(at), names, func(*ast.NodeList) { n.Attlist = list })
	}
}

// createsTagged reports whether the statement may create a table that is to carry isotap's columns.
func (pl *planner) createsTagged() bool {
	st, i := pl.st, 1
	if st.is(i, "UNLOGGED") {
		i++
	}
	return pl.rewriter.options.Columns && st.is(i, "TABLE")
}

// createsTemp reports whether the statement may create a temporary table in the place of one with isotap's columns.
func (pl *planner) createsTemp() bool {
	i := 1
	if pl.st.is(i, "LOCAL", "GLOBAL") {
		i++
	}
	return pl.rewriter.options.Columns && pl.st.is(i, "TEMP", "TEMPORARY") && pl.st.is(i+1, "TABLE")
}

// createsTemporary reports whether a table of this name is created in the session's temporary schema without TEMP. In
// the path, the server's own schema and the temporary one come first where the setting does not name them.
func (s *Session) createsTemporary(n *ast.RangeVar) bool {
	if n.SchemaName != "" {
		return isTemporary(n.SchemaName)
	}
	path := s.Path.Texts()
	switch {
	case len(path) == 0:
		return false
	case path[0] == "pg_catalog":
		return len(path) > 1 && isTemporary(path[1])
	}
	return isTemporary(path[0]) && (len(path) == 1 || path[1] != "pg_catalog" || path[0] == TemporarySchema)
}

// TemporarySchema is what SQL calls the session's own schema for temporary tables. In a path it stands for one that is
// not there yet: the session's first table there will make it.
const TemporarySchema = "pg_temp"

// isTemporary reports whether a schema is one for temporary tables.
func isTemporary(schema string) bool {
	return schema == TemporarySchema || strings.HasPrefix(schema, TemporarySchema+"_")
}

// created puts isotap's columns behind those of a table that is created. Partitions and what inherits have their
// parents' columns; a table made like another may have that one's.
func (c *masking) created(n *ast.CreateStmt) {
	if c.createsTemp() {
		c.plan.Schema.CreatedTemp = createdColumns(n)
		return
	}
	if !c.createsTagged() || c.session.createsTemporary(n.Relation) || len(nodes(n.InhRelations)) > 0 ||
		n.PartBound != nil || n.OfTypename != nil {
		return
	}
	names, told := []string{n.Relation.RelName}, !n.IfNotExists && !c.session.Nested
	for _, element := range nodes(n.TableElts) {
		switch e := element.(type) {
		case *ast.ColumnDef:
			if isOurs(e.Colname) {
				return
			}
			names, told = append(names, e.Colname), told && !generated(e)
		case *ast.TableLikeClause:
			told = false
			if it := c.table(e.Relation); it.table == nil || it.exposed() {
				return
			}
		}
	}
	opening := c.st.find(0, "TABLE") + 1
	if c.st.is(opening, "IF") {
		opening += 3
	}
	opening = c.st.lastOfName(opening) + 1
	closing := c.st.closing(opening)
	if !c.st.mark(opening, "(") || closing < 0 {
		return
	}
	text := RowIDDefinition(c.session.Version) + ", " + WListDefinition(c.rewriter.options.WListBytes)
	form, err := parse("CREATE TABLE t (" + text + ")")
	if err != nil {
		return
	}
	if closing > opening+1 {
		text = ", " + text
	}
	at := c.st.toks[closing].Start
	c.edits = append(c.edits, edit{start: at, end: at, text: text})
	if told {
		c.plan.Schema.Created = names
	}
	c.changes = append(c.changes, func() {
		if n.TableElts == nil {
			n.TableElts = ast.NewNodeList()
		}
		n.TableElts.Items = append(n.TableElts.Items, nodes(form.(*ast.CreateStmt).TableElts)...)
	})
}

// createdColumns returns a table that is created and its columns, as in [SchemaEffect].Created; nil where the statement
// does not tell them all.
func createdColumns(n *ast.CreateStmt) []string {
	if n.IfNotExists || len(nodes(n.InhRelations)) > 0 || n.PartBound != nil || n.OfTypename != nil {
		return nil
	}
	names := []string{n.Relation.RelName}
	for _, element := range nodes(n.TableElts) {
		switch e := element.(type) {
		case *ast.ColumnDef:
			names = append(names, e.Colname)
		case *ast.TableLikeClause:
			return nil
		}
	}
	return names
}
