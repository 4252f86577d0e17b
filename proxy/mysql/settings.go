package mysql

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// settings is what the session's statements are read under. The server is asked for it at the start and after every
// statement that may have changed it.
//
// Until known, env is of the last answer, or empty, and may not be planned by; the level is unknown. TempTables of env
// are always tempTables.
type settings struct {
	stale bool // ask before the next statement
	known bool
	// interrupted is how often in a row a KILL or a timeout of the client's ended the question.
	interrupted int
	env         sqlmysql.Session
	level       history.Level
	sender      history.Sender // as the connection's attributes say
	// conflicts is history.ConflictsUnknown where the server has no setting for it.
	conflicts history.Conflicts
	// selectLimit says that sql_select_limit cuts results without a LIMIT.
	selectLimit bool
	// tablesLocked reports whether the session may hold the locks of LOCK TABLES.
	tablesLocked bool
	// logsStatements says that the binary log has the texts of writes, or that this is not known: the server warns of
	// those that another server may run in another way.
	logsStatements bool
	literals       literalSettings
	// told is the last second that the server told as the session's time, since the settings were asked for; empty:
	// none.
	told string
	// tempTables names the session's temporary tables, as sqlmysql.Session has it.
	tempTables rewrite.List
}

// A settingsQuery asks for the settings of a session with a server of that kind.
type settingsQuery struct {
	dialect sqlmysql.Dialect
	version uint32
	// conflicts says that the server has the settings that history.Conflicts rests on, literals that those are asked
	// for which literals are read under.
	conflicts, literals bool
	// binlog says that the server is asked for the form of its binary log. MySQL warns of that question.
	binlog bool
	// joins says that the server may leave LEFT JOINs out, and is asked whether it does.
	joins bool
}

// reset forgets what RESET CONNECTION and CHANGE USER undo. Where statements are looked at, all is asked for anew.
func (in *settings) reset(watched bool) { *in = settings{stale: watched, sender: in.sender} }

// takeTableLocks takes in what a statement that succeeded did to the locks of LOCK TABLES.
func (in *settings) takeTableLocks(plan *sqlmysql.Plan) {
	switch {
	case plan.Session.TableLocks == sqlmysql.TakesTableLocks:
		in.tablesLocked = true
	case plan.Session.TableLocks == sqlmysql.ReleasesTableLocks, plan.Kind == history.Begin:
		in.tablesLocked = false
	}
}

// ask is called when the server is asked for the settings: until take nothing is known of them.
func (in *settings) ask() {
	in.stale, in.known, in.told = false, false, ""
	in.level, in.conflicts = history.LevelUnknown, history.ConflictsAccepted
}

// Errors by which limits on a statement's time end it, with the names of their own sources.
const (
	erStatementTimeout = 1969 // MariaDB: max_statement_time
	erQueryTimeout     = 3024 // MySQL: max_execution_time
)

// maxInterrupted is how often in a row an interrupted question is asked again: a client's timeout may end each.
const maxInterrupted = 3

// failed takes an error in the answer's place, and reports whether the server is asked again: a KILL QUERY that came
// too late for the client's statement, and a limit of its own, may end isotap's.
func (in *settings) failed(code uint16) (again bool) {
	switch code {
	case gomysql.ER_QUERY_INTERRUPTED, erStatementTimeout, erQueryTimeout:
		in.interrupted++
		in.stale = in.interrupted <= maxInterrupted
	}
	return in.stale
}

// sql returns the query, but for its end.
func (q settingsQuery) sql() string {
	level := "@@transaction_isolation"
	if q.dialect == sqlmysql.MariaDB {
		level = "@@tx_isolation"
	}
	return "SELECT CAST(" + level + " AS BINARY), CAST(@@sql_mode AS BINARY), " +
		"CAST(@@character_set_client AS BINARY), CAST(DATABASE() AS BINARY), CAST(@@max_allowed_packet AS BINARY), " +
		"CAST(@@group_concat_max_len AS BINARY), CAST(@@sql_select_limit AS BINARY)" +
		q.conflictColumns() + q.literalColumns() + q.binlogColumn() + q.joinsColumn()
}

// joinsColumn returns a column that is 1 where the server is told to leave none out.
func (q settingsQuery) joinsColumn() string {
	if !q.joins {
		return ""
	}
	return ", CAST(@@optimizer_switch LIKE '%table_elimination=off%' AS BINARY)"
}

