package analyzer

import "slices"

// nameOf names a cycle. Where it has one rw only, that comes first.
func (o *order) nameOf(cycle []dep) Anomaly {
	var orders kind
	for i := range cycle {
		orders |= cycle[i].kind & (so | rt)
	}
	switch {
	case orders&rt != 0:
		return phenomenon(cycle).Realtime()
	case orders != 0:
		return phenomenon(cycle).Process()
	}
	switch name := phenomenon(cycle); {
	case name == GSingle:
		return o.nameSingle(cycle)
	case o.predicated(cycle) && name == GNonadjacent:
		return PhantomNonadjacent
	case o.predicated(cycle) && len(cycle) == 2:
		return PhantomSkew
	case o.predicated(cycle):
		return G2
	case name == G2Item && len(cycle) == 2 && o.row(&cycle[0]) != o.row(&cycle[1]):
		return WriteSkew
	default:
		return name
	}
}

// phenomenon names a cycle by the kinds of its dependencies.
func phenomenon(cycle []dep) Anomaly {
	antis, reads, adjacent := 0, 0, false
	for i := range cycle {
		before := &cycle[(i+len(cycle)-1)%len(cycle)]
		switch cycle[i].kind {
		case wr:
			reads++
		case rw:
			antis++
			adjacent = adjacent || before.kind == rw
		}
	}
	switch {
	case antis == 0 && reads == 0:
		return G0
	case antis == 0:
		return G1c
	case antis == 1:
		return GSingle
	case !adjacent:
		return GNonadjacent
	}
	return G2Item
}

// predicated reports whether one of the cycle's rw is by a predicate.
func (o *order) predicated(cycle []dep) bool {
	return slices.ContainsFunc(cycle, func(d dep) bool { return o.byPredicate(&d) })
}

// byPredicate reports whether a dependency is one on who wrote a row that a statement looked for and did not find.
func (o *order) byPredicate(d *dep) bool { return d.kind == rw && o.unfound(d) }

// nameSingle names a cycle with one rw, its first dependency.
func (o *order) nameSingle(cycle []dep) Anomaly {
	out, back := &cycle[0], &cycle[len(cycle)-1]
	row, two := o.row(out), len(cycle) == 2
	same := o.row(back) == row
	// Whether the cycle comes back through versions of the row that was read: "edges by y", as Bailis has it.
	byRow := !slices.ContainsFunc(cycle[1:len(cycle)-1], func(d dep) bool { return d.kind != ww || o.row(&d) != row })
	oneRow := !slices.ContainsFunc(cycle, func(d dep) bool { return o.row(&d) != row })
	switch {
	case o.byPredicate(out) && back.kind == wr && oneRow:
		return PMP
	case o.byPredicate(out):
		return Phantom
	case two && same && (back.kind == ww || o.accesses[back.access].is(equal)):
		// An UPDATE to the values that the row has already installs no version, but it is a write over
		// the other's all the same: two increments by one, of which one is lost.
		return LostUpdate
	case o.earlier(back, out) && byRow && !same && back.kind == wr:
		return OTV
	case o.earlier(back, out):
		return GMonotonic
	case back.kind == wr && oneRow:
		return NonRepeatableRead
	case byRow && !same && back.kind == wr:
		return ReadSkew
	case two && !same:
		return ReadWriteSkew
	}
	return GSingle
}

// earlier reports whether a transaction saw what a dependency into it brings in an earlier statement than it made
// the read of the rw out of it.
func (o *order) earlier(in, out *dep) bool { return o.arrival(in) < o.accesses[out.access].stmt }

// arrival returns the number of the statement by which a transaction depends on another; 0 where it does before its
// first.
func (o *order) arrival(in *dep) uint32 {
	switch in.kind {
	case so, rt:
		return 0
	case wr:
		return o.accesses[in.access].stmt
	}
	return o.tagOf(in.next).stmt
}

// tellsMore reports whether the first of two cycles with one rw, under its name, is the one to report.
func (o *order) tellsMore(a Anomaly, cycle []dep, b Anomaly, than []dep) bool {
	if torn, other := o.torn(a, cycle), o.torn(b, than); torn != other && slices.Contains([]Anomaly{a, b}, NonRepeatableRead) {
		return torn
	}
	return telling(a) < telling(b)
}

// torn reports whether a read skew lies within one statement. Where statements have snapshots no level permits that, so
// that it says more than that a row changed from one statement to the next.
func (o *order) torn(a Anomaly, cycle []dep) bool {
	return a == ReadSkew && o.arrival(&cycle[len(cycle)-1]) == o.accesses[cycle[0].access].stmt
}

// telling orders the names for one rw: the first of them is the one to report. What fewer levels permit comes
// first; then, that a transaction saw one row change comes before that two rows did not fit each other, and
// that it saw an inconsistent state before that it wrote on top of it.
func telling(a Anomaly) int {
	return slices.Index([]Anomaly{LostUpdate, OTV, GMonotonic, NonRepeatableRead, ReadSkew, ReadWriteSkew, GSingle, PMP,
		Phantom}, a)
}
