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
	return settledIn(t, aRun(), log, txns)
}

// aRun is a run whose log was read all the time.
func aRun() history.Info {
	return history.Info{Run: theRun, Ended: time.Unix(1, 0), Server: history.Server{Engine: dbms.PostgreSQL}, Horizon: 10,
		Log: []history.LogStretch{{From: 1, To: 1000}}}
}

// settledIn is settled for a run like this.
func settledIn(t tester, info history.Info, log []*history.LoggedTxn, txns []*history.Txn) *Resolver {
	t.Helper()
	if !Usable(&info) {
		t.Fatal("the run's log is not usable")
	}
	r := New(history.FirstPast)
	r.AddRun(info)
	for i, l := range log {
		l.Number = uint32(i + 1)
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
			var rows []string
			for _, a := range s.Accesses {
				rows = append(rows, "#"+a.Row.ID)
			}
			if len(rows) > 0 {
				all = append(all, s.Shape+" "+strings.Join(rows, " "))
			}
		}
	}
	return strings.Join(all, ", ")
}

func TestWhoWroteIsToldFromTheLog(t *testing.T) {
	foreign := committed(20, 120, 130, update(20, 1, 2))
	own := committed(21, 180, 190, update(21, 2, 3))
	const named = "UPDATE public.acc /* past isotap */ #1, ended 120 to 130"
	const either = "UPDATE public.acc /* within a statement that showed nothing, or past isotap */ #1, ended 120 to 130"
	looked := history.Stmt{Kind: history.Select, Observation: history.Exact, Predicates: []history.Predicate{{}}}
	found := history.Stmt{Kind: history.Select, Observation: history.Exact}
	taken := opaque()
	taken.Void = true
	undoneDeletion := deleted(7, 5)
	undoneDeletion.Void = true
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
		{"undone", []*history.LoggedTxn{undone(20, update(20, 1, 2))}, []*history.Txn{recorded(1, saw(5, 1))}, ""},
		{"a recorded one", []*history.LoggedTxn{own},
			[]*history.Txn{recorded(1, wrote(20, 2, 21, 3))}, ""},
		{"a recorded one that does not tell the partition", []*history.LoggedTxn{own},
			[]*history.Txn{recorded(1, unplaced(wrote(20, 2, 21, 3))), recorded(2, saw(21, 3))}, ""},
		{"beside one that may have been it", []*history.LoggedTxn{foreign},
			[]*history.Txn{recorded(1, saw(5, 1)), recorded(2, opaque(), saw(5, 7))}, ""},
		{"beside one that may have been it and left a condition", []*history.LoggedTxn{foreign},
			[]*history.Txn{recorded(1, saw(5, 1)), recorded(2, opaque(), looked)}, ""},
		{"beside one that may have been it and rolled back to a savepoint", []*history.LoggedTxn{foreign, savepoint},
			[]*history.Txn{recorded(1, saw(5, 1)), recorded(2, within, opaque(), saw(5, 7))}, ""},
		{"beside one that may have been it and found no row", []*history.LoggedTxn{foreign},
			[]*history.Txn{recorded(1, saw(5, 1)), recorded(2, opaque(), found)}, ""},
		{"beside one that may have been it and was rolled back to a savepoint", []*history.LoggedTxn{foreign},
			[]*history.Txn{recorded(1, saw(5, 1)), recorded(2, taken, saw(5, 7))}, named},
		{"beside one that may have been it and was rolled back", []*history.LoggedTxn{foreign},
			[]*history.Txn{recorded(1, saw(5, 1)), rolledBack(recorded(2, opaque(), saw(5, 7)))}, named},
		{"beside one that has no id", []*history.LoggedTxn{foreign},
			[]*history.Txn{recorded(1, saw(5, 1)), recorded(2, told(history.NoXID), saw(5, 7))}, named},
		{"beside one that deleted a row", []*history.LoggedTxn{foreign},
			[]*history.Txn{recorded(1, saw(5, 1)), recorded(2, deleted(7, 5))}, ""},
		{"beside one that deleted a row, and that was undone", []*history.LoggedTxn{foreign},
			[]*history.Txn{recorded(1, saw(5, 1)), recorded(2, undoneDeletion)}, named},
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
		{"undone", []*history.LoggedTxn{undone(21, made(21, 4))}, []history.Stmt{saw(21, 4)}, true},
		{"made between the writes, and the first one is seen as 1",
			[]*history.LoggedTxn{committed(21, 120, 130, made(21, 4))}, []history.Stmt{saw(21, 4), saw(20, 2)}, true},
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

// TestVersionsThatTheLogLacksAreDisputed: a version that a statement saw itself leave and that the log must have.
func TestVersionsThatTheLogLacksAreDisputed(t *testing.T) {
	type judged struct {
		info history.Info
		log  *history.LoggedTxn
		txn  *history.Txn
	}
	for _, c := range []struct {
		name     string
		change   func(x *judged)
		disputed int
	}{
		{"in a table of the log", func(*judged) {}, 1},
		{"undone", func(x *judged) { x.txn.Stmts[1].Void = true }, 0},
		{"rolled back", func(x *judged) { rolledBack(x.txn) }, 0},
		{"with a key that changed", func(x *judged) { x.txn.Stmts[1].Accesses[0].Inexact = true }, 0},
		{"at an unknown time", func(x *judged) { x.txn.Start = 0 }, 0},
		{"without an end", func(x *judged) { x.txn.End = 0 }, 0},
		{"before the log was read", func(x *judged) { x.info.Log[0].From = 101 }, 0},
		{"over a gap in the log", func(x *judged) {
			x.info.Log = []history.LogStretch{{From: 1, To: 150}, {From: 160, To: 1000}}
		}, 0},
		{"by one whose first writes the log lacks", func(x *judged) { x.log.Cut = true }, 0},
		{"by one that the log lacks", func(x *judged) { x.log.XIDs[0]++ }, 0},
		{"in an unlogged table", func(x *judged) { x.txn.Stmts[1].TupleIDs[0].Leaf++ }, 0},
		{"in a table that was written anew", func(x *judged) { x.info.Rewritten = []string{acc.Table + "@shop"} }, 0},
		{"in another database's that was written anew", func(x *judged) { x.info.Rewritten = []string{acc.Table + "@other"} }, 1},
	} {
		x := judged{aRun(), committed(21, 180, 190, update(21, 2, 3)),
			recorded(1, wrote(20, 2, 21, 3), wrote(21, 3, 21, 4))}
		c.change(&x)
		s := settledIn(t, x.info, []*history.LoggedTxn{x.log}, []*history.Txn{x.txn}).Stats()
		if s.Disputed != c.disputed || strings.Contains(s.Example, "(0,4)") != (c.disputed > 0) {
			t.Errorf("%s: %+v, want %d", c.name, s, c.disputed)
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

// inNone has a write be of a table that is gone.
func inNone(w history.LoggedWrite) history.LoggedWrite {
	w.TupleID.Leaf = 0
	return w
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

// deleted deletes the version that a transaction left at a place.
func deleted(at uint64, xid uint32) history.Stmt {
	s := saw(xid, at)
	s.Kind, s.Accesses[0].Op = history.Delete, history.DeleteRow
	return s
}

// TestUnseenWritesAreAddedToTheirTransaction: what no statement told stands before the one that met it, or before the
// end, unless it is not known what came between what. A number is of the statement that it stands before.
func TestUnseenWritesAreAddedToTheirTransaction(t *testing.T) {
	taken := deleted(2, 20)
	taken.Void = true
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
		{"beside one of a table that is not told, which may be one that is gone",
			[]history.LoggedWrite{update(21, 2, 3), inNone(made(21, 3))},
			[]history.Stmt{unplaced(wrote(20, 2, 21, 3))}, "", 1},
		{"beside a deletion that told it", []history.LoggedWrite{remove(21, 2)}, []history.Stmt{deleted(2, 20)}, "", 0},
		{"behind a deletion that was undone", []history.LoggedWrite{remove(21, 2)}, []history.Stmt{taken},
			"delete (0,2) of 20", 1},
		{"behind one that does not follow", []history.LoggedWrite{update(21, 2, 3), update(21, 8, 9)},
			[]history.Stmt{saw(21, 3)}, "", 2},
		{"where the transaction read the last before the first", []history.LoggedWrite{update(21, 2, 3), update(21, 3, 4)},
			[]history.Stmt{saw(21, 4), saw(20, 2)}, "", 2},
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

// TestRowsThatWereMadeAndDeletedAreNobodys: others never saw them.
func TestRowsThatWereMadeAndDeletedAreNobodys(t *testing.T) {
	txn := recorded(1, told(21))
	r := settled(t, []*history.LoggedTxn{committed(21, 180, 190, made(21, 9), remove(21, 9))},
		[]*history.Txn{txn, recorded(2, saw(21, 9))})
	if r.Complete(txn); len(txn.Stmts) != 1 || r.Stats().Effects != 2 {
		t.Errorf("%+v, %+v", txn.Stmts, r.Stats())
	}
}

// TestUnseenWritesOfWhatIsNotKnownWholeAreLeftOut: of a transaction that began before its log was read, and of one that
// two recorded ones seem to be.
func TestUnseenWritesOfWhatIsNotKnownWholeAreLeftOut(t *testing.T) {
	before := committed(20, 20, 30, update(20, 1, 2))
	cut := committed(21, 180, 190, update(21, 2, 3))
	cut.Cut = true
	one := recorded(1, told(21))
	r := settled(t, []*history.LoggedTxn{before, cut}, []*history.Txn{one, recorded(2, saw(20, 2))})
	if s := r.Stats(); s.Effects != 1 || s.Told != 0 || s.Past != 1 {
		t.Errorf("cut: %+v", s)
	}
	whole := committed(21, 180, 190, update(21, 2, 3))
	r = settled(t, []*history.LoggedTxn{before, whole},
		[]*history.Txn{one, recorded(2, told(21)), recorded(3, saw(20, 2))})
	if s := r.Stats(); s.Effects != 0 || s.Past != 1 {
		t.Errorf("of two: %+v", s)
	}
}

// TestLogTellsHowATransactionEnded: of one whose COMMIT was not answered.
func TestLogTellsHowATransactionEnded(t *testing.T) {
	whole, revoked := committed(21, 180, 230, update(21, 2, 3)), undone(21, update(21, 2, 3))
	revoked.From, revoked.To = 180, 230
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
		{"rolled back", revoked, []history.Stmt{write}, history.Aborted, 230},
		{"committed with a savepoint", whole, []history.Stmt{savepoint, write}, history.Committed, 230},
		{"a part rolled back, perhaps", revoked, []history.Stmt{savepoint, write}, history.Indeterminate, 200},
		{"with a procedure", whole, []history.Stmt{write, call}, history.Indeterminate, 200},
		{"with a write under another id", whole, []history.Stmt{write, wrote(21, 3, 22, 4)}, history.Indeterminate, 200},
		{"with a write under the id of another", whole,
			[]history.Stmt{write, wrote(21, 3, 23, 4)}, history.Indeterminate, 200},
		{"with a deletion", whole, []history.Stmt{write, removed}, history.Indeterminate, 200},
		{"of which nothing is known", whole, []history.Stmt{saw(20, 2)}, history.Indeterminate, 200},
	} {
		txn := recorded(1, slices.Clone(c.stmts)...)
		txn.Status = history.Indeterminate
		r := settled(t, []*history.LoggedTxn{c.log, committed(23, 180, 230, update(23, 3, 4))}, []*history.Txn{txn})
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
		txn := recorded(seq, append([]history.Stmt{deleted(2, 20)}, more...)...)
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

// TestADeletionThatOthersHadUndoneIsNotAnothers: who deletes a row unseen, which another transaction had deleted and
// rolled back, has not told it.
func TestADeletionThatOthersHadUndoneIsNotAnothers(t *testing.T) {
	log := []*history.LoggedTxn{committed(20, 20, 30, update(20, 1, 2)), committed(21, 180, 190, remove(21, 2))}
	txn := recorded(1, told(21))
	r := settled(t, log, []*history.Txn{rolledBack(recorded(2, deleted(2, 20))), txn})
	if r.Complete(txn); len(txn.Stmts) != 2 || txn.Stmts[1].Kind != history.Delete {
		t.Errorf("%+v, %+v", txn.Stmts, r.Stats())
	}
}

// TestTransactionsPastIsotapHaveOneIDInAllParts has a recording analyzed as a whole, and without the log's beginning.
func TestTransactionsPastIsotapHaveOneIDInAllParts(t *testing.T) {
	log := []*history.LoggedTxn{committed(20, 120, 130, update(20, 1, 2)), committed(21, 140, 150, update(21, 2, 3))}
	txns := func() []*history.Txn { return []*history.Txn{recorded(1, saw(20, 2), saw(21, 3))} }
	_, _, all := settled(t, log, txns()).Past()
	part := New(history.FirstPast)
	part.AddRun(aRun())
	part.AddLogged(theRun, log[1])
	part.Link()
	part.AddSession(history.Session{Run: theRun, ID: 1, Database: "shop"})
	if err := part.Observe(txns()[0]); err != nil {
		t.Fatal(err)
	}
	part.Settle()
	_, _, some := part.Past()
	if len(all) != 2 || len(some) != 1 || some[0].ID != all[1].ID || some[0].Session != all[1].Session {
		t.Errorf("the whole has %v, the part %v", all, some)
	}
}
