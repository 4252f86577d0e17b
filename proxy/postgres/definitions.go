package postgres

import (
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/wire"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// defines notes that tables were defined anew; nil: perhaps any.
func (s *Session) defines(tables []rewrite.TableName) {
	s.changes = true
	s.any = s.any || len(tables) == 0
	s.changed = append(s.changed, tables...)
}

// definitionsEnd has the schema read again, if the transaction changed it, and the settings, if a rollback
// took back what it had set.
func (s *Session) definitionsEnd(status history.Status) {
	s.temporaries.end(status)
	if s.resets {
		s.stale, s.unsure, s.resets = true, true, false
	}
	if !s.changes {
		return
	}
	changed := wire.Schema{Database: s.database}
	if !s.any {
		changed.Tables = s.located()
	}
	s.changes, s.any, s.changed = false, false, nil
	if status != history.Aborted {
		s.events = append(s.events, wire.Event{Schema: &changed})
	}
}

// A temporaries is what a session knows of its temporary tables: lists like sqlpostgres.Session.Shadowed.
type temporaries struct {
	names rewrite.List // once the open transaction has ended as expected
	kept  rewrite.List // as the last transaction left them
}

// take notes what a statement that succeeded did to the temporary tables. What it took away may come back where there
// are savepoints.
func (t *temporaries) take(p *rewrite.Plan, tag string, savepoints bool) {
	switch {
	case savepoints:
	case tag == "DISCARD TEMP", tag == "DISCARD ALL":
		t.names = ""
	default:
		for _, dropped := range p.Reveals {
			t.names = t.names.Without(dropped.Table)
		}
	}
	t.names = sqlpostgres.Shadow(t.names, p)
}

// end ends the transaction: a rollback takes back what it did.
func (t *temporaries) end(status history.Status) {
	if status == history.Aborted {
		t.names = t.kept
	}
	t.kept = t.names
}

// located gives the tables changed, with every schema that a name without one can mean.
func (s *Session) located() []rewrite.TableName {
	var tables []rewrite.TableName
	for _, t := range s.changed {
		if t.Schema != "" {
			tables = append(tables, t)
			continue
		}
		for schema := range strings.SplitSeq(s.env.Path, "\x00") {
			if schema != "pg_catalog" {
				tables = append(tables, rewrite.TableName{Schema: schema, Table: t.Table})
			}
		}
	}
	return tables
}

// unsettle notes that a definition is sent: until its transaction has ended, the tables may not be what the
// catalog says.
func (s *Session) unsettle(p *rewrite.Plan) {
	s.env.Create(p)
	s.env.Shadowed = sqlpostgres.Shadow(s.env.Shadowed, p)
	s.env.Unsettle(p)
}
