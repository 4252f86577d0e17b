package sdg

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/isotap/isotap/history"
)

// A chain is all versions of a row that were committed, oldest first.
type chain struct {
	links  []link
	undone map[Version]bool // those of transactions that were undone
}

// A link is a version of a row, or that there is none: before it is inserted, and behind a deletion.
type link struct {
	version Version // empty: none
	writer  int     // the statement; -1: nobody of the history
}

// isInitial reports whether a version was there before the history.
func (c *chain) isInitial(v Version) bool {
	return !c.undone[v] && !slices.ContainsFunc(c.links, func(l link) bool { return l.version == v })
}

// chains orders the versions of all rows that were written: as their transactions committed, which is also the order in
// which those wrote that lock what they write.
func (g *Graph) chains() error {
	g.rows = make(map[history.Row]*chain)
	for n := range g.history.Statements {
		g.collect(n)
	}
	for row, c := range g.rows {
		slices.SortStableFunc(c.links, func(a, b link) int { return cmp.Compare(g.end(a.writer), g.end(b.writer)) })
		first, err := g.initial(row, c)
		if err != nil {
			return err
		}
		c.links = slices.Insert(c.links, 0, link{version: first, writer: -1})
	}
	return nil
}

// collect takes what a statement wrote to the rows' chains.
func (g *Graph) collect(n int) {
	s := &g.history.Statements[n]
	if s.After == nil {
		return
	}
	write := func(row history.Row, v Version) {
		if !slices.Contains(s.Written, row.Table) || s.Before[row] == v {
			return
		}
		c := g.rows[row]
		if c == nil {
			c = &chain{undone: make(map[Version]bool)}
			g.rows[row] = c
		}
		switch {
		case g.history.Txns[s.Txn].Committed:
			c.links = append(c.links, link{version: v, writer: n})
		case v != "":
			c.undone[v] = true
		}
	}
	for row, v := range s.After {
		write(row, v)
	}
	for row := range s.Before {
		if _, stays := s.After[row]; !stays {
			write(row, "")
		}
	}
}

// initial returns the version that a row had before the history, which is what somebody saw and nobody wrote.
func (g *Graph) initial(row history.Row, c *chain) (first Version, err error) {
	for _, n := range g.nodes {
		v := g.history.Statements[n].Before[row]
		if v == "" || !c.isInitial(v) {
			continue
		}
		if first != "" && first != v {
			return "", fmt.Errorf("%w: %s %s had %s and %s", ErrUnplaced, row.Table, row.ID, first, v)
		}
		first = v
	}
	return first, nil
}

// place returns the place in a row's chain of the version that a statement went by.
func (g *Graph) place(n int, row history.Row) (int, error) {
	c, s := g.rows[row], &g.history.Statements[n]
	v, seen := s.Before[row]
	if seen && c.undone[v] {
		return 0, &UndoneError{Statement: n, Row: row}
	}
	last := -1
	for i, l := range c.links {
		if l.version != v {
			continue
		}
		// There may be several times without the row.
		if last < 0 || seen || g.sees(n, l.writer) {
			last = i
		}
	}
	if last < 0 {
		return 0, fmt.Errorf("%w: statement %d saw %s %s as %q, which nobody wrote", ErrUnplaced, n+1, row.Table, row.ID, v)
	}
	return last, nil
}

// sees reports whether a statement goes by what another one did: its own transaction's, or one whose transaction had
// committed when it ran or, by History.Snapshots, when its transaction's first statement did.
func (g *Graph) sees(n, writer int) bool {
	if writer < 0 {
		return true
	}
	h := g.history
	if h.Statements[n].Txn == h.Statements[writer].Txn {
		return writer < n
	}
	from := n
	if h.Snapshots {
		from = slices.IndexFunc(h.Statements, func(s Statement) bool { return s.Txn == h.Statements[n].Txn })
	}
	return g.end(writer) <= from
}

// end is how many statements had run when the transaction of one ended.
func (g *Graph) end(n int) int { return g.history.Txns[g.history.Statements[n].Txn].End }

// Stale returns the tables of which a statement saw older versions than the newest ones that were committed when it
// ran, or that its own transaction had written: where a server's writes go by the newest versions, a write of such
// tables did not go by what its transaction saw. There are none of an undone one.
func (g *Graph) Stale(n int) ([]string, error) {
	var all []string
	s := &g.history.Statements[n]
	if !g.history.Txns[s.Txn].Committed {
		return nil, nil
	}
	for row, c := range g.rows {
		if !slices.Contains(s.Tables, row.Table) || slices.Contains(all, row.Table) {
			continue
		}
		at, err := g.place(n, row)
		if err != nil {
			return nil, err
		}
		for _, l := range c.links[at+1:] {
			if w := g.history.Statements[l.writer]; w.Txn != s.Txn && g.end(l.writer) <= n {
				all = append(all, row.Table)
				break
			}
		}
	}
	slices.Sort(all)
	return all, nil
}
