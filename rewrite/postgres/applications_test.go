package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/isotap/isotap/rewrite"
)

// TestWhatApplicationsSendIsObserved compares how statements of applications are observed with testdata/applications;
// run with -rewrite to write it anew.
func TestWhatApplicationsSendIsObserved(t *testing.T) {
	r := New(testSchema(), Options{})
	datadriven.Walk(t, "testdata/applications", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			for _, version := range []int{15, 18} {
				s := testSession()
				s.Version, s.Extended, s.Untyped, s.Path = version, true, true, rewrite.ListOf("pg_catalog", "public")
				p := r.Plan(d.Input, s).Statements[0]
				fmt.Fprintf(&b, "%d: %v", version, p.Observation)
				if !p.Reason.IsZero() {
					fmt.Fprintf(&b, " (%s)", p.Reason)
				}
				b.WriteString("\n")
			}
			return b.String()
		})
	})
}
