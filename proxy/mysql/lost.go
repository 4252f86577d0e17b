package mysql

import gomysql "github.com/go-mysql-org/go-mysql/mysql"

// tellLoss tells a client that waits for a reply that the server is gone. The error is what a server
// says that is shut down, 1053: all clients take its SQL state for a lost connection, and none retries a
// statement of which it is not known whether it ran. The clients' own errors, such as 2013, are malformed
// to some of them when they come over the wire.
func (s *Session) tellLoss() {
	lost := serverError{gomysql.ER_SERVER_SHUTDOWN, "08S01", "isotap lost its connection to the server"}
	switch s.phase {
	case phaseGreeting:
		s.turnAway(gomysql.ER_CONNECT_TO_FOREIGN_DATA_SOURCE, "", "the server ended isotap's connection before its greeting")
	case phaseAuth:
		s.sendClient(appendErr(nil, lost))
	case phaseCommand:
		if s.owesReply() {
			s.toClient, _ = appendPacket(s.toClient, 1, appendErr(nil, lost))
		}
	}
}

// owesReply says whether the client waits for a reply of which it has seen nothing.
func (s *Session) owesReply() bool {
	for _, x := range s.exchanges {
		if x.visible {
			return !x.begun
		}
	}
	return s.command != nil && s.command[0] != gomysql.COM_QUIT && s.command[0] != gomysql.COM_STMT_SEND_LONG_DATA
}

// LoggedIn says whether the client's first login is over.
func (s *Session) LoggedIn() bool { return s.loggedIn }

// LoginOverdue ends a session that took too long to log in.
func (s *Session) LoginOverdue(now int64) {
	s.now = now
	if s.phase == phaseGreeting {
		s.turnAway(gomysql.ER_CONNECT_TO_FOREIGN_DATA_SOURCE, "", "the server did not greet isotap in time")
		return
	}
	s.turnAway(gomysql.ER_NET_READ_INTERRUPTED, "08S01", "Got timeout reading communication packets")
}
