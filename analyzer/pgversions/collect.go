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
		if n := r.number(row); xids.Has(p.XID) && (r.lasts[n].XID == 0 || before(r.lasts[n].XID, p.XID)) {
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
		x.hides = x.hides || s.Observation == history.Opaque || s.Observation == history.Inexact
		for k := range min(len(s.Accesses), len(s.TupleIDs)) {
			if a := &s.Accesses[k]; a.Op == history.Read {
				r.seesForgotten(r.local(t, a.Row), &s.TupleIDs[k])
			} else {
				r.write(i, s, a.Op, a.Inexact, r.local(t, a.Row), &s.TupleIDs[k])
				r.sees(&x, s.TupleIDs[k].NewXID)
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

func (r *Resolver) write(txn int32, s *history.Stmt, op history.Op, unsure bool, row history.Row, p *history.TupleID) {
	w := write{lsn: p.LSN, start: s.Start, ctid: p.NewID, xid: p.NewXID, leaf: p.Leaf, row: none, txn: txn,
		stmt: s.Num, pred: none, op: op}
	if s.Void {
		w.flags |= void
	}
	if unsure {
		w.flags |= inexact
	}
	if p.Tagged {
		w.flags |= tagged
	}
	if row.ID == "" && !p.Tagged {
		r.keyless.collect(int32(len(r.writes)), row.Table, p)
	} else if row.ID != "" {
		w.row = r.number(row)
	}
	r.writes = append(r.writes, w)
}

func (r *Resolver) number(row history.Row) int32 {
	n, ok := r.rows[row]
	if !ok {
		n = int32(len(r.rows))
		r.rows[row] = n
	}
	return n
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
