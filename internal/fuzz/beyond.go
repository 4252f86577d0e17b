package fuzz

import (
	"regexp"
	"slices"
	"strings"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// byAggregate reports whether the finding's cycle reads by a statement that aggregates rows.
func byAggregate(f *analyzer.Finding) bool {
	return slices.ContainsFunc(f.Witness, func(e analyzer.Edge) bool {
		return e.Kind == analyzer.WR && aggregates(e.ToStmt) || e.Kind == analyzer.RW && aggregates(e.FromStmt)
	})
}

// byAborted reports whether the finding rests on a write of a transaction that was rolled back.
func byAborted(f *analyzer.Finding) bool {
	return slices.ContainsFunc(f.Witness, func(e analyzer.Edge) bool {
		return e.Kind != analyzer.RW &&
			e.From.Status == history.Aborted
	})
}

var (
	aggregated = regexp.MustCompile(`(?i)\b(COUNT|SUM|MIN|MAX|AVG) ?\(\)|\bGROUP BY\b`)
	windowed   = regexp.MustCompile(`(?i)\(\) ?OVER ?\(\)`)
)

// aggregates reports whether a SELECT gives groups of rows. The aggregates of its subqueries and windows do not count.
func aggregates(s *history.Stmt) bool {
	if s.Kind != history.Select {
		return false
	}
	outside, depth := strings.Builder{}, 0
	for _, c := range s.Shape {
		if c == ')' {
			depth--
		}
		if depth == 0 {
			outside.WriteRune(c)
		}
		if c == '(' {
			depth++
		}
	}
	return aggregated.MatchString(windowed.ReplaceAllString(outside.String(), ""))
}
