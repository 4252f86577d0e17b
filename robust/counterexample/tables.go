package counterexample

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/footprint"
	"github.com/isotap/isotap/sqltoken"
)

// Tables are those that the programs use.
type Tables struct {
	family     dbms.Family
	statements []definition
	schema     *footprint.Schema
	plain      map[string]bool // names that are written without quotes
}

// NewTables reads definitions: those that programs were compiled with. What of them is not read is an error.
func NewTables(family dbms.Family, definitions string) (*Tables, error) {
	schema, remarks, err := footprint.ReadSchema(family, definitions)
	if err != nil {
		return nil, err
	}
	if len(remarks) > 0 {
		return nil, fmt.Errorf("reading definitions: %s", remarks[0])
	}
	tokens, err := sqltoken.Scan(family, definitions)
	if err != nil {
		return nil, fmt.Errorf("reading definitions: %w", err)
	}
	t := &Tables{family: family, schema: schema, plain: map[string]bool{}}
	for _, s := range sqltoken.Statements(tokens) {
		t.statements = append(t.statements, define(definitions[s[0].Start:s[len(s)-1].End], s))
	}
	for _, token := range tokens {
		if token.Kind == sqltoken.Word {
			t.plain[token.Text] = true
		}
	}
	return t, nil
}

// name spells a name.
func (t *Tables) name(name string) string {
	switch {
	case t.plain[name]:
		return name
	case t.family == dbms.MySQLFamily:
		return "`" + name + "`"
	}
	return `"` + name + `"`
}

func (t *Tables) tableName(of *footprint.Table) string {
	if of.Schema == "" {
		return t.name(of.Name)
	}
	return t.name(of.Schema) + "." + t.name(of.Name)
}

// values reads what a statement says of values.
func (t *Tables) values(q *robust.Statement) (*footprint.Values, error) {
	v, err := footprint.ValuesOf(t.family, q.Text, t.schema)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q, err)
	}
	return v, nil
}

// A definition is a statement that defines tables.
type definition struct {
	sql string
	// of is the table or view that it makes or changes, in small letters; empty: another thing. foreign says that it is
	// of another schema, or refers to one.
	of      string
	foreign bool
	trigger bool
}

// define finds out what a statement defines.
func define(sql string, tokens []sqltoken.Token) definition {
	d := definition{sql: sql, trigger: len(tokens) > 1 && tokens[1].Is("TRIGGER")}
	for i, t := range tokens {
		target := d.of == "" && (t.Is("TABLE") || t.Is("VIEW") || t.Is("ON")) && !tokens[0].Is("COMMENT")
		if !target && !t.Is("REFERENCES") {
			continue
		}
		for i++; i < len(tokens) && (tokens[i].Is("IF") || tokens[i].Is("NOT") || tokens[i].Is("EXISTS") ||
			tokens[i].Is("ONLY")); {
			i++
		}
		if i >= len(tokens) {
			break
		}
		d.foreign = d.foreign || i+1 < len(tokens) && tokens[i+1].Is(".")
		if target {
			d.of = strings.ToLower(strings.Trim(tokens[i].Text, "`\""))
		}
	}
	return d
}

// definitions are those of the tables that the programs of an execution use, and of those that their rows refer to.
// Tables of other schemas are left out, since a server that plays the scenario may have them; and triggers, whose
// functions are not there.
func (x *solution) definitions() []string {
	used := map[string]bool{}
	for _, run := range x.schedule.Runs {
		for _, q := range run.Program.Statements {
			used[strings.ToLower(q.Relation)] = true
		}
	}
	views := slices.ContainsFunc(x.tables.schema.Tables(), func(t *footprint.Table) bool { return t.View })
	for range x.tables.schema.Tables() {
		for _, f := range x.tables.schema.Functions() {
			used[strings.ToLower(f.Parent.Name)] = used[strings.ToLower(f.Parent.Name)] ||
				used[strings.ToLower(f.Child.Name)]
		}
	}
	var all []string
	for _, d := range x.tables.statements {
		if (d.of == "" || used[d.of] || views) && !d.foreign && !d.trigger {
			all = append(all, d.sql)
		}
	}
	return all
}
