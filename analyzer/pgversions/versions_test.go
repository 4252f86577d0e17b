package pgversions_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer/pgversions"
	"github.com/isotap/isotap/history"
)

const testRun history.Run = 36 * 36 * 36 * 36 * 36

// A shown is an access as PostgreSQL shows it.
type shown struct {
	stmt  uint32
	op    history.Op
	row   string // of table t
	place history.TupleID
}

type client struct {
	status history.Status
	void   []uint32 // statements
	hides  bool     // one statement is opaque
	nested bool     // it has a savepoint
	shown  []shown
}

func (c *client) txn(run history.Run, seq uint32) *history.Txn {
	t := &history.Txn{ID: history.MakeTxnID(run, seq), Session: history.SessionID(seq), Status: c.status,
		Level: history.ReadCommitted}
	if c.nested {
		t.Stmts = append(t.Stmts, history.Stmt{Num: 90, Kind: history.Savepoint})
	}
	if c.hides {
		t.Stmts = append(t.Stmts, history.Stmt{Num: 91, Kind: history.Call, Observation: history.Opaque})
	}
	for _, s := range c.shown {
		i := slices.IndexFunc(t.Stmts, func(x history.Stmt) bool { return x.Num == s.stmt })
		if i < 0 {
			i = len(t.Stmts)
			t.Stmts = append(t.Stmts, history.Stmt{Num: s.stmt, Observation: history.Exact,
				Void: slices.Contains(c.void, s.stmt)})
		}
		x := &t.Stmts[i]
		x.Accesses = append(x.Accesses, history.Access{Op: s.op, Row: history.Row{Table: "t", ID: s.row}})
		x.TupleIDs = append(x.TupleIDs, s.place)
	}
	return t
}

// names writes what accesses became: "T1.2 read 5 T3.1", an inexact one with a ?, the initial version as 0,
// an unrecorded one as its xid, what stands below one behind <.
func names(txns []*history.Txn) []string {
	var all []string
	for _, t := range txns {
		for _, s := range t.Stmts {
			for _, a := range s.Accesses {
				text := fmt.Sprintf("T%d.%d %s %s %s", t.ID.Seq(), s.Num, a.Op, a.Row.ID, tagName(a.Version))
				for _, p := range a.Prior {
					text += "<" + tagName(p)
				}
				if a.Inexact {
					text += "?"
				}
				if a.Row.Table != "t" {
					text += " of " + a.Row.Table
				}
				all = append(all, text)
			}
		}
	}
	return all
}

func tagName(t history.Tag) string {
	switch {
	case t.Initial():
		return "0"
	case t.Txn.Run() == history.Unrecorded:
		return fmt.Sprintf("x%d", t.Txn.Seq())
	case t.Txn.Run() == history.Forgotten:
		return fmt.Sprintf("f%d", t.Txn.Seq())
	}
	return fmt.Sprintf("T%d.%d", t.Txn.Seq(), t.Stmt)
}

const (
	read, insert, update, remove = history.Read, history.InsertRow, history.UpdateRow, history.DeleteRow
	yes, no, perhaps             = history.Committed, history.Aborted, history.Indeterminate
)

// at is a place that shows a version, left one that a write left, moved both; gone is a deletion's.
func at(xid uint32, ctid uint64) history.TupleID { return history.TupleID{XID: xid, CTID: ctid} }

func left(xid uint32, ctid, lsn uint64) history.TupleID {
	return history.TupleID{NewXID: xid, NewID: ctid, LSN: lsn}
}

func moved(old uint32, oldID uint64, xid uint32, ctid, lsn uint64) history.TupleID {
	return history.TupleID{XID: old, CTID: oldID, NewXID: xid, NewID: ctid, LSN: lsn}
}

func gone(old uint32, oldID, lsn uint64) history.TupleID {
	return history.TupleID{XID: old, CTID: oldID, LSN: lsn}
}

