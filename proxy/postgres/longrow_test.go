package postgres

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/isotap/isotap/proxy/session"
)

// rowOf is the body of a row; nil is NULL.
func rowOf(values ...[]byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(values)))
	for _, v := range values {
		if v == nil {
			b = binary.BigEndian.AppendUint32(b, 1<<32-1)
			continue
		}
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	return b
}

// hiddenValues are those of the plan of "s" in the tests: where a row is, which version, and its key.
var hiddenValues = [][]byte{[]byte("(0,1)"), []byte("700"), []byte("5")}

// querying returns a session whose client awaits rows, and what it has heard so far.
func querying(t *testing.T, memory *session.RowMemory, columns ...string) *Session {
	t.Helper()
	s := loggedIn(t)
	s.cfg.RowMemory = memory
	said(s)
	if _, err := s.FromClient(0, appendMessage(nil, msgQuery, []byte("s\x00")...)); err != nil {
		t.Fatal(err)
	}
	description := descriptionOf(append(columns, "isotap_1", "isotap_2", "isotap_3")...)
	if err := s.FromServer(0, appendMessage(nil, msgRowDescription, description...)); err != nil {
		t.Fatal(err)
	}
	said(s)
	return s
}

// said returns all that a session has for its client.
func said(s *Session) []byte {
	var all []byte
	for {
		toClient, _ := s.Output()
		if len(toClient) == 0 {
			return all
		}
		all = append(all, toClient...)
	}
}

