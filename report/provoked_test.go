package report

import (
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
)

func TestReportsTellWhatWasHeldBack(t *testing.T) {
	r := &analyzer.Result{Coverage: fullCoverage(), Provoked: &analyzer.Provoked{Seed: 7, Max: 50 * time.Millisecond,
		Held: 1214, Met: 31, For: 6200 * time.Millisecond}}
	const held = "--provoke held 1,214 statements back, 6.2s in all (at most 50ms, seed 7); to 31 another client came. " +
		"What is found did happen: the times alone were changed"
	for name, print := range map[string]func(*strings.Builder) error{
		"summary":  func(b *strings.Builder) error { return Summary(b, r, "") },
		"terminal": func(b *strings.Builder) error { return Terminal(b, r, TerminalOptions{Width: 400}) },
		"HTML":     func(b *strings.Builder) error { return HTML(b, r) },
	} {
		for text, p := range map[string]*analyzer.Provoked{held: r.Provoked, "--provoke": nil,
			"held nothing back": {Seed: 1, Max: time.Second}} {
			with := *r
			with.Provoked, r.Provoked = r.Provoked, p
			var b strings.Builder
			if err := print(&b); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.String(), text) != (p != nil) {
				t.Errorf("%s, provoked %+v:\n%s", name, p, b.String())
			}
			r.Provoked = with.Provoked
		}
	}
}
