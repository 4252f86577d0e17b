package analyzer

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// finished analyzes a script.
func finished(t *testing.T, text string) *Analyzer {
	t.Helper()
	a := New(Options{})
	if err := a.Add(scriptInfo()); err != nil {
		t.Fatal(err)
	}
	for _, txn := range script(t, text) {
		if err := a.AddTxn(txn); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Finish(); err != nil {
		t.Fatal(err)
	}
	return a
}

func kindsOf(p Path) string {
	var kinds []string
	for i := range p.Edges {
		kinds = append(kinds, string(p.Edges[i].Kind))
	}
	return strings.Join(kinds, " ")
}

func TestWhySaysWhichTransactionPrecedesWhich(t *testing.T) {
	for name, c := range map[string]struct {
		script, ab, ba, says string
	}{
		"a chain": {"T1 committed RR | u x 0\nT2 committed RR | r x T1.1 | u y 0\nT3 committed RR | u y T2.2",
			"wr ww", "", "precedes"},
		"backwards": {"T1 committed RR | u y T2.2\nT2 committed RR | r x T3.1 | u y 0\nT3 committed RR | u x 0",
			"", "wr ww", "precedes"},
		"a cycle": {"T1 committed RR | r x 0 | u x T3.2\nT2 committed RR | r z 0\nT3 committed RR | r x 0 | u x 0",
			"rw", "ww", "a contradiction"},
		"nothing": {"T1 committed RR | r x 0\nT2 committed RR | u z 0\nT3 committed RR | r x 0", "", "",
			"row x, which both only read"},
		"no common row": {"T1 committed RR | r x 0\nT2 committed RR | u z 0\nT3 committed RR | r y 0", "", "",
			"no row in common"},
		"rolled back": {"T1 aborted RR | u x 0\nT2 committed RR | u z 0\nT3 committed RR | r x 0", "", "",
			"was rolled back"},
		"indeterminate": {"T1 committed RR | u x 0\nT2 committed RR | u z 0\nT3 indeterminate RR | u x T1.1", "", "",
			"is not known, and nobody saw"},
		"not observed": {"T1 committed RR | o\nT2 committed RR | u z 0\nT3 committed RR | r x 0", "", "",
			"1 of its statements were not observed"},
		"apart in time": {"T1 committed RR | r x 0\nT2 committed RR | u z 0\nT3 committed RR | r y 0", "", "",
			"They ran at the same time."},
		"certain if any": {"T1 committed RR | u x 0 | u y 0\nT2 committed RR | u z 0\nT3 committed RR | r~ x T1.1 | r y T1.2", "wr", "", "precedes"},
	} {
		t.Run(name, func(t *testing.T) {
			a := finished(t, c.script)
			w, err := a.Why(history.MakeTxnID(scriptRun, 1), history.MakeTxnID(scriptRun, 3))
			if err != nil {
				t.Fatal(err)
			}
			if kindsOf(w.AB) != c.ab || kindsOf(w.BA) != c.ba {
				t.Errorf("from A to B: %q, back: %q; want %q, %q", kindsOf(w.AB), kindsOf(w.BA), c.ab, c.ba)
			}
			if text := w.Summary + " " + strings.Join(w.Reasons, " "); !strings.Contains(text, c.says) {
				t.Errorf("%q does not say %q", text, c.says)
			}
			for _, p := range []Path{w.AB, w.BA} {
				for i := range p.Edges {
					if e := &p.Edges[i]; e.Inexact || !strings.Contains(p.Sentences[i], e.From.ID.String()) ||
						!strings.Contains(p.Sentences[i], e.Row.ID) {
						t.Errorf("edge %d (inexact %v): %s", i+1, e.Inexact, p.Sentences[i])
					}
				}
			}
		})
	}
}

// TestWhyTakesSessionOrderAsALastResort: why takes session order where nothing else leads there.
func TestWhyTakesSessionOrderAsALastResort(t *testing.T) {
	a := New(Options{})
	if err := a.Add(scriptInfo()); err != nil {
		t.Fatal(err)
	}
	for _, txn := range script(t, "T1 committed RR | r x 0\nT2 aborted RR | r x 0\nT3 committed RR | r x 0") {
		txn.Session = 1
		if err := a.AddTxn(txn); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Finish(); err != nil {
		t.Fatal(err)
	}
	w, err := a.Why(history.MakeTxnID(scriptRun, 3), history.MakeTxnID(scriptRun, 1))
	if err != nil {
		t.Fatal(err)
	}
	if kindsOf(w.BA) != "so" || w.AB.Edges != nil || !strings.Contains(w.BA.Sentences[0], "in the same session") {
		t.Errorf("got %+v, %+v", w.AB, w.BA)
	}
}

func TestWhyNamesTheTransactionThatThereIsNot(t *testing.T) {
	a := finished(t, "T1 committed RR | r x 0\nT2 committed RR | u z 0")
	one, two := history.MakeTxnID(scriptRun, 1), history.MakeTxnID(scriptRun, 99)
	for _, pair := range [][2]history.TxnID{{one, two}, {two, one}} {
		if _, err := a.Why(pair[0], pair[1]); err == nil || !strings.Contains(err.Error(), two.String()) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := a.Why(one, one); err == nil {
		t.Error("a transaction and itself are explained")
	}
	if _, err := New(Options{}).Why(one, two); err == nil {
		t.Error("what is not analysed is explained")
	}
}
