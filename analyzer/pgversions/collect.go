package pgversions

import (
	"fmt"
	"math"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/numset"
)

// Add adds a run. One whose transactions come without it is a server of its own without a horizon.
func (r *Resolver) Add(info history.Info) {
	r.runs[r.run(info.Run)].info = info
	r.unended = r.unended || info.Ended.IsZero()
	for _, table := range info.Rewritten {
		r.rewritten[table] = true
		if at := strings.LastIndexByte(table, '@'); at >= 0 {
			r.rewritten[table[:at]] = true
		}
	}
}

// seesForgotten takes in that a row was read in a version that is no longer known: whoever is the first to
// replace a version of that row replaces this one, for what is forgotten is older than what is not.
func (r *Resolver) seesForgotten(row history.Row, p *history.TupleID) {
	if len(r.forgotten) == 0 || row.ID == "" {
		return
	}
	for _, xids := range r.forgotten {
		if n := r.number(row, p.Leaf); xids.Has(p.XID) && (r.lasts[n].XID == 0 || before(r.lasts[n].XID, p.XID)) {
			r.lasts[n] = *p
		}
	}
}

// Forget says that a run had transactions with these ids that are not collected (any more). Their versions are
// known to have been recorded, and nothing else: their tags are of the run [history.Forgotten]. It is called before
// Collect.
func (r *Resolver) Forget(run history.Run, xids *numset.Set) {
	r.forgotten[run] = xids
}

// AddSession adds a session, before the transactions. One that is not added is in the database that the first
// one added is in.
func (r *Resolver) AddSession(s history.Session) {
	switch {
	case s.Database == "":
	case r.first == "":
		r.first = s.Database
	case s.Database != r.first:
		r.databases[sessionKey{s.Run, s.ID}] = s.Database
	}
}

func (r *Resolver) run(number history.Run) int32 {
	i, ok := r.runIndex[number]
	if !ok {
		i = int32(len(r.runs))
		r.runs = append(r.runs, run{info: history.Info{Run: number}})
		r.runIndex[number] = i
	}
	return i
}

// Collect takes in what a transaction wrote. Transactions come in any order. It keeps nothing of t but
// the names of rows. It fails past 2^31 writes.
func (r *Resolver) Collect(t *history.Txn) error {
	x := txn{id: t.ID, status: t.Status, first: int32(len(r.writes)), run: r.run(t.ID.Run())}
	i := int32(len(r.txns))
	for j := range t.Stmts {
		s := &t.Stmts[j]
		x.nested = x.nested || s.Kind == history.Savepoint
		x.hides = x.hides || hides(s)
		for k := range min(len(s.Accesses), len(s.TupleIDs)) {
			a, p := &s.Accesses[k], &s.TupleIDs[k]
			of := r.meets(r.recordedTable(t, a.Row.Table, p.Leaf))
			if a.Op == history.Read {
				r.seesForgotten(history.Row{Table: of.name, ID: a.Row.ID}, p)
			} else {
				r.write(write{txn: i, stmt: s.Num, start: s.Start, op: a.Op, flags: flagsOf(s, a, p)}, of, a.Row.ID, p)
				r.sees(&x, p.NewXID)
			}
		}
	}
	if len(r.writes) > math.MaxInt32 {
		return fmt.Errorf("collecting versions: more than %d writes", math.MaxInt32)
	}
	x.count = int32(len(r.writes)) - x.first
	if x.count > 0 {
		r.txns = append(r.txns, x)
		r.txnIndex[t.ID] = i
	}
	return nil
}

// write takes in a write of a table's row, and what it left.
func (r *Resolver) write(w write, of table, id string, p *history.TupleID) {
	w.lsn, w.ctid, w.xid, w.leaf, w.row, w.pred = p.LSN, p.NewID, p.NewXID, p.Leaf, none, none
	if id == "" && !p.Tagged {
		r.keyless.collect(int32(len(r.writes)), of, p)
	} else if id != "" {
		w.row = r.number(history.Row{Table: of.name, ID: id}, p.Leaf)
	}
	r.writes = append(r.writes, w)
}

// hides reports whether a statement may have written what is not among its writes.
func hides(s *history.Stmt) bool {
	return s.Observation == history.Opaque || s.Observation == history.Inexact
}

func flagsOf(s *history.Stmt, a *history.Access, p *history.TupleID) (f flags) {
	if s.Void {
		f |= void
	}
	if a.Inexact {
		f |= inexact
	}
	if p.Tagged {
		f |= tagged
	}
	return f
}

// sees takes in that a transaction has an xid.
func (r *Resolver) sees(x *txn, xid uint32) {
	switch {
	case xid == 0:
		return
	case x.xid == 0:
		x.xid = xid
	case x.xid != xid:
		x.nested = true
	}
	if run := &r.runs[x.run]; run.newest == 0 || before(run.newest, xid) {
		run.newest = xid
	}
}

// before compares xids as PostgreSQL does, whose counter wraps around.
func before(a, b uint32) bool { return int32(a-b) < 0 }
