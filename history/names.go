package history

import "fmt"

var statusNames = [...]string{"indeterminate", "committed", "aborted"}

// String returns the status as a word.
func (s Status) String() string { return name(statusNames[:], int(s)) }

var levelNames = [...]string{"UNKNOWN", "READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}

// String returns the level's SQL name.
func (l Level) String() string { return name(levelNames[:], int(l)) }

// ParseLevel reads a level's SQL name, in upper case, words separated by a space or a hyphen (as in
// MySQL's system variable).
func ParseLevel(s string) (Level, error) {
	for i, n := range levelNames {
		if i > 0 && (s == n || sameButHyphens(s, n)) {
			return Level(i), nil
		}
	}
	return LevelUnknown, fmt.Errorf("isolation level %q is none of READ UNCOMMITTED, READ COMMITTED, "+
		"REPEATABLE READ, SERIALIZABLE", s)
}

func sameButHyphens(s, name string) bool {
	if len(s) != len(name) {
		return false
	}
	for i := range len(s) {
		if s[i] != name[i] && (s[i] != '-' || name[i] != ' ') {
			return false
		}
	}
	return true
}

var conflictsNames = [...]string{"unknown", "accepted", "refused", "refused at commit"}

// String returns the setting in words.
func (c Conflicts) String() string { return name(conflictsNames[:], int(c)) }

var kindNames = [...]string{"OTHER", "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "BEGIN", "COMMIT",
	"ROLLBACK", "SAVEPOINT", "DDL", "SET", "CALL", "MERGE", "COPY",
	"RELEASE", "LOCK", "NAMED LOCK"}

// String returns the kind's SQL verb.
func (k Kind) String() string { return name(kindNames[:], int(k)) }

var lockingNames = [...]string{"", "FOR SHARE", "FOR UPDATE"}

// String returns the locking clause; empty for a plain read.
func (l Locking) String() string { return name(lockingNames[:], int(l)) }

var observationNames = [...]string{"nothing", "exact", "inexact", "opaque"}

// String returns the observation as a word.
func (o Observation) String() string { return name(observationNames[:], int(o)) }

var opNames = [...]string{"read", "insert", "update", "delete"}

// String returns the operation as a word.
func (o Op) String() string { return name(opNames[:], int(o)) }

func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("unknown(%d)", i)
}
