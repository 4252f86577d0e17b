package postgres

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"
)

// A long message comes in pieces. Room that grows by less than double leaves several times its length as garbage; room
// for all of it at once would believe a length that a sender only claims.
func TestRoomForLongMessagesFollowsWhatCame(t *testing.T) {
	const size, piece = 24 << 20, 64 << 10
	head := binary.BigEndian.AppendUint32([]byte{msgDataRow}, size-1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var in frameReader
	if _, _, err := in.next(head, upTo(maxMessage), never); err != nil {
		t.Fatal(err)
	}
	if got := cap(in.buf); got > piece {
		t.Errorf("room for %d bytes when %d have come", got, len(head))
	}
	body := bytes.Repeat([]byte{'x'}, piece)
	var got message
	for came := headBytes; came < size; {
		m, used, err := in.next(body[:min(piece, size-came)], upTo(maxMessage), never)
		if err != nil {
			t.Fatal(err)
		}
		came, got = came+used, m
	}
	runtime.ReadMemStats(&after)
	if len(got.raw) != size || !bytes.Equal(got.raw[:headBytes], head) ||
		bytes.Count(got.body, []byte{'x'}) != size-headBytes {
		t.Errorf("a message of %d bytes came as %d", size, len(got.raw))
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 3*size {
		t.Errorf("%d bytes were taken for a message of %d", took, size)
	}
}
