package foreign

import (
	"hash/fnv"
	"math"
	"slices"
	"strconv"

	"github.com/isotap/isotap/history"
)

// Resolve names the versions in a recorded transaction, and completes its statements by what the log alone knows of
// them.
func (r *Resolver) Resolve(t *history.Txn) {
	v := views{txn: t}
	for i := range t.Stmts {
		s := &t.Stmts[i]
		v.undone = v.undoneBefore(s)
		for j := range s.Accesses {
			a := &s.Accesses[j]
			if v.undone && a.Op != history.InsertRow {
				doubt(t, a)
				continue
			}
			if c := r.chains[a.Row]; c != nil {
				v.resolve(c, s, a)
			}
			if r.torn[a.Row] {
				doubt(t, a)
			}
			if changes := r.silent[a.Row.Table]; changes != nil && a.Op == history.Read && r.mayHaveChanged(changes, &v, s, a) {
				a.Version, a.Prior = unknown(t.ID), nil
			}
		}
		v.passed(s)
	}
	for _, e := range r.effects[t.ID] {
		if r.chains[e.row] == nil {
			continue
		}
		i := slices.IndexFunc(t.Stmts, func(s history.Stmt) bool { return s.Num == e.stmt })
		if i < 0 || t.Stmts[i].TupleIDs != nil {
			continue
		}
		s := &t.Stmts[i]
		s.Accesses = append(slices.Clip(s.Accesses), history.Access{Row: e.row, Op: e.op, Version: e.version})
		if s.Images != nil {
			s.Images = append(slices.Clip(s.Images), "")
		}
	}
}

// doubt has an access to a row rest on nothing that its tag says: others wrote under it, and in which order is not
// known.
func doubt(t *history.Txn, a *history.Access) {
	a.Prior = nil
	if a.Op == history.Read {
		a.Version = unknown(t.ID)
	} else {
		a.Inexact = true
	}
}

// views are the times at which statements of a transaction saw rows.
type views struct {
	txn *history.Txn
	// taken is when its snapshot had been taken at the latest; 0: it has none yet.
	taken int64
	// wroteUnseen says that the transaction may have written unseen before, and undone that it may have undone that
	// since: the log does not have it then.
	wroteUnseen, undone bool
}

// undoneBefore reports whether a statement may meet what its own transaction wrote unseen, and has undone since.
func (v *views) undoneBefore(s *history.Stmt) bool {
	switch {
	case s.Kind == history.Rollback:
		return v.txn.Status == history.Aborted && v.undone
	case mayWriteUnseen(*s) && (s.Void || v.txn.Status == history.Aborted):
		return true
	}
	return v.undone
}

// passed notes that a statement took the snapshot, or may have written unseen. ROLLBACK TO a savepoint from before the
// snapshot gives that up, and the next read takes another: any ROLLBACK TO is taken for one.
func (v *views) passed(s *history.Stmt) {
	v.wroteUnseen = v.wroteUnseen || mayWriteUnseen(*s)
	if s.Kind == history.Rollback {
		v.taken = 0
	}
	if v.taken == 0 && s.Kind == history.Select && s.Locking == history.NoLock && !s.Void && len(s.Accesses) > 0 {
		v.taken = s.End
	}
}

// of returns between when and when a statement saw rows, and whether only those that had been committed.
func (v *views) of(s *history.Stmt, a *history.Access) (from, to int64, committed bool) {
	from, to = v.txn.Start, s.End
	if to <= 0 {
		to = math.MaxInt64
	}
	level := v.txn.Level
	locks := a.Op != history.Read || s.Locking != history.NoLock
	switch {
	case level == history.ReadCommitted:
		return s.Start, to, true
	case level < history.ReadCommitted:
		return from, to, locks
	case !locks && s.Kind == history.Select && v.taken > 0 && level == history.RepeatableRead:
		return from, min(to, v.taken), true
	}
	return from, to, true
}

