package analyzer

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/histgen"
)

const forever = time.Duration(math.MaxInt64)

// A feed gives transactions to a Live as they come, and steps at random moments.
type feed struct {
	t    *testing.T
	live *Live
	told map[string]News // the last news of each finding
	left int             // kept at the end
}

func (f *feed) step(now, open int64) {
	f.t.Helper()
	news, err := f.live.Step(now, open)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, n := range news {
		key := n.Finding.ID
		if _, ok := f.told[key]; ok == n.First {
			f.t.Errorf("%s %s is told for the first time: %v, was told before: %v", n.Finding.Class,
				n.Finding.Anomaly, n.First, ok)
		}
		f.told[key] = n
	}
}

// arrivals returns a history in the order of its ends, but for those that others overtook on their way.
func arrivals(rng *rand.Rand, h []*history.Txn) []*history.Txn {
	late := rng.Int64N(2) * rng.Int64N(20)
	at := make(map[*history.Txn]int64, len(h))
	for _, txn := range h {
		at[txn] = txn.End + rng.Int64N(late+1)
	}
	inOrder := slices.Clone(h)
	slices.SortFunc(inOrder, func(x, y *history.Txn) int { return cmp.Compare(at[x], at[y]) })
	return inOrder
}

// play feeds a history as it arrives, and finishes.
func play(t *testing.T, rng *rand.Rand, info history.Info, h []*history.Txn, o LiveOptions) (*feed, *Result) {
	t.Helper()
	f := &feed{t: t, live: NewLive(o), told: make(map[string]News)}
	running := info
	running.Ended = time.Time{}
	f.live.Add(running)
	inOrder := arrivals(rng, h)
	now := int64(0)
	for i, txn := range inOrder {
		if err := f.live.AddTxn(txn); err != nil {
			t.Fatal(err)
		}
		if rng.IntN(2) > 0 {
			continue
		}
		now = max(now, txn.End)
		open := now + 1
		for _, x := range inOrder[i+1:] {
			open = min(open, x.Start)
		}
		f.step(now, open)
	}
	f.live.Add(info)
	f.left = f.live.Stats().Kept
	f.step(math.MaxInt64, math.MaxInt64)
	r, err := f.live.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return f, r
}

