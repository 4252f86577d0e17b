package proxy

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A relayLoop moves bytes between pairs of sockets, both ways, on a thread of its own. It asks the kernel which of them
// have something to say (epoll(7)), so that it reads none in vain, and no goroutine is parked and woken for a message.
//
// It stands beside the goroutines of copyHalf, for plain sockets on Linux. Its thread alone touches pairs and their
// ends, but for what comes through asked.
type relayLoop struct {
	epoll int
	bell  int // eventfd(2), which wakes the thread for what was asked of it
	ends  map[int]*relayEnd
	buf   []byte
	done  chan struct{} // closed when the thread has ended

	mu    sync.Mutex
	asked []func()
	ended bool
}

// A relayPair is two sockets whose bytes go from each to the other.
type relayPair struct {
	loop  *relayLoop
	ends  [2]relayEnd
	spoke chan struct{} // closed when the first socket has said something
	done  chan struct{} // closed when both are
}

// A relayEnd is one of them.
type relayEnd struct {
	fd   int
	pair *relayPair
	peer *relayEnd
	// watched is what the kernel is asked to tell: 0 means that it does not know the socket.
	watched uint32
	// late is what the peer said and this socket has not taken yet. The peer is not read while there is any.
	late []byte
	// said is set once nothing more comes from the socket, reset where it ended with RST, and told once the peer was
	// told of the end.
	said, reset, told bool
	closed            bool
}

// relayBytes is how much is read at once.
const relayBytes = 64 << 10

// newRelayLoop starts a loop. The caller ends it with stop.
func newRelayLoop() (*relayLoop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("eventfd: %w", err), unix.Close(epoll))
	}
	l := &relayLoop{epoll: epoll, bell: bell, ends: make(map[int]*relayEnd), buf: make([]byte, relayBytes),
		done: make(chan struct{})}
	rings := &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(bell)}
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, bell, rings); err != nil {
		return nil, errors.Join(fmt.Errorf("epoll_ctl: %w", err), unix.Close(epoll), unix.Close(bell))
	}
	go l.run()
	return l, nil
}

// take takes two sockets over, which are closed for everybody else, and sends ahead to the second first. It returns nil
// where it cannot, and leaves the sockets as they are.
func (l *relayLoop) take(client, server net.Conn, ahead []byte) *relayPair {
	fds, ok := duplicates(client, server)
	if !ok {
		return nil
	}
	p := &relayPair{loop: l, spoke: make(chan struct{}), done: make(chan struct{})}
	for i := range p.ends {
		p.ends[i] = relayEnd{fd: fds[i], pair: p, peer: &p.ends[1-i]}
	}
	p.ends[1].late = append(p.ends[1].late, ahead...)
	if len(ahead) > 0 {
		close(p.spoke)
	}
	began := l.ask(func() {
		for i := range p.ends {
			l.ends[p.ends[i].fd] = &p.ends[i]
		}
		l.flush(&p.ends[1])
		l.settle(p)
	})
	if !began {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil
	}
	client.Close() // Go's poller forgets them: it would wake for each message
	server.Close()
	return p
}

// duplicates returns descriptors of sockets that are nobody else's.
func duplicates(conns ...net.Conn) (fds []int, ok bool) {
	for _, c := range conns {
		socket, is := c.(syscall.Conn)
		if !is {
			break
		}
		raw, err := socket.SyscallConn()
		if err != nil {
			break
		}
		fd, dupErr := -1, error(nil)
		err = raw.Control(func(of uintptr) { fd, dupErr = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) })
		if err != nil || dupErr != nil {
			break
		}
		fds = append(fds, fd)
	}
	if len(fds) == len(conns) {
		return fds, true
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
	return nil, false
}

// stop ends the pair, whatever is under way. It may be called by anybody, and again.
func (p *relayPair) stop() { p.loop.ask(func() { p.close() }) }

// ask has the thread do something. It reports false when the loop has ended, or is about to.
func (l *relayLoop) ask(do func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.asked = append(l.asked, do)
	l.ring()
	return true
}

func (l *relayLoop) ring() {
	one := [8]byte{1}
	_, _ = unix.Write(l.bell, one[:]) // it fails where it has rung already
}

// stop ends all pairs and the loop, and returns when its thread has.
func (l *relayLoop) stop() {
	l.mu.Lock()
	l.ended = true
	l.ring()
	l.mu.Unlock()
	<-l.done
}

func (l *relayLoop) run() {
	runtime.LockOSThread()
	defer close(l.done)
	defer unix.Close(l.epoll)
	defer unix.Close(l.bell)
	var events [256]unix.EpollEvent
	for {
		n, err := unix.EpollWait(l.epoll, events[:], -1)
		if err != nil && err != unix.EINTR {
			n = 0
		}
		for _, e := range events[:max(n, 0)] {
			if int(e.Fd) == l.bell {
				continue
			}
			if end := l.ends[int(e.Fd)]; end != nil { // one of the same batch may have closed it
				l.handle(end, e.Events)
			}
		}
		if l.answer() {
			return
		}
	}
}

