package fuzz

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/workload/random"
)

// A part is some of an account's steps, and what is known of their order.
type part struct {
	of     *account
	kept   []int         // the steps' places
	behind map[int][]int // by place: those that it comes behind
}

// order has one step come before another.
func (p *part) order(first, then int) {
	if first != then {
		p.behind[then] = append(p.behind[then], first)
	}
}

// sorted returns the places of the steps by a time of theirs, but each behind those that it must come behind, as far as
// these do not contradict each other.
func (p *part) sorted(at func(*random.Step) time.Time) []int {
	steps := p.of.steps
	left := slices.SortedStableFunc(slices.Values(p.kept),
		func(a, b int) int { return at(&steps[a]).Compare(at(&steps[b])) })
	waiting := make(map[int]bool, len(left))
	for _, i := range left {
		waiting[i] = true
	}
	free := func(n int) bool {
		blocked := slices.ContainsFunc(p.behind[left[n]], func(first int) bool { return waiting[first] })
		return !blocked && !slices.ContainsFunc(left[:n],
			func(i int) bool { return steps[i].Session == steps[left[n]].Session })
	}
	all := make([]int, 0, len(left))
	for len(left) > 0 {
		n := 0
		for n < len(left) && !free(n) {
			n++
		}
		n %= len(left) // none: the first
		all, waiting[left[n]] = append(all, left[n]), false
		left = slices.Delete(left, n, n+1)
	}
	return all
}

// whenSent is when a step was sent.
func whenSent(x *random.Step) time.Time { return x.Sent }

// whenEnded is when a step had its reply: one that waited for a lock comes behind those that it waited for.
func whenEnded(x *random.Step) time.Time {
	if x.Ended.IsZero() {
		return time.Unix(1<<40, 0)
	}
	return x.Ended
}

// orders returns a scenario of a part for each order that its steps may have been in.
func (p *part) orders(setup []string) []*scenario.Scenario {
	first, second := p.sorted(whenEnded), p.sorted(whenSent)
	all := []*scenario.Scenario{p.of.scenario(setup, first)}
	if !slices.Equal(first, second) {
		all = append(all, p.of.scenario(setup, second))
	}
	return all
}

// beginnings are what may show a finding again without what else there was, the smallest first: its own transactions,
// with the statements on the cycle alone or with all, each on the database as it was first and with the rows that rows
// made of it by then; at last with what others wrote meanwhile.
func (a *account) beginnings(f *analyzer.Finding,
	rows func(a *account, earlier []string) []string) []*scenario.Scenario {
	small, whole := a.part(f, false), a.part(f, true)
	if small == nil {
		return nil
	}
	begin, end := a.span(small.kept)
	setups := [][]string{a.setup}
	if earlier := a.writesBefore(begin); len(earlier) > 0 {
		if made := rows(a, earlier); made != nil {
			setups = append(setups, made)
		}
	}
	var all []*scenario.Scenario
	for _, p := range []*part{small, whole} {
		for _, setup := range setups {
			all = append(all, p.orders(setup)...)
		}
	}
	whole.kept = append(whole.kept, a.writersBetween(begin, end, whole.kept)...)
	slices.Sort(whole.kept)
	return append(all, whole.orders(setups[len(setups)-1])...)
}

// until is all that was sent until a finding's transactions had ended.
func (a *account) until(f *analyzer.Finding) []*scenario.Scenario {
	p := a.part(f, true)
	if p == nil {
		p = &part{of: a}
	}
	_, end := a.span(p.kept)
	p.kept = nil
	for i := range a.steps {
		if end.IsZero() || !a.steps[i].Sent.After(end) {
			p.kept = append(p.kept, i)
		}
	}
	return p.orders(a.setup)
}

// isWrite reports whether a step changed rows, as far as its verb tells.
func isWrite(x *random.Step) bool {
	verb, _, _ := strings.Cut(x.SQL, " ")
	return x.Error == "" && slices.Contains([]string{"INSERT", "UPDATE", "DELETE", "REPLACE"}, verb)
}

// commit returns when a transaction committed; zero where it did not.
func (a *account) commit(places []int) time.Time {
	last := &a.steps[places[len(places)-1]]
	if last.Error != "" || last.SQL != "COMMIT" && len(places) > 1 {
		return time.Time{}
	}
	return last.Ended
}

// writesBefore are the writes of the transactions that had committed by a time, in the order of the commits.
func (a *account) writesBefore(begin time.Time) []string {
	var all []string
	byCommit := slices.SortedFunc(maps.Values(a.txns), func(x, y []int) int {
		return cmp.Or(a.commit(x).Compare(a.commit(y)), x[0]-y[0])
	})
	for _, places := range byCommit {
		if at := a.commit(places); at.IsZero() || !at.Before(begin) {
			continue
		}
		for _, i := range places {
			if isWrite(&a.steps[i]) {
				all = append(all, a.steps[i].SQL)
			}
		}
	}
	return all
}

// writersBetween are the steps by which transactions wrote that committed in a time, and those that begin and end them.
// Those of some steps are not among them.
func (a *account) writersBetween(begin, end time.Time, but []int) []int {
	var all []int
	for _, places := range a.txns {
		at := a.commit(places)
		if at.Before(begin) || a.steps[places[0]].Sent.After(end) || slices.Contains(but, places[0]) {
			continue
		}
		writes := slices.DeleteFunc(slices.Clone(places), func(i int) bool { return !isWrite(&a.steps[i]) })
		if len(writes) == 0 {
			continue
		}
		if len(places) > 1 {
			writes = slices.Concat(places[:1], writes, places[len(places)-1:])
		}
		all = append(all, writes...)
	}
	slices.Sort(all)
	return all
}
