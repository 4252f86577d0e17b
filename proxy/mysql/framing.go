package mysql

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