// inPieces gives a session what the server says, cut at some bytes and then in pieces as a socket gives them.
func inPieces(t *testing.T, s *Session, b []byte, cut int) {
	t.Helper()
	for from, to := 0, cut; from < len(b); from, to = to, min(to+64<<10, len(b)) {
		if err := s.FromServer(0, b[from:to]); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLongRowsAreTrimmedAsShortOnes gives rows of more than isotap looks at as a whole, however they arrive.
func TestLongRowsAreTrimmedAsShortOnes(t *testing.T) {
	long := bytes.Repeat([]byte("D\x00\x00\x00\x04"), wholeMessage/3)
	for name, values := range map[string][][]byte{
		"one value":          {long},
		"the last one":       {[]byte("1"), nil, long},
		"the first one":      {long, nil, {}, []byte("x")},
		"one of one piece":   {long[:pieceBytes-lengthBytes], long},
		"NULL and long ones": {nil, long, nil, long, nil},
	} {
		var columns []string
		for range values {
			columns = append(columns, "c")
		}
		row := appendMessage(nil, msgDataRow, rowOf(append(values[:len(values):len(values)], hiddenValues...)...)...)
		end := appendMessage(nil, msgCommandComplete, []byte("SELECT 2\x00")...)
		end = appendMessage(end, msgReadyForQuery, 'I')
		want := appendMessage(nil, msgDataRow, rowOf(values...)...)
		want = append(append(want, want...), end...)
		for _, cut := range []int{1, 4, 5, 6, 7, 9, 11, 12, 64 << 10, len(row) - 40, len(row) - 1, len(row), len(row) + 3} {
			memory := session.NewRowMemory(64 << 20)
			s := querying(t, memory, columns...)
			inPieces(t, s, append(append(bytes.Clone(row), row...), end...), cut)
			if got := said(s); !bytes.Equal(got, want) {
				t.Errorf("%s, cut at %d: %d bytes, not %d", name, cut, len(got), len(want))
			}
			if memory.Held() != 0 {
				t.Errorf("%s, cut at %d: %d bytes are held at the end", name, cut, memory.Held())
			}
			for _, e := range s.Events() {
				if e.Txn != nil && len(e.Txn.Stmts[0].Accesses) != 2 {
					t.Errorf("%s, cut at %d: %d rows are recorded", name, cut, len(e.Txn.Stmts[0].Accesses))
				}
			}
		}
	}
}

// TestLongRowsAreHeldWithinABound has sessions be sent more than they may hold all together.
func TestLongRowsAreHeldWithinABound(t *testing.T) {
	memory := session.NewRowMemory(8 << 20)
	row := appendMessage(nil, msgDataRow, rowOf(append([][]byte{bytes.Repeat([]byte("x"), 5<<20)}, hiddenValues...)...)...)
	first, second := querying(t, memory, "c"), querying(t, memory, "c")
	inPieces(t, first, row[:len(row)-5], 64<<10)
	inPieces(t, second, row, 64<<10)
	if got := string(said(second)); !strings.Contains(got, "C53200\x00") || !second.Done() {
		t.Errorf("a row for which there is no room ends with %q, done: %v", got, second.Done())
	}
	inPieces(t, first, row[len(row)-5:], 5)
	if got := said(first); len(got) < 5<<20 {
		t.Errorf("the other session's row has %d bytes", len(got))
	}
	third := querying(t, memory, "c")
	inPieces(t, third, row[:4<<20], 64<<10)
	third.ServerClosed(0)
	if memory.Held() != 0 {
		t.Errorf("%d bytes are held when all is over", memory.Held())
	}
	notice := appendMessage(nil, msgNoticeResponse, []byte("M"+strings.Repeat("x", 5<<20)+"\x00\x00")...)
	fourth := querying(t, memory, "c")
	inPieces(t, fourth, notice, 64<<10)
	if got := string(said(fourth)); !strings.Contains(got, "C53200\x00") || memory.Held() != 0 {
		t.Errorf("a notice for which there is no room ends with %q; %d bytes are held", got, memory.Held())
	}
}

// TestLongRowIsHeldOnce measures what a row takes of which all but the end has come, with the garbage that it made.
func TestLongRowIsHeldOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	const size = 256 << 20
	s := querying(t, session.NewRowMemory(512<<20), "c")
	head := appendMessage(nil, msgDataRow, 0, 4)
	binary.BigEndian.PutUint32(head[1:], 4+2+4+size+40)
	head = binary.BigEndian.AppendUint32(head, size)
	piece := make([]byte, 64<<10)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	inPieces(t, s, head, len(head))
	for range size / len(piece) {
		inPieces(t, s, piece, len(piece))
	}
	runtime.ReadMemStats(&after)
	grew := int(after.HeapAlloc) - int(before.HeapAlloc)
	t.Logf("a row of %d MiB takes %d MiB", size>>20, grew>>20)
	if grew > size+size/4 {
		t.Errorf("a row of %d MiB takes %d MiB", size>>20, grew>>20)
	}
}

// TestLongRowsOfAServerReachTheClient has a server send rows of some MiB, which isotap takes its columns out of.
func TestLongRowsOfAServerReachTheClient(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	r := newRig(t, nil, reset)
	const sql = "SELECT id, repeat(s, 400000 + id), n FROM t WHERE id < 4 ORDER BY id"
	steps := append(queries(sql, "BEGIN", "DECLARE c CURSOR FOR "+sql, "FETCH 2 FROM c", "COMMIT",
		"UPDATE t SET n = n WHERE id = 3 RETURNING repeat(s, 300000)"),
		send(1, parse("", sql), bind("", "", []int16{1}), execute("", 2), execute("", 0), syncs))
	want, got := steady(converse(t, r.direct, r.database, steps)), steady(converse(t, r.proxied, r.database, steps))
	if got != want {
		t.Errorf("isotap's answer differs:\n%.1000s", difference(want, got))
	}
	for _, txn := range r.recorded() {
		for _, st := range txn.Stmts {
			if strings.HasPrefix(st.Shape, "SELECT id") && (len(st.Accesses) < 2 || !st.Reason.IsZero()) {
				t.Errorf("%s is recorded with %d rows (%v)", st.Shape, len(st.Accesses), st.Reason)
			}
		}
	}
}
