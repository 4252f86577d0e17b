package mysql

// gather returns the next whole packet of p, with its header, and how many bytes of p it took. It keeps
// an incomplete packet in buf; the packet that it returns is valid until the next call.
func (s *Session) gather(buf *[]byte, p []byte) (packet []byte, used int) {
	if len(*buf) == 0 && len(p) >= headerBytes && len(p) >= headerBytes+payloadLen(p) {
		n := headerBytes + payloadLen(p)
		return p[:n], n
	}
	if missing := headerBytes - len(*buf); missing > 0 {
		used = min(missing, len(p))
		*buf = append(*buf, p[:used]...)
		if len(*buf) < headerBytes {
			return nil, used
		}
	}
	n := min(headerBytes+payloadLen(*buf)-len(*buf), len(p)-used)
	*buf = append(*buf, p[used:used+n]...)
	used += n
	if len(*buf) < headerBytes+payloadLen(*buf) {
		return nil, used
	}
	packet = *buf
	*buf = (*buf)[:0]
	if cap(packet) > 1<<20 {
		*buf = nil
	}
	return packet, used
}

// join puts the payloads of packets together that belong to one: whole says that packet was the last.
func join(parts *[]byte, packet []byte) (payload []byte, whole bool) {
	payload = packet[headerBytes:]
	if len(payload) == maxPayload {
		*parts = append(*parts, payload...)
		return nil, false
	}
	if len(*parts) > 0 {
		payload = append(*parts, payload...)
		*parts = nil
	}
	return payload, true
}

// firstSeq is the number of the first packet of a payload whose last packet is given.
func firstSeq(last, payload []byte) byte { return last[3] - byte(len(payload)/maxPayload) }

// passRows passes rows on that need no trimming, as many as p holds and the beginning of the next,
// and says how many bytes of p they were.
func (s *Session) passRows(p []byte) int {
	if len(s.exchanges) == 0 || !s.exchanges[0].passesRows() {
		return 0
	}
	x := s.exchanges[0]
	n := 0
	for len(p)-n > headerBytes && !s.longRow {
		size := payloadLen(p[n:])
		if endsRows(p[n+headerBytes], size, s.caps) {
			break
		}
		x.rows++
		s.longRow = size == maxPayload
		whole := headerBytes + size
		if whole > len(p)-n {
			s.streaming = whole - (len(p) - n)
			n = len(p)
			break
		}
		n += whole
	}
	s.toClient = append(s.toClient, p[:n]...)
	return n
}

// passRowOn passes the header of a packet on in which a row of passRows continues, or what p holds of it.
func (s *Session) passRowOn(p []byte) int {
	n := min(headerBytes-len(s.serverBuf), len(p))
	s.serverBuf = append(s.serverBuf, p[:n]...)
	if len(s.serverBuf) == headerBytes {
		s.streaming = payloadLen(s.serverBuf)
		s.longRow = s.streaming == maxPayload
		s.toClient = append(s.toClient, s.serverBuf...)
		s.serverBuf = s.serverBuf[:0]
	}
	return n
}
