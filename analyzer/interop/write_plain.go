package interop

import (
	"cmp"
	"slices"

	"github.com/isotap/isotap/history"
)

// plume writes lines. What a failed transaction wrote stands there as one transaction -1 a line, which is
// all that the format has of it.
func (x *writer) plume() {
	var ops []written
	for t := range int32(len(x.h.txns)) {
		r := &x.h.txns[t]
		if r.status == history.Indeterminate && !r.seen {
			x.unknownOutcome++
			continue
		}
		ops = x.operations(t, ops)
		for _, o := range ops {
			if x.left(t) {
				x.plumeLine(o, r, int64(t)+1)
			} else if o.write {
				x.plumeLine(o, r, -1)
			}
		}
	}
}

func (x *writer) plumeLine(o written, r *txn, id int64) {
	if o.write {
		x.text("w(")
	} else if r.status != history.Committed {
		return
	} else {
		x.text("r(")
	}
	x.number(int64(o.key) + 1)
	x.text(",")
	if o.version == initial {
		x.number(0)
	} else {
		x.number(x.value(o.version))
	}
	x.text(",")
	x.number(int64(r.session))
	x.text(",")
	x.number(id)
	x.text(")")
	x.line()
}

// dbcop writes sessions in the form of dbcop's own files, a transaction a line.
func (x *writer) dbcop() {
	order := make([]int32, len(x.h.txns)) // by session
	for t := range order {
		order[t] = int32(t)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(x.h.txns[a].session, x.h.txns[b].session) })
	x.text(`{"params": {"id": 0, "n_node": `)
	x.number(int64(x.h.sessions))
	x.text(`, "n_variable": `)
	x.number(int64(len(x.h.keys)))
	x.text(`, "n_transaction": `)
	x.number(int64(len(x.h.txns)))
	x.text(`, "n_event": `)
	x.number(int64(len(x.h.ops)))
	x.text(`}, "info": "isotap", "start": "1970-01-01T00:00:00Z", "end": "1970-01-01T00:00:00Z", "data": [`)
	x.line()
	session := none
	for _, t := range order {
		r := &x.h.txns[t]
		switch {
		case session == none:
			x.text("[")
		case session != r.session:
			x.text("], [")
		default:
			x.text(", ")
		}
		session = r.session
		x.dbcopTransaction(t)
	}
	if session != none {
		x.text("]")
	}
	x.text("]}")
	x.line()
}

func (x *writer) dbcopTransaction(t int32) {
	r := &x.h.txns[t]
	if r.status == history.Indeterminate && !r.seen {
		x.unknownOutcome++
	}
	x.text(`{"events": [`)
	first := true
	for _, o := range x.operations(t, nil) {
		if !o.write && r.status != history.Committed {
			continue
		}
		if !first {
			x.text(", ")
		}
		first = false
		x.dbcopEvent(o)
	}
	x.text(`], "committed": `)
	if x.left(t) {
		x.text("true}")
	} else {
		x.text("false}")
	}
	x.line()
}

func (x *writer) dbcopEvent(o written) {
	if o.write {
		x.text(`{"Write": {"variable": `)
	} else {
		x.text(`{"Read": {"variable": `)
	}
	x.number(int64(o.key))
	x.text(`, "version": `)
	if o.version == initial {
		x.text("null")
	} else {
		x.number(x.value(o.version))
	}
	x.text("}}")
}
