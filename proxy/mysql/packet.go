package mysql

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

const (
	headerBytes = 4
	// maxPayload is the longest payload of one packet; a longer one continues in the next packet,
	// and one of exactly this length is followed by an empty packet.
	maxPayload = gomysql.MaxPayloadLen
)

// Marker bytes that begin a reply packet.
const (
	markOK     = 0x00
	markInfile = 0xfb // LOCAL INFILE request, and NULL in a text row
	markEOF    = 0xfe // EOF, or OK at the end of rows, or an authentication switch
	markErr    = 0xff
)

// What a length-encoded integer begins with that does not fit into one byte ("Integer Types").
const (
	lenencNull = 0xfb // no integer: NULL in a text row
	lenenc2    = 0xfc // two bytes follow
	lenenc3    = 0xfd
	lenenc8    = 0xfe
	lenencNone = 0xff // no integer: ERR
)

// errMalformed is wrapped by every error about bytes that do not follow the protocol.
var errMalformed = errors.New("malformed packet")

// errUnexpected is wrapped by every error about a packet that does not belong where it came.
var errUnexpected = errors.New("unexpected packet")

// payloadLen reads the payload length from a packet's header.
func payloadLen(header []byte) int {
	return int(header[0]) | int(header[1])<<8 | int(header[2])<<16
}

// appendPacket adds payload to b as one packet, or as several when it is longer than maxPayload,
// numbered from seq. It returns the sequence number that follows.
func appendPacket(b []byte, seq byte, payload []byte) ([]byte, byte) {
	for {
		n := min(len(payload), maxPayload)
		b = append(b, byte(n), byte(n>>8), byte(n>>16), seq)
		b = append(b, payload[:n]...)
		payload = payload[n:]
		seq++
		if n < maxPayload {
			return b, seq
		}
	}
}

// packets is how many packets a payload of n bytes takes, which is also the number of the first packet of
// a reply to it. Numbers start again after 255.
func packets(n int) byte { return byte(n/maxPayload + 1) }

// A reader walks over a payload. After the first read past the end every read gives zero values, and
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

// bytes takes the next n bytes. They belong to the payload.
func (r *reader) bytes(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.b)-r.pos {
		r.fail("cut short")
		return nil
	}
	r.pos += n
	return r.b[r.pos-n : r.pos]
}

func (r *reader) rest() []byte { return r.bytes(len(r.b) - r.pos) }

