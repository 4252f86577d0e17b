package analyzer

import (
	"slices"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// findInternalReads looks for them among the accesses in scratch, which the store will have from index at on. What a
// ROLLBACK TO SAVEPOINT undid may have been there for a while, so neither those reads nor those writes count, and
// from the transaction's unseenFrom on (0: none) it may have written what nobody saw.
func (s *store) findInternalReads(id tag, at int32, unseenFrom uint32) {
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
			if o.misses(id, &s.scratch[w]) && !(unseenFrom > 0 && unseenFrom <= o.stmt) && !s.replacesDeleted(id, i) {
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