func inLeaf(p history.TupleID, leaf uint32) history.TupleID {
	p.Leaf = leaf
	return p
}

func tagged(p history.TupleID) history.TupleID {
	p.Tagged = true
	return p
}

func TestVersionsAreFoundByTheirPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		clients []client
		want    string
	}{
		"by xmin and ctid": {[]client{
			{status: yes, shown: []shown{{1, update, "5", left(110, 7, 10)}, {2, update, "5", left(110, 8, 20)}}},
			{status: yes, shown: []shown{{1, read, "5", at(50, 6)}, {2, read, "5", at(110, 7)},
				{3, read, "5", at(110, 8)}}},
		}, "T1.1 update 5 0, T1.2 update 5 T1.1, T2.1 read 5 0, T2.2 read 5 T1.1, T2.3 read 5 T1.2"},
		"the last write where the ctid is another": {[]client{
			{status: yes, shown: []shown{{1, update, "5", left(110, 7, 10)}, {2, update, "5", left(110, 8, 20)}}},
			{status: yes, shown: []shown{{1, read, "5", at(110, 9)}}},
		}, "T1.1 update 5 0, T1.2 update 5 T1.1, T2.1 read 5 T1.2"},
		"the log's order, not that of the recording": {[]client{
			{status: yes, shown: []shown{{1, update, "5", left(112, 8, 20)}}},
			{status: yes, shown: []shown{{1, update, "5", left(111, 7, 10)}}},
		}, "T1.1 update 5 T2.1, T2.1 update 5 0"},
		"who rolled back is passed over": {[]client{
			{status: yes, shown: []shown{{1, update, "5", left(111, 7, 10)}}},
			{status: no, shown: []shown{{1, update, "5", left(112, 8, 20)}}},
			{status: yes, shown: []shown{{1, update, "5", left(113, 9, 30)}, {2, read, "5", at(112, 8)}}},
		}, "T1.1 update 5 0, T2.1 update 5 T1.1, T3.1 update 5 T1.1, T3.2 read 5 T2.1"},
		"a savepoint's xid, undone": {[]client{
			{status: yes, nested: true, void: []uint32{2}, shown: []shown{{1, update, "5", left(111, 7, 10)},
				{2, update, "5", left(112, 8, 20)},
				{3, update, "5", left(111, 9, 30)}}},
			{status: yes, shown: []shown{{1, read, "5", at(111, 9)}, {2, read, "5", at(112, 8)}}},
		}, "T1.1 update 5 0, T1.2 update 5 T1.1, T1.3 update 5 T1.1, T2.1 read 5 T1.3, T2.2 read 5 T1.2"},
		"who may have committed makes the next one inexact": {[]client{
			{status: perhaps, shown: []shown{{1, update, "5", left(111, 7, 10)}}},
			{status: yes, shown: []shown{{1, update, "5", left(112, 8, 20)}}},
			{status: yes, shown: []shown{{1, remove, "5", gone(112, 8, 30)}}},
		}, "T1.1 update 5 0, T2.1 update 5 0?, T3.1 delete 5 T2.1"},
		"a row is made again": {[]client{
			{status: yes, shown: []shown{{1, remove, "5", gone(50, 6, 10)}}},
			{status: yes, shown: []shown{{1, insert, "5", left(112, 8, 20)}}},
		}, "T1.1 delete 5 0, T2.1 insert 5 T1.1"},
		"a row that somebody made again": {[]client{
			{status: yes, shown: []shown{{1, remove, "5", gone(50, 6, 10)}}},
			{status: yes, shown: []shown{{1, update, "5", left(112, 8, 20)}}},
		}, "T1.1 delete 5 0, T2.1 update 5 x0<T1.1"},
		"what nobody recorded": {[]client{
			{status: yes, shown: []shown{{1, update, "5", left(110, 7, 10)}}},
			{status: yes, shown: []shown{{1, read, "5", at(120, 9)}, {2, read, "6", at(99, 9)},
				{3, read, "7", at(2, 1)}, {4, read, "6", at(100, 9)}}},
			{status: yes, shown: []shown{{1, update, "5", moved(120, 9, 130, 10, 20)}}},
		}, "T1.1 update 5 0, T2.1 read 5 x120, T2.2 read 6 0, T2.3 read 7 0, T2.4 read 6 x100, T3.1 update 5 x120<T1.1"},
		"an old xid of before the counter went round": {[]client{
			{status: yes, shown: []shown{{1, read, "5", at(1<<32-5, 9)}}},
		}, "T1.1 read 5 0"},
		"a trigger's write has its transaction, not its statement": {[]client{
			{status: yes, hides: true, shown: []shown{{1, update, "5", left(110, 7, 10)}}},
			{status: yes, shown: []shown{{1, read, "6", at(110, 9)}}},
		}, "T1.1 update 5 0, T2.1 read 6 T1.0"},
		"a transaction that hides nothing has not written it": {[]client{
			{status: yes, shown: []shown{{1, update, "5", left(110, 7, 10)}}},
			{status: yes, shown: []shown{{1, read, "6", at(110, 9)}}},
		}, "T1.1 update 5 0, T2.1 read 6 x110"},
		"what a hidden write may have left over one that is known is not certain": {[]client{
			{status: yes, hides: true, shown: []shown{{1, update, "5", left(110, 7, 10)}, {92, read, "5", at(110, 8)}}},
			{status: yes, shown: []shown{{1, read, "5", at(110, 8)}, {2, read, "5", at(110, 7)}}},
		}, "T1.1 update 5 0, T1.92 read 5 T1.1?, T2.1 read 5 T1.1?, T2.2 read 5 T1.1"},
		"a write without its place in the log": {[]client{
			{status: yes, shown: []shown{{1, update, "5", left(110, 7, 0)}}},
			{status: yes, shown: []shown{{1, update, "5", left(111, 8, 20)}, {2, read, "5", at(110, 7)}}},
		}, "T1.1 update 5 0?, T2.1 update 5 0, T2.2 read 5 T1.1"},
		"a row names who wrote it": {[]client{
			{status: yes, shown: []shown{{1, insert, "5", tagged(left(110, 7, 10))},
				{2, update, "5", tagged(moved(110, 7, 110, 8, 20))}}},
			{status: yes, shown: []shown{{1, read, "6", tagged(at(50, 6))}, {2, read, "5", tagged(at(110, 7))},
				{3, read, "5", tagged(at(110, 8))}}},
			{status: yes, shown: []shown{{1, update, "5", tagged(moved(110, 8, 120, 9, 30))},
				{2, read, "", tagged(at(0, 0))}}},
		}, "T1.1 insert 5 0, T1.2 update 5 T1.1, T2.1 read 6 0, T2.2 read 5 T1.1, T2.3 read 5 T1.2, T3.1 update 5 T1.2"},
		"who leaves a row's list as it was shows in its xmin": {[]client{
			{status: yes, shown: []shown{{1, update, "5", tagged(moved(50, 1, 110, 7, 10))}}},
			{status: yes, hides: true, shown: []shown{{1, update, "6", tagged(moved(50, 1, 120, 8, 20))}}},
			{status: yes, shown: []shown{{1, read, "5", tagged(at(130, 7))}, {2, read, "5", tagged(at(120, 7))},
				{3, remove, "5", tagged(gone(130, 7, 40))}}},
			{status: yes, shown: []shown{{1, read, "7", tagged(at(90, 3))}, {2, read, "7", tagged(at(140, 3))}}},
		}, "T1.1 update 5 0, T2.1 update 6 0, T3.1 read 5 x130, T3.2 read 5 T2.0, T3.3 delete 5 x130<T1.1, T4.1 read 7 0, T4.2 read 7 x140"},
		"a list has the transaction of a subtransaction's write": {[]client{
			{status: yes, nested: true, shown: []shown{{1, update, "5", tagged(moved(50, 1, 112, 7, 10))}}},
			{status: yes, shown: []shown{{1, read, "5", tagged(at(112, 7))},
				{2, update, "5", tagged(moved(110, 7, 120, 8, 20))}}},
		}, "T1.1 update 5 0, T2.1 read 5 T1.1, T2.2 update 5 T1.1"},
		"one position for two statements where nothing is logged": {[]client{
			{status: yes, shown: []shown{{1, update, "5", tagged(moved(50, 1, 110, 7, 10))},
				{2, read, "5", tagged(at(110, 7))}, {3, update, "5", tagged(moved(110, 7, 110, 7, 10))}}},
			{status: yes, shown: []shown{{1, read, "5", tagged(at(110, 7))}}},
		}, "T1.1 update 5 0, T1.2 read 5 T1.1, T1.3 update 5 T1.1, T2.1 read 5 T1.3"},
		"one position for two transactions where nothing is logged": {[]client{
			{status: yes, shown: []shown{{1, update, "5", tagged(moved(50, 1, 110, 7, 10))}}},
			{status: no, shown: []shown{{1, update, "5", tagged(moved(110, 7, 120, 8, 20))}}},
			{status: yes, shown: []shown{{1, update, "5", tagged(moved(110, 7, 130, 8, 21))}}},
			{status: no, nested: true, shown: []shown{{1, update, "5", tagged(moved(130, 8, 140, 8, 22))}}},
			{status: yes, shown: []shown{{1, read, "5", tagged(at(130, 8))},
				{2, update, "5", tagged(moved(130, 8, 150, 9, 30))}}},
		}, "T1.1 update 5 0, T2.1 update 5 T1.1, T3.1 update 5 T1.1, T4.1 update 5 T3.1, " +
			"T5.1 read 5 T3.1, T5.2 update 5 T3.1"},
		"of one position what was rolled back is no version of others": {[]client{
			{status: yes, nested: true, shown: []shown{{1, update, "5", tagged(moved(50, 1, 112, 8, 10))}}},
			{status: no, shown: []shown{{1, update, "5", tagged(moved(50, 1, 120, 8, 11))}}},
			{status: yes, shown: []shown{{1, update, "5", tagged(moved(110, 8, 130, 9, 30))}}},
		}, "T1.1 update 5 0, T2.1 update 5 0, T3.1 update 5 T1.1"},
		"a partition's write has the xid of its transaction": {[]client{
			{status: yes, shown: []shown{{1, update, "5", inLeaf(left(0, 7, 10), 90)},
				{2, update, "6", left(110, 8, 20)}}},
			{status: yes, shown: []shown{{1, read, "5", inLeaf(at(110, 7), 90)}, {2, read, "5", inLeaf(at(120, 7), 90)},
				{3, read, "5", inLeaf(at(110, 7), 91)}}},
		}, "T1.1 update 5 0, T1.2 update 6 0, T2.1 read 5 T1.1, T2.2 read 5 x120, T2.3 read 5 x110 of t@91"},
		"a partition's write of which only the place is known is not certain": {[]client{
			{status: yes, shown: []shown{{1, update, "5", inLeaf(left(0, 7, 10), 90)}}},
			{status: yes, shown: []shown{{1, read, "5", inLeaf(at(110, 7), 90)},
				{2, read, "5", inLeaf(at(110, 7), 91)}}},
		}, "T1.1 update 5 0, T2.1 read 5 T1.1?, T2.2 read 5 x110 of t@91"},
		"an access without a place says nothing": {[]client{
			{status: yes, shown: []shown{{1, read, "5", history.TupleID{}}, {1, read, "6", at(50, 1)},
				{1, read, "", history.TupleID{}}}},
		}, "T1.1 read 6 0"},
		"rows without a key go by their first version": {[]client{
			{status: yes, shown: []shown{{1, insert, "", left(110, 1<<16|1, 10)},
				{2, update, "", moved(110, 1<<16|1, 110, 1<<16|2, 20)}}},
			{status: yes, shown: []shown{{1, update, "", moved(110, 1<<16|2, 111, 1<<16|3, 30)},
				{2, remove, "", gone(50, 9, 40)}}},
			{status: yes, shown: []shown{{1, read, "", at(111, 1<<16|3)}, {1, read, "", at(50, 9)},
				{1, read, "", at(120, 9)}}},
		}, "T1.1 insert (1,1) 110 0, T1.2 update (1,1) 110 T1.1, T2.1 update (1,1) 110 T1.2, T2.2 delete (0,9) 50 0, " +
			"T3.1 read (1,1) 110 T2.1, T3.1 read (0,9) 50 0, T3.1 read (0,9) 120 x120"},
		"what had ended was there before, whatever ran longer": {[]client{
			{status: yes, shown: []shown{{1, read, "1", at(100, 1)}, {1, read, "2", at(101, 1)},
				{1, read, "3", at(102, 1)}, {1, read, "4", at(103, 1)}}},
		}, "T1.1 read 1 x100, T1.1 read 2 0, T1.1 read 3 x102, T1.1 read 4 x103"},
		"an UPDATE that does not tell begins a row without a key": {[]client{
			{status: yes, shown: []shown{{1, update, "", left(110, 3, 10)}}},
			{status: yes, shown: []shown{{1, read, "", at(110, 3)}, {2, remove, "", gone(110, 3, 20)}}},
		}, "T1.1 update (0,3) 110 0?, T2.1 read (0,3) 110 T1.1, T2.2 delete (0,3) 110 T1.1"},
	} {
		info := history.Info{Run: testRun, Ended: time.Unix(1, 0), Horizon: 1<<32 + 100,
			Server: history.Server{Engine: "postgresql", System: 7},
			Recent: history.Recent{From: 1<<32 + 101, To: 1<<32 + 103, Running: []uint64{1<<32 + 102}}}
		var txns []*history.Txn
		for i := range c.clients {
			txns = append(txns, c.clients[i].txn(testRun, uint32(i+1)))
		}
		got, err := pgversions.Translate([]history.Info{info}, nil, txns)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(names(got), ", "); text != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, text, c.want)
		}
	}
}

