package oracle

import (
	"slices"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario/replay"
)

// An exemption is an error that a statement gives in autocommit and that its transaction gives at COMMIT, by design.
type exemption struct {
	engine dbms.Engine
	codes  []string // as [replay.Result.ErrorCode] has them
	why    string   // with its source
}

// exemptions are all that is known.
var exemptions = []exemption{
	{dbms.TiDB, []string{"1062/23000"},
		"optimistic transactions check keys when they commit (TiDB's manual, Constraints: UNIQUE KEY)"},
	{dbms.PostgreSQL, []string{"23503", "23505", "23P01", "23514"},
		"deferred constraints are checked when the transaction commits (PostgreSQL's manual, SET CONSTRAINTS)"},
}

// exempt returns why an error of a statement in autocommit may come at its transaction's COMMIT; false where it may
// not.
func exempt(engine dbms.Engine, commit, statement *replay.Result) (why string, ok bool) {
	if commit.ErrorCode() != statement.ErrorCode() {
		return "", false
	}
	i := slices.IndexFunc(exemptions, func(e exemption) bool {
		return e.engine == engine && slices.Contains(e.codes, commit.ErrorCode())
	})
	if i < 0 {
		return "", false
	}
	return exemptions[i].why, true
}
