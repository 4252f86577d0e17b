package txnstate

import (
	"strconv"
	"strings"
	"testing"
)

func TestSavepointsOfOneNameLieOnEachOther(t *testing.T) {
	var s Savepoints
	for at, name := range []string{"a", "b", "a", "c"} {
		s.Set(name, at+1)
	}
	rollBack := func(name string) int {
		at, sure := s.RollBackTo(name)
		if !sure {
			t.Errorf("where savepoint %s was is not known", name)
		}
		return at
	}
	for _, step := range []struct {
		do   func() int
		at   int
		left int
	}{
		{func() int { return rollBack("none") }, 0, 4},
		{func() int { return rollBack("a") }, 3, 3},
		{func() int { s.Release("a"); return 0 }, 0, 2},
		{func() int { return rollBack("a") }, 1, 1},
		{func() int { s.Set("b", 7); s.Forget("a"); return rollBack("b") }, 7, 1},
		{func() int { s.Release("none"); s.Forget("none"); return rollBack("a") }, 0, 1},
	} {
		if at := step.do(); at != step.at || len(s.list) != step.left {
			t.Errorf("%d statements, %d savepoints left, want %d and %d", at, len(s.list), step.at, step.left)
		}
	}
}

func TestTooManySavepointsLeaveRollbacksInDoubt(t *testing.T) {
	var s Savepoints
	s.Set("first", 3)
	for i := range 2 * maxSavepoints {
		s.Set(strconv.Itoa(i), 4+i)
	}
	if len(s.list) > maxSavepoints {
		t.Errorf("%d savepoints are kept", len(s.list))
	}
	for name, least := range map[string]int{"first": 3, strconv.Itoa(2*maxSavepoints - 1): 0} {
		if at, sure := s.RollBackTo(name); at != least || sure {
			t.Errorf("savepoint %s was before statement %d, for sure: %t", name, at, sure)
		}
	}
	s = Savepoints{}
	for range 100 {
		s.Set(strings.Repeat("a", maxSavepointNames/10), 1)
	}
	if s.bytes > maxSavepointNames {
		t.Errorf("%d bytes of names are kept", s.bytes)
	}
}