func (q settingsQuery) binlogColumn() string {
	if !q.binlog {
		return ""
	}
	return ", CAST(@@binlog_format AS BINARY)"
}

// conflictColumns returns the columns that takeConflicts reads.
func (q settingsQuery) conflictColumns() string {
	switch {
	case !q.conflicts:
		return ""
	case q.dialect == sqlmysql.MariaDB:
		return ", CAST(@@innodb_snapshot_isolation AS BINARY)"
	case q.dialect == sqlmysql.TiDB:
		return ", CAST(@@tidb_txn_mode AS BINARY), CAST(@@tidb_disable_txn_auto_retry AS BINARY)"
	}
	return ""
}

func (in *settings) takeConflicts(r *reader, q settingsQuery) {
	in.conflicts = history.ConflictsUnknown
	if !q.conflicts {
		return
	}
	on := func() bool { b := string(r.lenencBytes()); return b == "1" || strings.EqualFold(b, "ON") }
	switch q.dialect {
	case sqlmysql.MariaDB:
		in.conflicts = history.ConflictsAccepted
		if on() {
			in.conflicts = history.ConflictsRefused
		}
	case sqlmysql.TiDB:
		pessimistic := strings.EqualFold(string(r.lenencBytes()), "pessimistic")
		in.conflicts = history.ConflictsAccepted
		// A transaction that the server repeats by itself writes what it read before.
		if once := on(); once && !pessimistic {
			in.conflicts = history.ConflictsAtCommit
		}
	}
}

// literalColumns returns the columns that takeLiterals reads.
func (q settingsQuery) literalColumns() string {
	if !q.literals {
		return ""
	}
	return ", CAST(@@time_zone AS BINARY), CAST(@@collation_connection AS BINARY), " +
		"CAST(@@auto_increment_increment AS BINARY), CAST(UNIX_TIMESTAMP() AS BINARY)"
}

func (in *settings) takeLiterals(r *reader, q settingsQuery, mode string) {
	in.literals = literalSettings{}
	if !q.literals {
		return
	}
	in.literals.TimeZone = string(r.lenencBytes())
	in.literals.SQLMode = mode
	in.literals.Collation = string(r.lenencBytes())
	in.literals.increment, _ = strconv.ParseUint(string(r.lenencBytes()), 10, 64) // 0 where there is none
	in.told = string(r.lenencBytes())
}

// noSelectLimit is the value of sql_select_limit that means none.
const noSelectLimit = "18446744073709551615"

// take takes the row that answers the query, up to the columns behind its own.
func (in *settings) take(r *reader, q settingsQuery) error {
	level := string(r.lenencBytes())
	mode := string(r.lenencBytes())
	charset := string(r.lenencBytes())
	schema := string(r.lenencBytes())
	packet := string(r.lenencBytes())
	concat := string(r.lenencBytes())
	in.selectLimit = string(r.lenencBytes()) != noSelectLimit
	in.takeConflicts(r, q)
	in.takeLiterals(r, q, mode)
	if in.logsStatements = true; q.binlog {
		in.logsStatements = string(r.lenencBytes()) == "STATEMENT"
	}
	joinsAll := q.joins && string(r.lenencBytes()) == "1"
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
	if in.level, err = history.ParseLevel(level); err != nil {
		return err
	}
	in.env = sqlmysql.Session{Dialect: q.dialect, Version: q.version, Schema: schema, Charset: charset,
		MaxPacket:      maxPacket,
		JoinsAll:       joinsAll,
		GroupConcatMax: int(min(concatMax, maxConcat)), TempTables: in.tempTables}
	in.env.SetSQLMode(mode)
	in.known, in.interrupted = true, 0
	return nil
}

// maxConcat is what a larger group_concat_max_len counts as: it may not fit an int.
const maxConcat = 1 << 30

// literalSettings is what the session's literals are read under, in mode predicates.
type literalSettings struct {
	history.LiteralSettings
	increment uint64 // of AUTO_INCREMENT; 0: not known
}

// momentQuery asks for the session's time: its second, and its microsecond in that.
const momentQuery = "SELECT CAST(UNIX_TIMESTAMP() AS BINARY), CAST(MICROSECOND(NOW(6)) AS BINARY)"

// clockQuery asks for that and for what tells the times that a statement ran between: by how many microseconds the
// server's clock is ahead of the session's time, which one that SET timestamp stopped does not follow; -1 where clocks
// have been put forward or back within the last hour.
const clockQuery = momentQuery + ", " +
	"CAST(IF(TIMESTAMPDIFF(SECOND, FROM_UNIXTIME(UNIX_TIMESTAMP() - 3600), NOW(6)) = 3600, " +
	"TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)), -1) AS BINARY)"

