package bruteforce

import (
	"testing"

	"github.com/isotap/isotap/history"
)

func txn(n uint32, s history.Status, stmts ...[]history.Access) *history.Txn {
	t := &history.Txn{ID: history.MakeTxnID(1, n), Status: s}
	for i, a := range stmts {
		t.Stmts = append(t.Stmts, history.Stmt{Num: uint32(i + 1), Accesses: a})
	}
	return t
}

func tag(n, stmt uint32) history.Tag {
	if n == 0 {
		return history.Tag{}
	}
	return history.Tag{Txn: history.MakeTxnID(1, n), Stmt: stmt}
}

func one(op history.Op, row string, version history.Tag, prior ...history.Tag) []history.Access {
	return []history.Access{{Row: history.Row{Table: "t", ID: row}, Op: op, Version: version, Prior: prior}}
}

const (
	r = history.Read
	u = history.UpdateRow
	d = history.DeleteRow
	i = history.InsertRow
	c = history.Committed
	a = history.Aborted
)

func TestDecidesTextbookHistories(t *testing.T) {
	undone := txn(1, c, one(u, "x", tag(0, 0)))
	undone.Stmts[0].Void = true
	for _, k := range []struct {
		name                           string
		history                        []*history.Txn
		serial, snapshot, rced, atomic bool
	}{
		{"nothing", nil, true, true, true, true},
		{"one after the other", []*history.Txn{
			txn(1, c, one(r, "x", tag(0, 0)), one(u, "x", tag(0, 0))),
			txn(2, c, one(r, "x", tag(1, 2), tag(0, 0)), one(d, "x", tag(1, 2))),
			txn(3, c, one(i, "x", tag(2, 2)))}, true, true, true, true},
		{"in the order against their numbers", []*history.Txn{
			txn(1, c, one(r, "x", tag(2, 1))), txn(2, c, one(u, "x", tag(0, 0)))}, true, true, true, true},
		{"an inserted row", []*history.Txn{
			txn(1, c, one(i, "x", tag(0, 0))), txn(2, c, one(u, "x", tag(1, 1)))}, true, true, true, true},
		{"lost update", []*history.Txn{
			txn(1, c, one(r, "x", tag(0, 0)), one(u, "x", tag(2, 1))), txn(2, c, one(u, "x", tag(0, 0)))}, false, false,
			true, true},
		{"write skew", []*history.Txn{
			txn(1, c, one(r, "x", tag(0, 0)), one(u, "y", tag(0, 0))),
			txn(2, c, one(r, "y", tag(0, 0)), one(u, "x", tag(0, 0)))}, false, true, true, true},
		{"read skew", []*history.Txn{
			txn(1, c, one(r, "x", tag(0, 0)), one(r, "y", tag(2, 2))),
			txn(2, c, one(u, "x", tag(0, 0)), one(u, "y", tag(0, 0)))}, false, false, true, false},
		{"long fork", []*history.Txn{
			txn(1, c, one(u, "x", tag(0, 0))), txn(2, c, one(u, "y", tag(0, 0))),
			txn(3, c, one(r, "x", tag(1, 1)), one(r, "y", tag(0, 0))),
			txn(4, c, one(r, "x", tag(0, 0)), one(r, "y", tag(2, 1)))}, false, false, true, true},
		{"aborted read", []*history.Txn{txn(1, a, one(u, "x", tag(0, 0))), txn(2, c, one(r, "x", tag(1, 1)))}, false,
			false, false, false},
		{"aborted reader", []*history.Txn{txn(1, a, one(u, "x", tag(0, 0))), txn(2, a, one(r, "x", tag(1, 1)))}, true,
			true, true, true},
		{"read of an undone write", []*history.Txn{undone, txn(2, c, one(r, "x", tag(1, 1)))}, false, false, false,
			false},
		{"intermediate read", []*history.Txn{
			txn(1, c, one(u, "x", tag(0, 0)), one(u, "x", tag(1, 1))), txn(2, c, one(r, "x", tag(1, 1)))}, false, false,
			false, false},
		{"circular flow", []*history.Txn{
			txn(1, c, one(u, "x", tag(0, 0)), one(r, "y", tag(2, 1))),
			txn(2, c, one(u, "y", tag(0, 0)), one(r, "x", tag(1, 1)))}, false, false, false, false},
		{"fork", []*history.Txn{txn(1, c, one(u, "x", tag(0, 0))), txn(2, c, one(u, "x", tag(0, 0)))}, false, false,
			false, false},
		{"a list that does not fit", []*history.Txn{
			txn(1, c, one(u, "x", tag(0, 0))), txn(2, c, one(r, "x", tag(1, 1), tag(3, 1)))}, false, false, true, true},
		{"read of a deleted row", []*history.Txn{
			txn(1, c, one(d, "x", tag(0, 0))), txn(2, c, one(r, "x", tag(1, 1)))}, false, false, true, true},
	} {
		if got := Serializable(k.history); got != k.serial {
			t.Errorf("%s: serializable %v", k.name, got)
		}
		if got := SnapshotIsolation(k.history); got != k.snapshot {
			t.Errorf("%s: snapshot isolated %v", k.name, got)
		}
		if got := RepeatableRead(k.history); got != (k.serial || k.name == "a list that does not fit" ||
			k.name == "read of a deleted row") {
			t.Errorf("%s: PL-2.99 %v", k.name, got)
		}
		if got := ReadAtomic(k.history); got != k.atomic {
			t.Errorf("%s: read atomic %v", k.name, got)
		}
		if got := ReadCommitted(k.history); got != k.rced {
			t.Errorf("%s: PL-2 %v", k.name, got)
		}
	}
}
