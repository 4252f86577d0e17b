package mysql

import (
	"fmt"

	"github.com/isotap/isotap/history"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// settings is what the session's statements are read under. The server is asked for it at the start
// and after every statement that may have changed it.
type settings struct {
	stale bool // ask before the next statement
	known bool
	env   sqlmysql.Session
	level history.Level
	// shadowed names the session's temporary tables, as sqlmysql.Session has it.
	shadowed string
}

// askSettings asks the server for the session's settings.
func (s *Session) askSettings() {
	s.stale = false
	level := "@@transaction_isolation"
	if s.maria {
		level = "@@tx_isolation"
	}
	s.disturbed = true
	s.sendQuery(&exchange{
		row: s.takeSettings,
		done: func(s *Session, x *exchange) error {
			if x.failed {
				s.known = false
				s.note("cannot read the session's settings (error %d: %s): its statements go unobserved", x.err.code, x.err.message)
			}
			return nil
		},
	}, "SELECT "+level+", @@sql_mode, @@character_set_client, DATABASE(), @@max_allowed_packet")
}

func (s *Session) takeSettings(payload []byte) error {
	r := reader{b: payload}
	level := string(r.lenencBytes())
	mode := string(r.lenencBytes())
	charset := string(r.lenencBytes())
	schema := string(r.lenencBytes())
	packet := string(r.lenencBytes())
	if r.err != nil {
		return fmt.Errorf("parse the session's settings: %w", r.err)
	}
	var maxPacket int
	if _, err := fmt.Sscan(packet, &maxPacket); err != nil {
		return fmt.Errorf("parse max_allowed_packet %q: %w", packet, err)
	}
	var err error
	if s.level, err = history.ParseLevel(level); err != nil {
		return fmt.Errorf("parse the session's settings: %w", err)
	}
	s.env = sqlmysql.Session{Schema: schema, Charset: charset, MaxPacket: maxPacket, Shadowed: s.shadowed}
	s.env.SetSQLMode(mode)
	s.known = true
	return nil
}
