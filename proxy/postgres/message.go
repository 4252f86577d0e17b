package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/isotap/isotap/proxy/txnstate"
)

const (
	// headBytes is the length of a message's head: its type, and its length without the type.
	headBytes = 5
	// maxMessage is the length of the longest message: the server's own limit for one piece of memory.
	maxMessage = 1<<30 - 1
	// maxLoginMessage is the server's own limit for messages before the login is over.
	maxLoginMessage = 65535
	// maxSmall is the server's own limit for the client's messages that hold no more than names
	// (PQ_SMALL_MESSAGE_LIMIT).
	maxSmall = 10000
	// wholeMessage is how long a message may be that is looked at as a whole, where that is not needed.
	wholeMessage = 1 << 20
	// longHead is how much of a longer message is looked at: enough for the names in it.
	longHead = 4096
)

// errMalformed is wrapped by every error about bytes that do not follow the protocol.
var errMalformed = errors.New("malformed message")

// A message of either side: its type and what follows its head. The bytes are valid until the side's next.
type message struct {
	kind byte
	body []byte
	raw  []byte // all of it, or its beginning; nil: there is none
	more int    // bytes that follow raw and belong to the message
}

// A frameReader cuts the bytes of one side into messages.
type frameReader struct {
	buf []byte // an incomplete message
	// taken says that buf was handed out as a message, and holds nothing any more.
	taken bool
	// passing is how many bytes are still to come of a message whose beginning was handed out.
	passing int
}

// next returns the next message of p, and how many bytes of p it took. Of a long one whose kind streams says
// yes to it gives the beginning; the rest is to be passed on.
func (in *frameReader) next(p []byte, limit limiter, streams func(kind byte) bool) (m message, used int, err error) {
	if in.taken {
		in.taken, in.buf = false, txnstate.Reusable(in.buf)
	}
	if len(in.buf) == 0 && len(p) >= headBytes {
		size, err := sizeOf(p, limit)
		if err != nil {
			return message{}, 0, err
		}
		if size <= len(p) && size <= wholeMessage {
			return message{kind: p[0], body: p[headBytes:size], raw: p[:size]}, size, nil
		}
	}
	if missing := headBytes - len(in.buf); missing > 0 {
		used = min(missing, len(p))
		if in.buf = append(in.buf, p[:used]...); len(in.buf) < headBytes {
			return message{}, used, nil
		}
	}
	size, err := sizeOf(in.buf, limit)
	if err != nil {
		return message{}, used, err
	}
	whole := size
	if size > wholeMessage && streams(in.buf[0]) {
		size = longHead
	}
	n := min(size-len(in.buf), len(p)-used)
	in.grow(n, size)
	in.buf = append(in.buf, p[used:used+n]...)
	used += n
	if len(in.buf) < size {
		return message{}, used, nil
	}
	in.taken = true
	return message{kind: in.buf[0], body: in.buf[headBytes:], raw: in.buf, more: whole - size}, used, nil
}

// grow makes room for n more bytes of a message of size bytes. It doubles the room: to grow by less leaves several
// times a long message as garbage, and to take size at once would be to believe a length that the sender may only
// claim.
func (in *frameReader) grow(n, size int) {
	if room := cap(in.buf); len(in.buf)+n > room {
		in.buf = slices.Grow(in.buf, min(size, max(2*room, len(in.buf)+n))-len(in.buf))
	}
}

// pass returns what of p belongs to a message whose beginning was handed out.
func (in *frameReader) pass(p []byte) []byte {
	n := min(in.passing, len(p))
	in.passing -= n
	return p[:n]
}

// rest returns the bytes of an incomplete message, and forgets them.
func (in *frameReader) rest() []byte {
	if in.taken {
		return nil
	}
	b := in.buf
	in.buf = nil
	return b
}

func never(byte) bool { return false }

// A limiter returns how long a message of a kind may be.
type limiter func(kind byte) int

// upTo is one length for all kinds.
func upTo(n int) limiter { return func(byte) int { return n } }

// The limiters of either side.
var (
	serverLimit      = upTo(maxMessage)
	loginLimit       = upTo(maxLoginMessage)
	serverLoginLimit = upTo(wholeMessage)
)

