package footprint

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/sqltoken"
)

// define takes a definition into the schema.
func (mysqlReader) define(s *Schema, text string) error {
	if schema, table, is := triggered(text); is {
		t, err := s.alterable(schema, table)
		if err != nil {
			return err
		}
		t.Triggers = true
		return nil
	}
	tree, err := parseMySQL(text)
	if err != nil {
		return err
	}
	switch n := tree.(type) {
	case *ast.CreateTableStmt:
		t := &Table{Schema: n.Table.Schema.O, Name: n.Table.Name.O}
		defineMySQL(t, n.Cols, n.Constraints)
		s.Add(t)
	case *ast.AlterTableStmt:
		return alterMySQL(s, n)
	case *ast.CreateIndexStmt:
		if n.KeyType != ast.IndexKeyTypeUnique {
			return nil
		}
		t, err := s.alterable(n.Table.Schema.O, n.Table.Name.O)
		if err != nil {
			return err
		}
		t.addKey(keyColumns(n.IndexPartSpecifications), false)
	case *ast.CreateViewStmt:
		r := mysqlQuery{}
		q := r.read(n.Select)
		if r.err != nil {
			return r.err
		}
		s.Add(&Table{Schema: n.ViewName.Schema.O, Name: n.ViewName.Name.O, View: true, definition: q})
	}
	return nil
}

// triggered returns the table of CREATE TRIGGER, which TiDB's grammar does not have. The word is reserved: it is in no
// other definition.
func triggered(text string) (schema, table string, is bool) {
	tokens, err := sqltoken.Scan(dbms.MySQLFamily, text)
	if err != nil || !slices.ContainsFunc(tokens, func(t sqltoken.Token) bool { return t.Is("TRIGGER") }) {
		return "", "", false
	}
	on := slices.IndexFunc(tokens, func(t sqltoken.Token) bool { return t.Is("ON") })
	if on < 0 || on+1 >= len(tokens) {
		return "", "", false
	}
	name := func(t sqltoken.Token) string { return strings.ReplaceAll(strings.Trim(t.Text, "`"), "``", "`") }
	table = name(tokens[on+1])
	if on+3 < len(tokens) && tokens[on+2].Is(".") {
		schema, table = table, name(tokens[on+3])
	}
	return schema, table, true
}

func alterMySQL(s *Schema, n *ast.AlterTableStmt) error {
	t, err := s.alterable(n.Table.Schema.O, n.Table.Name.O)
	if err != nil {
		return err
	}
	for _, spec := range n.Specs {
		added := slices.Clone(spec.NewConstraints)
		if spec.Constraint != nil {
			added = append(added, spec.Constraint)
		}
		var columns []*ast.ColumnDef
		if spec.Tp == ast.AlterTableAddColumns {
			columns = spec.NewColumns
		}
		defineMySQL(t, columns, added)
	}
	return nil
}

func defineMySQL(t *Table, columns []*ast.ColumnDef, list []*ast.Constraint) {
	var keys constraints
	for _, c := range columns {
		defineMySQLColumn(t, &keys, c)
	}
	for _, c := range list {
		switch c.Tp {
		case ast.ConstraintPrimaryKey:
			keys.primary = keyColumns(c.Keys)
		case ast.ConstraintUniq, ast.ConstraintUniqKey, ast.ConstraintUniqIndex:
			keys.unique = append(keys.unique, keyColumns(c.Keys))
		case ast.ConstraintCheck:
			t.check(c.Expr)
		case ast.ConstraintForeignKey:
			t.refer(c.Name, keyColumns(c.Keys), c.Refer)
		}
	}
	keys.apply(t)
}

func defineMySQLColumn(t *Table, keys *constraints, c *ast.ColumnDef) {
	column := Column{Name: c.Name.Name.O,
		Text: slices.Contains([]byte{mysql.TypeVarchar, mysql.TypeString, mysql.TypeVarString, mysql.TypeBlob,
			mysql.TypeTinyBlob, mysql.TypeMediumBlob,
			mysql.TypeLongBlob, mysql.TypeEnum, mysql.TypeSet}, c.Tp.GetType())}
	column.Type, _, _ = strings.Cut(c.Tp.CompactStr(), "(")
	column.Size, column.Scale, column.Members = max(c.Tp.GetFlen(), 0), max(c.Tp.GetDecimal(), 0), c.Tp.GetElems()
	of := []string{column.Name}
	for _, o := range c.Options {
		switch o.Tp {
		case ast.ColumnOptionNotNull:
			column.NotNull = true
		case ast.ColumnOptionAutoIncrement:
			column.Counts = true
		case ast.ColumnOptionCheck:
			t.check(o.Expr)
		case ast.ColumnOptionPrimaryKey:
			keys.primary = of
		case ast.ColumnOptionUniqKey:
			keys.unique = append(keys.unique, of)
		case ast.ColumnOptionGenerated, ast.ColumnOptionOnUpdate:
			column.Derived = true
		case ast.ColumnOptionReference: // which InnoDB does not heed, but MariaDB does
			t.refer("", of, o.Refer)
		}
	}
	t.Columns = append(t.Columns, column)
}

// check adds a CHECK constraint.
func (t *Table) check(n ast.ExprNode) {
	r := mysqlQuery{}
	if checks := r.conditions(n); r.err == nil {
		t.checks = append(t.checks, checks...)
	}
}

// refer adds a foreign key.
func (t *Table) refer(name string, columns []string, to *ast.ReferenceDef) {
	acts := func(o ast.ReferOptionType) bool {
		return o == ast.ReferOptionCascade || o == ast.ReferOptionSetNull || o == ast.ReferOptionSetDefault
	}
	t.References = append(t.References, Reference{Name: name, Columns: columns,
		Parent:        qualified(to.Table.Schema.O, to.Table.Name.O),
		ParentColumns: keyColumns(to.IndexPartSpecifications), OnDelete: to.OnDelete != nil &&
			acts(to.OnDelete.ReferOpt), OnUpdate: to.OnUpdate != nil && acts(to.OnUpdate.ReferOpt)})
}

// keyColumns names the columns of a key; a part that is no whole column is an empty name.
func keyColumns(parts []*ast.IndexPartSpecification) []string {
	var names []string
	for _, p := range parts {
		name := ""
		if p.Column != nil && p.Length <= 0 {
			name = p.Column.Name.O
		}
		names = append(names, name)
	}
	return names
}
