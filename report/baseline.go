package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/analyzer"
)

// New returns the findings that no baseline knows: all of them where there is no baseline.
func New(r *analyzer.Result) []*analyzer.Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f *analyzer.Finding) bool { return f.Known })
}

// knownFindings returns the findings that a baseline knows.
func knownFindings(r *analyzer.Result) []*analyzer.Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f *analyzer.Finding) bool { return !f.Known })
}

// baselineText says in one line how the findings compare with the baseline; empty where there is none.
func baselineText(r *analyzer.Result) string {
	if r.Baseline == "" {
		return ""
	}
	fresh := len(New(r))
	return fmt.Sprintf("Baseline %s: %s new, %s known, %s not seen this time", oneLine(r.Baseline), number(fresh),
		number(len(r.Findings)-fresh), number(len(r.Gone)))
}

// brief names a finding in a line.
func brief(f *analyzer.Finding) string {
	text := fmt.Sprintf("%s, %s", f.Class, oneLine(string(f.Anomaly)))
	if len(f.Tables) > 0 {
		text += " on " + clip(oneLine(strings.Join(f.Tables, ", ")), 120)
	}
	if f.Count > 0 {
		text += ", seen " + times(f.Count)
	}
	return text + ", id " + oneLine(f.ID)
}

// baseline lists what the baseline has, below the findings that are new.
func (t *terminal) baseline(r *analyzer.Result) {
	t.briefs("Known, accepted by the baseline", knownFindings(r))
	t.briefs("In the baseline, but not seen this time", r.Gone)
}

func (t *terminal) briefs(title string, findings []*analyzer.Finding) {
	if len(findings) == 0 {
		return
	}
	t.line("")
	t.line(t.paint(bold, title))
	for i, f := range findings {
		if t.opts.Limit > 0 && i == t.opts.Limit {
			t.line("  … and " + plural(len(findings)-i, "more finding"))
			return
		}
		t.text("  ", brief(f), "")
	}
}
