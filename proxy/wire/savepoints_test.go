package wire

import "testing"

func TestSavepointsOfOneNameLieOnEachOther(t *testing.T) {
	var s Savepoints
	for at, name := range []string{"a", "b", "a", "c"} {
		s.Set(name, at+1)
	}
	for _, step := range []struct {
		do   func() int
		at   int
		left int
	}{
		{func() int { return s.RollBackTo("none") }, 0, 4},
		{func() int { return s.RollBackTo("a") }, 3, 3},
		{func() int { s.Release("a"); return 0 }, 0, 2},
		{func() int { return s.RollBackTo("a") }, 1, 1},
		{func() int { s.Set("b", 7); s.Forget("a"); return s.RollBackTo("b") }, 7, 1},
		{func() int { s.Release("none"); s.Forget("none"); return s.RollBackTo("a") }, 0, 1},
	} {
		if at := step.do(); at != step.at || len(s) != step.left {
			t.Errorf("%d statements, %d savepoints left, want %d and %d", at, len(s), step.at, step.left)
		}
	}
}