// moments are literals for times of a statement, in seconds since 1970; empty: not known.
type moments struct {
	second       string // in which it began
	since, until string // between which it ran
}

// takeMoments takes the answer for a statement that was sent so many nanoseconds before. The second is known where the
// session's time was in that second already when it was told last, or when the statement was sent. clock says that it
// is the answer to clockQuery.
func (in *settings) takeMoments(r *reader, since int64, clock bool) (at moments) {
	before := in.told
	in.told = string(r.lenencBytes())
	micros, err := strconv.ParseInt(string(r.lenencBytes()), 10, 64)
	var ahead string
	if clock {
		ahead = string(r.lenencBytes())
	}
	if err != nil || r.err != nil {
		in.told = ""
		return at
	}
	if in.told == before || micros >= since/1000+clockSlack {
		at.second = in.told
	}
	at.between(in.told, micros, ahead, since/1000+clockSlack)
	return at
}

// between takes that the session's time was a microsecond of a second when so many microseconds had gone by since the
// statement was sent.
func (m *moments) between(second string, micros int64, ahead string, gone int64) {
	seconds, err := strconv.ParseInt(second, 10, 64)
	clock, noClock := strconv.ParseInt(ahead, 10, 64)
	// Where the clocks were put back while the statement ran a later time may be less.
	if err != nil || noClock != nil || clock < 0 || clock > mostApart || gone > mostApart {
		return
	}
	literal := func(micros int64) string { return fmt.Sprintf("%d.%06d", micros/1e6, micros%1e6) }
	now := seconds*1e6 + micros
	m.since, m.until = literal(now-gone), literal(now+clock+1)
}

// mostApart is how many microseconds the times may be apart that a statement is known to have run between.
const mostApart = 60e6

// clockSlack is by how many microseconds the server's clock may go slower than isotap's, while a statement runs.
const clockSlack = 1000

// predicates returns those of a statement whose last row showed what it is ordered by, with literals in the places of
// its parameters. at is when it ran, as far as it is known and its conditions ask for that. A session's own limit
// leaves rows out, so that there are none. At READ UNCOMMITTED a version may be seen that is none: there they are wide,
// but those of statements that lock the rows.
func (in *settings) predicates(o *pendingStatement, last []string, at moments) []history.Predicate {
	if len(o.plan.Predicates) == 0 || in.selectLimit || o.txn == nil || o.txn.Level == history.LevelUnknown {
		return nil
	}
	wide := !o.rewritten || o.txn.Level == history.ReadUncommitted && o.plan.Kind == history.Select &&
		o.plan.Locking == history.NoLock
	var out []history.Predicate
	with := rewrite.Literals{Params: o.literals, Moment: at.second}
	if !wide {
		with.Since, with.Until = at.since, at.until
	}
	for open, where := range rewrite.Closed(o.plan.Predicates, with, o.found, last) {
		if wide && where == "" || !in.env.SameInUTF8(where) {
			continue
		}
		out = append(out, history.Predicate{Table: open.Table, Of: open.Of, As: open.As, Where: where,
			Told: open.Asks(), Settings: in.literals.LiteralSettings, Wide: wide || open.Wide})
	}
	return out
}

// zoned is how a text may say a time zone, which MySQL converts from into the session's.
var zoned = regexp.MustCompile(`[-+]\d{1,2}:\d\d'`)

// constant returns the image that the text of an INSERT tells of all its rows; empty where it does not.
func (in *settings) constant(o *pendingStatement) string {
	c := &o.plan.Writes.Images.Constant
	// Modes whose names begin so have the server round or cut fractions of a second.
	if c.Columns == "" || strings.Contains(in.literals.SQLMode, "TIME_") {
		return ""
	}
	values, ok := c.Values.Close(rewrite.Literals{Params: o.literals})
	if !ok || !in.env.SameInUTF8(values) || zoned.MatchString(values) {
		return ""
	}
	return c.Columns + sqlmysql.ImageValues + values + ")"
}

// widen makes the predicates of a statement wide that does not tell every row.
func widen(st *history.Stmt) {
	if st.Observation == history.Exact {
		return
	}
	for i := range st.Predicates {
		st.Predicates[i].Wide = true
	}
}
