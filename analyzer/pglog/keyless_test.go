package pglog

import (
	"testing"

	"github.com/isotap/isotap/history"
)

// keyless has a statement's row have no key.
func keyless(s history.Stmt) history.Stmt { return called("", s) }

// unkeyed is an UPDATE of a table without a key as servers before PostgreSQL 18 tell it.
func unkeyed(own uint32, to uint64) history.Stmt {
	s := keyless(wrote(0, 0, own, to))
	s.Observation, s.Reason = history.Inexact, history.ReasonKey
	return s
}

// TestTheLogTellsWhichRowWithoutAKeyWasWritten: what an UPDATE of a row without a key replaced is known by the log, and
// with it which row it is, also of one past isotap.
func TestTheLogTellsWhichRowWithoutAKeyWasWritten(t *testing.T) {
	const named = "UPDATE public.acc /* past isotap */ #, ended 120 to 130"
	foreign := committed(20, 120, 130, update(20, 1, 2))
	own := func(from uint64) *history.LoggedTxn { return committed(21, 180, 190, update(21, from, 3)) }
	gap := func(info *history.Info) { info.Log = []history.LogStretch{{From: 1, To: 100}, {From: 101, To: 1000}} }
	late := func(info *history.Info) { info.Log[0].From = 101 }
	other := unkeyed(21, 3)
	other.Reason = history.ReasonTrigger
	keyed := unkeyed(21, 3)
	keyed.Accesses = append(keyed.Accesses, history.Access{Row: acc, Op: history.UpdateRow})
	keyed.TupleIDs = append(keyed.TupleIDs, history.TupleID{NewXID: 21, NewID: place(9), Leaf: leaf})
	partition := unplaced(keyless(saw(5, 1)))
	for _, c := range []struct {
		name string
		log  []*history.LoggedTxn
		read history.Stmt
		s    history.Stmt
		run  func(*history.Info)
		xid  uint32 // of what it replaced
		past string
		how  history.Observation
	}{
		{"what was written past isotap", []*history.LoggedTxn{foreign, own(2)}, keyless(saw(5, 1)), unkeyed(21, 3), nil, 20, named,
			history.Exact},
		{"what was there", []*history.LoggedTxn{own(1)}, keyless(saw(5, 1)), unkeyed(21, 3), nil, 5, "", history.Exact},
		{"what was there and nobody saw", []*history.LoggedTxn{own(1)}, keyless(saw(5, 7)), unkeyed(21, 3), nil, bootstrapXID, "",
			history.Exact},
		{"what was there and may have been seen before", []*history.LoggedTxn{own(1)}, keyless(saw(5, 1)), unkeyed(21, 3), late, 0,
			"", history.Inexact},
		{"what may have been left before", []*history.LoggedTxn{own(1)}, keyless(wrote(5, 7, 6, 1)), unkeyed(21, 3), nil, 0, "",
			history.Inexact},
		{"beside a read that does not tell its table", []*history.LoggedTxn{own(1)}, partition, unkeyed(21, 3), nil, 0, "",
			history.Inexact},
		{"behind a gap", []*history.LoggedTxn{own(1)}, keyless(saw(5, 7)), unkeyed(21, 3), gap, 0, "", history.Inexact},
		{"a place that two had written", []*history.LoggedTxn{own(1)}, twice(keyless(saw(5, 1)), keyless(saw(6, 1))), unkeyed(21, 3),
			nil, 0, "", history.Inexact},
		{"what the log lacks", nil, keyless(saw(5, 1)), unkeyed(21, 3), nil, 0, "", history.Inexact},
		{"inexact for another reason", []*history.LoggedTxn{own(1)}, keyless(saw(5, 1)), other, nil, 5, "", history.Inexact},
		{"beside a row with a key", []*history.LoggedTxn{own(1)}, keyless(saw(5, 1)), keyed, nil, 5, "", history.Inexact},
	} {
		t.Run(c.name, func(t *testing.T) {
			info := aRun()
			if c.run != nil {
				c.run(&info)
			}
			txn := recorded(1, c.read, c.s)
			r := settledIn(t, info, c.log, []*history.Txn{txn})
			if got := past(r); got != c.past {
				t.Errorf("past isotap went %q, want %q", got, c.past)
			}
			r.Complete(txn)
			s := &txn.Stmts[1]
			if s.TupleIDs[0].XID != c.xid || s.Observation != c.how || c.xid != 0 && s.TupleIDs[0].CTID == 0 {
				t.Errorf("it replaced %+v, %d", s.TupleIDs[0], s.Observation)
			}
		})
	}
}

// TestWhatWasThereIsOfOneRun: with two runs of one server a version that nobody saw in the one may be known of the
// other.
func TestWhatWasThereIsOfOneRun(t *testing.T) {
	info := aRun()
	info.Server.System = 9
	txn := recorded(1, unkeyed(21, 3))
	r := New(history.FirstPast)
	r.AddRun(info)
	info.Run++
	r.AddRun(info)
	r.AddLogged(theRun, committed(21, 180, 190, update(21, 1, 3)))
	r.Link()
	r.AddSession(history.Session{Run: theRun, ID: 1, Database: "shop"})
	if err := r.Observe(txn); err != nil {
		t.Fatal(err)
	}
	r.Settle()
	r.Complete(txn)
	if s := &txn.Stmts[0]; s.TupleIDs[0].XID != 0 || s.Observation != history.Inexact {
		t.Errorf("it replaced %+v", s.TupleIDs[0])
	}
}

// TestRowsWithoutAKeyAreToldApart: two rows that one transaction past isotap wrote are in one statement, two writes of
// one row in two; and what a recorded one wrote unseen is told for each row.
func TestRowsWithoutAKeyAreToldApart(t *testing.T) {
	log := []*history.LoggedTxn{committed(20, 120, 130, update(20, 1, 2), update(20, 11, 12), update(20, 2, 3)),
		committed(21, 140, 150, update(21, 3, 4), update(21, 12, 13))}
	read := recorded(1, twice(keyless(saw(5, 1)), keyless(saw(5, 11))))
	writer := recorded(2, history.Stmt{Kind: history.Begin}, told(21))
	r := settled(t, log, []*history.Txn{read, writer})
	const want = "UPDATE public.acc /* past isotap */ # #, UPDATE public.acc /* past isotap */ #, ended 120 to 130"
	if got := past(r); got != want {
		t.Errorf("past isotap went %q, want %q", got, want)
	}
	r.Complete(writer)
	if s := r.Stats(); s.Told != 2 || s.Effects != 2 || len(writer.Stmts) != 4 {
		t.Errorf("%+v, %d statements", s, len(writer.Stmts))
	}
}
