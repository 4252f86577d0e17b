package analyzer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
)

// rule says why the finding is what it is, with what the engine table cites.
func (t *explainer) rule() string {
	switch t.f.Anomaly {
	case GarbageRead, IncompatibleOrder, LostWrite, Internal, FutureRead:
		return "No isolation level of any engine allows this."
	}
	if t.f.Class == Unprotected {
		return t.unprotected()
	}
	if model := t.a.opts.Model; model != nil {
		return model.rule(t.f)
	}
	protected := &t.a.store.txns[t.protected()]
	server, level := t.a.store.runs[protected.run].info.Server, t.a.opts.level(protected.level)
	p := PromiseOf(server, level, protected.conflicts)
	if t.f.Class == Violation {
		return fmt.Sprintf("%s %s (%s).", levelOf(server, p, level), t.promiseText(p), p.cite())
	}
	rule := t.hazardReason(p, server, level)
	if w := weakest(t.f.Anomaly); w != "" {
		rule += fmt.Sprintf(" The weakest level of the theory that forbids %s is %s.", t.f.Anomaly, w)
	}
	return rule
}

// rule says what the level makes of a finding.
func (l *TheoryLevel) rule(f *Finding) string {
	name := fmt.Sprintf("%s (%s)", l.Name, l.CommonName())
	switch {
	case f.Class == Violation:
		return fmt.Sprintf("%s forbids %s (%s).", name, f.Anomaly, l.Source)
	case l.ForbidsAnomaly(f.Anomaly):
		return "It rests on a statement that was not observed exactly."
	}
	text := fmt.Sprintf("%s does not forbid %s (%s).", name, f.Anomaly, l.Source)
	if w := weakest(f.Anomaly); w != "" {
		text += fmt.Sprintf(" The weakest level that does is %s.", w)
	}
	return text
}

// protected returns the transaction whose guarantee decides: the reader of the first rw, else the
// reader of a wr, else the last writer.
func (t *explainer) protected() int32 {
	w := t.g.witness
	for i := range w {
		if w[i].kind == rw {
			return w[i].from
		}
	}
	for i := range w {
		if w[i].kind == wr {
			return w[i].to
		}
	}
	return w[0].to
}

func levelOf(s history.Server, p *Promise, l history.Level) string {
	text := l.String() + " on " + engineName(s)
	switch {
	case p.SnapshotIsolation:
		text += " with innodb_snapshot_isolation"
	case p.Optimistic:
		text += " in optimistic mode"
	}
	return text
}

func engineName(s history.Server) string {
	return strings.TrimSpace(cmp.Or(s.Engine.Title(), "an unknown engine") + " " + s.Version)
}

// promiseText says which part of a promise a violation breaks.
func (t *explainer) promiseText(p *Promise) string {
	switch {
	case p.forbids(t.f.Anomaly):
		return "forbids " + string(t.f.Anomaly)
	case t.allLocked():
		return "lets a locking read or a write keep its row until the transaction ends"
	case t.f.Anomaly == GSIa && !t.f.Witness[0].Current:
		return "gives all plain SELECTs of a transaction one snapshot"
	case p.FirstCommitterWins:
		return "refuses to write or lock a row that changed since the transaction's snapshot"
	case t.backwards() && p.Snapshot && t.f.Witness[len(t.f.Witness)-1].Current:
		return "gives the plain SELECTs of a transaction a snapshot of all that is committed when the first of them runs"
	case p.Snapshot:
		return "gives all plain SELECTs of a transaction one snapshot"
	case t.backwards():
		return "gives every plain SELECT a snapshot of all that is committed by then"
	default:
		return "gives every plain SELECT one snapshot"
	}
}

// backwards reports whether the finding is one transaction's earlier statement against a later one.
func (t *explainer) backwards() bool {
	w := t.g.witness
	return slices.Contains([]Anomaly{OTV, GMonotonic}, t.f.Anomaly) || w[0].kind == rw && w[len(w)-1].kind != rw &&
		t.a.order.earlier(&w[len(w)-1], &w[0])
}

// allLocked reports whether every read that the finding turns on is a current one.
func (t *explainer) allLocked() bool {
	turns := 0
	for i := range t.f.Witness {
		e := &t.f.Witness[i]
		if e.Kind == RW || t.f.Anomaly.base() == G1a || t.f.Anomaly == G1b {
			turns++
			if !e.Current {
				return false
			}
		}
	}
	return turns > 0
}

// hazardReason says why the engine owes nothing here.
func (t *explainer) hazardReason(p *Promise, s history.Server, l history.Level) string {
	for i := range t.f.Witness {
		if t.f.Witness[i].Inexact {
			return "It rests on a statement that was not observed exactly."
		}
	}
	if i := slices.IndexFunc(t.f.Witness, func(e Edge) bool { return e.BegunAgain }); i >= 0 {
		return fmt.Sprintf("%s gave back the locks and the snapshot of what it had read so far by ROLLBACK TO a "+
			"savepoint that is older than its first read (MySQL's family begins such a transaction again).",
			t.name(t.f.Witness[i].beganAgain()))
	}
	switch {
	case l == history.LevelUnknown:
		return "The isolation level of the transactions is not known."
	case p.Refused:
		return fmt.Sprintf("%s refuses %s, so it promises nothing for it (%s).", engineName(s), l, p.cite())
	case p.Source == "":
		return fmt.Sprintf("Nothing is known of what %s promises at %s.", engineName(s), l)
	case p.forbids(t.f.Anomaly) && p.Together && t.allAt(l):
		return fmt.Sprintf("%s forbids %s among its transactions, but others wrote what was not recorded, "+
			"perhaps in between.", levelOf(s, p, l), t.f.Anomaly)
	case p.forbids(t.f.Anomaly) && t.allAt(l):
		return fmt.Sprintf("%s forbids %s, but it rests on a row that a statement did not find, "+
			"and somebody whom nobody recorded may have taken that row away in the meantime.", levelOf(s, p, l), t.f.Anomaly)
	case p.forbids(t.f.Anomaly):
		return fmt.Sprintf("%s forbids %s, but another transaction of the cycle ran at a level that does not.",
			levelOf(s, p, l), t.f.Anomaly)
	case p.Snapshot && !p.FirstCommitterWins && slices.Contains([]Anomaly{GSingle, GNonadjacent}, t.f.Anomaly.base()):
		return fmt.Sprintf("%s permits it: plain SELECTs see the transaction's snapshot, "+
			"but locking reads and writes are current reads, which see the newest committed version (%s).",
			levelOf(s, p, l), p.cite())
	default:
		return fmt.Sprintf("%s does not forbid %s (%s).", levelOf(s, p, l), t.f.Anomaly, p.cite())
	}
}

// allAt reports whether all transactions of the witness ran at a level.
func (t *explainer) allAt(l history.Level) bool {
	return !slices.ContainsFunc(t.f.Txns(), func(x *history.Txn) bool { return t.a.opts.level(x.Level) != l })
}
