package predicate

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken"
)

// A grep is a tester whose predicates are texts that rows hold, and a sink that keeps what matches.
type grep struct {
	asked int
	found map[history.Predicate][]history.VersionRef
	// With numbers it reads predicates and images itself; with asksMore, predicates ask for more than a number. It does
	// not know the numbers of images that begin with unread.
	numbers, asksMore bool
	unread            string
	// There is no server while it is down. Conditions break the connection as often as breaks says.
	down   bool
	breaks map[string]int
}

var errDown, errBroke = errors.New("connection refused"), errors.New("unexpected EOF")

// Why takes all other errors for the condition's.
func (g *grep) Why(err error) (refused, reached bool) {
	return !errors.Is(err, errDown) && !errors.Is(err, errBroke), !errors.Is(err, errDown)
}

func (g *grep) Test(_ context.Context, _ string, predicates []history.Predicate, images []string) (matching [][]int,
	lacking []bool, err error) {
	g.asked++
	if g.down {
		return nil, nil, errDown
	}
	for _, p := range predicates {
		if g.breaks[p.Where] > 0 {
			g.breaks[p.Where]--
			return nil, nil, errBroke
		}
	}
	matching, lacking = make([][]int, len(predicates)), make([]bool, len(predicates))
	for i, p := range predicates {
		if p.Where == "error" {
			return nil, nil, errors.New("no such thing")
		}
		for j, image := range images {
			lacking[i] = lacking[i] || strings.HasPrefix(image, "without "+p.Where)
			if strings.Contains(image, p.Where) {
				matching[i] = append(matching[i], j)
			}
		}
	}
	return matching, lacking, nil
}

// Equality reads =5, which a grep that knows numbers reads.
func (g *grep) Equality(_ string, p history.Predicate) (e sqltoken.Equality, ok bool) {
	n, err := strconv.ParseInt(strings.TrimPrefix(p.Where, "="), 10, 64)
	return sqltoken.Equality{Column: "v", Value: n, Alone: !g.asksMore}, err == nil && g.numbers
}

// Number reads what stands behind an =.
func (g *grep) Number(image, _ string) (n int64, null, known bool) {
	_, value, _ := strings.Cut(strings.TrimSuffix(image, ")"), "=")
	n, err := strconv.ParseInt(value, 10, 64)
	return n, false, err == nil && !strings.HasPrefix(image, g.unread)
}

func (g *grep) Matches(_ context.Context, m history.Matches) error {
	g.found[m.Predicate] = append(g.found[m.Predicate], m.Versions...)
	return nil
}

func newGrep() (*grep, *Matcher) {
	g := &grep{found: make(map[history.Predicate][]history.VersionRef), unread: "none"}
	return g, NewMatcher(g, g, zap.NewNop())
}

func where(text string) history.Predicate { return history.Predicate{Table: "t", As: "t", Where: text} }

// reads and wrote are transactions that end at a time: one with predicates, one that leaves rows.
func reads(at int64, texts ...string) *history.Txn {
	t := &history.Txn{ID: id(uint32(at)), Status: history.Committed, End: at, Stmts: []history.Stmt{{Num: 1}}}
	for _, text := range texts {
		t.Stmts[0].Predicates = append(t.Stmts[0].Predicates, where(text))
	}
	return t
}

func wrote(at int64, images ...string) *history.Txn {
	t := &history.Txn{ID: id(uint32(at)), Status: history.Committed, End: at,
		Stmts: []history.Stmt{{Num: 1, Images: images}}}
	for range images {
		t.Stmts[0].Accesses = append(t.Stmts[0].Accesses,
			history.Access{Row: history.Row{Table: "t"}, Op: history.InsertRow})
	}
	return t
}

func TestEachVersionIsHeldAgainstEachPredicateOnce(t *testing.T) {
	g, m := newGrep()
	m.Add("", wrote(1, "(a)", "", "(b)"))
	m.Add("", reads(2, "a", "b", "error"))
	m.round(t.Context(), 3)
	m.Add("", reads(4, "a", "c"))
	m.Add("", wrote(5, "(a,c)"))
	aborted := wrote(6, "(a)")
	aborted.Status = history.Aborted
	m.Add("", aborted)
	m.round(t.Context(), 7)
	m.round(t.Context(), 8)
	for text, want := range map[string][]history.VersionRef{
		"a": {{Txn: id(1), Stmt: 1, Access: 0}, {Txn: id(5), Stmt: 1, Access: 0}},
		"b": {{Txn: id(1), Stmt: 1, Access: 2}},
		"c": {{Txn: id(5), Stmt: 1, Access: 0}},
	} {
		if got := g.found[where(text)]; !slices.Equal(got, want) {
			t.Errorf("%s matches %v, want %v", text, got, want)
		}
	}
	asked := g.asked
	if m.round(t.Context(), 9); g.asked != asked {
		t.Error("a round without news asks again")
	}
}

