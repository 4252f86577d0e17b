package foreign

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// TestIndexedChainsTellTheSame compares what a chain tells with an index and without.
func TestIndexedChainsTellTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tag := func() history.Tag {
			return history.Tag{Txn: history.MakeTxnID(1, rapid.Uint32Range(1, 6).Draw(t, "tag")), Stmt: 1}
		}
		var c chain
		for range rapid.IntRange(0, 12).Draw(t, "versions") {
			c.versions = append(c.versions, version{tag: tag(), shown: tag(), gone: rapid.Bool().Draw(t, "gone")})
		}
		indexed := c
		indexed.index()
		for range 4 {
			x := tag()
			from, to := c.showing(x)
			if f, n := indexed.showing(x); f != from || n != to || c.find(x) != indexed.find(x) {
				t.Fatalf("%v shows from %d to %d and stands at %d; with an index %d, %d, %d", x, from, to, c.find(x), f, n,
					indexed.find(x))
			}
		}
	})
}

// TestListsStayShort has somebody past isotap write one row all the time, which clients of isotap's read: the versions
// below each read are no more than a row's list has, and lead up to it without a gap.
func TestListsStayShort(t *testing.T) {
	const n = 2000
	row := history.Row{Table: "shop.acc", ID: "r"}
	first := history.Tag{Txn: history.MakeTxnID(1, 1), Stmt: 1}
	r := New()
	r.AddRun(history.Info{Run: 1, Server: history.Server{Engine: dbms.MariaDB}})
	var log []*history.LoggedTxn
	for i := range n {
		at := int64(100 + 10*i)
		log = append(log, &history.LoggedTxn{Number: uint32(i + 1), Status: history.Committed, Position: uint64(i + 1),
			From: at, To: at + 1, Seen: at + 1, Writes: []history.LoggedWrite{{Op: history.UpdateRow, Row: row, Old: first, New: first}}})
		r.Note(log[i])
	}
	for _, l := range log {
		r.Add(1, l)
	}
	r.Settle()
	versions := r.chains[row].versions
	for i := range n {
		at := int64(100 + 10*i + 5)
		read := &history.Txn{ID: history.MakeTxnID(1, uint32(i+2)), Level: history.ReadCommitted, Status: history.Committed,
			Start: at, End: at + 1, Stmts: []history.Stmt{{Num: 1, Kind: history.Select,
				Observation: history.Exact, Start: at, End: at + 1, Accesses: []history.Access{{Row: row,
					Op: history.Read, Version: first, Prior: []history.Tag{{Txn: history.MakeTxnID(1, 9999), Stmt: 1}}}}}}}
		r.Resolve(read)
		a := &read.Stmts[0].Accesses[0]
		if a.Version != versions[i+1].tag {
			t.Fatalf("read %d is of %v instead of %v", i, a.Version, versions[i+1].tag)
		}
		if len(a.Prior) > reach || len(a.Prior) < min(i+2, reach) {
			t.Fatalf("read %d leads up %d versions", i, len(a.Prior))
		}
		for j := 1; j <= min(len(a.Prior), i+1); j++ {
			if a.Prior[len(a.Prior)-j] != versions[i+1-j].tag {
				t.Fatalf("read %d: %d below it is another version", i, j)
			}
		}
	}
}
