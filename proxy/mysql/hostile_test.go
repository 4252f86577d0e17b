package mysql

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/txnstate"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// heapOf returns by how many bytes the heap has grown when f is done, without garbage.
func heapOf(f func()) int {
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	f()
	return heap() - before
}

// hostilePlans plans also "p NAME", a savepoint, and "t NAME", a temporary table.
type hostilePlans struct{ plans }

func (h hostilePlans) Plan(text []byte, session sqlmysql.Session) *sqlmysql.Plan {
	switch verb, name, _ := strings.Cut(string(text), " "); verb {
	case "p":
		return &sqlmysql.Plan{Statement: rewrite.Statement{Kind: history.Savepoint},
			Txn: sqlmysql.TxnEffect{Savepoint: name}}
	case "t":
		return &sqlmysql.Plan{Statement: rewrite.Statement{Kind: history.DDL},
			Schema: sqlmysql.SchemaEffect{CreatesTemp: []rewrite.TableName{{Schema: "d", Table: name}}}}
	}
	return h.plans.Plan(text, session)
}

// A hostileCase is what a client says over and over, and what the server answers.
type hostileCase struct {
	name    string
	times   int
	begins  bool // in a transaction
	client  func(i int) []byte
	answers func(i int) [][]byte // the packets of the reply; nil: there is none
}

var hostileCases = func() []hostileCase {
	long := strings.Repeat("x", 4<<10)
	ok := func(int) [][]byte { return [][]byte{{markOK, 0, 0, 3, 0, 0, 0}} }
	query := func(format string) func(int) []byte {
		return func(i int) []byte { return fmt.Appendf([]byte{gomysql.COM_QUERY}, format, i) }
	}
	// A result of one column and isotap's two, with many rows.
	rows := func(i int) (packets [][]byte) {
		eof := []byte{markEOF, 0, 0, 3, 0}
		packets = [][]byte{{3}, []byte("def"), []byte("def"), []byte("def"), eof}
		for n := range 500 {
			id := fmt.Sprintf("a%x", 500*i+n)
			row := append([]byte{1, '1', byte(len(id))}, id...)
			packets = append(packets, append(row, 1, '0'))
		}
		return append(packets, eof)
	}
	return []hostileCase{
		{"savepoints", 100_000, true, query("p s%d" + long[:400]), ok},
		{"temporary tables", 30_000, true, query("t t%d" + long[:1500]), ok},
		{"texts that the server refuses", 10_000, true, query("u %d " + long), func(i int) [][]byte {
			return [][]byte{appendErr(nil, serverError{1064, "42000", fmt.Sprint(i, long[:400])})}
		}},
		{"long parameters that nobody executes", 10_000, false, func(i int) []byte {
			head := binary.LittleEndian.AppendUint32([]byte{gomysql.COM_STMT_SEND_LONG_DATA}, uint32(i))
			return append(append(head, 0, 0), long...)
		}, nil},
		{"databases", 50_000, false, func(i int) []byte {
			return fmt.Appendf([]byte{gomysql.COM_INIT_DB}, "d%d%s", i, long[:1000])
		}, ok},
		{"settings that the server reports", 20_000, false, query("x %d"), func(i int) [][]byte {
			state := fmt.Appendf(nil, "\x00%c\x06name%02d\x06value%d", 7+len(fmt.Sprint("value", i%10)), i%100, i%10)
			return [][]byte{append([]byte{markOK, 0, 0, 3, 0x40, 0, 0, 0, byte(len(state))}, state...)}
		}},
		{"rows", 1_000, true, query("s %d"), rows},
	}
}()

// TestHostilePeersMakeASessionKeepLittle repeats what a client says, and a server answers, until a session that keeps
// all of it would have far more than it may.
func TestHostilePeersMakeASessionKeepLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	const mayBeKept = 24 << 20
	for _, test := range hostileCases {
		t.Run(test.name, func(t *testing.T) {
			s := loggedIn(t, gomysql.CLIENT_SESSION_TRACK)
			s.cfg.Planner = hostilePlans{}
			s.Output() // the login
			s.txn.unrecorded = txnstate.NewUnrecorded(8 << 20)
			if test.begins {
				exchangeOf(t, s, []byte("\x03b"), [][]byte{{markOK, 0, 0, 3, 0, 0, 0}})
			}
			said := 0
			grew := heapOf(func() {
				for goesOn := true; said < test.times && goesOn; said++ {
					var answers [][]byte
					if test.answers != nil {
						answers = test.answers(said)
					}
					goesOn = exchangeOf(t, s, test.client(said), answers)
				}
			})
			t.Logf("after %d times the session keeps %d MiB", said, grew>>20)
			if grew > mayBeKept {
				t.Errorf("after %d times the session keeps %d MiB", said, grew>>20)
			}
			runtime.KeepAlive(s)
		})
	}
}

