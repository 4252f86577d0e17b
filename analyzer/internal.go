package analyzer

import (
	"slices"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// findInternalReads looks for them among a transaction's accesses in scratch, which the store will have from its access
// on. What a ROLLBACK TO SAVEPOINT undid may have been there for a while, so neither those reads nor those writes
// count, and from the transaction's unseenFrom on (0: none) it may have written what nobody saw.
func (s *store) findInternalReads(t *txn) {
	id, at := tag{seq: t.seq, run: t.run}, int32(t.access)
	if s.large {
		clear(s.latest)
	}
	for i := range s.scratch {
		o := &s.scratch[i]
		switch {
		case o.certain():
			if s.large {
				s.latest[o.row] = int32(i)
			}
		case o.write() || o.unfound() || o.is(inexact) || o.is(void) || s.runs[o.tagRun].info.Run == history.Unrecorded:
		case o.own(id) && o.tagStmt > o.stmt:
			s.ownReads = append(s.ownReads, internalRead{at + int32(i), none})
		default:
			w := s.lastInternal(i)
			if w < 0 || s.scratch[w].stmt >= o.stmt {
				continue
			}
			if o.misses(id, &s.scratch[w]) && !(t.unseenFrom > 0 && t.unseenFrom <= o.stmt) && !s.replacesDeleted(id, i) &&
				!s.movedSince(t, i) {
				s.ownReads = append(s.ownReads, internalRead{at + int32(i), at + w})
			}
		}
	}
}

// lastInternal finds the last certain write of a row before an access in scratch; -1 for none.
func (s *store) lastInternal(i int) int32 {
	row := s.scratch[i].row
	if s.large {
		if w, ok := s.latest[row]; ok {
			return w
		}
		return none
	}
	for w := i - 1; w >= 0; w-- {
		if s.scratch[w].row == row && s.scratch[w].certain() {
			return int32(w)
		}
	}
	return none
}

// own reports whether the version of an access is one of the transaction with the given id.
func (a *access) own(id tag) bool { return a.seq == id.seq && a.tagRun == id.run }

// misses reports whether a read does not show the write of its own transaction before it, nor a later one.
func (a *access) misses(id tag, write *incomingAccess) bool {
	if !a.own(id) || a.tagStmt < write.stmt {
		return true
	}
	return a.tagStmt == write.stmt && write.op == history.DeleteRow
}

// replacesDeleted reports whether the read in scratch may be of a row that was deleted since the snapshot was taken,
// beside the one that the transaction has made under the same key: PostgreSQL shows both, and knows rows by keys.
func (s *store) replacesDeleted(id tag, i int) bool {
	read := &s.scratch[i]
	made := func(o incomingAccess) bool { return o.row == read.row && o.op == history.InsertRow }
	return !read.own(id) && s.runs[id.run].info.Server.Engine == dbms.PostgreSQL &&
		slices.ContainsFunc(s.scratch[:i], made)
}

// movedSince reports whether the read in scratch may be of the place that its row had in the snapshot, though the
// transaction has written the row in another: on MySQL's family an UPDATE of a row's key makes a row at the new place.
// A snapshot taken before still shows the old one, whatever its transaction did at the new. Recordings hold no keys.
// That another had replaced what the snapshot shows before the transaction wrote the row tells that it may be so. What
// the transaction missed is a dependency, too: where no key changed, that is what tells.
func (s *store) movedSince(t *txn, i int) bool {
	read := &s.scratch[i]
	if read.own(tag{seq: t.seq, run: t.run}) || read.is(current) || t.level != history.RepeatableRead ||
		s.runs[t.run].info.Server.Engine.Family() != dbms.MySQLFamily {
		return false
	}
	first := slices.IndexFunc(s.scratch[:i], func(o incomingAccess) bool { return o.row == read.row && o.certain() })
	w := &s.scratch[first]
	return w.op != history.InsertRow && w.tag() != read.tag() && t.fixed <= w.stmt
}
