package mysql

import (
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// triggers are the events that a table has triggers for.
type triggers struct{ insert, update, delete bool }

// of has a table fire them.
func (t triggers) of(table *sqlmysql.Table) {
	table.InsertTrigger, table.UpdateTrigger, table.DeleteTrigger = t.insert, t.update, t.delete
}

// after returns what is known of them behind a definition; nil: nothing.
func (t *triggers) after(fate rewrite.TriggerFate) *triggers {
	if t == nil || fate == rewrite.TriggersDiffer || fate == rewrite.TriggersGo && *t != (triggers{}) {
		return nil
	}
	return t
}

// fires returns the triggers of a table, which has none while there is no table; nil: they are not known. It needs
// c.mu, for reading.
func (c *Cache) fires(n name) *triggers {
	if c.unknown > c.whole {
		return nil
	}
	switch e := c.entry(n); {
	case e == nil && c.partial(n.schema):
		return nil
	case e == nil, e.known && e.table == nil:
		return &triggers{}
	case !e.known:
		return e.fires
	default:
		return &triggers{e.table.InsertTrigger, e.table.UpdateTrigger, e.table.DeleteTrigger}
	}
}
