package mysql

import (
	"bytes"
	"strings"
	"testing"

	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// TestLongRowsPassHoweverTheyArrive cuts a reply with a row of several packets in two, at every byte
// around the packets' headers.
func TestLongRowsPassHoweverTheyArrive(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for name, size := range map[string]int{"of two packets": maxPayload + 300,
		"that ends with an empty packet": maxPayload} {
		row := bytes.Repeat([]byte{markErr}, size) // each packet after the first looks like an error
		row[0] = 0
		reply, seq := appendPacket(nil, 4, row)
		second := headerBytes + maxPayload
		reply, seq = appendPacket(reply, seq, []byte("\x01a"))
		behind := len(reply)
		reply, _ = appendPacket(reply, seq, []byte{markEOF, 0, 0, 2, 0})
		var cuts []int
		for i := 1; i <= 2*headerBytes; i++ {
			cuts = append(cuts, i, second-headerBytes+i, behind-headerBytes+i)
		}
		for _, cut := range cuts {
			x := &exchange{visible: true, grammar: resultReply}
			x.state = stateRows
			s := &Session{phase: phaseCommand, pending: pending{queue: []*exchange{x}}}
			for _, piece := range [][]byte{reply[:cut], reply[cut:]} {
				if err := s.FromServer(0, piece); err != nil {
					t.Fatalf("a row %s, cut at %d: %v", name, cut, err)
				}
			}
			if toClient, _ := s.Output(); !bytes.Equal(toClient, reply) {
				t.Errorf("a row %s, cut at %d: %d bytes came through of %d", name, cut, len(toClient), len(reply))
			}
			if !s.pending.none() || x.rows != 2 {
				t.Errorf("a row %s, cut at %d: %d rows, %d replies due", name, cut, x.rows, len(s.pending.queue))
			}
		}
	}
}

// TestLongRowsAreHeldWithinABound has a session be sent a row of three packets that it takes columns out of, with room
// for it and without.
func TestLongRowsAreHeldWithinABound(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	value := bytes.Repeat([]byte{'x'}, 2*maxPayload+100)
	visible := append(appendLenenc(nil, uint64(len(value))), value...)
	row := append(append([]byte(nil), visible...), "\x01r\x01w"...)
	reply, _ := appendPacket(nil, 5, row)
	for _, room := range []int{40 << 20, 20 << 20} {
		x := &exchange{visible: true, grammar: resultReply, stmt: &pendingStatement{plan: &sqlmysql.Plan{
			Result: sqlmysql.Result{Reply: rewrite.Trimmed, Sources: []sqlmysql.Source{{Table: "d.t"}}}}}}
		x.state, x.fields, x.hidden, x.renumber, x.seq = stateRows, 3, 2, true, 3
		memory := session.NewRowMemory(room)
		s := NewSession(Config{Options: session.Options{RowMemory: memory}})
		s.phase, s.pending = phaseCommand, pending{queue: []*exchange{x}}
		for rest := reply; len(rest) > 0; rest = rest[min(64<<10, len(rest)):] {
			if err := s.FromServer(0, rest[:min(64<<10, len(rest))]); err != nil {
				t.Fatal(err)
			}
		}
		got, _ := s.Output()
		want, _ := appendPacket(nil, 3, visible)
		switch {
		case room < len(row):
			if !s.Done() || len(got) > 300 || !strings.Contains(string(got), "max_row_memory") || got[3] != 3 {
				t.Errorf("a row for which there is no room: done %v, %d bytes, %.200q", s.Done(), len(got), got)
			}
		case !bytes.Equal(got, want):
			t.Errorf("a row of %d bytes came through as %d", len(row), len(got))
		}
		s.ServerClosed(0)
		if memory.Held() != 0 {
			t.Errorf("%d bytes are held at the end", memory.Held())
		}
	}
}
