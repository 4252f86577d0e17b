package txnstate

import (
	"slices"

	"github.com/isotap/isotap/history"
)

// Savepoints are those of an open transaction. The zero value is none.
type Savepoints struct {
	list  []savepoint // the oldest first
	bytes int         // of their names
	// lost says that there were more than are kept: what a name means is not known for sure.
	lost bool
}

// The most savepoints of a transaction that are kept, and the most bytes of their names.
const (
	maxSavepoints     = 10_000
	maxSavepointNames = 1 << 20
)

type savepoint struct {
	name string
	at   int // statements recorded before it
}

// Open reports whether there are any.
func (s *Savepoints) Open() bool { return len(s.list) > 0 || s.lost }

// Set adds a savepoint before which so many statements were recorded.
func (s *Savepoints) Set(name string, at int) {
	if len(s.list) >= maxSavepoints || s.bytes+len(name) > maxSavepointNames {
		s.lost = true
		return
	}
	s.list, s.bytes = append(s.list, savepoint{name, at}), s.bytes+len(name)
}

// find returns the newest savepoint of that name, or -1.
func (s *Savepoints) find(name string) int {
	for i := len(s.list) - 1; i >= 0; i-- {
		if s.list[i].name == name {
			return i
		}
	}
	return -1
}

// cut forgets the savepoints from the one at from up to the one at to.
func (s *Savepoints) cut(from, to int) {
	for _, gone := range s.list[from:to] {
		s.bytes -= len(gone.name)
	}
	s.list = slices.Delete(s.list, from, to)
}

// Forget takes the newest savepoint of that name out, and leaves those after it.
func (s *Savepoints) Forget(name string) {
	if i := s.find(name); i >= 0 {
		s.cut(i, i+1)
	}
}

// Release forgets a savepoint and those after it.
func (s *Savepoints) Release(name string) {
	if i := s.find(name); i >= 0 && !s.lost {
		s.cut(i, len(s.list))
	}
}

// RollBackTo forgets the savepoints after one, which stays, and returns how many statements were recorded before it,
// or, where that is not sure, the least that there may have been. One that is not known was set before the
// transaction's first recorded statement.
func (s *Savepoints) RollBackTo(name string) (at int, sure bool) {
	i := s.find(name)
	switch {
	case s.lost && i < 0:
		return 0, false
	case s.lost:
		return s.list[i].at, false
	case i < 0:
		return 0, true
	}
	s.cut(i+1, len(s.list))
	return s.list[i].at, true
}

// MarkInexact makes what the statements from at on wrote uncertain: a rollback may have undone it, and the reason says
// why isotap does not know.
func MarkInexact(t *history.Txn, at int, why history.Reason) {
	for i := at; i < len(t.Stmts); i++ {
		st := &t.Stmts[i]
		if st.Observation == history.Exact {
			st.Observation, st.Reason = history.Inexact, why
		}
		for j := range st.Accesses {
			st.Accesses[j].Inexact = true
		}
	}
}
