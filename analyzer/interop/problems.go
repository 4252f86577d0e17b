package interop

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// The findings that need the values of a history, by Elle's names. All else is found by [analyzer], and so
// are the cases of the first four that show in one version or in the order of two.
const (
	internal          = analyzer.Internal
	futureRead        = analyzer.FutureRead
	incompatibleOrder = analyzer.IncompatibleOrder
	reread            = analyzer.NonRepeatableRead
	duplicateElements = analyzer.DuplicateElements
	cyclicVersions    = analyzer.CyclicVersions
)

// meanings says what each of them is.
var meanings = map[analyzer.Anomaly]string{
	internal:          "A transaction does not find in a list all that it appended itself.",
	futureRead:        "A transaction finds in a list what it appends only later.",
	incompatibleOrder: "Two reads show a list's elements in different orders.",
	reread:            "A transaction reads one register twice and gets two versions.",
	duplicateElements: "A list holds an element more than once that was appended once.",
	cyclicVersions:    "What transactions met of a register puts its versions in a circle.",
}

// A problem is what is wrong in one way with some transactions.
type problem struct {
	anomaly  analyzer.Anomaly
	count    int
	examples []example
	first    int64
	last     int64
}

type example struct {
	txn  int32
	text string
}

// maxExamples is how many transactions a finding names.
const maxExamples = 3

// found takes in that something is wrong with a transaction that did not fail; the text goes on after its
// name.
func (h *History) found(a analyzer.Anomaly, t int32, format string, args ...any) {
	if h.failed(t) {
		return
	}
	i := slices.IndexFunc(h.problems, func(p problem) bool { return p.anomaly == a })
	if i < 0 {
		i = len(h.problems)
		h.problems = append(h.problems, problem{anomaly: a, first: h.txns[t].end})
	}
	p := &h.problems[i]
	p.count++
	p.first, p.last = min(p.first, h.txns[t].end), max(p.last, h.txns[t].end)
	if len(p.examples) < maxExamples {
		p.examples = append(p.examples, example{t, fmt.Sprintf(format, args...)})
	}
}

// finding makes a finding of a problem.
func (h *History) finding(p *problem) *analyzer.Finding {
	sum := sha256.Sum256([]byte(string(p.anomaly) + "\x01" + string(h.format)))
	f := &analyzer.Finding{
		ID: hex.EncodeToString(sum[:6]), Anomaly: p.anomaly, Class: analyzer.Violation,
		Rule:    "No isolation level allows this.",
		Summary: meanings[p.anomaly], ProgramSets: 1, Patterns: 1, Tables: []string{subjectNames[h.kind]},
		Count: p.count, First: p.first, Last: p.last,
	}
	if p.anomaly == reread {
		f.Class, f.Rule = analyzer.Hazard,
			"Levels without one snapshot for a transaction allow this: READ COMMITTED and weaker ones."
	}
	for _, e := range p.examples {
		f.Explanation = append(f.Explanation, fmt.Sprintf("%s, which ended at %s, is wrong: %s.", h.id(e.txn),
			h.txns[e.txn].place, e.text))
	}
	if rest := p.count - len(p.examples); rest > 0 {
		f.Explanation = append(f.Explanation, fmt.Sprintf("And %d more.", rest))
	}
	return f
}

func (h *History) id(t int32) history.TxnID { return history.MakeTxnID(run, uint32(t)+1) }
