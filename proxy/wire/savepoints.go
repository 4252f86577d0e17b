package wire

import "slices"

// Savepoints are those of an open transaction, the oldest first.
type Savepoints []savepoint

type savepoint struct {
	name string
	at   int // statements recorded before it
}

// Set adds a savepoint before which so many statements were recorded.
func (s *Savepoints) Set(name string, at int) { *s = append(*s, savepoint{name, at}) }

// find gives the newest savepoint of that name, or -1.
func (s Savepoints) find(name string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i].name == name {
			return i
		}
	}
	return -1
}

// Forget takes the newest savepoint of that name out, and leaves those after it.
func (s *Savepoints) Forget(name string) {
	if i := s.find(name); i >= 0 {
		*s = slices.Delete(*s, i, i+1)
	}
}

// Release forgets a savepoint and those after it.
func (s *Savepoints) Release(name string) {
	if i := s.find(name); i >= 0 {
		*s = (*s)[:i]
	}
}

// RollBackTo forgets the savepoints after one, which stays, and gives how many statements were recorded before it.
// One that is not known was set before the transaction's first recorded statement.
func (s *Savepoints) RollBackTo(name string) (at int) {
	i := s.find(name)
	if i < 0 {
		return 0
	}
	*s = (*s)[:i+1]
	return (*s)[i].at
}
