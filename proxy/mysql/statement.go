package mysql

import (
	"github.com/isotap/isotap/history"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// An observed is a statement on its way: the plan it was sent by and what its reply has shown so far.
type observed struct {
	plan      *sqlmysql.Plan
	rewritten bool
	txn       *history.Txn
	// begins is the transaction that a BEGIN opens when it succeeds.
	begins     *history.Txn
	stmt       history.Stmt
	index      int  // where stmt stands in its transaction, once it is recorded
	wasInTrans bool // the server had a transaction open when the statement was sent
	// tookNext: its transaction is the one that SET TRANSACTION was for.
	tookNext bool

	// capturing says that entries of the statement wait to be read.
	awaitsEntries bool
	// insertID is what the server numbered the first row of an INSERT with, and increment the step to the next, in
	// mode predicates.
	insertID, increment uint64

	rowCounts
	rowsToInsert int  // the rows of an INSERT, whether or not they went in
	doubtful     bool // the captured rows are not certain to be those that changed
}

// downgrade makes the statement's observation no better than to.
func (o *observed) downgrade(to history.Observation, reason history.Reason) {
	if o.stmt.Observation < to && o.stmt.Observation != history.Nothing {
		o.stmt.Observation, o.stmt.Reason = to, reason
	}
}

// tag is the tag of the statement's writes.
func (o *observed) tag() history.Tag { return history.Tag{Txn: o.txn.ID, Stmt: o.stmt.Num} }

// recorded is the statement as it stands in its transaction.
func (o *observed) recorded() *history.Stmt { return &o.txn.Stmts[o.index] }

// downgradeRecorded downgrades the observation of a statement that stands in its transaction already: what it
// wrote is no longer certain.
func (o *observed) downgradeRecorded(reason history.Reason) {
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
func (o *observed) misplanned() {
	o.downgrade(history.Opaque, history.ReasonMisplanned)
	o.stmt.Accesses, o.stmt.Predicates = nil, nil
}
