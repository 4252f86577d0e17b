package workload

import (
	"cmp"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// An Isolation is what sessions' transactions run under: a level and, on TiDB, one of two modes.
type Isolation struct {
	Level history.Level // LevelUnknown: the server's default
	// Optimistic transactions wait for nobody, and conflicts fail their COMMIT. TiDB's others are pessimistic.
	Optimistic bool
}

const optimistic = " OPTIMISTIC"

// String returns the name that [ParseIsolation] reads.
func (i Isolation) String() string {
	if i.Optimistic {
		return i.Level.String() + optimistic
	}
	return i.Level.String()
}

// ParseIsolation reads a level's name in any case, with OPTIMISTIC behind it for TiDB's optimistic transactions.
func ParseIsolation(text string) (i Isolation, err error) {
	name, found := strings.CutSuffix(strings.ToUpper(strings.TrimSpace(text)), optimistic)
	i.Optimistic = found
	i.Level, err = history.ParseLevel(strings.TrimSpace(name))
	return i, err
}

// Compare orders isolations, the weaker level first.
func (i Isolation) Compare(j Isolation) int {
	return cmp.Or(cmp.Compare(i.Level, j.Level), strings.Compare(i.String(), j.String()))
}

// Isolations are those that an engine has, weakest level first.
func Isolations(engine dbms.Engine) []Isolation {
	var all []Isolation
	for _, l := range Levels(engine) {
		all = append(all, Isolation{Level: l})
		if engine == dbms.TiDB {
			all = append(all, Isolation{Level: l, Optimistic: true})
		}
	}
	return all
}

// Levels are the isolation levels that an engine has, weakest first.
func Levels(engine dbms.Engine) []history.Level {
	switch engine {
	case dbms.PostgreSQL: // READ UNCOMMITTED is READ COMMITTED there
		return []history.Level{history.ReadCommitted, history.RepeatableRead, history.Serializable}
	case dbms.TiDB: // refuses the others (error 8048)
		return []history.Level{history.ReadCommitted, history.RepeatableRead}
	}
	return []history.Level{history.ReadUncommitted, history.ReadCommitted, history.RepeatableRead, history.Serializable}
}

// Isolate returns the statements that have a session's transactions run under an isolation.
func (d *Dialect) Isolate(i Isolation) []string {
	var all []string
	if i.Level != history.LevelUnknown {
		all = append(all, d.SetLevel(i.Level))
	}
	if i.Optimistic {
		all = append(all, "SET SESSION tidb_txn_mode = 'optimistic'")
	}
	return all
}
