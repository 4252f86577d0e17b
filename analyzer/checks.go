package analyzer

import (
	"maps"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
)

// An outcome is what becomes of a dependency when a piece of advice is followed.
type outcome uint8

const (
	stays     outcome = iota
	inOrder           // its first transaction will have ended when the second one goes on
	prevented         // it cannot come to be
)

// A remedy says that of each dependency between the transactions of a witness.
type remedy func(d *dep) outcome

// checked adds to a piece of advice whether it would have kept the finding's cycle from forming. Transactions
// whose every dependency leads from one that has ended to one that goes on form no cycle: one edge at least must be the
// read of what another is changing. So it looks for a cycle among the witness's transactions with such an edge.
func (t *explainer) checked(advice, with string, r remedy) (string, error) {
	rest := t.remaining(r)
	if rest == nil {
		return advice + " " + with + " the cycle could not have formed.", nil
	}
	var deeds []string
	for _, d := range rest {
		e, err := t.a.edgeOf(d, t.loaded)
		if err != nil {
			return "", err
		}
		deeds = append(deeds, t.deed(&e, t.name))
	}
	return advice + " It is not enough here, another cycle remains: " + strings.Join(deeds, ". ") + ".", nil
}

// remaining returns the shortest cycle that may still form; nil for none.
func (t *explainer) remaining(r remedy) []dep {
	var edges []dep
	var open []dep // those that a cycle needs one of
	for _, d := range t.between() {
		switch r(&d) {
		case prevented:
			continue
		case stays:
			if t.unordered(&d) {
				open = append(open, d)
			}
		}
		edges = append(edges, d)
	}
	var best []dep
	for _, first := range open {
		if path := pathOf(edges, first.to, first.from); path != nil && (best == nil || len(path)+1 < len(best)) {
			best = append([]dep{first}, path...)
		}
	}
	return best
}

// unordered reports whether the second transaction of a dependency may end before the first: that one read, without a
// lock, what the other changed, or the second read what was not committed.
func (t *explainer) unordered(d *dep) bool {
	o := t.a.order
	switch {
	case d.access < 0 || o.accesses[d.access].is(current):
		return false
	case d.kind == rw:
		return true
	}
	return d.kind == wr && o.txns[d.to].level == history.ReadUncommitted
}

// between returns the dependencies between the witness's transactions, one of those to which the same would happen.
func (t *explainer) between() []dep {
	type like struct {
		from, to        int32
		kind            kind
		shape           int32
		locked, unfound bool
		again           bool
	}
	o := t.a.order
	met, shapes := make(map[like]bool), t.readShapes()
	among := make(map[int32]bool)
	var edges []dep
	add := func(d dep) {
		l := like{from: d.from, to: d.to, kind: d.kind, shape: none}
		if d.access >= 0 {
			_, l.shape = t.reader(&d)
			l.locked, l.unfound = o.accesses[d.access].is(current), o.unfound(&d)
			l.again = t.readBefore(&d, shapes)
		}
		if !met[l] {
			met[l] = true
			edges = append(edges, d)
		}
	}
	for _, d := range t.g.witness {
		add(d)
		among[d.from], among[d.to] = true, true
	}
	for _, x := range slices.Sorted(maps.Keys(among)) {
		o.deps(x, func(d dep) {
			if among[d.from] && among[d.to] && !d.inexact {
				add(d)
			}
		})
	}
	return edges
}

// pathOf finds a shortest path over the edges.
func pathOf(edges []dep, from, to int32) []dep {
	via := map[int32]*dep{from: nil}
	queue := []int32{from}
	for len(queue) > 0 && via[to] == nil {
		for i := range edges {
			if _, ok := via[edges[i].to]; edges[i].from == queue[0] && !ok {
				via[edges[i].to] = &edges[i]
				queue = append(queue, edges[i].to)
			}
		}
		queue = queue[1:]
	}
	var path []dep
	for at := to; via[at] != nil; at = via[at].from {
		path = append(path, *via[at])
	}
	slices.Reverse(path)
	return path
}

// reader returns the transaction and the statement that read, of an rw or wr.
func (t *explainer) reader(d *dep) (txn, shape int32) {
	from, to := t.a.order.stmtsOf(d)
	if d.kind == rw {
		return d.from, t.a.order.shapeOf(d.from, from)
	}
	return d.to, t.a.order.shapeOf(d.to, to)
}

// guarded is the remedy of locking what the reads of the witness's rw found, and of letting nobody add what they did
// not find.
func (t *explainer) guarded() remedy {
	shapes := t.readShapes()
	return func(d *dep) outcome {
		if d.kind != rw || t.a.order.accesses[d.access].is(begunAgain) { // which gives the lock back
			return stays
		}
		if _, shape := t.reader(d); !shapes[shape] {
			if t.readBefore(d, shapes) {
				return inOrder
			}
			return stays
		}
		if t.a.order.byPredicate(d) {
			return prevented
		}
		return inOrder
	}
}

// readShapes are the shapes of the statements that read, of the witness's rw.
func (t *explainer) readShapes() map[int32]bool {
	shapes := make(map[int32]bool)
	for i := range t.g.witness {
		if d := &t.g.witness[i]; d.kind == rw {
			_, shape := t.reader(d)
			shapes[shape] = true
		}
	}
	return shapes
}

// readBefore reports whether the transaction of a read had read its row before, by a statement of one of the shapes: a
// lock that it takes then is held by the time of the read.
func (t *explainer) readBefore(d *dep, shapes map[int32]bool) bool {
	o := t.a.order
	read := &o.accesses[d.access]
	if read.unfound() {
		return false
	}
	from, _ := o.accessesOf(read.txn)
	for i := from; o.accesses[i].stmt < read.stmt; i++ {
		if a := &o.accesses[i]; a.row == read.row && a.op == history.Read && !a.is(void) &&
			shapes[o.shapeOf(a.txn, a.stmt)] {
			return true
		}
	}
	return false
}

// unread is the remedy of doing without what the first rw's statement reads.
func (t *explainer) unread() remedy {
	_, shape := t.reader(&t.g.witness[0])
	return func(d *dep) outcome {
		if d.kind&(rw|wr) == 0 {
			return stays
		}
		if _, s := t.reader(d); s == shape {
			return prevented
		}
		return stays
	}
}

// refused is the remedy of having a transaction fail.
func (t *explainer) refused(txn int32) remedy {
	return func(d *dep) outcome {
		if d.from == txn || d.to == txn {
			return prevented
		}
		return stays
	}
}
