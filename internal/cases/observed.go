package cases

import (
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario/replay"
)

// An Observation is what one step did on a server that was measured.
type Observation struct {
	N         int              `yaml:"n"`
	Status    replay.Status    `yaml:"st"`
	Blocked   bool             `yaml:"blocked"`
	DoneAfter int              `yaml:"done_after"`
	Rows      [][]replay.Value `yaml:"rows"`
	Affected  uint64           `yaml:"affected"`
	Error     string           `yaml:"error"`
	Code      string           `yaml:"code"` // "errno/SQLSTATE", of PostgreSQL "SQLSTATE"
}

// levelKeys are the levels' short names, which observations use.
var levelKeys = map[history.Level]string{
	history.ReadUncommitted: "RU", history.ReadCommitted: "RC", history.RepeatableRead: "RR",
	history.Serializable: "SER",
}

// ObservedAt returns what was measured on a server ("mariadb-10.11.19") at a level, with the note that
// the corpus appends to the level ("innodb_snapshot_isolation=ON"; usually empty). It is nil where
// nothing was.
func (c *Case) ObservedAt(server string, level history.Level, note string) []Observation {
	key := strings.TrimSpace(server + " " + levelKeys[level] + " " + note)
	if o, ok := c.Observed[key]; ok || note != "" || len(c.Levels) > 0 {
		return o
	}
	return c.Observed[server]
}

// Deviations lists how a trace (the second account) differs from what was measured before (the
// first), in what an [Observation] says: it knows nothing of columns, insert ids and warnings.
func Deviations(t replay.Trace, observed []Observation) []replay.Difference {
	was := replay.Trace{Scenario: t.Scenario, Level: t.Level}
	is := was
	for i, o := range observed {
		r := replay.Result{N: o.N, Status: o.Status, Blocked: o.Blocked, DoneAfter: o.DoneAfter, Rows: o.Rows,
			Affected: o.Affected,
			Message:  o.Error, State: o.Code}
		if i < len(t.Results) {
			r.Session, r.SQL = t.Results[i].Session, t.Results[i].SQL
		}
		was.Results = append(was.Results, r)
	}
	for _, r := range t.Results {
		is.Results = append(is.Results, observable(r))
	}
	return replay.Compare(was, is)
}

// observable reduces a result to what an observation says.
func observable(r replay.Result) replay.Result {
	o := replay.Result{N: r.N, Session: r.Session, SQL: r.SQL, Status: r.Status, Blocked: r.Blocked, Rows: r.Rows,
		Affected: r.Affected,
		Message:  r.Message, State: r.ErrorCode()}
	if r.Blocked {
		o.DoneAfter = r.DoneAfter
	}
	return o
}
