package postgres

import (
	"fmt"

	"github.com/isotap/isotap/proxy/session"
)

// FromClient takes bytes that the client sent at now (nanoseconds since the run's start) and returns how many
// of them it used. The rest must be offered again once FromServer made progress. The bytes may be reused
// afterwards.
func (s *Session) FromClient(now int64, p []byte) (n int, err error) {
	s.now = now
	if s.planning {
		s.findPlanner()
	}
	for n < len(p) && s.wantsClient() {
		used, err := s.clientBytes(p[n:])
		n += used
		if err != nil {
			return n, fmt.Errorf("from client: %w", err)
		}
	}
	return n, nil
}

// wantsClient reports whether the session can take the client's next message.
func (s *Session) wantsClient() bool {
	switch s.phase {
	case phaseStartup, phaseAuth:
		return s.upgrade == session.NoLeg
	case phaseCopy:
		return true
	case phaseReady:
		return s.held.raw == nil
	}
	return false
}

// Turn returns whose turn it is. The other side can still speak.
func (s *Session) Turn() session.Turn {
	switch s.phase {
	case phaseStartup:
		return session.ClientTurn
	case phaseLeg, phaseAsk, phaseClosing:
		return session.ServerTurn
	case phaseReady:
		switch {
		case s.pipeline.due > 0 && !s.pipeline.copyIn.active() || s.held.raw != nil:
			return session.ServerTurn
		case !s.listens && !s.pipeline.copyIn.active():
			return session.ClientTurn
		}
		// Notifications come at any time, and so does the error that ends a COPY.
	}
	return session.EitherTurn
}

func (s *Session) clientBytes(p []byte) (int, error) {
	switch s.phase {
	case phaseCopy:
		s.toServer = append(s.toServer, p...)
		return len(p), nil
	case phaseStartup:
		return s.startupBytes(p)
	case phaseReady:
		return s.readyBytes(p)
	}
	m, used, err := s.client.next(p, loginLimit, never)
	if m.raw == nil || err != nil {
		return used, err
	}
	return used, s.authFromClient(m)
}

// FromServer takes bytes that the server sent at now. It uses all of them; they may be reused afterwards. An
// error means that the replies cannot be followed: close both sides.
func (s *Session) FromServer(now int64, p []byte) error {
	s.now = now
	for len(p) > 0 {
		used, err := s.serverBytes(p)
		if err != nil {
			return fmt.Errorf("from server: %w", err)
		}
		p = p[used:]
	}
	return nil
}

func (s *Session) serverBytes(p []byte) (int, error) {
	if s.upgrade == session.ServerAgain {
		return len(p), nil // of a connection that is given up
	}
	switch s.phase {
	case phaseCopy:
		s.toClient = append(s.toClient, p...)
		return len(p), nil
	case phaseLeg:
		s.legFromServer(p)
		return len(p), nil
	case phaseCancel, phaseClosed:
		return len(p), nil
	case phaseAuth:
		m, used, err := s.server.next(p, serverLoginLimit, never)
		if m.raw == nil || err != nil {
			return used, err
		}
		return used, s.authFromServer(m)
	case phaseAsk, phaseReady, phaseClosing:
		return s.replyBytes(p)
	}
	return 0, fmt.Errorf("%w from the server (%q)", errUnexpected, p[0])
}

// Copying reports whether bytes may be copied from now on without the session.
func (s *Session) Copying() bool { return s.phase == phaseCopy }

// LoggedIn reports whether the client's login is over.
func (s *Session) LoggedIn() bool { return s.phase > phaseAsk }

// InTransaction reports whether the server has a transaction open for the client, or a reply is due.
func (s *Session) InTransaction() bool {
	return s.phase == phaseReady && (s.txn.status != txnIdle || !s.pipeline.idle() || s.held.raw != nil)
}

// Unread reports whether Idle has something to do, which is never so: what a statement did is known with its reply.
func (s *Session) Unread() bool { return false }

// Idle tells the session that nothing has come from either side for a while.
func (s *Session) Idle(now int64) { s.now = now }

// Dismiss tells the client that its connection ends now, as a server does that shuts down.
func (s *Session) Dismiss(now int64) {
	s.now = now
	switch s.phase {
	case phaseLeg, phaseAuth, phaseAsk:
		s.turnAway(sqlstateCannotConnectNow, "the database system is shutting down", "")
	case phaseReady:
		s.toClient = append(s.toClient, fatal(sqlstateAdminShutdown,
			"terminating connection due to administrator command", "")...)
		s.close()
	}
}

// ClientClosed tells the session that the client will send nothing more. Replies that are to come are
// still read; when they have come, [Session.Done] says so.
func (s *Session) ClientClosed(now int64) {
	s.now = now
	switch {
	case s.phase >= phaseClosing:
	case s.phase == phaseCancel: // the server takes note of it, and closes
	case s.phase == phaseReady && (s.pipeline.due > 0 || s.held.raw != nil) && !s.pipeline.copyIn.active():
		s.phase = phaseClosing
	default:
		s.close()
	}
}

// ServerClosed tells the session that the server is gone. Transactions that it may or may not have committed
// become indeterminate. The client sees its connection end, as it would without isotap; words come from the server
// alone, but for where isotap must begin TLS on its own account, of which the client knows nothing.
func (s *Session) ServerClosed(now int64) {
	s.now = now
	if s.phase == phaseLeg && s.cfg.ServerTLS == session.MustTLS {
		s.turnAway(sqlstateConnectionFailure, "isotap lost its connection to the server during the login", "")
	}
	if s.phase != phaseClosed {
		s.release()
		s.close()
	}
}

// Done reports whether the session has nothing more to do: close both sides once the output is sent.
func (s *Session) Done() bool { return s.phase == phaseClosed }
