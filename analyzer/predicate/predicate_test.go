package predicate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

const run = history.Run(7)

func id(n uint32) history.TxnID { return history.MakeTxnID(run, n) }

// A step is a write of the row by transaction n over the version of another (0: what was there before), whose
// statement was sent at a time; it matches the predicate or does not.
type step struct {
	n, over uint32
	sent    int64
	op      history.Op
	matches bool
}

// chained returns the transactions of writes of one row, and what matches the predicate.
func chained(steps []step) (txns []*history.Txn, m history.Matches) {
	row := history.Row{Table: "public.t", ID: "1"}
	for _, s := range steps {
		a := history.Access{Row: row, Op: s.op}
		if s.over > 0 {
			a.Version = history.Tag{Txn: id(s.over), Stmt: 1}
		}
		image := "(1)"
		if s.op == history.DeleteRow {
			image = ""
		}
		txns = append(txns, &history.Txn{ID: id(s.n), Status: history.Committed, Start: s.sent, End: s.sent + 1,
			Stmts: []history.Stmt{{Num: 1, Start: s.sent, End: s.sent + 1, Observation: history.Exact,
				Accesses: []history.Access{a}, Images: []string{image}}}})
		if s.matches {
			m.Versions = append(m.Versions, history.VersionRef{Txn: id(s.n), Stmt: 1})
		}
	}
	return txns, m
}

var chosen = history.Predicate{Table: "public.t", Of: `"public"."t"`, As: `"t"`, Where: "a = 1"}

