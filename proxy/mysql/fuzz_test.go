package mysql

import (
	"bytes"
	"strings"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/mutate"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// plans is a Planner whose plans follow from the statement's first word, so that a fuzzer reaches
// every kind of reply without knowing SQL.
type plans struct{}

func (plans) TooLarge(shape string)        {}
func (plans) IsTooLarge(shape string) bool { return false }

func (plans) SubqueriesTooLarge(string)         {}
func (plans) AreSubqueriesTooLarge(string) bool { return false }

func (plans) Misplanned(shape string) bool   { return true }
func (plans) IsMisplanned(shape string) bool { return false }

func (plans) Plan(text []byte, _ sqlmysql.Session) *sqlmysql.Plan {
	word, _, _ := strings.Cut(string(text), " ")
	spliced := []sqlmysql.Piece{{Text: string(text)}, {Hole: sqlmysql.TagHole}}
	if ends := semicolons(text); len(ends) > 1 {
		return &sqlmysql.Plan{Statement: rewrite.Statement{Observation: history.Opaque,
			Reason: history.ReasonSeveralStatements}, Txn: sqlmysql.TxnEffect{Ends: true, MayRestart: true},
			Upstream: sqlmysql.Upstream{Parts: ends}}
	}
	switch word {
	case "s":
		return &sqlmysql.Plan{Statement: rewrite.Statement{Kind: history.Select, Observation: history.Exact},
			Upstream: sqlmysql.Upstream{Pieces: spliced[:1]}, Result: sqlmysql.Result{Reply: rewrite.Trimmed,
				Sources: []sqlmysql.Source{{Table: "d.t"}}}}
	case "o":
		return &sqlmysql.Plan{Statement: rewrite.Statement{Kind: history.Select, Observation: history.Opaque,
			Reason: history.ReasonDistinct},
			Companion: &sqlmysql.Plan{Statement: rewrite.Statement{Kind: history.Select, Observation: history.Inexact,
				Reason: history.ReasonLimit}, Upstream: sqlmysql.Upstream{Pieces: spliced[:1]},
				Result: sqlmysql.Result{Reply: rewrite.Trimmed, Sources: []sqlmysql.Source{{Table: "d.t"}}}}}
	case "d":
		return &sqlmysql.Plan{Statement: rewrite.Statement{Kind: history.Delete, Observation: history.Exact,
			Target: "d.t"}, Upstream: sqlmysql.Upstream{Pieces: spliced[:1]},
			Result: sqlmysql.Result{Reply: rewrite.Returning}}
	case "u":
		return &sqlmysql.Plan{Statement: rewrite.Statement{Kind: history.Update, Observation: history.Exact,
			Target: "d.t", Params: 1}, Upstream: sqlmysql.Upstream{Pieces: spliced,
			Hidden: []sqlmysql.Hidden{{Index: 1, Hole: sqlmysql.TagHole}}}, Writes: sqlmysql.Writes{Captured: true}}
	case "i":
		return &sqlmysql.Plan{Statement: rewrite.Statement{Kind: history.Insert, Observation: history.Exact,
			Target: "d.t"}, Upstream: sqlmysql.Upstream{Pieces: spliced,
			Hidden: []sqlmysql.Hidden{{Index: 0, Hole: sqlmysql.RowIDHole}}}, Writes: sqlmysql.Writes{Inserts: 2}}
	case "b":
		return &sqlmysql.Plan{Statement: rewrite.Statement{Kind: history.Begin}, Txn: sqlmysql.TxnEffect{Ends: true}}
	case "c":
		return &sqlmysql.Plan{Statement: rewrite.Statement{Kind: history.Commit}, Txn: sqlmysql.TxnEffect{Ends: true}}
	case "r":
		return &sqlmysql.Plan{Statement: rewrite.Statement{Kind: history.Rollback},
			Txn: sqlmysql.TxnEffect{Savepoint: "p"}}
	}
	return &sqlmysql.Plan{Statement: rewrite.Statement{Observation: history.Opaque, Reason: history.ReasonUnparsable},
		Txn: sqlmysql.TxnEffect{Ends: true}, Session: sqlmysql.SessionEffect{Changes: true},
		Schema: sqlmysql.SchemaEffect{Changes: true}}
}

// semicolons returns the ends of the statements of a text, as sqlmysql.Upstream.Parts has them.
func semicolons(text []byte) (ends []int) {
	for i, c := range text {
		if c == ';' {
			ends = append(ends, i)
		}
	}
	return append(ends, len(text))
}

// loggedIn returns a session in the command phase.
func loggedIn(t testing.TB, caps uint32) *Session {
	t.Helper()
	var n uint32
	s := NewSession(Config{Planner: plans{}, Options: session.Options{ID: 1, Args: true, NextTxn: func() history.TxnID {
		n++
		return history.MakeTxnID(1, n)
	}}})
	caps = caps&^gomysql.CLIENT_SSL | gomysql.CLIENT_PROTOCOL_41 | gomysql.CLIENT_LONG_PASSWORD
	greeting := append([]byte("\x0a10.11.0-MariaDB\x00\x01\x00\x00\x00abcdefgh\x00"), byte(caps), byte(caps>>8), 33, 2,
		0, byte(caps>>16), byte(caps>>24), 21)
	greeting = append(greeting, make([]byte, 10)...)
	login := append([]byte{byte(caps), byte(caps >> 8), byte(caps >> 16), byte(caps >> 24), 0, 0, 0,
		1, 33}, make([]byte, 23)...)
	login = append(login, "root\x00\x00"...)
	feed := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	packet, _ := appendPacket(nil, 0, greeting)
	feed(s.FromServer(0, packet))
	packet, _ = appendPacket(nil, 1, login)
	_, err := s.FromClient(0, packet)
	feed(err)
	packet, _ = appendPacket(nil, 2, []byte{markOK, 0, 0, 2, 0, 0, 0})
	feed(s.FromServer(0, packet))
	if s.phase != phaseCommand {
		t.Fatalf("phase %d after the login", s.phase)
	}
	return s
}

// script writes an input of FuzzSession: each part is its sender, its sequence number and its bytes.
func script(parts ...string) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p[0], p[1]-'0', byte(len(p)-2))
		b = append(b, p[2:]...)
	}
	return b
}

