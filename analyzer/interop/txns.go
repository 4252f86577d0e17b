package interop

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// infer finds the order of versions, once all is read.
func (h *History) infer(o Options) {
	if h.kind != lists {
		h.kind = registers // also where nothing was written
		h.takeInitials()
	}
	for v := range h.versions {
		x := &h.versions[v]
		switch {
		case x.txn == none && x.stamp > 0:
			h.garbage++
			x.stmt = int32(h.garbage)
		case x.txn != none && x.stamp > 0 && h.txns[x.txn].status == history.Indeterminate && !h.txns[x.txn].seen:
			h.txns[x.txn].seen = true
			h.settled++
		}
	}
	unplaced := make(map[int32]int) // by key
	if h.kind == lists {
		h.inferLists(unplaced)
	} else {
		h.inferRegisters(o, unplaced)
	}
	for _, n := range unplaced {
		if n > 1 { // one alone has its place
			h.unplaced += n
		}
	}
}

// takeInitials makes reads of what was there before reads of the initial version: of a zero that nobody wrote
// where the format says so, and of the only value that nobody wrote of a register of Jepsen's that nobody
// found empty.
func (h *History) takeInitials() {
	of := make([]int32, len(h.keys)) // by key: what was there before; unknown: nothing else than nil
	for k := range of {
		of[k] = none
	}
	for _, o := range h.ops {
		switch v := o.version; {
		case o.write || v == unknown:
		case v == initial:
			of[o.key] = unknown
		case h.versions[v].txn == none && h.mayBeInitial(v):
			if before := of[o.key]; before != none && before != v {
				of[o.key] = unknown
			} else {
				of[o.key] = v
			}
		}
	}
	for i := range h.ops {
		if o := &h.ops[i]; o.version >= 0 && o.version == of[o.key] {
			h.versions[o.version].stamp = 0
			o.version = initial
		}
	}
	for _, v := range of {
		if v >= 0 && !h.zeroIsInitial {
			h.presumed++
		}
	}
}

func (h *History) mayBeInitial(v int32) bool {
	return h.format == ElleRW || h.format == JepsenJSON || h.zeroIsInitial && h.values[h.versions[v].value] == value{}
}

// Analyze judges the history. The options' Load is not used: a history has its own.
func (h *History) Analyze(ctx context.Context, o analyzer.Options) (*analyzer.Result, error) {
	o.Load = func(id history.TxnID, _ history.SessionID) (*history.Txn, error) {
		t := int32(id.Seq()) - 1
		return h.withTexts(h.txn(t), t), nil
	}
	for i := range h.problems {
		o.Known = append(o.Known, h.problems[i].anomaly)
	}
	o.PartialOrder = h.kind == registers
	a := analyzer.New(o)
	if err := a.Add(h.info()); err != nil {
		return nil, err
	}
	for t := range int32(len(h.txns)) {
		if t%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := a.AddTxn(h.txn(t)); err != nil {
			return nil, err
		}
	}
	for _, p := range h.pairs {
		key := h.keyOf(p[1])
		if err := a.AddOrder(h.row(key), h.tagOf(p[0]), h.tagOf(p[1])); err != nil {
			return nil, err
		}
	}
	r, err := a.Finish()
	if err != nil {
		return nil, err
	}
	for _, f := range r.Findings {
		f.Advice, f.Suggested = nil, nil // it would be about SQL
	}
	var own []*analyzer.Finding
	for i := range h.problems {
		own = append(own, h.finding(&h.problems[i]))
	}
	r.Findings = slices.Concat(own, r.Findings)
	return r, nil
}

// info describes the history as a run. It has ended: what nobody wrote in it nobody wrote.
func (h *History) info() history.Info {
	mode := string(h.format)
	if h.kind != undecided {
		mode += " (" + subjectNames[h.kind] + "s)"
	}
	return history.Info{Run: run, Ended: time.Time{}.Add(time.Duration(max(h.ended, 1))), Mode: mode}
}

func (h *History) row(key int32) history.Row {
	return history.Row{Table: subjectNames[h.kind], ID: h.keys[key]}
}

