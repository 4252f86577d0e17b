package clone

import (
	"fmt"
	"strings"
)

// A TooLargeError says that a database is larger than those that are copied. Sizes are in bytes.
type TooLargeError struct {
	Database  string
	Size, Max int64
}

// Error says how large it is.
func (e *TooLargeError) Error() string {
	const mib = 1 << 20
	return fmt.Sprintf("the database %s has %.1f MiB: more than the %.1f MiB that may be copied", e.Database,
		float64(e.Size)/mib, float64(e.Max)/mib)
}

// A RefusedError says that the server refuses to copy a database, and what allows it.
type RefusedError struct {
	Database string
	// Allow is what somebody has to do, as a GRANT.
	Allow string
	// Others are those that are connected to the source, where that is why.
	Others []Session
	// Err is what the server said.
	Err error
}

// A Session is somebody who is connected to a database. A transaction that is prepared has the process 0 and its
// identifier in the place of the application's name.
type Session struct {
	PID               int
	User, Application string
}

// String names the session as people find it again.
func (s Session) String() string {
	if s.PID == 0 {
		return fmt.Sprintf("the prepared transaction %q of %s", s.Application, s.User)
	}
	return fmt.Sprintf("process %d (%s, %q)", s.PID, s.User, s.Application)
}

// Error says what the server refused, and what allows it.
func (e *RefusedError) Error() string {
	text := fmt.Sprintf("the server refuses a copy of the database %s: %v", e.Database, e.Err)
	if len(e.Others) > 0 {
		others := make([]string, len(e.Others))
		for i, s := range e.Others {
			others[i] = s.String()
		}
		text += ": " + strings.Join(others, ", ")
	}
	return text + "; what allows it: " + e.Allow
}

// Unwrap returns what the server said.
func (e *RefusedError) Unwrap() error { return e.Err }
