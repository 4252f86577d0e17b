package mysql

import (
	"maps"
	"slices"
	"strings"

	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// A Change is what somebody may have changed.
type Change struct {
	// Tables were made, changed or dropped; one with a schema alone stands for all tables of that schema. None: it may
	// be any.
	Tables []rewrite.TableName
	// References are tables to which Tables may have foreign keys from now on.
	References []rewrite.TableName
	// Triggers says what became of the triggers of Tables.
	Triggers rewrite.TriggerFate
	// Created are the columns of the one table that was made, which shows isotap's columns; nil where that is not so.
	Created []string
	// MayHaveStayed says that the one table was to be made, and may have been there before, as it still is: what its
	// definition told of it stays.
	MayHaveStayed bool
}

// Changed notes a change. It asks the server nothing.
func (c *Cache) Changed(change Change) {
	c.mu.Lock()
	c.clock++
	if len(change.Tables) == 0 {
		c.unknown = c.clock
	}
	var tables []name
	for _, t := range change.Tables {
		switch n := c.name(t.Schema, t.Table); {
		case systemSchema(strings.ToLower(n.schema)):
		case n.table == "":
			c.forgetSchema(n.schema)
		default:
			tables = append(tables, n)
		}
	}
	children, parents := c.related(tables, change.References)
	var stays *sqlmysql.Table
	if change.MayHaveStayed && len(tables) == 1 {
		stays = c.definedAs(tables[0])
	}
	for _, n := range tables {
		c.forget(n, change.Triggers)
	}
	if change.Triggers == rewrite.TriggersStay {
		c.note(tables)
		if c.worth > 0 {
			c.beginAhead()
		}
	} else {
		c.unnote(tables)
	}
	for _, n := range children {
		if !slices.Contains(tables, n) {
			c.forget(n, rewrite.TriggersStay)
		}
	}
	for _, n := range tables {
		for _, child := range children {
			c.mayReference(child, n)
		}
		for _, parent := range parents {
			c.mayReference(n, parent)
		}
	}
	switch {
	case stays != nil:
		c.entry(tables[0]).learned = stays
	case len(tables) == 1 && change.Created != nil:
		c.entry(tables[0]).learned = learned(change.Tables[0], change.Created)
	}
	c.mu.Unlock()
	c.outdate()
}

// related returns the tables that may have foreign keys to those which changed, and those to which these may have some.
// A table that is renamed takes its foreign keys along, and those to it; so does a column.
func (c *Cache) related(tables []name, references []rewrite.TableName) (children, parents []name) {
	for _, n := range tables {
		children = slices.AppendSeq(children, maps.Keys(c.references.children[n]))
		parents = slices.AppendSeq(parents, maps.Keys(c.references.parents[n]))
	}
	for _, t := range references {
		parents = append(parents, c.name(t.Schema, t.Table))
	}
	return children, parents
}

// definedAs returns what a definition told of a table that is not read since; nil where none did.
func (c *Cache) definedAs(n name) *sqlmysql.Table {
	if e := c.entry(n); e != nil {
		return e.learned
	}
	return nil
}

// learned describes a table by what its definition told of it. It is one that shows isotap's columns, and no statement
// on it is observed before it is read.
func learned(table rewrite.TableName, columns []string) *sqlmysql.Table {
	t := &sqlmysql.Table{Table: rewrite.Table{Name: table.Schema + "." + table.Table, Exposed: true}}
	for _, name := range columns {
		t.Columns = append(t.Columns, sqlmysql.Column{Column: rewrite.Column{Name: name}})
	}
	return t
}

// forget drops what is known of a table, so that it is read before it is used. Its triggers stay known where the
// definition tells what became of them.
func (c *Cache) forget(n name, fate rewrite.TriggerFate) {
	fires := c.fires(n).after(fate)
	s := c.schemas[n.schema]
	if s == nil {
		s = &schema{tables: make(map[string]*entry)}
		c.schemas[n.schema] = s
	}
	c.lose(s.tables[n.table])
	s.tables[n.table] = &entry{since: c.clock, fires: fires}
	c.recompose(n)
}

// forgetSchema has the tables of a schema read again before they are known, those among them of which nothing was
// known.
func (c *Cache) forgetSchema(schemaName string) {
	if s := c.schemas[schemaName]; s != nil {
		for table, e := range s.tables {
			c.lose(e)
			c.recompose(name{schemaName, table})
		}
	}
	c.schemas[schemaName] = &schema{tables: make(map[string]*entry), partial: true, since: c.clock}
}

// mayReference notes that a table may have foreign keys to another.
func (c *Cache) mayReference(child, parent name) {
	c.references.add(child, parent)
	if e := c.entry(parent); e != nil {
		e.full.Store(nil)
	}
}

// recompose has it worked out again what foreign keys do when the tables are written that a table may reference.
func (c *Cache) recompose(child name) {
	for parent := range c.references.parents[child] {
		if e := c.entry(parent); e != nil {
			e.full.Store(nil)
		}
	}
}

// references are the tables that may have foreign keys to others, those that have and perhaps more, from either side.
type references struct{ children, parents map[name]map[name]bool }
