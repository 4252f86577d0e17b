package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
)

// A LoginError says why isotap has no connection to a server. What the library said of it is unwrapped.
type LoginError struct {
	Target dsn.Target
	Why    string
	Err    error
}

// Error says it in isotap's words.
func (e *LoginError) Error() string { return fmt.Sprintf("connecting to %s: %s", e.Target, e.Why) }

// Unwrap returns what the library said.
func (e *LoginError) Unwrap() error { return e.Err }

// A Refusal is what a server answered to a login: its own words, and its code for them. Credentials says that the code
// is one for a user or a password that will not do.
type Refusal struct {
	Message, Code string
	Credentials   bool
}

// NewLoginError returns why a login failed that ended in an error: with the server's refusal, if that was how. If it
// was not, it asks who is there, as long as ctx lets it.
func NewLoginError(ctx context.Context, target dsn.Target, err error, refusal *Refusal) *LoginError {
	e := &LoginError{Target: target, Err: err}
	var lookup *net.DNSError
	switch {
	case refusal != nil && refusal.Credentials:
		e.Why = fmt.Sprintf("the server refuses the user or the password: %s (%s)", refusal.Message, refusal.Code)
	case refusal != nil:
		e.Why = fmt.Sprintf("the server refuses the connection: %s (%s)", refusal.Message, refusal.Code)
	case errors.As(err, &lookup) && lookup.IsNotFound:
		e.Why = "there is no host " + lookup.Name
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Why = "nothing listens there: connection refused"
	case errors.Is(err, os.ErrNotExist) && target.Network == "unix":
		e.Why = "there is no socket " + target.Address
	default:
		spoken, known := spokenAt(ctx, target.Network, target.Address)
		switch {
		case known && spoken != target.Family:
			e.Why = fmt.Sprintf("the server there speaks %s's protocol: its address begins with %s", spoken.Title(),
				map[dbms.Family]string{dbms.MySQLFamily: "mysql://", dbms.PostgreSQLFamily: "postgres://"}[spoken])
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
			e.Why = "the server did not answer in time"
		default:
			e.Why = err.Error()
		}
	}
	return e
}

// How long a server may take to say which protocol it speaks.
const (
	greetingTime = 500 * time.Millisecond
	askingTime   = 2 * time.Second
)

// spokenAt returns whose protocol a server speaks, if it can be told: one of the MySQL family greets, PostgreSQL waits
// to be asked.
func spokenAt(ctx context.Context, network, address string) (spoken dbms.Family, known bool) {
	dialer := net.Dialer{Timeout: askingTime}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return spoken, false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.SetDeadline(time.Now().Add(greetingTime)); err != nil {
		return spoken, false
	}
	const protocol10, refusal = 10, 0xff
	greeting := make([]byte, 5) // a packet's head, and the first byte of it
	switch n, err := io.ReadFull(conn, greeting); {
	case err == nil && (greeting[4] == protocol10 || greeting[4] == refusal):
		return dbms.MySQLFamily, true
	case n > 0 || !errors.Is(err, os.ErrDeadlineExceeded):
		return spoken, false
	}
	if err := conn.SetDeadline(time.Now().Add(askingTime)); err != nil {
		return spoken, false
	}
	const sslRequest = 80877103
	ask := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), sslRequest)
	answer := make([]byte, 1)
	if _, err := conn.Write(ask); err != nil {
		return spoken, false
	}
	if _, err := io.ReadFull(conn, answer); err == nil && (answer[0] == 'S' || answer[0] == 'N') {
		return dbms.PostgreSQLFamily, true
	}
	return spoken, false
}
