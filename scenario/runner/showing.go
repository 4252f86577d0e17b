package runner

import (
	"slices"

	"github.com/isotap/isotap/scenario/replay"
)

// A Showing says whether a result showed what its scenario is about.
type Showing string

// The Showings.
const (
	// Possible: isotap found one of the scenario's anomalies.
	Possible Showing = "possible"
	// Witnessed: isotap found none of them, and the replies tell of one.
	Witnessed Showing = "possible*"
	// Refused: neither, and the server failed a statement.
	Refused Showing = "error"
	// Prevented: neither, without an error.
	Prevented Showing = "prevented"
)

// Shows reports whether the result showed what its scenario is about.
func (p *Result) Shows() Showing {
	for _, a := range p.Anomalies() {
		if slices.Contains(p.Scenario.Shows, a) {
			return Possible
		}
	}
	if p.witnessed() {
		return Witnessed
	}
	if slices.ContainsFunc(p.Trace.Results, func(r replay.Result) bool { return r.Status == replay.Failed }) {
		return Refused
	}
	return Prevented
}

// witnessed reports whether all replies are those of the scenario's witness.
func (p *Result) witnessed() bool {
	for n, want := range p.Scenario.Witness {
		if len(unexpected(&p.Trace.Results[n-1], &want)) > 0 {
			return false
		}
	}
	return len(p.Scenario.Witness) > 0
}
