package mysql

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

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
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before, long := heap(), strings.Repeat("x", 4<<10)
	for i := range times {
		say(fmt.Appendf(nil, "\x16z %d %s", i, long))
	}
	grew := heap() - before
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
