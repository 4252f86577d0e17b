package e2e

import (
	"fmt"
	"slices"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
)

// holdUnseen holds what statements read against the log, as an analysis has it that has read the server's log: who
// wrote unseen is named as the transaction that did.
func (r *tokenRun) holdUnseen(dir string, result *analyzer.Result) {
	r.t.Helper()
	_, txns, err := analysis.Resolved(r.t.Context(), dir)
	if err != nil {
		r.t.Fatal(err)
	}
	writers := make(map[int]string)       // by the number of a statement
	names := make(map[history.Tag]string) // of the writers of versions
	unseen := make(map[history.TxnID]int) // how many numbers of a transaction's are of unseen writes
	for _, x := range txns {
		for i := range x.Stmts {
			s := &x.Stmts[i]
			tag := history.Tag{Txn: x.ID, Stmt: s.Num}
			if n := numberOf(s); n != 0 && s.Observation == history.Exact {
				writers[n] = fmt.Sprint(n)
				names[tag] = fmt.Sprint(n)
			}
			if !s.Unseen {
				continue
			}
			for _, n := range numbersOf(x, s) {
				writers[n] = "unseen of " + x.ID.String()
			}
			names[tag] = "unseen of " + x.ID.String()
			unseen[x.ID]++
		}
	}
	held, told := 0, 0
	for _, x := range txns {
		for i := range x.Stmts {
			s := &x.Stmts[i]
			n := numberOf(s)
			if n == 0 || s.Observation != history.Exact || !r.log.Showed(n) || r.log.Foreign(n) {
				continue
			}
			got, ok := shownBy(s, names)
			want := r.wanted(n, writers)
			if !ok || want == nil {
				continue
			}
			if held++; !slices.Equal(got, want) {
				r.t.Errorf("%s: %s, with the server's log the versions of %q, not %q; %q at %v in %s", r.told, r.log.Story(n), got,
					want, s.Shape, x.Level, x.ID)
			}
			if slices.ContainsFunc(got, func(w string) bool { return w[0] == 'u' }) {
				told++
			}
		}
	}
	l := &result.Coverage.Log
	r.t.Logf("%s: %d statements are held against the server's log, %d read unseen writes; %d of %d of these are told", r.told,
		held, told, l.Told, l.Effects)
	if l.Told == 0 {
		r.t.Errorf("%s: no unseen write is told", r.told)
	}
}

// shownBy returns who wrote what a statement read or deleted, sorted; ok is false where isotap is not sure of all.
func shownBy(s *history.Stmt, names map[history.Tag]string) (got []string, ok bool) {
	for i := range s.Accesses {
		a := &s.Accesses[i]
		switch {
		case a.Op == history.InsertRow, a.Absent, a.Gone: // what a condition did not find, no client was shown
			continue
		case a.Inexact, a.Op == history.UpdateRow:
			return nil, false
		case a.Version.Initial():
			got = append(got, "0")
			continue
		}
		name := names[a.Version]
		if name == "" {
			return nil, false
		}
		got = append(got, name)
	}
	slices.Sort(got)
	return got, true
}

// wanted returns who wrote what a statement was shown, sorted; nil where it is not known of all.
func (r *tokenRun) wanted(statement int, writers map[int]string) []string {
	want := []string{}
	for _, n := range r.log.Newest(statement) {
		name := writers[n]
		if n == 0 {
			name = "0"
		}
		if name == "" {
			return nil
		}
		want = append(want, name)
	}
	slices.Sort(want)
	return want
}
