package mysql

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/internal/mutate"
)

// A wireEnd is a connection that reads from one place and writes to another.
type wireEnd struct {
	net.Conn
	in  io.Reader
	out bytes.Buffer
}

func (w *wireEnd) Read(b []byte) (int, error)  { return w.in.Read(b) }
func (w *wireEnd) Write(b []byte) (int, error) { return w.out.Write(b) }

// TestWhatIsCompressedComesBack writes random packets in random pieces, and reads them byte by byte and otherwise.
func TestWhatIsCompressedComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zstandard := rapid.Bool().Draw(t, "zstd")
		var packets []byte
		for range rapid.IntRange(0, 8).Draw(t, "packets") {
			payload := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 1, 30).Draw(t, "payload"),
				rapid.IntRange(0, 50).Draw(t, "times"))
			packets, _ = appendPacket(packets, rapid.Byte().Draw(t, "number"), payload)
		}
		w := &wireEnd{}
		writer := NewCompressed(w, zstandard, rapid.Bool().Draw(t, "to the server"))
		for rest := packets; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "bytes")
			if _, err := writer.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		var in io.Reader = bytes.NewReader(w.out.Bytes())
		if rapid.Bool().Draw(t, "byte by byte") {
			in = iotest.OneByteReader(in)
		}
		got, err := io.ReadAll(NewCompressed(&wireEnd{in: in}, zstandard, false))
		if err != nil || !bytes.Equal(got, packets) {
			t.Fatalf("%d bytes come back as %d: %v", len(packets), len(got), err)
		}
	})
}

// numbersOf returns the numbers of frames.
func numbersOf(frames []byte) (numbers []byte) {
	for len(frames) > 0 {
		numbers = append(numbers, frames[3])
		frames = frames[frameHead+payloadLen(frames):]
	}
	return numbers
}

// TestFramesToServersBeginAnewWithEachCommand holds the numbers of frames to what servers check: 0 for a command, also
// for one that is sent ahead, and on from the server's for what goes on.
func TestFramesToServersBeginAnewWithEachCommand(t *testing.T) {
	packet := func(seq byte) []byte { b, _ := appendPacket(nil, seq, []byte("x")); return b }
	reply := appendFrame(nil, 4, packet(1), false)
	w := &wireEnd{in: bytes.NewReader(reply)}
	c := NewCompressed(w, false, true)
	c.Write(append(packet(0), packet(0)...))
	c.Write(packet(0)[:2])
	c.Write(packet(0)[2:])
	if _, err := c.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	c.Write(packet(2)) // of a file
	c.Write(packet(255))
	c.Write(packet(0)) // and its 255th
	if got, want := numbersOf(w.out.Bytes()), []byte{0, 0, 0, 5, 6, 7}; !bytes.Equal(got, want) {
		t.Errorf("frames are numbered %v, not %v", got, want)
	}
}

// TestLyingFramesAreRefused: frames that do not hold what they say are refused.
func TestLyingFramesAreRefused(t *testing.T) {
	for _, zstandard := range []bool{false, true} {
		frame := appendFrame(nil, 0, bytes.Repeat([]byte("x"), 1000), zstandard)
		for name, spoil := range map[string]func(b []byte){
			"more":    func(b []byte) { b[4]-- },
			"less":    func(b []byte) { b[4]++ },
			"much":    func(b []byte) { b[6] = 0xff },
			"nothing": func(b []byte) { b[frameHead] ^= 0xff },
		} {
			b := bytes.Clone(frame)
			spoil(b)
			if _, err := openFrame(b, zstandard); !errors.Is(err, errFrame) {
				t.Errorf("one that says %s (zstd: %v): %v", name, zstandard, err)
			}
		}
	}
}

// FuzzOpenFrame opens frames of anybody's: they end in bytes or an error, and take no more memory than they say.
func FuzzOpenFrame(f *testing.F) {
	for _, zstandard := range []bool{false, true} {
		f.Add(appendFrame(nil, 0, bytes.Repeat([]byte("x"), 1000), zstandard), zstandard)
		f.Add(appendFrame(nil, 0, []byte("short"), zstandard), zstandard)
	}
	f.Add([]byte{4, 0, 0, 0, 0xff, 0xff, 0xff, 0x78, 0x9c, 0x01, 0x00}, false)
	mutate.Fuzz(f, func(t *testing.T, stream []byte, zstandard bool) {
		var frame []byte
		if len(stream) >= frameHead && len(stream) >= frameHead+payloadLen(stream) {
			frame = stream[:frameHead+payloadLen(stream)]
			if content, err := openFrame(frame, zstandard); err == nil {
				if size := payloadLen(frame[4:]); size > 0 && len(content) != size ||
					cap(content) > 4*max(size, len(frame))+1024 {
					t.Errorf("a frame of %d bytes that says %d gives %d, in %d of memory", len(frame), size,
						len(content), cap(content))
				}
			}
		}
		io.Copy(io.Discard, NewCompressed(&wireEnd{in: bytes.NewReader(stream)}, zstandard, false))
	})
}
