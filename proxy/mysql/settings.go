package mysql

import (
	"fmt"
	"strconv"

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
	// selectLimit says that sql_select_limit cuts results without a LIMIT.
	selectLimit bool
	// shadowed names the session's temporary tables, as sqlmysql.Session has it.
	shadowed string
}

// askSettings asks the server for the session's settings.
func (s *Session) askSettings() {
	s.stale = false
	level := "@@transaction_isolation"
	if s.dialect == sqlmysql.MariaDB {
		level = "@@tx_isolation"
	}
	s.known = false
	s.keepConditions()
	var unread error
	counts := s.asksCounts()
	s.sendQuery(&exchange{
		row: func(payload []byte) error {
			r := reader{b: payload}
			if unread = s.takeSettings(&r); unread == nil {
				unread = counts(&r)
			}
			return nil
		},
		done: func(s *Session, x *exchange) error {
			switch {
			case x.failed:
				s.note("cannot read the session's settings (error %d: %s): its statements go unobserved", x.err.code, x.err.message)
			case unread != nil:
				s.note("cannot read the session's settings (%v): its statements go unobserved", unread)
			}
			return nil
		},
	}, "SELECT CAST("+level+" AS BINARY), CAST(@@sql_mode AS BINARY), CAST(@@character_set_client AS BINARY), "+
		"CAST(DATABASE() AS BINARY), CAST(@@max_allowed_packet AS BINARY), CAST(@@group_concat_max_len AS BINARY), "+
		"CAST(@@sql_select_limit AS BINARY)"+askCounts)
}

// noSelectLimit is the value of sql_select_limit that means none.
const noSelectLimit = "18446744073709551615"

func (s *Session) takeSettings(r *reader) error {
	level := string(r.lenencBytes())
	mode := string(r.lenencBytes())
	charset := string(r.lenencBytes())
	schema := string(r.lenencBytes())
	packet := string(r.lenencBytes())
	concat := string(r.lenencBytes())
	s.selectLimit = string(r.lenencBytes()) != noSelectLimit
	if r.err != nil {
		return fmt.Errorf("parse them: %w", r.err)
	}
	var maxPacket int
	if _, err := fmt.Sscan(packet, &maxPacket); err != nil {
		return fmt.Errorf("parse max_allowed_packet %q: %w", packet, err)
	}
	concatMax, err := strconv.ParseUint(concat, 10, 64)
	if err != nil {
		return fmt.Errorf("parse group_concat_max_len %q: %w", concat, err)
	}
	if s.level, err = history.ParseLevel(level); err != nil {
		return err
	}
	s.env = sqlmysql.Session{Dialect: s.dialect, Version: s.version, Schema: schema, Charset: charset, MaxPacket: maxPacket,
		GroupConcatMax: int(min(concatMax, maxConcat)), Shadowed: s.shadowed}
	s.env.SetSQLMode(mode)
	s.known = true
	return nil
}

// maxConcat is what a larger group_concat_max_len counts as: it may not fit an int.
const maxConcat = 1 << 30
