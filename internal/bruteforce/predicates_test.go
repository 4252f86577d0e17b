package bruteforce

import (
	"testing"

	"github.com/isotap/isotap/history"
)

// The transactions are named t1, t2, ...; t1 looks for rows in its first statement.
func TestDecidesHistoriesWithPredicates(t *testing.T) {
	x, y := history.Row{Table: "t", ID: "x"}, history.Row{Table: "t", ID: "y"}
	looking := func(saw map[history.Row]history.Tag, matches ...history.Tag) []PredicateRead {
		return []PredicateRead{{Reader: tag(1, 1), Vset: saw, Matches: func(row history.Row, v history.Tag) bool {
			for _, m := range matches {
				if row == x && v == m {
					return true
				}
			}
			return false
		}}}
	}
	type tags = map[history.Row]history.Tag
	for _, k := range []struct {
		name                   string
		history                []*history.Txn
		reads                  []PredicateRead
		serial, snapshot, rced bool
	}{
		{"a row that comes later", []*history.Txn{txn(1, c, nil), txn(2, c, one(i, "x", tag(0, 0)))},
			looking(nil, tag(2, 1)), true, true, true},
		{"a row that comes, and what came with it", []*history.Txn{
			txn(1, c, nil, one(r, "y", tag(2, 2))), txn(2, c, one(i, "x", tag(0, 0)), one(u, "y", tag(0, 0)))},
			looking(tags{y: tag(0, 0)}, tag(2, 1)), false, false, true},
		{"a row that comes and does not match", []*history.Txn{
			txn(1, c, nil, one(r, "y", tag(2, 2))), txn(2, c, one(i, "x", tag(0, 0)), one(u, "y", tag(0, 0)))},
			looking(tags{y: tag(0, 0)}), true, true, true},
		{"a row that was deleted, and what was written after that as it was before", []*history.Txn{
			txn(1, c, nil, one(r, "y", tag(0, 0))), txn(2, c, one(d, "x", tag(0, 0)), one(u, "y", tag(0, 0)))},
			looking(tags{x: tag(2, 1)}, tag(0, 0)), false, false, true},
		{"a row that one deleted who rolled back", []*history.Txn{txn(1, c, nil), txn(2, a, one(d, "x", tag(0, 0)))},
			looking(tags{x: tag(2, 1)}, tag(0, 0)), false, false, false},
		{"two who each look for what the other changes", []*history.Txn{
			txn(1, c, nil, one(u, "y", tag(0, 0))), txn(2, c, one(r, "y", tag(0, 0)), one(u, "x", tag(0, 0)))},
			looking(tags{x: tag(0, 0)}, tag(2, 2)), false, true, true},
		{"a row that comes to match and ceases to", []*history.Txn{
			txn(1, c, nil, one(r, "y", tag(3, 2))), txn(2, c, one(i, "x", tag(0, 0))),
			txn(3, c, one(d, "x", tag(2, 1)), one(u, "y", tag(0, 0)))},
			looking(nil, tag(2, 1)), false, false, true},
	} {
		if got := Serializable(k.history, k.reads...); got != k.serial {
			t.Errorf("%s: serializable %v", k.name, got)
		}
		if got := SnapshotIsolation(k.history, k.reads...); got != k.snapshot {
			t.Errorf("%s: snapshot isolated %v", k.name, got)
		}
		if got := ReadCommitted(k.history, k.reads...); got != k.rced {
			t.Errorf("%s: PL-2 %v", k.name, got)
		}
		if !RepeatableRead(k.history, k.reads...) && k.serial {
			t.Errorf("%s: serializable, but not PL-2.99", k.name)
		}
	}
}
