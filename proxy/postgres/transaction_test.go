package postgres

import (
	"slices"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/txnstate"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

func newTransaction() *transaction {
	var id history.TxnID
	return &transaction{status: txnIdle, unrecorded: txnstate.NewUnrecorded(0), session: 7,
		nextID: func() history.TxnID { id++; return id }}
}

// write is a statement that wrote a row.
func write() *history.Stmt {
	return &history.Stmt{Kind: history.Update, Observation: history.Exact, Start: 10,
		Accesses: []history.Access{{Op: history.UpdateRow}}}
}

func TestStatementOfItsOwnIsAnImplicitTransaction(t *testing.T) {
	x := newTransaction()
	x.record(write(), history.ReadCommitted)
	how, ended := x.segmentEnds()
	got := x.take(how, 20)
	if !ended || got == nil || got.Status != history.Committed || !got.Implicit || got.Level != history.ReadCommitted ||
		got.Start != 10 || got.End != 20 || got.Session != 7 {
		t.Errorf("ended %v: %+v", ended, got)
	}
	if x.open != nil || x.take(history.Committed, 30) != nil {
		t.Error("the transaction is still there")
	}
}

// What touches no row leaves a transaction that nobody records.
func TestEmptyTransactionIsNotRecorded(t *testing.T) {
	x := newTransaction()
	x.beginBlock(10, history.LevelUnknown, history.ReadCommitted)
	x.record(&history.Stmt{Kind: history.Begin, Observation: history.Nothing}, history.ReadCommitted)
	if got := x.take(x.endBlock("COMMIT"), 20); got != nil {
		t.Errorf("recorded as %+v", got)
	}
}

func TestTransactionHasTheLevelThatItIsGiven(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(*transaction)
		want  history.Level
	}{
		{"the session's", func(x *transaction) { x.beginBlock(1, history.LevelUnknown, history.RepeatableRead) },
			history.RepeatableRead},
		{"BEGIN's", func(x *transaction) { x.beginBlock(1, history.Serializable, history.RepeatableRead) },
			history.Serializable},
		{"the one that the server runs",
			func(x *transaction) {
				x.beginBlock(1, history.ReadUncommitted, history.Serializable)
			}, history.ReadCommitted},
		{"SET TRANSACTION's in a block", func(x *transaction) {
			x.beginBlock(1, history.LevelUnknown, history.ReadCommitted)
			x.setLevel(history.Serializable)
		}, history.Serializable},
		{"SET TRANSACTION's before a block", func(x *transaction) {
			x.setLevel(history.Serializable)
			x.beginBlock(1, history.LevelUnknown, history.ReadCommitted)
		}, history.Serializable},
		{"that of the one before (AND CHAIN)", func(x *transaction) {
			x.beginBlock(1, history.Serializable, history.ReadCommitted)
			x.take(x.endBlock("COMMIT"), 2)
			x.chain(history.Serializable)
		}, history.Serializable},
		{"none that is known", func(x *transaction) {
			x.status = txnOpen
			x.segmentEnds()
		}, history.LevelUnknown},
	} {
		x := newTransaction()
		c.begin(x)
		x.record(write(), history.ReadCommitted)
		if got := x.take(history.Committed, 3); got.Level != c.want {
			t.Errorf("%s: %v, not %v", c.name, got.Level, c.want)
		}
	}
}

func TestReadyForQueryTellsHowATransactionEnded(t *testing.T) {
	for _, c := range []struct {
		name   string
		before transaction
		status txnStatus
		how    history.Status
		ended  bool
		block  bool
	}{
		{"a statement alone", transaction{}, txnIdle, history.Committed, true, false},
		{"one that failed", transaction{erred: true}, txnIdle, history.Aborted, true, false},
		{"a block goes on", transaction{block: true}, txnOpen, 0, false, true},
		{"a block has failed, and goes on", transaction{block: true, erred: true}, txnFailed, 0, false, true},
		{"a block is gone, by what nobody read", transaction{block: true}, txnIdle, history.Indeterminate, true, false},
		{"a block is gone, with an error", transaction{block: true, erred: true}, txnIdle, history.Aborted, true,
			false},
		{"a block is there, by what nobody read", transaction{}, txnOpen, 0, false, true},
	} {
		x := c.before
		x.status = c.status
		how, ended := x.segmentEnds()
		if ended != c.ended || ended && how != c.how || x.block != c.block || x.erred != (c.status == txnFailed) {
			t.Errorf("%s: ended %v as %v, block %v, erred %v", c.name, ended, how, x.block, x.erred)
		}
	}
}