// settingsOf answers isotap's question about settings, with 0 for what this does not know.
func settingsOf(question string) [][]byte {
	values := []string{"REPEATABLE-READ", "", "utf8", "d", "1024", "1024", "18446744073709551615"}
	columns, eof := strings.Count(question, "CAST("), []byte{markEOF, 0, 0, 3, 0}
	packets, row := [][]byte{{byte(columns)}}, []byte(nil)
	for i := range columns {
		packets = append(packets, []byte("def"))
		value := "0"
		if i < len(values) {
			value = values[i]
		}
		row = append(append(row, byte(len(value))), value...)
	}
	return append(packets, eof, row, eof)
}

// exchangeOf has a session take a command of the client's, and answers all that goes to the server: the command as
// given, questions of isotap's own about settings truly, others with an error. It reports whether the session goes on.
func exchangeOf(t *testing.T, s *Session, command []byte, answers [][]byte) bool {
	t.Helper()
	packet, _ := appendPacket(nil, 0, command)
	if _, err := s.FromClient(0, packet); err != nil {
		t.Fatal(err)
	}
	for !s.Done() {
		_, toServer := s.Output()
		if len(toServer) == 0 {
			break
		}
		text := string(toServer[headerBytes+1:])
		reply, question := answers, toServer[headerBytes] == gomysql.COM_QUERY
		switch {
		case question && strings.Contains(text, "@@"):
			reply = settingsOf(text)
		case question && (strings.HasPrefix(text, "SELECT") || strings.HasPrefix(text, "SHOW")):
			reply = [][]byte{appendErr(nil, serverError{1064, "42000", "no"})}
		}
		for i, payload := range reply {
			packet, _ := appendPacket(nil, byte(i+1), payload)
			if err := s.FromServer(0, packet); err != nil {
				t.Logf("%.20q: %v", command, err)
				return false
			}
		}
		if len(reply) == 0 {
			break
		}
	}
	s.Events()
	return !s.Done()
}

// TestTooManyPreparedStatementsAreForgotten prepares more than a session keeps, and executes the first and the last of
// them.
func TestTooManyPreparedStatementsAreForgotten(t *testing.T) {
	const times = 30_000
	s := loggedIn(t, 0)
	id, sent := uint32(0), []byte(nil)
	say := func(command []byte) {
		t.Helper()
		packet, _ := appendPacket(nil, 0, command)
		if _, err := s.FromClient(0, packet); err != nil {
			t.Fatal(err)
		}
		for {
			_, toServer := s.Output()
			if len(toServer) == 0 {
				break
			}
			sent = bytes.Clone(toServer)
			var answer []byte
			switch toServer[headerBytes] {
			case gomysql.COM_STMT_PREPARE:
				id++
				answer = append(binary.LittleEndian.AppendUint32([]byte{markOK}, id), 0, 0, 0, 0, 0, 0, 0)
			case gomysql.COM_STMT_EXECUTE:
				answer = []byte{markOK, 0, 0, 2, 0, 0, 0}
			default: // a question of isotap's own
				answer = appendErr(nil, serverError{1064, "42000", "no"})
			}
			packet, _ := appendPacket(nil, 1, answer)
			if err := s.FromServer(0, packet); err != nil {
				t.Fatal(err)
			}
		}
		s.Events()
	}
	long := strings.Repeat("x", 4<<10)
	grew := heapOf(func() {
		for i := range times {
			say(fmt.Appendf(nil, "\x16z %d %s", i, long))
		}
	})
	t.Logf("of %d statements %d are kept, in %d MiB", times, len(s.prepared.byID), grew>>20)
	if grew > maxPrepared || len(s.prepared.byID) == 0 || len(s.prepared.byID) == times {
		t.Errorf("of %d statements %d are kept, in %d MiB", times, len(s.prepared.byID), grew>>20)
	}
	for _, which := range []uint32{1, times} {
		say(append(binary.LittleEndian.AppendUint32([]byte{gomysql.COM_STMT_EXECUTE}, which), 1, 1, 0, 0, 0))
		if len(sent) < headerBytes+5 || sent[headerBytes] != gomysql.COM_STMT_EXECUTE ||
			binary.LittleEndian.Uint32(sent[headerBytes+1:]) != which {
			t.Errorf("the execution of statement %d went as %q", which, sent)
		}
	}
	runtime.KeepAlive(s)
}
