package interop

import (
	"cmp"
	"slices"

	"github.com/isotap/isotap/history"
)

// A moment is when a transaction begins or ends.
type moment struct {
	time int64
	turn int32 // among those of one time
	txn  int32
	end  bool
}

// moments returns those of all transactions in their order. What happens at one time counts as concurrent,
// except within a session.
func (x *writer) moments() []moment {
	all := make([]moment, 0, 2*len(x.h.txns))
	last := make(map[int32]moment) // by session
	for t := range int32(len(x.h.txns)) {
		r := &x.h.txns[t]
		begin := moment{time: r.start, txn: t}
		if before, ok := last[r.session]; ok && before.time >= begin.time {
			begin.time, begin.turn = before.time, before.turn+1
		}
		end := moment{time: r.end, turn: 1, txn: t, end: true}
		if end.time <= begin.time {
			end.time, end.turn = begin.time, begin.turn+1
		}
		last[r.session] = end
		all = append(all, begin, end)
	}
	slices.SortStableFunc(all, func(a, b moment) int {
		return cmp.Or(cmp.Compare(a.time, b.time),
			cmp.Compare(a.turn, b.turn))
	})
	return all
}

// jepsen writes a history of Jepsen's, an operation a line.
func (x *writer) jepsen() {
	var ops []written
	processes := make(map[int32]int64) // by session
	next := int64(0)
	index, clock := int64(0), int64(0)
	for _, m := range x.moments() {
		r := &x.h.txns[m.txn]
		process, ok := processes[r.session]
		if !ok {
			process = next
			next++
			processes[r.session] = process
		}
		ops = x.operations(m.txn, ops)
		if !m.end {
			x.operation(index, process, m.time, "invoke", ops, false)
		} else {
			x.operation(index, process, m.time, outcomes[r.status], ops, r.status == history.Committed)
		}
		if m.end && r.status == history.Indeterminate {
			delete(processes, r.session) // its process does nothing more
		}
		index, clock = index+1, m.time
	}
	if !x.registers() {
		x.closing(index, next, clock+1)
	}
	x.unwritten, x.unplaced = x.unwritten/2, x.unplaced/2 // every transaction was looked at twice
}

var outcomes = map[history.Status]string{history.Committed: "ok", history.Aborted: "fail",
	history.Indeterminate: "info"}

// closing reads the rows whose last version nobody read.
func (x *writer) closing(index, process, clock int64) {
	replaced, read := make([]bool, len(x.h.versions)), make([]bool, len(x.h.versions))
	for t := range int32(len(x.h.txns)) {
		for _, o := range x.h.opsOf(t) {
			if before := o.version; o.write && x.left(t) {
				if before = x.h.replaced[o.version]; before >= 0 {
					replaced[before] = true
				}
			} else if !o.write && before >= 0 && x.h.txns[t].status == history.Committed {
				read[before] = true
			}
		}
	}
	var ops []written
	for v := range int32(len(x.h.versions)) {
		if y := &x.h.versions[v]; y.txn != none && x.left(y.txn) && !replaced[v] && !read[v] && x.climb(v) {
			ops = append(ops, written{key: y.key, version: v})
		}
	}
	if len(ops) > 0 {
		x.operation(index, process, clock, "invoke", ops, false)
		x.operation(index+1, process, clock+1, "ok", ops, true)
	}
}

// operation writes one operation, with what its reads gave where that is known.
func (x *writer) operation(index, process, time int64, kind string, ops []written, known bool) {
	if x.format == JepsenJSON {
		x.text(`{"index": `)
		x.number(index)
		x.text(`, "time": `)
		x.number(time)
		x.text(`, "type": "` + kind + `", "process": `)
		x.number(process)
		x.text(`, "f": "txn", "value": [`)
	} else {
		x.text("{:index ")
		x.number(index)
		x.text(", :time ")
		x.number(time)
		x.text(", :type :" + kind + ", :process ")
		x.number(process)
		x.text(", :f :txn, :value [")
	}
	for i, o := range ops {
		if i > 0 {
			x.text(x.comma())
		}
		x.micro(o, known)
	}
	x.text("]}")
	x.line()
}

// comma parts two values.
func (x *writer) comma() string {
	if x.format == JepsenJSON {
		return ", "
	}
	return " "
}

// micro writes a micro-operation.
func (x *writer) micro(o written, known bool) {
	function := "r"
	switch {
	case o.write && x.registers():
		function = "w"
	case o.write:
		function = "append"
	}
	nothing := "nil"
	if x.format == JepsenJSON {
		nothing = "null"
		x.text(`["` + function + `"`)
	} else {
		x.text("[:" + function)
	}
	x.text(x.comma())
	x.quoted(x.h.keys[o.key])
	x.text(x.comma())
	switch {
	case o.write:
		x.number(x.value(o.version))
	case !known || o.version == initial:
		x.text(nothing)
	case x.registers():
		x.number(x.value(o.version))
	default:
		x.list(o.version)
	}
	x.text("]")
}

// list writes a row's versions up to v, as the list that they are.
func (x *writer) list(v int32) {
	x.climb(v)
	x.text("[")
	for i, w := range x.path {
		if i > 0 {
			x.text(x.comma())
		}
		x.number(x.value(w))
	}
	x.text("]")
}
