package mysql

import (
	"fmt"
	"strconv"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// settings is what the session's statements are read under. The server is asked for it at the start
// and after every statement that may have changed it.
type settings struct {
	stale bool // ask before the next statement
	known bool
	env   sqlmysql.Session
	level history.Level
	// conflicts is history.ConflictsUnknown where the server has no setting for it.
	conflicts history.Conflicts
	// selectLimit says that sql_select_limit cuts results without a LIMIT.
	selectLimit bool
	literals    literalSettings
	// tempTables names the session's temporary tables, as sqlmysql.Session has it.
	tempTables rewrite.List
}

// askSettings asks the server for the session's settings.
func (s *Session) askSettings() {
	s.stale = false
	level := "@@transaction_isolation"
	if s.dialect == sqlmysql.MariaDB {
		level = "@@tx_isolation"
	}
	s.known, s.level, s.conflicts = false, history.LevelUnknown, history.ConflictsAccepted
	s.keepConditions()
	var unread error
	counts := s.counts.ask()
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
			case x.failed && x.err.code == gomysql.ER_UNKNOWN_SYSTEM_VARIABLE && s.cfg.AsksConflicts:
				// Another server answers than the one that was asked what it has.
				s.cfg.AsksConflicts, s.stale = false, true
			case x.failed:
				s.note("cannot read the session's settings (error %d: %s): its statements go unobserved", x.err.code,
					x.err.message)
			case unread != nil:
				s.note("cannot read the session's settings (%v): its statements go unobserved", unread)
			}
			return nil
		},
	}, "SELECT CAST("+level+" AS BINARY), CAST(@@sql_mode AS BINARY), CAST(@@character_set_client AS BINARY), "+
		"CAST(DATABASE() AS BINARY), CAST(@@max_allowed_packet AS BINARY), CAST(@@group_concat_max_len AS BINARY), "+
		"CAST(@@sql_select_limit AS BINARY)"+s.asksConflicts()+s.asksLiterals()+askCounts)
}

// asksConflicts returns the columns that takeConflicts reads.
func (s *Session) asksConflicts() string {
	switch {
	case !s.cfg.AsksConflicts:
		return ""
	case s.dialect == sqlmysql.MariaDB:
		return ", CAST(@@innodb_snapshot_isolation AS BINARY)"
	case s.dialect == sqlmysql.TiDB:
		return ", CAST(@@tidb_txn_mode AS BINARY), CAST(@@tidb_disable_txn_auto_retry AS BINARY)"
	}
	return ""
}

func (s *Session) takeConflicts(r *reader) {
	s.conflicts = history.ConflictsUnknown
	if !s.cfg.AsksConflicts {
		return
	}
	on := func() bool { b := string(r.lenencBytes()); return b == "1" || strings.EqualFold(b, "ON") }
	switch s.dialect {
	case sqlmysql.MariaDB:
		s.conflicts = history.ConflictsAccepted
		if on() {
			s.conflicts = history.ConflictsRefused
		}
	case sqlmysql.TiDB:
		pessimistic := strings.EqualFold(string(r.lenencBytes()), "pessimistic")
		s.conflicts = history.ConflictsAccepted
		// A transaction that the server repeats by itself writes what it read before.
		if once := on(); once && !pessimistic {
			s.conflicts = history.ConflictsAtCommit
		}
	}
	// MariaDB goes by the setting of each statement: see weaken.
	s.txn.weaken(s.conflicts)
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
	s.takeConflicts(r)
	s.takeLiterals(r, mode)
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
	s.env = sqlmysql.Session{Dialect: s.dialect, Version: s.version, Schema: schema, Charset: charset,
		MaxPacket:      maxPacket,
		GroupConcatMax: int(min(concatMax, maxConcat)), TempTables: s.tempTables}
	s.env.SetSQLMode(mode)
	s.known = true
	return nil
}

// maxConcat is what a larger group_concat_max_len counts as: it may not fit an int.
const maxConcat = 1 << 30
