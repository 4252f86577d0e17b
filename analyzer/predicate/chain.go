package predicate

import (
	"math"
	"sort"

	"github.com/isotap/isotap/history"
)

// A chain are the writes of a row, each behind the one that it replaced. Long ones are searched, not gone through: of
// the writes only those matter that were made while a transaction ran.
type chain struct {
	writes []write
	// starts and ends are the earliest of each write and those behind it, ended the latest end of each and those
	// before.
	starts, ends, ended []int64
	began               int64 // the earliest of their transactions did
}

// newChain puts writes in order; nil where they are no chain.
func newChain(writes []write) *chain {
	c := &chain{writes: inOrder(writes), began: math.MaxInt64}
	n := len(c.writes)
	if n == 0 {
		return nil
	}
	c.starts, c.ends, c.ended = make([]int64, n), make([]int64, n), make([]int64, n)
	for i := range c.writes {
		w := &c.writes[i]
		c.starts[i], c.ends[i], c.ended[i] = w.start, w.end, w.end
		c.began = min(c.began, w.began)
		if i > 0 {
			c.ended[i] = max(c.ended[i], c.ended[i-1])
		}
	}
	for i := n - 2; i >= 0; i-- {
		c.starts[i], c.ends[i] = min(c.starts[i], c.starts[i+1]), min(c.ends[i], c.ends[i+1])
	}
	return c
}

// inOrder returns the writes of a row each behind the one that it replaced; nil where they are no chain.
func inOrder(writes []write) []write {
	after := make(map[history.TxnID]int, len(writes)) // by the writer of the version that was replaced
	known := make(map[history.TxnID]bool, len(writes))
	for _, w := range writes {
		known[w.txn] = true
	}
	first := -1
	for i, w := range writes {
		switch {
		case !w.certain:
			return nil
		case known[w.replaced.Txn]:
			after[w.replaced.Txn] = i
		case first >= 0:
			return nil
		default:
			first = i
		}
	}
	if first < 0 || len(after) != len(writes)-1 {
		return nil
	}
	chain := []write{writes[first]}
	for len(chain) < len(writes) {
		i, ok := after[chain[len(chain)-1].txn]
		if !ok {
			return nil
		}
		chain = append(chain, writes[i])
	}
	return chain
}

// below returns the version that was there before the i-th write.
func (c *chain) below(i int) history.Tag {
	if i == 0 {
		return c.writes[0].replaced
	}
	return c.writes[i-1].tag
}

// lastSent returns the last write that was sent by a time, and lastEnded the last that ended before it; -1 where there
// is none.
func (c *chain) lastSent(by int64) int { return lastBelow(c.starts, by+1) }

func (c *chain) lastEnded(before int64) int { return lastBelow(c.ends, before) }

// lastBelow returns the place of the last of ascending times that is before another; -1 where none is.
func lastBelow(times []int64, before int64) int {
	return sort.Search(len(times), func(i int) bool { return times[i] >= before }) - 1
}

// A missable row has versions that match a predicate: those at some places of its chain, in order.
type missable struct {
	row      history.Row
	chain    *chain
	matching []int
}

// near returns those of the rows that were written by transactions some of which ran when t did. Of the others it saw
// the last version, or they came too late.
func near(rows []missable, t *history.Txn) []missable {
	var out []missable
	for i := range rows {
		if c := rows[i].chain; c.began <= t.End && c.ended[len(c.ended)-1] >= t.Start {
			out = append(out, rows[i])
		}
	}
	return out
}

// overwriter returns the first version that matches behind all that a statement can have seen, which had its reply at
// end and took its snapshot no sooner than from; false where there is none, or it must have been seen.
func (m *missable) overwriter(end, from int64) (place int, ok bool) {
	c := m.chain
	i := c.lastSent(end)
	for at := sort.SearchInts(m.matching, i+1) - 1; i >= 0; i-- {
		switch {
		case at < 0 || m.matching[at] != i:
			if c.writes[i].start > end {
				continue
			}
		case c.ended[i] <= from:
			return 0, false // whichever is the first that matches, it had committed
		default:
			at--
			continue
		}
		break
	}
	next := sort.SearchInts(m.matching, i+1)
	if next == len(m.matching) {
		return 0, false
	}
	place = m.matching[next]
	return place, c.writes[place].end > from
}
