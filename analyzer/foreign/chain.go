package foreign

import (
	"slices"

	"github.com/isotap/isotap/history"
)

// A chain is the versions of one row, in the order in which the log has them. The first is the one that the row's first
// write in the log replaced, unless that inserted the row.
type chain struct {
	versions []version
	broken   bool // the log does not have them all, or the row began anew under its old id
	// first has the first version that shows a tag and is not the row's absence, and place the first that has one. They
	// are nil while the chain grows, and for short ones.
	first, place map[history.Tag]int32
}

// short is how many versions are looked through.
const short = 8

// index makes the tags of a chain that does not grow any more known.
func (c *chain) index() {
	c.first, c.place = make(map[history.Tag]int32), make(map[history.Tag]int32)
	for i, v := range slices.Backward(c.versions) {
		c.place[v.tag] = int32(i)
		if !v.gone {
			c.first[v.shown] = int32(i)
		}
	}
}

// A version is one of a row.
type version struct {
	tag history.Tag
	// shown is the tag that isotap's columns have: that of an earlier version where the writer left none.
	shown history.Tag
	gone  bool // the row's absence
	// from and seen are times: nobody could see it before from, nor an earlier one after seen; 0: not known.
	from, seen int64
}

// add adds a version to the chain after the one that shows old, and returns the tag of that. It is false where there is
// no new one.
func (c *chain) add(v version, op history.Op, old history.Tag) (before history.Tag, ok bool) {
	n := len(c.versions)
	switch {
	case c.broken:
		return before, false
	case op == history.InsertRow:
		c.broken = n > 0
	case n == 0:
		c.versions = append(c.versions, version{tag: old, shown: old})
	default:
		last := &c.versions[n-1]
		c.broken = last.gone || last.shown != old
	}
	if c.broken {
		return before, false
	}
	if n := len(c.versions); n > 0 {
		if before = c.versions[n-1].tag; before == v.tag {
			// A statement's two writes are one. But whose an untagged one is may be a guess: it stays where its
			// transaction may have met it under the tag before.
			if n > 1 && c.untagged(n-1) && (v.gone || v.shown != c.versions[n-1].shown) {
				c.versions = append(c.versions, v)
			} else {
				c.versions[n-1] = v
			}
			return before, false
		}
	}
	c.versions = append(c.versions, v)
	return before, true
}

// untagged reports whether the i-th version shows the tag of the one before it.
func (c *chain) untagged(i int) bool {
	before, v := &c.versions[i-1], &c.versions[i]
	return !before.gone && !v.gone && before.shown == v.shown
}

// standing returns the versions between two places, of which a reader saw one: where it sees only what was committed,
// without the last if the statement that left that replaced it.
func (c *chain) standing(from, to int, committed bool) []version {
	if committed && to-from > 1 && to < len(c.versions) && c.versions[to].tag == c.versions[to-1].tag {
		to--
	}
	return c.versions[from:to]
}

// showing returns from where to where the versions stand that show a tag: they stand side by side, and a reader saw one
// of them.
func (c *chain) showing(t history.Tag) (from, to int) {
	if c.first != nil {
		n, ok := c.first[t]
		if from = int(n); !ok {
			from = len(c.versions)
		}
	}
	for from < len(c.versions) && (c.versions[from].shown != t || c.versions[from].gone) {
		from++
	}
	to = from
	for to < len(c.versions) && c.versions[to].shown == t && !c.versions[to].gone {
		to++
	}
	return from, to
}

// find returns where the first version with a tag stands; -1 where there is none.
func (c *chain) find(t history.Tag) int {
	if c.place == nil {
		return slices.IndexFunc(c.versions, func(v version) bool { return v.tag == t })
	}
	if n, ok := c.place[t]; ok {
		return int(n)
	}
	return -1
}