// tagOf is tag for nodes.
func (h *History) tagOf(v int32) history.Tag {
	if _, is := h.isInitial(v); is {
		return history.Tag{}
	}
	return h.tag(v)
}

// txn returns a transaction as the analyzer takes it.
func (h *History) txn(t int32) *history.Txn {
	x := &h.txns[t]
	out := &history.Txn{ID: h.id(t), Session: history.SessionID(x.session), Status: x.status, Start: x.start,
		End: x.end}
	if x.seen {
		out.Status = history.Committed
	}
	ops := h.opsOf(t)
	out.Stmts = make([]history.Stmt, len(ops))
	for i := range ops {
		out.Stmts[i] = h.stmt(&ops[i], uint32(i)+1)
		out.Stmts[i].Start, out.Stmts[i].End = x.start, x.end
	}
	return out
}

// withTexts adds the keys and values of a transaction's operations.
func (h *History) withTexts(x *history.Txn, t int32) *history.Txn {
	for i, o := range h.opsOf(t) {
		x.Stmts[i].Args = []string{h.keys[o.key], h.result(&o)}
	}
	return x
}

func (h *History) stmt(o *op, num uint32) history.Stmt {
	s := history.Stmt{Num: num, Kind: history.Select, Observation: history.Exact, Shape: "[:r ? ?]"}
	switch {
	case o.write && h.kind == lists:
		s.Kind, s.Shape = history.Update, "[:append ? ?]"
		s.Accesses = []history.Access{h.appended(o)}
	case o.write:
		s.Kind, s.Shape = history.Insert, "[:w ? ?]"
		s.Accesses = []history.Access{{Row: h.row(o.key), Op: history.InsertRow}}
	case o.version == unknown:
		s.Observation = history.Nothing
	default:
		s.Accesses = h.reads(o)
	}
	return s
}

// appended returns what an append replaced, where that is known.
func (h *History) appended(o *op) history.Access {
	a := history.Access{Row: h.row(o.key), Op: history.InsertRow}
	if h.versions[o.version].place > 0 {
		a.Op, a.Version = history.UpdateRow, h.tag(h.below(o.version))
	}
	return a
}

// reads returns the version that a read gave, and of a list the elements in it that should not be there.
func (h *History) reads(o *op) []history.Access {
	reads := []history.Access{{Row: h.row(o.key), Version: h.tag(o.version)}}
	if h.kind != lists {
		return reads
	}
	c := &h.chains[o.key]
	for _, i := range c.broken {
		if i >= o.length-1 || i >= c.agreed {
			break
		}
		reads = append(reads, history.Access{Row: h.row(o.key), Version: h.tag(c.order[i])})
	}
	return reads
}

// result is what an operation wrote or gave, as far as it can be told again.
func (h *History) result(o *op) string {
	switch {
	case o.version == unknown:
		return "nil"
	case o.write || h.kind != lists || o.version == initial:
		return h.describe(o.version)
	}
	if known := h.chains[o.key].known(); int(o.length) <= len(known) {
		return h.texted(known[:o.length])
	}
	return fmt.Sprintf("[… %s]", h.describe(o.version))
}

// Notes returns what of the history was left out, and what of its order is not known.
func (h *History) Notes() []string {
	var notes []string
	note := func(n int, one, many string) {
		if n == 1 {
			notes = append(notes, one)
		} else if n > 1 {
			notes = append(notes, fmt.Sprintf(many, n))
		}
	}
	note(h.skipped, "1 operation is not a client's and was left out",
		"%d operations are not a client's and were left out")
	note(h.presumed, "of 1 register the value that nobody wrote counts as the initial one",
		"of %d registers the value that nobody wrote counts as the initial one")
	note(h.settled, "1 transaction of unknown outcome counts as committed: others saw what it wrote",
		"%d transactions of unknown outcome count as committed: others saw what they wrote")
	note(h.unplaced, "", "of %d versions the order is not known: between two of them of one key there is no dependency")
	return notes
}
