package proxy

import "time"

// holdBack waits, where the session's statement that is about to be sent is to be held back. It ends at once when the
// statement's client says or does anything, and when the client connection is to end. Alone says that nothing is to be
// sent to the client before: whoever sends ahead does not go by what it read.
func (l *clientConn) holdBack(alone bool) {
	if !alone || len(l.buffered) > 0 || l.clientGone || l.leaving() {
		l.provoked.Pass()
		return
	}
	h := l.provoked.Hold()
	if h == nil {
		return
	}
	defer h.End()
	// Who releases the hold says so first, and then ends the read; so does a drain.
	l.client.setDeadline(h.Until)
	for !h.Released() && !l.leaving() && time.Now().Before(h.Until) {
		if r := l.client.read(); r.something() {
			l.buffered = r.bytes // that it has ended shows again
			break
		}
	}
	l.client.setDeadline(time.Time{})
}