// messages are parts of scripts: commands, and what servers answer, under each of the first sequence numbers.
func messages() (all []string) {
	for _, m := range []string{"\x01", "\x02d", "\x03s 1", "\x03o 1", "\x03d 1", "\x03u 1", "\x03i 1", "\x03b", "\x03c", "\x03r",
		"\x03b;s 1", "\x0e", "\x11u\x00\x00d\x00", "\x16s ?", "\x16u ?", "\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00",
		"\x18\x01\x00\x00\x00\x00\x00x", "\x19\x01\x00\x00\x00", "\x1a\x01\x00\x00\x00", "\x1b\x00\x00",
		"\x1c\x01\x00\x00\x00\x05\x00\x00\x00", "\x1f", "\xfa\x01\x00\x00\x00\x00\x01\x00\x00\x00"} {
		all = append(all, string(script("C0"+m)))
	}
	for _, m := range []string{"\x00\x01\x00\x02\x00\x00\x00", "\x00\x00\x00\x0b\x00\x00\x00",
		"\x00\x01\x00\x00\x00\x01\x00\x02\x00\x00\x00\x00", "\x01", "\x03", "def", "\xfe\x00\x00\x02\x00",
		"\xfe\x00\x00\x08\x00\x00\x00", "\xfe\x00\x00\x42\x00", "\x02a1\x010", "\x011\x02a1\x010", "\x00\x00\x011", "\xfbfile",
		"\xff\x15\x04#40001no"} {
		for seq := range 7 {
			all = append(all, string(script("S"+string(rune('1'+seq))+m)))
		}
	}
	return all
}

