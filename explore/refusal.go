package explore

import (
	"slices"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// A host is what hangs on a server of whether an instance may have a twin there.
type host struct {
	family    dbms.Family
	databases map[string]bool // that are not the instance's, in lower case
	prepares  bool            // it may prepare a transaction, which tells whether that would commit
}

// refusal returns why the instance has no twin on a server; empty where it may have one. Of what a test wrapped in it
// nothing is said.
func (in *instance) refusal(on host) Reason {
	switch {
	case !in.whole:
		return CutValues
	case in.reach() == beyond, in.namesDatabase(on.databases):
		return ReachesOut
	case in.failed:
		return Failed
	case in.named:
		return NamedLock
	case in.reach() != withinRows:
		return LeavesTraces
	case !in.writes():
		return NothingChanged
	case !in.alone:
		return NotAlone
	case in.optimistic:
		return Optimistic
	case in.serializable(on.family) && !on.prepares:
		return Serializable
	}
	return ""
}

// mayHaveTwin reports whether the instance, or one that a test wrapped in it, may have a twin.
func (in *instance) mayHaveTwin(on host) bool {
	on.databases = nil // those are looked at when it is its turn
	return in.leaves() && in.refusal(on) == "" ||
		slices.ContainsFunc(in.inner, func(part *instance) bool { return part.mayHaveTwin(on) })
}

// serializable reports whether it is the instance's COMMIT that is refused for what others did: on the MySQL family
// its reads wait.
func (in *instance) serializable(family dbms.Family) bool {
	return in.level == history.Serializable && family == dbms.PostgreSQLFamily
}
