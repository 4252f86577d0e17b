package foreign_test

import (
	"slices"
	"testing"

	"github.com/isotap/isotap/analyzer/foreign"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

const run = history.Run(1)

var row = history.Row{Table: "shop.acc", ID: "r"}

func id(seq uint32) history.TxnID { return history.MakeTxnID(run, seq) }

func tag(seq, stmt uint32) history.Tag { return history.Tag{Txn: id(seq), Stmt: stmt} }

// update is an update of the row in the log, which left the tag to as it had found from, and ended between two times.
func update(position uint64, from, to history.Tag, times ...int64) *history.LoggedTxn {
	return &history.LoggedTxn{Status: history.Committed, Position: position, From: times[0], To: times[1], Seen: times[1],
		Writes: []history.LoggedWrite{{Op: history.UpdateRow, Row: row, Old: from, New: to}}}
}

// one is a transaction of one statement.
func one(seq uint32, kind history.Kind, op history.Op, version history.Tag, from, to int64) *history.Txn {
	return &history.Txn{ID: id(seq), Level: history.RepeatableRead, Status: history.Committed, Start: from, End: to,
		Stmts: []history.Stmt{{Num: 1, Kind: kind, Observation: history.Exact, Start: from, End: to,
			Accesses: []history.Access{{Row: row, Op: op, Version: version}}}}}
}

// resolver knows a log, and recorded transactions.
func resolver(t *testing.T, log []*history.LoggedTxn, txns ...*history.Txn) *foreign.Resolver {
	t.Helper()
	r := foreign.New()
	r.AddRun(history.Info{Run: run, Server: history.Server{Engine: dbms.MariaDB}})
	for _, l := range log {
		r.Note(l)
	}
	for _, txn := range txns {
		if err := r.Collect(txn); err != nil {
			t.Fatal(err)
		}
	}
	for i, l := range log {
		l.Number = uint32(i + 1)
		r.Add(run, l)
	}
	r.Settle()
	return r
}

func TestReadsArePlacedByTheClock(t *testing.T) {
	log := []*history.LoggedTxn{update(1, history.Tag{}, tag(1, 1), 10, 20), update(2, tag(1, 1), tag(1, 1), 50, 60)}
	past := history.Tag{Txn: history.MakeTxnID(history.FirstPast, 2), Stmt: 1}
	unknown := history.Tag{Txn: history.MakeTxnID(history.Unrecorded, 0)}
	for _, c := range []struct {
		name     string
		from, to int64
		level    history.Level
		want     history.Tag
	}{
		{"before anybody could see it", 30, 50, history.RepeatableRead, tag(1, 1)},
		{"when everybody saw it", 60, 70, history.RepeatableRead, past},
		{"meanwhile", 30, 51, history.RepeatableRead, unknown},
		{"uncommitted", 30, 50, history.ReadUncommitted, unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			read := one(3, history.Select, history.Read, tag(1, 1), c.from, c.to)
			read.Level = c.level
			resolver(t, log, read).Resolve(read)
			got := read.Stmts[0].Accesses[0].Version
			if c.want == unknown && got.Txn.Run() != history.Unrecorded || c.want != unknown && got != c.want {
				t.Errorf("it read %v instead of %v", got, c.want)
			}
		})
	}
}

func TestTransactionsPastIsotapReplaceWhatTheyFound(t *testing.T) {
	log := []*history.LoggedTxn{update(1, history.Tag{}, tag(1, 1), 10, 20), update(2, tag(1, 1), tag(1, 1), 50, 60),
		update(3, tag(1, 1), tag(2, 1), 70, 80)}
	next := one(2, history.Update, history.UpdateRow, tag(1, 1), 65, 75)
	r := resolver(t, log, one(1, history.Update, history.UpdateRow, history.Tag{}, 5, 25), next)
	r.Resolve(next)
	_, _, past := r.Past()
	if len(past) != 1 || past[0].Stmts[0].Accesses[0].Version != tag(1, 1) ||
		next.Stmts[0].Accesses[0].Version != (history.Tag{Txn: past[0].ID, Stmt: 1}) {
		t.Errorf("past isotap %+v, then %+v", past, next.Stmts[0].Accesses)
	}
}

