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
	firstAbsence = time.Second
	maxAbsence   = window / 4
)

// An absence is how long a server is left alone that cannot be reached.
type absence struct {
	until int64 // by the run's clock
	pause time.Duration
}

// owe notes that a predicate is yet to be held against the images from a place on that it was due for.
func (x *test) owe(u *untested, from int) {
	x.tested, x.owed = min(x.tested, max(from, u.first())), true
}

// owe notes that a task is yet to be done.
func (m *Matcher) owe(t task) {
	m.mark(t, func(x *test, u *untested) { x.owe(u, t.places[0]) })
}

// lose notes that images were forgotten which a predicate was yet to be held against.
func (t *tests) lose(x *test) { x.lost = x.lost || x.owed && x.tested < t.dropped }

// owe notes that nothing of a table is tested now.
func (t *tests) owe() {
	for _, x := range t.predicates {
		if !x.failed && x.tested < t.dropped+len(t.images) {
			x.owed = true
		}
	}
}

// miss takes note of a server that cannot be reached.
func (m *Matcher) miss(t task, now int64, err error) {
	was := m.absent[t.database]
	pause := min(max(2*was.pause, firstAbsence), maxAbsence)
	m.absent[t.database] = absence{now + int64(pause), pause}
	m.owe(t)
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
		x.owe(u, t.places[0])
	})
	if given > 0 {
		m.log.Info("a condition cannot be tested: what it did not find is not known",
			zap.String("table", t.of[0].predicate.Table), zap.Int("conditions", given), zap.Error(err))
	}
}
