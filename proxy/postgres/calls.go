package postgres

import (
	"github.com/isotap/isotap/history"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// calls is what a session knows of the statements that run functions of the database's own. Any may change
// settings as SET does, by set_config. To ask after each run would cost a round trip each; one that changed
// nothing when it ran first is trusted to go on so.
type calls struct {
	harmless map[string]struct{} // by their shapes, in a transaction block and outside of one
	ran      []string            // since the settings were asked for
}

// answered takes the settings that were asked for after those statements ran.
func (c *calls) answered(unchanged bool) {
	if unchanged && len(c.ran) > 0 {
		if c.harmless == nil || len(c.harmless) >= maxScripts {
			c.harmless = make(map[string]struct{})
		}
		for _, shape := range c.ran {
			c.harmless[shape] = struct{}{}
		}
	}
	c.ran = c.ran[:0]
}

// ranOne takes a statement that has run for what it may have changed of the settings.
func (s *Session) ranOne(p *sqlpostgres.Plan) {
	switch {
	case p.Session.Changes:
		s.settings.changed()
		if p.Kind == history.Call || p.Schema.Changes {
			s.names.forgetAll()
		}
	case p.Kind == history.DDL:
		clear(s.settings.calls.harmless) // a function may be another one now
	case p.Session.Calls:
		shape := p.Shape
		if s.txn.block {
			shape = "in a block: " + shape // what a transaction alone is given ends with it
		}
		if _, ok := s.settings.calls.harmless[shape]; !ok {
			s.settings.calls.ran = append(s.settings.calls.ran, shape)
			s.settings.changed()
			s.settings.stale = true
			if !s.executesKnown(p) {
				s.names.forgetAll() // a function may do as DEALLOCATE and PREPARE do
			}
		}
	}
}
