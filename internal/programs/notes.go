package programs

import (
	"fmt"
	"strings"

	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/footprint"
	"github.com/isotap/isotap/robust/mining"
)

// evidence says what a recording cannot tell.
func evidence(m *mining.Mined) []string {
	calls, missed := 0, 0
	for _, p := range m.Programs {
		calls += p.Calls
	}
	for _, p := range m.Workload.Programs {
		for _, q := range p.Statements() {
			if q.Type.ByPredicate() && strings.Contains(strings.Join(q.Notes, " "), "may not be there") {
				missed++
			}
		}
	}
	notes := []string{fmt.Sprintf("programs that the recording does not have are not covered, nor are other ways through those that it has: it has %d calls", calls)}
	if m.LeftOut > 0 {
		notes = append(notes, fmt.Sprintf("%d programs with fewer calls than --min-calls are left out, and not covered", m.LeftOut))
	}
	if m.Ended > 0 {
		notes = append(notes, fmt.Sprintf("%d transactions were rolled back, or it is not known how they ended: they are no evidence", m.Ended))
	}
	if missed > 0 {
		notes = append(notes, fmt.Sprintf("%d statements that look for a row by its key did not always find one: they are taken as by predicate", missed))
	}
	for _, what := range m.Unreadable {
		notes = append(notes, "not covered: "+what)
	}
	return notes
}

// Unkept says which of the assumptions (5.4) the engine does not keep for the programs. PostgreSQL keeps them: each statement
// of a transaction at READ COMMITTED takes a snapshot, and a row that was changed since is looked at once more as it is then. InnoDB's
// UPDATE and DELETE at READ COMMITTED pass over rows by what was committed before they waited (semi-consistent reads), so
// that a statement by predicate is no atomic chunk: case troc-fig1.
func Unkept(family footprint.Family, w *robust.Workload) []string {
	if family != footprint.MySQL {
		return nil
	}
	var which []string
	for _, p := range w.Programs {
		for _, q := range p.Statements() {
			if q.Type == robust.PredUpd || q.Type == robust.PredDel || q.Type == robust.PredSel && q.Lock != robust.NoLock {
				which = append(which, p.Label()+" "+q.Name)
			}
		}
	}
	if len(which) == 0 {
		return nil
	}
	return []string{"MySQL, MariaDB: UPDATE, DELETE and locking SELECT by predicate see no single state of the table at READ COMMITTED (semi-consistent reads), which the answers assume: they do not hold for " +
		strings.Join(which, ", ")}
}
