package explore

import (
	"cmp"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken"
	"github.com/isotap/isotap/sqltoken/namedlock"
)

// namedLocks are those that sessions have. A twin is not played behind one: it would have to ask for it, too, and who
// else waits for a name is not known.
type namedLocks map[history.SessionID]*namedlock.Held

// follow takes a transaction of a session, and reports whether it had such a lock at some time.
func (l namedLocks) follow(x *history.Txn, in *instance) bool {
	held := l[x.Session]
	if held == nil {
		held = new(namedlock.Held)
		l[x.Session] = held
	}
	if x.Fresh {
		held.Reset()
	}
	had := held.Any()
	for _, s := range in.inOrder() {
		if !s.failed() {
			held.Follow(s.tokens)
			had = had || held.Any()
		}
	}
	held.TxnEnded()
	return had
}

// inOrder are all of its own statements, with those that took locks by a name.
func (in *instance) inOrder() []statement {
	if len(in.locks) == 0 {
		return in.statements
	}
	all := slices.Concat(in.statements, in.locks)
	slices.SortStableFunc(all, func(a, b statement) int { return cmp.Compare(a.recorded.Num, b.recorded.Num) })
	return all
}

// follow takes a statement of the session that succeeded.
func (s *liveSession) follow(family dbms.Family, text string) {
	if strings.Contains(strings.ToLower(text), "lock") {
		if tokens, err := sqltoken.Statement(family, text); err == nil {
			s.named.Follow(tokens)
		}
	}
	s.locked = s.locked || s.named.Any()
}
