package session

import (
	"crypto/tls"
)

// A Session is the state machine of one client's connection, in the protocol of its server. It is given
// the bytes that either side sent, at a time in nanoseconds since the run's start, and is used by one
// goroutine. See package proxy/mysql for what each method promises.
type Session interface {
	FromClient(now int64, p []byte) (n int, err error)
	FromServer(now int64, p []byte) error
	// Output returns the bytes to send to each side and forgets them. They are valid until the session is
	// given bytes again.
	Output() (toClient, toServer []byte)
	// Events returns what happened since the last call, to be dealt with before the next Output is sent.
	Events() []Event
	Turn() Turn
	// Upgrade returns which leg is to begin TLS once the Output is sent, or to be made anew; Upgraded tells what
	// came of it.
	Upgrade() Leg
	Upgraded(now int64, with *tls.ConnectionState, failed error)
	// Copying reports whether bytes may be copied from now on without the session.
	Copying() bool
	LoggedIn() bool
	LoginOverdue(now int64)
	InTransaction() bool
	// Unread reports whether Idle has something to do when both sides stay quiet.
	Unread() bool
	Idle(now int64)
	// Unrecorded says that a transaction among the last Events was not stored, which the client must not take for
	// stored: in the place of the reply that would acknowledge it the client gets an error, and the session is Done.
	Unrecorded(now int64, why error)
	// Dismiss has the client told that its connection ends now, where the protocol has words for that.
	Dismiss(now int64)
	ClientClosed(now int64)
	ServerClosed(now int64)
	// Done reports whether both sides are to be closed once the output is sent.
	Done() bool
}
