package postgres

import (
	"bytes"
	"strconv"
	"strings"

	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A statement with parts that write goes upstream within a SELECT. Its reply is made what the statement's own would be.

// selectTag begins the tag of a statement that reads, and whose parts write.
const selectTag = "SELECT "

// wraps returns the plan of the statement whose result comes in, if it is such a one; nil otherwise.
func (s *Session) wraps() *sqlpostgres.Plan {
	if p := s.result.plan; p != nil && p.Result.Tag != "" && s.result.hidden > 0 {
		return p
	}
	return nil
}

// retagged returns the end of a result as the client's statement has it. Where all that came is the row that stands
// for none, the result is at its end.
func (s *Session) retagged(m message) message {
	p := s.wraps()
	if p == nil || m.kind == msgPortalSuspended && !s.seen.absent {
		return m
	}
	var rows uint64
	if tag := string(bytes.TrimSuffix(m.body, []byte{0})); !s.seen.absent {
		rows = rowsOf(tag)
	}
	body := append([]byte(p.Result.Tag+strconv.FormatUint(rows, 10)), 0)
	return message{kind: msgCommandComplete, body: body, raw: appendMessage(nil, msgCommandComplete, body...)}
}

// named returns an error that names the SELECT as one that names the client's statement: "cannot execute SELECT in a
// read-only transaction".
func (s *Session) named(x *pendingReply, m message, e *serverError) message {
	f := s.formOf(x)
	if f == nil || e.code != sqlstateReadOnlyTransaction {
		return m
	}
	p := f.plan(x.at)
	if p == nil || f.hidden(p) == 0 || p.Result.Tag == "" {
		return m
	}
	verb, _, _ := strings.Cut(p.Result.Tag, " ")
	text := strings.Replace(e.message, "SELECT", verb, 1)
	return withText(m, e, text)
}
