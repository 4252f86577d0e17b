package postgres

// copying is where the data of a COPY FROM STDIN stands. A client may send it ahead, with its end and what
// follows, before the server has said that it takes any.
type copying struct {
	in          bool // the server takes data
	copiesSent  int  // ends of data that the client has sent
	copiesTaken int  // those that the server has come to
}

// copyingIn reports whether the server takes what comes next for a part of the data.
func (c *copying) copyingIn() bool { return c.in && c.copiesSent <= c.copiesTaken }

// copyEnds is called when the server takes data no more.
func (c *copying) copyEnds() {
	if c.in {
		c.in = false
		c.copiesTaken++
	}
}

// copyBegins is called when the server begins to take data. In the extended protocol it has by then been sent a
// Sync, perhaps, right behind the Execute, which it ignores.
func (s *Session) copyBegins(x *owed) {
	s.in = true
	for x.kind == owesExecute && len(s.queue) > 1 && s.queue[1].kind == owesSync && s.queue[1].copies <= s.copiesTaken {
		s.queue = append(s.queue[:1], s.queue[2:]...)
		s.due = max(s.due-1, 0)
		s.segment.open = len(s.queue) == 1
	}
}
