package predicate

import (
	"time"

	"go.uber.org/zap"
)

// A condition that the server refuses is not tested again. Where the connection broke, or there is no server, that says
// nothing of a condition: it is tested again later, from the images on that it was not held against. One that breaks
// the connection time and again is given up, too.

// maxBreaks is how many tests of a condition in a row may have the connection break before it is given up.
const maxBreaks = 3

// How long a server that cannot be reached is left alone: longer each time.
const (
	firstOutage = time.Second
	maxOutage   = window / 4
)

// An outage is how long a server is left alone that cannot be reached.
type outage struct {
	until int64 // by the run's clock
	pause time.Duration
}

// postpone notes that a predicate is yet to be held against the images from a place on that it was due for.
func (x *test) postpone(u *untested, from int) {
	x.tested, x.pending = min(x.tested, max(from, u.first())), true
}

// postpone notes that a task is yet to be done.
func (m *Matcher) postpone(t task) {
	m.mark(t, func(x *test, u *untested) { x.postpone(u, t.places[0]) })
}

// noteLost notes that images were forgotten which a predicate was yet to be held against.
func (t *tests) noteLost(x *test) { x.lost = x.lost || x.pending && x.tested < t.dropped }

// postpone notes that nothing of a table is tested now.
func (t *tests) postpone() {
	for _, x := range t.predicates {
		if !x.failed && x.tested < t.dropped+len(t.images) {
			x.pending = true
		}
	}
}

// unreached takes note of a server that cannot be reached.
func (m *Matcher) unreached(t task, now int64, err error) {
	was := m.outages[t.database]
	pause := min(max(2*was.pause, firstOutage), maxOutage)
	m.outages[t.database] = outage{now + int64(pause), pause}
	m.postpone(t)
	if was.pause == 0 {
		m.log.Info("conditions cannot be tested now, and are tested later: the server is not reached", zap.Error(err))
	}
}

// fail takes note of a test that failed of a predicate alone, or at the end of all time.
func (m *Matcher) fail(t task, refused bool, err error) {
	given := 0
	m.mark(t, func(x *test, u *untested) {
		if x.breaks++; refused || x.breaks >= maxBreaks {
			x.failed, given = true, given+1
			return
		}
		x.postpone(u, t.places[0])
	})
	if given > 0 {
		m.log.Info("a condition cannot be tested: what it did not find is not known",
			zap.String("table", t.of[0].predicate.Table), zap.Int("conditions", given), zap.Error(err))
	}
}
