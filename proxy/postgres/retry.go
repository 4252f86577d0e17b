package postgres

import (
	"strings"
	"weak"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/txnstate"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A retryBuffer keeps what the client has sent since the last ReadyForQuery: a Query, or the messages up to a Sync. The
// server may refuse what isotap made of a text, for a reason that the original does not have. Outside of a transaction
// block nothing has been done then, and all of it can be sent again as the client wrote it.
//
// What it holds is complete while keeping is set; that ends with what is too long to be kept.
type retryBuffer struct {
	open bool // messages were sent, and no Sync yet
	// kept holds the client's messages.
	kept    []byte
	keeping bool
	// tried says that something is sent as rewritten that the server has not taken before.
	tried bool
	// ran says that a statement has begun to give its result: its rows cannot be taken back.
	ran     bool
	shown   int      // replies that the client has had
	notices []uint64 // hashes of the notices that it has had
	parsed  []string // the named statements among the replies
}

// The most that is kept to be sent again.
const (
	maxKept    = 256 << 10 // bytes of messages
	maxNotices = 10_000
)

// mayResend reports whether what was sent may have to be sent again.
func (g *retryBuffer) mayResend() bool { return g.keeping && g.tried }

// begin begins with the messages up to the next ReadyForQuery, and forgets those before.
func (g *retryBuffer) begin(keeping bool) {
	*g = retryBuffer{open: true, kept: txnstate.Reusable(g.kept), keeping: keeping, parsed: g.parsed[:0]}
}

// add keeps a message of the client.
func (g *retryBuffer) add(m message) {
	switch {
	case !g.keeping || m.kind == msgTerminate || m.kind == msgCopyData:
	case m.more > 0 || len(g.kept)+len(m.raw) > maxKept:
		g.keeping = false
	default:
		g.kept = append(g.kept, m.raw...)
	}
}

// addNotice notes that the client has had a notice of that hash.
func (g *retryBuffer) addNotice(hash uint64) {
	switch {
	case len(g.notices) == maxNotices:
		g.keeping = false
	case g.mayResend():
		g.notices = append(g.notices, hash)
	}
}

// addParsed notes that a statement stands on the server under a name: unlike all else it outlives an error.
func (g *retryBuffer) addParsed(name string) {
	if name != "" && g.keeping {
		g.parsed = append(g.parsed, name)
	}
}

// A resend is what was kept on its way to the server once more. The client has had the first replies and notices
// already: they are not for it again.
type resend struct {
	on      bool // it begins once the server is ready
	running bool
	shown   int      // replies to come that the client has had
	notices []uint64 // to come that the client has had
	// plain is what does not go upstream this time: it names columns that may not be there any more.
	plain *sqlpostgres.Script
}

// repeats reports whether a notice is the next that the client has had before, and leaves it out then.
func (r *resend) repeats(notice uint64) bool {
	if len(r.notices) == 0 || r.notices[0] != notice {
		return false
	}
	r.notices = r.notices[1:]
	return true
}

// hidesReply reports whether the reply to the next message is one that the client has had before.
func (r *resend) hidesReply() bool {
	if r.shown == 0 {
		return false
	}
	r.shown--
	return true
}

// scriptVerdicts are what a session has learned from the server of the scripts that it sent as rewritten. Scripts are
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
