package mysql

import (
	"slices"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/proxy/txnstate"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// A pendingStatement is a statement on its way: the plan it was sent by and what its reply has shown so far.
type pendingStatement struct {
	plan      *sqlmysql.Plan
	rewritten bool
	// literals are those of its parameters, and found is how many rows it found, for its predicates.
	literals []string
	found    uint64
	txn      *history.Txn
	// begins is the transaction that a BEGIN opens when it succeeds.
	begins     *history.Txn
	stmt       history.Stmt
	index      int  // where stmt stands in its transaction, once it is recorded
	wasInTrans bool // the server had a transaction open when the statement was sent
	// tookNext: its transaction is the one that SET TRANSACTION was for.
	tookNext bool

	// awaitsEntries is true while entries of the statement wait to be read.
	awaitsEntries bool
	// insertID is what the server numbered the first row of an INSERT with, and increment the step to the next, in
	// mode predicates.
	insertID, increment uint64
	// constant is the image that all rows of an INSERT have, but for what the server numbered them with; empty where it
	// is not known.
	constant string
	// numbersTold are what the server numbered rows with, as RETURNING told it, by their ids.
	numbersTold map[string]string

	rowCounts
	rowsToInsert int  // the rows of an INSERT, whether or not they went in
	withheld     bool // what subqueries read is not shown
	// tooMuchBeside says that what a subquery read was too much to be shown.
	tooMuchBeside bool
	// uncollected says that some of its entries were not collected.
	uncollected bool
	doubtful    bool // the captured rows are not certain to be those that changed

	call *callTrace // of a CALL in a transaction, where the server was asked what runs in it
}

// downgrade makes the statement's observation no better than to.
func (o *pendingStatement) downgrade(to history.Observation, reason history.Reason) {
	if o.stmt.Observation < to && o.stmt.Observation != history.Nothing {
		o.stmt.Observation, o.stmt.Reason = to, reason
	}
}

// withhold takes it that what subqueries read is not shown, if there is a reason why.
func (o *pendingStatement) withhold(why history.Reason) {
	if o.withheld = !why.IsZero(); o.withheld {
		o.downgrade(history.Inexact, why)
	}
}

// tag is the tag of the statement's writes.
func (o *pendingStatement) tag() history.Tag { return history.Tag{Txn: o.txn.ID, Stmt: o.stmt.Num} }

// recorded is the statement as it stands in its transaction.
func (o *pendingStatement) recorded() *history.Stmt { return &o.txn.Stmts[o.index] }

// downgradeRecorded downgrades the observation of a statement that stands in its transaction already: what it
// wrote is no longer certain.
func (o *pendingStatement) downgradeRecorded(reason history.Reason) {
	o.doubtful = true
	st := &o.txn.Stmts[o.index]
	if st.Observation == history.Exact {
		st.Observation, st.Reason = history.Inexact, reason
	}
	for i := range st.Accesses {
		st.Accesses[i].Inexact = true
	}
}

// misplanned takes away what a statement has shown whose plan is wrong.
func (o *pendingStatement) misplanned() {
	o.downgrade(history.Opaque, history.ReasonMisplanned)
	o.stmt.Accesses, o.stmt.Predicates = nil, nil
}

// A transaction is the one that a session's statements are recorded in, as far as it is known. Boundaries come from the
// status flags of the server's replies.
//
// While nothing has been recorded since the last end, open is nil, whatever the server has open. The savepoints, began,
// what is unrecorded and outlives are of the transaction under way: end makes them ready for the next.
type transaction struct {
	session session.Options // whose transactions these are

	inTrans    bool // SERVER_STATUS_IN_TRANS, as the last reply had it
	autocommit bool
	// open is the transaction that statements are recorded in.
	open     *history.Txn
	capacity txnstate.StmtCapacity
	// began is when the first statement of the transaction was sent, where open is nil and the server has one open:
	// what is not recorded may have taken its snapshot (EXPLAIN, CHECKSUM TABLE); 0: there was none.
	began      int64
	next       nextLevel
	fresh      bool // the session was reset since the last one
	savepoints txnstate.Savepoints
	unrecorded txnstate.Unrecorded
	// outlives says that what the transaction wrote may outlive its rollback: a procedure can commit and
	// begin anew.
	outlives bool
	// torn says that what is recorded as one may be several: without autocommit, a transaction begins by itself behind
	// a deadlock that a procedure took, or its COMMIT.
	torn bool
	// branch says that the transaction is a branch (XA) that may be prepared: then it outlives its session, and XA
	// ROLLBACK alone says that it was rolled back.
	branch bool
	// prepared is the branch's name once it is prepared, if that is known, and left the last one that left the session
	// before anybody ended it.
	prepared string
	left     leftBranch
}

// A leftBranch is a transaction that was prepared, with its name.
type leftBranch struct {
	name string
	txn  *history.Txn
}

// A sequel is what a session has to do once a statement has settled.
type sequel uint8

const (
	noSequel sequel = iota
	// askServer: the error does not say what became of the transaction. Ask whether it is still open, and then call
	// settleError.
	askServer
	// askCommands: what ran in a CALL. Then call settleCall.
	askCommands
	// giveUpCaptures: which entries a rollback to a savepoint undid is not known.
	giveUpCaptures
)

// newTransaction returns one for a session with these options.
func newTransaction(of session.Options) transaction {
	return transaction{session: of, unrecorded: txnstate.NewUnrecorded(of.TxnMemory)}
}

// follow takes the status flags of a reply.
func (t *transaction) follow(status uint16) {
	t.inTrans = status&gomysql.SERVER_STATUS_IN_TRANS != 0
	t.autocommit = status&gomysql.SERVER_STATUS_AUTOCOMMIT != 0
}

// reset forgets what RESET CONNECTION and CHANGE USER undo.
func (t *transaction) reset() {
	t.savepoints, t.next, t.fresh = txnstate.Savepoints{}, nextLevel{}, true
}

// observe begins the record of a statement that is sent at now, in a session with those settings. One that leaves no
// trace in a history, such as SET NAMES, has no transaction.
func (t *transaction) observe(plan *sqlmysql.Plan, in *settings, now int64) *pendingStatement {
	o := &pendingStatement{plan: plan, wasInTrans: t.inTrans, stmt: history.Stmt{Start: now}}
	taken := t.next.set()
	defer func() { o.tookNext = taken && !t.next.set() }()
	switch {
	case plan.Kind == history.Begin:
		o.begins = t.begin(in, now)
		o.txn = o.begins
	case plan.Txn.MayTakeSnapshot && !t.inTrans && t.autocommit:
		return o
	case plan.Observation == history.Nothing && !plan.Txn.MayTakeSnapshot:
		begins := plan.Kind == history.DDL || plan.NamedLocks || plan.Kind == history.Savepoint && !t.autocommit
		if t.open == nil && !begins || !txnstate.IsRecorded(plan.RecordedKind()) {
			return o
		}
		o.txn = t.opened(in, now)
	default:
		o.txn = t.opened(in, now)
	}
	o.stmt = history.Stmt{Num: uint32(len(o.txn.Stmts) + 1), Kind: plan.RecordedKind(), Locking: plan.Locking,
		Observation: plan.Observation, Reason: plan.Reason, Shape: plan.Shape, Sender: plan.Sender.Or(in.sender), Start: now}
	if t.session.Args {
		o.stmt.Args = plan.Args
	}
	if t.session.Texts && plan.Params == 0 {
		o.stmt.Text = session.BoundedText(dbms.MySQLFamily, plan.Text, nil)
	}
	return o
}

// opened returns the transaction that statements are recorded in, a new one where there is none.
func (t *transaction) opened(in *settings, now int64) *history.Txn {
	if t.open == nil {
		t.open = t.begin(in, now)
		if t.began > 0 {
			t.open.Start = t.began
		}
	}
	return t.open
}

// begin returns a new transaction. It takes the level that SET TRANSACTION gave to the next one.
func (t *transaction) begin(in *settings, now int64) *history.Txn {
	txn := &history.Txn{ID: t.session.NextTxn(), Session: t.session.ID, Level: in.level, Conflicts: in.conflicts,
		Start: now, Fresh: t.fresh, Stmts: t.capacity.NewStmts()}
	t.fresh = false
	if t.next.set() {
		txn.Level, t.next = t.next.of(in.level), nextLevel{}
	}
	return txn
}

// record puts a finished statement into its transaction.
func (t *transaction) record(o *pendingStatement, now int64) {
	if o.txn == nil {
		return
	}
	o.stmt.End = now
	if o.txn == t.open {
		o.index = t.unrecorded.Add(o.txn, &o.stmt, o.rewritten)
		return
	}
	o.index = len(o.txn.Stmts) // a BEGIN: of the transaction that it opens
	o.txn.Stmts = append(o.txn.Stmts, o.stmt)
}

// settle decides what a finished statement did to the transaction: it goes on, it ended, or the next one began. It
// returns the transaction that ended, if that is to be recorded, and what else there is to do.
func (t *transaction) settle(o *pendingStatement, r *reply, now int64) (ended *history.Txn, then sequel) {
	defer func() { t.mayBegin(o) }()
	kind := o.plan.Kind
	if o.call != nil && o.wasInTrans {
		return nil, askCommands
	}
	if o.wasInTrans && o.plan.Txn.Ends && (kind == history.Call || kind == history.Other) {
		if o.plan.Txn.Branch {
			t.branch = true
		} else {
			t.outlives = true
			t.tear(kind)
		}
	}
	if o.plan.Txn.Branch && !r.failed {
		t.prepared = o.plan.Txn.Global
	}
	switch {
	case r.failed && !o.wasInTrans && t.autocommit:
		return t.end(history.Aborted, now), noSequel
	case r.failed:
		return nil, askServer
	case kind == history.Begin:
		ended = t.end(history.Committed, now)
		if t.inTrans {
			t.open = o.begins
		}
		return ended, noSequel
	case o.plan.Txn.MayRestart && o.wasInTrans:
		return t.end(history.Indeterminate, now), noSequel
	case kind == history.Rollback && o.plan.Txn.Savepoint != "":
		return nil, t.rollbackTo(o.plan.Txn.Savepoint)
	case kind == history.Savepoint:
		t.setSavepoint(o.plan.Txn.Savepoint)
	case kind == history.Release:
		t.savepoints.Release(o.plan.Txn.Savepoint)
	case kind == history.Commit, kind == history.Rollback, r.leftTxn, !t.inTrans:
		t.branch = t.branch && kind != history.Rollback
		// Under AND CHAIN, or completion_type, the next one has begun already.
		return t.end(outcome(o, r), now), noSequel
	}
	return nil, noSequel
}

// mayBegin notes when a finished statement was sent that is not recorded: the open transaction may have begun with it.
func (t *transaction) mayBegin(o *pendingStatement) {
	if o.txn == nil && t.open == nil && t.inTrans && t.began == 0 {
		t.began = o.stmt.Start
	}
}

// settleError decides what an error did to the transaction, once the server has told whether one is open. It returns
// the transaction that ended, if that is to be recorded.
func (t *transaction) settleError(o *pendingStatement, r *reply, now int64) (ended *history.Txn) {
	if !t.inTrans || r.leftTxn || o.plan.Txn.MayRestart && o.wasInTrans {
		return t.end(outcomeOfError(o, r.err.code), now)
	}
	return nil
}

// outcome is how the transaction ended that a successful statement ended.
func outcome(o *pendingStatement, r *reply) history.Status {
	switch {
	case o.plan.Kind == history.Rollback:
		return history.Aborted
	case r.leftTxn, o.wasInTrans && !o.plan.Txn.Commits &&
		(o.plan.Kind == history.Call || o.plan.Kind == history.Other):
		// A procedure, or several statements in one text: it may have been either.
		return history.Indeterminate
	}
	return history.Committed
}

// outcomeOfError is how a transaction ended whose statement failed. Statements that commit implicitly
// have done so before they fail; a COMMIT that failed for an unknown reason may have worked, and a
// procedure or a text of several statements may have done either before it failed.
func outcomeOfError(o *pendingStatement, code uint16) history.Status {
	switch {
	case o.plan.Txn.MayRestart, o.plan.Kind == history.Call,
		o.plan.Kind == history.Other && o.plan.Txn.Ends && !o.plan.Txn.Commits:
		return history.Indeterminate
	case o.plan.Kind == history.Begin, o.plan.Kind == history.DDL, o.plan.Txn.Commits:
		// The time-out may be that of a table's lock, which the statement takes once it has committed.
		if rollsBack(code) && code != gomysql.ER_LOCK_WAIT_TIMEOUT {
			return history.Indeterminate
		}
		return history.Committed
	case rollsBack(code), o.plan.Kind == history.Commit && code == gomysql.ER_DUP_ENTRY:
		// TiDB finds duplicates as late as that in its optimistic transactions.
		return history.Aborted
	case o.plan.Txn.Ends && o.plan.Kind != history.Rollback:
		return history.Indeterminate
	}
	return history.Aborted
}

// Errors of TiDB's COMMIT that tell that the transaction was rolled back
// (https://docs.pingcap.com/tidb/stable/error-codes). Of others, 8501 and the timeouts among them, it is
// not known.
const (
	tidbCannotRetry   = 8002
	tidbTxnTooLarge   = 8004
	tidbStale         = 8005
	tidbRetryable     = 8022
	tidbSchemaChanged = 8028
	tidbWriteConflict = 9007
)

// rollsBack reports whether an error that ended the transaction did so by rolling it back: a deadlock, a
// conflict under MariaDB's innodb_snapshot_isolation, and their kind.
func rollsBack(code uint16) bool {
	switch code {
	case gomysql.ER_LOCK_DEADLOCK, gomysql.ER_CHECKREAD, gomysql.ER_LOCK_WAIT_TIMEOUT, gomysql.ER_LOCK_TABLE_FULL,
		gomysql.ER_ERROR_DURING_ROLLBACK,
		tidbCannotRetry, tidbTxnTooLarge, tidbStale, tidbRetryable, tidbSchemaChanged, tidbWriteConflict:
		return true
	}
	return false
}

func (t *transaction) setSavepoint(name string) {
	t.savepoints.Forget(name)
	if t.open != nil {
		t.savepoints.Set(name, len(t.open.Stmts))
	}
}

// rollbackTo voids what was written since the savepoint.
func (t *transaction) rollbackTo(name string) sequel {
	at, sure := t.savepoints.RollBackTo(name)
	switch {
	case t.open == nil:
		return noSequel
	case !sure:
		txnstate.MarkInexact(t.open, at, history.ReasonLostSavepoint)
		return giveUpCaptures
	}
	for i := at; i < len(t.open.Stmts); i++ {
		switch t.open.Stmts[i].Kind {
		case history.Insert, history.Update, history.Delete, history.Replace:
			t.open.Stmts[i].Void = true
		}
	}
	return noSequel
}

// end ends the open transaction, if there is one, and returns it if it is to be recorded.
func (t *transaction) end(status history.Status, now int64) *history.Txn {
	if (t.outlives || t.branch) && status == history.Aborted {
		status = history.Indeterminate
	}
	if t.torn && status == history.Committed {
		status = history.Indeterminate
	}
	prepared := t.prepared
	t.began = 0
	t.savepoints, t.outlives, t.torn, t.branch, t.prepared = txnstate.Savepoints{}, false, false, false, ""
	t.unrecorded.End()
	txn := t.open
	if txn == nil {
		return nil
	}
	if prepared != "" && status == history.Indeterminate {
		t.left = leftBranch{prepared, txn}
	}
	t.open = nil
	t.capacity.Ended(len(txn.Stmts))
	txn.Status, txn.End = status, now
	controls := slices.ContainsFunc(txn.Stmts, func(st history.Stmt) bool { return txnstate.IsRecorded(st.Kind) })
	txn.Implicit = (!controls || txn.OnlyDefines()) && len(txn.Stmts) == 1
	if !slices.ContainsFunc(txn.Stmts, txnstate.IsWorth) {
		return nil
	}
	return txn
}

// readsLock reports whether the reads of a statement lock, which has that clause: every read does at SERIALIZABLE, but
// for the plain SELECT that is a transaction of its own. usual is the session's level.
func (t *transaction) readsLock(clause history.Locking, usual history.Level) bool {
	level := t.next.of(usual)
	if t.open != nil {
		level = t.open.Level
	}
	return clause != history.NoLock ||
		(level == history.Serializable || level == history.LevelUnknown) && (t.inTrans || !t.autocommit)
}

// readsSnapshot reports whether plain reads are of a snapshot, and lock nothing. usual is the session's level.
func (t *transaction) readsSnapshot(usual history.Level) bool {
	level := t.next.of(usual)
	if t.open != nil {
		level = t.open.Level
	}
	return level == history.ReadCommitted || level == history.RepeatableRead
}

// writesRead returns how a write reads the tables of its subqueries. usual is the session's level.
func (t *transaction) writesRead(usual history.Level) sqlmysql.WriteReads {
	level := t.next.of(usual)
	if t.open != nil {
		level = t.open.Level
	}
	switch level {
	case history.ReadCommitted:
		return sqlmysql.ReadSnapshot
	case history.RepeatableRead, history.Serializable:
		return sqlmysql.ReadLocked
	}
	return sqlmysql.NotAgain
}

// weaken takes note that conflicts were treated in another way from some statement on. The weaker way counts for the
// whole transaction.
func (t *transaction) weaken(now history.Conflicts) {
	if t.open != nil && t.open.Conflicts != now {
		t.open.Conflicts = history.ConflictsAccepted
	}
}

// bytesOf returns about how much memory those of the statements take that are of the open transaction.
func (t *transaction) bytesOf(batch []*pendingStatement) int {
	n := 0
	for _, o := range batch {
		if o.txn == t.open {
			n += txnstate.BytesOf(o.recorded())
		}
	}
	return n
}

// nextLevel is what SET TRANSACTION ISOLATION LEVEL set for the next transaction only. The server cannot
// be asked for it, so what may have set it or used it up without a trace leaves the next transaction's
// level unknown.
type nextLevel struct {
	level  history.Level // history.LevelUnknown: the session's
	unsure bool
}

// set reports whether the next transaction may have a level of its own.
func (n nextLevel) set() bool { return n.unsure || n.level != history.LevelUnknown }

// of returns the next transaction's level, where the session's is known.
func (n nextLevel) of(session history.Level) history.Level {
	switch {
	case n.unsure:
		return history.LevelUnknown
	case n.level != history.LevelUnknown:
		return n.level
	}
	return session
}

// followNext finds out what a finished statement made of the next transaction's level.
func (t *transaction) followNext(o *pendingStatement, failed bool) {
	plan, next := o.plan, &t.next
	opaque := plan.Observation == history.Opaque
	switch {
	case plan.Txn.NextLevel != history.LevelUnknown && !opaque:
		if !failed {
			*next = nextLevel{level: plan.Txn.NextLevel}
		}
	case plan.Txn.SetsNext, opaque && plan.Session.Changes:
		next.unsure = true
	case o.tookNext:
		// One that failed may have begun no transaction, nor need one that nobody has looked into.
		next.unsure = next.unsure || failed || opaque
	case next.set() && plan.Kind != history.Set:
		next.unsure = true // COMMIT uses it up; SHOW does on MySQL
	}
}
