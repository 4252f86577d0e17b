package postgres

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/isotap/isotap/proxy/txnstate"
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

// mayBeKept is what a session may keep for whatever a client or a server does.
const mayBeKept = 64 << 20

// TestHostilePeersMakeASessionKeepLittle repeats what a client says, and a server answers, until a session that keeps
// all of it would have far more than it may.
func TestHostilePeersMakeASessionKeepLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	type said struct{ client, server string }
	long := strings.Repeat("x", 4<<10)
	for _, test := range []struct {
		name  string
		times int
		first said
		says  func(i int) said
	}{
		{"statements that are prepared", 60_000, said{}, func(i int) said {
			return said{client: message1(msgParse, fmt.Sprintf("n%d\x00s %d %s\x00\x00\x00", i, i,
				long)) + message1(msgSync, "")}
		}},
		{"statements of one name that nobody answers", 16_000, said{}, func(i int) said {
			return said{message1(msgParse, fmt.Sprintf("\x00i %d %s\x00\x00\x00", i, long)), silent}
		}},
		{"portals", 150_000, said{message1(msgQuery, "b\x00"),
			message1(msgCommandComplete, "BEGIN\x00") + message1(msgReadyForQuery, "T")}, func(i int) said {
			bind := message1(msgBind,
				fmt.Sprintf("p%d\x00\x00\x00\x00\x00\x01\x00\x00\x02\x00%s\x00\x00", i, long[:512]))
			return said{client: message1(msgParse, "\x00i\x00\x00\x00") + bind + message1(msgSync, "")}
		}},
		{"savepoints", 150_000, said{message1(msgQuery, "b\x00"),
			message1(msgCommandComplete, "BEGIN\x00") + message1(msgReadyForQuery, "T")}, func(int) said {
			return said{message1(msgQuery, "v\x00"),
				message1(msgCommandComplete, "SAVEPOINT\x00") + message1(msgReadyForQuery, "T")}
		}},
		{"settings that the server reports", 150_000, said{}, func(i int) said {
			return said{server: message1(msgParameterStatus, fmt.Sprintf("p%d\x00%s\x00", i, long[:512]))}
		}},
		{"notices", 150_000, said{message1(msgQuery, "i\x00"), silent}, func(i int) said {
			return said{server: message1(msgNoticeResponse,
				fmt.Sprintf("SNOTICE\x00VNOTICE\x00C00000\x00M%d %s\x00\x00", i, long[:512]))}
		}},
		{"notifications", 150_000, said{}, func(i int) said {
			return said{server: message1(msgNotificationResponse,
				fmt.Sprintf("\x00\x00\x00\x01c%d\x00%s\x00", i, long[:512]))}
		}},
		{"rows", 150_000, said{message1(msgQuery, "x\x00"), message1(msgRowDescription, "\x00\x00")}, func(int) said {
			return said{server: message1(msgDataRow, "\x00\x00")}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := loggedIn(t)
			s.txn.unrecorded = txnstate.NewUnrecorded(16 << 20)
			say := func(what said) bool {
				if _, err := s.FromClient(0, []byte(what.client)); err != nil {
					t.Logf("%v", err)
					return false
				}
				_, toServer := s.Output()
				switch what.server {
				case "":
					what.server = answersTo(t, toServer)
				case silent:
					what.server = ""
				}
				if err := s.FromServer(0, []byte(what.server)); err != nil {
					t.Logf("%v", err)
					return false
				}
				s.Output()
				s.Events()
				return !s.Done()
			}
			grew := heapOf(func() {
				say(test.first)
				for i := 0; i < test.times && say(test.says(i)); i++ {
				}
			})
			t.Logf("the session keeps %d MiB", grew>>20)
			if grew > mayBeKept {
				t.Errorf("the session keeps %d MiB", grew>>20)
			}
			runtime.KeepAlive(s)
		})
	}
}

// silent is a server that does not answer.
const silent = "silent"

// answersTo is what a server answers in a transaction to the messages of the extended protocol.
func answersTo(t *testing.T, said []byte) string {
	var b strings.Builder
	var in frameReader
	for len(said) > 0 {
		m, used, err := in.next(said, serverLimit, never)
		if err != nil {
			t.Fatal(err)
		}
		said = said[used:]
		switch m.kind {
		case msgParse:
			b.WriteString(message1(msgParseComplete, ""))
		case msgBind:
			b.WriteString(message1(msgBindComplete, ""))
		case msgClose:
			b.WriteString(message1(msgCloseComplete, ""))
		case msgSync:
			b.WriteString(message1(msgReadyForQuery, "T"))
		}
	}
	return b.String()
}

// message1 is a message as a text.
func message1(kind byte, body string) string {
	return string(appendMessage(nil, kind, []byte(body)...))
}
