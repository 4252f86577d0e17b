package mysql

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/txnstate"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// A procedure can commit what its caller wrote, and fail then; its error does not say. The session's counters of
// commands do: they count what procedures run as well. They are read before a CALL in a transaction, and behind it.

// commandsQuery asks for the counters of the session's commands, and how often an engine rolled something back for it:
// a statement that failed, or the transaction.
const commandsQuery = `SHOW SESSION STATUS WHERE Variable_name LIKE 'Com\_%' OR Variable_name = 'Handler_rollback'`

const (
	rollbacksCounter = "Handler_rollback"
	askedCounter     = "Com_show_status"
	callsCounter     = "Com_call_procedure"
	rollbackCounter  = "Com_rollback"
)

// neverCommits are the commands that neither commit a transaction nor begin one where one is open. The counter of
// executions is among them since what is executed is counted by itself.
var neverCommits = countersOf("admin_commands call_procedure create_temporary_table delete delete_multi do " +
	"drop_temporary_table get_diagnostics insert insert_select release_savepoint replace replace_select resignal rollback " +
	"rollback_to_savepoint savepoint select show_errors show_warnings signal stmt_execute stmt_reprepare update " +
	"update_multi")

// countersOf returns the names of the counters of commands.
func countersOf(commands string) map[string]bool {
	set := make(map[string]bool)
	for _, name := range strings.Fields(commands) {
		set["Com_"+name] = true
	}
	return set
}

// commands are the values of the counters at one time.
type commands map[string]uint64

// take takes a row of the answer to commandsQuery.
func (c commands) take(payload []byte) error {
	r := reader{b: payload}
	name, value := string(r.lenencBytes()), string(r.lenencBytes())
	if r.err != nil {
		return fmt.Errorf("parse a counter of commands: %w", r.err)
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return fmt.Errorf("parse the counter %s: %w", name, err)
	}
	c[name] = n
	return nil
}

// A callTrace is what the counters said before a CALL and behind it.
type callTrace struct{ before, after commands }

// committedNothing reports whether nothing ran from the one to the other that can have committed what the transaction
// had written before. FLUSH STATUS sets counters back; the question itself would be missing then.
func (c *callTrace) committedNothing() bool {
	if c.before[askedCounter] == 0 || len(c.after) != len(c.before) ||
		c.after[askedCounter] != c.before[askedCounter]+1 || c.after[callsCounter] <= c.before[callsCounter] {
		return false
	}
	for name, n := range c.after {
		was := c.before[name]
		if n < was || n > was && !neverCommits[name] && name != askedCounter && name != rollbacksCounter {
			return false
		}
	}
	return true
}

// leftOpen reports whether the transaction that is open behind the CALL is the one that was open before. Without
// autocommit the next statement begins another behind a deadlock that a handler took.
func (c *callTrace) leftOpen(autocommit bool) bool {
	return c.committedNothing() && c.after[rollbackCounter] == c.before[rollbackCounter] &&
		(autocommit || c.after[rollbacksCounter] == c.before[rollbacksCounter])
}

// traceCall asks for the counters before a CALL that may end a transaction in which something is recorded. It does
// where the question takes no warnings away.
func (s *Session) traceCall(plan *sqlmysql.Plan) *callTrace {
	if plan.Kind != history.Call || s.dialect == sqlmysql.TiDB || !s.watches() || !s.txn.inTrans || s.txn.branch ||
		s.txn.open == nil || s.conditions.raised != 0 {
		return nil
	}
	s.askFoundRows()
	c := &callTrace{before: make(commands)}
	s.conditions.gone = s.conditions.cleared
	s.sendQuery(&exchange{row: c.before.take}, commandsQuery)
	return c
}

// askCommands asks what ran in a CALL, once it is known that the server is there.
func (s *Session) askCommands(o *pendingStatement, x *exchange) {
	if x.failed && endsConnection(x.err.code) {
		s.postponed = &transactionQuestion{o.plan, func() { s.settleCall(o, x) }}
		return
	}
	s.settleCall(o, x)
}

// settleCall asks for the counters behind a CALL, and then has the transaction take its end. What the client can ask
// about the CALL is kept for it.
func (s *Session) settleCall(o *pendingStatement, x *exchange) {
	s.conditions.lost = true
	s.keepConditions()
	s.askFoundRows()
	after := make(commands)
	s.sendQuery(&exchange{settles: o.plan, row: after.take, done: func(asked *exchange) error {
		if !asked.failed {
			o.call.after = after
		}
		s.handOver(s.txn.settleCall(o, &x.reply, s.now))
		return nil
	}}, commandsQuery)
}

// settleCall decides what a CALL did to the transaction that was open before, once the server has told what ran in it.
// It returns that if it ended and is to be recorded.
func (t *transaction) settleCall(o *pendingStatement, r *reply, now int64) (ended *history.Txn) {
	switch {
	case t.inTrans && !r.leftTxn:
		if !o.call.leftOpen(t.autocommit) {
			t.outlives = true
			t.tear(history.Call)
		}
		return nil
	case o.call.committedNothing():
		return t.end(history.Aborted, now) // nothing but an error ended it, or ROLLBACK
	}
	return t.end(history.Indeterminate, now)
}

// tear notes that a CALL may have ended the open transaction and that another may be open now: what was recorded so far
// may have been rolled back, though what comes now is committed.
func (t *transaction) tear(kind history.Kind) {
	if kind != history.Call || t.autocommit || t.open == nil {
		return
	}
	t.torn = true
	txnstate.MarkInexact(t.open, 0, history.ReasonTornCall)
}