func (r *reader) uint8() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint16() uint16 {
	if b := r.bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

// lenenc reads a length-encoded integer; null says that it was the NULL marker of a text row.
func (r *reader) lenenc() (n uint64, null bool) {
	switch first := r.uint8(); first {
	case lenencNull:
		return 0, true
	case lenenc2:
		return uint64(r.uint16()), false
	case lenenc3:
		b := r.bytes(3)
		if b == nil {
			return 0, false
		}
		return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16, false
	case lenenc8:
		if b := r.bytes(8); b != nil {
			return binary.LittleEndian.Uint64(b), false
		}
		return 0, false
	case lenencNone:
		r.fail("a length that begins with 0xff")
		return 0, false
	default:
		return uint64(first), false
	}
}

// lenencBytes reads a length-encoded string; nil for NULL.
func (r *reader) lenencBytes() []byte {
	n, null := r.lenenc()
	if null || r.err != nil {
		return nil
	}
	if n > uint64(len(r.b)-r.pos) {
		r.fail("a string longer than its packet")
		return nil
	}
	return r.bytes(int(n))
}

// cString reads up to a zero byte, or to the end where there is none.
func (r *reader) cString() []byte {
	for i := r.pos; i < len(r.b); i++ {
		if r.b[i] == 0 {
			s := r.bytes(i - r.pos)
			r.pos++
			return s
		}
	}
	return r.rest()
}

func appendLenenc(b []byte, n uint64) []byte {
	switch {
	case n < lenencNull:
		return append(b, byte(n))
	case n < 1<<16:
		return append(b, lenenc2, byte(n), byte(n>>8))
	case n < 1<<24:
		return append(b, lenenc3, byte(n), byte(n>>8), byte(n>>16))
	default:
		return binary.LittleEndian.AppendUint64(append(b, lenenc8), n)
	}
}

// An okPacket is the part of an OK packet, or of an EOF packet, that a session follows.
type okPacket struct {
	affected     uint64
	lastInsertID uint64
	status       uint16
	warnings     uint16
	info         []byte
	tail         []byte // everything after the warnings: info and session state, as the server wrote them
}

// parseOK reads an OK packet, also one that ends rows under CLIENT_DEPRECATE_EOF
// (https://mariadb.com/kb/en/ok_packet/).
func parseOK(payload []byte, caps uint32) (okPacket, error) {
	r := reader{b: payload, pos: 1}
	var ok okPacket
	ok.affected, _ = r.lenenc()
	ok.lastInsertID, _ = r.lenenc()
	ok.status = r.uint16()
	ok.warnings = r.uint16()
	ok.tail = r.b[min(r.pos, len(r.b)):]
	if caps&gomysql.CLIENT_SESSION_TRACK != 0 && r.pos < len(r.b) {
		ok.info = r.lenencBytes()
	} else {
		ok.info = ok.tail
	}
	if r.err != nil {
		return ok, fmt.Errorf("parse OK packet: %w", r.err)
	}
	return ok, nil
}

// parseEOF reads an EOF packet (https://mariadb.com/kb/en/eof_packet/).
func parseEOF(payload []byte) (okPacket, error) {
	r := reader{b: payload, pos: 1}
	ok := okPacket{warnings: r.uint16(), status: r.uint16()}
	if r.err != nil {
		return ok, fmt.Errorf("parse EOF packet: %w", r.err)
	}
	return ok, nil
}

// A serverError is an ERR packet.
type serverError struct {
	code    uint16
	state   string
	message string
}

// parseErr reads an ERR packet (https://mariadb.com/kb/en/err_packet/).
func parseErr(payload []byte) (serverError, error) {
	r := reader{b: payload, pos: 1}
	e := serverError{code: r.uint16()}
	text := r.rest()
	if r.err != nil {
		return e, fmt.Errorf("parse ERR packet: %w", r.err)
	}
	if len(text) >= 6 && text[0] == '#' {
		e.state, text = string(text[1:6]), text[6:]
	}
	e.message = string(text)
	return e, nil
}

// appendErr writes an ERR packet's payload.
func appendErr(b []byte, e serverError) []byte {
	b = binary.LittleEndian.AppendUint16(append(b, markErr), e.code)
	if e.state != "" {
		b = append(append(b, '#'), e.state...)
	}
	return append(b, e.message...)
}

// matchedRows reads how many rows an UPDATE matched and how many of them it changed out of the info of
// its OK packet ("Rows matched: 1  Changed: 1  Warnings: 0"). Unlike the affected rows they do not
// depend on CLIENT_FOUND_ROWS.
func matchedRows(info []byte) (matched, changed uint64, ok bool) {
	matched, info, ok = numberBehind(info, "Rows matched: ")
	if ok {
		changed, _, ok = numberBehind(info, "Changed: ")
	}
	return matched, changed, ok
}

// numberBehind reads the number behind a label, and returns what follows it.
func numberBehind(text []byte, label string) (n uint64, rest []byte, ok bool) {
	_, rest, found := bytes.Cut(text, []byte(label))
	if !found {
		return 0, text, false
	}
	for len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9' {
		n, rest, ok = n*10+uint64(rest[0]-'0'), rest[1:], true
	}
	return n, rest, ok
}

// The SQLSTATEs that a session gives (MySQL's reference manual, "Server Error Message Reference"; ISO/IEC 9075,
// "SQLSTATE class and subclass codes").
const (
	sqlstateWarning            = "01000"
	sqlstateGeneral            = "HY000" // for errors that have none of their own
	sqlstateConnectionRejected = "08004"
	sqlstateCommunicationLink  = "08S01" // the connection is lost, or what comes of it is no protocol
	// sqlstateTransactionUnknown is that of an end of which the client cannot know what came of it: drivers take all of
	// its class for a connection that is lost.
	sqlstateTransactionUnknown = "08007"
)

