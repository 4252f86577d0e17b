package analyzer

import (
	"slices"
	"strings"
	"time"

	"github.com/isotap/isotap/history"
)

// revertTime is between two writes, at most, of which the second sets back what the first has set: behind that
// somebody may have changed his mind.
const revertTime = 10 * time.Second

// reverts finds rows that one request sets back over another's change without a read that tells it: the request read
// on another connection, before the recording began, or long ago, as of a form that is open.
//
// So it is told by three versions that follow each other: the second has another value of a column than the first, and
// the third has the first's again, while it changes something else. Who means to take a change back changes nothing
// else, and has read it.
type reverts struct {
	*requests
	pairs map[shapePair]bool // whether the second may set back what the first has set
	opens map[int32]int64    // by session: when its first transaction began
}

// A shapePair are the shapes of two UPDATEs.
type shapePair struct{ first, second int32 }

// A revert is a version that may set back what the one before had changed.
type revert struct{ before, changed, version int32 }

// find looks through all rows.
func (r *reverts) find() error {
	candidates := r.candidates()
	seen := r.seenByOthers(candidates)
	for _, c := range candidates {
		if seen[c.changed] {
			continue
		}
		back, err := r.setsBack(c)
		if err != nil {
			return err
		}
		if back {
			r.c.add(SilentRevert, Unprotected, r.witness(c))
		}
	}
	return nil
}

func (r *reverts) witness(c revert) []dep {
	first, second, third := r.o.owner(c.before), r.o.owner(c.changed), r.o.owner(c.version)
	return []dep{
		{from: first, to: second, kind: ww, access: none, version: c.before, next: c.changed},
		{from: second, to: third, kind: ww, access: none, version: c.changed, next: c.version}}
}

// candidates returns what may be reverts by the statements' shapes, and by who ran them and when.
func (r *reverts) candidates() (all []revert) {
	for v := range int32(len(r.o.accesses)) {
		c := revert{version: v, changed: none}
		if r.updated(v) && !r.told[v] {
			c.changed = r.o.base(v)
		}
		if !r.updated(c.changed) || !r.o.certainly(c.changed, v) {
			continue
		}
		if c.before = r.o.base(c.changed); c.before < 0 || !r.o.certainly(c.before, c.changed) {
			continue
		}
		if r.atOnce(r.o.owner(c.changed), r.o.owner(v)) && r.mayRevert(c.changed, v) {
			all = append(all, c)
		}
	}
	return all
}

// updated reports whether a version is of an UPDATE that counts, and was observed exactly.
func (r *reverts) updated(v int32) bool {
	if v < 0 || int(v) >= len(r.o.accesses) {
		return false
	}
	a := &r.o.accesses[v]
	return a.op == history.UpdateRow && !a.is(inexact) && !a.is(void) && r.o.txns[a.txn].installed
}

// atOnce reports whether two transactions are of requests that may have been at it at once: the second's had begun when
// the first ended. Of a request that is not known its connection had.
func (r *reverts) atOnce(first, second int32) bool {
	x, y := &r.o.txns[first], &r.o.txns[second]
	if r.of[first] == r.of[second] || x.run != y.run || y.end-x.end > int64(revertTime) || y.end < x.end {
		return false
	}
	if x.request != 0 && y.request != 0 {
		begun := y.start
		if members := r.members[r.of[second]]; len(members) > 0 {
			begun = r.o.txns[members[0]].start
		}
		return begun <= x.end
	}
	return r.a.opts.Scope == GuessedScope && x.session != y.session && r.opens[y.session] <= x.end
}

// mayRevert reports whether two UPDATEs set a column to constants, and the second sets another one too.
func (r *reverts) mayRevert(first, second int32) bool {
	key := shapePair{r.o.shapeOf(r.o.owner(first), r.o.accesses[first].stmt), r.o.shapeOf(r.o.owner(second), r.o.accesses[second].stmt)}
	if key.first < 0 || key.second < 0 {
		return false
	}
	may, known := r.pairs[key]
	if !known {
		family := r.a.engine(r.o.id(r.o.owner(first)).Run()).Family()
		text := func(n int32) string { return r.o.programs.classes[n].first }
		m := collide(family, "SELECT * FROM t", text(key.first), text(key.second))
		may = len(m.set) > 0 && len(assignmentsOf(family, text(key.second))) > 1
		r.pairs[key] = may
	}
	return may
}

// seenByOthers returns the versions that candidates replace and that another than their writer has seen: one of the
// readers may have meant to set it back. Where requests are named it is the one that does.
func (r *reverts) seenByOthers(candidates []revert) map[int32]bool {
	by := make(map[int32]int32, len(candidates)) // the transaction that sets back
	for _, c := range candidates {
		by[c.changed] = r.o.owner(c.version)
	}
	seen := make(map[int32]bool)
	for i := range r.o.accesses {
		a := &r.o.accesses[i]
		back, asked := by[r.o.seen[i]]
		if !asked || a.write() || a.unfound() {
			continue
		}
		owner := r.o.owner(r.o.seen[i])
		named := r.o.txns[back].request != 0 && r.o.txns[a.txn].request != 0
		switch {
		case r.of[a.txn] == r.of[owner], r.o.txns[a.txn].start > r.o.txns[back].end:
		case !named, r.of[a.txn] == r.of[back]:
			seen[r.o.seen[i]] = true
		}
	}
	return seen
}

// setsBack reports whether the values are a revert's.
func (r *reverts) setsBack(c revert) (bool, error) {
	family := r.a.engine(r.o.id(r.o.owner(c.version)).Run()).Family()
	var left [3]*deed
	for i, v := range []int32{c.before, c.changed, c.version} {
		var err error
		if left[i], err = r.left(family, v); err != nil || left[i] == nil {
			return false, err
		}
	}
	return len(setBack(left[0], left[1], left[2])) > 0 && len(alsoChanged(left[0], left[1], left[2])) > 0, nil
}

// setBack returns the columns that a deed sets to what they were before another one set them.
func setBack(before, changed, now *deed) (columns []string) {
	for _, s := range now.sets {
		was, other := before.settingOf(s.column), changed.settingOf(s.column)
		if was != nil && other != nil && !tellsTime(s.column) && s.same(was) && s.differs(other) {
			columns = append(columns, s.column)
		}
	}
	return columns
}

// alsoChanged returns the columns that a deed sets to what they surely were not when another one had been done.
func alsoChanged(before, changed, now *deed) (columns []string) {
	for _, s := range now.sets {
		was := changed.settingOf(s.column)
		if was == nil {
			was = before.settingOf(s.column)
		}
		if was != nil && !tellsTime(s.column) && s.differs(was) && !slices.Contains(setBack(before, changed, now), s.column) {
			columns = append(columns, s.column)
		}
	}
	return columns
}

// same reports whether two settings are surely of one value.
func (s *setting) same(other *setting) bool {
	return s.constant && other.constant && !s.cut() && !other.cut() && plainValue(s.value) == plainValue(other.value)
}

// differs reports whether two settings are surely of two values.
func (s *setting) differs(other *setting) bool {
	return s.constant && other.constant && plainValue(s.value) != plainValue(other.value)
}

// plainValue returns a literal without the quotes that drivers put around parameters.
func plainValue(literal string) string { return strings.Trim(literal, "'") }
