package runner

import (
	"slices"

	"github.com/isotap/isotap/scenario/replay"
)

// A Showing says whether a result showed what its scenario is about, and if not, what stood in the way.
type Showing string

// The Showings.
const (
	// Possible: isotap found one of the scenario's anomalies.
	Possible Showing = "possible"
	// Witnessed: isotap found none of them, or did not look, and the replies tell of one.
	Witnessed Showing = "possible*"
	// Refused: neither, and the server failed a statement that it takes.
	Refused Showing = "error"
	// Waited: neither, without an error, and a statement that it takes waited.
	Waited Showing = "waits"
	// Prevented: neither, without an error and without a wait.
	Prevented Showing = "prevented"
)

// Happened reports whether what the scenario is about came to pass.
func (s Showing) Happened() bool { return s == Possible || s == Witnessed }

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
	shows := Prevented
	for i := range p.Trace.Results {
		r := &p.Trace.Results[i]
		if _, takes := p.Scenario.Witness[r.N]; !takes && len(p.Scenario.Witness) > 0 {
			continue
		}
		if r.Status == replay.Failed {
			return Refused
		}
		if r.Blocked {
			shows = Waited
		}
	}
	return shows
}

// witnessed reports whether all replies are those of the scenario's witness. One that is to wait has to, and may go on
// waiting; whether others came late does not matter.
func (p *Result) witnessed() bool {
	for n, want := range p.Scenario.Witness {
		r := &p.Trace.Results[n-1]
		if want.Waits && r.Blocked && r.Status == replay.Blocked {
			continue
		}
		want.Waits = want.Waits || r.Blocked
		if r.Status == replay.NotRun || r.Status == replay.Blocked || len(unexpected(r, &want)) > 0 {
			return false
		}
	}
	return len(p.Scenario.Witness) > 0
}
