package robust

import (
	"errors"
	"slices"
)

// An execution is a schedule as far as it has run: an operational model of MVRC (3.5), of SNAPSHOT ISOLATION and of
// PostgreSQL's SERIALIZABLE. A statement runs as a whole and sees its transaction's own writes. One that would have to
// wait is an error: the schedule is then not as its order says.
type execution struct {
	*Schedule
	tuples    []Tuple             // all that there are
	committed map[Tuple][]version // oldest first
	pending   map[Tuple]version   // of a transaction that has not committed
	locks     map[Tuple]map[int]Lock
	began     []int // by run: how many had committed when it began; -1 before that
	ended     []int // by run: as the how many-th it committed; 0 before that
	commits   int
	ops       []op
	writes    int
}

// An opKind is a kind of operation (3.2). A predicate read counts as one operation on each tuple of its relation.
type opKind byte

const (
	readOp opKind = iota
	writeOp
	insertOp
	deleteOp
	predicateReadOp
)

func (k opKind) writes() bool { return k == writeOp || k == insertOp || k == deleteOp }

// An op is an operation that has run.
type op struct {
	Step
	kind       opKind
	tuple      Tuple
	attributes Set
	version    writing // that it read or made
}

// A writing is a version by its origin: the number-th write of a run; run -1 for what was there before.
type writing struct{ run, number int }

// A presence is what a version is (3.1).
type presence uint8

const (
	unborn presence = iota
	visible
	dead
)

type version struct {
	writing
	presence
	commit int // as the how many-th commit it came
}

// Why a statement cannot run.
var (
	errWaits   = errors.New("it waits for another transaction")
	errRefused = errors.New("a concurrent transaction was first")
	errMissing = errors.New("there is no such tuple")
	errThere   = errors.New("there is such a tuple, or was")
)

func newExecution(s *Schedule) *execution {
	x := &execution{
		Schedule:  s,
		committed: make(map[Tuple][]version),
		pending:   make(map[Tuple]version),
		locks:     make(map[Tuple]map[int]Lock),
		began:     slices.Repeat([]int{-1}, len(s.Runs)),
		ended:     make([]int, len(s.Runs)),
	}
	for _, run := range s.Runs {
		for at, tuples := range run.Tuples {
			for _, t := range tuples {
				x.know(t, run.Program.Statements[at].Type == Ins)
			}
		}
	}
	return x
}

// know has a tuple be there from the beginning, unless somebody inserts it.
func (x *execution) know(t Tuple, inserted bool) {
	if x.committed[t] == nil {
		x.committed[t] = []version{{writing: writing{run: -1}, presence: visible}}
		x.locks[t] = make(map[int]Lock)
		x.tuples = append(x.tuples, t)
	}
	if inserted {
		x.committed[t][0].presence = unborn
	}
}

