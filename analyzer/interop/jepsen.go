package interop

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"github.com/isotap/isotap/history"
)

// source is a file of values, one after the other.
type source interface {
	// next fills t with the next value; io.EOF after the last one. Its errors begin with a place.
	next(t *tree) error
}

// jepsen reads a history as Jepsen writes it: operations in the order in which they happened. A process
// invokes a transaction, and completes it with its outcome. An :ok without an invocation is taken, too: it may
// have begun at any time.
type jepsen struct {
	h         *History
	tree      tree
	processes map[string]*process
	mops      []mop
	elements  []int32
	clock     int64 // the time of the latest operation
	ops       int64
	timed     bool // operations have times
	index     int64
	indexed   bool
}

// A process is one that runs one transaction after the other.
type process struct {
	session int32
	open    int32 // the transaction that it has invoked; none
	invoked []mop // what that is to do
	began   bool  // it has invoked a transaction
}

// A mop is a micro-operation of a transaction.
type mop struct {
	write bool
	key   int32
	value int32 // of a write
	read  ref   // what a read gave, good as long as the operation is in hand
	place position
}

func newJepsen(h *History) *jepsen {
	return &jepsen{h: h, processes: make(map[string]*process), index: -1}
}

func (j *jepsen) read(s source) error {
	for {
		err := s.next(&j.tree)
		if err == io.EOF {
			return j.finish()
		}
		if err != nil {
			return err
		}
		if err := j.operation(j.tree.root()); err != nil {
			return err
		}
	}
}

// finish gives the transactions that were never completed their operations.
func (j *jepsen) finish() error {
	if len(j.h.txns) == 0 {
		return at(position{1, 1}, "%w", errNoTxns)
	}
	var open []*process
	for _, p := range j.processes {
		if p.open != none {
			open = append(open, p)
		}
	}
	slices.SortFunc(open, func(a, b *process) int { return cmp.Compare(a.open, b.open) })
	for _, p := range open {
		x := &j.h.txns[p.open]
		if err := j.complete(p.open, x.place, history.Indeterminate, x.end, p.invoked); err != nil {
			return err
		}
	}
	return nil
}

// An operation's fields, as far as they matter.
type operation struct {
	kind    ref
	process ref
	value   ref
	time    ref
	index   ref
}

// field returns the one that a key names; nil where that does not matter.
func (o *operation) field(key ref) *ref {
	if key.kind() != keyword && key.kind() != text {
		return nil
	}
	switch string(key.text()) {
	case "type":
		return &o.kind
	case "process":
		return &o.process
	case "value":
		return &o.value
	case "time":
		return &o.time
	case "index":
		return &o.index
	}
	return nil
}

func (j *jepsen) operation(r ref) error {
	if r.kind() != mapping {
		return at(r.position(), "%v is %s, and no operation: a map with :type and :value", r, r.kind())
	}
	var o operation
	for key, value := range r.fields() {
		field := o.field(key)
		if field == nil {
			continue
		}
		if field.t != nil {
			return at(key.position(), "%v stands twice in the operation", key)
		}
		*field = value
	}
	if o.kind.t == nil {
		return at(r.position(), "the operation has no :type")
	}
	if err := j.tick(&o); err != nil {
		return err
	}
	if o.process.t != nil && o.process.kind() != integer && o.process.kind() != null {
		j.h.skipped++ // the nemesis'
		return nil
	}
	return j.step(r, &o)
}

// tick checks the operation's index and takes its time. Without times, operations are a nanosecond apart.
func (j *jepsen) tick(o *operation) error {
	if o.index.t != nil && o.index.kind() == integer {
		if n := o.index.num(); j.indexed && n <= j.index {
			return at(o.index.position(), "index %d comes after index %d: an operation stands twice, or not in its place",
				n, j.index)
		}
		j.index, j.indexed = o.index.num(), true
	}
	if j.ops == 0 {
		j.timed = o.time.t != nil && o.time.kind() == integer
	}
	j.ops++
	if !j.timed {
		j.clock = j.ops
	} else if o.time.t != nil && o.time.kind() == integer {
		j.clock = max(j.clock, o.time.num())
	}
	return nil
}

// statuses are the outcomes by their names.
var statuses = map[string]history.Status{"ok": history.Committed, "fail": history.Aborted,
	"info": history.Indeterminate}

func (j *jepsen) step(r ref, o *operation) error {
	p := j.processOf(o)
	if o.kind.named("invoke") {
		return j.invoke(r, o, p)
	}
	status, ok := statuses[string(o.kind.text())]
	if !ok || !o.kind.named(string(o.kind.text())) {
		return at(o.kind.position(), "type %v is none of :invoke, :ok, :fail, :info", o.kind)
	}
	t, place := none, r.position()
	switch {
	case p != nil && p.open != none:
		t, p.open = p.open, none
	case p != nil && p.began:
		return at(place, "process %v completes a transaction that it has not invoked", o.process)
	case p != nil:
		t = j.h.begin(p.session, place, 0)
	default:
		t = j.h.begin(j.h.session(), place, 0)
	}
	if o.value.t == nil || o.value.kind() == null {
		if status == history.Committed || p == nil {
			return at(place, "the operation has no :value")
		}
		return j.complete(t, place, status, j.clock, p.invoked)
	}
	if err := j.parse(o.value); err != nil {
		return err
	}
	return j.complete(t, place, status, j.clock, j.mops)
}

