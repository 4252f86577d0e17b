package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/serverlog"
)

// A sender sends statements to isotap in one of the ways that the protocol has.
type sender struct {
	name string
	send func(statements ...string) []pgproto3.FrontendMessage
}

// senders: by Query, each answered before the next; all of them at once; in segments of their own; and in one segment.
var senders = []sender{
	{"queries", nil},
	{"queries at once", func(statements ...string) (all []pgproto3.FrontendMessage) {
		for _, sql := range statements {
			all = append(all, texts(sql)...)
		}
		return all
	}},
	{"segments at once", func(statements ...string) []pgproto3.FrontendMessage {
		return pipelined(strings.Join(statements, "|/S|"))
	}},
	{"one segment", func(statements ...string) []pgproto3.FrontendMessage {
		return pipelined(strings.Join(statements, "|"))
	}},
}

// run has a client run statements, which the server takes.
func (s *sender) run(t *testing.T, f frontend, statements ...string) {
	t.Helper()
	var replies []string
	if s.send != nil {
		var err error
		if replies, err = f.ask(s.send(statements...)...); err != nil {
			t.Fatal(err)
		}
	} else {
		for _, sql := range statements {
			m := texts(sql)
			if strings.Contains(sql, "FROM STDIN") {
				m = append(m, &pgproto3.CopyData{Data: []byte("1\n")}, &pgproto3.CopyDone{})
			}
			got, err := f.ask(m...)
			if err != nil {
				t.Fatal(err)
			}
			replies = append(replies, got...)
		}
	}
	for _, r := range replies {
		if r[0] == 'E' {
			t.Fatalf("%s: %v: %q", s.name, statements, r)
		}
	}
}

// TestLostUpdateByWritesThatCommitThemselves has a client lose an update to one that writes the row outside of a block,
// or in one that is sent with its COMMIT at once, without a statement that tells.
func TestLostUpdateByWritesThatCommitThemselves(t *testing.T) {
	for _, by := range senders {
		for _, write := range []string{
			"DO 'BEGIN UPDATE counter SET v = v + 1 WHERE id = 1; END'",
			"SELECT touch(1)",
			"CALL long(1)",
			"CALL halves(6)", // which commits, and then writes 1
			"COPY event (counter) FROM STDIN",
		} {
			for _, block := range []bool{false, true} {
				copies := strings.HasPrefix(write, "COPY")
				if copies && by.send != nil || block && (by.send == nil || strings.Contains(write, "halves")) {
					continue
				}
				t.Run(fmt.Sprintf("%s by %s, block %t", write, by.name, block), func(t *testing.T) {
					b := newLoggedBench(t, serverlog.Require, effectTables...)
					x := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
					y, err := newFrontend(b.srv.Addr().String(), b.database)
					if err != nil {
						t.Fatal(err)
					}
					defer y.Close()
					b.exec(x, "BEGIN", "SELECT v FROM counter WHERE id = 1")
					if block {
						by.run(t, y, "BEGIN", write, "COMMIT")
					} else {
						by.run(t, y, write)
					}
					b.exec(x, "UPDATE counter SET v = 9 WHERE id = 1", "COMMIT")
					r := b.undisputed()
					if len(r.Findings) != 1 || countOf(t, r, analyzer.LostUpdate) != 1 || r.Coverage.Log.Told == 0 {
						t.Fatalf("%d findings, %+v", len(r.Findings), r.Coverage.Log)
					}
					if told := transactionsOf(r.Findings[0]); !strings.Contains(told, "unseen, from the log") {
						t.Errorf("the write is not named: %s", told)
					}
				})
			}
		}
	}
}

// TestWritesWhoseQuestionFailsAreUndone has the question fail that isotap asks behind a statement that commits by
// itself: the client is told that it failed, and nothing of it is there.
func TestWritesWhoseQuestionFailsAreUndone(t *testing.T) {
	b, asked := newCancelingBench(t, effectTables...)
	y, err := newFrontend(b.srv.Addr().String(), b.database)
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	failed, calls := 0, 0 // a procedure may have committed before it failed
	for _, write := range []string{"DO 'BEGIN UPDATE counter SET v = 9; END'", "SELECT touch(1)", "CALL long(1)",
		"COPY event (counter) FROM STDIN"} {
		for _, extended := range []bool{false, true} {
			messages := texts(write)
			switch copies := strings.HasPrefix(write, "COPY"); {
			case copies && extended:
				continue
			case copies:
				messages = append(messages, &pgproto3.CopyData{Data: []byte("1\n")}, &pgproto3.CopyDone{})
			case extended:
				messages = pipelined(write)
			}
			asked.Store(false)
			replies, err := y.ask(messages...)
			if err != nil {
				t.Fatal(err)
			}
			last := replies[max(len(replies)-2, 0)]
			if !asked.Load() || last[0] != 'E' || !strings.Contains(last, "C22012") || !extended && (len(replies) > 4 ||
				slices.ContainsFunc(replies, func(r string) bool { return r[0] == 'C' })) {
				t.Errorf("%s, extended %t: asked %t, the client gets %q", write, extended, asked.Load(), replies)
			}
			if failed++; strings.HasPrefix(write, "CALL") || strings.HasPrefix(write, "DO") {
				calls++
			}
			if replies, err = y.ask(texts("SELECT 1 FROM counter WHERE v > 0")...); err != nil || len(replies) != 3 {
				t.Errorf("%s, extended %t: left behind: %q, %v", write, extended, replies, err)
			}
		}
	}
	if c := b.undisputed().Coverage; c.Aborted != failed-calls || c.Indeterminate != calls {
		t.Errorf("of %d transactions, %d of them calls, %d aborted, %d are indeterminate", failed, calls, c.Aborted, c.Indeterminate)
	}
}
