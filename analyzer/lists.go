package analyzer

import (
	"iter"

	"github.com/isotap/isotap/history"
)

// readLists completes the order from the lists that accesses saw: of exact ones first, so that they
// win.
func (o *order) readLists() error {
	for _, exact := range []bool{true, false} {
		for _, l := range o.lists {
			if o.accesses[l.access].is(inexact) == exact {
				continue
			}
			if err := o.readList(l, exact); err != nil {
				return err
			}
		}
	}
	return nil
}

// readList walks a list from its newest tag down. Versions that were undone are no part of the
// order that lists are compared by, nor is a tag that stands there twice.
func (o *order) readList(l list, exact bool) error {
	above := o.seen[l.access]
	if above >= 0 && o.state(above) == undone {
		above = none
	}
	tags := o.tags[l.off : l.off+uint64(l.n)]
	for i := len(tags) - 1; i >= 0; i-- {
		below, err := o.below(l.access, above, tags[i])
		if err != nil {
			return err
		}
		if below == above || o.state(below) == undone {
			continue
		}
		if above >= 0 {
			o.follow(above, below, l.access, exact)
		}
		above = below
	}
	return nil
}

// below finds the version with tag t below version above in a list of an access.
func (o *order) below(access, above int32, t tag) (int32, error) {
	if above >= 0 {
		// What is known already needs no look-up.
		if p := o.pred(above); p >= 0 && o.tagOf(p) == t {
			return p, nil
		}
	}
	v, err := o.version(o.accesses[access].row, t)
	if err != nil {
		return 0, err
	}
	o.suspect(access, v)
	o.witnessCommit(access, v)
	return v, nil
}

// follow takes in that an access saw version v right above version p.
func (o *order) follow(v, p, by int32, exact bool) {
	known := o.pred(v)
	switch {
	case known == p:
		if exact {
			o.setPred(v, p, true)
		}
	case exact && known < 0 || !o.sure(v) && (exact || known < 0):
		if !o.tagOf(v).initial() {
			o.setPred(v, p, exact)
		}
	case exact && o.owner(v) >= 0:
		// Lists may leave out what the writer itself wrote in between, and what was undone.
		a, b := o.before(v, known), o.before(v, p)
		if a >= 0 && b >= 0 && a != b {
			o.incompatible = append(o.incompatible, conflict{v, known, p, by})
		}
	}
}

func (o *order) setPred(v, p int32, exact bool) {
	if e := o.extraOf(v); e != nil {
		e.pred, e.exact = p, exact
		return
	}
	if o.accesses[v].is(inexact) {
		o.seen[v] = p
		if exact {
			o.accesses[v].flags |= confirmed
		}
	} else if o.seen[v] < 0 {
		o.seen[v] = p
	}
}

// maxSteps bounds a walk along versions that do not count. Healthy histories have a handful in a
// row at most; a damaged one may have a circle.
const maxSteps = 1024

// before walks down from p to the nearest version that v's own transaction did not write and that
// was not undone.
func (o *order) before(v, p int32) int32 {
	for range maxSteps {
		if p < 0 || o.owner(p) != o.owner(v) && o.state(p) != undone {
			break
		}
		p = o.pred(p)
	}
	return p
}

// link finds the successors of every version.
func (o *order) link() {
	o.links = make([]linked, len(o.accesses)+len(o.extra))
	for i := range o.accesses {
		o.links[i] = linked{o.accesses[i].txn, none}
	}
	for i := range o.extra {
		o.links[len(o.accesses)+i] = linked{o.extra[i].owner, none}
	}
	for i := range o.accesses {
		if o.accesses[i].write() {
			o.linkVersion(int32(i))
		}
	}
	for i := range o.extra {
		o.linkVersion(int32(len(o.accesses) + i))
	}
}

// linkVersion makes v the successor of the version that it replaced and, where that one's writer is
// outside or undid it, of those below, down to the first that was installed.
func (o *order) linkVersion(v int32) {
	if o.state(v) != installed {
		return
	}
	p, sure := o.pred(v), o.sure(v)
	for range maxSteps {
		if p < 0 {
			return
		}
		s := o.state(p)
		if s != undone {
			o.linkTo(p, v, sure)
		}
		if s == installed {
			return
		}
		sure = sure && o.sure(p)
		p = o.pred(p)
	}
}

func (o *order) linkTo(p, v int32, sure bool) {
	if !sure {
		o.unsure[[2]int32{p, v}] = true
	}
	if o.links[p].next < 0 {
		o.links[p].next = v
		return
	}
	for i, other := range o.followers(p) {
		if o.recreated(p, other, v) {
			o.seen[v] = other
			o.linkTo(other, v, sure)
			return
		}
		if o.recreated(p, v, other) {
			if i == 0 {
				o.links[p].next = v
			} else {
				o.forks[p][i-1] = v
			}
			o.seen[other] = v
			o.linkTo(v, other, o.sure(other))
			return
		}
	}
	for _, other := range o.followers(p) {
		if o.replaced(p, other) && o.replaced(p, v) && o.owner(other) != o.owner(v) && o.runsOverlap(other, v) {
			a, b := other, v
			if o.txns[o.owner(b)].end < o.txns[o.owner(a)].end {
				a, b = b, a // whoever was read first
			}
			o.lost = append(o.lost, fork{p, a, b})
		}
	}
	o.forks[p] = append(o.forks[p], v)
	o.states[p] |= forked
}

// followers yields what follows v so far, its link first, and at most few others.
func (o *order) followers(v int32) iter.Seq2[int, int32] {
	return func(yield func(int, int32) bool) {
		if !yield(0, o.links[v].next) {
			return
		}
		for i, other := range o.forks[v][:min(few, len(o.forks[v]))] {
			if !yield(i+1, other) {
				return
			}
		}
	}
}

// runsOverlap reports whether the runs that wrote two versions may have gone on at the same time. Where one had ended
// before the other began, the database may have been put back to an earlier state in between.
func (o *order) runsOverlap(a, b int32) bool {
	x, y := &o.runs[o.txns[o.owner(a)].run].info, &o.runs[o.txns[o.owner(b)].run].info
	before := func(x, y *history.Info) bool { return !x.Ended.IsZero() && !y.Started.Before(x.Ended) }
	return x.Run == y.Run || !before(x, y) && !before(y, x)
}

// recreated reports whether the fork at p is none: d deleted the row, and then v created it again in p's
// succession.
func (o *order) recreated(p, d, v int32) bool {
	return o.replaced(p, d) && o.replaced(p, v) && o.accesses[d].op == history.DeleteRow &&
		o.accesses[v].op == history.InsertRow
}

// replaced reports whether the statement that wrote v itself told, exactly, that it replaced p.
func (o *order) replaced(p, v int32) bool {
	return o.extraOf(v) == nil && !o.accesses[v].is(inexact) && o.seen[v] == p
}

// others returns what follows v besides its link.
func (o *order) others(v int32) []int32 {
	if o.states[v]&forked == 0 {
		return nil
	}
	return o.forks[v]
}

// certainly reports whether an exact access tells that next follows v.
func (o *order) certainly(v, next int32) bool {
	return len(o.unsure) == 0 || !o.unsure[[2]int32{v, next}]
}

// base returns the nearest installed version below v; -1 for none.
func (o *order) base(v int32) int32 {
	p := o.pred(v)
	for range maxSteps {
		if p < 0 || o.state(p) == installed {
			return p
		}
		p = o.pred(p)
	}
	return none
}