// resolve names the version that an access read or replaced, and those below it.
func (v *views) resolve(c *chain, s *history.Stmt, a *history.Access) {
	if a.Op == history.InsertRow {
		return
	}
	shown := a.Version
	prior := c.complete(a.Prior)
	start, end := c.showing(shown)
	group := c.versions[start:end]
	switch own := (history.Tag{Txn: v.txn.ID, Stmt: s.Num}); {
	case len(group) == 0:
	case a.Op != history.Read:
		replaceable := c.standing(start, end, true) // a write waits for who wrote before
		switch at := c.find(own); {
		case at > 0:
			a.Version = c.versions[at-1].tag
		case len(replaceable) == 1 && !v.mayBeOwn(group[1:]):
			a.Version = group[0].tag
		default:
			a.Inexact = true // it was undone, or is past the log's end
		}
	default:
		at := v.own(group, s)
		if at < 0 {
			from, to, committed := v.of(s, a)
			at = seenOf(c.standing(start, end, committed), from, to, committed)
		}
		if at < 0 || v.mayBeOwn(group[at+1:]) {
			a.Version = unknown(v.txn.ID)
			break
		}
		a.Version = group[at].tag
	}
	if len(group) == 0 {
		a.Prior = prior
		return
	}
	at := c.find(a.Version)
	if at < start || at >= end {
		a.Prior = nil
		return
	}
	a.Prior = c.below(prior, start, at)
}

// reach is how many versions a list has at most that isotap_wlist has no more of, for that has only its last ones, too:
// of a row that somebody past isotap writes all the time each read would have them all.
const reach = 32

// below returns a list with the versions from start on that stand below the one at a place, so that the list leads up
// to that.
func (c *chain) below(list []history.Tag, start, at int) []history.Tag {
	limit := max(reach, len(list))
	from := max(start, at-limit)
	list = list[max(0, len(list)-(limit-(at-from))):]
	if from > start {
		list = nil // it would lead past those that are left out
	}
	for _, v := range c.versions[from:at] {
		list = append(list, v.tag)
	}
	return list
}

// own returns which version of a group is the transaction's own, and was there for a statement to read; -1 for none.
func (v *views) own(group []version, s *history.Stmt) int {
	for i := len(group) - 1; i >= 0; i-- {
		if tag := group[i].tag; tag.Txn == v.txn.ID && tag.Stmt < s.Num {
			return i
		}
	}
	return -1
}

// mayBeOwn reports whether one of some versions may be what the transaction wrote unseen before: of which of its
// statements a version is, or whose it is, may not be known.
func (v *views) mayBeOwn(versions []version) bool {
	return v.wroteUnseen && slices.ContainsFunc(versions, func(x version) bool {
		return x.tag.Txn == v.txn.ID || x.tag.Txn.Run() == history.Unrecorded
	})
}

// seenOf returns which version of a group a statement saw that looked between two times; -1 where that is open.
func seenOf(group []version, from, to int64, committed bool) int {
	first, last := 0, len(group)-1
	for first < last && group[first+1].seen > 0 && group[first+1].seen <= from {
		first++
	}
	for committed && last > first && group[last].from >= to {
		last--
	}
	if first == last {
		return first
	}
	return -1
}

// complete returns a list of tags with those that were left out of it, and no more than its last ones. The list may be
// shared: it is not changed.
func (c *chain) complete(tags []history.Tag) []history.Tag {
	if len(tags) == 0 {
		return nil
	}
	all, limit := make([]history.Tag, 0, len(tags)+1), max(reach, len(tags))
	for _, t := range slices.Backward(tags) {
		from, to := c.showing(t)
		if from == to {
			all = append(all, t)
		}
		for i := to - 1; i >= max(from, to-limit); i-- {
			all = append(all, c.versions[i].tag)
		}
		if len(all) >= limit {
			break
		}
	}
	all = all[:min(len(all), limit)]
	slices.Reverse(all)
	return all
}

// unknown returns the tag of a version of which it is open which it was. A transaction that meets several under one tag
// is told nothing of their difference.
func unknown(reader history.TxnID) history.Tag {
	h := fnv.New32a()
	h.Write(strconv.AppendUint(nil, uint64(reader), 10))
	return history.Tag{Txn: history.MakeTxnID(history.Unrecorded, h.Sum32()), Stmt: 1}
}
