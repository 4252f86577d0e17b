package pglog

import (
	"testing"

	"github.com/isotap/isotap/history"
)

// called has a statement's first row called so.
func called(id string, s history.Stmt) history.Stmt {
	s.Accesses[0].Row.ID = id
	return s
}

// undone is a transaction of the log that was rolled back.
func undone(xid uint32, writes ...history.LoggedWrite) *history.LoggedTxn {
	l := committed(xid, 120, 130, writes...)
	l.Status = history.Aborted
	return l
}

// in has a write be of another file.
func in(file uint32, w history.LoggedWrite) history.LoggedWrite {
	w.Storage = file
	return w
}

// rolledBack is a recorded transaction that was rolled back.
func rolledBack(t *history.Txn) *history.Txn {
	t.Status = history.Aborted
	return t
}

// TestRowsOfTheLogAreKnownByTheirVersions: what a recorded statement saw of a row names what was written to it past
// isotap, unless it is not certain that it is the same row.
func TestRowsOfTheLogAreKnownByTheirVersions(t *testing.T) {
	const named = "UPDATE public.acc /* past isotap */ #1"
	const ended = ", ended 120 to 130"
	gap := []history.LogStretch{{From: 1, To: 300}, {From: 400, To: 1000}}
	foreign := []*history.LoggedTxn{committed(20, 120, 130, update(20, 1, 2))}
	rewritten := func(table string) func(*history.Info) {
		return func(info *history.Info) { info.Rewritten = []string{table} }
	}
	for _, c := range []struct {
		name  string
		log   []*history.LoggedTxn
		stmts []history.Stmt
		run   func(*history.Info)
		want  string
	}{
		{"by the version that it replaced", foreign,
			[]history.Stmt{saw(5, 1)}, nil, named + ended},
		{"behind a gap in the log", []*history.LoggedTxn{committed(20, 120, 130, update(20, 1, 2)),
			committed(21, 450, 460, update(21, 2, 3))}, []history.Stmt{saw(5, 1)},
			func(info *history.Info) { info.Log = gap }, named + ended},
		{"by a place alone, behind a gap", []*history.LoggedTxn{committed(21, 450, 460, update(21, 1, 3))},
			[]history.Stmt{saw(5, 1)}, func(info *history.Info) { info.Log = gap }, ""},
		{"by a place, behind what only says why there was no log",
			foreign, []history.Stmt{saw(5, 1)},
			func(info *history.Info) { info.Log = []history.LogStretch{{}, info.Log[0]} }, named + ended},
		{"by a place that was seen before the log was read",
			foreign, []history.Stmt{saw(5, 1)},
			func(info *history.Info) { info.Log[0].From = 101 }, ""},
		{"by the place of who came while the run went on", foreign,
			[]history.Stmt{saw(15, 1)}, nil, ""},
		{"by the place of who ended while the run began", foreign,
			[]history.Stmt{saw(15, 1)}, func(info *history.Info) { info.Recent.To = 16 }, named + ended},
		{"by a place that two had written", foreign,
			[]history.Stmt{saw(5, 1), saw(6, 1)}, nil, ""},
		{"of a table that is gone", []*history.LoggedTxn{committed(20, 120, 130, inNone(update(20, 1, 2)))},
			[]history.Stmt{saw(20, 2)}, nil, ""},
		{"of a table in two files",
			[]*history.LoggedTxn{committed(20, 120, 130, update(20, 1, 2), in(61, update(20, 8, 9)))},
			[]history.Stmt{saw(20, 2)}, nil, ""},
		{"of a table that was written anew", foreign,
			[]history.Stmt{saw(20, 2)}, rewritten(acc.Table + "@shop"), ""},
		{"of another database's that was written anew", foreign,
			[]history.Stmt{saw(20, 2)}, rewritten(acc.Table + "@other"), named + ended},
		{"at a place that its transaction used twice, as behind TRUNCATE",
			[]*history.LoggedTxn{committed(20, 120, 130, at(300, made(20, 2)), at(400, made(20, 2)))},
			[]history.Stmt{saw(20, 2)}, nil, ""},
		{"of a version that is called differently", foreign,
			[]history.Stmt{saw(20, 2), called("2", saw(20, 2))}, nil, ""},
		{"between two names", []*history.LoggedTxn{committed(20, 110, 115, update(20, 1, 2)),
			committed(21, 120, 130, update(21, 2, 3))}, []history.Stmt{saw(5, 1), called("2", saw(21, 3))}, nil,
			"UPDATE public.acc /* past isotap */ #2" + ended},
		{"deleted, and that undone", []*history.LoggedTxn{undone(20, remove(20, 1))},
			[]history.Stmt{saw(5, 1)}, nil, ""},
		{"written twice", []*history.LoggedTxn{committed(20, 120, 130, update(20, 1, 2), update(20, 2, 3))},
			[]history.Stmt{saw(5, 1)}, nil, named + ", " + named + ended},
		{"two in one", []*history.LoggedTxn{committed(20, 120, 130, update(20, 1, 3), update(20, 2, 4))},
			[]history.Stmt{saw(5, 1), called("2", saw(5, 2))}, nil, named + " #2" + ended},
	} {
		info := aRun()
		if c.run != nil {
			c.run(&info)
		}
		if got := past(settledIn(t, info, c.log, []*history.Txn{recorded(1, c.stmts...)})); got != c.want {
			t.Errorf("%s: past isotap went %q, want %q", c.name, got, c.want)
		}
	}
}

