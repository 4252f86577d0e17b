package truth

import (
	"slices"
	"testing"
)

// TestRowsTellWhichDependenciesAreTrue has statements 1 to 6 write a row, read it and delete it, and one write past
// isotap.
func TestRowsTellWhichDependenciesAreTrue(t *testing.T) {
	l := NewLog()
	l.Saw(2, []Chain{ParseChain("0,1.7")})
	l.Saw(3, []Chain{ParseChain("0,1.7"), ParseChain("0")})
	l.Found([]Chain{ParseChain("0,1.7,4.7,5.7"), ParseChain("0,1.7,R9.7")})
	l.Deleted(6, []Chain{ParseChain("0,1.7,4.7,5.7")})
	for _, tt := range []struct {
		edge Edge
		want Verdict
	}{
		{Edge{Kind: WR, From: 1, To: 2}, True}, {Edge{Kind: WR, From: 4, To: 2}, False}, {Edge{Kind: WR, From: 1, To: 8}, Unknown},
		{Edge{Kind: WW, From: 1, To: 4}, True}, {Edge{Kind: WW, From: 1, To: 5}, True}, {Edge{Kind: WW, From: 5, To: 4}, False}, {Edge{Kind: WW, From: 5, To: 6}, True},
		{Edge{Kind: RW, From: 2, To: 4}, True}, {Edge{Kind: RW, From: 2, To: 6}, True}, {Edge{Kind: RW, From: 8, To: 4}, Unknown}, {Edge{Kind: RW, From: 2, To: 8}, Unknown},
	} {
		if got := l.Check(tt.edge); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.edge, got, tt.want)
		}
	}
	l.Found([]Chain{ParseChain("0,1.7,4.7,5.7"), ParseChain("12.8,13.8"), ParseChain("20.8"), ParseChain("20.9")})
	l.Saw(14, []Chain{ParseChain("0,1.7,4.7")})
	l.Saw(15, []Chain{ParseChain("12.8,13.8,R1.8")})
	l.Saw(16, nil)
	for _, tt := range []struct {
		edge Edge
		want Verdict
	}{
		// Nothing that was shown is told of a row that was not found: what says so was a plain wr before.
		{Edge{Kind: WR, From: 6, To: 16, Unfound: true}, True}, {Edge{Kind: WR, From: 6, To: 15, Unfound: true}, True},
		{Edge{Kind: WR, From: 6, To: 14, Unfound: true}, False}, {Edge{Kind: WR, From: 6, To: 2, Unfound: true}, False},
		{Edge{Kind: WR, From: 5, To: 14, Unfound: true}, False}, {Edge{Kind: WR, From: 4, To: 14, Unfound: true}, False},
		{Edge{Kind: WR, From: 13, To: 15, Unfound: true}, Unknown}, {Edge{Kind: WR, From: 13, To: 8, Unfound: true}, Unknown},
		{Edge{Kind: WR, From: 99, To: 16, Unfound: true}, Unknown},
		{Edge{Kind: WR, From: 99, To: 14, Unfound: true, Replaced: 5}, False},
		{Edge{Kind: WR, From: 99, To: 16, Unfound: true, Replaced: 20}, Unknown},
		{Edge{Kind: RW, From: 16, To: 5, Unfound: true}, True}, {Edge{Kind: RW, From: 14, To: 4, Unfound: true}, False},
		{Edge{Kind: RW, From: 2, To: 5, Unfound: true}, True},
	} {
		if got := l.Check(tt.edge); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.edge, got, tt.want)
		}
	}
	if got := l.Newest(3); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("statement 3 was shown versions of %v", got)
	}
	l.Saw(10, []Chain{ParseChain("0,1.7,R9.7")})
	if got := l.Check(Edge{Kind: RW, From: 10, To: 4}); got != Unknown {
		t.Errorf("a copy was put in the place of another: what came after that is %s", got)
	}
	l.Saw(30, []Chain{ParseChain("0,R40.6")})
	l.Saw(31, []Chain{ParseChain("0,R41.6")})
	l.Found([]Chain{ParseChain("0,R40.6,32.6"), ParseChain("0,R41.6,33.6")})
	if got := l.Check(Edge{Kind: RW, From: 30, To: 33}); got != Unknown {
		t.Errorf("a copy of what was there before all was put in the place of another: what came after that is %s", got)
	}
	if !l.Met(15, 12) || !l.Met(15, 13) || l.Met(15, 14) || l.Met(3, 4) {
		t.Error("what a statement met is not told")
	}
	if l.Foreign(3) || !l.Foreign(10) {
		t.Error("what came past isotap is not told from what was there")
	}
}

// TestLivesOfARowAreNotOrdered has one row deleted by nobody who was seen, and put anew.
func TestLivesOfARowAreNotOrdered(t *testing.T) {
	l := NewLog()
	l.Found([]Chain{ParseChain("0,1.7,2.7"), ParseChain("3.7,4.7")})
	for _, continued := range []bool{false, true} {
		l.Continued = continued
		want := map[bool]Verdict{false: False, true: Unknown}[continued]
		if got := l.Check(Edge{Kind: WW, From: 1, To: 4}); got != want {
			t.Errorf("continued %t: another life is %s, want %s", continued, got, want)
		}
		if got := l.Check(Edge{Kind: WW, From: 2, To: 1}); got != False {
			t.Errorf("continued %t: the same life backwards is %s", continued, got)
		}
	}
}

// TestTablesAreNotTakenForEachOther has rows of one key in two tables, which both begin as they were.
func TestTablesAreNotTakenForEachOther(t *testing.T) {
	l := NewLog()
	l.Continued = true
	l.Saw(2, []Chain{ParseChain("0,1.7"), ParseChain("5.3,6.3")})
	l.Found([]Chain{ParseChain("0,1.7,3.7"), ParseChain("0,4.7,9.7"), ParseChain("8.3,9.3")})
	if got := l.Check(Edge{Kind: RW, From: 2, To: 9}); got != Unknown {
		t.Errorf("a dependency by another table's row is %s", got)
	}
}
