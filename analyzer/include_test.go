package analyzer

import (
	"slices"
	"testing"
)

// TestIncludedFindingsCount: what another analysis found is among the findings, each once and the gravest first, and
// counts in the verdict unless it rests on what is not sure.
func TestIncludedFindingsCount(t *testing.T) {
	known := &Finding{ID: "a", Anomaly: WriteSkew, Class: Hazard, Count: 2}
	r := &Result{Findings: []*Finding{known}, Levels: verdict([]Anomaly{WriteSkew})}
	r.Include([]*Finding{
		{ID: "a", Anomaly: WriteSkew, Class: Hazard, Count: 1},
		{ID: "b", Anomaly: LostUpdate, Class: Hazard, Count: 3},
		{ID: "c", Anomaly: G1c, Class: Violation, Count: 1, Witness: []Edge{{Inexact: true}}},
	})
	var ids []string
	for _, f := range r.Findings {
		ids = append(ids, f.ID)
	}
	if !slices.Equal(ids, []string{"c", "b", "a"}) || r.Findings[2] != known {
		t.Errorf("the findings are %q", ids)
	}
	if want := verdict([]Anomaly{LostUpdate, WriteSkew}); !slices.Equal(r.Levels.Satisfied, want.Satisfied) {
		t.Errorf("satisfied are %q, not %q", r.Levels.Satisfied, want.Satisfied)
	}
}
