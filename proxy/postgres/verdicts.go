package postgres

import (
	"strings"
	"weak"

	"github.com/isotap/isotap/history"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// scriptVerdicts are what a session has learnt from the server of the scripts that it sent as rewritten. Scripts are
// known by their models ([sqlpostgres.Script.Model]), which are not kept for these: a model that the planner has let go
// does not come again. Each of the maps is emptied when it is full.
type scriptVerdicts struct {
	proven  map[weak.Pointer[sqlpostgres.Script]]struct{}       // the server took them
	refused map[weak.Pointer[sqlpostgres.Script]]history.Reason // it did not, and why
	cleared map[weak.Pointer[sqlpostgres.Script]]struct{}       // a description bore them out
}

// maxScripts bounds what a session remembers of scripts, of each kind.
const maxScripts = 10_000

// isProven reports whether the server takes a script.
func (v *scriptVerdicts) isProven(script *sqlpostgres.Script) bool {
	_, ok := v.proven[weak.Make(script.Model())]
	return ok
}

// prove notes that the server takes a script; nil is none.
func (v *scriptVerdicts) prove(script *sqlpostgres.Script) {
	if script == nil || v.isProven(script) {
		return
	}
	if v.proven == nil || len(v.proven) >= maxScripts {
		v.proven = make(map[weak.Pointer[sqlpostgres.Script]]struct{})
	}
	v.proven[weak.Make(script.Model())] = struct{}{}
}

// refuse notes that the server refuses a script, with that SQLSTATE.
func (v *scriptVerdicts) refuse(script *sqlpostgres.Script, code string) {
	if v.refused == nil || len(v.refused) >= maxScripts {
		v.refused = make(map[weak.Pointer[sqlpostgres.Script]]history.Reason)
	}
	v.refused[weak.Make(script.Model())] = refusedWith(code)
}

// refusal is the reason why a script is not sent; empty where it was not refused.
func (v *scriptVerdicts) refusal(script *sqlpostgres.Script) history.Reason {
	return v.refused[weak.Make(script.Model())]
}

// forgetRefusal has a script tried again.
func (v *scriptVerdicts) forgetRefusal(script *sqlpostgres.Script) {
	delete(v.refused, weak.Make(script.Model()))
}

// clear notes that a script shows nothing but what its plan has.
func (v *scriptVerdicts) clear(script *sqlpostgres.Script) {
	if v.cleared == nil || len(v.cleared) >= maxScripts {
		v.cleared = make(map[weak.Pointer[sqlpostgres.Script]]struct{})
	}
	v.cleared[weak.Make(script.Model())] = struct{}{}
}

// isCleared reports whether a description has shown that a script shows nothing but what its plan has.
func (v *scriptVerdicts) isCleared(script *sqlpostgres.Script) bool {
	_, ok := v.cleared[weak.Make(script.Model())]
	return ok
}

// refusedWith is the reason why a text goes as the client wrote it that the server has refused once.
func refusedWith(code string) history.Reason { return history.ReasonRefusedState.With(code) }

// doubtful reports whether an error may come from what isotap added.
func doubtful(code string) bool {
	return strings.HasPrefix(code, classSyntaxErrorOrAccessRule) || strings.HasPrefix(code, classFeatureNotSupported) ||
		strings.HasPrefix(code, classProgramLimitExceeded)
}

// outdated reports whether an error may come from a definition that isotap has not read yet: of a name that is not
// there.
func outdated(code string) bool {
	return code == sqlstateUndefinedColumn || code == sqlstateUndefinedTable
}
