package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/isotap/isotap/robust"
)

// assessed returns a workload with the answers in the paper's last setting.
func assessed(t *testing.T, w *robust.Workload, err error) (*robust.Workload, []*robust.Answer) {
	t.Helper()
	if err := errors.Join(err, w.Check()); err != nil {
		t.Fatal(err)
	}
	return w, []*robust.Answer{robust.Assess(w.Programs, robust.Setting{ForeignKeys: true},
		robust.Limits{Subsets: 100, Witnesses: 10})}
}

func TestPageOnRobustnessMatchesItsGoldenFile(t *testing.T) {
	w, answers := assessed(t, robust.SmallBank(), nil)
	var page bytes.Buffer
	if err := RobustnessHTML(&page, w, answers); err != nil {
		t.Fatal(err)
	}
	compare(t, "robustness.html", unstyled(t, page.Bytes()))
}

// ran has the programs of a workload have run, each another number of times.
func ran(w *robust.Workload) {
	for i, p := range w.Programs {
		p.Calls = 3*i + 1
	}
}

func TestPageOnProgramsThatRanMatchesItsGoldenFile(t *testing.T) {
	w, answers := assessed(t, robust.SmallBank(), nil)
	ran(w)
	w.Notes = []string{"one", "two", "three", "four", "five", "six"}
	var page bytes.Buffer
	if err := RobustnessPage(&page, w, answers[0], TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	compare(t, "robustness-page.txt", page.Bytes())
}

func TestManyProgramsThatRanFitAPage(t *testing.T) {
	auction, err := robust.Auction(40)
	w, _ := assessed(t, auction, err)
	ran(w)
	var page bytes.Buffer
	a := robust.Assess(w.Programs, robust.Setting{}, robust.Limits{Subsets: 100, Witnesses: 100})
	if err := RobustnessPage(&page, w, a, TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(page.String(), "\n"); n > 75 {
		t.Errorf("%d lines", n)
	}
	// PlaceBid runs beside itself: what ran most comes first.
	if first := " 1  PB40 (ran 238 times) beside itself"; !strings.Contains(page.String(), first) {
		t.Errorf("the first is not %q:\n%s", first, page.String())
	}
}

func TestPageOnManyProgramsStaysSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	auction, err := robust.Auction(100)
	w, answers := assessed(t, auction, err)
	var page, text bytes.Buffer
	if err := errors.Join(RobustnessHTML(&page, w, answers),
		Robustness(&text, w, answers, TerminalOptions{})); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), "200 programs are left out") {
		t.Error("the drawing does not say what it leaves out")
	}
	if n := strings.Count(text.String(), "\n"); n > 60 {
		t.Errorf("%d lines on a terminal", n)
	}
	if n := page.Len(); n > 200<<10 {
		t.Errorf("a page of %d bytes", n)
	}
}

func TestSummaryGraphIsDrawnInsideItsFrame(t *testing.T) {
	w, answers := assessed(t, robust.TPCC(), nil)
	m := newProgramMap(answers[0], robust.TypeII)
	if len(m.Nodes) != len(w.Programs) || m.Left != 0 {
		t.Fatalf("%d of %d programs are drawn", len(m.Nodes), len(w.Programs))
	}
	lit := 0
	for i, e := range m.Edges {
		if e.LabelX < 0 || e.LabelX > m.Width || e.LabelY < 0 || e.LabelY > m.Height {
			t.Errorf("edge %d (%s) leaves the frame", i, e.Title)
		}
		if e.Label != "" {
			lit++
		}
	}
	if want := len(answers[0].Of(robust.TypeII).Witnesses[0].Cycle); lit != want {
		t.Errorf("%d edges of the cycle are lit, of %d", lit, want)
	}
}
