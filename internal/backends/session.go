package backends

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A session is one of the server's. It belongs to one client at a time.
type session struct {
	key      string // the startup message that it began with
	conn     net.Conn
	in       *bufio.Reader
	greeting []byte // what the server said to the login, but for that it is ready

	mu       sync.Mutex
	awaited  int  // how often the server will still say that it is ready
	unsynced bool // the client began something that a Sync ends
	copied   bool // the client and the server speak of a COPY
	status   byte // of the transaction, when the server was ready last
}

var errRefused = errors.New("the server refuses the login")

// login begins the session.
func (s *session) login() error {
	if _, err := io.WriteString(s.conn, s.key); err != nil {
		return err
	}
	for {
		m, err := readMessage(s.in)
		if err != nil || m[0] == 'Z' {
			return err
		}
		s.greeting = append(s.greeting, m...)
		if m[0] == 'E' || m[0] == 'R' && binary.BigEndian.Uint32(m[5:]) != 0 {
			return errRefused // or it wants a password
		}
	}
}

// run runs a statement for nobody, and returns which parameters changed.
func (s *session) run(sql string) (parameters []byte, err error) {
	if _, err := s.conn.Write(message('Q', sql+"\x00")); err != nil {
		return nil, err
	}
	for {
		m, err := readMessage(s.in)
		if err != nil {
			return nil, err
		}
		switch m[0] {
		case 'E':
			return nil, fmt.Errorf("%s: %q", sql, m)
		case 'S':
			parameters = append(parameters, m...)
		case 'Z':
			return parameters, nil
		}
	}
}

// reset makes the session as it was after its login.
func (s *session) reset() error {
	if s.status != 'I' {
		if _, err := s.run("ROLLBACK"); err != nil {
			return err
		}
	}
	s.status = 'I'
	_, err := s.run("DISCARD ALL")
	return err
}

// lend passes on between a client and the server until one of them ends, and reports whether the session is fit for the
// next client.
func (s *session) lend(client net.Conn) bool {
	ended := make(chan error)
	go func() { ended <- s.answer(client) }()
	s.ask(client)
	if !s.isSettled() {
		s.conn.Close()
		<-ended
		return false
	}
	_ = s.conn.SetReadDeadline(time.Unix(1, 0)) // wakes answer, which has nothing to pass on
	err := <-ended
	_ = s.conn.SetReadDeadline(time.Time{})
	return errors.Is(err, errQuiet)
}

// ask passes on what the client says, until it takes its leave.
func (s *session) ask(client net.Conn) {
	in := bufio.NewReader(client)
	for {
		m, err := readMessage(in)
		if err != nil || m[0] == 'X' {
			return
		}
		s.asked(m[0])
		if _, err := s.conn.Write(m); err != nil {
			return
		}
	}
}

// errQuiet says that a session was left between two messages.
var errQuiet = errors.New("the server says nothing")

// answer passes on what the server says, until it ends, or lend wants the session back.
func (s *session) answer(client net.Conn) error {
	out := bufio.NewWriter(client)
	for {
		if _, err := s.in.Peek(1); err != nil {
			client.Close()
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return errQuiet
			}
			return err
		}
		m, err := readMessage(s.in)
		if err != nil {
			client.Close()
			return err
		}
		s.answered(m)
		_, _ = out.Write(m) // a client that is gone is seen where it speaks
		if s.in.Buffered() == 0 {
			_ = out.Flush()
		}
	}
}

// asked notes a message of the client's.
func (s *session) asked(kind byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind {
	case 'Q', 'F':
		s.awaited++
	case 'S':
		s.awaited++
		s.unsynced = false
	case 'd', 'c', 'f':
		s.copied = true
	default:
		s.unsynced = true
	}
}

// answered notes a message of the server's.
func (s *session) answered(m []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m[0] {
	case 'Z':
		s.awaited--
		s.status = m[5]
	case 'G', 'H', 'W':
		s.copied = true
	}
}

// isSettled reports whether the client has all answers, and the server all questions.
func (s *session) isSettled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.awaited == 0 && !s.unsynced && !s.copied
}

// readMessage reads a message with its type and length.
func readMessage(in *bufio.Reader) ([]byte, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, err
	}
	m := append(head, make([]byte, binary.BigEndian.Uint32(head[1:])-4)...)
	_, err := io.ReadFull(in, m[5:])
	return m, err
}

func message(kind byte, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}
