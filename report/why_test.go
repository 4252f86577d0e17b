package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/isotap/isotap/analyzer"
)

// ordered is what the analyzer says of the transactions of a fixture.
func ordered(f *analyzer.Finding) *analyzer.Why {
	e := f.Witness[0]
	return &analyzer.Why{A: e.From, B: e.To, Summary: "A precedes B.",
		Reasons: []string{"\u202eno <script>reason\x1b[31m"},
		AB: analyzer.Path{Edges: f.Witness[:1], Sentences: []string{"A read it in `" + statementText(f.Family, e.FromStmt) +
			"` before B."}}}
}

func TestWhyMatchesItsGoldenFiles(t *testing.T) {
	for name, r := range map[string]*analyzer.Result{"why": lostUpdate(), "why-hostile": hostile()} {
		why := ordered(r.Findings[0])
		var text, doc bytes.Buffer
		if err := Why(&text, why, TerminalOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := WhyJSON(&doc, why); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(text.String(), "\x1b\u202e") {
			t.Errorf("%s sends controls: %q", name, text.String())
		}
		if !json.Valid(doc.Bytes()) {
			t.Errorf("%s is not JSON", name)
		}
		compare(t, name+".txt", text.Bytes())
		compare(t, name+".json", doc.Bytes())
	}
}