func TestRollbackToASavepointVoidsWhatCameAfter(t *testing.T) {
	x := newTransaction()
	x.beginBlock(1, history.LevelUnknown, history.ReadCommitted)
	read := &history.Stmt{Kind: history.Select, Observation: history.Exact}
	x.record(write(), history.ReadCommitted)
	x.setSavepoint("s")
	x.record(write(), history.ReadCommitted)
	x.record(read, history.ReadCommitted)
	x.erred = true
	at, sure := x.rollBackTo("s")
	var voids []bool
	for _, st := range x.open.Stmts {
		voids = append(voids, st.Void)
	}
	if at != 1 || !sure || x.erred || !slices.Equal(voids, []bool{false, true, false}) {
		t.Errorf("back to statement %d, surely %v, with an error %v: void are %v", at, sure, x.erred, voids)
	}
}

// A procedure may have committed before it failed.
func TestAbortAfterAProceduresCommitIsIndeterminate(t *testing.T) {
	x := newTransaction()
	x.beyond = true
	x.record(write(), history.ReadCommitted)
	if got := x.take(history.Aborted, 2); got.Status != history.Indeterminate {
		t.Errorf("it is %v", got.Status)
	}
}

func TestRollbackTakesSchemaChangesBack(t *testing.T) {
	anywhere := func() []string { return nil }
	table := &rewrite.SchemaChange{Made: []rewrite.TableName{{Table: "t"}}}
	var d schemaChanges
	d.temporaries.names = rewrite.ListOf("tmp")
	d.add(table, anywhere, true)
	if _, changed := d.end(history.Aborted); changed || d.temporaries.names != "" {
		t.Errorf("changed %v, temporary tables %q", changed, d.temporaries.names)
	}
	d.temporaries.names = rewrite.ListOf("tmp")
	d.add(table, anywhere, true)
	if changes, changed := d.end(history.Committed); !changed || len(changes) != 1 ||
		d.temporaries.kept != rewrite.ListOf("tmp") {
		t.Errorf("changed %v: %v, temporary tables %q", changed, changes, d.temporaries.kept)
	}
	d.add(table, anywhere, true)
	d.mayBeAny()
	if changes, changed := d.end(history.Committed); !changed || changes != nil {
		t.Errorf("changed %v: %v, where any table may have", changed, changes)
	}
	if _, changed := d.end(history.Committed); changed {
		t.Error("changed in a transaction that did nothing")
	}
}

// What is sent ahead is planned for the transaction that it will run in.
func TestTextsSentAheadArePlannedForTheirTransaction(t *testing.T) {
	plan := func(kind history.Kind, change func(*sqlpostgres.Plan)) *sqlpostgres.Plan {
		p := &sqlpostgres.Plan{}
		if p.Kind = kind; change != nil {
			change(p)
		}
		return p
	}
	ends := func(p *sqlpostgres.Plan) { p.Txn.Ends = true }
	chains := func(p *sqlpostgres.Plan) { p.Txn.Ends, p.Txn.Chains = true, true }
	serializable := func(p *sqlpostgres.Plan) { p.Txn.Level = history.Serializable }
	begin := plan(history.Begin, serializable)
	for _, c := range []struct {
		name string
		sent []*sqlpostgres.Plan
		want speculativeTxn
	}{
		{"nothing", nil, speculativeTxn{level: history.ReadCommitted}},
		{"BEGIN", []*sqlpostgres.Plan{plan(history.Begin, nil)},
			speculativeTxn{block: true, level: history.ReadCommitted}},
		{"BEGIN with a level", []*sqlpostgres.Plan{begin}, speculativeTxn{block: true, level: history.Serializable}},
		{"BEGIN in a block", []*sqlpostgres.Plan{begin, plan(history.Begin, nil)},
			speculativeTxn{block: true, level: history.Serializable}},
		{"COMMIT", []*sqlpostgres.Plan{begin, plan(history.Commit, ends)},
			speculativeTxn{level: history.ReadCommitted}},
		{"COMMIT AND CHAIN", []*sqlpostgres.Plan{begin, plan(history.Commit, chains)},
			speculativeTxn{block: true, level: history.Serializable}},
		{"SAVEPOINT", []*sqlpostgres.Plan{begin, plan(history.Savepoint, nil)},
			speculativeTxn{block: true, level: history.Serializable, nested: true}},
		{"SET TRANSACTION alone", []*sqlpostgres.Plan{plan(history.Other, serializable)},
			speculativeTxn{level: history.ReadCommitted}},
	} {
		got := speculativeTxn{level: history.ReadCommitted}
		for _, p := range c.sent {
			got.follow(p, history.ReadCommitted)
		}
		if got.segmentEnds(history.ReadCommitted); got != c.want {
			t.Errorf("%s: %+v, not %+v", c.name, got, c.want)
		}
	}
}