// TestRewrittenTablesTupleIDsTellNothing: places in a table written anew tell no order.
func TestRewrittenTablesTupleIDsTellNothing(t *testing.T) {
	writer := client{status: yes, shown: []shown{{1, update, "5", left(110, 7, 10)}, {2, read, "5", at(110, 7)},
		{3, update, "5", left(110, 8, 20)},
		{4, insert, "", left(110, 9, 30)}}}
	reader := client{status: yes, shown: []shown{{1, read, "5", at(110, 7)}, {2, read, "5", at(110, 8)},
		{3, read, "", at(110, 9)}}}
	for rewritten, want := range map[string]string{
		"":          "T2.1 read 5 T1.3?, T2.2 read 5 T1.3, T2.3 read (0,9) 110 T1.4?", // no clean end: it may be any
		"u@shop":    "T2.1 read 5 T1.1, T2.2 read 5 T1.3, T2.3 read (0,9) 110 T1.4",
		"t@another": "T2.1 read 5 T1.1, T2.2 read 5 T1.3, T2.3 read (0,9) 110 T1.4",
		"t@shop":    "T2.1 read 5 T1.3?, T2.2 read 5 T1.3, T2.3 read (0,9) 110 T1.4?",
	} {
		info := history.Info{Run: testRun, Horizon: 100, Server: history.Server{Engine: "postgresql", System: 7}}
		if rewritten != "" {
			info.Ended, info.Rewritten = time.Unix(1, 0), []string{rewritten}
		}
		sessions := []history.Session{{Run: testRun, ID: 1, Database: "shop"}, {Run: testRun, ID: 2, Database: "shop"}}
		got, err := pgversions.Translate([]history.Info{info}, sessions,
			[]*history.Txn{writer.txn(testRun, 1), reader.txn(testRun, 2)})
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(names(got[1:]), ", "); text != want {
			t.Errorf("%s:\n%s\nwant\n%s", rewritten, text, want)
		}
	}
}

