package postgres

import (
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// defines notes that something was defined anew; nil: perhaps anything.
func (s *Session) defines(c *rewrite.SchemaChange) {
	switch {
	case c == nil, len(s.changed) >= maxChanged:
		s.any, s.changed = true, nil
	case len(c.Made)+len(c.Named) > 0:
		s.changed = append(s.changed, s.located(c))
	}
}

// maxChanged is how many definitions of a transaction are kept: after more, any table may have changed.
const maxChanged = 1000

// definitionsEnd has the schema read again, if the transaction changed it, and the settings, if a rollback
// took back what it had set.
func (s *Session) definitionsEnd(status history.Status) {
	s.temporaries.end(status)
	if s.resets {
		s.stale, s.unsure, s.resets = true, true, false
	}
	if !s.any && len(s.changed) == 0 {
		return
	}
	changed := session.Schema{Database: s.database}
	if !s.any {
		changed.Changes = s.changed
	}
	s.any, s.changed = false, nil
	if status != history.Aborted {
		s.events = append(s.events, session.Event{Schema: &changed})
	}
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

// located returns a change with the schemas that its names can mean. Where the search path is not known, these may be
// any.
func (s *Session) located(c *rewrite.SchemaChange) rewrite.SchemaChange {
	if !s.known || s.unsure {
		return c.In(nil)
	}
	path := s.env.Path.Without(noSchemas).Texts()
	return c.In(path)
}

// unsettle notes that a definition is sent: until its transaction has ended, the tables may not be what the
// catalog says.
func (s *Session) unsettle(p *sqlpostgres.Plan) {
	s.env.Create(p)
	s.env.TempTables = sqlpostgres.AddTempTables(s.env.TempTables, p)
	s.env.Unsettle(p)
}
