package foreign

import (
	"github.com/isotap/isotap/history"
)

// A chain is the versions of one row, in the order in which the log has them. The first is the one that the row's first
// write in the log replaced, unless that inserted the row.
type chain struct {
	versions []version
	broken   bool // the log does not have them all, or the row began anew under its old id
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
			c.versions[n-1] = v // a statement's two writes are one
			return before, false
		}
	}
	c.versions = append(c.versions, v)
	return before, true
}

// showing returns the versions that show a tag: they stand side by side, and a reader saw one of them.
func (c *chain) showing(t history.Tag) []version {
	from := 0
	for from < len(c.versions) && (c.versions[from].shown != t || c.versions[from].gone) {
		from++
	}
	to := from
	for to < len(c.versions) && c.versions[to].shown == t && !c.versions[to].gone {
		to++
	}
	return c.versions[from:to]
}

// before returns the tag of the version that the one with a tag replaced.
func (c *chain) before(t history.Tag) (history.Tag, bool) {
	for i := range c.versions {
		if c.versions[i].tag == t {
			if i == 0 {
				return t, false
			}
			return c.versions[i-1].tag, true
		}
	}
	return t, false
}
