package report

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// TestHintsSayWhatTheLogTold: of what the server's log told it is not said that it cannot be seen.
func TestHintsSayWhatTheLogTold(t *testing.T) {
	for _, why := range []history.Reason{history.ReasonTrigger, history.ReasonCall, history.ReasonDoBlock,
		history.ReasonCopy, history.ReasonView} {
		for _, log := range []analyzer.LogCoverage{{}, {Effects: 3, Told: 2}, {Effects: 3, Told: 3}} {
			got := hint(&analyzer.Coverage{Log: log}, why)
			told := log.Told == 3 && why != history.ReasonView
			if got == "" || strings.Contains(got, "server's log") != told {
				t.Errorf("%s, %d of %d unseen writes told: %q", why, log.Told, log.Effects, got)
			}
		}
	}
}

// TestALogThatIsLeftOutIsSaid: neither is it told as if it had been looked at, nor is any level said to be satisfied.
func TestALogThatIsLeftOutIsSaid(t *testing.T) {
	r := clean()
	r.Coverage.Log = analyzer.LogCoverage{Stretches: []history.LogStretch{{From: 1, To: 2e9}}, Left: 1200}
	if got := serverLog(&r.Coverage); !strings.Contains(got, "1,200 transactions that were not looked at") {
		t.Errorf("of the log it says %q", got)
	}
	if got := levels(r); strings.Contains(got, "satisfies") || !strings.Contains(got, "1,200 transactions of the server's log") {
		t.Errorf("of the levels it says %q", got)
	}
}
