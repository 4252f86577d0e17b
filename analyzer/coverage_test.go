package analyzer

import (
	"testing"

	"github.com/isotap/isotap/history"
)

func TestConditionsAreCountedInModePredicates(t *testing.T) {
	left := []history.Predicate{{Table: "shop.booking", Where: "room = 'blue'"}}
	stmts := []history.Stmt{
		{Kind: history.Select, Observation: history.Exact, Shape: "SELECT who FROM booking WHERE room = ?", Predicates: left},
		{Kind: history.Update, Observation: history.Exact, Shape: "UPDATE booking SET who = ? WHERE room = ?"},
		{Kind: history.Select, Observation: history.Exact, Shape: "SELECT 1 FROM booking WHERE room = ? limit ?"},
		{Kind: history.Select, Observation: history.Opaque, Shape: "SELECT 1 FROM booking FETCH FIRST ROW ONLY"},
		{Kind: history.Select, Observation: history.Exact, Shape: "SELECT `limit` FROM booking"},
		{Kind: history.Select, Observation: history.Nothing, Shape: "SELECT 1 LIMIT ?"},
		{Kind: history.Insert, Observation: history.Exact, Shape: "INSERT INTO booking VALUES (?)"},
	}
	for i := range stmts {
		stmts[i].Num = uint32(i + 1)
	}
	for mode, want := range map[string][3]int{"predicates": {5, 1, 2}, "items": {}} {
		info := scriptInfo()
		info.Mode = mode
		r, err := Analyze([]history.Info{info}, []*history.Txn{{ID: history.MakeTxnID(info.Run, 1), Session: 1,
			Status: history.Committed, Stmts: stmts}})
		if err != nil {
			t.Fatal(err)
		}
		if c := r.Coverage; [3]int{c.Looked, c.Conditions, c.Limited} != want {
			t.Errorf("mode %s: %d looked, %d left a condition, %d had LIMIT, want %v", mode, c.Looked, c.Conditions,
				c.Limited, want)
		}
	}
}
