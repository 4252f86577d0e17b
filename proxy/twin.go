package proxy

// playBefore has a twin played of the transaction whose COMMIT is about to be sent. Alone says that nothing is to be
// sent to the client before: whoever sends ahead does not wait for what it was answered.
func (l *clientConn) playBefore(alone bool) {
	if !alone || len(l.buffered) > 0 || l.clientGone || l.leaving() {
		l.twin.Pass()
		return
	}
	l.twin.Before()
}
