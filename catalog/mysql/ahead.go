package mysql

import (
	"slices"
	"time"
)

// Who makes many tables and then uses them waits for the first alone. While his statement runs, the others are read
// behind his back: they were noted when they were made or altered. From then on a table is read as soon as it is noted,
// while its client hears of it and sends what comes next. That ends where such a reading was in vain: the table was
// changed again before anybody asked for it, as by migrations.

const (
	// maxNoted bounds how many tables are noted.
	maxNoted = 256
	// vain is how many times somebody must wait for a table that was noted, and one more, before tables are read at
	// once again after that was in vain.
	vain = 8
)

// note notes tables that may be read ahead, those changed last in the place of the oldest. It needs c.mu.
func (c *Cache) note(tables []name) {
	if !c.options.Ahead || !c.showable() {
		return
	}
	c.unnote(tables)
	c.noted = append(c.noted, tables...)
	c.noted = slices.Delete(c.noted, 0, max(0, len(c.noted)-maxNoted))
}

// unnote forgets tables that may be gone: of these the server is asked in another way, which costs it much. It needs
// c.mu.
func (c *Cache) unnote(tables []name) {
	c.noted = slices.DeleteFunc(c.noted, func(n name) bool { return slices.Contains(tables, n) })
}

// expects takes in that somebody is about to wait for a table, which matters if it could have been read at once.
func (c *Cache) expects(n name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.worth <= 0 && slices.Contains(c.noted, n) {
		c.worth++
	}
}

// lose takes in that an entry is forgotten. It needs c.mu.
func (c *Cache) lose(e *entry) {
	if e != nil && e.ahead && e.full.Load() == nil {
		c.worth = -vain
	}
}

// readAhead begins to read what is noted.
func (c *Cache) readAhead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beginAhead()
}

// beginAhead begins to read what is noted, unless that is under way. Close waits for it. It needs c.mu.
func (c *Cache) beginAhead() {
	if len(c.noted) == 0 || c.reads {
		return
	}
	c.reads = true
	c.ahead.Go(func() {
		for n, e := c.nextNoted(); e != nil; n, e = c.nextNoted() {
			c.readEntry(n, e) // who asks for it is told where it cannot be read
		}
	})
}

// nextNoted takes the next table that is noted and has not been read since, and marks it as one that is read now; nil:
// there is none.
func (c *Cache) nextNoted() (n name, e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.noted) > 0 {
		n, c.noted = c.noted[0], c.noted[1:]
		if e := c.entry(n); e != nil && !e.known && e.reading == nil && e.fires != nil && !time.Now().Before(e.retry) {
			e.reading, e.ahead = make(chan struct{}), true
			return n, e
		}
	}
	c.reads = false
	return n, nil
}