// A packetReader cuts what one side sends into packets and puts the packets of long payloads together.
//
// While payload is not empty, a payload is under way: the next packet goes on with it.
type packetReader struct {
	packet  []byte // the beginning of a packet that has not come whole
	payload []byte // the packets before it of a payload that spans several, without their headers
}

// midway reports whether the next bytes go on with a packet, or with a payload.
func (r *packetReader) midway() bool { return len(r.packet) > 0 || len(r.payload) > 0 }

// next returns the next whole packet of p, with its header, and how many bytes of p it took. It keeps
// an incomplete packet; the packet that it returns is valid until the next call.
func (r *packetReader) next(p []byte) (packet []byte, used int) {
	if len(r.packet) == 0 && len(p) >= headerBytes && len(p) >= headerBytes+payloadLen(p) {
		n := headerBytes + payloadLen(p)
		return p[:n], n
	}
	if used = r.header(p); len(r.packet) < headerBytes {
		return nil, used
	}
	n := min(headerBytes+payloadLen(r.packet)-len(r.packet), len(p)-used)
	r.packet = append(r.packet, p[used:used+n]...)
	used += n
	if len(r.packet) < headerBytes+payloadLen(r.packet) {
		return nil, used
	}
	packet = r.packet
	r.packet = r.packet[:0]
	if cap(packet) > 1<<20 {
		r.packet = nil
	}
	return packet, used
}

// header takes what is missing of a packet's header from p, and returns how many bytes those were.
func (r *packetReader) header(p []byte) (used int) {
	if missing := headerBytes - len(r.packet); missing > 0 {
		used = min(missing, len(p))
		r.packet = append(r.packet, p[:used]...)
	}
	return used
}

// join puts the payloads of packets together that belong to one: whole says that packet was the last.
func (r *packetReader) join(packet []byte) (payload []byte, whole bool) {
	payload = packet[headerBytes:]
	if len(payload) == maxPayload {
		r.payload = append(r.payload, payload...)
		return nil, false
	}
	if len(r.payload) > 0 {
		payload = append(r.payload, payload...)
		r.payload = nil
	}
	return payload, true
}

// firstSeq is the number of the first packet of a payload whose last packet is given.
func firstSeq(last, payload []byte) byte { return last[3] - byte(len(payload)/maxPayload) }

// An upload is a payload of the client that is passed on as it arrives: a piece of a file, or the rest
// of a long command.
type upload struct {
	open bool // a long command is under way
	left int  // bytes still to come of the packet
	size int  // of the payload so far
	long bool // the next packet goes on with the payload
	seq  byte // of the packet before
}

// pass appends what p holds of the client's next packet to out, and reports whether that was the end of a
// payload. The packet's header may have come in part before: client has that.
func (u *upload) pass(p []byte, client *packetReader, out []byte) (passed []byte, n int, ended bool) {
	if u.left > 0 {
		n = min(u.left, len(p))
		u.left -= n
		return append(out, p[:n]...), n, u.left == 0 && !u.long
	}
	if n = client.header(p); len(client.packet) < headerBytes {
		return out, n, false
	}
	u.left = payloadLen(client.packet)
	if !u.long {
		u.size = 0
	}
	u.size += u.left
	u.long = u.left == maxPayload
	out = append(out, client.packet...)
	client.packet = client.packet[:0]
	return out, n, u.left == 0
}

// A rowStream is a row that goes to the client as it arrives. Until it is over nothing else may be read.
type rowStream struct {
	left int  // bytes still to come of the packet
	long bool // the next packet goes on with the row
}

// open reports whether a row is under way.
func (r *rowStream) open() bool { return r.left > 0 || r.long }

// pass appends what p holds of the row's packet to out, or of the header of the next packet, which may have come in
// part before: server has that.
func (r *rowStream) pass(p []byte, server *packetReader, out []byte) (passed []byte, n int) {
	if r.left > 0 {
		n = min(r.left, len(p))
		r.left -= n
		return append(out, p[:n]...), n
	}
	if n = server.header(p); len(server.packet) == headerBytes {
		r.left = payloadLen(server.packet)
		r.long = r.left == maxPayload
		out = append(out, server.packet...)
		server.packet = server.packet[:0]
	}
	return out, n
}
