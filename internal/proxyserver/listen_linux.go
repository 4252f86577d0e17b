package proxyserver

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isotap/isotap/proxy"
)

const (
	// onTheirWay is how long connections may take whose handshake had begun before new ones went elsewhere.
	onTheirWay = 250 * time.Millisecond
	// probePatience bounds how long a connection to oneself takes.
	probePatience = time.Second
)

// listenShared listens on a TCP address that other processes of the same user may listen on too (SO_REUSEPORT,
// socket(7)).
func listenShared(address string) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT,
				1)
		})
		if err != nil {
			return err
		}
		return failed
	}}
	config.SetMultipathTCP(false) // Go's default where the kernel has it: such a socket's group takes no program
	l, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	return &shared{TCPListener: l.(*net.TCPListener), probes: make(map[int]chan struct{})}, nil
}

// A shared listener has an address on which other processes may listen. The kernel divides new connections among them,
// and resets those that wait to be accepted by one that closes: hence Resign.
type shared struct {
	*net.TCPListener
	mu     sync.Mutex
	probes map[int]chan struct{} // own connections to find out who gets them, by the port they come from
}

var _ proxy.Resigner = (*shared)(nil)

// Accept returns the next client.
func (s *shared) Accept() (net.Conn, error) {
	for {
		c, err := s.TCPListener.Accept()
		if err != nil || !s.isProbe(c) {
			return c, err
		}
		c.Close()
	}
}

func (s *shared) isProbe(c net.Conn) bool {
	from, to := c.RemoteAddr().(*net.TCPAddr), c.LocalAddr().(*net.TCPAddr)
	s.mu.Lock()
	defer s.mu.Unlock()
	came := s.probes[from.Port]
	if came == nil || !from.IP.Equal(to.IP) {
		return false
	}
	close(came)
	delete(s.probes, from.Port)
	return true
}

// Resign has the kernel give new connections to another process that listens on the address, if there is one, and waits
// for those that were on their way here. A group of sockets that share an address has them in an order that none of
// them can ask for, and a program may choose one by its place there: the first, or where that is this one, the second.
func (s *shared) Resign(ctx context.Context) error {
	for place := range uint32(2) {
		if err := s.direct(place); err != nil {
			return err
		}
		if !s.getsOwn(ctx) {
			wait(ctx, onTheirWay)
			return nil
		}
	}
	return nil // nobody else listens here
}

// direct has new connections go to the socket at a place of the group. Where there is none the kernel chooses.
func (s *shared) direct(place uint32) error {
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	program := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: place}}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF,
			&unix.SockFprog{Len: 1, Filter: &program[0]})
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("choose who gets new connections: %w", err)
	}
	return nil
}

// getsOwn reports whether a new connection to the address comes here. If it cannot be found out, it does.
func (s *shared) getsOwn(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	came := make(chan struct{})
	d := net.Dialer{Control: func(network, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = s.announce(int(fd), network, came) })
		if err != nil {
			return err
		}
		return failed
	}}
	c, err := d.DialContext(ctx, "tcp", s.Addr().String())
	if err != nil {
		return true
	}
	defer c.Close()
	select {
	case <-came:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.probes, c.LocalAddr().(*net.TCPAddr).Port)
	return false
}

// announce gives a socket the port that it will connect from, and has Accept know it: the connection may be accepted
// before it is known to be made.
func (s *shared) announce(fd int, network string, came chan struct{}) error {
	var any unix.Sockaddr = &unix.SockaddrInet4{}
	if network == "tcp6" {
		any = &unix.SockaddrInet6{}
	}
	if err := unix.Bind(fd, any); err != nil {
		return err
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch a := bound.(type) {
	case *unix.SockaddrInet4:
		s.probes[a.Port] = came
	case *unix.SockaddrInet6:
		s.probes[a.Port] = came
	}
	return nil
}

// wait returns after d, or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