// TestWhatWasUndoneNamesNothing: the key that an UPDATE gave a row, and that was undone, is not the row's.
func TestWhatWasUndoneNamesNothing(t *testing.T) {
	txn := rolledBack(recorded(1, called("2", wrote(0, 0, 20, 2))))
	log := []*history.LoggedTxn{undone(20, update(20, 1, 2)), committed(21, 140, 150, remove(21, 1))}
	if got := past(settled(t, log, []*history.Txn{txn})); got != "" {
		t.Errorf("past isotap went %q", got)
	}
}

// TestPlacesThatTwoRunsReadByTurnsNameNothing: one run's log has a gap that the other's fills, and a place was another
// version's in between.
func TestPlacesThatTwoRunsReadByTurnsNameNothing(t *testing.T) {
	r := New(history.FirstPast)
	info := aRun()
	info.Server.System = 99
	r.AddRun(info)
	r.AddSession(history.Session{Run: theRun, ID: 1, Database: "shop"})
	other := info
	other.Run++
	r.AddRun(other)
	r.AddLogged(theRun, committed(20, 120, 130, update(20, 1, 2)))
	r.AddLogged(other.Run, committed(21, 140, 150, update(21, 5, 3)))
	r.AddLogged(theRun, committed(22, 160, 170, update(22, 1, 4)))
	r.Link()
	if err := r.Observe(recorded(1, saw(5, 1))); err != nil {
		t.Fatal(err)
	}
	r.Settle()
	if got := past(r); got != "" {
		t.Errorf("past isotap went %q", got)
	}
}

// TestNamesThatAnotherRowStillHadAreLeftOut: a row that bears a name in the end was written when another row still had
// that, as a write of the other one that came later tells.
func TestNamesThatAnotherRowStillHadAreLeftOut(t *testing.T) {
	made := committed(21, 110, 115, made(21, 4)) // at 400
	const rekeyed = "UPDATE public.acc /* past isotap */ #2, ended 120 to 130, "
	const end = "UPDATE public.acc /* past isotap */ #1, ended 140 to 150"
	for _, c := range []struct {
		name string
		log  *history.LoggedTxn
		want string
	}{
		{"deleted behind it", committed(24, 120, 130, at(600, remove(24, 1))),
			"DELETE FROM public.acc /* past isotap */ #1, ended 120 to 130, " + end},
		{"called differently behind it", committed(24, 120, 130, update(24, 1, 6)), rekeyed + end},
		{"called differently before it", committed(24, 120, 130, at(300, update(24, 1, 6))),
			"INSERT INTO public.acc /* past isotap */ #1, ended 110 to 115, " + rekeyed + end},
		{"a deletion behind it that was undone", undone(24, at(600, remove(24, 1))), end},
	} {
		log := []*history.LoggedTxn{made, c.log, committed(25, 140, 150, update(25, 4, 8))}
		txn := recorded(1, saw(5, 1), called("2", saw(24, 6)), saw(25, 8))
		if got := past(settled(t, log, []*history.Txn{txn})); got != c.want {
			t.Errorf("%s: past isotap went %q, want %q", c.name, got, c.want)
		}
	}
}
