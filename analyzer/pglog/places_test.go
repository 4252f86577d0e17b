package pglog

import (
	"testing"

	"github.com/isotap/isotap/history"
)

// nameless is a write that tells the place of what it left, by when, and not under which id: one by the parent of
// partitions, behind a savepoint.
func nameless(position, place uint64) history.Stmt {
	s := wrote(0, 0, 0, place)
	s.TupleIDs[0].LSN = position
	return s
}

// TestWritersAreKnownByTheirPlaces: who left a version is known by its place and by when it was there.
func TestWritersAreKnownByTheirPlaces(t *testing.T) {
	sub := committed(21, 180, 190, at(500, update(22, 2, 4)))
	sub.XIDs = []uint32{21, 22}
	later := committed(30, 300, 310, at(900, made(30, 4)))
	earlier := committed(19, 20, 30, at(50, made(19, 4)), at(60, remove(19, 4)))
	anew := committed(31, 300, 310, at(950, made(31, 9)))
	anew.Writes[0].Storage++
	for _, c := range []struct {
		name  string
		log   []*history.LoggedTxn
		s     history.Stmt
		start int64
		want  uint32
	}{
		{"a subtransaction", []*history.LoggedTxn{sub}, nameless(500, 4), 100, 22},
		{"of two, the one before", []*history.LoggedTxn{earlier, sub, later}, nameless(510, 4), 100, 22},
		{"of what came later nothing is known", []*history.LoggedTxn{later}, nameless(510, 4), 100, 0},
		{"another place", []*history.LoggedTxn{sub}, nameless(500, 5), 100, 0},
		{"before the log was read", []*history.LoggedTxn{sub}, nameless(500, 4), 0, 0},
		{"in a table that was written anew", []*history.LoggedTxn{sub, anew}, nameless(500, 4), 100, 0},
		{"no position", []*history.LoggedTxn{sub}, nameless(0, 4), 100, 0},
		{"of a partition that is not told", []*history.LoggedTxn{sub}, unplaced(nameless(500, 4)), 100, 0},
		{"what tells its id keeps it", []*history.LoggedTxn{sub}, wrote(20, 2, 23, 4), 100, 23},
	} {
		txn := recorded(1, c.s)
		txn.Start = c.start
		r := settled(t, c.log, []*history.Txn{recorded(2, saw(5, 2)), txn})
		r.Complete(txn)
		if got := txn.Stmts[0].TupleIDs[0].NewXID; got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
		if l, ok := r.byXID[xidKey{0, 22}]; ok && (r.logged[l].owner == txn.ID) != (c.want == 22) {
			t.Errorf("%s: the log's transaction is of %v", c.name, r.logged[l].owner)
		}
		if told := r.lost[txn.ID]["1"]; told != (c.want != 22) {
			t.Errorf("%s: the log's write is not known: %t", c.name, told)
		}
	}
}

// TestPartitionsAreThemselvesByAnyName: a row is read by its parent, the partition and another parent; what was written
// to it past isotap is told.
func TestPartitionsAreThemselvesByAnyName(t *testing.T) {
	by := func(table string, s history.Stmt) history.Stmt {
		s.Accesses[0].Row.Table = table
		return s
	}
	r := settled(t, []*history.LoggedTxn{committed(20, 120, 130, update(20, 1, 2)), committed(21, 140, 150, update(21, 2, 3))},
		[]*history.Txn{recorded(1, by("public.parent", saw(5, 1)), by("public.acc", saw(20, 2)), by("public.new", saw(21, 3)))})
	if s := r.Stats(); s.Past != 2 {
		t.Errorf("%+v", s)
	}
}
