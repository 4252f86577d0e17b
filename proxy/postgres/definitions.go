package postgres

import (
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// schemaChanges is what a session's transaction has changed of the tables. Between transactions there is no change, and
// the temporary tables are those that the last transaction left.
type schemaChanges struct {
	changed     []rewrite.SchemaChange // empty where any is set
	any         bool                   // any table may have changed
	temporaries temporaries
}

// maxChanged is how many definitions of a transaction are kept: after more, any table may have changed.
const maxChanged = 1000

// add notes a definition; nil: perhaps any. path gives the schemas that its names can mean, or nil where these may be
// any.
func (d *schemaChanges) add(c *rewrite.SchemaChange, path func() []string) {
	switch {
	case c == nil, len(d.changed) >= maxChanged:
		d.mayBeAny()
	case len(c.Made)+len(c.Named) > 0:
		d.changed = append(d.changed, c.In(path()))
	}
}

// mayBeAny notes that any table may be another one now.
func (d *schemaChanges) mayBeAny() { d.any, d.changed = true, nil }

// end ends the transaction. It reports whether the schema is to be read again, and for which changes; nil: for any.
func (d *schemaChanges) end(status history.Status) (changes []rewrite.SchemaChange, changed bool) {
	d.temporaries.end(status)
	changed = (d.any || len(d.changed) > 0) && status != history.Aborted
	if changed && !d.any {
		changes = d.changed
	}
	d.any, d.changed = false, nil
	return changes, changed
}

// A temporaries is what a session knows of its temporary tables: lists like sqlpostgres.Session.TempTables.
type temporaries struct {
	names rewrite.List // once the open transaction has ended as expected
	kept  rewrite.List // as the last transaction left them
}

// take notes what a statement that succeeded did to the temporary tables. What it took away may come back where there
// are savepoints.
func (t *temporaries) take(p *sqlpostgres.Plan, tag string, savepoints bool) {
	switch {
	case savepoints:
	case tag == "DISCARD TEMP", tag == "DISCARD ALL":
		t.names = ""
	default:
		for _, dropped := range p.Schema.DropsTemp {
			t.names = t.names.Without(dropped.Table)
		}
	}
	t.names = sqlpostgres.AddTempTables(t.names, p)
}

// end ends the transaction: a rollback takes back what it did.
func (t *temporaries) end(status history.Status) {
	if status == history.Aborted {
		t.names = t.kept
	}
	t.kept = t.names
}
