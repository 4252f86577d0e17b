package postgres

import (
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/txnstate"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A transaction is what a session knows of its transaction, as the server's replies tell. Boundaries are
// ReadyForQuery's status, and within a segment the tags of commands.
//
// open is nil between transactions, and in one of which nothing has been recorded yet. level is known while block is
// set. savepoints, implicitLevel, snapshot, began, stale and beyond are those of the transaction at hand: take ends all
// of them.
//
// A method that may begin a transaction is given the level that the session's transactions have which ask for none;
// unknown where it may have changed.
type transaction struct {
	status txnStatus // as the last ReadyForQuery had it
	block  bool      // a transaction block is open
	level  history.Level
	// implicitLevel is what SET TRANSACTION made the level of an implicit transaction; unknown where it did not.
	implicitLevel history.Level
	// snapshot says that a statement of the transaction has taken a snapshot.
	snapshot bool
	// began is when the first message was sent that may have given the transaction its snapshot, where open is nil:
	// Parse takes one, and so does what is not recorded (SELECT 1, PREPARE, DECLARE); 0: there was none.
	began int64
	// stale reports whether it took over another transaction's snapshot: SET TRANSACTION SNAPSHOT.
	stale bool
	fresh bool // the client has had its session reset since the last one
	// erred says that an error has ended the segment's statements.
	erred bool
	// interrupted is the ErrorResponse to a question of isotap's own that ended the transaction; nil where none did.
	interrupted []byte
	// conditions are those of the transaction's statements that ask for its moments, by the first predicate of the
	// statement's, and moments are these as far as they are known.
	conditions map[*history.Predicate]openConditions
	moments    moments
	// copies are those of its COPYs whose rows can be read.
	copies []copiedStmt
	// open is the transaction that statements are recorded in.
	open       *history.Txn
	capacity   txnstate.StmtCapacity
	savepoints txnstate.Savepoints
	unrecorded txnstate.Unrecorded
	// beyond says that what the transaction wrote may be beyond a rollback: a procedure can commit.
	beyond bool

	session history.SessionID
	nextID  func() history.TxnID
}

// record puts a statement into its transaction. One that leaves no trace in a history has none.
func (t *transaction) record(st *history.Stmt, level history.Level) {
	begins := st.Kind == history.DDL || st.Kind == history.Lock || st.Kind == history.NamedLock
	if st.Observation == history.Nothing && (t.open == nil && !begins || !txnstate.IsRecorded(st.Kind)) {
		return
	}
	if t.open == nil {
		t.open = t.newTxn(st.Start, level)
	}
	st.Num = uint32(len(t.open.Stmts) + 1)
	t.unrecorded.Add(t.open, st, false)
}

func (t *transaction) newTxn(start int64, level history.Level) *history.Txn {
	t.mayBegin(start)
	open := &history.Txn{ID: t.nextID(), Session: t.session, Level: t.implicitOr(level),
		Start: t.began, StaleRead: t.stale, Fresh: t.fresh, Stmts: t.capacity.NewStmts()}
	t.fresh = false
	if t.block {
		open.Level = t.level
	}
	return open
}

// mayBegin notes when a message was sent that the server has answered: the transaction may have begun with it.
func (t *transaction) mayBegin(sent int64) {
	if t.began == 0 || sent < t.began {
		t.began = sent
	}
}

// importSnapshot takes a SET TRANSACTION SNAPSHOT.
func (t *transaction) importSnapshot() {
	t.stale = true
	if t.open != nil {
		t.open.StaleRead = true
	}
}

// levelNow is the level of the transaction at hand, in a session whose transactions have that level where they ask for
// none.
func (t *transaction) levelNow(level history.Level) history.Level {
	switch {
	case t.open != nil:
		return t.open.Level
	case t.block:
		return t.level
	}
	return t.implicitOr(level)
}

// implicitOr is the level of a transaction that began without a word about it.
func (t *transaction) implicitOr(level history.Level) history.Level {
	if t.implicitLevel != history.LevelUnknown {
		return t.implicitLevel
	}
	return level
}

// append puts what one statement has read and written behind what another has, and downgrades one where that is too
// much.
func (t *transaction) append(to, from, downgraded *history.Stmt) {
	switch {
	case len(to.Accesses)+len(from.Accesses) > maxSeen:
		downgrade(downgraded, history.Inexact, history.ReasonTooManyRows)
	case t.unrecorded.Full():
		downgrade(downgraded, history.Inexact, history.ReasonTxnMemory)
	default:
		t.unrecorded.Take(txnstate.BytesOf(from))
		appendAccesses(to, from)
	}
}

// beginBlock opens a transaction block that asks for a level, or for none, with a statement of start. What an implicit
// transaction did before becomes part of it.
func (t *transaction) beginBlock(start int64, asked, level history.Level) {
	if t.block {
		return
	}
	t.block, t.level, t.snapshot = true, t.implicitOr(level), t.open != nil
	if asked != history.LevelUnknown {
		t.level = runsAt(asked)
	}
	if t.open == nil {
		t.open = t.newTxn(start, level)
	}
	t.open.Level = t.level
}

// endBlock takes a COMMIT or ROLLBACK by its tag, and returns how the transaction has ended. The COMMIT of a failed one
// is answered by ROLLBACK.
func (t *transaction) endBlock(tag string) history.Status {
	t.block, t.erred = false, false
	if tag == "COMMIT" {
		return history.Committed
	}
	return history.Aborted
}

// chain begins a transaction block of that level at the end of another one (AND CHAIN).
func (t *transaction) chain(level history.Level) { t.block, t.level, t.snapshot = true, level, false }

// setLevel takes what SET TRANSACTION did.
func (t *transaction) setLevel(l history.Level) {
	if t.block {
		t.level = l
	} else {
		t.implicitLevel = l
	}
	if t.open != nil {
		t.open.Level = l
	}
}

// readLevel takes the level that the server gives for the transaction block at hand.
func (t *transaction) readLevel(l history.Level) {
	t.level = l
	if t.open != nil {
		t.open.Level = l
	}
}

// segmentEnds takes the status of a ReadyForQuery: what is no transaction block has ended. It reports whether the
// transaction has, and how.
func (t *transaction) segmentEnds() (how history.Status, ended bool) {
	switch {
	case t.status != txnIdle:
		if !t.block { // begun by what isotap could not read
			t.block, t.level, t.snapshot = true, history.LevelUnknown, true
			if t.open != nil {
				t.open.Level = history.LevelUnknown
			}
		}
	case t.block && !t.erred:
		t.block = false
		how, ended = history.Indeterminate, true
	case t.erred:
		t.block = false
		how, ended = history.Aborted, true
	default:
		how, ended = history.Committed, true
	}
	t.erred = t.status == txnFailed
	return how, ended
}

// setSavepoint notes a savepoint before the statement that comes next. One of the same name stays below it.
func (t *transaction) setSavepoint(name string) {
	at := 0
	if t.open != nil {
		at = len(t.open.Stmts)
	}
	t.savepoints.Set(name, at)
}

// rollBackTo voids what was written and locked since the savepoint, which stands before the statement of index at; sure
// is false where that is not certain.
func (t *transaction) rollBackTo(name string) (at int, sure bool) {
	at, sure = t.savepoints.RollBackTo(name)
	t.erred = false
	switch {
	case t.open == nil:
		return at, sure
	case !sure:
		txnstate.MarkInexact(t.open, at, history.ReasonLostSavepoint)
		return at, sure
	}
	for i := at; i < len(t.open.Stmts); i++ {
		if st := &t.open.Stmts[i]; st.Observation != history.Nothing &&
			(st.Kind != history.Select || st.Locking != history.NoLock || wrote(st)) {
			st.Void = true
		}
	}
	return at, sure
}

// wrote reports whether a statement wrote rows, as a SELECT does with an UPDATE in its WITH.
func wrote(st *history.Stmt) bool {
	return slices.ContainsFunc(st.Accesses, func(a history.Access) bool { return a.Op != history.Read })
}

// hidesXID reports whether the transaction may have written, and its id is not known.
func (t *transaction) hidesXID() bool {
	hides := false
	if t.open == nil {
		return false
	}
	for i := range t.open.Stmts {
		st := &t.open.Stmts[i]
		if st.XID != 0 {
			return false
		}
		for j := range st.TupleIDs {
			if st.TupleIDs[j].NewXID != 0 {
				return false
			}
		}
		hides = hides || st.Observation == history.Opaque || st.Observation == history.Inexact
	}
	return hides
}

// tell notes the id of the transaction, behind its last statement.
func (t *transaction) tell(xid uint32) {
	if t.open != nil && len(t.open.Stmts) > 0 {
		t.open.Stmts[len(t.open.Stmts)-1].XID = xid
	}
}

// interrupt notes that a question of isotap's own ended the transaction; the first one that failed says why.
func (t *transaction) interrupt(a *answer) {
	if t.interrupted == nil {
		t.interrupted = a.words
	}
}

// take takes the transaction out of the session, with its end; nil when there is nothing to record.
func (t *transaction) take(status history.Status, now int64) *history.Txn {
	if t.beyond && status == history.Aborted {
		status = history.Indeterminate
	}
	t.savepoints, t.beyond, t.snapshot, t.implicitLevel = txnstate.Savepoints{}, false, false, history.LevelUnknown
	t.began, t.stale, t.interrupted = 0, false, nil
	t.unrecorded.End()
	t.closeConditions()
	t.conditions, t.moments, t.copies = nil, moments{}, nil
	open := t.open
	t.open = nil
	if open != nil {
		t.capacity.Ended(len(open.Stmts))
	}
	if open == nil || !slices.ContainsFunc(open.Stmts, txnstate.IsWorth) {
		return nil
	}
	open.Status, open.End = status, now
	open.Implicit = len(open.Stmts) == 1 && (!txnstate.IsRecorded(open.Stmts[0].Kind) || open.OnlyDefines())
	return open
}

// A speculativeTxn is the transaction that the session is in once everything sent has been done, if nothing fails.
type speculativeTxn struct {
	block  bool          // a transaction block
	level  history.Level // of the next statement
	nested bool          // a savepoint may be open
	// hides says that it may have written, or may yet, what does not tell its id, and copies that something that is
	// sent takes data of the client's.
	hides, copies bool
	// asksMoment says that conditions of the segment at hand ask when the transaction began.
	asksMoment bool
}

// follow takes a statement that is sent, in a session whose transactions have that level where they ask for none.
func (t *speculativeTxn) follow(p *sqlpostgres.Plan, level history.Level) {
	defer t.writes(p)
	switch {
	case p.Kind == history.Savepoint:
		t.nested = true
	case p.Kind == history.Begin:
		if !t.block {
			*t = speculativeTxn{block: true, level: level}
			if p.Txn.Level != history.LevelUnknown {
				t.level = runsAt(p.Txn.Level)
			}
		}
	case p.Txn.Ends && p.Kind != history.Call && !p.Txn.Chains:
		*t = speculativeTxn{level: level}
	case p.Txn.Level != history.LevelUnknown:
		t.level = runsAt(p.Txn.Level)
	}
}

// writes takes note of what a statement may write that does not tell the transaction's id, and whether it asks when
// that began.
func (t *speculativeTxn) writes(p *sqlpostgres.Plan) {
	t.hides = t.hides || p.Observation == history.Opaque || p.Observation == history.Inexact
	t.copies = t.copies || p.Reason == history.ReasonCopy
	t.asksMoment = t.asksMoment || rewrite.AsksForTime(p.Predicates)
}

// segmentEnds ends what is no transaction block: an implicit transaction lasts as long as its segment.
func (t *speculativeTxn) segmentEnds(level history.Level) {
	t.copies, t.asksMoment = false, false
	if !t.block {
		t.level, t.hides = level, false
	}
}

// downgrade makes a statement's observation no better than to, for a reason; an empty reason is none.
func downgrade(st *history.Stmt, to history.Observation, reason history.Reason) {
	open := st.Observation < to || st.Observation == history.Inexact && st.Reason.YieldsTo(reason)
	if !reason.IsZero() && open && to >= st.Observation && st.Observation != history.Nothing {
		st.Observation, st.Reason = to, reason
	}
}

// runsAt is the level that PostgreSQL runs a level as.
func runsAt(l history.Level) history.Level {
	if l == history.ReadUncommitted {
		return history.ReadCommitted
	}
	return l
}

// appendAccesses puts what one statement has read and written behind what another has.
func appendAccesses(to, from *history.Stmt) {
	if to.Images != nil || from.Images != nil {
		images := make([]string, len(to.Accesses)+len(from.Accesses))
		copy(images, to.Images)
		copy(images[len(to.Accesses):], from.Images)
		to.Images = images
	}
	to.Accesses, to.TupleIDs = append(to.Accesses, from.Accesses...), append(to.TupleIDs, from.TupleIDs...)
}

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
// any. lasts says that no savepoint can take it back.
func (d *schemaChanges) add(c *rewrite.SchemaChange, path func() []string, lasts bool) {
	switch {
	case c == nil, len(d.changed) >= maxChanged:
		d.mayBeAny()
	case len(c.Made)+len(c.Named) > 0:
		schemas := path()
		change := c.In(schemas)
		if !lasts || schemas == nil {
			change.Tells = nil
		}
		d.changed = append(d.changed, change)
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
		for i := range changes {
			if status != history.Committed {
				changes[i].Tells = nil
			}
		}
	}
	d.any, d.changed = false, nil
	return changes, changed
}

// A temporaries is what a session knows of its temporary tables: lists like sqlpostgres.Session.TempTables.
type temporaries struct {
	names rewrite.List // once the open transaction has ended as expected
	kept  rewrite.List // as the last transaction left them
	// columns and keptColumns are a list like sqlpostgres.Session.Created of those whose columns are known.
	columns, keptColumns rewrite.List
}

// take notes what a statement that succeeded did to the temporary tables. What it took away may come back where there
// are savepoints.
func (t *temporaries) take(p *sqlpostgres.Plan, tag string, savepoints bool) {
	switch {
	case savepoints:
	case tag == "DISCARD TEMP", tag == "DISCARD ALL":
		t.names, t.columns = "", ""
	default:
		for _, dropped := range p.Schema.DropsTemp {
			t.names = t.names.Without(dropped.Table)
		}
	}
	t.names = sqlpostgres.AddTempTables(t.names, p)
	t.columns = sqlpostgres.KnowTempTables(t.columns, p)
}

// end ends the transaction: a rollback takes back what it did.
func (t *temporaries) end(status history.Status) {
	if status == history.Aborted {
		t.names, t.columns = t.kept, t.keptColumns
	}
	t.kept, t.keptColumns = t.names, t.columns
}
