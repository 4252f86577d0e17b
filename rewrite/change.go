package rewrite

import (
	"slices"
)

// A TableName names a table or view as a statement spells it.
type TableName struct{ Schema, Table string }

// Key returns what stands for the name in a [List]. No other name has the same.
func (n TableName) Key() string { return string(ListOf(n.Schema, n.Table)) }

// A SchemaChange is what a definition may have left otherwise than the schema that was read has it. PostgreSQL only.
type SchemaChange struct {
	// Made are the tables, views and functions that have a name since that they may not have had. One without a table's
	// name stands for all of a schema.
	Made []TableName
	// Named are the statement's other names: of these, what is a relation or a function.
	Named []TableName
	// Indexes says that names may be those of indexes.
	Indexes bool
	// Cascades says that what depends on these may have changed, too.
	Cascades bool
	// Relates is a hint that there may be more to be read than columns and indexes: the statement says how tables
	// belong together, or makes something else than a table.
	Relates bool
	// Rewrites says that the rows may have come into other files; Empties, that this is all.
	Rewrites, Empties bool
	// Tells is all that it changes, where the text says that by itself. Nil: only the server knows.
	Tells *TableDefinition
}

// A TableDefinition is what a statement makes of one table and of nothing else, where nothing on the server adds to
// what its text says (an event trigger, default privileges, access methods of tables).
type TableDefinition struct {
	Table   TableName // with its schema
	Creates bool      // the table, which belongs to Role and has Columns
	Role    string
	Columns []Column
	Index   *Index // one that comes with it; nil: none
}

// In returns the change with every schema that a name without one can mean: those given, and those that the statement
// names beside it. Without any, such a name stays as it is: it may be in any schema.
func (c *SchemaChange) In(schemas []string) SchemaChange {
	if len(schemas) > 0 {
		for _, names := range [][]TableName{c.Made, c.Named} {
			for _, t := range names {
				if t.Schema != "" && !slices.Contains(schemas, t.Schema) {
					schemas = append(slices.Clip(schemas), t.Schema)
				}
			}
		}
	}
	located := *c
	located.Made, located.Named = namesIn(schemas, c.Made), namesIn(schemas, c.Named)
	return located
}

func namesIn(schemas []string, names []TableName) (located []TableName) {
	for _, t := range names {
		if t.Schema != "" || len(schemas) == 0 {
			located = append(located, t)
			continue
		}
		for _, schema := range schemas {
			located = append(located, TableName{Schema: schema, Table: t.Table})
		}
	}
	return located
}

// A TriggerFate says what became of the triggers of the tables that a definition changed.
type TriggerFate uint8

const (
	// TriggersDiffer: each may have others than before.
	TriggersDiffer TriggerFate = iota
	// TriggersStay: each has those that it had; a table that was made has none.
	TriggersStay
	// TriggersGo: each has those that it had, or none.
	TriggersGo
)
