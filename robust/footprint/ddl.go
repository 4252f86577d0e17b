package footprint

import (
	"fmt"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/sqltoken"
)

// ReadSchema reads the tables that a file of definitions (CREATE TABLE, CREATE UNIQUE INDEX, ALTER TABLE … ADD, CREATE
// VIEW) makes. Statements of another kind are passed over, and so are those that the grammar does not read: these are
// told as remarks, "line N: …".
func ReadSchema(family dbms.Family, text string) (*Schema, []string, error) {
	s := &Schema{}
	remarks, err := s.Read(family, text)
	if err != nil {
		return nil, nil, err
	}
	return s, remarks, nil
}

// Read adds what a text defines, as [ReadSchema] does, to the tables that there are.
func (s *Schema) Read(family dbms.Family, text string) (remarks []string, err error) {
	tokens, err := sqltoken.Scan(family, text)
	if err != nil {
		return nil, fmt.Errorf("reading definitions: %w", err)
	}
	for _, st := range sqltoken.Statements(tokens) {
		if !st[0].Is("CREATE") && !st[0].Is("ALTER") {
			continue
		}
		if err := readers[family].define(s, text[st[0].Start:st[len(st)-1].End]); err != nil {
			remarks = append(remarks, fmt.Sprintf("line %d: not read: %v", st[0].Line, err))
		}
	}
	s.respell(tokens)
	return remarks, nil
}

// respell gives names back the case that they have in the text: PostgreSQL's grammar folds it.
func (s *Schema) respell(tokens []sqltoken.Token) {
	written := map[string]string{}
	for _, t := range tokens {
		if t.Kind == sqltoken.Word && written[strings.ToLower(t.Text)] == "" {
			written[strings.ToLower(t.Text)] = t.Text
		}
	}
	spell := func(names ...*string) {
		for _, name := range names {
			if as := written[*name]; as != "" {
				*name = as
			}
		}
	}
	for _, t := range s.tables {
		spell(&t.Name)
		for i := range t.Columns {
			spell(&t.Columns[i].Name)
		}
		for i := range t.Keys {
			t.Keys[i] = t.spell(t.Keys[i])
		}
		for i := range t.References {
			spell(&t.References[i].Name)
		}
	}
}

// constraints are those of a definition, which count once all columns are known.
type constraints struct {
	primary []string
	unique  [][]string
}

// apply adds the keys to a table.
func (c *constraints) apply(t *Table) {
	if c.primary != nil {
		t.addKey(c.primary, true)
	}
	for _, columns := range c.unique {
		t.addKey(columns, false)
	}
}

// alterable finds the table that a statement changes.
func (s *Schema) alterable(schema, name string) (*Table, error) {
	if t := s.Table(schema, name); t != nil && !t.View {
		return t, nil
	}
	return nil, fmt.Errorf("there is no table %s", name)
}
