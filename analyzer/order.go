package analyzer

import (
	"fmt"
	"slices"

	"github.com/isotap/isotap/history"
)

// An order is the version order of every row, as far as it is known: each version has at most one
// predecessor, and normally one successor.
//
// A version is an index: of the access that wrote it where that was captured, past the accesses for
// the others (initial versions, versions of foreign runs, writes that were not captured).
type order struct {
	*store
	// seen is, by access, the version that it read or replaced; -1 for none. For a write that is its
	// version's predecessor.
	seen  []int32
	extra []extraVersion
	index map[versionKey]int32 // extra versions that are not initial
	first []int32              // by row: the initial version; -1 for none
	links []linked             // by version
	// forks are the successors of versions with several that are not in links.
	forks  map[int32][]int32
	states []versionState // by version, once the lists are read
	// unsure are the pairs (version, successor) that only inexact accesses tell.
	unsure map[[2]int32]bool
	// laterVersions are those that only relations put after others, by the earlier one.
	laterVersions []laterVersion

	garbage      []impossibleRead
	incompatible []conflict
	lost         []fork
	// looks are the statements that looked in vain for rows that came behind their transactions.
	looks map[look]uint32
	// interfering are the dependencies on what committed after a snapshot had been taken (see spans).
	interfering []dep
}

// A look is a transaction's for a row whose first version is given.
type look struct{ txn, version int32 }

type versionKey struct {
	row int32
	tag tag
}

// A linked is what is beside a version: its owner, and the successor that counts, which is the next version of a
// transaction that is installed; -1 for none.
type linked struct{ owner, next int32 }

// An extraVersion is a version without a captured write.
type extraVersion struct {
	tag     tag
	row     int32
	owner   int32 // its transaction; -1 when that is not in the store
	pred    int32
	exact   bool // pred is known from an exact access
	void    bool
	garbage bool // nobody can have written it
	// intermediate: a later statement of its owner wrote the row again, or may have.
	intermediate bool
}

// An impossibleRead is an access that saw a version that should not be there.
type impossibleRead struct{ access, version int32 }

// A conflict is two opinions on the predecessor of a version.
type conflict struct{ version, pred, other, by int32 }

// A fork is two versions that both replaced the same one.
type fork struct{ version, a, b int32 }

func newOrder(s *store) *order {
	return &order{store: s, index: make(map[versionKey]int32), forks: make(map[int32][]int32),
		unsure: make(map[[2]int32]bool)}
}

// resolve finds the version behind the tag of every access.
func (o *order) resolve() error {
	o.seen = make([]int32, len(o.accesses))
	inParts(len(o.accesses), func(_, from, to int) { inSteps(from, to, o.findCaptured) })
	o.extra = make([]extraVersion, 0, min(o.unresolved(), len(o.first)))
	for i := range o.seen {
		if !o.lacks(i) {
			continue
		}
		v, err := o.version(o.accesses[i].row, o.accesses[i].tag())
		if err != nil {
			return err
		}
		o.seen[i] = v
		o.suspect(int32(i), v)
	}
	o.addUnborn()
	return nil
}

// lacks reports whether an access names a version whose write was not captured.
func (o *order) lacks(access int) bool {
	a := &o.accesses[access]
	return o.seen[access] < 0 && (a.op != history.InsertRow || !a.tag().initial())
}

// unresolved counts such accesses.
func (o *order) unresolved() (n int) {
	for i := range o.seen {
		if o.lacks(i) {
			n++
		}
	}
	return n
}

// findCaptured finds the captured versions behind the tags of some accesses: who wrote them, where the accesses of
// those transactions are, and which of these it was.
func (o *order) findCaptured(from, to int) {
	var owners, guesses [stepSize]int32
	for k := range to - from {
		a := &o.accesses[from+k]
		owners[k] = none
		if a.tagRun != 0 {
			owners[k] = o.find(a.tag())
		}
	}
	for k := range to - from {
		if owners[k] >= 0 {
			guesses[k] = o.guess(owners[k], o.accesses[from+k].tagStmt)
		}
	}
	for k := range to - from {
		a := &o.accesses[from+k]
		switch w := &o.accesses[guesses[k]]; {
		case owners[k] < 0:
			o.seen[from+k] = none
		case w.row == a.row && w.stmt == a.tagStmt && w.write() && w.txn == owners[k]:
			o.seen[from+k] = guesses[k]
		default:
			o.seen[from+k] = o.findWrite(owners[k], a.tagStmt, a.row)
		}
	}
}