// processOf returns the operation's process; nil where it names none.
func (j *jepsen) processOf(o *operation) *process {
	name := "nil"
	if o.process.t == nil || o.process.kind() == null {
		if !o.kind.named("invoke") && j.processes[name] == nil {
			return nil
		}
	} else {
		name = o.process.String()
	}
	p := j.processes[name]
	if p == nil {
		p = &process{session: j.h.session(), open: none}
		j.processes[name] = p
	}
	return p
}

func (j *jepsen) invoke(r ref, o *operation, p *process) error {
	if p.open != none {
		return at(r.position(), "process %v invokes a transaction, and the one that it invoked at %s has not ended",
			o.process, j.h.txns[p.open].place)
	}
	if o.value.t == nil || o.value.kind() == null {
		return at(r.position(), "the operation has no :value")
	}
	if err := j.parse(o.value); err != nil {
		return err
	}
	p.open, p.began = j.h.begin(p.session, r.position(), j.clock), true
	p.invoked = append(p.invoked[:0], j.mops...)
	return nil
}

// parse reads a transaction: micro-operations [f key value].
func (j *jepsen) parse(r ref) error {
	j.mops = j.mops[:0]
	if r.kind() != vector {
		return at(r.position(), "%v is %s, and no transaction: a vector of micro-operations such as [:r :x nil]", r,
			r.kind())
	}
	for m := range r.items() {
		if err := j.parseMop(m); err != nil {
			return err
		}
	}
	return nil
}

func (j *jepsen) parseMop(r ref) error {
	var parts [3]ref
	n := 0
	if r.kind() == vector {
		for part := range r.items() {
			if n < len(parts) {
				parts[n] = part
			}
			n++
		}
	}
	if n != 2 && n != 3 || n == 2 && !parts[0].named("r") {
		return at(r.position(), "%v is no micro-operation: a vector of a function, a key and a value", r)
	}
	m := mop{place: r.position(), key: j.h.key(parts[1].appendText(nil)), read: parts[2]}
	switch f := parts[0]; {
	case f.named("r"):
	case f.named("append"), f.named("w"):
		m.write = true
		if err := j.writes(f, parts[2]); err != nil {
			return err
		}
		m.value = j.value(parts[2])
	default:
		return at(f.position(), "%v is not known: micro-operations are :r, :append and :w", f)
	}
	j.mops = append(j.mops, m)
	return nil
}

// writes checks that a write is one of the history's kind.
func (j *jepsen) writes(f, value ref) error {
	kind := registers
	if f.named("append") {
		kind = lists
	}
	if j.h.kind == undecided {
		j.h.kind = kind
	}
	if j.h.kind != kind {
		return at(f.position(), "%v stands in a history of %ss: %s", f, subjectNames[j.h.kind], j.otherwise(kind))
	}
	if value.kind() == null {
		return at(value.position(), "nil is written, which is what stands for no value")
	}
	return nil
}

// otherwise returns how a history of the other kind is read.
func (j *jepsen) otherwise(kind subject) string {
	switch {
	case j.h.format == JepsenJSON:
		return "a history has lists or registers, not both"
	case kind == registers:
		return "histories of registers are read with --format elle-rw"
	}
	return "histories of lists are read with --format elle"
}

// value numbers a value.
func (j *jepsen) value(r ref) int32 {
	if r.kind() == integer {
		return j.h.integer(r.num())
	}
	return j.h.word(r.appendText(nil))
}

// complete gives a transaction its operations. What a transaction read is known only where it committed.
func (j *jepsen) complete(t int32, p position, s history.Status, end int64, mops []mop) error {
	if err := j.h.fill(t, p, s, end); err != nil {
		return err
	}
	for i := range mops {
		m := &mops[i]
		switch {
		case m.write:
			if err := j.h.write(t, m.key, m.value, m.place); err != nil {
				return err
			}
		case s != history.Committed:
			j.h.readUnknown(t, m.key)
		default:
			if err := j.gave(t, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// gave adds a read with what it gave.
func (j *jepsen) gave(t int32, m *mop) error {
	r := m.read
	if j.h.kind == undecided && r.t != nil && r.kind() != null {
		j.h.kind = registers
		if r.kind() == vector {
			j.h.kind = lists
		}
	}
	switch {
	case r.t == nil || r.kind() == null:
		j.readNothing(t, m.key)
	case j.h.kind != lists:
		if r.kind() == vector {
			return at(r.position(), "a read of a register gave %v: %s", r, j.otherwise(lists))
		}
		j.h.readRegister(t, m.key, j.h.version(m.key, j.value(r)))
	case r.kind() != vector:
		return at(r.position(), "a read of a list gave %v, which is %s: %s", r, r.kind(), j.otherwise(registers))
	default:
		j.elements = j.elements[:0]
		for e := range r.items() {
			if e.kind() == null {
				return at(e.position(), "a list holds nil, which is what stands for no value")
			}
			j.elements = append(j.elements, j.h.version(m.key, j.value(e)))
		}
		j.h.readList(t, m.key, j.elements)
	}
	return nil
}

func (j *jepsen) readNothing(t, key int32) {
	if j.h.kind == lists {
		j.h.readList(t, key, nil)
		return
	}
	j.h.readRegister(t, key, initial)
}

// errNoTxns is for files that hold none.
var errNoTxns = errors.New("the file holds no transaction")
