// Package provoke decides which statements a proxy holds back, and for how long, so that transactions cross which would
// miss each other by chance.
//
// A race needs two sessions that have both read something before either writes by it. Between a client's read and its
// write there are microseconds. A [Provoker] makes them meet there: a session that has read without a lock waits at its
// next write, until another session that has read one of the same rows, or asked the same question, comes to a write of
// its own. Then both go on. Nobody waits longer than Options.Max, a transaction in sum. What comes of it did happen:
// the server executes what clients sent, in the order of each session. Only the time in between is another.
//
// What a session says is in session.go: what it is about to send, what it was answered, and that a transaction has
// ended. site.go has how often statements of one kind are held back; provoke.go has who waits for whom.
package provoke

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/isotap/isotap/dbms"
)

// DefaultMax is how long a statement is held back at most, where nothing else is said.
const DefaultMax = 50 * time.Millisecond

// Options say how a Provoker goes about it.
type Options struct {
	// Max is how long a statement is held back at most, and all statements of one transaction together.
	Max time.Duration
	// Seed chooses which statements are held back, and how long.
	Seed uint64
	// Family is the server's, whose statements are read by it.
	Family dbms.Family
}

// Stats are what a Provoker has done.
type Stats struct {
	Held int           // statements that were held back
	Met  int           // those that another session's came for
	For  time.Duration // how long they were held back in all
}

// A Provoker is what the sessions of a proxy share. It is safe for concurrent use.
type Provoker struct {
	opts Options
	now  func() time.Time

	mu      sync.Mutex
	written map[string]struct{} // the tables in which somebody has written who had read before
	sites   map[string]*site
	waiting map[*Hold]struct{}
	about   [2]sighting // of the two sessions that sent a statement last
	lonely  uint64      // how many have waited, since one last did otherwise, while nobody sent anything
	stats   Stats
}

// A sighting is that a session was there.
type sighting struct {
	who *Session
	at  time.Time
}

// presence is how long a session that sent a statement may be waited for.
const presence = time.Second

// maxTables bounds how many tables are remembered as written.
const maxTables = 1 << 14

// New returns a Provoker that holds nothing back yet.
func New(o Options) *Provoker {
	return &Provoker{opts: o, now: time.Now, written: make(map[string]struct{}), sites: make(map[string]*site),
		waiting: make(map[*Hold]struct{})}
}

// Options returns what the Provoker was made with.
func (p *Provoker) Options() Options { return p.opts }

// Stats returns what has been done so far.
func (p *Provoker) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// A Hold is a statement that is held back.
type Hold struct {
	// Until is when it goes on at the latest.
	Until time.Time

	by       *Session
	site     *site
	keys     map[key]struct{}
	began    time.Time
	company  bool // another session sent something meanwhile
	released atomic.Bool
}

// Released reports whether the statement is to go on now: another session has come.
func (h *Hold) Released() bool { return h.released.Load() }

// End says that the statement goes on, for whatever reason. The session's wake is not called any more.
func (h *Hold) End() {
	p := h.by.p
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, h)
	took := p.now().Sub(h.began)
	h.by.used += took
	p.stats.Held, p.stats.For = p.stats.Held+1, p.stats.For+took
	p.lonely++
	if h.company {
		p.lonely = 0
	}
	if h.Released() {
		p.stats.Met++
	} else {
		h.site.missed()
	}
}

// hold has a statement of a session wait, or another one that waits for it go on. It returns nil where it is not to
// wait.
func (p *Provoker) hold(s *Session, shape string) *Hold {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := s.window.contested(p.written)
	if len(keys) == 0 {
		return nil
	}
	at := p.site(shape)
	if p.meets(s, keys) {
		at.met()
		return nil
	}
	now := p.now()
	chosen, length := at.draw(p.opts, p.lonely)
	if length = min(length, p.opts.Max-s.used); !chosen || length < p.opts.Max/10 || !p.others(s, now) {
		return nil
	}
	h := &Hold{Until: now.Add(length), by: s, site: at, keys: keys, began: now}
	p.waiting[h] = struct{}{}
	return h
}

// meets has those go on who wait for one of the keys, and reports whether there are any.
func (p *Provoker) meets(s *Session, keys map[key]struct{}) bool {
	met := false
	for h := range p.waiting {
		if h.Released() || !overlap(h.keys, keys) {
			continue
		}
		met = true
		h.site.met()
		h.released.Store(true)
		h.by.wake()
	}
	return met
}

// overlap reports whether the sets have a key in common.
func overlap(a, b map[key]struct{}) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	for k := range a {
		if _, both := b[k]; both {
			return true
		}
	}
	return false
}

// seen notes that a session has sent a statement, and which table that writes by what was read; empty: none.
func (p *Provoker) seen(s *Session, writes string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if writes != "" && len(p.written) < maxTables {
		p.written[writes] = struct{}{}
	}
	if p.about[0].who != s {
		p.about[1] = p.about[0]
	}
	p.about[0] = sighting{s, p.now()}
	for h := range p.waiting {
		h.company = h.company || h.by != s
	}
}

// others reports whether a session beside s was there lately.
func (p *Provoker) others(s *Session, now time.Time) bool {
	for _, seen := range p.about {
		if seen.who != nil && seen.who != s && now.Sub(seen.at) < presence {
			return true
		}
	}
	return false
}