// addUnborn puts the version that there was before a row was inserted below the insertion, where a predicate did not
// find the row: nobody else sees that one.
func (o *order) addUnborn() {
	unborn := make(map[int32]bool)
	for i := range o.accesses {
		if a := &o.accesses[i]; a.absent() && a.tag().initial() {
			unborn[a.row] = true
		}
	}
	if len(unborn) == 0 {
		return
	}
	for i := range o.accesses {
		if a := &o.accesses[i]; a.op == history.InsertRow && a.tag().initial() && unborn[a.row] {
			o.seen[i] = o.first[a.row]
		}
	}
}

// suspect notes that an exact access saw a version that nobody can have written.
func (o *order) suspect(access, v int32) {
	if e := o.extraOf(v); e != nil && e.garbage && !o.accesses[access].is(inexact) {
		o.garbage = append(o.garbage, impossibleRead{access, v})
	}
}

// version returns the version of a row with a tag.
func (o *order) version(row int32, t tag) (int32, error) {
	if t.initial() {
		if o.first[row] == none {
			v, err := o.addExtra(extraVersion{tag: t, row: row, owner: none, pred: none})
			if err != nil {
				return 0, err
			}
			o.first[row] = v
		}
		return o.first[row], nil
	}
	if w := o.captured(row, t); w >= 0 {
		return w, nil
	}
	owner := o.find(t)
	k := versionKey{row, t}
	if v, ok := o.index[k]; ok {
		return v, nil
	}
	e := extraVersion{tag: t, row: row, owner: owner, pred: none, void: o.voids[t], garbage: o.impossible(owner, t)}
	if owner >= 0 {
		e.intermediate = o.writtenLater(owner, t.stmt, row)
	} else {
		e.intermediate = o.runs[t.run].odd.Has(t.seq) || len(o.store.replaced) > 0 && o.store.replaced[o.historyTag(t)]
	}
	v, err := o.addExtra(e)
	if err != nil {
		return 0, err
	}
	o.index[k] = v
	return v, nil
}

// captured returns the version of a row with a tag where its write was captured; none otherwise.
func (o *order) captured(row int32, t tag) int32 {
	if t.initial() {
		return none
	}
	owner := o.find(t)
	if owner < 0 {
		return none
	}
	return o.findWrite(owner, t.stmt, row)
}

func (o *order) addExtra(e extraVersion) (int32, error) {
	if len(o.accesses)+len(o.extra) >= maxIndex {
		return 0, fmt.Errorf("ordering versions: more than %d of them", maxIndex)
	}
	o.extra = append(o.extra, e)
	return int32(len(o.accesses) + len(o.extra) - 1), nil
}

// impossible reports whether a run handed no such tag out: it is recorded to its end without a gap, and the tag is not
// in it.
func (o *order) impossible(owner int32, t tag) bool {
	r := &o.runs[t.run]
	if !r.analysed || !r.info.Whole() {
		return false
	}
	if owner < 0 {
		return !r.gone.Has(t.seq)
	}
	return o.txns[owner].status != history.Indeterminate && t.stmt > o.txns[owner].last
}

// writtenLater reports whether a transaction certainly wrote a row after its statement stmt.
func (o *order) writtenLater(t int32, stmt uint32, row int32) bool {
	from, to := o.accessesOf(t)
	for i := to - 1; i >= from && o.accesses[i].stmt > stmt; i-- {
		if a := &o.accesses[i]; a.row == row && a.certain() {
			return true
		}
	}
	return false
}

func (o *order) extraOf(v int32) *extraVersion {
	if i := int(v) - len(o.accesses); i >= 0 {
		return &o.extra[i]
	}
	return nil
}