// answer does what was asked of the thread, and reports whether the loop is to end.
func (l *relayLoop) answer() (ends bool) {
	l.mu.Lock()
	asked, ended := l.asked, l.ended
	l.asked = nil
	if len(asked) > 0 || ended {
		var rung [8]byte
		_, _ = unix.Read(l.bell, rung[:])
	}
	l.mu.Unlock()
	for _, do := range asked {
		do()
	}
	if ended {
		for _, end := range l.ends {
			end.pair.close()
		}
	}
	return ended
}

// handle does what a socket is ready for.
func (l *relayLoop) handle(end *relayEnd, events uint32) {
	l.flush(end) // what it is told of an end shows when it is written to, too
	if events&^unix.EPOLLOUT != 0 && end.watched&unix.EPOLLIN != 0 {
		l.read(end)
	}
	l.settle(end.pair)
}

// read passes on what a socket says.
func (l *relayLoop) read(end *relayEnd) {
	n, err := unix.Read(end.fd, l.buf)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return
	case err != nil || n == 0:
		end.said, end.reset = true, err == unix.ECONNRESET
		return
	}
	if end == &end.pair.ends[0] {
		end.pair.hasSpoken()
	}
	written, err := unix.Write(end.peer.fd, l.buf[:n])
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		written = 0
	case err != nil:
		end.said = true // nobody hears it any more
		return
	}
	if written < n {
		end.peer.late = append(end.peer.late, l.buf[written:n]...)
	}
}

func (p *relayPair) hasSpoken() {
	select {
	case <-p.spoke:
	default:
		close(p.spoke)
	}
}

// flush writes what a socket has not taken yet.
func (l *relayLoop) flush(end *relayEnd) {
	if len(end.late) == 0 || end.closed {
		return
	}
	n, err := unix.Write(end.fd, end.late)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return
	case err != nil:
		end.late, end.peer.said = nil, true
		return
	}
	if end.late = end.late[n:]; len(end.late) == 0 {
		end.late = nil
	}
}

// settle passes ends on, closes a pair that has said everything, and has the kernel tell what is waited for next.
func (l *relayLoop) settle(p *relayPair) {
	for i := range p.ends {
		end := &p.ends[i]
		if !end.said || end.told || len(end.peer.late) > 0 {
			continue
		}
		end.told = true
		if end.reset {
			_ = unix.SetsockoptLinger(end.peer.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
			p.close()
			return
		}
		_ = unix.Shutdown(end.peer.fd, unix.SHUT_WR) // it fails on a socket that has ended
	}
	if p.ends[0].told && p.ends[1].told {
		p.close()
		return
	}
	l.watch(&p.ends[0])
	l.watch(&p.ends[1])
}

// watch has the kernel tell of a socket what is waited for: of one of which that is nothing not even that it has ended,
// which it would say again and again.
func (l *relayLoop) watch(end *relayEnd) {
	if end.closed {
		return
	}
	var wanted uint32
	if !end.said && len(end.peer.late) == 0 {
		wanted |= unix.EPOLLIN
	}
	if len(end.late) > 0 {
		wanted |= unix.EPOLLOUT
	}
	if wanted == end.watched {
		return
	}
	op := unix.EPOLL_CTL_MOD
	switch {
	case wanted == 0:
		op = unix.EPOLL_CTL_DEL
	case end.watched == 0:
		op = unix.EPOLL_CTL_ADD
	}
	if err := unix.EpollCtl(l.epoll, op, end.fd, &unix.EpollEvent{Events: wanted, Fd: int32(end.fd)}); err != nil {
		end.pair.close() // the kernel has no memory for it
		return
	}
	end.watched = wanted
}

// close closes both sockets.
func (p *relayPair) close() {
	for i := range p.ends {
		if end := &p.ends[i]; !end.closed {
			end.closed = true
			delete(p.loop.ends, end.fd)
			unix.Close(end.fd)
			if i == 1 {
				close(p.done)
			}
		}
	}
}

// RelayedBy says what moves the bytes of plain connections that are not observed.
const RelayedBy = "epoll"

// maxRelayLoops bounds the threads of relays. There is one for two processors: the fewer they are, the more messages
// there are each time that one wakes.
const maxRelayLoops = 4

// relays are the loops of a proxy. They start when the first pair comes.
type relays struct {
	mu      sync.Mutex
	loops   []*relayLoop
	next    int
	failed  bool // there can be none
	stopped bool
}

// take has a loop take two sockets over: see relayLoop.take.
func (r *relays) take(client, server net.Conn, ahead []byte) *relayPair {
	loop := r.pick()
	if loop == nil {
		return nil
	}
	return loop.take(client, server, ahead)
}

// pick returns the loops in turn; nil where there is none.
func (r *relays) pick() *relayLoop {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped || r.failed {
		return nil
	}
	if len(r.loops) < min(max(runtime.GOMAXPROCS(0)/2, 1), maxRelayLoops) {
		loop, err := newRelayLoop()
		if err != nil {
			r.failed = len(r.loops) == 0 // goroutines do as well
		} else {
			r.loops = append(r.loops, loop)
		}
	}
	if len(r.loops) == 0 {
		return nil
	}
	r.next++
	return r.loops[r.next%len(r.loops)]
}

// stop ends all pairs and loops.
func (r *relays) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	for _, loop := range r.loops {
		loop.stop()
	}
	r.loops = nil
}