// TestLastVersionThatMayHaveBeenSeen has a statement from 100 to 110 look for rows, while one row has several
// versions: what is added is the version below the one that matches, or nothing.
func TestLastVersionThatMayHaveBeenSeen(t *testing.T) {
	ins, upd, del := history.InsertRow, history.UpdateRow, history.DeleteRow
	for _, c := range []struct {
		name  string
		steps []step
		want  string // the version; none: nothing is added
	}{
		{"inserted", []step{{1, 0, 105, ins, true}}, "0"},
		{"inserted long before: somebody took it away", []step{{1, 0, 50, ins, true}}, "none"},
		{"inserted afterwards", []step{{1, 0, 115, ins, true}}, "0"},
		{"inserted by one who began when the transaction had ended", []step{{1, 0, 500, ins, true}}, "none"},
		{"inserted, does not match", []step{{1, 0, 105, ins, false}}, "none"},
		{"changed so that it matches", []step{{1, 0, 105, upd, true}}, "0"},
		{"changed twice, the second matches", []step{{1, 0, 50, ins, false}, {2, 1, 105, upd, true}}, "1"},
		{"matches, and then no more: either may have been seen",
			[]step{{1, 0, 105, ins, true}, {2, 1, 107, upd, false}}, "none"},
		{"matches, and no more after the reply", []step{{1, 0, 105, ins, true}, {2, 1, 111, upd, false}}, "0"},
		{"matches, and is deleted", []step{{1, 0, 105, ins, true}, {2, 1, 107, del, false}}, "none"},
		{"matches, and is deleted after the reply", []step{{1, 0, 105, ins, true}, {2, 1, 111, del, false}}, "0"},
		{"comes and goes and comes", []step{{1, 0, 10, ins, true}, {2, 1, 20, upd, false}, {3, 2, 105, upd, true}},
			"2"},
		{"comes after the reply, by way of one that does not match",
			[]step{{1, 0, 112, ins, false}, {2, 1, 116, upd, true}}, "1"},
		{"written by the transaction itself", []step{{1, 0, 50, ins, true}, {9, 1, 120, upd, true}}, "none"},
		{"two over one", []step{{1, 0, 50, ins, true}, {2, 1, 60, upd, true}, {3, 1, 70, upd, true}}, "none"},
		{"two beginnings", []step{{1, 0, 50, ins, true}, {2, 0, 60, ins, true}}, "none"},
	} {
		txns, m := chained(c.steps)
		m.Predicate = chosen
		reader := &history.Txn{ID: id(9), Session: 3, Status: history.Committed, Start: 100, End: 120,
			Stmts: []history.Stmt{{Num: 1, Start: 100, End: 110, Observation: history.Exact,
				Predicates: []history.Predicate{chosen}}}}
		if got := resolve(m, append(txns, reader), reader); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestARowMayBeWrittenByWhoLookedForItInVain has a transaction look for rows, in its second statement, and write one in
// its first or third that another inserted at the same time, as an UPDATE meets what a snapshot lacks.
func TestARowMayBeWrittenByWhoLookedForItInVain(t *testing.T) {
	for _, c := range []struct {
		name   string
		insert step
		own    step // by transaction 9
		num    uint32
		want   string
	}{
		{"written afterwards", step{1, 0, 105, history.InsertRow, true}, step{9, 1, 115, history.UpdateRow, true}, 3, "0"},
		{"deleted afterwards", step{1, 0, 105, history.InsertRow, true}, step{9, 1, 115, history.DeleteRow, false}, 3, "0"},
		{"made to match afterwards", step{1, 0, 105, history.InsertRow, false}, step{9, 1, 115, history.UpdateRow, true}, 3, "none"},
		{"written before: it saw its own version", step{1, 0, 90, history.InsertRow, true}, step{9, 1, 95, history.UpdateRow, false}, 1, "none"},
	} {
		txns, m := chained([]step{c.insert, c.own})
		m.Predicate = chosen
		reader := txns[1]
		reader.Session, reader.Start, reader.End = 3, 80, 120
		write := reader.Stmts[0]
		write.Num = c.num
		look := history.Stmt{Num: 2, Start: 100, End: 110, Observation: history.Exact, Predicates: []history.Predicate{chosen}}
		reader.Stmts = []history.Stmt{look, write}
		slices.SortFunc(reader.Stmts, func(a, b history.Stmt) int { return int(a.Num) - int(b.Num) })
		for i := range m.Versions {
			if m.Versions[i].Txn == reader.ID {
				m.Versions[i].Stmt = c.num
			}
		}
		if got := resolve(m, txns, reader); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestStatementsThatLockWaitForWhoWroteBefore has a row inserted from 100 to 101 by a transaction that commits at 150,
// while a statement from 110 on looked for it in vain: one that locks on InnoDB has waited for the commit, so that
// somebody whom isotap does not see has deleted the row.
func TestStatementsThatLockWaitForWhoWroteBefore(t *testing.T) {
	for _, c := range []struct {
		engine  dbms.Engine
		level   history.Level
		kind    history.Kind
		locking history.Locking
		sent    int64
		want    string
	}{
		{"mariadb", history.Serializable, history.Update, history.NoLock, 110, "none"},
		{"mysql", history.RepeatableRead, history.Select, history.LockUpdate, 110, "none"},
		{"mariadb", history.RepeatableRead, history.Delete, history.NoLock, 100, "0"}, // it may have been there first
		{"mariadb", history.RepeatableRead, history.Select, history.NoLock, 110, "0"},
		{"mariadb", history.ReadCommitted, history.Update, history.NoLock, 110, "0"}, // passes over what is not committed
		{"tidb", history.RepeatableRead, history.Update, history.NoLock, 110, "0"},   // it locks the rows that it finds
		{"postgresql", history.RepeatableRead, history.Update, history.NoLock, 110, "0"},
	} {
		txns, m := chained([]step{{1, 0, 100, history.InsertRow, true}})
		txns[0].End, m.Predicate = 150, chosen
		reader := &history.Txn{ID: id(9), Status: history.Committed, Level: c.level, Start: 90, End: 170,
			Stmts: []history.Stmt{{Num: 1, Kind: c.kind, Locking: c.locking, Start: c.sent, End: 160,
				Observation: history.Exact, Predicates: []history.Predicate{chosen}}}}
		if got := resolveOn(c.engine, m, append(txns, reader), reader); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestClocksDoNotOrderProxiesWritesAtOnce has a row inserted that a statement did not find, and changed through another
// proxy, of which it is not known whether that was before.
func TestClocksDoNotOrderProxiesWritesAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		otherStarted time.Time
		want         string
	}{"at once": {time.Unix(150, 0), "none"}, "afterwards": {time.Unix(250, 0), "0"}} {
		txns, m := chained([]step{{1, 0, 105, history.InsertRow, true}, {2, 1, 500, history.UpdateRow, false}})
		m.Predicate = chosen
		txns[1].ID = history.MakeTxnID(run+1, 2)
		reader := &history.Txn{ID: id(9), Status: history.Committed, Start: 100, End: 120,
			Stmts: []history.Stmt{{Num: 1, Start: 100, End: 110, Observation: history.Exact,
				Predicates: []history.Predicate{chosen}}}}
		r := New()
		for i, started := range []time.Time{time.Unix(100, 0), c.otherStarted} {
			r.AddRun(history.Info{Run: run + history.Run(i), Started: started, Ended: time.Unix(int64(200+100*i), 0),
				Mode: "predicates", Server: history.Server{Engine: "postgresql"}})
		}
		r.AddMatches(run, m)
		for _, x := range append(txns, reader) {
			r.Collect(x)
		}
		r.Settle()
		r.Resolve(reader)
		got := "none"
		for _, a := range reader.Stmts[0].Accesses {
			got = fmt.Sprint(a.Version.Txn.Seq())
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// resolve returns the version that is added to the reader's first statement, as the number of its transaction.
func resolve(m history.Matches, txns []*history.Txn, reader *history.Txn) string {
	return resolveOn(dbms.PostgreSQL, m, txns, reader)
}

func resolveOn(engine dbms.Engine, m history.Matches, txns []*history.Txn, reader *history.Txn) string {
	r := New()
	r.AddRun(history.Info{Run: run, Server: history.Server{Engine: engine}})
	r.AddMatches(run, m)
	for _, x := range txns {
		if x != reader || slices.ContainsFunc(x.Stmts, func(s history.Stmt) bool { return s.Accesses != nil }) {
			r.Collect(x)
		}
	}
	r.Settle()
	look := &reader.Stmts[max(slices.IndexFunc(reader.Stmts, func(s history.Stmt) bool { return s.Predicates != nil }), 0)]
	before := len(look.Accesses)
	r.Resolve(reader)
	var out []string
	for _, a := range look.Accesses[before:] {
		if !a.Absent || a.Op != history.Read {
			return fmt.Sprintf("%+v", a)
		}
		out = append(out, fmt.Sprint(a.Version.Txn.Seq()))
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, " ")
}

// TestPossibleDeletionsAreNotClaimed has somebody else write beside a statement from 100 to 110 and the writer of
// a row that it did not find, at 105 or after the reply.
func TestPossibleDeletionsAreNotClaimed(t *testing.T) {
	for _, c := range []struct {
		name     string
		kind     history.Kind
		how      history.Observation
		from, to int64
		sent     int64
		want     string
	}{
		{"a REPLACE between", history.Replace, history.Inexact, 106, 107, 105, "none"},
		{"a procedure that was under way", history.Call, history.Opaque, 90, 107, 105, "none"},
		{"a table that is emptied", history.DDL, history.Nothing, 106, 107, 105, "none"},
		{"a procedure that had ended", history.Call, history.Opaque, 90, 104, 105, "0"},
		{"a procedure that came later", history.Call, history.Opaque, 111, 112, 105, "0"},
		{"a REPLACE that was observed", history.Replace, history.Exact, 106, 107, 105, "0"},
		{"a read", history.Select, history.Opaque, 106, 107, 105, "0"},
		{"the row came after the reply", history.Call, history.Opaque, 90, 190, 111, "0"},
	} {
		txns, m := chained([]step{{1, 0, c.sent, history.InsertRow, true}})
		m.Predicate = chosen
		reader := &history.Txn{ID: id(9), Status: history.Committed, Start: 100, End: 120,
			Stmts: []history.Stmt{{Num: 1, Start: 100, End: 110, Observation: history.Exact,
				Predicates: []history.Predicate{chosen}}}}
		other := &history.Txn{ID: id(8), Status: history.Committed, Start: c.from, End: c.to,
			Stmts: []history.Stmt{{Num: 1, Kind: c.kind, Observation: c.how, Start: c.from, End: c.from + 1}}}
		if got := resolve(m, append(txns, other, reader), reader); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestCurrentReadsFindWhatHadBeenCommitted has a row come while a transaction was under way, before the
// statement that did not find it: it was gone again, unless the statement saw the transaction's snapshot.
func TestCurrentReadsFindWhatHadBeenCommitted(t *testing.T) {
	for _, c := range []struct {
		engine  dbms.Engine
		level   history.Level
		kind    history.Kind
		locking history.Locking
		want    string
	}{
		{"mariadb", history.RepeatableRead, history.Select, history.NoLock, "0"},
		{"mariadb", history.RepeatableRead, history.Select, history.LockShare, "none"},
		{"mysql", history.RepeatableRead, history.Update, history.NoLock, "none"},
		{"mysql", history.Serializable, history.Select, history.NoLock, "none"},
		{"mysql", history.ReadCommitted, history.Select, history.NoLock, "none"},
		{"postgresql", history.Serializable, history.Select, history.NoLock, "0"},
		{"postgresql", history.RepeatableRead, history.Update, history.LockUpdate, "0"},
		{"postgresql", history.ReadCommitted, history.Select, history.NoLock, "none"},
	} {
		txns, m := chained([]step{{1, 0, 105, history.InsertRow, true}})
		m.Predicate = chosen
		reader := &history.Txn{ID: id(9), Status: history.Committed, Level: c.level, Start: 100, End: 120,
			Stmts: []history.Stmt{{Num: 1, Kind: c.kind, Locking: c.locking, Start: 108, End: 110,
				Observation: history.Exact, Predicates: []history.Predicate{chosen}}}}
		if got := resolveOn(c.engine, m, append(txns, reader), reader); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestNothingIsAddedWhereItIsNotCertain(t *testing.T) {
	statement := func(change func(*history.Stmt)) *history.Txn {
		s := history.Stmt{Num: 1, Start: 100, End: 110, Observation: history.Exact,
			Predicates: []history.Predicate{chosen}}
		change(&s)
		return &history.Txn{ID: id(9), Status: history.Committed, Start: 100, End: 120, Stmts: []history.Stmt{s}}
	}
	plain := func(*history.Stmt) {}
	for name, c := range map[string]struct {
		reader func(*history.Stmt)
		writer func(*history.Txn)
	}{
		"the statement failed": {func(s *history.Stmt) { s.Void = true }, func(*history.Txn) {}},
		"it was not observed exactly": {func(s *history.Stmt) { s.Observation = history.Inexact },
			func(*history.Txn) {}},
		"it found the row": {func(s *history.Stmt) {
			s.Accesses = []history.Access{{Row: history.Row{Table: "public.t", ID: "1"}}}
		}, func(*history.Txn) {}},
		"another predicate": {func(s *history.Stmt) { s.Predicates[0].Where = "a = 2" },
			func(*history.Txn) {}},
		"the writer rolled back":          {plain, func(w *history.Txn) { w.Status = history.Aborted }},
		"nobody knows how it ended":       {plain, func(w *history.Txn) { w.Status = history.Indeterminate }},
		"the write was undone":            {plain, func(w *history.Txn) { w.Stmts[0].Void = true }},
		"the write is not known for sure": {plain, func(w *history.Txn) { w.Stmts[0].Accesses[0].Inexact = true }},
	} {
		txns, m := chained([]step{{1, 0, 105, history.InsertRow, true}})
		m.Predicate = chosen
		c.writer(txns[0])
		reader := statement(func(s *history.Stmt) { s.Predicates = slices.Clone(s.Predicates); c.reader(s) })
		if got := resolve(m, append(txns, reader), reader); got != "none" {
			t.Errorf("%s: %s", name, got)
		}
	}
}
