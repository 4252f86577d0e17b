package predicate

import (
	"slices"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
)

// TestConditionsAreTestedAgainWhenTheServerIsBack has the server be away for some rounds. Nothing is left out that came
// before that, meanwhile or afterwards, and it is not asked in each round.
func TestConditionsAreTestedAgainWhenTheServerIsBack(t *testing.T) {
	for _, gentle := range []bool{false, true} {
		g, m := newGrep()
		m.Gentle = gentle
		at := int64(10)
		add := func() {
			m.Add("", reads(at, "a", "b"))
			m.Add("", wrote(at+1, "(a)"))
			at += int64(testEvery)
			m.round(t.Context(), at)
		}
		add()
		g.down = true
		for range 50 {
			add()
		}
		if n := m.Untested(); n != 2 {
			t.Errorf("gentle %v: %d conditions are untested while there is no server, want both", gentle, n)
		}
		if g.asked > 10 {
			t.Errorf("gentle %v: the server was asked %d times in 5 s", gentle, g.asked)
		}
		g.down = false
		for range 100 {
			add()
		}
		if got := distinct(g.found[where("a")]); got != 151 {
			t.Errorf("gentle %v: %d of 151 versions were found", gentle, got)
		}
		if n := m.Untested(); n != 0 {
			t.Errorf("gentle %v: %d conditions are untested", gentle, n)
		}
	}
}

func distinct(versions []history.VersionRef) int {
	known := make(map[history.VersionRef]bool)
	for _, v := range versions {
		known[v] = true
	}
	return len(known)
}

// TestABrokenConnectionDoesNotBlindConditions has one break that tests a condition, alone and among others.
func TestABrokenConnectionDoesNotBlindConditions(t *testing.T) {
	for _, texts := range [][]string{{"a"}, {"a", "b"}} {
		for breaks := 1; breaks <= 2; breaks++ {
			g, m := newGrep()
			g.breaks = map[string]int{"a": breaks}
			m.Add("", reads(1, texts...))
			m.Add("", wrote(2, "(a,b)"))
			at := int64(0)
			for range 10 {
				m.round(t.Context(), at)
				at += int64(time.Second)
			}
			m.Add("", wrote(at, "(a,b,c)"))
			m.round(t.Context(), at)
			for _, text := range texts {
				if got := g.found[where(text)]; distinct(got) != 2 {
					t.Errorf("%s matches %v after %d breaks", text, got, breaks)
				}
			}
			if n := m.Untested(); n != 0 {
				t.Errorf("%d conditions are untested after %d breaks", n, breaks)
			}
		}
	}
}

// TestConditionsThatBreakConnectionsAreGivenUp: not so those beside them.
func TestConditionsThatBreakConnectionsAreGivenUp(t *testing.T) {
	g, m := newGrep()
	g.breaks = map[string]int{"a": 1000}
	at := int64(1)
	for range 100 {
		m.Add("", reads(at, "a", "b"))
		m.Add("", wrote(at+1, "(a,b)"))
		at += int64(100 * time.Millisecond)
		m.round(t.Context(), at)
	}
	if broken := 1000 - g.breaks["a"]; broken > 2*maxBreaks {
		t.Errorf("the condition broke %d connections", broken)
	}
	if got := g.found[where("b")]; distinct(got) != 100 {
		t.Errorf("b matches %d of 100", distinct(got))
	}
	if n := m.Untested(); n != 1 {
		t.Errorf("%d conditions are untested, want one", n)
	}
}

// TestWhatTheServerWasAwayForIsCounted: what is older than the window when it is back is not tested any more.
func TestWhatTheServerWasAwayForIsCounted(t *testing.T) {
	g, m := newGrep()
	g.down = true
	m.Add("", reads(1, "a"))
	m.Add("", wrote(2, "(a)"))
	m.round(t.Context(), 3)
	late := 2 * int64(window)
	m.Add("", reads(late, "a"))
	m.round(t.Context(), late)
	g.down = false
	m.Add("", wrote(late+1, "(a,b)"))
	m.round(t.Context(), late+int64(window)/2)
	if got := g.found[where("a")]; !slices.Equal(got, []history.VersionRef{{Txn: id(uint32(late + 1)), Stmt: 1}}) {
		t.Errorf("found %v, want the version that came late", got)
	}
	if n := m.Untested(); n != 1 {
		t.Errorf("%d conditions are untested, want one", n)
	}
}

// TestTheEndWaitsForNobody has the run end while a server is left alone that is back.
func TestTheEndWaitsForNobody(t *testing.T) {
	g, m := newGrep()
	g.down = true
	m.Add("", reads(1, "a"))
	m.Add("", wrote(2, "(a)"))
	m.round(t.Context(), 3)
	g.down = false
	m.lastRound(t.Context(), 4)
	if got := g.found[where("a")]; len(got) != 1 || m.Untested() != 0 {
		t.Errorf("found %v, %d conditions are untested", got, m.Untested())
	}
}
