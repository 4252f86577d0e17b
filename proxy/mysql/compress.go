package mysql

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/isotap/isotap/proxy/txnstate"
)

// A client and a server that agree on compression speak it from the end of the login on: each stretch of packets goes
// in a frame of its own, of 3 bytes for its length, 1 for its number, 3 for the length of what is in it, 0 where that
// is not compressed (https://mariadb.com/kb/en/0-packet/#compressed-packet,
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_compression_packet.html). Each leg is taken
// apart and put together by itself, below the session, which sees plain packets.
const (
	frameHead = 7
	// maxUnpacked bounds the memory in bytes that one frame may take.
	maxUnpacked uint64 = 32 << 20
	// minCompressed is the length from which on packets are worth it, as in the servers' sources.
	minCompressed = 50
)

// NewCompressed returns a connection that speaks compressed over c, by zlib or zstd, to a server or a client. What is
// written must be packets.
func NewCompressed(c net.Conn, zstandard, toServer bool) net.Conn {
	return &compressedConn{Conn: c, zstd: zstandard, toServer: toServer}
}

// A compressedConn reads and writes packets in frames. One goroutine may read while another writes.
type compressedConn struct {
	net.Conn
	zstd     bool
	toServer bool

	raw   []byte // what was read, up to less than a frame
	plain []byte // of frames, still to be read

	mu    sync.Mutex
	seq   byte // number of the next frame to be written
	heard bool // something was read since the last packet was written

	outgoing
}

// outgoing is where the packets stand that are written.
type outgoing struct {
	held []byte // the beginning of a packet's header
	left int    // bytes still to come of a packet
	last byte   // the number of the packet before
}

// CloseWrite says that nothing more will be written.
func (c *compressedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// Read reads packets, or parts of them.
func (c *compressedConn) Read(b []byte) (int, error) {
	for len(c.plain) == 0 {
		frame, err := c.readFrame(b)
		if err != nil {
			return 0, err
		}
		c.mu.Lock()
		c.seq, c.heard = frame[3]+1, true
		c.mu.Unlock()
		if c.plain, err = openFrame(frame, c.zstd); err != nil {
			return 0, err
		}
		if c.raw = c.raw[len(frame):]; len(c.raw) == 0 {
			c.raw = txnstate.Reusable(c.raw)
		}
	}
	n := copy(b, c.plain)
	c.plain = c.plain[n:]
	return n, nil
}

// readFrame returns the next whole frame, which begins raw. room is where it may read to.
func (c *compressedConn) readFrame(room []byte) ([]byte, error) {
	for {
		if len(c.raw) >= frameHead && len(c.raw) >= frameHead+payloadLen(c.raw) {
			return c.raw[:frameHead+payloadLen(c.raw)], nil
		}
		n, err := c.Conn.Read(room)
		c.raw = append(c.raw, room[:n]...)
		if err != nil {
			return nil, err
		}
	}
}

// errFrame is wrapped by errors about frames that do not hold what they say.
var errFrame = errors.New("malformed compressed packet")

// openFrame returns what is in a frame. It never takes more memory than the frame holds and says that it holds,
// whichever is less: frames come from outside.
func openFrame(frame []byte, zstandard bool) ([]byte, error) {
	content, size := frame[frameHead:], payloadLen(frame[4:])
	if size == 0 {
		return bytes.Clone(content), nil
	}
	var r io.Reader
	if zstandard {
		d, err := zstd.NewReader(bytes.NewReader(content), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(maxUnpacked))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errFrame, err)
		}
		defer d.Close()
		r = d
	} else {
		z, err := zlib.NewReader(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errFrame, err)
		}
		defer z.Close()
		r = z
	}
	var b bytes.Buffer
	n, err := b.ReadFrom(io.LimitReader(r, int64(size)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errFrame, err)
	case n != int64(size):
		return nil, fmt.Errorf("%w: it holds %d bytes, or more, where it says %d", errFrame, n, size)
	}
	return b.Bytes(), nil
}

// Write writes packets, or parts of them.
func (c *compressedConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := b
	if len(c.held) > 0 {
		rest = append(c.held, b...)
		c.held = nil
	}
	var out []byte
	from := 0
	for at := 0; at < len(rest); {
		if c.left > 0 {
			n := min(c.left, len(rest)-at)
			at, c.left = at+n, c.left-n
			continue
		}
		if len(rest)-at < headerBytes {
			c.held = bytes.Clone(rest[at:])
			rest = rest[:at]
			break
		}
		if c.begins(rest[at+3]) {
			out = c.appendFrames(out, rest[from:at])
			from, c.seq = at, 0
		}
		c.last, c.heard, c.left = rest[at+3], false, payloadLen(rest[at:])
		at += headerBytes
	}
	out = c.appendFrames(out, rest[from:])
	if _, err := c.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// begins reports whether a packet of that number begins a command: servers then count frames from 0, too, and hang up
// on others. (They alone look at the number.) Packets of a long file or command come by 0 again after 255.
func (c *compressedConn) begins(seq byte) bool {
	return c.toServer && seq == 0 && (c.last != 255 || c.heard)
}

// appendFrames puts packets into frames.
func (c *compressedConn) appendFrames(out, packets []byte) []byte {
	for len(packets) > 0 {
		n := min(len(packets), maxPayload-frameHead)
		out = appendFrame(out, c.seq, packets[:n], c.zstd)
		packets = packets[n:]
		c.seq++
	}
	return out
}

// appendFrame adds one frame to b. What does not get shorter goes as it is.
func appendFrame(b []byte, seq byte, content []byte, zstandard bool) []byte {
	size := len(content)
	packed := content
	if size >= minCompressed {
		packed = pack(content, zstandard)
	}
	if len(packed) >= size {
		packed, size = content, 0
	}
	n := len(packed)
	b = append(b, byte(n), byte(n>>8), byte(n>>16), seq, byte(size), byte(size>>8), byte(size>>16))
	return append(b, packed...)
}

// pack compresses.
func pack(content []byte, zstandard bool) []byte {
	if zstandard {
		return zstdEncoder().EncodeAll(content, nil)
	}
	var b bytes.Buffer
	w := zlibWriters.Get().(*zlib.Writer)
	defer zlibWriters.Put(w)
	w.Reset(&b)
	w.Write(content) // to memory, which does not fail
	w.Close()
	return b.Bytes()
}

var zlibWriters = sync.Pool{New: func() any { return zlib.NewWriter(io.Discard) }}

// zstdEncoder is used by all connections. Its options are valid.
var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	e, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(1<<20))
	return e
})
