package analyzer

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/isotap/isotap/history"
)

// Where rows may have been put back past isotap with the columns that they once had ([history.Info].PutBack), a version
// is met again that was replaced before whoever meets it began, or that two transactions replaced. A server that lost a
// write shows the same. The row then begins another life, as its table does by a [rebirth]: what is met there of
// transactions that had ended is of unknown origin.

// A putBack is a moment since which a row was certainly put back, and one before which it certainly was not.
type putBack struct {
	after, by int64 // by the wall clock
	old       int32 // who replaced the version that was then met again
	new       int32 // who met it again, where all that it did came after; none otherwise
}

// A replacement says who replaced a version first, as far as times tell.
type replacement struct {
	txn         int32
	ending, end int64 // when it had surely not committed, and when it had, by the wall clock
}

// mayPutBack reports whether the rows of the transaction's run may have been put back.
func (s *store) mayPutBack(t int32) bool { return s.runs[s.txns[t].run].info.PutBack }

// replacementBy returns what is known of the times of a transaction's commit; false where it did not commit.
func (s *store) replacementBy(t int32) (replacement, bool) {
	x := &s.txns[t]
	return replacement{t, s.wall(x.run, x.ending), s.wall(x.run, x.end)}, x.status == history.Committed && x.end != 0
}

// separatePutBack separates the lives of the rows that were put back, once the versions behind the tags are found, and
// finds these again.
func (o *order) separatePutBack() error {
	if !slices.ContainsFunc(o.runs, func(r run) bool { return r.info.PutBack }) {
		return nil
	}
	rows, err := o.rowsPutBack()
	if err != nil || len(rows) == 0 {
		return err
	}
	of := make(map[int32][]int32, len(rows))
	for i := range o.accesses {
		if row := o.accesses[i].row; rows[row] {
			of[row] = append(of[row], int32(i))
		}
	}
	o.store.putBack += len(rows)
	for _, row := range slices.Sorted(maps.Keys(of)) {
		if err := o.store.separateRow(of[row]); err != nil {
			return err
		}
	}
	fresh := newOrder(o.store)
	fresh.first = make([]int32, len(o.rows.rows))
	for i := range fresh.first {
		fresh.first[i] = none
	}
	*o = *fresh
	if err := o.resolve(); err != nil {
		return err
	}
	return o.doubtPutBack()
}

// doubtPutBack makes the accesses to rows inexact whose lives contradict themselves still: when each began is not
// known.
func (o *order) doubtPutBack() error {
	rows, err := o.rowsPutBack()
	if err != nil || len(rows) == 0 {
		return err
	}
	for i := range o.accesses {
		if a := &o.accesses[i]; rows[a.row] {
			a.flags |= inexact
		}
	}
	return nil
}

// rowsPutBack returns the rows of which a version was met that was replaced before, or replaced twice, or of which one
// statement met two.
func (o *order) rowsPutBack() (map[int32]bool, error) {
	rows := make(map[int32]bool)
	for _, row := range o.twins {
		rows[row] = true
	}
	by := make([]int32, len(o.accesses)+len(o.extra)) // by version: who replaced it, +1
	for k := range o.lists {
		l := &o.lists[k]
		a := &o.accesses[l.access]
		if a.is(inexact) || !o.mayPutBack(a.txn) {
			continue
		}
		for t, writer := range o.replacedIn(l) {
			v, err := o.version(a.row, t)
			if err != nil {
				return nil, err
			}
			if int(v) >= len(by) {
				by = append(by, make([]int32, len(o.accesses)+len(o.extra)-len(by))...)
			}
			o.replacedBy(by, v, writer)
		}
	}
	for i := range o.accesses {
		a := &o.accesses[i]
		if !a.certain() || o.seen[i] < 0 || !o.mayPutBack(a.txn) {
			continue
		}
		old := o.replacedBy(by, o.seen[i], a.txn)
		if old >= 0 && old != a.txn && o.txns[a.txn].status == history.Committed {
			rows[a.row] = true
		}
	}
	for i := range o.accesses {
		a := &o.accesses[i]
		if o.seen[i] < 0 || by[o.seen[i]] == 0 || a.unfound() || a.is(inexact) || !o.mayPutBack(a.txn) {
			continue
		}
		t := &o.txns[a.txn]
		if r, _ := o.replacementBy(by[o.seen[i]] - 1); r.txn != a.txn && o.wall(t.run, t.start) >= r.end {
			rows[a.row] = true
		}
	}
	return rows, nil
}

// replacedBy notes in by that version v was replaced once transaction t had committed, and returns who was known to
// have replaced it; none for nobody.
func (o *order) replacedBy(by []int32, v, t int32) (old int32) {
	r, ok := o.replacementBy(t)
	if old = by[v] - 1; !ok || o.owner(v) == t {
		return old
	}
	if known, _ := o.replacementBy(max(old, 0)); old < 0 || r.end < known.end {
		by[v] = t + 1
	}
	return old
}

