package runner

import (
	"io"

	"github.com/isotap/isotap/report"
)

// JUnit writes the performances as JUnit XML: a test case for each, which fails where something in it is not what its
// scenario expects. The error is w's.
func JUnit(w io.Writer, all []*Result) error {
	cases := make([]report.TestCase, len(all))
	for i, p := range all {
		cases[i] = report.TestCase{Name: p.Scenario.Name + ", " + p.place(), Class: "isotap.replay",
			File: p.Scenario.File, Failures: p.Unexpected()}
	}
	return report.JUnitCases(w, cases)
}
