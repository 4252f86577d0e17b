package footprint

import (
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"
)

// define takes a definition into the schema.
func (postgresReader) define(s *Schema, text string) error {
	tree, err := parsePostgres(text)
	if err != nil {
		return err
	}
	switch n := tree.(type) {
	case *ast.CreateStmt:
		t := &Table{Schema: n.Relation.SchemaName, Name: n.Relation.RelName}
		s.definePostgres(t, append(items(n.TableElts), constraintNodes(n.Constraints)...))
		s.Add(t)
	case *ast.CreateEnumStmt:
		if s.enums == nil {
			s.enums = map[string][]string{}
		}
		names := texts(n.TypeName)
		s.enums[names[len(names)-1]] = texts(n.Vals)
	case *ast.AlterTableStmt:
		return alterPostgres(s, n)
	case *ast.IndexStmt:
		if !n.Unique || n.WhereClause != nil {
			return nil
		}
		t, err := s.alterable(n.Relation.SchemaName, n.Relation.RelName)
		if err != nil {
			return err
		}
		var columns []string
		for _, e := range items(n.IndexParams) {
			columns = append(columns, e.(*ast.IndexElem).Name)
		}
		t.addKey(columns, false)
	case *ast.ViewStmt:
		r := postgresQuery{}
		q := r.read(n.Query)
		if r.err != nil {
			return r.err
		}
		s.Add(&Table{Schema: n.View.SchemaName, Name: n.View.RelName, View: true, definition: q})
	case *ast.CreateTriggerStmt:
		t, err := s.alterable(n.Relation.SchemaName, n.Relation.RelName)
		if err != nil {
			return err
		}
		t.Triggers = true
	}
	return nil
}

func constraintNodes(list []*ast.Constraint) []ast.Node {
	nodes := make([]ast.Node, len(list))
	for i, c := range list {
		nodes[i] = c
	}
	return nodes
}

func alterPostgres(s *Schema, n *ast.AlterTableStmt) error {
	t, err := s.alterable(n.Relation.SchemaName, n.Relation.RelName)
	if err != nil {
		return err
	}
	var added []ast.Node
	for _, c := range items(n.Cmds) {
		if cmd, ok := c.(*ast.AlterTableCmd); ok &&
			(cmd.Subtype == ast.AT_AddConstraint || cmd.Subtype == ast.AT_AddColumn) {
			added = append(added, cmd.Def)
		}
	}
	s.definePostgres(t, added)
	return nil
}

// definePostgres adds columns, and then the constraints, which name these.
func (s *Schema) definePostgres(t *Table, elements []ast.Node) {
	var keys constraints
	for _, e := range elements {
		if c, ok := e.(*ast.ColumnDef); ok {
			s.definePostgresColumn(t, &keys, c)
		}
	}
	for _, e := range elements {
		if c, ok := e.(*ast.Constraint); ok {
			constrainPostgres(t, &keys, c, nil)
		}
	}
	keys.apply(t)
}

func (s *Schema) definePostgresColumn(t *Table, keys *constraints, c *ast.ColumnDef) {
	column := Column{Name: c.Colname, NotNull: c.IsNotNull, Derived: c.Generated != 0}
	column.setPostgresType(c.TypeName)
	if column.Members = s.enums[column.Type]; column.Members != nil {
		column.Text = true
	}
	for _, n := range items(c.Constraints) {
		switch n, _ := n.(*ast.Constraint); {
		case n == nil:
		case n.Contype == ast.CONSTR_NOTNULL:
			column.NotNull = true
		case n.Contype == ast.CONSTR_GENERATED:
			column.Derived = true
		case n.Contype == ast.CONSTR_IDENTITY:
			column.Counts, column.Always = true, n.GeneratedWhen == 'a'
		default:
			constrainPostgres(t, keys, n, []string{c.Colname})
		}
	}
	t.Columns = append(t.Columns, column)
}

// constrainPostgres takes a constraint of a table, or of a column of it.
func constrainPostgres(t *Table, keys *constraints, c *ast.Constraint, column []string) {
	of := column
	if of == nil {
		of = texts(c.Keys)
	}
	switch c.Contype {
	case ast.CONSTR_CHECK:
		r := postgresQuery{}
		if checks := r.conditions(c.RawExpr); r.err == nil {
			t.checks = append(t.checks, checks...)
		}
	case ast.CONSTR_PRIMARY:
		keys.primary = of
	case ast.CONSTR_UNIQUE:
		keys.unique = append(keys.unique, of)
	case ast.CONSTR_FOREIGN:
		if column == nil {
			of = texts(c.FkAttrs)
		}
		t.References = append(t.References,
			Reference{Name: c.Conname, Columns: of, Parent: qualified(c.Pktable.SchemaName, c.Pktable.RelName),
				ParentColumns: texts(c.PkAttrs), OnDelete: writes(c.FkDelAction), OnUpdate: writes(c.FkUpdAction)})
	}
}

// writes reports whether a foreign key's action writes rows.
func writes(action byte) bool {
	return slices.Contains([]byte{ast.FKCONSTR_ACTION_CASCADE, ast.FKCONSTR_ACTION_SETNULL,
		ast.FKCONSTR_ACTION_SETDEFAULT}, action)
}

func qualified(schema, name string) string {
	if schema == "" {
		return name
	}
	return schema + "." + name
}

// setPostgresType sets a column's type.
func (c *Column) setPostgresType(n *ast.TypeName) {
	c.Type = strings.ToLower(typeName(n))
	c.Text = isText(c.Type)
	if n == nil {
		return
	}
	c.Array = len(items(n.ArrayBounds)) > 0
	c.Counts = strings.Contains(c.Type, "serial")
	for i, m := range items(n.Typmods) {
		size, err := strconv.Atoi(trimSymbol(constantOf(m), '='))
		switch {
		case err != nil:
		case i == 0:
			c.Size = size
		default:
			c.Scale = size
		}
	}
}

// constantOf reads a constant.
func constantOf(n ast.Node) *expr {
	var e expr
	if c, ok := n.(*ast.A_Const); ok {
		e = constant(c)
	}
	return &e
}

// typeName is the last part of a type's name.
func typeName(n *ast.TypeName) string {
	if n == nil {
		return ""
	}
	names := texts(n.Names)
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1]
}

// isText reports whether a type's values are texts.
func isText(typ string) bool {
	typ = strings.ToLower(typ)
	return strings.Contains(typ, "char") || strings.Contains(typ, "text") || typ == "name" ||
		strings.Contains(typ, "enum")
}

// items returns the nodes of a list that may be missing.
func items(l *ast.NodeList) []ast.Node {
	if l == nil {
		return nil
	}
	return l.Items
}

// texts returns the strings of a list of names.
func texts(l *ast.NodeList) []string {
	var names []string
	for _, n := range items(l) {
		if s, ok := n.(*ast.String); ok {
			names = append(names, s.SVal)
		}
	}
	return names
}
