package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// pass copies bytes both ways without a session. That a client has logged in is not seen: it counts as logging in until
// it has spoken.
func (l *clientConn) pass(ctx context.Context) {
	if first := l.proxy.cfg.Protocol.FirstMessage; first != nil {
		l.client.setDeadline(l.loginBy)
		if l.buffered = first(l.client.conn); l.buffered == nil {
			return
		}
	}
	if !l.reach(ctx) {
		return
	}
	if l.proxy.cfg.Protocol.FirstMessage != nil {
		l.login.leave(l.proxy.loginLimit())
	}
	l.copy()
}

// copy moves bytes both ways until both sides have said all they had to.
func (l *clientConn) copy() {
	if l.relay() {
		return
	}
	var both sync.WaitGroup
	l.client.setDeadline(time.Time{})
	l.server.setDeadline(time.Time{})
	if l.server.out != nil {
		l.server.out.patient = true
	}
	both.Go(func() {
		l.copyFirst()
		copyHalf(&l.server, &l.client)
	})
	both.Go(func() { copyHalf(&l.client, &l.server) })
	both.Wait()
}

// relay does so on a thread for many clients, if both sockets are plain. It reports whether it did.
func (l *clientConn) relay() bool {
	if l.client.stream() != l.client.conn || l.server.stream() != l.server.conn || !l.server.out.flushed() {
		return false
	}
	var ahead []byte
	if l.session == nil {
		ahead = l.buffered
	}
	pair := l.proxy.relays.take(l.client.conn, l.server.conn, ahead)
	if pair == nil {
		return false
	}
	l.proxy.mu.Lock()
	l.relayed = pair
	if l.proxy.closed {
		pair.stop()
	}
	l.proxy.mu.Unlock()
	if l.session == nil {
		l.awaitFirst(pair)
	}
	<-pair.done
	return true
}

// awaitFirst waits until a client whose login isotap does not see has said something, and ends it where that is too
// late.
func (l *clientConn) awaitFirst(pair *relayPair) {
	overdue := time.NewTimer(time.Until(l.loginBy))
	defer overdue.Stop()
	select {
	case <-pair.spoke:
		l.login.leave(l.proxy.loginLimit())
	case <-overdue.C: // the server has waited as long
		l.proxy.meter.overdue.Add(1)
		pair.stop()
	case <-pair.done:
	}
}

// copyFirst passes on what was read of the client ahead, or else, of one whose login isotap does not see, what it says
// first and in time.
func (l *clientConn) copyFirst() {
	if l.session != nil {
		return
	}
	if len(l.buffered) == 0 {
		l.client.setDeadline(l.loginBy)
		said := l.client.read()
		if !said.something() { // the server has waited as long
			l.proxy.meter.overdue.Add(1)
			l.disconnect()
			return
		}
		l.client.setDeadline(time.Time{})
		l.buffered = said.bytes
	}
	l.login.leave(l.proxy.loginLimit())
	l.server.stream().Write(l.buffered) // if it fails, so does what follows
}

const (
	// large is a read from which on a direction is taken for a large result: the kernel moves what follows.
	large = 16 << 10
	// spliced is how much that is, until isotap looks again.
	spliced = 1 << 20
)

// copyHalf copies one direction, and passes its end on. What is short it reads and writes: to splice takes the kernel
// three times as many calls. Of what is large splicing takes half the processor's time.
func copyHalf(to, from *side) {
	for {
		said := from.read()
		if !said.something() || to.write(said.bytes) != nil || said.ended { // or it was woken, for a drain
			endHalf(to, said.reset)
			return
		}
		if len(said.bytes) < large {
			continue
		}
		if ended, err := splice(to, from); ended {
			endHalf(to, errors.Is(err, syscall.ECONNRESET))
			return
		}
	}
}

// endHalf passes on how a direction ended.
func endHalf(to *side, reset bool) {
	if reset {
		to.closeAs(true)
		return
	}
	if half, ok := to.stream().(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
		return
	}
	to.stream().Close()
}

// splice moves what follows between two plain sockets, of others nothing. It reports whether the direction has ended.
func splice(to, from *side) (ended bool, err error) {
	in, plain := from.stream().(*net.TCPConn)
	out, both := to.stream().(*net.TCPConn)
	if !plain || !both {
		return false, nil
	}
	from.giveBack()
	_, err = io.CopyN(out, in, spliced)
	return err != nil, err
}
