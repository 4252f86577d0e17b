package analyzer

import (
	"slices"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// A judge tells violations from hazards by the engine table. Transactions at different levels may
// meet on one cycle, so it goes by Adya's mixing-correctness: a dependency obliges the engine only
// where the level of the transaction that it protects says so. For rw that is the reader, for wr
// the reader, for ww both.
//
// A cycle is a violation when every dependency of it puts the commit of its first transaction (for
// a read of a snapshot: that snapshot) before the commit of its second, by the engine's own word:
// then they cannot form a cycle.
//
// A level that promises serializability among its own transactions only ([Promise.Together]) orders no
// commits. Its cycles are looked for by themselves; on all others it counts as snapshot isolation, and on all
// where writers may stand between that nobody recorded.
type judge struct {
	o                 *order
	model             *TheoryLevel     // what counts in place of the engine table; nil for that
	promises          [][5][4]*Promise // by run, level, and what becomes of conflicts
	together          bool             // only such cycles are looked for
	unrecordedWriters bool             // transactions at other levels wrote what nobody recorded
}

func newJudge(o *order, opts Options) *judge {
	j := &judge{o: o, model: opts.Model, promises: make([][5][4]*Promise, len(o.runs))}
	for r := range o.runs {
		for l := range j.promises[r] {
			for c := range j.promises[r][l] {
				j.promises[r][l][c] = PromiseOf(o.runs[r].info.Server, opts.level(history.Level(l)),
					history.Conflicts(c))
			}
		}
	}
	j.unrecordedWriters = j.findUnseenWriters()
	return j
}

// level returns the level that a transaction is judged by.
func (o *Options) level(ran history.Level) history.Level {
	if o.Expect != history.LevelUnknown {
		return o.Expect
	}
	return ran
}

// findUnseenWriters looks for signs of writers that are not in the graph and of which it is not known that they
// are serializable: between two transactions that are, they break the account that the server keeps.
func (j *judge) findUnseenWriters() bool {
	unrecorded := func(e extraVersion) bool { return j.o.runs[e.tag.run].info.Run == history.Unrecorded }
	if slices.ContainsFunc(j.o.extra, unrecorded) {
		return true
	}
	if slices.ContainsFunc(j.o.runs, func(r run) bool { return r.info.Holed() }) {
		return true
	}
	for t := range j.o.txns {
		if j.o.txns[t].unseenFrom > 0 && !j.promise(int32(t)).Together {
			return true
		}
	}
	return false
}

func (j *judge) promise(t int32) *Promise { return j.promiseOf(&j.o.txns[t]) }

func (j *judge) promiseOf(r *txn) *Promise {
	if int(r.level) >= len(j.promises[r.run]) || int(r.conflicts) >= len(j.promises[r.run][r.level]) {
		return &noPromise
	}
	return j.promises[r.run][r.level][r.conflicts]
}

// binds reports whether a dependency obliges the engine by itself, whatever else is on the cycle.
func (j *judge) binds(d *dep) bool {
	if proves := j.o.proves(d); !proves || j.model != nil {
		return proves
	}
	if j.together {
		return j.amongThemselves(d)
	}
	if j.o.unfound(d) {
		return false // the row may have been taken away by somebody that nobody recorded
	}
	switch d.kind {
	case ww:
		return j.promise(d.from).forbids(G0) && j.promise(d.to).forbids(G0)
	case wr:
		return j.promise(d.to).forbids(G1c) || j.lockedRead(d.to, d.access)
	case rw:
		p := j.promise(d.from)
		return p.forbids(G2Item) && !p.Together || j.lockedRead(d.from, d.access)
	default:
		return true // by the clock, or since a session does one thing at a time
	}
}

// amongThemselves reports whether both transactions of a dependency are at a level that promises
// serializability among its own.
func (j *judge) amongThemselves(d *dep) bool {
	return j.o.proves(d) && d.kind&(so|rt) == 0 && !j.unrecordedWriters && j.model == nil && j.promise(d.from).Together &&
		j.promise(d.to).Together
}

// knownBetter reports whether a dependency rests on a wide condition where the server lets no cycle through of what the
// statement really read: then what it let through is none.
func (j *judge) knownBetter(d *dep) bool {
	if !j.o.wide(d) || j.model != nil {
		return false
	}
	from, to := j.promise(d.from), j.promise(d.to)
	return from.forbids(G2Item) && (!from.Together || to.Together)
}

// anyTogether reports whether there are transactions at such a level.
func (j *judge) anyTogether() bool {
	return !j.unrecordedWriters && j.model == nil &&
		slices.ContainsFunc(j.o.txns, func(t txn) bool { return j.promiseOf(&t).Together })
}

// lockedRead reports whether a read holds a lock on its row. TiDB takes FOR SHARE, where it is told to, for
// nothing.
func (j *judge) lockedRead(t, access int32) bool {
	a, p := &j.o.accesses[access], j.promise(t)
	return a.is(locked) && p.RowLocks && !(a.is(shared) && p.Engine == dbms.TiDB)
}

// bindsAfter reports whether the rw out of a transaction obliges the engine given the dependency into
// it: what that one shows had been committed by the moment of the database that the read saw.
func (j *judge) bindsAfter(in, out *dep) bool {
	if !j.o.proves(in) || !j.o.proves(out) {
		return false
	}
	if j.model != nil {
		return j.model.ForbidsAnomaly(GNonadjacent) || j.model.ForbidsAnomaly(GSingle) ||
			j.model.ForbidsAnomaly(GMonotonic) && j.o.earlier(in, out)
	}
	if j.binds(out) {
		return true
	}
	if j.together || in.kind == rw || !j.plain(out.access) || j.o.unfound(out) {
		return false
	}
	return j.shownBefore(j.arrivalOf(in), out)
}

// An arrival is what [judge.bindsAfter] goes by of a dependency into a transaction: after two that have the same one,
// each rw out of it obliges the engine, or neither does.
type arrival struct {
	proved     bool
	anti       bool // it is an rw
	ordered    bool // it is by the order of sessions or of time
	ofSnapshot bool
	plainRead  bool
	stmt       uint32
}

func (j *judge) arrivalOf(in *dep) arrival {
	switch {
	case !j.o.proves(in):
		return arrival{anti: in.kind == rw}
	case in.kind == rw:
		return arrival{proved: true, anti: true, stmt: j.o.arrival(in)}
	case in.kind&(so|rt) != 0:
		return arrival{proved: true, ordered: true}
	}
	return arrival{proved: true, ofSnapshot: j.ofSnapshot(in, j.promise(in.to)),
		plainRead: in.kind == wr && j.plain(in.access), stmt: j.o.arrival(in)}
}

// shownBefore is the rule of moments. A plain read sees the database as it was when its snapshot was taken: that of
// its transaction or of its statement. A locking read or a write sees it as it is while the statement runs,
// unless the engine refuses what has changed since the snapshot; so does every statement with regard to a snapshot that
// a later one takes.
func (j *judge) shownBefore(in arrival, out *dep) bool {
	p := j.promise(out.from)
	read := j.o.accesses[out.access].stmt
	switch {
	case in.ordered:
		return p.Fresh
	case in.ofSnapshot:
		return true
	case p.Snapshot:
		return p.Fresh && p.FixedByRead && in.stmt < j.o.txns[out.from].fixed
	case p.Statement && in.stmt == read && in.plainRead:
		return true
	}
	return p.Statement && p.Fresh && in.stmt < read
}

// ofSnapshot reports whether what a transaction depends on must have been committed when its snapshot was taken: a
// plain read sees nothing else, and where conflicts are refused nothing else can be written or locked.
func (j *judge) ofSnapshot(in *dep, p *Promise) bool {
	return p.FirstCommitterWins && j.refuses(in) || p.Snapshot && in.kind == wr && j.plain(in.access)
}

// refuses reports whether the transaction could not have had a dependency, had it come after its snapshot: it
// could not lock the row. An INSERT over a row that was deleted locks another one, and so does what follows it.
func (j *judge) refuses(in *dep) bool {
	switch in.kind {
	case so, rt:
		return false
	case wr:
		return j.clear(in.access)
	}
	return j.o.extraOf(in.next) == nil && j.clear(in.next) && !j.o.madeBefore(in.next)
}

// madeBefore reports whether a write's transaction began with making its row.
func (o *order) madeBefore(write int32) bool {
	w := &o.accesses[write]
	first, _ := o.accessesOf(w.txn)
	for i := first; i < write; i++ {
		if a := &o.accesses[i]; a.row == w.row && a.write() {
			return a.op == history.InsertRow
		}
	}
	return w.op == history.InsertRow
}

// plain reports whether an access is a read of the transaction's snapshot.
func (j *judge) plain(access int32) bool { return !j.o.accesses[access].is(current) && j.clear(access) }

// clear reports whether an access came before whatever of its transaction nobody has seen.
func (j *judge) clear(access int32) bool {
	a := &j.o.accesses[access]
	unseenFrom := j.o.txns[a.txn].unseenFrom
	return unseenFrom == 0 || a.stmt < unseenFrom
}

// class judges a cycle.
func (j *judge) class(cycle []dep) Class {
	if j.model != nil {
		name := j.o.nameOf(cycle)
		if name == GMonotonic && j.o.vanishes(cycle) {
			name = OTV
		}
		return j.classByName(name, cycle...)
	}
	if !slices.ContainsFunc(cycle, func(d dep) bool { return !j.amongThemselves(&d) }) {
		return Violation
	}
	if j.together {
		return Hazard
	}
	for i := range cycle {
		d := &cycle[i]
		if d.kind == rw {
			if !j.bindsAfter(&cycle[(i+len(cycle)-1)%len(cycle)], d) {
				return Hazard
			}
		} else if !j.binds(d) {
			return Hazard
		}
	}
	return Violation
}

// vanishes reports whether a transaction read a row as another left it, and then the same row as it was before: levels
// take that for an observed transaction that vanishes, as they take two rows.
func (o *order) vanishes(cycle []dep) bool {
	row := o.row(&cycle[0])
	return cycle[len(cycle)-1].kind == wr && !slices.ContainsFunc(cycle, func(d dep) bool { return o.row(&d) != row })
}

// classByName judges what has a name, and rests on the given dependencies, by the level of the theory.
func (j *judge) classByName(name Anomaly, deps ...dep) Class {
	if j.model.ForbidsAnomaly(name) && !slices.ContainsFunc(deps, func(d dep) bool { return !j.o.proves(&d) }) {
		return Violation
	}
	return Hazard
}

// classOfRead judges a read of a version that was never installed (G1a, G1b).
func (j *judge) classOfRead(a Anomaly, access int32) Class {
	if j.model != nil {
		return j.classByName(a)
	}
	r := &j.o.accesses[access]
	if r.unfound() {
		return Hazard
	}
	p := j.promise(r.txn)
	if p.forbids(a) || p.RowLocks && (r.write() || r.is(locked)) {
		return Violation
	}
	return Hazard
}

// classOfInterference judges a dependency on what committed after the snapshot.
func (j *judge) classOfInterference(d *dep) Class {
	if j.model != nil {
		return j.classByName(GSIa, *d)
	}
	if j.ofSnapshot(d, j.promise(d.to)) {
		return Violation
	}
	return Hazard
}
