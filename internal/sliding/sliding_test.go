package sliding

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
)

// A played is a run that is recorded under a Window which looks when the test says so.
type played struct {
	t     *testing.T
	w     *recorder.Writer
	now   int64
	slide *Window
	found []*analyzer.Finding
}

func play(t *testing.T, limit uint64) *played {
	dir := filepath.Join(t.TempDir(), "rec")
	w, err := recorder.Create(dir, history.Info{Started: time.Now(), Mode: "items",
		Server: history.Server{Engine: dbms.MariaDB}}, recorder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &played{t: t, w: w}
	p.slide = newWindow(Recording{dir, w, func() int64 { return p.now }}, Options{Every: time.Hour, Limit: limit,
		Tell: func(r *analyzer.Result) { p.found = append(p.found, r.Findings...) }, Complain: func(err error) { t.Error(err) }})
	close(p.slide.done) // its goroutine looks by the clock, and was never begun
	t.Cleanup(func() { w.Close() })
	return p
}

// txn records a transaction of a session of its own that reads a version of one row, and may replace it. It returns the
// tag that it leaves.
func (p *played) txn(seq uint32, at int64, read history.Tag, writes bool) history.Tag {
	p.t.Helper()
	id := history.MakeTxnID(p.w.Run(), seq)
	row := history.Row{Table: "d.t", ID: "1"}
	x := &history.Txn{ID: id, Session: history.SessionID(seq), Level: history.ReadCommitted, Start: at, End: at + 10,
		Status: history.Committed}
	x.Stmts = []history.Stmt{{Num: 1, Kind: history.Select, Shape: "SELECT", Start: at, End: at + 2,
		Observation: history.Exact, Accesses: []history.Access{{Op: history.Read, Row: row, Version: read}}}}
	tag := history.Tag{Txn: id, Stmt: 2}
	if writes {
		x.Stmts = append(x.Stmts, history.Stmt{Num: 2, Kind: history.Update, Shape: "UPDATE", Start: at + 3, End: at + 9,
			Observation: history.Exact, Accesses: []history.Access{{Op: history.UpdateRow, Row: row, Version: read}}})
	}
	if err := p.w.Session(p.t.Context(), history.Session{Run: p.w.Run(), ID: x.Session}); err != nil {
		p.t.Fatal(err)
	}
	if err := p.w.Txn(p.t.Context(), x); err != nil {
		p.t.Fatal(err)
	}
	p.slide.Txn(x)
	return tag
}

func (p *played) log(n int) {
	p.t.Helper()
	for range n {
		l := &history.LoggedTxn{Status: history.Committed, To: p.now, File: "log", Position: uint64(p.now)}
		if err := p.w.Logged(p.t.Context(), l); err != nil {
			p.t.Fatal(err)
		}
	}
}

// look has the Window look at a time.
func (p *played) look(at int64) {
	p.t.Helper()
	p.now = at
	if err := p.slide.look(context.Background(), time.Microsecond); err != nil {
		p.t.Fatal(err)
	}
}

// TestStretchesOverlapByHalf has a transaction miss another's write, on either side of a look.
func TestStretchesOverlapByHalf(t *testing.T) {
	const second = int64(time.Second)
	p := play(t, 1000)
	p.look(1 * second)
	first := p.txn(1, 2*second-20, history.Tag{}, true)
	p.look(2 * second)
	if p.txn(2, 2*second+20, history.Tag{}, true); len(p.found) > 0 {
		t.Fatalf("found at once: %v", p.found[0].Explanation)
	}
	p.look(3 * second)
	if len(p.found) == 0 {
		t.Fatalf("nothing is found of two that replaced one version, the first leaving %v", first)
	}
	p.found = nil
	for at := range int64(4) {
		p.look((4 + at) * second)
	}
	if len(p.slide.ended) > 0 {
		t.Errorf("%d transactions are kept long after", len(p.slide.ended))
	}
	p.txn(3, 8*second, first, true)
	p.found = nil
	p.look(9 * second)
	if len(p.found) > 0 {
		t.Errorf("what is no part of the stretch is found: %v", p.found[0].Explanation)
	}
	if left := p.slide.Close(false); left != 0 {
		t.Errorf("%d transactions of no log were left out", left)
	}
}

// TestWhatIsTooMuchIsCounted has more of the log come than a stretch may have.
func TestWhatIsTooMuchIsCounted(t *testing.T) {
	p := play(t, 10)
	p.now = 1
	p.log(20)
	p.look(int64(time.Second))
	for i := range int64(3) {
		p.log(2)
		p.look((2 + i) * int64(time.Second))
	}
	if left := p.slide.Close(true); left != 20 {
		t.Errorf("%d transactions of the log were left out, not 20", left)
	}
}

// TestCrowdsAreLookedAtEarly: a stretch has a third of what is allowed when it is due.
func TestCrowdsAreLookedAtEarly(t *testing.T) {
	p := play(t, 30)
	defer p.slide.Close(false)
	var crowded []bool
	for seq := range uint32(12) {
		p.txn(seq+1, int64(seq+1), history.Tag{}, false)
		crowded = append(crowded, p.slide.crowded())
	}
	if got := slices.Index(crowded, true); got != 10 {
		t.Errorf("crowded from transaction %d of 30 on", got+1)
	}
}
