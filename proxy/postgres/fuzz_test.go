package postgres

import (
	"bytes"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/mutate"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// plans is a Planner whose plans follow from the first letter of each statement, so that a fuzzer reaches
// every kind of reply without knowing SQL.
type plans struct{}

func (plans) TooLarge(shape string)        {}
func (plans) IsTooLarge(shape string) bool { return false }
func (plans) SubqueriesTooLarge(string)    {}
func (plans) AreSubqueriesTooLarge(string) bool {
	return false
}
func (plans) Misplanned(shape string) bool   { return true }
func (plans) IsMisplanned(shape string) bool { return false }

func (plans) Exposes() bool        { return true }
func (plans) CursorsAreRead() bool { return false }
func (plans) ReadCursors()         {}

func (plans) Plan(text []byte, _ sqlpostgres.Session) *sqlpostgres.Script {
	script := &sqlpostgres.Script{Pieces: []string{string(text) + "+"}}
	for part := range strings.SplitSeq(string(text), ";") {
		script.Statements = append(script.Statements, planOf(part))
	}
	return script
}

func planOf(text string) *sqlpostgres.Plan {
	source := sqlpostgres.Source{Table: "d.t",
		Physical: &sqlpostgres.Physical{Items: []sqlpostgres.Item{sqlpostgres.ItemTID,
			sqlpostgres.ItemXID, sqlpostgres.ItemKeyInt}}}
	written := sqlpostgres.Source{Table: "d.t",
		Physical: &sqlpostgres.Physical{Items: []sqlpostgres.Item{sqlpostgres.ItemNewTID, sqlpostgres.ItemLSN,
			sqlpostgres.ItemInserted}}}
	switch {
	case strings.HasPrefix(text, "s"):
		return &sqlpostgres.Plan{Statement: rewrite.Statement{Kind: history.Select, Observation: history.Exact},
			Result: sqlpostgres.Result{Reply: rewrite.Trimmed, Sources: []sqlpostgres.Source{source}}}
	case strings.HasPrefix(text, "a"):
		source.Array, source.Limit = true, 3
		return &sqlpostgres.Plan{Statement: rewrite.Statement{Kind: history.Select, Observation: history.Exact},
			Result: sqlpostgres.Result{Reply: rewrite.Trimmed, Sources: []sqlpostgres.Source{source}}}
	case strings.HasPrefix(text, "i"):
		return &sqlpostgres.Plan{Statement: rewrite.Statement{Kind: history.Insert, Observation: history.Exact,
			Target: "d.t"}, Result: sqlpostgres.Result{Reply: rewrite.Returning,
			Sources: []sqlpostgres.Source{written}}}
	case strings.HasPrefix(text, "b"):
		return &sqlpostgres.Plan{Statement: rewrite.Statement{Kind: history.Begin},
			Txn: sqlpostgres.TxnEffect{Level: history.Serializable}}
	case strings.HasPrefix(text, "c"):
		return &sqlpostgres.Plan{Statement: rewrite.Statement{Kind: history.Commit},
			Txn: sqlpostgres.TxnEffect{Ends: true, Chains: len(text) > 1}}
	case strings.HasPrefix(text, "r"):
		return &sqlpostgres.Plan{Statement: rewrite.Statement{Kind: history.Rollback},
			Txn: sqlpostgres.TxnEffect{Savepoint: "p"}}
	case strings.HasPrefix(text, "v"):
		return &sqlpostgres.Plan{Statement: rewrite.Statement{Kind: history.Savepoint},
			Txn: sqlpostgres.TxnEffect{Savepoint: "p"}}
	case strings.HasPrefix(text, "d"):
		c := &sqlpostgres.Cursor{Verb: sqlpostgres.DeclareCursor, Name: "c", Hold: len(text) > 1}
		return &sqlpostgres.Plan{Statement: rewrite.Statement{Kind: history.Select, Observation: history.Exact},
			Result:  sqlpostgres.Result{Reply: rewrite.Trimmed, Sources: []sqlpostgres.Source{source}},
			Session: sqlpostgres.SessionEffect{Cursor: c}}
	case strings.HasPrefix(text, "f"):
		return &sqlpostgres.Plan{Statement: rewrite.Statement{Kind: history.Select, Observation: history.Opaque,
			Reason: history.ReasonCursor},
			Session: sqlpostgres.SessionEffect{Cursor: &sqlpostgres.Cursor{Verb: sqlpostgres.FetchCursor, Name: "c"}}}
	case strings.HasPrefix(text, "m"):
		return &sqlpostgres.Plan{Statement: rewrite.Statement{Observation: history.Opaque,
			Reason: history.ReasonCursor},
			Session: sqlpostgres.SessionEffect{Cursor: &sqlpostgres.Cursor{Verb: sqlpostgres.MoveCursor, Name: "c"}}}
	case strings.HasPrefix(text, "e"):
		return &sqlpostgres.Plan{Session: sqlpostgres.SessionEffect{Cursor: &sqlpostgres.Cursor{Verb: sqlpostgres.CloseCursor}}}
	case strings.HasPrefix(text, "p"):
		return &sqlpostgres.Plan{Txn: sqlpostgres.TxnEffect{Ends: true, Global: "g"}}
	}
	return &sqlpostgres.Plan{Statement: rewrite.Statement{Observation: history.Opaque, Reason: history.ReasonExecute,
		Shape: "EXECUTE " + text}, Session: sqlpostgres.SessionEffect{Changes: true},
		Schema: sqlpostgres.SchemaEffect{Changes: true}}
}

// startupMessage is a client's first.
var startupMessage = append([]byte{0, 0, 0, 23, 0, 3, 0, 0}, "user\x00postgres\x00\x00"...)

// settledAnswer is the answer to isotap's question.
func settledAnswer(level string) []byte {
	values := []string{"d", "postgres", "{pg_catalog,public}", level, level, "150018", "on", "UTF8"}
	body := []byte{0, byte(len(values))}
	for _, v := range values {
		body = append(append(body, 0, 0, 0, byte(len(v))), v...)
	}
	b := appendMessage(nil, msgRowDescription, 0, 0)
	b = appendMessage(b, msgDataRow, body...)
	b = appendMessage(b, msgCommandComplete, []byte("SELECT 1\x00")...)
	return appendMessage(b, msgReadyForQuery, byte(txnIdle))
}

// loggedIn returns a session that waits for its first statement.
func loggedIn(t testing.TB) *Session {
	t.Helper()
	s := newTestSession(plans{})
	if _, err := s.FromClient(0, startupMessage); err != nil {
		t.Fatal(err)
	}
	s.Upgraded(0, nil, nil) // connected
	server := appendMessage(nil, msgAuthentication, 0, 0, 0, 0)
	server = append(appendMessage(server, msgReadyForQuery, byte(txnIdle)), settledAnswer("read committed")...)
	if err := s.FromServer(0, server); err != nil {
		t.Fatal(err)
	}
	if s.phase != phaseReady {
		t.Fatalf("phase %d after the login", s.phase)
	}
	return s
}

// scripted writes the input of FuzzSession: each piece is its sender, its message's type and its body.
func scripted(pieces ...string) []byte {
	var b []byte
	for _, p := range pieces {
		b = append(b, p[0], p[1], byte(len(p)-2))
		b = append(b, p[2:]...)
	}
	return b
}

// messages are pieces of scripts.
func messages() (all []string) {
	for _, m := range []string{"CQs\x00", "CQi;s\x00", "CQb\x00", "CQc\x00", "CQr\x00", "CPa\x00s\x00\x00\x00",
		"CP\x00i\x00\x00\x00", "CB\x00a\x00\x00\x00\x00\x00\x00\x00", "CB\x00\x00\x00\x00\x00\x00\x00\x00", "CDSa\x00", "CDP\x00",
		"CE\x00\x00\x00\x00\x00", "CE\x00\x00\x00\x00\x01", "CCSa\x00", "CCP\x00", "CS", "CH", "CX", "Cdx", "Cc", "Cfno\x00", "CF\x00",
		"S1", "S2", "S3", "Sn", "Ss", "SI", "SZI", "SZT", "SZE", "SCSELECT 1\x00", "SCINSERT 0 1\x00", "SCBEGIN\x00", "SCROLLBACK\x00",
		"SD\x00\x01\x00\x00\x00\x011", "ST\x00\x00", "St\x00\x00", "SG\x00\x00\x00", "SH\x00\x00\x00", "SW\x00\x00\x00", "Sdx", "Sc",
		"SESERROR\x00C42703\x00Mno\x00\x00", "SNSWARNING\x00C01000\x00Mno\x00\x00", "SSclient_encoding\x00LATIN1\x00",
		"SA\x00\x00\x00\x01a\x00b\x00", "SK\x00\x00\x00\x01\x00\x00\x00\x01"} {
		all = append(all, string(scripted(m)))
	}
	return all
}

// FuzzSession gives a session whatever either side may send. The input is a script of messages; a small letter
// for the sender sends the body as bare bytes. Nothing may panic, and the session may not answer with much
// more than it was given.
func FuzzSession(f *testing.F) {
	const row = "\x00\x04\x00\x00\x00\x011\x00\x00\x00\x05(0,1)\x00\x00\x00\x03700\x00\x00\x00\x011"
	const written = "\x00\x03\x00\x00\x00\x05(0,1)\x00\x00\x00\x030/1\x00\x00\x00\x01f"
	const refused = "SERROR\x00VERROR\x00C42703\x00Mno\x00P3\x00\x00"
	f.Add(scripted("CQs 1\x00", "SD"+row, "SCSELECT 1\x00", "SZI", "CQi\x00", "SD"+written, "SCINSERT 0 1\x00", "SZI"))
	f.Add(scripted("CQs;i\x00", "SE"+refused, "SZI", "SCSELECT 1\x00", "SCINSERT 0 1\x00", "SZI"))
	f.Add(scripted("CPa\x00s\x00\x00\x00", "CB\x00a\x00\x00\x00\x00\x00\x00\x02\x00\x01\x00\x00", "CDP\x00",
		"CE\x00\x00\x00\x00\x02", "CS", "S1", "S2",
		"Sn", "SD"+row, "Ss", "SZI"))
	f.Add(scripted("CP\x00s\x00\x00\x00", "CH", "SE"+refused, "SZI", "CS", "S1", "SZI"))
	f.Add(scripted("CQb\x00", "SCBEGIN\x00", "SZT", "CQv\x00", "SCSAVEPOINT\x00", "SZT", "CQi\x00", "SE"+refused, "SZE",
		"CQr\x00", "SCROLLBACK\x00", "SZT",
		"CQcc\x00", "SCCOMMIT\x00", "SZT", "CQp\x00", "SCPREPARE TRANSACTION\x00", "SZI", "CQx\x00", "SCEXECUTE\x00",
		"SZI"))
	f.Add(scripted("CPn\x00copy\x00\x00\x00", "CB\x00n\x00\x00\x00\x00\x00\x00\x00", "CE\x00\x00\x00\x00\x00", "CS",
		"Cdx", "Cc", "CS", "S1", "S2", "SG\x00\x00\x00", "SCCOPY 1\x00", "SZI"))
	f.Add(scripted("CQb\x00", "SCBEGIN\x00", "SZT", "CQd\x00", "SCDECLARE CURSOR\x00", "SZT", "CQf\x00", "SD"+row,
		"SCFETCH 1\x00", "SZT", "CQv;m\x00", "SCSAVEPOINT\x00", "SCMOVE 1\x00", "SZT",
		"CQd\x00", "SCDECLARE CURSOR\x00", "SZT", "CQr\x00", "SCROLLBACK\x00", "SZT", "CQdh;c;f\x00",
		"SCDECLARE CURSOR\x00", "SCCOMMIT\x00", "SD"+row, "SCFETCH 1\x00", "SZI", "CQe\x00", "SCCLOSE CURSOR ALL\x00",
		"SZI"))
	f.Add(scripted("CQs\x00", "Ss"))
	mutate.Fuzz(f, func(t *testing.T, script []byte) {
		s := loggedIn(t)
		in, out := len(script), 0
		var ahead []byte
		for len(script) >= 3 {
			sender, n := script[0], min(int(script[2]), len(script)-3)
			piece := bytes.Clone(script[3 : 3+n])
			if sender == 'S' || sender == 'C' {
				piece = appendMessage(nil, script[1], piece...)
			}
			script = script[3+n:]
			var err error
			var used int
			if sender == 'S' || sender == 's' {
				err = s.FromServer(1, piece)
			} else {
				ahead = append(ahead, piece...)
			}
			if err == nil {
				used, err = s.FromClient(1, ahead)
				ahead = ahead[used:]
			}
			toClient, toServer := s.Output()
			out += len(toClient) + len(toServer)
			s.Events()
			if err != nil || s.Done() {
				break
			}
		}
		s.Idle(2)
		s.ClientClosed(2)
		s.ServerClosed(3)
		s.Events()
		if !s.Done() {
			t.Fatal("the session goes on although both sides are gone")
		}
		if limit := 10_000 + 300*in; out > limit {
			t.Fatalf("%d bytes out for %d bytes in", out, in)
		}
	}, messages()...)
}

// FuzzBind reads whatever there may be as a Bind message, and what it is made to.
func FuzzBind(f *testing.F) {
	f.Add([]byte("p\x00s\x00\x00\x01\x00\x01\x00\x01\x00\x00\x00\x04\x00\x00\x00\x07\x00\x02\x00\x01\x00\x00"),
		[]byte("\x00\x01\x00\x00\x00\x17"))
	mutate.Fuzz(f, func(t *testing.T, body, types []byte) {
		b, err := readBind(body, true)
		appendArgs(nil, &b, types)
		if err != nil {
			return
		}
		s := newTestSession(nil)
		plan := &sqlpostgres.Plan{Result: sqlpostgres.Result{Reply: rewrite.Trimmed}}
		s.sendBind(message{body: body}, &b, "other", resultCodes(b.codes, plan, 2))
		again, err := readBind(s.toServer[headBytes:], true)
		if err != nil {
			t.Fatalf("what was made of a Bind is none: %v", err)
		}
		if again.portal != b.portal || again.statement != "other" || len(again.params) != len(b.params) ||
			!bytes.HasPrefix(again.codes, b.codes) {
			t.Fatalf("%+v became %+v", b, again)
		}
	})
}

// FuzzError reads whatever there may be as an error.
func FuzzError(f *testing.F) {
	f.Add([]byte("SERROR\x00VERROR\x00C42703\x00Mno\x00P3\x00\x00"))
	f.Add([]byte("C08P01\x00Mbind message has 3 result formats but query has 2 columns\x00RPortalSetResultFormat\x00\x00"))
	mutate.Fuzz(f, func(t *testing.T, body []byte) {
		e, err := readError(body)
		if err != nil {
			return
		}
		appendMapped(nil, message{kind: msgErrorResponse, body: body}, &e,
			plans{}.Plan([]byte("text"), sqlpostgres.Session{}), true)
		s := newTestSession(nil)
		s.asBound(&pendingReply{portal: &portal{form: form{script: plans{}.Plan([]byte("s"), sqlpostgres.Session{}),
			rewritten: true}}}, message{kind: msgErrorResponse, body: body}, &e)
	})
}

// FuzzRow takes the identities out of whatever there may be for a row, in both formats.
func FuzzRow(f *testing.F) {
	f.Add([]byte("\x00\x04\x00\x00\x00\x011\x00\x00\x00\x05(0,1)\x00\x00\x00\x03700\x00\x00\x00\x011"), false, "s")
	f.Add([]byte("\x00\x04\x00\x00\x00\x011\x00\x00\x00\x06\x00\x00\x00\x00\x00\x01\x00\x00\x00\x04\x00\x00\x02\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x01"), true, "s")
	f.Add([]byte("\x00\x01\x00\x00\x00\x11{\"(0,1);7;a\",NULL}"), false, "a")
	mutate.Fuzz(f, func(t *testing.T, body []byte, binary bool, text string) {
		s := newTestSession(nil)
		s.planner = plans{}
		plan := planOf(text)
		s.result = resultInProgress{set: true, plan: plan, hidden: plan.HiddenColumns()}
		if binary {
			s.result.format = 1
		}
		if err := s.trimRow(&pendingReply{}, message{kind: msgDataRow, body: body}); err != nil {
			return
		}
		if len(s.toClient) > len(body)+headBytes {
			t.Fatalf("a row of %d bytes became one of %d", len(body), len(s.toClient))
		}
		st := history.Stmt{Observation: history.Exact}
		s.takeIdentities(&s.result, &st, false)
		if len(st.Accesses) != len(st.TupleIDs) {
			t.Fatalf("%d accesses at %d places", len(st.Accesses), len(st.TupleIDs))
		}
	})
}

// FuzzDescription trims whatever there may be for a description.
func FuzzDescription(f *testing.F) {
	f.Add([]byte("\x00\x02id\x00"+strings.Repeat("\x00", fieldBytes)+"isotap_1\x00"+
		strings.Repeat("\x00", fieldBytes)), 1)
	mutate.Fuzz(f, func(t *testing.T, body []byte, hidden int) {
		s := newTestSession(nil)
		s.names.confirmed.statements["s"] = &statement{}
		if n := s.names.hiddenFields(nil, body); n < 0 {
			t.Fatal(n)
		}
		if hidden < 0 {
			return
		}
		l := s.descriptions.layout(body, hidden, anyColumns)
		if !l.none && (l.hidden > hidden || l.wrong != (len(l.cut) > 0 || l.hidden < hidden)) || len(l.cut) > len(body) {
			t.Fatalf("%+v of %d", l, hidden)
		}
		if err := s.trimDescription(&pendingReply{}, message{kind: msgRowDescription, body: body}, hidden,
			l.cut); err == nil && len(s.toClient) > len(body)+headBytes {
			t.Fatalf("a description of %d bytes became one of %d", len(body), len(s.toClient))
		}
	})
}

// FuzzArray reads whatever there may be as an array.
func FuzzArray(f *testing.F) {
	f.Add([]byte(`{"a\"b",NULL,c}`), false)
	f.Add([]byte("\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x19\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01x"),
		true)
	mutate.Fuzz(f, func(t *testing.T, v []byte, binary bool) {
		format := byte(0)
		if binary {
			format = 1
		}
		elements, _ := readArray(v, format)
		if len(elements) > len(v) {
			t.Fatalf("%d elements of %d bytes", len(elements), len(v))
		}
	})
}
