package pglog

import (
	"fmt"
	"slices"
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

// A tester is a test.
type tester interface {
	Helper()
	Fatal(...any)
}

// settled returns a resolver that knows what there is of one run.
func settled(t tester, log []*history.LoggedTxn, txns []*history.Txn) *Resolver {
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
	const either = "UPDATE public.acc /* within a statement that showed nothing, or past isotap */ #1, ended 120 to 130"
	looked := history.Stmt{Kind: history.Select, Observation: history.Exact, Predicates: []history.Predicate{{}}}
	within := wrote(20, 2, 30, 3)
	within.Void = true
	savepoint := committed(30, 150, 160, update(30, 2, 3))
	savepoint.Status = history.Aborted
	failed := recorded(2, history.Stmt{Kind: history.Call, Observation: history.Opaque, Void: true})
	failed.Status = history.Aborted
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
			[]*history.Txn{recorded(1, saw(5, 1)), recorded(2, opaque(), saw(5, 7))}, ""},
		{"beside one that may have been it and left a condition", []*history.LoggedTxn{foreign},
			[]*history.Txn{recorded(1, saw(5, 1)), recorded(2, opaque(), looked)}, ""},
		{"beside one that may have been it and rolled back to a savepoint", []*history.LoggedTxn{foreign, savepoint},
			[]*history.Txn{recorded(1, saw(5, 1)), recorded(2, within, opaque(), saw(5, 7))}, ""},
		{"beside one that shows nothing", []*history.LoggedTxn{foreign},
			[]*history.Txn{recorded(1, saw(5, 1)), recorded(2, history.Stmt{Kind: history.Begin}, opaque())}, either},
		{"beside one that may have been another of the log", []*history.LoggedTxn{foreign, own},
			[]*history.Txn{recorded(1, opaque(), wrote(20, 2, 21, 3))}, named},
		{"beside a procedure that may have committed before", []*history.LoggedTxn{foreign, own},
			[]*history.Txn{recorded(1, saw(5, 1)), recorded(2, history.Stmt{Kind: history.Call, Observation: history.Opaque,
				XID: 21})}, either},
		{"beside a procedure that wrote nothing in the end", []*history.LoggedTxn{foreign},
			[]*history.Txn{recorded(1, saw(5, 1)), recorded(2, history.Stmt{Kind: history.Call, Observation: history.Opaque,
				XID: history.NoXID})}, either},
		{"beside a procedure that failed", []*history.LoggedTxn{foreign}, []*history.Txn{recorded(1, saw(5, 1)), failed}, either},
		{"beside a procedure in a block", []*history.LoggedTxn{foreign, own},
			[]*history.Txn{recorded(1, saw(5, 1)), recorded(2, history.Stmt{Kind: history.Begin},
				history.Stmt{Kind: history.Call, Observation: history.Opaque, XID: 21})}, named},
	} {
		r := settled(t, c.log, c.txns)
		if got := past(r); got != c.want {
			t.Errorf("%s: past isotap went %q, want %q", c.name, got, c.want)
		}
		s := r.Stats()
		if s.Disputed != 0 || s.Txns != len(c.log) || (s.Past == 1) != (c.want == named) || (s.Either == 1) != (c.want == either) {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}

// TestNamesThatAnotherRowTookAreLeftOut: a row that was seen as 1 is written unseen at 200 and 600, and another 1 is
// made between or behind. Positions in the log are a hundred times places.
func TestNamesThatAnotherRowTookAreLeftOut(t *testing.T) {
	removed := func(xid uint32, at, position uint64) *history.LoggedTxn {
		w := remove(xid, at)
		w.TupleID.LSN = position
		return committed(xid, 120, 130, w)
	}
	undone := committed(21, 120, 130, made(21, 4))
	undone.Status = history.Aborted
	for _, c := range []struct {
		name  string
		other []*history.LoggedTxn
		stmts []history.Stmt
		named bool
	}{
		{"no other", nil, nil, true},
		{"made between the writes", []*history.LoggedTxn{committed(21, 120, 130, made(21, 4))}, []history.Stmt{saw(21, 4)},
			false},
		{"made and deleted between the writes",
			[]*history.LoggedTxn{committed(21, 120, 130, made(21, 4)), removed(22, 4, 500)}, []history.Stmt{saw(21, 4)}, false},
		{"the same, and the first one is seen as 1 in the end",
			[]*history.LoggedTxn{committed(21, 120, 130, made(21, 4)), removed(22, 4, 500)},
			[]history.Stmt{saw(21, 4), saw(24, 6)}, false},
		{"made behind the writes", []*history.LoggedTxn{committed(21, 120, 130, made(21, 8))}, []history.Stmt{saw(21, 8)}, true},
		{"undone", []*history.LoggedTxn{undone}, []history.Stmt{saw(21, 4)}, true},
		{"seen as another row", []*history.LoggedTxn{committed(21, 120, 130, made(21, 4))}, nil, true},
	} {
		log := slices.Concat([]*history.LoggedTxn{committed(20, 110, 115, update(20, 1, 2))}, c.other,
			[]*history.LoggedTxn{committed(24, 140, 150, update(24, 2, 6))})
		r := settled(t, log, []*history.Txn{recorded(1, slices.Concat([]history.Stmt{saw(5, 1)}, c.stmts)...)})
		if named := r.nodes[r.byID[versionKey{0, r.database("shop"), leaf, 20, 2}]].named(); named != c.named {
			t.Errorf("%s: named %t", c.name, named)
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

// remove is a deletion of the log, made one that left a version where none was.
func remove(xid uint32, at uint64) history.LoggedWrite {
	w := update(xid, at, at)
	w.Op, w.TupleID.NewXID, w.TupleID.NewID, w.TupleID.LSN = history.DeleteRow, 0, 0, 1000
	return w
}

func made(xid uint32, at uint64) history.LoggedWrite {
	w := update(xid, 0, at)
	w.Op, w.TupleID.CTID = history.InsertRow, 0
	return w
}

// unplaced is a statement that does not tell which partition its row is in.
func unplaced(s history.Stmt) history.Stmt {
	s.TupleIDs[0].Leaf = 0
	return s
}

// at is a write at another position of the log.
func at(position uint64, w history.LoggedWrite) history.LoggedWrite {
	w.TupleID.LSN = position
	return w
}

// twice is one statement that did what two did.
func twice(s, other history.Stmt) history.Stmt {
	s.Accesses, s.TupleIDs = append(s.Accesses, other.Accesses...), append(s.TupleIDs, other.TupleIDs...)
	return s
}

// told returns a statement of which the log alone says what it wrote, but for the transaction's id.
func told(xid uint32) history.Stmt {
	return history.Stmt{Kind: history.Other, Observation: history.Opaque, XID: xid}
}

// TestUnseenWritesAreAddedToTheirTransaction: what no statement told stands before the one that met it, or before the
// end, unless it is not known what came between what. A number is of the statement that it stands before.
func TestUnseenWritesAreAddedToTheirTransaction(t *testing.T) {
	removed := func(at uint64, xid uint32) history.Stmt {
		s := saw(xid, at)
		s.Kind, s.Accesses[0].Op = history.Delete, history.DeleteRow
		return s
	}
	other := recorded(2, saw(20, 2))
	for _, c := range []struct {
		name   string
		writes []history.LoggedWrite
		stmts  []history.Stmt
		want   string
		unseen int
	}{
		{"an UPDATE", []history.LoggedWrite{update(21, 2, 3)}, nil, "update (0,2) of 20 to (0,3) of 21", 1},
		{"two of one row are one", []history.LoggedWrite{update(21, 2, 3), update(21, 3, 4)}, nil,
			"update (0,2) of 20 to (0,4) of 21", 2},
		{"a deletion", []history.LoggedWrite{update(21, 2, 3), remove(21, 3)}, nil, "delete (0,2) of 20", 2},
		{"a row that others saw", []history.LoggedWrite{made(21, 9)}, nil, "insert to (0,9) of 21", 1},
		{"beside a statement that told it", []history.LoggedWrite{update(21, 2, 3)},
			[]history.Stmt{wrote(20, 2, 21, 3)}, "", 0},
		{"beside a statement that does not tell its id", []history.LoggedWrite{update(21, 2, 3)},
			[]history.Stmt{wrote(20, 2, 0, 3)}, "", 1},
		{"beside one of a partition that is not told", []history.LoggedWrite{update(21, 2, 3)},
			[]history.Stmt{unplaced(wrote(20, 2, 21, 3))}, "", 1},
		{"beside a deletion that told it", []history.LoggedWrite{remove(21, 2)}, []history.Stmt{removed(2, 20)}, "", 0},
		{"before a statement of the same row", []history.LoggedWrite{update(21, 2, 3), update(21, 3, 4)},
			[]history.Stmt{wrote(21, 3, 21, 4)}, "update (0,2) of 20 to (0,3) of 21 before 1", 1},
		{"behind a statement of the same row", []history.LoggedWrite{update(21, 2, 3), update(21, 3, 4)},
			[]history.Stmt{wrote(20, 2, 21, 3)}, "update (0,3) of 21 to (0,4) of 21", 1},
		{"between statements of the same row", []history.LoggedWrite{update(21, 2, 3), update(21, 3, 4), update(21, 4, 5)},
			[]history.Stmt{wrote(20, 2, 21, 3), saw(5, 8), wrote(21, 4, 21, 5)}, "update (0,3) of 21 to (0,4) of 21 before 3", 1},
		{"within a statement of the same row", []history.LoggedWrite{update(21, 2, 3), update(21, 3, 4), update(21, 4, 5)},
			[]history.Stmt{twice(wrote(20, 2, 21, 3), wrote(21, 4, 21, 5))}, "", 1},
		{"where the transaction read it", []history.LoggedWrite{update(21, 2, 3)}, []history.Stmt{saw(21, 3)},
			"update (0,2) of 20 to (0,3) of 21 before 1", 1},
		{"where the transaction read one of them", []history.LoggedWrite{update(21, 2, 3), update(21, 3, 4)},
			[]history.Stmt{saw(20, 2), saw(21, 3)},
			"update (0,2) of 20 to (0,3) of 21 before 2, update (0,3) of 21 to (0,4) of 21", 2},
		{"where the transaction read it before and behind", []history.LoggedWrite{update(21, 2, 3)},
			[]history.Stmt{saw(21, 3), saw(20, 2)}, "", 1},
		{"where the transaction read what is not in the log", []history.LoggedWrite{update(21, 2, 3)},
			[]history.Stmt{saw(21, 6)}, "", 1},
		{"a row that is made again", []history.LoggedWrite{at(300, remove(21, 2)), made(21, 4)}, []history.Stmt{saw(21, 4)},
			"delete (0,2) of 20 before 1, insert to (0,4) of 21 before 1", 2},
		{"where the transaction read the one before", []history.LoggedWrite{update(21, 2, 3)},
			[]history.Stmt{saw(20, 2)}, "update (0,2) of 20 to (0,3) of 21", 1},
	} {
		txn := recorded(1, slices.Concat(c.stmts, []history.Stmt{told(21), {Kind: history.Commit}})...)
		foreign := recorded(3, saw(21, 9))
		r := settled(t, []*history.LoggedTxn{committed(20, 20, 30, update(20, 1, 2)), committed(21, 180, 190, c.writes...)},
			[]*history.Txn{other, txn, foreign})
		if s := r.Stats(); s.Effects != c.unseen || (s.Told > 0) != (c.want != "") {
			t.Errorf("%s: %+v, want %d unseen", c.name, s, c.unseen)
		}
		r.Complete(txn)
		if last := txn.Stmts[len(txn.Stmts)-1]; last.Kind != history.Commit {
			t.Errorf("%s: the last statement is %v", c.name, last.Kind)
		}
		var got []string
		recorded := 0
		for n, s := range txn.Stmts {
			if int(s.Num) != n+1 {
				t.Errorf("%s: statement %d has number %d", c.name, n+1, s.Num)
			}
			if !s.Unseen {
				recorded++
				if int(s.Num) != recorded && int(s.Recorded) != recorded {
					t.Errorf("%s: the recording has number %d for statement %d", c.name, recorded, s.Num)
				}
				continue
			}
			for i, a := range s.Accesses {
				p, text := s.TupleIDs[i], a.Op.String()
				if p.CTID != 0 {
					text += fmt.Sprintf(" (0,%d) of %d", p.CTID, p.XID)
				}
				if p.NewID != 0 {
					text += fmt.Sprintf(" to (0,%d) of %d", p.NewID, p.NewXID)
				}
				if recorded < len(c.stmts) {
					text += fmt.Sprintf(" before %d", recorded+1)
				}
				got = append(got, text)
			}
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", c.name, text, c.want)
		}
	}
}

// TestLogTellsHowATransactionEnded: of one whose COMMIT was not answered.
func TestLogTellsHowATransactionEnded(t *testing.T) {
	whole := committed(21, 180, 230, update(21, 2, 3))
	undone := committed(21, 180, 230, update(21, 2, 3))
	undone.Status = history.Aborted
	savepoint := history.Stmt{Kind: history.Savepoint}
	call := history.Stmt{Kind: history.Call, Observation: history.Opaque}
	removed := saw(20, 2)
	removed.Accesses[0].Op = history.DeleteRow
	write := wrote(20, 2, 21, 3)
	for _, c := range []struct {
		name  string
		log   *history.LoggedTxn
		stmts []history.Stmt
		want  history.Status
		end   int64
	}{
		{"committed", whole, []history.Stmt{write}, history.Committed, 230},
		{"rolled back", undone, []history.Stmt{write}, history.Aborted, 230},
		{"committed with a savepoint", whole, []history.Stmt{savepoint, write}, history.Committed, 230},
		{"a part rolled back, perhaps", undone, []history.Stmt{savepoint, write}, history.Indeterminate, 200},
		{"with a procedure", whole, []history.Stmt{write, call}, history.Indeterminate, 200},
		{"with a write under another id", whole, []history.Stmt{write, wrote(21, 3, 22, 4)}, history.Indeterminate, 200},
		{"with a deletion", whole, []history.Stmt{write, removed}, history.Indeterminate, 200},
		{"of which nothing is known", whole, []history.Stmt{saw(20, 2)}, history.Indeterminate, 200},
	} {
		txn := recorded(1, slices.Clone(c.stmts)...)
		txn.Status = history.Indeterminate
		r := settled(t, []*history.LoggedTxn{c.log}, []*history.Txn{txn})
		r.Complete(txn)
		if ends := r.Stats().Ends; txn.Status != c.want || txn.End != c.end || (ends > 0) != (c.want != history.Indeterminate) {
			t.Errorf("%s: it is %v, and ended at %d; %d are known", c.name, txn.Status, txn.End, ends)
		}
	}
}

// TestADeletionThatOthersHadUndoneIsToldAllTheSame: a transaction deletes a row and makes it again, after another one
// has deleted the same version and rolled back. Nothing of it is unseen, whichever isotap takes in last.
func TestADeletionThatOthersHadUndoneIsToldAllTheSame(t *testing.T) {
	deletes := func(seq uint32, status history.Status, more ...history.Stmt) *history.Txn {
		s := saw(20, 2)
		s.Kind, s.Accesses[0].Op = history.Delete, history.DeleteRow
		txn := recorded(seq, append([]history.Stmt{s}, more...)...)
		txn.Status = status
		return txn
	}
	again := history.Stmt{Kind: history.Insert, Observation: history.Exact,
		Accesses: []history.Access{{Row: acc, Op: history.InsertRow}},
		TupleIDs: []history.TupleID{{NewXID: 21, NewID: place(4), Leaf: leaf}}}
	log := []*history.LoggedTxn{committed(20, 20, 30, update(20, 1, 2)),
		committed(21, 180, 190, at(300, remove(21, 2)), made(21, 4))}
	for last := range 3 {
		txns := []*history.Txn{deletes(2, history.Aborted), deletes(3, history.Indeterminate)}
		txn := deletes(1, history.Committed, again, history.Stmt{Kind: history.Commit})
		r := settled(t, log, slices.Insert(txns, last, txn))
		r.Complete(txn)
		if s := r.Stats(); s.Effects != 0 || len(txn.Stmts) != 3 {
			t.Errorf("with %d before it: %+v, %d statements", last, s, len(txn.Stmts))
		}
	}
}
