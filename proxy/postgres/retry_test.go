package postgres

import (
	"runtime"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// messageOf is a message with a body of that length.
func messageOf(kind byte, length int) message {
	raw := appendMessage(nil, kind, []byte(strings.Repeat("x", length))...)
	return message{kind: kind, raw: raw, body: raw[headBytes:]}
}

// TestRetryBufferHoldsAllOrNothing: retry buffer holds all that was sent or nothing.
func TestRetryBufferHoldsAllOrNothing(t *testing.T) {
	var g retryBuffer
	g.begin(true)
	g.tried = true
	parse, data := messageOf(msgParse, 10), messageOf(msgCopyData, 10)
	g.add(parse)
	g.add(data)
	g.add(messageOf(msgSync, 0))
	if !g.mayResend() || string(g.kept) != string(parse.raw)+string(messageOf(msgSync, 0).raw) {
		t.Errorf("may be sent again: %v, %q", g.mayResend(), g.kept)
	}
	g.add(messageOf(msgBind, maxKept))
	if g.mayResend() {
		t.Error("what is sent again lacks a message")
	}
	g.begin(true)
	if g.mayResend() || len(g.kept) > 0 {
		t.Errorf("%q is kept of what was answered", g.kept)
	}
	g.add(message{kind: msgParse, raw: parse.raw, body: parse.body, more: 1})
	if g.keeping {
		t.Error("the beginning of a message is kept for all of it")
	}
}

func TestTooManyNoticesEndTheRetry(t *testing.T) {
	var g retryBuffer
	g.begin(true)
	g.tried = true
	for n := range uint64(maxNotices) {
		g.addNotice(n)
	}
	if !g.mayResend() || len(g.notices) != maxNotices {
		t.Fatalf("%d notices are remembered", len(g.notices))
	}
	if g.addNotice(0); g.mayResend() {
		t.Error("the client would have a notice twice")
	}
}

func TestResendHidesWhatTheClientHasHad(t *testing.T) {
	r := resend{shown: 1, notices: []uint64{1, 2}}
	if !r.hidesReply() || r.hidesReply() {
		t.Error("one reply was shown, and one is hidden")
	}
	if r.repeats(2) || !r.repeats(1) || !r.repeats(2) || r.repeats(2) {
		t.Error("notices are hidden in another order than the client has had them")
	}
}

// TestScriptIsKnownByTheServersAnswer: script is known by what the server said of it.
func TestScriptIsKnownByTheServersAnswer(t *testing.T) {
	var v scriptVerdicts
	script, other := &sqlpostgres.Script{}, &sqlpostgres.Script{}
	v.prove(nil)
	v.prove(script)
	v.refuse(other, "42703")
	v.clear(script)
	if !v.isProven(script) || v.isProven(other) || v.isProven(nil) {
		t.Error("the server has taken the first script alone")
	}
	if v.refusal(other) != history.ReasonRefusedState.With("42703") || !v.refusal(script).IsZero() {
		t.Errorf("it has refused the second: %v, %v", v.refusal(other), v.refusal(script))
	}
	if !v.isCleared(script) || v.isCleared(other) {
		t.Error("a description has borne out the first script alone")
	}
	v.forgetRefusal(other)
	if !v.refusal(other).IsZero() {
		t.Error("the second is not tried again")
	}
	runtime.KeepAlive(script)
}
