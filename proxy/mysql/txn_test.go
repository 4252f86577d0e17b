package mysql

import (
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// The status flags of replies inside a transaction and outside.
const (
	inside  = gomysql.SERVER_STATUS_IN_TRANS | gomysql.SERVER_STATUS_AUTOCOMMIT
	outside = gomysql.SERVER_STATUS_AUTOCOMMIT
)

// plansOf are plans by short names.
var plansOf = map[string]*sqlmysql.Plan{
	"begin":    {Statement: rewrite.Statement{Kind: history.Begin}, Txn: sqlmysql.TxnEffect{Ends: true}},
	"commit":   {Statement: rewrite.Statement{Kind: history.Commit}, Txn: sqlmysql.TxnEffect{Ends: true}},
	"rollback": {Statement: rewrite.Statement{Kind: history.Rollback}, Txn: sqlmysql.TxnEffect{Ends: true}},
	"select":   {Statement: rewrite.Statement{Kind: history.Select, Observation: history.Exact}},
	"update":   {Statement: rewrite.Statement{Kind: history.Update, Observation: history.Exact}},
	"call": {Statement: rewrite.Statement{Kind: history.Call, Observation: history.Opaque},
		Txn: sqlmysql.TxnEffect{Ends: true}},
	"several": {Statement: rewrite.Statement{Kind: history.Other, Observation: history.Opaque},
		Txn: sqlmysql.TxnEffect{Ends: true, MayRestart: true}},
	"savepoint": {Statement: rewrite.Statement{Kind: history.Savepoint}, Txn: sqlmysql.TxnEffect{Savepoint: "p"}},
	"rollbackTo": {Statement: rewrite.Statement{Kind: history.Rollback},
		Txn: sqlmysql.TxnEffect{Savepoint: "p"}},
	"nextSerializable": {Statement: rewrite.Statement{Kind: history.Set},
		Txn: sqlmysql.TxnEffect{NextLevel: history.Serializable}},
	"nextUnknown": {Statement: rewrite.Statement{Kind: history.Set}, Txn: sqlmysql.TxnEffect{SetsNext: true}},
	"show":        {Statement: rewrite.Statement{Kind: history.Other}},
}

// A step is a statement, and what the server says to it.
type step struct {
	plan   string
	status uint16 // of the reply; of the answer to askServer where there is an error
	code   uint16 // of an error
}

// run gives a transaction the steps, and returns those that ended.
func run(t *testing.T, steps ...step) (*transaction, []*history.Txn) {
	t.Helper()
	var n uint32
	txn := newTransaction(session.Options{ID: 1, NextTxn: func() history.TxnID {
		n++
		return history.MakeTxnID(1, n)
	}})
	txn.follow(outside)
	in := &settings{level: history.RepeatableRead}
	var all []*history.Txn
	for i, st := range steps {
		now := int64(i)
		o := txn.observe(plansOf[st.plan], in, now)
		r := &reply{failed: st.code != 0, err: serverError{code: st.code}}
		if !r.failed {
			txn.follow(st.status)
		}
		o.stmt.Void = r.failed
		txn.record(o, now)
		txn.followNext(o, r.failed)
		ended, then := txn.settle(o, r, now)
		if then == askServer {
			txn.follow(st.status)
			ended = txn.settleError(o, r, now)
		}
		if ended != nil {
			all = append(all, ended)
		}
	}
	return &txn, all
}

func TestTransactionsEndAsRepliesSay(t *testing.T) {
	for name, test := range map[string]struct {
		steps []step
		want  []history.Status
		open  bool
	}{
		"autocommitted": {steps: []step{{plan: "update", status: outside}}, want: []history.Status{history.Committed}},
		"autocommitted error": {steps: []step{{"update", outside, gomysql.ER_DUP_ENTRY}},
			want: []history.Status{history.Aborted}},
		"begin and commit": {steps: []step{{plan: "begin", status: inside}, {plan: "update", status: inside},
			{plan: "commit", status: outside}}, want: []history.Status{history.Committed}},
		"rolled back": {steps: []step{{plan: "begin", status: inside}, {plan: "update", status: inside},
			{plan: "rollback", status: outside}}, want: []history.Status{history.Aborted}},
		"begin commits what is open": {steps: []step{{plan: "begin", status: inside}, {plan: "update", status: inside},
			{plan: "begin", status: inside}}, want: []history.Status{history.Committed}, open: true},
		"an error that leaves it open": {steps: []step{{plan: "begin", status: inside},
			{"update", inside, gomysql.ER_DUP_ENTRY}}, open: true},
		"deadlock": {steps: []step{{plan: "begin", status: inside}, {plan: "update", status: inside},
			{"update", outside, gomysql.ER_LOCK_DEADLOCK}}, want: []history.Status{history.Aborted}},
		"commit fails for another reason": {steps: []step{{plan: "begin", status: inside},
			{plan: "update", status: inside}, {"commit", outside, gomysql.ER_UNKNOWN_ERROR}},
			want: []history.Status{history.Indeterminate}},
		"a procedure outlives the rollback": {steps: []step{{plan: "begin", status: inside},
			{plan: "call", status: inside}, {plan: "rollback", status: outside}},
			want: []history.Status{history.Indeterminate}},
		"several statements in one text": {steps: []step{{plan: "begin", status: inside},
			{plan: "update", status: inside},
			{plan: "several", status: inside}}, want: []history.Status{history.Indeterminate}},
		"without a row": {steps: []step{{plan: "begin", status: inside}, {plan: "commit", status: outside}}},
	} {
		t.Run(name, func(t *testing.T) {
			txn, ended := run(t, test.steps...)
			if len(ended) != len(test.want) || txn.open != nil != test.open {
				t.Fatalf("%d ended, one open: %t; want %d, %t", len(ended), txn.open != nil, len(test.want), test.open)
			}
			for i, status := range test.want {
				if ended[i].Status != status {
					t.Errorf("transaction %d is %v, want %v", i, ended[i].Status, status)
				}
			}
		})
	}
}

func TestRollbackToSavepointVoidsWritesBehindIt(t *testing.T) {
	txn, _ := run(t, step{plan: "begin", status: inside}, step{plan: "update", status: inside},
		step{plan: "savepoint", status: inside}, step{plan: "update", status: inside},
		step{plan: "select", status: inside}, step{plan: "rollbackTo", status: inside})
	for i, want := range []bool{false, false, false, true, false, false} {
		if got := txn.open.Stmts[i].Void; got != want {
			t.Errorf("statement %d is void: %t", i+1, got)
		}
	}
}

func TestLevelOfTheNextTransactionIsUsedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		steps []step
		want  []history.Level
	}{
		"set": {[]step{{plan: "nextSerializable", status: outside}, {plan: "update", status: outside},
			{plan: "update", status: outside}}, []history.Level{history.Serializable, history.RepeatableRead}},
		"refused": {[]step{{"nextSerializable", outside, gomysql.ER_UNKNOWN_ERROR}, {plan: "update", status: outside}},
			[]history.Level{history.RepeatableRead}},
		"not known": {[]step{{plan: "nextUnknown", status: outside}, {plan: "update", status: outside}},
			[]history.Level{history.LevelUnknown}},
		"perhaps used up": {[]step{{plan: "nextSerializable", status: outside}, {plan: "show", status: outside},
			{plan: "update", status: outside}}, []history.Level{history.LevelUnknown}},
	} {
		t.Run(name, func(t *testing.T) {
			_, ended := run(t, test.steps...)
			if len(ended) != len(test.want) {
				t.Fatalf("%d transactions", len(ended))
			}
			for i, level := range test.want {
				if ended[i].Level != level {
					t.Errorf("transaction %d ran at %v, want %v", i, ended[i].Level, level)
				}
			}
		})
	}
}

func TestReadsLockByClauseAndAtSerializable(t *testing.T) {
	for _, test := range []struct {
		clause  history.Locking
		level   history.Level
		status  uint16
		want    bool
		because string
	}{
		{history.NoLock, history.RepeatableRead, inside, false, "a plain read"},
		{history.LockUpdate, history.RepeatableRead, inside, true, "its clause"},
		{history.NoLock, history.Serializable, inside, true, "the level"},
		{history.NoLock, history.Serializable, outside, false, "alone in its transaction"},
		{history.NoLock, history.LevelUnknown, inside, true, "an unknown level"},
	} {
		txn := newTransaction(session.Options{})
		txn.follow(test.status)
		if got := txn.readsLock(test.clause, test.level); got != test.want {
			t.Errorf("%s: locks: %t", test.because, got)
		}
	}
}
