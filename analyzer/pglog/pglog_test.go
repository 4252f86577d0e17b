package pglog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

const theRun history.Run = 7

const (
	leaf    = 50 // the oid of the table
	storage = 60 // its file
)

var acc = history.Row{Table: "public.acc", ID: "1"}

// place returns the ctid (0,n).
func place(n uint64) uint64 { return n }

// update is a write of the log that replaced the version at a place.
func update(xid uint32, from, to uint64) history.LoggedWrite {
	return history.LoggedWrite{Op: history.UpdateRow, Row: history.Row{Table: acc.Table}, Storage: storage,
		TupleID: history.TupleID{CTID: place(from), NewXID: xid, NewID: place(to), LSN: 100 * to, Leaf: leaf}}
}

func committed(xid uint32, from, to int64, writes ...history.LoggedWrite) *history.LoggedTxn {
	return &history.LoggedTxn{Status: history.Committed, XIDs: []uint32{xid}, Position: uint64(xid), From: from, To: to,
		Database: "shop", Writes: writes}
}

// recorded is a transaction that ran from 100 to 200.
func recorded(seq uint32, stmts ...history.Stmt) *history.Txn {
	for i := range stmts {
		stmts[i].Num, stmts[i].Start, stmts[i].End = uint32(i+1), 100, 200
	}
	return &history.Txn{ID: history.MakeTxnID(theRun, seq), Session: 1, Status: history.Committed, Start: 100, End: 200,
		Stmts: stmts}
}

// saw reads the version that a transaction left at a place; wrote replaces it.
func saw(xid uint32, at uint64) history.Stmt {
	return history.Stmt{Kind: history.Select, Observation: history.Exact,
		Accesses: []history.Access{{Row: acc, Op: history.Read}},
		TupleIDs: []history.TupleID{{XID: xid, CTID: place(at), Leaf: leaf}}}
}

func wrote(xid uint32, at uint64, own uint32, to uint64) history.Stmt {
	return history.Stmt{Kind: history.Update, Observation: history.Exact,
		Accesses: []history.Access{{Row: acc, Op: history.UpdateRow}},
		TupleIDs: []history.TupleID{{XID: xid, CTID: place(at), NewXID: own, NewID: place(to), Leaf: leaf}}}
}

func opaque() history.Stmt { return history.Stmt{Kind: history.Other, Observation: history.Opaque} }

// settled returns a resolver that knows what there is of one run.
func settled(t *testing.T, log []*history.LoggedTxn, txns []*history.Txn) *Resolver {
	t.Helper()
	info := history.Info{Run: theRun, Ended: time.Unix(1, 0), Server: history.Server{Engine: dbms.PostgreSQL}, Horizon: 10,
		Log: []history.LogStretch{{From: 1, To: 1000}}}
	if !Usable(&info) {
		t.Fatal("the run's log is not usable")
	}
	r := New(history.FirstPast)
	r.AddRun(info)
	for _, l := range log {
		r.AddLogged(theRun, l)
	}
	r.Link()
	r.AddSession(history.Session{Run: theRun, ID: 1, Database: "shop"})
	for _, txn := range txns {
		if err := r.Observe(txn); err != nil {
			t.Fatal(err)
		}
	}
	r.Settle()
	return r
}

// past says what went past isotap: each transaction's statements, with the rows that they wrote and when it ended.
func past(r *Resolver) string {
	_, _, txns := r.Past()
	var all []string
	for _, t := range txns {
		for _, s := range t.Stmts {
			if s.Kind == history.Commit {
				all = append(all, fmt.Sprintf("ended %d to %d", s.Start, t.End))
			}
			for _, a := range s.Accesses {
				all = append(all, fmt.Sprintf("%s #%s", s.Shape, a.Row.ID))
			}
		}
	}
	return strings.Join(all, ", ")
}

func TestWhoWroteIsToldFromTheLog(t *testing.T) {
	foreign := committed(20, 120, 130, update(20, 1, 2))
	own := committed(21, 180, 190, update(21, 2, 3))
	undone := committed(20, 120, 130, update(20, 1, 2))
	undone.Status = history.Aborted
	const named = "UPDATE public.acc /* past isotap */ #1, ended 120 to 130"
	for _, c := range []struct {
		name string
		log  []*history.LoggedTxn
		txns []*history.Txn
		want string
	}{
		{"between a read and a write", []*history.LoggedTxn{foreign, own},
			[]*history.Txn{recorded(1, saw(5, 1), wrote(20, 2, 21, 3))}, named},
		{"its version was read", []*history.LoggedTxn{foreign}, []*history.Txn{recorded(1, saw(20, 2))}, named},
		{"the version that it replaced was read", []*history.LoggedTxn{foreign}, []*history.Txn{recorded(1, saw(5, 1))},
			named},
		{"to a row that nobody saw", []*history.LoggedTxn{foreign}, nil, ""},
		{"undone", []*history.LoggedTxn{undone}, []*history.Txn{recorded(1, saw(5, 1))}, ""},
		{"a recorded one", []*history.LoggedTxn{own},
			[]*history.Txn{recorded(1, wrote(20, 2, 21, 3))}, ""},
		{"beside one that may have been it", []*history.LoggedTxn{foreign},
			[]*history.Txn{recorded(1, saw(5, 1)), recorded(2, opaque())}, ""},
		{"beside one that may have been another of the log", []*history.LoggedTxn{foreign, own},
			[]*history.Txn{recorded(1, opaque(), wrote(20, 2, 21, 3))}, named},
	} {
		r := settled(t, c.log, c.txns)
		if got := past(r); got != c.want {
			t.Errorf("%s: past isotap went %q, want %q", c.name, got, c.want)
		}
		if s := r.Stats(); s.Disputed != 0 || s.Txns != len(c.log) {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}

func TestVersionsThatTheLogLacksAreDisputed(t *testing.T) {
	log := []*history.LoggedTxn{committed(21, 180, 190, update(21, 2, 3))}
	sure := recorded(1, wrote(20, 2, 21, 3), wrote(21, 3, 21, 4))
	if s := settled(t, log, []*history.Txn{sure}).Stats(); s.Disputed != 1 || !strings.Contains(s.Example, "(0,4)") {
		t.Errorf("a version that the log lacks: %+v", s)
	}
	undone := recorded(1, wrote(20, 2, 21, 3), wrote(21, 3, 21, 4))
	undone.Stmts[1].Void = true
	early := recorded(1, wrote(20, 2, 21, 3), wrote(21, 3, 21, 4))
	early.Start, early.End = 0, 200
	for name, txn := range map[string]*history.Txn{"undone": undone, "before the log was read": early} {
		if s := settled(t, log, []*history.Txn{txn}).Stats(); s.Disputed != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
