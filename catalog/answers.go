package catalog

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// The library believes what a server says of the length of its answer, and keeps all of it. So an answer is looked at
// before the library has it: a process cannot recover from being out of memory.
const (
	// maxLoginAnswers is how much the server may say before the login is over.
	maxLoginAnswers = 1 << 20
	// maxAnswer is how much it may answer to one statement: the columns of a million tables' definitions are less.
	maxAnswer = 256 << 20
	// maxMessage is how long one message of PostgreSQL's may be among its answers.
	maxMessage = 64 << 20
	// maxColumns is the most columns that a result can have on a server.
	maxColumns = 4096
)

// Answers is a connection to a server whose answers are bounded. It may be read by several goroutines at a time: pgx
// reads a connection that it gives up by another one than the one that still waits for its answer.
type Answers struct {
	net.Conn
	most     int64
	perWrite bool // each write begins another answer
	packets  bool // what comes are packets of MySQL's protocol, whose heads are looked at

	mu     sync.Mutex // for what is below; not held while a read waits
	left   int64      // bytes of the answer
	packet packetHead
	err    error
}

func newAnswers(conn net.Conn, most int64, packets bool) *Answers {
	return &Answers{Conn: conn, most: most, left: most, perWrite: packets, packets: packets}
}

// BoundLogin returns a connection to a server of the MySQL family that may say no more than a login needs, until the
// bound is lifted.
func BoundLogin(conn net.Conn) *Answers { return newAnswers(conn, maxLoginAnswers, false) }

// BoundMySQLAnswers returns a connection to a server of the MySQL family, of which reads fail once an answer is longer
// than those to isotap's questions can be, or announces more columns than there can be.
func BoundMySQLAnswers(conn net.Conn) net.Conn { return newAnswers(conn, maxAnswer, true) }

// BoundPostgreSQL has the connections that are made by a configuration bounded: reads fail once an answer, or one
// message of it, is longer than those to isotap's questions can be.
func BoundPostgreSQL(config *pgconn.Config) {
	config.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
		return &Answers{Conn: conn, most: maxAnswer, left: maxAnswer, perWrite: true}, nil
	}
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		f := pgproto3.NewFrontend(r, w)
		f.SetMaxBodyLen(maxMessage)
		return f
	}
}

// Lift takes the bound away.
func (a *Answers) Lift() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = math.MaxInt64
}

// Write begins with the next answer, unless all that the server says is one.
func (a *Answers) Write(p []byte) (int, error) {
	if a.perWrite {
		a.mu.Lock()
		a.left = a.most
		a.packet.first = true
		a.mu.Unlock()
	}
	return a.Conn.Write(p)
}

// Read fails once the answer cannot be one.
func (a *Answers) Read(p []byte) (int, error) {
	if err := a.failed(); err != nil {
		return 0, err
	}
	n, err := a.Conn.Read(p)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left -= int64(n); a.left < 0 {
		a.err = fmt.Errorf("the server's answer has more than %d bytes", a.most)
	} else if a.packets {
		a.err = a.packet.look(p[:n])
	}
	if a.err != nil {
		return 0, a.err
	}
	return n, err
}

func (a *Answers) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// headerBytes is how long a packet's header is.
const headerBytes = 4

// A packetHead is the beginning of the packet that a server is sending.
type packetHead struct {
	bytes [headerBytes + 1 + 8]byte // with room for a number of columns
	have  int
	left  int  // bytes of the packet behind those
	first bool // a result may begin with it
}

// look takes what the server has sent, and fails where it announces more columns than there can be.
func (h *packetHead) look(p []byte) error {
	for len(p) > 0 {
		if h.have >= headerBytes && h.left > 0 && h.have == len(h.bytes) {
			n := min(h.left, len(p))
			h.left, p = h.left-n, p[n:]
		} else {
			h.take(p[0])
			p = p[1:]
		}
		if h.have < headerBytes || h.left > 0 {
			continue
		}
		if err := h.judge(h.bytes[headerBytes:h.have]); err != nil {
			return err
		}
		h.have = 0
	}
	return nil
}

// take takes a byte of the head.
func (h *packetHead) take(b byte) {
	h.bytes[h.have] = b
	if h.have++; h.have < headerBytes {
		return
	}
	if h.have == headerBytes {
		h.left = int(h.bytes[0]) | int(h.bytes[1])<<8 | int(h.bytes[2])<<16
	} else {
		h.left--
	}
}

// judge looks at a packet of which it has the beginning. A number of columns is all that a packet holds; no row is as
// short and begins so, and of the ends of rows only those of the results before.
func (h *packetHead) judge(payload []byte) error {
	first := h.first
	h.first = false
	if len(payload) == 0 {
		return nil
	}
	var columns uint64
	size := int(h.bytes[0]) | int(h.bytes[1])<<8 | int(h.bytes[2])<<16
	switch mark := payload[0]; {
	case mark == 0xfc && size == 3:
		columns = uint64(binary.LittleEndian.Uint16(payload[1:]))
	case mark == 0xfd && size == 4:
		columns = uint64(payload[1]) | uint64(payload[2])<<8 | uint64(payload[3])<<16
	case mark == 0xfe && size == 9 && first:
		columns = binary.LittleEndian.Uint64(payload[1:])
	case mark == 0x00 && first, mark == 0xfe:
		h.first = true // another result may follow; what else comes is none of the above
	}
	if columns > maxColumns {
		return fmt.Errorf("the server announces a result of %d columns", columns)
	}
	return nil
}