// FuzzSession gives a session whatever either side may send. The input is a script: each piece names
// its sender, its sequence number and its length; a capital sender sends it as a packet, a small one as
// bare bytes. Nothing may panic, and the session may not answer with much more than it was given.
func FuzzSession(f *testing.F) {
	settings := []string{"S1\x0a", "S2def", "S3def", "S4def", "S5def", "S6def", "S7def", "S8def", "S9def", "S:def",
		"S;def", "S<\xfe\x00\x00\x02\x00",
		"S=\x0fREPEATABLE-READ\x00\x04utf8\x01d\x041024\x041024\x1418446744073709551615\x03ROW\x010\x010",
		"S>\xfe\x00\x00\x02\x00"}
	f.Add(script(append([]string{"C0\x03s 1"}, append(settings, "S1\x03", "S2def", "S3def", "S4def",
		"S5\xfe\x00\x00\x03\x00",
		"S6\x011\x02a1\x010", "S7\xfe\x00\x00\x03\x00", "C0\x01")...)...), uint32(0))
	f.Add(script(append([]string{"C0\x03u 1"}, append(settings, "S1\x00\x00\x00\x02\x00\x00\x00",
		"S1\x00\x01\x00\x03\x00\x00\x00Rows matched: 1  Changed: 1  Warnings: 0", "C0\x03c",
		"S1\x00\x00\x00\x02\x00\x00\x00")...)...), uint32(0))
	f.Add(script(append([]string{"C0\x16u ?"}, append(settings, "S1\x00\x01\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00",
		"S2def", "S3def",
		"S4\xfe\x00\x00\x02\x00", "C0\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\x08\x00\x07\x00\x00\x00\x00\x00\x00\x00", "S1\xff\x15\x04#40001no")...)...),
		uint32(gomysql.CLIENT_SESSION_TRACK))
	f.Add(script(append([]string{"C0\x03d 1"}, append(settings, "S1\x02", "S2def", "S3def", "S4\x02a1\x010",
		"S5\xfe\x00\x00\x02\x00\x00\x00")...)...),
		uint32(gomysql.CLIENT_DEPRECATE_EOF))
	f.Add(script(append([]string{"C0\x03b", "S1\x00\x00\x00\x03\x00\x00\x00", "C0\x03o 1"},
		append(settings, "S1\x01", "S2def",
			"S3\xfe\x00\x00\x03\x00", "S4\x011", "S5\xfe\x00\x00\x03\x00", "S1\x03", "S2def", "S3def", "S4def",
			"S5\xfe\x00\x00\x03\x00",
			"S6\x011\x02-1\x011", "S7\xfe\x00\x00\x03\x00", "S1\x03", "S2def", "S3def", "S4def",
			"S5\xfe\x00\x00\x03\x00",
			"S6\x011\x02a1\x010", "S7\xfe\x00\x00\x03\x00", "C0\x03c", "S1\x00\x00\x00\x02\x00\x00\x00")...)...),
		uint32(0))
	f.Add(script(append([]string{"C0\x03b;s 1;d 2;x"}, append(settings, "S1\x00\x00\x00\x03\x00\x00\x00",
		"S1\x03", "S2def", "S3def", "S4def", "S5\xfe\x00\x00\x03\x00", "S6\x011\x02a1\x010", "S7\xfe\x00\x00\x03\x00",
		"S1\x02", "S2def", "S3def", "S4\xfe\x00\x00\x03\x00", "S5\x02a1\x010", "S6\xfe\x00\x00\x03\x00",
		"S1\xff\x28\x04#42000no", "S1\xff\x28\x04#42000no")...)...), uint32(gomysql.CLIENT_MULTI_STATEMENTS))
	mutate.Fuzz(f, func(t *testing.T, script []byte, caps uint32) {
		s := loggedIn(t, caps)
		in, out := len(script), 0
		for len(script) >= 3 {
			sender, n := script[0], min(int(script[2]), len(script)-3)
			piece := bytes.Clone(script[3 : 3+n])
			if sender == 'S' || sender == 'C' {
				piece, _ = appendPacket(nil, script[1], piece)
			}
			script = script[3+n:]
			var err error
			if sender == 'S' || sender == 's' {
				err = s.FromServer(1, piece)
			} else {
				_, err = s.FromClient(1, piece)
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
		if limit := 1000 + 500*in; out > limit {
			t.Fatalf("%d bytes out for %d bytes in", out, in)
		}
	}, messages()...)
}

// FuzzParsePacket gives the decoders of single packets whatever there may be.
func FuzzParsePacket(f *testing.F) {
	f.Add([]byte{markOK, 1, 0, 2, 0, 0, 0}, uint32(0))
	f.Add([]byte("\xff\x15\x04#40001Deadlock found"), uint32(0))
	f.Add([]byte("\x00\xfc\x01\x02\x03\x22\x00\x00\x00\x05abcde"), uint32(gomysql.CLIENT_SESSION_TRACK))
	mutate.Fuzz(f, func(t *testing.T, payload []byte, caps uint32) {
		if len(payload) == 0 {
			return
		}
		if ok, err := parseOK(payload, caps); err == nil {
			matchedRows(ok.info)
		}
		_, _ = parseEOF(payload)
		_, _ = parseErr(payload)
		_, _ = columnType(payload)
		types := bytes.Repeat([]byte{gomysql.MYSQL_TYPE_LONG, gomysql.MYSQL_TYPE_DATETIME,
			gomysql.MYSQL_TYPE_VAR_STRING}, 3)
		for _, columns := range []int{0, 1, 7} {
			r := reader{b: payload}
			if row, _, err := trimBinary(nil, &r, types, columns); err == nil && len(row) > len(payload) {
				t.Fatalf("a trimmed row of %d bytes out of %d", len(row), len(payload))
			}
		}
		r := reader{b: payload[1:]}
		if s := formatBinary(&r, payload[0], true); len(s) > 4*maxArgBytes+16 {
			t.Fatalf("a parameter printed in %d bytes", len(s))
		}
	})
}