func (x *execution) step(step Step) error {
	if x.Schedule.commits(step) {
		x.commit(step.Run)
		return nil
	}
	if x.began[step.Run] < 0 {
		x.began[step.Run] = x.commits
	}
	run := &x.Runs[step.Run]
	q := run.Program.Statements[step.At].Statement
	switch {
	case q.Type == Ins:
		return x.insert(step, run.Tuples[step.At][0])
	case !q.Type.ByPredicate():
		return x.access(step, q, run.Tuples[step.At][0])
	}
	for _, t := range x.tuples {
		if t.Relation == q.Relation {
			x.did(step, predicateReadOp, t, q.PRead, x.sees(step.Run, t))
		}
	}
	for _, t := range run.Tuples[step.At] {
		// A predicate does not find what is not there.
		if x.sees(step.Run, t).presence == visible {
			if err := x.access(step, q, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// access reads, locks, writes or deletes a tuple, as the statement says.
func (x *execution) access(step Step, q *Statement, t Tuple) error {
	seen := x.sees(step.Run, t)
	if q.rule() != KeySel && q.rule() != PredSel {
		if err := x.own(step.Run, t, q.Lock); err != nil {
			return err
		}
	}
	if seen.presence != visible {
		return errMissing
	}
	if q.Read.Defined() {
		x.did(step, readOp, t, q.Read, seen)
	}
	switch {
	case !q.Write.Defined():
	case q.Type == KeyDel || q.Type == PredDel:
		x.write(step, deleteOp, t, All(), dead)
	default:
		x.write(step, writeOp, t, q.Write, visible)
	}
	return nil
}

func (x *execution) insert(step Step, t Tuple) error {
	if err := x.own(step.Run, t, NoLock); err != nil {
		return err
	}
	if x.sees(step.Run, t).presence != unborn {
		return errThere
	}
	x.write(step, insertOp, t, All(), visible)
	return nil
}

// sees returns the version of a tuple that a transaction sees: its own; else the last that had been committed, when it
// began or at READ COMMITTED by then.
func (x *execution) sees(run int, t Tuple) version {
	if v, ok := x.pending[t]; ok && v.run == run {
		return v
	}
	all := x.committed[t]
	if x.Runs[run].Level != ReadCommitted {
		for all[len(all)-1].commit > x.began[run] {
			all = all[:len(all)-1]
		}
	}
	return all[len(all)-1]
}

// own keeps others from a tuple, for a write or a lock: nobody writes what is not committed, and with a snapshot nobody
// writes or locks what was written since.
func (x *execution) own(run int, t Tuple, lock Lock) error {
	if v, ok := x.pending[t]; ok && v.run != run {
		return errWaits
	}
	for other, theirs := range x.locks[t] {
		if other != run && (lock != ShareLock || theirs != ShareLock) {
			return errWaits
		}
	}
	all := x.committed[t]
	if x.Runs[run].Level != ReadCommitted && all[len(all)-1].commit > x.began[run] {
		return errRefused
	}
	if lock != NoLock {
		x.locks[t][run] = max(x.locks[t][run], lock)
	}
	return nil
}

func (x *execution) write(step Step, kind opKind, t Tuple, attributes Set, p presence) {
	x.writes++
	v := version{writing: writing{step.Run, x.writes}, presence: p}
	x.pending[t] = v
	x.did(step, kind, t, attributes, v)
}

func (x *execution) did(step Step, kind opKind, t Tuple, attributes Set, v version) {
	x.ops = append(x.ops, op{step, kind, t, attributes, v.writing})
}

func (x *execution) commit(run int) {
	x.commits++
	x.ended[run] = x.commits
	for _, t := range x.tuples {
		delete(x.locks[t], run)
		if v, ok := x.pending[t]; ok && v.run == run {
			v.commit = x.commits
			x.committed[t] = append(x.committed[t], v)
			delete(x.pending, t)
		}
	}
}

// dependencies returns all dependencies between the operations (3.4). Versions are in the order of their commits.
func (x *execution) dependencies() []Dependency {
	var all []Dependency
	for i := range x.ops {
		for j := range x.ops {
			if kind := x.dependency(&x.ops[i], &x.ops[j]); kind != "" {
				from, to := x.ops[i].Step, x.ops[j].Step
				all = append(all, Dependency{from, to, kind, x.ops[i].tuple, x.ended[to.Run] < x.ended[from.Run]})
			}
		}
	}
	return all
}

// dependency returns the kind of the dependency of a on b; empty when there is none.
func (x *execution) dependency(b, a *op) DependencyKind {
	if b.Run == a.Run || b.tuple != a.tuple || !x.conflict(b, a) {
		return ""
	}
	switch before := x.before(b.version, a.version); {
	case b.kind.writes() && a.kind.writes() && before:
		return WW
	case b.kind.writes() && a.kind == readOp && (before || b.version == a.version):
		return WR
	case b.kind.writes() && a.kind == predicateReadOp && (before || b.version == a.version):
		return PredicateWR
	case b.kind == readOp && a.kind.writes() && before:
		return RW
	case b.kind == predicateReadOp && a.kind.writes() && before:
		return PredicateRW
	}
	return ""
}

// conflict reports whether both operations use an attribute in common. An insertion or a deletion changes what every
// predicate finds.
func (x *execution) conflict(b, a *op) bool {
	made := func(o, p *op) bool {
		return o.kind == predicateReadOp && (p.kind == insertOp || p.kind == deleteOp)
	}
	return x.Setting.Tuples || b.attributes.Meets(a.attributes) || made(b, a) || made(a, b)
}

// before reports whether one version of a tuple is older than another.
func (x *execution) before(v, w writing) bool {
	if v.run == w.run {
		return v.number < w.number
	}
	return v.run < 0 || w.run >= 0 && x.ended[v.run] < x.ended[w.run]
}

// refuseDangerous has serializable transactions refused what PostgreSQL refuses of them: two rw dependencies one after
// the other, between concurrent transactions, of which the last commits first.
func (x *execution) refuseDangerous(all []Dependency) error {
	for _, in := range all {
		for _, out := range all {
			if in.To.Run == out.From.Run && x.vulnerable(in) && x.vulnerable(out) &&
				x.ended[out.To.Run] < x.ended[out.From.Run] && x.ended[out.To.Run] <= x.ended[in.From.Run] {
				return errRefused
			}
		}
	}
	return nil
}

// vulnerable reports whether the dependency is an rw between concurrent serializable transactions.
func (x *execution) vulnerable(d Dependency) bool {
	i, j := d.From.Run, d.To.Run
	return (d.Kind == RW || d.Kind == PredicateRW) && x.Runs[i].Level == Serializable &&
		x.Runs[j].Level == Serializable &&
		x.began[i] < x.ended[j] && x.began[j] < x.ended[i]
}