func TestTemporaryTablesAreOfTheirSessions(t *testing.T) {
	a := (&client{status: yes, shown: []shown{{1, insert, "5", left(110, 7, 10)}}}).txn(testRun, 1)
	b := (&client{status: yes, shown: []shown{{1, insert, "5", left(111, 7, 20)}}}).txn(testRun, 2)
	for _, x := range []*history.Txn{a, b} {
		x.Stmts[0].Accesses[0].Row.Table = "pg_temp.t"
	}
	got, err := pgversions.Translate(nil, nil, []*history.Txn{a, b})
	if err != nil {
		t.Fatal(err)
	}
	rows := []history.Row{got[0].Stmts[0].Accesses[0].Row, got[1].Stmts[0].Accesses[0].Row}
	if rows[0] == rows[1] || !got[1].Stmts[0].Accesses[0].Version.Initial() {
		t.Errorf("the sessions' rows are %v and %v, the second continues %v", rows[0], rows[1],
			got[1].Stmts[0].Accesses[0].Version)
	}
}

// TestEarlierRunKnowsWhatEndedBeforeTheLater: what had ended before one run of two is known by the first.
func TestEarlierRunKnowsWhatEndedBeforeTheLater(t *testing.T) {
	reader := (&client{status: yes, shown: []shown{{1, read, "1", at(103, 1)}, {1, read, "2", at(105, 1)},
		{1, read, "3", at(115, 1)}}}).txn(testRun+1, 1)
	for name, c := range map[string]struct {
		first history.Recent
		want  string
	}{
		"both tell": {history.Recent{From: 100, To: 110, Running: []uint64{105}},
			"T1.1 read 1 0, T1.1 read 2 x105, T1.1 read 3 x115"},
		"the first was no teller": {history.Recent{}, "T1.1 read 1 x103, T1.1 read 2 x105, T1.1 read 3 x115"},
	} {
		infos := make([]history.Info, 2)
		for i := range infos {
			infos[i] = history.Info{Run: testRun + history.Run(i), Started: time.Unix(int64(i), 0), Horizon: 100,
				Server: history.Server{Engine: "postgresql", System: 7}}
		}
		infos[0].Recent, infos[1].Recent = c.first, history.Recent{From: 100, To: 120}
		got, err := pgversions.Translate(infos, nil, []*history.Txn{reader})
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(names(got), ", "); text != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, text, c.want)
		}
	}
}