func TestUnseenWritesAreTheUnobservedStatements(t *testing.T) {
	other := history.Row{Table: row.Table, ID: "s"}
	deleted := history.LoggedWrite{Op: history.DeleteRow, Row: row, Old: tag(1, 1)}
	for _, c := range []struct {
		name       string
		unobserved history.Observation // of the third statement
		writes     []history.LoggedWrite
		want       uint32 // the statement that wrote other
	}{
		{"before the deletion", history.Opaque, []history.LoggedWrite{
			{Op: history.UpdateRow, Row: row, Old: tag(1, 1), New: tag(1, 1)},
			{Op: history.UpdateRow, Row: other, Old: tag(1, 2), New: tag(1, 2)}, deleted}, 3},
		{"by a trigger of the deletion", history.Exact, []history.LoggedWrite{
			{Op: history.UpdateRow, Row: row, Old: tag(1, 1), New: tag(1, 1)}, deleted,
			{Op: history.UpdateRow, Row: other, Old: tag(1, 2), New: tag(1, 2)}}, 4},
		{"behind a write of an earlier statement", history.Opaque, []history.LoggedWrite{
			{Op: history.InsertRow, Row: history.Row{Table: row.Table, ID: "t"}, New: tag(2, 1)},
			{Op: history.UpdateRow, Row: other, Old: tag(1, 2), New: tag(1, 2)}, deleted}, 3},
		{"behind the unobserved statement's own", history.Opaque, []history.LoggedWrite{
			{Op: history.InsertRow, Row: history.Row{Table: row.Table, ID: "t"}, New: tag(2, 3)},
			{Op: history.UpdateRow, Row: other, Old: tag(1, 2), New: tag(1, 2)}}, 3},
		{"by a trigger between two statements", history.Exact, []history.LoggedWrite{
			{Op: history.InsertRow, Row: history.Row{Table: row.Table, ID: "t"}, New: tag(2, 3)},
			{Op: history.UpdateRow, Row: other, Old: tag(1, 2), New: tag(1, 2)},
			{Op: history.InsertRow, Row: history.Row{Table: row.Table, ID: "u"}, New: tag(2, 4)}}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			txn := &history.Txn{ID: id(2), Level: history.ReadCommitted, Status: history.Committed, Start: 40, End: 70,
				Stmts: []history.Stmt{{Num: 1, Kind: history.Begin, Start: 40, End: 41},
					{Num: 2, Kind: history.Select, Observation: history.Exact, Start: 42, End: 43,
						Accesses: []history.Access{{Row: row, Version: tag(1, 1)}, {Row: other, Version: tag(1, 2)}}},
					{Num: 3, Kind: history.Update, Observation: c.unobserved, Start: 44, End: 45},
					{Num: 4, Kind: history.Delete, Observation: history.Exact, Start: 46, End: 47,
						Accesses: []history.Access{{Row: row, Op: history.DeleteRow, Version: tag(1, 1)}}},
					{Num: 5, Kind: history.Commit, Start: 60, End: 70}}}
			logged := &history.LoggedTxn{Status: history.Committed, Position: 3, From: 61, To: 70, Seen: 70, Writes: c.writes}
			r := resolver(t, []*history.LoggedTxn{update(1, history.Tag{}, tag(1, 1), 10, 20), logged}, txn)
			r.Resolve(txn)
			var writers []uint32
			for _, s := range txn.Stmts {
				for _, a := range s.Accesses {
					if a.Row == other && a.Op == history.UpdateRow {
						writers = append(writers, s.Num)
					}
				}
			}
			if !slices.Equal(writers, []uint32{c.want}) {
				t.Errorf("statements %v wrote the other row, want %d", writers, c.want)
			}
			if len(txn.Stmts[0].Accesses) > 0 {
				t.Errorf("BEGIN wrote %v", txn.Stmts[0].Accesses)
			}
		})
	}
}

func TestWhoMayBeRecordedIsNotPastIsotap(t *testing.T) {
	call := &history.Txn{ID: id(9), Status: history.Committed, Start: 40, End: 70,
		Stmts: []history.Stmt{{Num: 1, Kind: history.Call, Observation: history.Opaque, Start: 40, End: 70}}}
	log := []*history.LoggedTxn{update(2, tag(1, 1), tag(1, 1), 50, 60)}
	r := resolver(t, log, call)
	if _, _, past := r.Past(); len(past) > 0 {
		t.Errorf("a procedure's write is past isotap: %+v", past[0])
	}
	read := one(3, history.Select, history.Read, tag(1, 1), 80, 90)
	r.Resolve(read)
	if v := read.Stmts[0].Accesses[0].Version; v.Txn.Run() != history.Unrecorded {
		t.Errorf("it was read as %v", v)
	}
}

func TestWritesOfUnknownWritersAreDifferentVersions(t *testing.T) {
	call := &history.Txn{ID: id(9), Status: history.Committed, Start: 40, End: 70,
		Stmts: []history.Stmt{{Num: 1, Kind: history.Call, Observation: history.Opaque, Start: 40, End: 70}}}
	log := []*history.LoggedTxn{update(1, history.Tag{}, tag(1, 1), 10, 20), update(2, tag(1, 1), tag(1, 1), 45, 50),
		update(3, tag(1, 1), tag(1, 1), 55, 60), update(4, tag(1, 1), tag(2, 1), 80, 90)}
	next := one(2, history.Update, history.UpdateRow, tag(1, 1), 75, 85)
	resolver(t, log, call, next).Resolve(next)
	a := next.Stmts[0].Accesses[0]
	if len(a.Prior) != 2 || a.Prior[0] != tag(1, 1) || a.Prior[1] == a.Version ||
		a.Prior[1].Txn.Run() != history.Unrecorded || a.Version.Txn.Run() != history.Unrecorded {
		t.Errorf("it replaced %v, behind %v", a.Version, a.Prior)
	}
}
