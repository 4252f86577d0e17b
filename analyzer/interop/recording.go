package interop

import (
	"fmt"
	"time"

	"github.com/isotap/isotap/history"
)

// A Recording takes in the transactions of isotap's recordings, to be written in another checker's format.
// Each version of a row becomes a value of its own: a number that no other version has. It is used by one
// goroutine.
type Recording struct {
	h        *History
	versions map[rowVersion]int32
	sessions map[runSession]int32
	runs     map[history.Run]time.Duration // how long after the first one's start each run began
	started  time.Time                     // the first one
	inserted map[int32]bool                // rows of which a version is that began them
	loss     loss
}

type rowVersion struct {
	key int32
	tag history.Tag
}

type runSession struct {
	run     history.Run
	session history.SessionID
}

// loss counts what no other format can say.
type loss struct {
	inexact, void, opaque int
}

// NewRecording returns an empty recording.
func NewRecording() *Recording {
	h := newHistory("")
	h.kind = rows
	return &Recording{h: h, versions: make(map[rowVersion]int32), sessions: make(map[runSession]int32),
		runs: make(map[history.Run]time.Duration), inserted: make(map[int32]bool)}
}

// AddRun adds a run, before its transactions. Those of several runs are put in the order of the proxies'
// clocks.
func (r *Recording) AddRun(info history.Info) error {
	if len(r.runs) == 0 {
		r.started = info.Started
	}
	r.runs[info.Run] = info.Started.Sub(r.started)
	return nil
}

// AddTxn adds a transaction: those of a session in order. Nothing of it is kept.
func (r *Recording) AddTxn(x *history.Txn) error {
	k := runSession{x.ID.Run(), x.Session}
	session, ok := r.sessions[k]
	if !ok {
		session = r.h.session()
		r.sessions[k] = session
	}
	since := int64(r.runs[x.ID.Run()])
	t := r.h.begin(session, position{}, since+x.Start)
	if err := r.h.fill(t, position{}, x.Status, since+x.End); err != nil {
		return fmt.Errorf("export transaction %s: %w", x.ID, err)
	}
	for i := range x.Stmts {
		r.statement(t, x.ID, &x.Stmts[i])
	}
	return nil
}

func (r *Recording) statement(t int32, id history.TxnID, s *history.Stmt) {
	if s.Observation == history.Opaque {
		r.loss.opaque++
	}
	for i := range s.Accesses {
		a := &s.Accesses[i]
		key := r.h.key([]byte(a.Row.Table + "/" + a.Row.ID))
		r.priors(key, a)
		switch {
		case a.Op == history.Read && a.Inexact:
			r.loss.inexact++
		case a.Op == history.Read:
			v := r.see(t, key, a.Version)
			r.h.addOp(t, op{key: key, version: v})
		case s.Void:
			r.loss.void++
		default:
			r.write(t, key, history.Tag{Txn: id, Stmt: s.Num}, a)
		}
	}
}

// version numbers the version of a row that a tag names.
func (r *Recording) version(key int32, tag history.Tag) int32 {
	if tag.Initial() {
		return initial
	}
	k := rowVersion{key, tag}
	v, ok := r.versions[k]
	if !ok {
		v = int32(len(r.h.versions))
		r.versions[k] = v
		r.h.versions = append(r.h.versions, version{key: key, txn: none, value: r.h.integer(int64(v) + 1)})
		r.h.replaced = append(r.h.replaced, unknown)
	}
	return v
}

// see returns the version of a tag that a transaction saw, and notes that it is there.
func (r *Recording) see(t, key int32, tag history.Tag) int32 {
	v := r.version(key, tag)
	if v == initial {
		return v
	}
	x := &r.h.versions[v]
	x.stamp = 1
	if x.txn != none && x.txn != t && r.h.txns[x.txn].status == history.Indeterminate {
		r.h.txns[x.txn].seen = true
	}
	return v
}

// priors takes in a row's list, as far as an access saw it: what those replaced that nobody recorded.
func (r *Recording) priors(key int32, a *history.Access) {
	above := a.Version
	for i := len(a.Prior) - 1; i >= 0; i-- {
		if v := r.version(key, above); v != initial && r.h.versions[v].txn == none && r.h.replaced[v] == unknown {
			r.h.replaced[v] = r.version(key, a.Prior[i])
		}
		above = a.Prior[i]
	}
}

// write adds a write. What a statement wrote to a row twice is one version.
func (r *Recording) write(t, key int32, tag history.Tag, a *history.Access) {
	v := r.version(key, tag)
	x := &r.h.versions[v]
	if x.txn != none {
		return
	}
	if a.Inexact {
		r.loss.inexact++
	}
	before := unknown
	switch {
	case a.Inexact:
		before = r.version(key, a.Version)
	case a.Op != history.InsertRow || !a.Version.Initial():
		before = r.see(t, key, a.Version)
	case !r.inserted[key]:
		r.inserted[key] = true
		before = initial
	}
	r.h.addOp(t, op{key: key, version: v, write: true, unsure: a.Inexact, replaces: a.Op != history.InsertRow &&
		!a.Inexact})
	x = &r.h.versions[v]
	x.txn, x.stmt = t, r.h.txns[t].count
	if x.stamp > 0 && r.h.txns[t].status == history.Indeterminate {
		r.h.txns[t].seen = true
	}
	r.h.replaced[v] = before
}

// History returns all that was added.
func (r *Recording) History() *History {
	r.h.lost = r.loss
	return r.h
}