// Two runs, of which the second reads what the first may have written.
func TestRunsOfOneServerShareTransactionIDs(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	for name, c := range map[string]struct {
		system  [2]uint64
		horizon [2]uint64
		later   time.Duration // the second run's start after the first one's, which takes a minute
		xid     uint32        // of a write of the second run
		want    string
	}{
		"one server": {[2]uint64{7, 7}, [2]uint64{100, 100}, time.Second, 115,
			"T1.1 update 5 0, T1.2 update 5 T1.1, T1.3 read 5 T1.1, T1.4 read 6 x105"},
		"one server, afterwards": {[2]uint64{7, 7}, [2]uint64{100, 111}, time.Hour, 115,
			"T1.1 update 5 0, T1.2 update 5 T1.1, T1.3 read 5 T1.1, T1.4 read 6 x105"},
		"two servers": {[2]uint64{7, 8}, [2]uint64{100, 108}, time.Second, 115,
			"T1.1 update 5 0, T1.2 update 5 0 of t@100001, T1.3 read 5 x110? of t@100001, T1.4 read 6 0 of t@100001"},
		"unknown servers": {[2]uint64{0, 0}, [2]uint64{100, 100}, time.Second, 115,
			"T1.1 update 5 0, T1.2 update 5 0 of t@100001, T1.3 read 5 x110? of t@100001, T1.4 read 6 x105 of t@100001"},
		"the data was put back": {[2]uint64{7, 7}, [2]uint64{100, 105}, time.Hour, 115,
			"T1.1 update 5 0, T1.2 update 5 0 of t@100001, T1.3 read 5 x110? of t@100001, T1.4 read 6 x105 of t@100001"},
		"two copies": {[2]uint64{7, 7}, [2]uint64{100, 100}, time.Second, 110,
			"T1.1 update 5 0, T1.2 update 5 0 of t@100001, T1.3 read 5 T1.2 of t@100001, T1.4 read 6 x105 of t@100001"},
	} {
		infos := make([]history.Info, 2)
		for i := range infos {
			infos[i] = history.Info{Run: testRun + history.Run(i), Started: start, Ended: start.Add(time.Hour),
				Horizon: c.horizon[i], Server: history.Server{Engine: "postgresql", System: c.system[i]}}
		}
		infos[0].Ended, infos[1].Started = start.Add(time.Minute), start.Add(c.later)
		a := (&client{status: yes, shown: []shown{{1, update, "5", left(110, 7, 10)}}}).txn(testRun, 1)
		b := (&client{status: yes, shown: []shown{{2, update, "5", left(c.xid, 8, 20)}, {3, read, "5", at(110, 7)},
			{4, read, "6", at(105, 3)}}}).txn(testRun+1, 1)
		got, err := pgversions.Translate(infos, nil, []*history.Txn{a, b})
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(names(got), ", "); text != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, text, c.want)
		}
	}
}

