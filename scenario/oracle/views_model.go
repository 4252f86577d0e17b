package oracle

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/scenario/replay"
)

// A version of a row.
type version struct {
	values []replay.Value
	gone   bool
	by     *actor // nil: the set-up
	seq    int    // in the order of all writes
	// same says that the statement wrote the values that the row had.
	same bool
}

// A chain is a row's versions, the oldest first.
type chain struct {
	number   int
	versions []*version
}

func (c *chain) newest() *version { return c.versions[len(c.versions)-1] }

// An actor is a transaction.
type actor struct {
	session    string
	began      int // the event it began with
	ended      int // the event that it committed with
	committed  bool
	over       bool
	failed     bool // PostgreSQL: nothing succeeds before its ROLLBACK
	alone      bool // one statement, without BEGIN
	optimistic bool
	counted    bool
	snaps      []int // when it may have taken its snapshot, by the events before it
	unsure     bool  // it may have taken none yet
	savepoints []savepoint
}

type savepoint struct {
	name string
	seq  int
}

// A store has all versions of all rows of the script's tables.
type store struct {
	tables map[*benchTable][]*chain
	next   int // the number of the next row
	seq    int
	// byKey says that a row that comes with the primary key of one that is gone is that row, as in InnoDB.
	byKey bool
}

func newStore(b *bench) *store {
	s := &store{tables: make(map[*benchTable][]*chain), next: b.next, byKey: !b.postgresql()}
	for _, t := range b.tables {
		for _, n := range slices.Sorted(maps.Keys(t.rows)) {
			s.tables[t] = append(s.tables[t], &chain{n, []*version{{values: t.rows[n]}}})
		}
	}
	return s
}

// A look is what a statement sees of a table, by the numbers of the rows.
type look map[int]*version

func (l look) equal(other look) bool {
	return maps.EqualFunc(l, other, func(a, b *version) bool { return a == b || slices.Equal(a.values, b.values) })
}

func (l look) values() map[int][]replay.Value {
	all := make(map[int][]replay.Value, len(l))
	for n, v := range l {
		all[n] = v.values
	}
	return all
}

// look returns what a transaction sees of a table: its own versions, and of others those committed with an event up
// to the given one; with dirty all. Own versions that changed nothing are left out where that is asked for.
func (s *store) look(t *benchTable, of *actor, from sight, upTo int, without bool) look {
	all := make(look)
	for _, c := range s.tables[t] {
		for _, v := range slices.Backward(c.versions) {
			own := v.by == of && of != nil
			if own && v.same && without {
				continue
			}
			if v.by == nil || own || from == dirty || v.by.committed && v.by.ended <= upTo {
				if !v.gone {
					all[c.number] = v
				}
				break
			}
		}
	}
	return all
}

// order has the numbers of a table's rows, in the order of its primary key; without one in that in which they came.
func (s *store) order(t *benchTable) []int {
	chains := slices.Clone(s.tables[t])
	slices.SortStableFunc(chains, func(a, b *chain) int {
		for _, c := range t.key {
			x, y := a.newest().values[c].Text, b.newest().values[c].Text
			n, err := strconv.ParseFloat(x, 64)
			m, err2 := strconv.ParseFloat(y, 64)
			if order := cmp.Compare(n, m); err == nil && err2 == nil && order != 0 {
				return order
			}
			if order := strings.Compare(x, y); order != 0 {
				return order
			}
		}
		return 0
	})
	all := make([]int, len(chains))
	for i, c := range chains {
		all[i] = c.number
	}
	return all
}

func (s *store) chain(number int) *chain {
	for _, chains := range s.tables {
		for _, c := range chains {
			if c.number == number {
				return c
			}
		}
	}
	return nil
}

func (s *store) write(c *chain, v version) {
	s.seq++
	v.seq = s.seq
	c.versions = append(c.versions, &v)
}

// apply adds what a statement of a transaction has written.
func (s *store) apply(of *actor, t *trial, updates bool) {
	written := make(map[int]bool)
	var fresh []change
	for _, x := range t.changes {
		if x.number == 0 {
			fresh = append(fresh, x)
			continue
		}
		c := s.chain(x.number)
		written[x.number] = true
		if x.values == nil {
			s.write(c, version{by: of, gone: true, values: c.newest().values})
			continue
		}
		if s.byKey && len(x.table.key) > 0 && keyOf(x.table, x.values) != keyOf(x.table, x.table.rows[x.number]) {
			s.write(c, version{by: of, gone: true, values: x.table.rows[x.number]})
			fresh = append(fresh, x)
			continue
		}
		s.write(c, version{by: of, values: x.values})
	}
	for _, x := range fresh {
		s.write(s.home(x), version{by: of, values: x.values})
	}
	for _, n := range t.touched {
		if c := s.chain(n); updates && !written[n] && c != nil {
			s.write(c, version{by: of, values: c.newest().values, same: true})
		}
	}
}

// home returns the chain that a row which is new belongs to.
func (s *store) home(x change) *chain {
	if s.byKey && len(x.table.key) > 0 {
		for _, c := range s.tables[x.table] {
			if len(c.versions) > 0 && c.newest().gone && keyOf(x.table, c.newest().values) == keyOf(x.table, x.values) {
				return c
			}
		}
	}
	s.next++
	c := &chain{number: s.next}
	s.tables[x.table] = append(s.tables[x.table], c)
	return c
}

func keyOf(t *benchTable, values []replay.Value) string {
	var b strings.Builder
	for _, i := range t.key {
		b.WriteString(values[i].String() + "\x00")
	}
	return b.String()
}

// undo takes a transaction's versions back, those after a write.
func (s *store) undo(of *actor, seq int) {
	for t, chains := range s.tables {
		for _, c := range chains {
			c.versions = slices.DeleteFunc(c.versions, func(v *version) bool { return v.by == of && v.seq > seq })
		}
		s.tables[t] = slices.DeleteFunc(chains, func(c *chain) bool { return len(c.versions) == 0 })
	}
}

// changed returns the columns of a row that a transaction has written otherwise than they were before: all of a row
// that it made or deleted.
func (s *store) changed(number int, by *actor) (names []string) {
	for table, chains := range s.tables {
		i := slices.IndexFunc(chains, func(c *chain) bool { return c.number == number })
		if i < 0 {
			continue
		}
		versions := chains[i].versions
		before := len(versions)
		for before > 0 && versions[before-1].by == by {
			before--
		}
		for _, v := range versions[before:] {
			if before == 0 || v.gone || versions[before-1].gone {
				return table.columns
			}
			for c, name := range table.columns {
				if v.values[c] != versions[before-1].values[c] && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// holder returns the open transaction of another that wrote a row last; nil where there is none.
func (s *store) holder(number int, of *actor) *actor {
	c := s.chain(number)
	if c == nil {
		return nil
	}
	if by := c.newest().by; by != nil && by != of && !by.over {
		return by
	}
	return nil
}
