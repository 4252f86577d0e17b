package mysql

import (
	"bytes"
	"testing"
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
