package proxy

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
)

func TestMeterFoldsRefusalsAndBoundsWhatItKeeps(t *testing.T) {
	m := New(Config{})
	m.Reconfigure(Reloadable{})
	for i := range 1000 {
		m.meter.count(&history.Txn{Status: history.Committed, Stmts: []history.Stmt{
			{Kind: history.Select, Observation: history.Opaque,
				Reason: history.ReasonRefused.With(strconv.Itoa(1000 + i))},
			{Kind: history.Update, Observation: history.Inexact, Reason: history.ParseReason(fmt.Sprint("reason ", i))},
			{Kind: history.Update, Observation: history.Exact},
			{Kind: 200, Observation: 200},
		}})
	}
	s := m.Stats()
	if s.Txns[history.Committed] != 1000 || s.Stmts[StmtClass{history.Update, history.Exact}] != 1000 {
		t.Errorf("counted %v and %v", s.Txns, s.Stmts)
	}
	if n := s.Reasons[StmtReason{history.Opaque, "refused by the server"}]; n != 1000 {
		t.Errorf("%d statements were refused, want 1000", n)
	}
	if len(s.Refusals) > maxRefusals+1 || s.Refusals["1000"] != 1 || s.Refusals["other"] != 1000-maxRefusals {
		t.Errorf("refusals: %v", s.Refusals)
	}
	if len(s.Reasons) > maxReasons+1 || s.Reasons[StmtReason{history.Inexact, "other"}] == 0 {
		t.Errorf("%d reasons are kept", len(s.Reasons))
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	var m meter
	txn := &history.Txn{Stmts: []history.Stmt{{Kind: history.Select, Observation: history.Opaque,
		Reason: history.ReasonUnion}, {Kind: history.Select, Observation: history.Opaque,
		Reason: history.ParseReason("refused with error 1143")}, {}}}
	m.count(txn)
	if n := testing.AllocsPerRun(100, func() { m.count(txn) }); n != 0 {
		t.Errorf("%v allocations a transaction, want none", n)
	}
}

func TestFaultsAreLoggedOnceASecond(t *testing.T) {
	var m meter
	start := time.Now()
	var logged []uint64
	for i := range 25 {
		if n, log := m.fault(start.Add(time.Duration(i) * 100 * time.Millisecond)); log {
			logged = append(logged, n)
		}
	}
	if !slices.Equal(logged, []uint64{1, 11, 21}) {
		t.Errorf("logged were %v of 25 faults", logged)
	}
}
