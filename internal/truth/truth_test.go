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
		{Edge{WR, 1, 2}, True}, {Edge{WR, 4, 2}, False}, {Edge{WR, 1, 8}, Unknown},
		{Edge{WW, 1, 4}, True}, {Edge{WW, 1, 5}, True}, {Edge{WW, 5, 4}, False}, {Edge{WW, 5, 6}, True},
		{Edge{RW, 2, 4}, True}, {Edge{RW, 2, 6}, True}, {Edge{RW, 8, 4}, Unknown}, {Edge{RW, 2, 8}, Unknown},
	} {
		if got := l.Check(tt.edge); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.edge, got, tt.want)
		}
	}
	if got := l.Newest(3); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("statement 3 was shown versions of %v", got)
	}
	l.Saw(10, []Chain{ParseChain("0,1.7,R9.7")})
	if got := l.Check(Edge{RW, 10, 4}); got != Unknown {
		t.Errorf("a copy was put in the place of another: what came after that is %s", got)
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
		if got := l.Check(Edge{WW, 1, 4}); got != want {
			t.Errorf("continued %t: another life is %s, want %s", continued, got, want)
		}
		if got := l.Check(Edge{WW, 2, 1}); got != False {
			t.Errorf("continued %t: the same life backwards is %s", continued, got)
		}
	}
}
