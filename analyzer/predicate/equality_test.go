package predicate

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestCandidatesAreTheRowsOfANumber holds the numbers of images that come and go against the images.
func TestCandidatesAreTheRowsOfANumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, m := newGrep()
		g.numbers, g.unread = true, "(1"
		m.Add("", reads(1, "=0"))
		m.readPredicates()
		at := int64(1)
		for range rapid.IntRange(1, 60).Draw(t, "writes") {
			at += rapid.Int64Range(0, int64(window)/4).Draw(t, "later")
			name := rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "row")
			x := wrote(at, fmt.Sprintf("(%s,=%d)", name, rapid.IntRange(0, 3).Draw(t, "value")))
			x.Stmts[0].Accesses[0].Row.ID = name
			m.Add("", x)
			m.Add("", reads(at, "=0"))
			if rapid.Bool().Draw(t, "forget") {
				m.tables[table{"", "t"}].forget(at)
			}
			checkNumbers(t, m.tables[table{"", "t"}], g)
		}
	})
}

func checkNumbers(t *rapid.T, of *tests, g *grep) {
	x := of.columns["v"]
	if len(x.of) != len(of.images) {
		t.Fatalf("%d numbers of %d images", len(x.of), len(of.images))
	}
	for value := range int64(4) {
		var want []int
		for i := range of.images {
			n, null, known := g.Number(of.images[i].text, "v")
			is := !known || !null && n == value
			if over := of.images[i].over; over >= of.dropped {
				before, null, known := g.Number(of.images[over-of.dropped].text, "v")
				is = is || known && !null && before == value
			}
			if is {
				want = append(want, of.dropped+i)
			}
		}
		got := slices.DeleteFunc(x.candidates(value, of.dropped), func(place int) bool {
			over := of.images[place-of.dropped].over // one that was let go of may have held it
			return over >= 0 && over < of.dropped && !slices.Contains(want, place)
		})
		if !slices.Equal(got, want) {
			t.Fatalf("images of %d: %v, want %v", value, got, want)
		}
	}
	if kept := len(x.places); kept > 4 || len(of.images) == 0 && kept > 0 {
		t.Fatalf("%d numbers are kept of %d images", kept, len(of.images))
	}
}

// TestTheServerIsNotAskedForNumbers has each predicate be for a row of its own.
func TestTheServerIsNotAskedForNumbers(t *testing.T) {
	for _, gentle := range []bool{false, true} {
		g, m := newGrep()
		g.numbers, m.Gentle = true, gentle
		for i := range 50 {
			txn := reads(int64(100+i), fmt.Sprintf("=%d", i))
			txn.Start = 1
			m.Add("", txn)
			w := wrote(int64(200+i), fmt.Sprintf("(r,=%d)", i))
			w.Start, w.Stmts[0].Accesses[0].Row.ID = 2, fmt.Sprint(i)
			m.Add("", w)
		}
		m.round(t.Context(), 300)
		if g.asked > 0 || len(g.found) != 50 {
			t.Errorf("gentle %v: it asked %d times, and found %d", gentle, g.asked, len(g.found))
		}
		for p, versions := range g.found {
			n, _ := strconv.Atoi(p.Where[1:])
			if len(versions) != 1 || versions[0].Txn != id(uint32(200+n)) {
				t.Errorf("gentle %v: %s: %v", gentle, p.Where, versions)
			}
		}
	}
}
