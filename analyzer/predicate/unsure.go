package predicate

import (
	"cmp"
	"slices"

	"github.com/isotap/isotap/history"
)

// mayRemove reports whether a statement may have taken rows away that are not among its accesses.
func mayRemove(s *history.Stmt) bool {
	switch s.Kind {
	case history.DDL:
		return true
	case history.Insert, history.Update, history.Delete, history.Replace, history.Merge, history.Copy, history.Call,
		history.Other:
		return s.Observation == history.Inexact || s.Observation == history.Opaque
	}
	return false
}

// stretches are stretches of time.
type stretches struct {
	list   []stretch
	latest []int64 // the latest end of those up to each place in list
}

type stretch struct{ from, to int64 }

func (s *stretches) add(from, to int64) { s.list = append(s.list, stretch{from, to}) }

// settle makes meet usable.
func (s *stretches) settle() {
	slices.SortFunc(s.list, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
	latest := int64(0)
	for _, x := range s.list {
		latest = max(latest, x.to)
		s.latest = append(s.latest, latest)
	}
}

// overlap reports whether one of them has a moment in common with [from, to].
func (s *stretches) overlap(from, to int64) bool {
	if s == nil {
		return false
	}
	n, _ := slices.BinarySearchFunc(s.list, to, func(x stretch, to int64) int {
		if x.from <= to {
			return -1
		}
		return 1
	})
	return n > 0 && s.latest[n-1] >= from
}