// TestEarlierWritesAreNotHeldAgainstATransaction has transactions choose rows some rounds after a row came: one
// that began since, and one that began before it.
func TestEarlierWritesAreNotHeldAgainstATransaction(t *testing.T) {
	g, m := newGrep()
	m.Add("", reads(1, "nothing"))
	m.Add("", wrote(10, append(slices.Repeat([]string{"(b)"}, few), "(a)")...))
	for at := int64(20); at < 50; at += 10 {
		m.round(t.Context(), at)
	}
	began := func(at, end int64) *history.Txn {
		x := reads(end, "a")
		x.Start = at
		return x
	}
	asked := g.asked
	m.Add("", began(45, 50))
	m.round(t.Context(), 60)
	if got := g.found[where("a")]; len(got) > 0 || g.asked != asked {
		t.Errorf("%v was held against a transaction that saw it", got)
	}
	m.Add("", began(5, 70))
	m.Add("", wrote(75, "(a)"))
	m.round(t.Context(), 80)
	if got := g.found[where("a")]; len(got) != 2 {
		t.Errorf("found %v, want both rows", got)
	}
}

// TestFewVersionsAreHeldAgainstAllPredicates has a transaction choose rows long after one came: whether it knows that
// the row is gone does not depend on when the rounds were.
func TestFewVersionsAreHeldAgainstAllPredicates(t *testing.T) {
	g, m := newGrep()
	m.Add("", wrote(10, "(a)"))
	for at := int64(20); at < 50; at += 10 {
		m.round(t.Context(), at)
	}
	x := reads(60, "a")
	x.Start = 55
	m.Add("", x)
	m.round(t.Context(), 70)
	if got := g.found[where("a")]; len(got) != 1 {
		t.Errorf("found %v, want the row", got)
	}
}

func TestWhatIsOlderThanTheWindowIsForgotten(t *testing.T) {
	g, m := newGrep()
	late := 2 * int64(window)
	m.Add("", wrote(1, "(a)"))
	m.Add("", reads(2, "z"))
	m.round(t.Context(), late)
	m.Add("", reads(late, "a"))
	m.Add("", wrote(late+1, "(a)"))
	m.round(t.Context(), late+2)
	if got := g.found[where("a")]; len(got) != 1 || got[0].Txn != id(uint32(late+1)) {
		t.Errorf("found %v", got)
	}
	if x := m.tables[table{"", "t"}]; len(x.images) != 1 || len(x.predicates) != 1 {
		t.Errorf("%d images and %d predicates are kept", len(x.images), len(x.predicates))
	}
}

func TestATableOfTooMuchIsGivenUp(t *testing.T) {
	g, m := newGrep()
	m.Add("", reads(1, "a"))
	m.Add("", wrote(2, slices.Repeat([]string{"(a)"}, maxImages+1)...))
	m.Add("", reads(3, "a"))
	m.round(t.Context(), 4)
	if x := m.tables[table{"", "t"}]; len(g.found) != 0 || len(x.images) != 0 || len(x.predicates) != 0 {
		t.Errorf("%d found, %d images and %d predicates are kept", len(g.found), len(x.images), len(x.predicates))
	}
}

func TestWhatIsLeftAtTheEndIsTested(t *testing.T) {
	g, m := newGrep()
	ctx, stop := context.WithCancel(t.Context())
	m.Add("", wrote(1, "(a)"))
	m.Add("", reads(2, "a"))
	stop()
	m.Run(ctx, t.Context(), time.Minute, func() int64 { return 3 })
	if len(g.found[where("a")]) != 1 {
		t.Error("what came last was not tested")
	}
}

// TestWhatCouldNotBeTestedStaysCounted: a condition that the server refuses, and one of a column that an image lacks,
// are counted also when they were forgotten.
func TestWhatCouldNotBeTestedStaysCounted(t *testing.T) {
	g, m := newGrep()
	m.Add("", wrote(1, "(a)", "without c (a)"))
	m.Add("", reads(2, "a", "c", "error"))
	for _, at := range []int64{3, 3 + 2*int64(window)} {
		m.round(t.Context(), at)
		if got := m.Untested(); got != 2 || m.Beyond() != 0 {
			t.Errorf("at %d: %d conditions are said not to be tested, %d of them beyond the bound; want 2 and 0", at, got,
				m.Beyond())
		}
	}
	if got := g.found[where("a")]; len(got) != 2 {
		t.Errorf("%v match a condition that was tested whole", got)
	}
	if n := len(m.tables[table{"", "t"}].predicates); n != 0 {
		t.Errorf("%d conditions are still known", n)
	}
}