func TestHistoriesWithTagsStayAsTheyAre(t *testing.T) {
	tagged := &history.Txn{ID: history.MakeTxnID(testRun, 1),
		Stmts: []history.Stmt{{Num: 1, Accesses: []history.Access{{Op: history.Read}}}}}
	got, err := pgversions.Translate(nil, nil, []*history.Txn{tagged})
	if err != nil || got[0] != tagged {
		t.Errorf("a history with tags became %v, %v", got, err)
	}
}

// Whatever the places say, each pass ends.
func TestAnyPlacesEnd(t *testing.T) {
	circle := client{status: yes, shown: []shown{{1, update, "", moved(110, 1, 110, 2, 10)},
		{2, update, "", moved(110, 2, 110, 1, 20)}}}
	txn := circle.txn(testRun, 1)
	txn.Stmts[0].TupleIDs = txn.Stmts[0].TupleIDs[:0]
	if _, err := pgversions.Translate(nil, nil, []*history.Txn{txn, circle.txn(testRun, 2)}); err != nil {
		t.Error(err)
	}
}

func TestDatabasesOfOneServerHaveTheirOwnTables(t *testing.T) {
	sessions := []history.Session{{Run: testRun, ID: 1, Database: "one"}, {Run: testRun, ID: 2, Database: "two"},
		{Run: testRun, ID: 3, Database: "one"}}
	var txns []*history.Txn
	for seq := range uint32(3) {
		c := client{status: yes, shown: []shown{{1, update, "5", left(110+seq, 7, uint64(10*seq+10))}}}
		txns = append(txns, c.txn(testRun, seq+1))
	}
	got, err := pgversions.Translate(nil, sessions, txns)
	if err != nil {
		t.Fatal(err)
	}
	if text, want := strings.Join(names(got),
		", "), "T1.1 update 5 0, T2.1 update 5 0 of t@two, T3.1 update 5 T1.1"; text != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
}