// brief returns what two analyzes must agree on of each finding.
func brief(r *Result) []string {
	var lines []string
	for _, f := range r.Findings {
		line := fmt.Sprintf("%s %s %s x%d, %d to %d, %d sets, %d patterns, %v", f.ID, f.Class, f.Anomaly, f.Count,
			f.First, f.Last,
			f.ProgramSets, f.Patterns, f.Tables)
		if f.Patterns == 1 { // of several, which one's witness is shown goes by the order of discovery where they are as frequent
			line += fmt.Sprintf(", cycle of %d", len(f.Witness))
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// spread gives transactions to sessions at random, often to one that had none, as connections of a pool may be:
// the sessions that histgen makes are as few as can be.
func spread(rng *rand.Rand, h []*history.Txn) {
	slices.SortStableFunc(h, func(x, y *history.Txn) int { return cmp.Compare(x.Start, y.Start) })
	names := rng.Perm(len(h))
	busy := 1 + rng.IntN(8) // one in so many begins a session
	ends := make([]int64, 0, len(h))
	for _, txn := range h {
		s := rng.IntN(len(ends) + 1)
		if rng.IntN(busy) == 0 || s < len(ends) && ends[s] >= txn.Start {
			s = len(ends)
		}
		if s == len(ends) {
			ends = append(ends, 0)
		}
		ends[s], txn.Session = txn.End, history.SessionID(names[s]+1)
	}
}

// forStreams runs check on random histories that go on for a while with a few transactions at a time.
func forStreams(t *testing.T, check func(t *testing.T, rng *rand.Rand, c histgen.Config, h []*history.Txn)) {
	n := *histories / 25
	if testing.Short() {
		n /= 20
	}
	for seed := *firstHistory; seed < *firstHistory+n; seed++ {
		rng := rand.New(rand.NewPCG(uint64(seed), 9))
		c := histgen.Random(rng)
		c.Txns, c.Open = 5+rng.IntN(40), 2+rng.IntN(3)
		h := histgen.Generate(rng, c)
		if seed%2 > 0 {
			spread(rng, h)
		}
		inSessions(h)
		check(t, rng, c, h)
		if t.Failed() {
			t.Fatalf("history %d (%+v):\n%s", seed, c, dump(h))
		}
	}
}

func sameAsBatch(t *testing.T, got, want *Result) {
	t.Helper()
	if w, g := brief(want), brief(got); !slices.Equal(w, g) {
		t.Errorf("live:\n%q\nbatch:\n%q", g, w)
	}
	if !reflect.DeepEqual(got.Levels, want.Levels) {
		t.Errorf("live: %+v\nbatch: %+v", got.Levels, want.Levels)
	}
	if !reflect.DeepEqual(got.Coverage, want.Coverage) {
		t.Errorf("live: %+v\nbatch: %+v", got.Coverage, want.Coverage)
	}
}

// TestLiveFindsWhatBatchFindsWithinWindow: live finds what the batch finds within its window.
func TestLiveFindsWhatBatchFindsWithinWindow(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	counts := make(map[Anomaly]int)
	forStreams(t, func(t *testing.T, rng *rand.Rand, c histgen.Config, h []*history.Txn) {
		info := c.Info()
		if rng.IntN(8) == 0 {
			info.Ended = time.Time{} // it was killed
		}
		_, got := play(t, rng, info, h, LiveOptions{Window: forever, Patience: forever})
		sameAsBatch(t, got, analyze(t, info, h))
		for _, f := range got.Findings {
			counts[f.Anomaly]++
		}
	})
	wantAll(t, counts, G0, G1a, G1b, G1c, GSingle, GNonadjacent, G2Item, LostUpdate, NonRepeatableRead, ReadSkew,
		ReadWriteSkew,
		WriteSkew, DirtyUpdate, LostWrite)
}

// Histories in which a live analysis once differed from the batch: what a step saw, and was otherwise when more was
// known, stayed.
func TestLiveTakesBackWhatMoreIsKnownOf(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for seed, session := range map[uint64]func(i int) int{
		9675:  func(i int) int { return -i }, // a lost write that was a row deleted and created again, in the verdict
		12061: func(i int) int { return i },  // a shorter witness
		12189: func(i int) int { return i },  // one finding told as two, by the length of its cycles
	} {
		rng := rand.New(rand.NewPCG(seed, 9))
		c := histgen.Random(rng)
		c.Txns, c.Open = 5+rng.IntN(40), 2+rng.IntN(3)
		h := histgen.Generate(rng, c)
		for i := range h {
			h[i].Session = history.SessionID(1000 + session(i))
		}
		inSessions(h)
		for range 20 {
			_, got := play(t, rng, c.Info(), h, LiveOptions{Window: forever, Patience: forever})
			sameAsBatch(t, got, analyze(t, c.Info(), h))
		}
		if c.Engine != histgen.Broken {
			f, got := play(t, rng, c.Info(), h, LiveOptions{Patience: forever})
			f.toldAll(got)
		}
	}
}

// A verdict names the strictest of what occurs, also where another finding has its statements: T3 read y before T4
// wrote it and again after T5 had, which the lost update covers.
func TestVerdictNamesWhatAFindingCovers(t *testing.T) {
	h := script(t, `
T1 committed RR | r x 0 | u x T2.1
T2 committed RR | u x 0
T3 committed RR | r y 0 | R y T5.1
T4 committed RR | u y 0
T5 committed RR | u y T4.1`)
	batch := analyze(t, scriptInfo(), h)
	if len(batch.Findings) != 1 || len(batch.Findings[0].Covers) != 1 {
		t.Errorf("found %v, want one finding that covers another", names(batch))
	}
	i := slices.IndexFunc(batch.Levels.Violated, func(v LevelViolation) bool { return v.Level == "RA" })
	if i < 0 || batch.Levels.Violated[i].By != NonRepeatableRead {
		t.Errorf("RA is violated by %+v, want a non-repeatable read", batch.Levels.Violated)
	}
	_, live := play(t, rand.New(rand.NewPCG(1, 1)), scriptInfo(), h, LiveOptions{Window: forever, Patience: forever})
	sameAsBatch(t, live, batch)
}

// Who wrote over what another had undone precedes all the same those that replaced what it had read: a live analysis
// that no longer knows of T2 says the same.
func TestDirtyUpdateHidesNoNonRepeatableRead(t *testing.T) {
	r := analyze(t, scriptInfo(), script(t, `
T1 committed RC | d x 0
T2 aborted RC | d x 0
T3 committed RC | i x T1.1
T4 committed SR | r x 0 | r x T3.1 | i x T2.1`))
	for _, want := range []string{"violation dirty update", "violation non-repeatable read"} {
		if !slices.Contains(names(r), want) {
			t.Errorf("found %v, want a %s", names(r), want)
		}
	}
}

// inSessions puts a history into the order in which a recording is read.
func inSessions(h []*history.Txn) {
	slices.SortFunc(h, func(x, y *history.Txn) int {
		return cmp.Or(cmp.Compare(x.Session, y.Session), cmp.Compare(x.Start, y.Start))
	})
}

// Where the store keeps its word, nothing that is open reaches what the Live lets go.
func TestLiveNeedsNoWindowOnHonestServers(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	gone, all := 0, 0
	forStreams(t, func(t *testing.T, rng *rand.Rand, c histgen.Config, h []*history.Txn) {
		if c.Engine == histgen.Broken {
			return
		}
		f, got := play(t, rng, c.Info(), h, LiveOptions{Patience: forever})
		sameAsBatch(t, got, analyze(t, c.Info(), h))
		f.toldAll(got)
		gone += len(h) - f.left
		all += len(h)
	})
	if gone < all/2 {
		t.Errorf("%d of %d transactions were let go before the end", gone, all)
	}
}

// toldAll checks that the findings of a result were told, with their counts, and nothing else but longer cycles
// whose statements a shorter one explained later.
func (f *feed) toldAll(r *Result) {
	f.t.Helper()
	final := make(map[string]bool)
	for _, x := range r.Findings {
		final[x.ID] = true
		if n, ok := f.told[x.ID]; x.Patterns == 1 && (!ok || n.Finding.Count != x.Count) {
			f.t.Errorf("%s %s x%d was told as %+v", x.Class, x.Anomaly, x.Count, n.Finding)
		}
	}
	for id, n := range f.told {
		if !final[id] && len(n.Finding.Witness) < 3 && len(r.Findings) < maxPatterns {
			f.t.Errorf("%s %s was told and is no finding in the end", n.Finding.Class, n.Finding.Anomaly)
		}
	}
}

// Whatever is told is true: its cycle is there in the whole history. Where a transaction was let go that comes in
// between, an edge stands for a path.
func TestLiveTellsTheTruthHoweverLittleItKeeps(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	told, missed := 0, 0
	forStreams(t, func(t *testing.T, rng *rand.Rand, c histgen.Config, h []*history.Txn) {
		f, got := play(t, rng, c.Info(), h, LiveOptions{Limit: 1 + rng.IntN(8)})
		a := New(Options{})
		want, err := finishAll(a, c.Info(), h)
		if err != nil {
			t.Fatal(err)
		}
		leads := leading(t, a, h)
		for _, n := range f.told {
			told++
			for _, e := range n.Finding.Witness {
				order := e.Kind == SO && e.From.Session == e.To.Session && e.From.End < e.To.Start ||
					e.Kind == RT && e.From.End < e.To.Start
				if len(n.Finding.Witness) > 1 && !order && !leads[e.From.ID.Seq()-1][e.To.ID.Seq()-1] {
					t.Errorf("%s %s rests on %s -%s-> %s by %v, which is none", n.Finding.Class, n.Finding.Anomaly,
						e.From.ID, e.Kind, e.To.ID, e.Row)
				}
			}
		}
		missed += max(0, total(want)-total(got))
	})
	t.Logf("%d findings told, %d occurrences missed", told, missed)
}

func total(r *Result) int {
	n := 0
	for _, f := range r.Findings {
		n += f.Count
	}
	return n
}

func finishAll(a *Analyzer, info history.Info, h []*history.Txn) (*Result, error) {
	if err := a.Add(info); err != nil {
		return nil, err
	}
	for _, txn := range h {
		if err := a.AddTxn(txn); err != nil {
			return nil, err
		}
	}
	return a.Finish()
}

// leading returns from which transactions dependencies lead to which, by their counters less one.
func leading(t *testing.T, a *Analyzer, h []*history.Txn) [][]bool {
	edges := make([][]bool, len(h))
	for i := range edges {
		edges[i] = make([]bool, len(h))
	}
	for e, err := range a.Edges() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != SO {
			edges[e.From.ID.Seq()-1][e.To.ID.Seq()-1] = true
		}
	}
	return closure(edges)
}

// A million transactions over a few rows leave no more behind than those that are open can reach.
func TestLiveKeepsWhatIsOpenAndItsWindow(t *testing.T) {
	n := 400_000
	if testing.Short() {
		n /= 8
	}
	l := NewLive(LiveOptions{Window: 100, Patience: forever})
	l.Add(histgen.LoadInfo())
	most, added := 0, 0
	err := histgen.NewLoad(500).Each(n, func(txn *history.Txn) error {
		kept := *txn
		kept.Stmts = slices.Clone(txn.Stmts)
		for i := range kept.Stmts {
			kept.Stmts[i].Accesses = slices.Clone(txn.Stmts[i].Accesses)
		}
		if err := l.AddTxn(&kept); err != nil {
			return err
		}
		most = max(most, l.Stats().Kept)
		if added++; added%1000 > 0 {
			return nil
		}
		_, err := l.Step(txn.End, txn.End)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if most > 1200 {
		t.Errorf("%d transactions were kept at once", most)
	}
	r, err := l.Finish()
	if err != nil || len(r.Findings) > 0 || r.Coverage.Committed != n {
		t.Errorf("the result is %+v, error %v", r, err)
	}
}

func TestLiveTakesNoTransactionTwice(t *testing.T) {
	l := NewLive(LiveOptions{})
	txn := &history.Txn{ID: history.MakeTxnID(scriptRun, 1)}
	if err := l.AddTxn(txn); err != nil {
		t.Fatal(err)
	}
	if err := l.AddTxn(txn); err == nil {
		t.Error("a transaction was taken twice")
	}
}

// TestLiveTakesADatabaseThatIsToldAtLogin: a session is told of when its client connects, and again when it has logged
// in. PostgreSQL's rows of one name in two databases are told apart by it.
func TestLiveTakesADatabaseThatIsToldAtLogin(t *testing.T) {
	l := NewLive(LiveOptions{})
	l.Add(scriptInfo())
	connected := history.Session{Run: scriptRun, ID: 3}
	loggedIn := connected
	loggedIn.Database = "shop"
	for _, s := range []history.Session{connected, loggedIn, loggedIn} {
		l.AddSession(s)
	}
	if len(l.sessions) != 1 || l.sessions[0].Database != "shop" || l.coverageCount.Sessions != 1 {
		t.Errorf("sessions with a database: %v; counted %d", l.sessions, l.coverageCount.Sessions)
	}
}