// separateRow separates the lives of a row that was put back, whose accesses are given.
func (s *store) separateRow(accesses []int32) error {
	row := s.accesses[accesses[0]].row
	slices.SortFunc(accesses, func(a, b int32) int {
		x, y := s.accesses[a].txn, s.accesses[b].txn
		return cmp.Or(cmp.Compare(s.wall(s.txns[x].run, s.txns[x].start), s.wall(s.txns[y].run, s.txns[y].start)),
			cmp.Compare(x, y), cmp.Compare(a, b))
	})
	if slices.Contains(s.twins, row) {
		for _, i := range accesses {
			s.accesses[i].flags |= inexact
		}
		return nil
	}
	lives := s.putBacks(accesses)
	numbers := []int32{row}
	for n := range lives {
		name := s.rows.row(row)
		name.Table += fmt.Sprintf("@back%d", n+1)
		number, err := s.rows.number(name)
		if err != nil {
			return err
		}
		numbers = append(numbers, number)
	}
	for _, i := range accesses {
		a := &s.accesses[i]
		n, sure := s.lifeAmong(a.txn, lives)
		if !sure || s.ofEither(a.tag(), lives) {
			a.flags |= inexact
		}
		if a.row = numbers[n]; n > 0 && s.ofFormer(a.tag(), lives, n) {
			a.seq, a.tagStmt, a.tagRun = 0, 0, 0
		}
		list, found := slices.BinarySearchFunc(s.lists, i, func(l list, i int32) int { return cmp.Compare(l.access, i) })
		if found && n > 0 {
			s.cutAt(&s.lists[list], func(t tag) bool { return s.ofFormer(t, lives, n) })
		}
	}
	return nil
}

// putBacks returns when a row was put back, by its accesses in the order in which their transactions began.
func (s *store) putBacks(accesses []int32) (lives []putBack) {
	replaced := make(map[tag]replacement)
	for _, i := range accesses {
		a := &s.accesses[i]
		t := &s.txns[a.txn]
		met := a.tag()
		if s.ofFormer(met, lives, len(lives)) {
			met = tag{}
		}
		start := s.wall(t.run, t.start)
		if r, ok := replaced[met]; ok && r.txn != a.txn && !a.unfound() && !a.is(inexact) &&
			(a.op != history.InsertRow || !a.tag().initial()) {
			switch {
			case start >= r.end:
				lives = append(lives, putBack{after: r.ending, by: start, old: r.txn, new: a.txn})
				clear(replaced)
			case a.certain() && t.status == history.Committed && t.end != 0:
				lives = append(lives, putBack{after: r.ending, by: s.wall(t.run, t.end), old: r.txn, new: none})
				clear(replaced)
				continue
			}
		}
		if r, ok := s.replacementBy(a.txn); ok && a.certain() && s.find(met) != a.txn {
			if old, known := replaced[met]; !known || r.end < old.end {
				replaced[met] = r
			}
		}
		if list, found := slices.BinarySearchFunc(s.lists, i,
			func(l list, i int32) int { return cmp.Compare(l.access, i) }); found && !a.is(inexact) {
			s.replacedInList(replaced, &s.lists[list], lives)
		}
	}
	return lives
}

// replacedInList adds what a list tells to have been replaced, of the row's last life.
func (s *store) replacedInList(replaced map[tag]replacement, l *list, lives []putBack) {
	for t, by := range s.replacedIn(l) {
		if s.ofFormer(t, lives, len(lives)) {
			return
		}
		r, _ := s.replacementBy(by)
		if old, known := replaced[t]; !known || r.end < old.end {
			replaced[t] = r
		}
	}
}

// replacedIn yields the versions that a list tells to have been replaced, the newest first, each with a committed
// transaction that had replaced it by the time it ended: the writer of the next version or, where that one is not
// known, whoever saw the list.
func (s *store) replacedIn(l *list) iter.Seq2[tag, int32] {
	return func(yield func(tag, int32) bool) {
		a := &s.accesses[l.access]
		next := a.tag()
		for _, t := range slices.Backward(s.tags[l.off : l.off+uint64(l.n)]) {
			by := s.find(next)
			if _, ok := s.replacementBy(max(by, 0)); by < 0 || !ok {
				by = a.txn
			}
			next = t
			if _, ok := s.replacementBy(by); ok && by != s.find(t) && !yield(t, by) {
				return
			}
		}
	}
}

// lifeAmong returns in which life of a row a transaction met it, 0 for the first. It is not sure where the row was put
// back while it was under way.
func (s *store) lifeAmong(t int32, lives []putBack) (n int, sure bool) {
	x := &s.txns[t]
	start, end := s.wall(x.run, x.start), int64(math.MaxInt64)
	if x.end != 0 {
		end = s.wall(x.run, x.end)
	}
	for n = len(lives); n > 0; n-- {
		switch l := &lives[n-1]; {
		case t == l.new || start >= l.by:
			return n, true
		case t == l.old || end <= l.after:
		default:
			return n - 1, false
		}
	}
	return 0, true
}

// ofFormer reports whether a tag in a life of a row is not of one that certainly wrote the row in that life.
func (s *store) ofFormer(t tag, lives []putBack, n int) bool {
	if t.initial() || n == 0 {
		return false
	}
	owner := s.find(t)
	if owner < 0 {
		return false
	}
	of, sure := s.lifeAmong(owner, lives)
	return of != n || !sure
}

// ofEither reports whether a tag is of one of whom it is open in which life of a row it wrote: its version may be, and
// may not be, the one that was put back.
func (s *store) ofEither(t tag, lives []putBack) bool {
	if t.initial() {
		return false
	}
	owner := s.find(t)
	if owner < 0 {
		return false
	}
	_, sure := s.lifeAmong(owner, lives)
	return !sure
}

// cutAt puts the initial version in the place of the newest tag of a list that is told, and leaves out those below.
func (s *store) cutAt(l *list, former func(tag) bool) {
	tags := s.tags[l.off : l.off+uint64(l.n)]
	for i := len(tags) - 1; i >= 0; i-- {
		if former(tags[i]) {
			tags[i] = tag{}
			l.off, l.n = l.off+uint64(i), l.n-uint32(i)
			return
		}
	}
}
