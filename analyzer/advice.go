package analyzer

import (
	"fmt"
	"strings"

	"github.com/isotap/isotap/history"
)

// rule says why the finding is what it is, with what the engine table cites.
func (t *teller) rule() string {
	switch t.f.Anomaly {
	case GarbageRead, IncompatibleOrder, LostWrite:
		return "No isolation level of any engine allows this."
	}
	protected := t.protected()
	server := t.a.store.runs[t.a.store.txns[protected].run].info.Server
	level := t.a.store.txns[protected].level
	p := PromiseOf(server, level)
	if t.f.Class == Violation {
		return fmt.Sprintf("%s %s (%s).", levelOf(server, level), t.promiseText(p), p.Source)
	}
	rule := t.hazardReason(p, server, level)
	if w := weakest(t.f.Anomaly); w != "" {
		rule += fmt.Sprintf(" The weakest level of the theory that forbids %s is %s.", t.f.Anomaly, w)
	}
	return rule
}

// protected gives the transaction whose guarantee decides: the reader of the first rw, else the
// reader of a wr, else the last writer.
func (t *teller) protected() int32 {
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

func levelOf(s history.Server, l history.Level) string {
	text := l.String() + " on " + engineName(s)
	if s.SnapshotIsolation && l == history.RepeatableRead {
		text += " with innodb_snapshot_isolation"
	}
	return text
}

func engineName(s history.Server) string {
	name := map[string]string{"mariadb": "MariaDB", "mysql": "MySQL", "tidb": "TiDB", "postgresql": "PostgreSQL", "": "an unknown engine"}[s.Engine]
	if name == "" {
		name = s.Engine
	}
	return strings.TrimSpace(name + " " + s.Version)
}

// promiseText says which part of a promise a violation breaks.
func (t *teller) promiseText(p *Promise) string {
	switch {
	case p.forbids(t.f.Anomaly):
		return "forbids " + string(t.f.Anomaly)
	case t.allLocked():
		return "lets a locking read or a write keep its row until the transaction ends"
	case p.FirstCommitterWins:
		return "refuses to write or lock a row that changed since the transaction's snapshot"
	case p.Snapshot:
		return "gives all plain SELECTs of a transaction one snapshot"
	default:
		return "gives every plain SELECT one snapshot"
	}
}

// allLocked says that every read that the finding turns on is a current one.
func (t *teller) allLocked() bool {
	turns := 0
	for i := range t.f.Witness {
		e := &t.f.Witness[i]
		if e.Kind == RW || t.f.Anomaly == G1a || t.f.Anomaly == G1b {
			turns++
			if !e.Current {
				return false
			}
		}
	}
	return turns > 0
}

// hazardReason says why the engine owes nothing here.
func (t *teller) hazardReason(p *Promise, s history.Server, l history.Level) string {
	for i := range t.f.Witness {
		if t.f.Witness[i].Inexact {
			return "It rests on a statement that was not observed exactly."
		}
	}
	switch {
	case l == history.LevelUnknown:
		return "The isolation level of the transactions is not known."
	case p.Source == "":
		return fmt.Sprintf("Nothing is known of what %s promises at %s.", engineName(s), l)
	case p.forbids(t.f.Anomaly):
		return fmt.Sprintf("%s forbids %s, but another transaction of the cycle ran at a level that does not.", levelOf(s, l), t.f.Anomaly)
	case p.Snapshot && t.f.Anomaly.base() == GSingle:
		return fmt.Sprintf("%s permits it: plain SELECTs see the transaction's snapshot, but locking reads and writes are current reads, which see the newest committed version (%s).", levelOf(s, l), p.Source)
	default:
		return fmt.Sprintf("%s does not forbid %s (%s).", levelOf(s, l), t.f.Anomaly, p.Source)
	}
}

// advice says what to change, the smallest fix first.
func (t *teller) advice() []string {
	if t.f.Class == Violation {
		return []string{"This is the engine's fault, not the application's: report it to its developers, with the statements of the witness."}
	}
	var fixes []string
	switch t.f.Anomaly {
	case LostUpdate:
		fixes = t.lockReads()
		read, write := t.f.Witness[0].FromStmt, t.f.Witness[len(t.f.Witness)-1].ToStmt
		if read != nil && write != nil {
			fixes = append(fixes,
				fmt.Sprintf("Or let %s compute the new value from the column itself (SET c = c + ?) in place of writing what %s read.", shapeOf(write), shapeOf(read)),
				fmt.Sprintf("Or add a version column: check it in the WHERE of %s, and begin again when no row is affected.", shapeOf(write)))
		}
	case G0, G1a, G1b, G1c:
		return []string{"Run these transactions at " + t.levelAgainst() + "."}
	default:
		fixes = t.lockReads()
	}
	return append(fixes, "Or run these transactions at "+t.levelAgainst()+", and repeat those that the server then refuses.")
}

// lockReads advises to lock the rows that a decision rests on, for each plain SELECT of an rw.
func (t *teller) lockReads() []string {
	var fixes []string
	seen := make(map[string]bool)
	for i := range t.f.Witness {
		e := &t.f.Witness[i]
		if e.Kind != RW || e.FromStmt == nil || seen[e.FromStmt.Shape] {
			continue
		}
		seen[e.FromStmt.Shape] = true
		if locked, ok := withLock(e.FromStmt); ok {
			fixes = append(fixes, fmt.Sprintf("Lock the rows that the transaction goes by: `%s`.", locked))
		} else if e.FromStmt.Locking == history.NoLock {
			fixes = append(fixes, fmt.Sprintf("Lock the rows of %s that the transaction goes by before %s reads them.", e.Row.Table, shapeOf(e.FromStmt)))
		}
	}
	return fixes
}

// withLock appends FOR UPDATE to a plain SELECT where that is all it takes.
func withLock(s *history.Stmt) (string, bool) {
	if s.Kind != history.Select || s.Locking != history.NoLock {
		return "", false
	}
	shape := strings.TrimRight(s.Shape, " \t\r\n;")
	words := " " + strings.Join(strings.Fields(strings.ToUpper(shape)), " ") + " "
	for _, w := range []string{" UNION ", " INTERSECT ", " EXCEPT ", " GROUP BY ", " DISTINCT ", " INTO ", " PROCEDURE ", "--", "#", "/*"} {
		if strings.Contains(words, w) {
			return "", false
		}
	}
	if strings.Count(words, "SELECT") != 1 {
		return "", false
	}
	return shape + " FOR UPDATE", true
}

// levelAgainst names the weakest level of the engine that forbids the anomaly.
func (t *teller) levelAgainst() string {
	s := t.a.store.runs[t.a.store.txns[t.protected()].run].info.Server
	for _, l := range []history.Level{history.ReadCommitted, history.RepeatableRead} {
		p := PromiseOf(s, l)
		if p.forbids(t.f.Anomaly) || p.FirstCommitterWins && t.f.Anomaly.base() == GSingle || p.Snapshot && t.snapshotsOnly() {
			return l.String()
		}
	}
	if s.Engine == "mariadb" && t.f.Anomaly.base() == GSingle {
		return "REPEATABLE READ with innodb_snapshot_isolation=ON, or SERIALIZABLE"
	}
	return history.Serializable.String()
}

// snapshotsOnly says that the finding is one transaction's plain reads seeing two states.
func (t *teller) snapshotsOnly() bool {
	first, last := &t.f.Witness[0], &t.f.Witness[len(t.f.Witness)-1]
	return t.f.Anomaly.base() == GSingle && last.Kind == WR && !first.Current && !last.Current
}
