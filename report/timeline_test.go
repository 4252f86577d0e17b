package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// text draws a timeline as one line a row: the cells' texts, | where a statement reaches down, :
// where the transaction is open, . where it is not.
func (tl *timeline) text() string {
	var b strings.Builder
	for _, row := range tl.Rows {
		b.WriteString(row.Offset)
		if row.Gap > 0 {
			fmt.Fprint(&b, "gap ", row.Gap)
		}
		for _, c := range row.Cells {
			switch {
			case c.Covered:
				b.WriteString(" |")
			case c.Event != nil && c.Event.Text != "":
				b.WriteString(" " + strings.Fields(c.Event.Text)[0])
			case c.Event != nil:
				b.WriteString(" " + c.Event.Boundary)
			case c.Open:
				b.WriteString(" :")
			default:
				b.WriteString(" .")
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestTimelineShowsWhoRanWhenAndWhoWaited(t *testing.T) {
	r := lostUpdate()
	tl := newWitness(r.Findings[0]).timeline(newClock(r.Runs))
	want := `0 . BEGIN
+600 µs . SELECT
+900 µs BEGIN |
+1.4 ms SELECT :
+6.4 ms : UPDATE
+8 ms UPDATE :
+20.1 ms | COMMIT
+23 ms COMMIT .
`
	if got := tl.text(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if update := tl.Rows[5].Cells[0]; !update.Event.Waited || update.Span != 2 {
		t.Errorf("the UPDATE that outlasted the other's COMMIT is not marked: %+v", update)
	}
	if read := tl.Rows[1].Cells[1]; read.Event.Waited {
		t.Errorf("a SELECT during which nothing ended is marked: %+v", read)
	}
}

func TestTimelineMarksTheStatementsOfEachEdge(t *testing.T) {
	r := lostUpdate()
	tl := newWitness(r.Findings[0]).timeline(newClock(r.Runs))
	var got []string
	for _, row := range tl.Rows {
		for i, c := range row.Cells {
			if c.Event == nil {
				continue
			}
			for _, m := range c.Event.Marks {
				got = append(got, fmt.Sprint("T", i+1, " ", m.Edge, " ", m.Kind, " ", m.Deed))
			}
		}
	}
	want := "[T1 1 rw reads T2 1 rw overwrites T2 2 ww writes T1 2 ww overwrites]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}

// TestLongTimelineKeepsWhatIsAtFault: timeline of a long transaction keeps what is at fault.
func TestLongTimelineKeepsWhatIsAtFault(t *testing.T) {
	f := ring(2, 500)
	tl := newWitness(f).timeline(nil)
	if len(tl.Rows) > 2*timelineRows {
		t.Errorf("%d rows", len(tl.Rows))
	}
	shown, gaps, marks := 0, 0, 0
	for _, row := range tl.Rows {
		gaps += row.Gap
		for _, c := range row.Cells {
			if c.Event != nil {
				shown++
				marks += len(c.Event.Marks)
			}
		}
	}
	if gaps != tl.Left || shown+gaps != 2*(502+2) {
		t.Errorf("%d events are shown and %d left out (%d by the timeline's count), want %d",
			shown, gaps, tl.Left, 2*(502+2))
	}
	if marks != 2*len(f.Witness) {
		t.Errorf("%d marks, want %d", marks, 2*len(f.Witness))
	}
}

// TestTimelineCellsTileTheTable: in each column every row is covered by exactly one cell, or the
// table's columns would shift.
func TestTimelineCellsTileTheTable(t *testing.T) {
	for name, f := range map[string]*witness{
		"lost update": newWitness(lostUpdate().Findings[0]), "three": newWitness(threeCycle()),
		"hostile": newWitness(hostile().Findings[0]), "long": newWitness(ring(3, 200)),
		"backwards": newWitness(backwards().Findings[0]),
	} {
		tl := f.timeline(nil)
		for column := range tl.Columns {
			covered := 0
			for r, row := range tl.Rows {
				c := row.Cells[column]
				if c.Covered != (covered > 0) {
					t.Errorf("%s: column %d, row %d: covered is %v", name, column, r, c.Covered)
				}
				if covered > 0 {
					covered--
				} else if c.Event != nil {
					covered = c.Span - 1
				}
			}
			if covered > 0 {
				t.Errorf("%s: column %d reaches %d rows beyond the table", name, column, covered)
			}
		}
	}
}

// backwards is a result with clock readings that contradict the order of the statements.
func backwards() *analyzer.Result {
	r := lostUpdate()
	t1 := r.Findings[0].Witness[0].From
	t1.Stmts[2].Start, t1.Stmts[2].End = 0, 1
	t1.End = 0
	return r
}

// TestWhoWentPastIsotapStandsBetweenTheOthers has T1 of a lost update be known by the server's log alone: it ended
// within some time, and the dependencies say between which statements of T2.
func TestWhoWentPastIsotapStandsBetweenTheOthers(t *testing.T) {
	r := lostUpdate()
	f := r.Findings[0]
	past := f.Witness[0].To
	past.ID, past.Runner = history.MakeTxnID(history.FirstPast, 1), history.PastIsotap
	past.Stmts = past.Stmts[2:]
	past.Start, past.End = 0, 4300*ms
	past.Stmts[0].Start, past.Stmts[0].End = 0, 0
	past.Stmts[1].Start, past.Stmts[1].End = 4100*ms, 0
	f.Witness[0].ToStmt, f.Witness[1].FromStmt = &past.Stmts[0], &past.Stmts[0]
	tl := newWitness(f).timeline(newClock(append(r.Runs, history.Info{Run: history.FirstPast, Started: testInfo().Started})))
	want := `0 BEGIN .
+500 µs SELECT .
+7.1 ms : UPDATE
+7.1 ms : COMMIT
+7.1 ms UPDATE .
+22.1 ms COMMIT .
`
	if got := tl.text(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if who := tl.Columns[1].Who; who != "past isotap" {
		t.Errorf("it is %q", who)
	}
}

func TestTimelineAlignsRunsByTheirWallClocks(t *testing.T) {
	const other history.Run = 7
	a := txn(1, 1, history.ReadCommitted, stmt(history.Update, 5000, 5001, "first"))
	b := txn(2, 1, history.ReadCommitted, stmt(history.Update, 1, 2, "second"))
	b.ID = history.MakeTxnID(other, 2)
	started := testInfo().Started
	c := newClock([]history.Info{{Run: testRun, Started: started},
		{Run: other, Started: started.Add(10 * time.Second)}})
	if got := c.shift([]*history.Txn{a, b}); got[0] != 0 || got[1] != int64(10*time.Second) {
		t.Errorf("got shifts %v", got)
	}
	delete(c, other)
	if got := c.shift([]*history.Txn{a, b}); got[0] != 0 || got[1] != 0 {
		t.Errorf("with an unknown run: got shifts %v", got)
	}
}
