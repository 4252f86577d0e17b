package main

import (
	"fmt"
	"slices"
	"strings"
)

// A goal is what isotap is to reach in comparison with another path, under each load.
type goal struct {
	words    string
	path, to string
	of       func(result) map[string]spread
	least    bool // the figure may not be less; else not more
	figure   float64
	clients  int // of loads with so many clients alone; 0: all
}

// The figures that goals are of.
func rates(r result) map[string]spread       { return r.Ratio }
func proxyTimes(r result) map[string]spread  { return r.CPURatio }
func serverTimes(r result) map[string]spread { return r.ServerRatio }
func medians(r result) map[string]spread     { return r.LatencyRatio }
func tails(r result) map[string]spread       { return r.TailRatio }

var goals = []goal{
	{"statements/s, off to haproxy", pathOff, pathHAProxy, rates, true, 1.1, 0},
	{"statements/s, off to pgbouncer", pathOff, pathPgBouncer, rates, true, 1, 0},
	{"statements/s, items to off", pathItems, pathOff, rates, true, 0.8, 0},
	{"proxy's processor, off to haproxy", pathOff, pathHAProxy, proxyTimes, false, 1, 0},
	{"server's processor, items to direct", pathItems, pathDirect, serverTimes, false, 1.15, 0},
	{"median latency, off to haproxy", pathOff, pathHAProxy, medians, false, 1, 1},
	{"p99 latency, off to haproxy", pathOff, pathHAProxy, tails, false, 1, 1},
}

// An attainment is how far a goal was reached under the loads of some number of clients: under how many of them, and
// where it is furthest from it.
type attainment struct {
	Goal    string  `json:"goal"`
	Clients int     `json:"clients"`
	Worst   spread  `json:"worst"`
	Load    string  `json:"worst_load"`
	Best    float64 `json:"best"`
	Met     int     `json:"met"`
	Of      int     `json:"of"`
}

// attainments are those of all goals of which something was measured, in the order of the goals and of numbers of
// clients.
func attainments(results []result) (all []attainment) {
	var numbers []int
	for _, r := range results {
		numbers = append(numbers, r.Clients)
	}
	slices.Sort(numbers)
	for _, g := range goals {
		for _, clients := range slices.Compact(slices.Clone(numbers)) {
			if a := g.attained(results, clients); a.Of > 0 && (g.clients == 0 || g.clients == clients) {
				all = append(all, a)
			}
		}
	}
	return all
}

func (g goal) attained(results []result, clients int) attainment {
	a := attainment{Goal: g.String(), Clients: clients}
	for _, r := range results {
		s, measured := g.of(r)[g.to]
		if !measured || r.Path != g.path || r.Clients != clients || s == (spread{}) {
			continue
		}
		if a.Of == 0 || g.further(s.Median, a.Worst.Median) {
			a.Worst, a.Load = s, r.Load
		}
		if a.Of == 0 || g.further(a.Best, s.Median) {
			a.Best = s.Median
		}
		if a.Of++; !g.further(s.Median, g.figure) {
			a.Met++
		}
	}
	return a
}

// further reports whether a figure is worse than another.
func (g goal) further(x, than float64) bool {
	if g.least {
		return x < than
	}
	return x > than
}

func (g goal) String() string {
	if g.least {
		return fmt.Sprintf("%s >= %.2f", g.words, g.figure)
	}
	return fmt.Sprintf("%s <= %.2f", g.words, g.figure)
}

// goalTable prints how far the goals were reached, for people.
func goalTable(all []attainment) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-44s%8s  %-22s%7s%8s  %s\n", "goal", "clients", "worst (quartiles)", "best", "met", "the worst is of")
	for _, a := range all {
		worst := fmt.Sprintf("%.2f (%.2f to %.2f)", a.Worst.Median, a.Worst.Low, a.Worst.High)
		fmt.Fprintf(&b, "%-44s%8d  %-22s%7.2f%8s  %s\n", a.Goal, a.Clients, worst, a.Best, fmt.Sprintf("%d of %d", a.Met, a.Of), a.Load)
	}
	return b.String()
}
