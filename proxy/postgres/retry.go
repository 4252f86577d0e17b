package postgres

import (
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
