package mysql

import (
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// updateIn returns an UPDATE of one row that stands in a transaction and has been answered.
func updateIn(txn *history.Txn) *pendingStatement {
	plan := &sqlmysql.Plan{Statement: rewrite.Statement{Kind: history.Update, Observation: history.Exact,
		Target: "d.t"},
		Writes: sqlmysql.Writes{Captured: true}}
	o := &pendingStatement{plan: plan, rewritten: true, txn: txn, index: len(txn.Stmts),
		rowCounts: rowCounts{affected: 1, matched: 1, changed: 1, counted: true}}
	o.stmt = history.Stmt{Num: uint32(o.index + 1), Kind: history.Update, Observation: history.Exact}
	txn.Stmts = append(txn.Stmts, o.stmt)
	return o
}

func TestTransactionWaitsForEntriesOfItsStatements(t *testing.T) {
	var c captures
	first, second := &history.Txn{ID: 1}, &history.Txn{ID: 2}
	c.await(updateIn(first), false, 0, 0)
	if events := c.handOver(first, nil); len(events) > 0 {
		t.Fatal("a transaction was handed over whose entries nobody has asked for")
	}
	c.wait(c.read())
	c.await(updateIn(second), false, 0, 0)
	if events := c.handOver(second, nil); len(events) > 0 {
		t.Fatal("a transaction was handed over whose entries came after the query")
	}
	if events := c.answered(nil); len(events) != 1 || events[0].Txn != first {
		t.Errorf("the answer releases %v, not the first transaction alone", events)
	}
	c.wait(c.read())
	if events := c.answered(nil); len(events) != 1 || events[0].Txn != second {
		t.Errorf("the second answer releases %v", events)
	}
	if events := c.handOver(&history.Txn{ID: 3}, nil); len(events) != 1 {
		t.Error("a transaction waits that wrote nothing")
	}
	if batch := c.read(); batch != nil {
		t.Errorf("%d statements are still unread", len(batch))
	}
}

func TestStatementsWithoutEntriesAreNotAwaited(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*pendingStatement)
		failed bool
		want   bool
	}{
		"one row changed":       {want: true},
		"failed":                {failed: true},
		"no row found":          {change: func(o *pendingStatement) { o.matched, o.affected = 0, 0 }},
		"sent as it was":        {change: func(o *pendingStatement) { o.rewritten = false }},
		"nothing is collected":  {change: func(o *pendingStatement) { o.plan.Writes.Captured = false }},
		"only found, unchanged": {change: func(o *pendingStatement) { o.affected, o.changed = 0, 0 }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			var c captures
			o := updateIn(&history.Txn{})
			if test.change != nil {
				test.change(o)
			}
			if c.await(o, test.failed, 0, 0); len(c.read()) > 0 != test.want {
				t.Errorf("awaited: %t", !test.want)
			}
		})
	}
}

func TestCapturesAreDueInTime(t *testing.T) {
	const packet = 1 << 20
	plain, commit := &sqlmysql.Plan{}, &sqlmysql.Plan{Txn: sqlmysql.TxnEffect{Ends: true}}
	waiting := []*history.Txn{{End: 1000}}
	for name, test := range map[string]struct {
		captures captures
		plan     *sqlmysql.Plan
		now      int64
		durable  bool
		want     bool
	}{
		"nothing waits": {plan: commit, now: readWithin},
		"just ended":    {captures: captures{ended: waiting}, plan: plain, now: readWithin},
		"ended long ago": {captures: captures{ended: waiting}, plan: plain, now: 1000 + readWithin,
			want: true},
		"many statements": {captures: captures{unread: make([]*pendingStatement, maxUnread)}, plan: plain,
			want: true},
		"many rows": {captures: captures{unreadRows: packet / 8 / entryBytes}, plan: plain,
			want: true},
		"before a read that collects": {captures: captures{unread: make([]*pendingStatement, 1)},
			plan: &sqlmysql.Plan{Result: sqlmysql.Result{Collects: true}}, want: true},
		"before a durable commit":      {plan: commit, durable: true, want: true},
		"before a branch is left":      {plan: &sqlmysql.Plan{Txn: sqlmysql.TxnEffect{Ends: true, Branch: true}}, want: true},
		"within a durable transaction": {plan: plain, durable: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.captures.due(test.plan, test.now, packet, test.durable); got != test.want {
				t.Errorf("due: %t", got)
			}
		})
	}
}

