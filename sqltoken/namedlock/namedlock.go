// Package namedlock tells which statements take and release locks that have a name or a number and guard no table:
// PostgreSQL's advisory locks, and GET_LOCK of the MySQL family. Whoever asks for one that another session has waits,
// and nothing of it is seen in rows.
package namedlock

import (
	"strings"

	"github.com/isotap/isotap/sqltoken"
)

// An Effect is what a function does with locks.
type Effect uint8

// The effects.
const (
	None Effect = iota
	// TakesForTxn: the lock is held until the transaction ends.
	TakesForTxn
	// Takes: the lock is held until it is released, or the session ends.
	Takes
	Releases
	ReleasesAll
)

// functions are those of PostgreSQL (its manual, Advisory Lock Functions) and the MySQL family (Locking Functions).
var functions = map[string]Effect{
	"pg_advisory_lock":                 Takes,
	"pg_advisory_lock_shared":          Takes,
	"pg_try_advisory_lock":             Takes,
	"pg_try_advisory_lock_shared":      Takes,
	"pg_advisory_xact_lock":            TakesForTxn,
	"pg_advisory_xact_lock_shared":     TakesForTxn,
	"pg_try_advisory_xact_lock":        TakesForTxn,
	"pg_try_advisory_xact_lock_shared": TakesForTxn,
	"pg_advisory_unlock":               Releases,
	"pg_advisory_unlock_shared":        Releases,
	"pg_advisory_unlock_all":           ReleasesAll,
	"get_lock":                         Takes,
	"release_lock":                     Releases,
	"release_all_locks":                ReleasesAll,
}

// EffectOf returns that of a function, by its name in any case.
func EffectOf(function string) Effect {
	if len(function) < len("get_lock") {
		return None
	}
	return functions[strings.ToLower(function)]
}

// Mentioned reports whether a text may call one of the functions: a quick look before the text is cut into tokens.
func Mentioned(text string) bool {
	for i := 0; i+len("lock") <= len(text); i++ {
		if text[i]|0x20 == 'l' && strings.EqualFold(text[i:i+len("lock")], "lock") {
			return true
		}
	}
	return false
}

// Called reports whether a statement calls one of the functions.
func Called(statement []sqltoken.Token) bool {
	for i := range statement {
		if calls(statement, i) && EffectOf(statement[i].Text) != None {
			return true
		}
	}
	return false
}

// calls reports whether a token is a word before a parenthesis.
func calls(statement []sqltoken.Token, i int) bool {
	return i+1 < len(statement) && statement[i].Kind == sqltoken.Word && statement[i+1].Is("(")
}

// Held are the locks that a session may have. The zero Held are none. What a client was told of a try is not known, so
// that a lock that was asked for counts as taken.
type Held struct {
	taken  map[string]bool // by the arguments, as they were written
	forTxn bool
}

// Follow takes a statement that succeeded, by its tokens.
func (h *Held) Follow(statement []sqltoken.Token) {
	for i := range statement {
		if !calls(statement, i) {
			continue
		}
		switch EffectOf(statement[i].Text) {
		case TakesForTxn:
			h.forTxn = true
		case Takes:
			if h.taken == nil {
				h.taken = make(map[string]bool)
			}
			h.taken[firstArgument(statement[i+2:])] = true
		case Releases:
			delete(h.taken, firstArgument(statement[i+2:]))
		case ReleasesAll:
			clear(h.taken)
		}
	}
}

// firstArgument is what stands before the comma or the parenthesis that ends it. Of a lock with two numbers it is the
// first: whoever releases one of two such locks counts as having released both.
func firstArgument(tokens []sqltoken.Token) string {
	var b strings.Builder
	depth := 0
	for _, t := range tokens {
		if depth == 0 && (t.Is(",") || t.Is(")")) {
			break
		}
		switch {
		case t.Is("("):
			depth++
		case t.Is(")"):
			depth--
		}
		b.WriteString(t.Text)
		b.WriteByte(' ')
	}
	return b.String()
}

// TxnEnded says that the session's transaction is over.
func (h *Held) TxnEnded() { h.forTxn = false }

// Reset says that the session has begun anew, as where a pool resets it.
func (h *Held) Reset() { *h = Held{} }

// Any reports whether the session may have a lock.
func (h *Held) Any() bool { return h.forTxn || len(h.taken) > 0 }