// owner returns the transaction that wrote a version; -1 when it is not in the store.
func (o *order) owner(v int32) int32 {
	if e := o.extraOf(v); e != nil {
		return e.owner
	}
	return o.accesses[v].txn
}

// A versionState says what became of a version: a state, and marks.
type versionState uint8

const (
	outside   versionState = iota // its writer is not in the store, or nobody knows how it ended
	installed                     // it stayed
	undone                        // its writer aborted, or undid it

	stateMask versionState = 3
	// passing: it was installed, but its transaction certainly wrote the row again.
	passing versionState = 1 << 2
	// deletion: it certainly is the row's absence.
	deletion versionState = 1 << 3
	// forked: it has several successors.
	forked versionState = 1 << 4
)

// state returns a version's state, as far as it is known by now.
func (o *order) state(v int32) versionState {
	if o.states != nil {
		return o.states[v] & stateMask
	}
	if e := o.extraOf(v); e != nil {
		return o.stateOf(e.owner, e.void)
	}
	return o.stateOf(o.accesses[v].txn, o.accesses[v].is(void))
}

func (o *order) stateOf(owner int32, isVoid bool) versionState {
	if owner < 0 {
		return outside
	}
	switch t := &o.txns[owner]; {
	case isVoid || t.status == history.Aborted:
		return undone
	case t.installed:
		return installed
	default:
		return outside
	}
}

// fixStates fixes the states.
func (o *order) fixStates() {
	states := make([]versionState, len(o.accesses)+len(o.extra))
	for i := range o.accesses {
		a := &o.accesses[i]
		if !a.write() {
			continue
		}
		states[i] = o.stateOf(a.txn, a.is(void))
		if a.is(intermediate) {
			states[i] |= passing
		}
		if a.op == history.DeleteRow && !a.is(inexact) {
			states[i] |= deletion
		}
	}
	for i := range o.extra {
		e := &o.extra[i]
		v := len(o.accesses) + i
		states[v] = o.stateOf(e.owner, e.void)
		if e.intermediate {
			states[v] |= passing
		}
	}
	o.states = states
}

// pred returns a version's predecessor; -1 for none known.
func (o *order) pred(v int32) int32 {
	if e := o.extraOf(v); e != nil {
		return e.pred
	}
	return o.seen[v]
}

// sure reports whether an exact access tells the version's predecessor.
func (o *order) sure(v int32) bool {
	if e := o.extraOf(v); e != nil {
		return e.exact
	}
	return !o.accesses[v].is(inexact) || o.accesses[v].is(confirmed)
}

// tagOf returns the tag that version v carries.
func (o *order) tagOf(v int32) tag {
	if e := o.extraOf(v); e != nil {
		return e.tag
	}
	t := &o.txns[o.accesses[v].txn]
	return tag{t.seq, o.accesses[v].stmt, t.run}
}

// rowOf returns the row that v is a version of.
func (o *order) rowOf(v int32) int32 {
	if e := o.extraOf(v); e != nil {
		return e.row
	}
	return o.accesses[v].row
}

// witnessCommits finds the indeterminate transactions that committed: another one saw what they
// wrote where that means that they had.
func (o *order) witnessCommits() {
	if !slices.ContainsFunc(o.txns, func(t txn) bool { return t.status == history.Indeterminate }) {
		return
	}
	for i := range o.accesses {
		if v := o.seen[i]; v >= 0 {
			o.witnessCommit(int32(i), v)
		}
	}
}

func (o *order) witnessCommit(access, v int32) {
	a := &o.accesses[access]
	owner := o.owner(v)
	if a.absent() || owner < 0 || owner == a.txn || o.txns[owner].status != history.Indeterminate ||
		a.is(inexact) {
		return
	}
	// At READ UNCOMMITTED a plain read proves nothing. Whoever got a lock on the row does.
	if a.write() || a.is(locked) || o.txns[a.txn].level >= history.ReadCommitted {
		o.txns[owner].installed = true
	}
}

// A laterVersion is a version that came after another, with any number of versions in between.
type laterVersion struct{ version, after int32 }