func TestEntriesThatAreGivenUpLeaveWritesInexact(t *testing.T) {
	for name, giveUp := range map[string]func(*captures, history.Reason, []session.Event) []session.Event{
		"those not asked for": (*captures).giveUp, "all": (*captures).giveUpAll,
	} {
		t.Run(name, func(t *testing.T) {
			var c captures
			asked, unread := &history.Txn{ID: 1}, &history.Txn{ID: 2}
			c.await(updateIn(asked), false, 0, 0)
			c.wait(c.read())
			c.await(updateIn(unread), false, 0, 0)
			c.handOver(unread, c.handOver(asked, nil))
			events := giveUp(&c, history.ReasonServerLost, nil)
			if got := unread.Stmts[0].Reason; got != history.ReasonServerLost || events[len(events)-1].Txn != unread {
				t.Errorf("the unread statement's reason is %v, events %v", got, events)
			}
			lost := name == "all"
			if got := asked.Stmts[0].Reason; (got == history.ReasonServerLost) != lost || len(events) == 2 != lost {
				t.Errorf("the statement that was asked for has the reason %v, %d events", got, len(events))
			}
		})
	}
}

func TestEntriesGoToTheStatementsOfTheirTags(t *testing.T) {
	txn := &history.Txn{ID: history.MakeTxnID(1, 1)}
	first, second := updateIn(txn), updateIn(txn)
	first.awaitsEntries, second.awaitsEntries = true, true
	tag := second.tag().String()
	takeEntries([]*pendingStatement{first, second}, []byte("0|7=0="+tag+";"))
	if st := txn.Stmts[1]; st.Observation != history.Exact || len(st.Accesses) != 1 || st.Accesses[0].Row.ID != "7" {
		t.Errorf("the second statement is %v with %v", st.Observation, st.Accesses)
	}
	if st := txn.Stmts[0]; st.Observation != history.Inexact || len(st.Accesses) != 0 {
		t.Errorf("the first statement is %v with %v, though its entry is missing", st.Observation, st.Accesses)
	}
}

func TestReadsThatCollectTellEachRowOnce(t *testing.T) {
	for name, test := range map[string]struct {
		rows    uint64
		entries string
		want    history.Observation
		read    []string
	}{
		"two queries":         {2, "1=0=@<=0;2=0=@<=1;1=0=@<=0;", history.Exact, []string{"1", "2"}},
		"a row of no table":   {2, "1=0=@<=0;==@<=2;", history.Exact, []string{"1"}},
		"a missing side":      {1, "1=0=@<=0;==@<=1;", history.Exact, []string{"1"}},
		"a row without an id": {1, "==@<=0;", history.Inexact, nil},
		"too few":             {3, "1=0=@<=0;", history.Inexact, []string{"1"}},
	} {
		t.Run(name, func(t *testing.T) {
			txn := &history.Txn{ID: history.MakeTxnID(1, 1)}
			o := updateIn(txn)
			o.plan.Kind, o.plan.Result = history.Select, sqlmysql.Result{Collects: true,
				Sources: []sqlmysql.Source{{Table: "d.t", Always: true}, {Table: "d.u"}}}
			o.stmt.Rows = test.rows
			var c captures
			if c.await(o, false, 0, 0); !c.due(&sqlmysql.Plan{}, 0, 64<<20, false) {
				t.Error("nothing is read before the next statement")
			}
			takeEntries(c.read(), []byte("0|"+strings.ReplaceAll(test.entries, "@", o.tag().String())))
			var read []string
			for _, a := range txn.Stmts[0].Accesses {
				read = append(read, a.Row.ID)
			}
			if st := txn.Stmts[0]; st.Observation != test.want || !slices.Equal(read, test.read) {
				t.Errorf("it is %v (%v) with %v", st.Observation, st.Reason, read)
			}
		})
	}
}