// clientLimit is what a server takes from a client that is logged in.
func clientLimit(kind byte) int {
	switch kind {
	case msgClose, msgDescribe, msgExecute, msgFlush, msgSync, msgTerminate, msgCopyDone:
		return maxSmall
	}
	return maxMessage
}

// sizeOf reads from a head how long its message is, with the head.
func sizeOf(head []byte, limit limiter) (int, error) {
	n := binary.BigEndian.Uint32(head[1:])
	if n < 4 || n > uint32(limit(head[0])) {
		return 0, fmt.Errorf("%w: type %q with length %d", errMalformed, head[0], n)
	}
	return int(n) + 1, nil
}

// beginMessage adds a head to b; endMessage fills in the length. start is where the message begins.
func beginMessage(b []byte, kind byte) (_ []byte, start int) {
	return append(b, kind, 0, 0, 0, 0), len(b)
}

func endMessage(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start+1:], uint32(len(b)-start-1))
	return b
}

// appendMessage adds a message to b.
func appendMessage(b []byte, kind byte, body ...byte) []byte {
	b, start := beginMessage(b, kind)
	return endMessage(append(b, body...), start)
}

// appendNamed adds a message to b whose body is a byte and a name: Describe, Close.
func appendNamed(b []byte, kind byte, what objectKind, name string) []byte {
	b, start := beginMessage(b, kind)
	return endMessage(append(append(append(b, byte(what)), name...), 0), start)
}

// A reader walks over a message's body. After the first read past the end every read gives zero values, and
// err says so.
type reader struct {
	b   []byte
	pos int
	err error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s at byte %d of %d", errMalformed, what, r.pos, len(r.b))
	}
}

// bytes takes the next n bytes. They belong to the message.
func (r *reader) bytes(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.b)-r.pos {
		r.fail("cut short")
		return nil
	}
	r.pos += n
	return r.b[r.pos-n : r.pos]
}

func (r *reader) uint8() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint16() int {
	if b := r.bytes(2); b != nil {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// value takes a value with its length before it; nil for NULL.
func (r *reader) value() []byte {
	n := int32(r.uint32())
	if n == -1 {
		return nil
	}
	return r.bytes(int(n))
}

// cString takes a text up to a zero byte.
func (r *reader) cString() []byte {
	for i := r.pos; r.err == nil && i < len(r.b); i++ {
		if r.b[i] == 0 {
			s := r.bytes(i - r.pos)
			r.pos++
			return s
		}
	}
	r.fail("a text without its end")
	return nil
}

// appendField adds a field of an error or a notice to b.
func appendField(b []byte, field byte, value string) []byte {
	return append(append(append(b, field), value...), 0)
}

// A serverError is what an ErrorResponse says, as far as a session follows it.
type serverError struct {
	fatal    bool
	code     string
	message  string
	routine  string // of the server's source, in any language
	position int    // in the text that went upstream, in characters from 1; 0: none
	// from and to are where the position's digits stand in the body.
	from, to int
}

// readError reads the fields of an ErrorResponse or NoticeResponse.
func readError(body []byte) (serverError, error) {
	var e serverError
	r := reader{b: body}
	for {
		field := r.uint8()
		if field == 0 || r.err != nil {
			break
		}
		from := r.pos
		value := r.cString()
		switch field {
		case fieldSeverity:
			e.fatal = string(value) == "FATAL" || string(value) == "PANIC"
		case fieldCode:
			e.code = string(value)
		case fieldMessage:
			e.message = string(value)
		case fieldRoutine:
			e.routine = string(value)
		case fieldPosition:
			e.position, _ = strconv.Atoi(string(value))
			e.from, e.to = from, from+len(value)
		}
	}
	if r.err != nil {
		return e, fmt.Errorf("parse an error: %w", r.err)
	}
	return e, nil
}

// withText returns an error or a notice with another text.
func withText(m message, e *serverError, text string) message {
	body := bytes.Replace(m.body, appendField(nil, fieldMessage, e.message), appendField(nil, fieldMessage, text), 1)
	return message{kind: m.kind, body: body, raw: appendMessage(nil, m.kind, body...)}
}
