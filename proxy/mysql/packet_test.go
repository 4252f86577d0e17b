package mysql

import (
	"bytes"
	"testing"
)

// pieces cuts b into pieces of that size.
func pieces(b []byte, size int) (all [][]byte) {
	for len(b) > 0 {
		n := min(size, len(b))
		all, b = append(all, b[:n]), b[n:]
	}
	return all
}

func TestPacketsAreCutHoweverTheyArrive(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	var sent []byte
	want := [][]byte{[]byte("first"), bytes.Repeat([]byte("x"), maxPayload+3), {}, []byte("last")}
	for i, payload := range want {
		sent, _ = appendPacket(sent, byte(i), payload)
	}
	for _, size := range []int{1 << 20, 4099, len(sent)} {
		var r packetReader
		var got [][]byte
		for _, piece := range pieces(sent, size) {
			for len(piece) > 0 {
				packet, used := r.next(piece)
				if piece = piece[used:]; packet == nil {
					continue
				}
				payload, whole := r.join(packet)
				if !whole {
					continue
				}
				if seq := firstSeq(packet, payload); seq != byte(len(got)) {
					t.Errorf("pieces of %d: payload %d begins with packet %d", size, len(got), seq)
				}
				got = append(got, bytes.Clone(payload))
			}
		}
		if len(got) != len(want) || r.midway() {
			t.Fatalf("pieces of %d: %d payloads of %d, another under way: %t", size, len(got), len(want), r.midway())
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("pieces of %d: payload %d has %d bytes, want %d", size, i, len(got[i]), len(want[i]))
			}
		}
	}
}

func TestUploadsEndBehindTheirLastPacket(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	long, _ := appendPacket(nil, 0, bytes.Repeat([]byte("x"), maxPayload))
	short, _ := appendPacket(nil, 2, []byte("file"))
	empty, _ := appendPacket(nil, 3, nil)
	for _, size := range []int{3, 1 << 20} {
		var u upload
		var r packetReader
		var out []byte
		var sizes []int
		sent := bytes.Join([][]byte{long, short, empty}, nil)
		for _, piece := range pieces(sent, size) {
			for len(piece) > 0 {
				var n int
				var ended bool
				if out, n, ended = u.pass(piece, &r, out); ended {
					sizes = append(sizes, u.size)
				}
				piece = piece[n:]
			}
		}
		if !bytes.Equal(out, sent) {
			t.Errorf("pieces of %d: %d bytes went on of %d", size, len(out), len(sent))
		}
		// The packet of the longest length goes on in an empty one, which ends the payload.
		if len(sizes) != 3 || sizes[0] != maxPayload || sizes[1] != 4 || sizes[2] != 0 {
			t.Errorf("pieces of %d: payloads of %v bytes", size, sizes)
		}
	}
}

func TestRowStreamsEndWithTheirRow(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	row, _ := appendPacket(nil, 0, bytes.Repeat([]byte("x"), maxPayload+7))
	for _, size := range []int{3, 4099} {
		var r packetReader
		s := rowStream{left: len(row[:headerBytes+maxPayload]) - 10, long: true} // its beginning has gone on
		rest := row[10:]
		var out []byte
		for _, piece := range pieces(append(bytes.Clone(rest), "the next packet"...), size) {
			for len(piece) > 0 && s.open() {
				var n int
				out, n = s.pass(piece, &r, out)
				piece = piece[n:]
			}
		}
		if !bytes.Equal(out, rest) || s.open() {
			t.Errorf("pieces of %d: %d bytes went on of %d, more to come: %t", size, len(out), len(rest), s.open())
		}
	}
}
