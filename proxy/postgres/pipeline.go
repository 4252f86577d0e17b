package postgres

// A pendingKind is what kind of message of the client's a reply is due for.
type pendingKind uint8

const (
	pendingQuery             pendingKind = iota // Query: the statements' results, then ReadyForQuery
	pendingCall                                 // FunctionCall: FunctionCallResponse, then ReadyForQuery
	pendingParse                                // ParseComplete
	pendingBind                                 // BindComplete
	pendingDescribeStatement                    // Describe of a statement: ParameterDescription, then as of a portal
	pendingDescribePortal                       // Describe of a portal: RowDescription or NoData
	pendingExecute                              // rows, then CommandComplete, PortalSuspended or EmptyQueryResponse
	pendingClose                                // CloseComplete
	pendingSync                                 // ReadyForQuery
)

// endsSegment reports whether the server sends a ReadyForQuery, and with it all that it has kept back.
func (k pendingKind) endsSegment() bool {
	switch k {
	case pendingQuery, pendingCall, pendingSync:
		return true
	}
	return false
}

// A pendingReply is the reply that the server is to give to one message.
type pendingReply struct {
	kind pendingKind
	sent int64
	// silent says that the client gets nothing of the reply: the message is isotap's own, or the client has
	// had the reply before.
	silent bool
	// own says that the client did not send the message.
	own bool
	// name is that of the statement (pendingParse, pendingDescribeStatement, pendingClose) or portal.
	name string
	// closes is what Close names.
	closes objectKind
	// statement is what pendingParse makes, or what pendingBind takes to stand under the name from; portal is what
	// pendingBind makes.
	statement *statement
	// of is the client's statement of which pendingParse makes a variant.
	of     *statement
	from   string
	portal *portal
	// form is the text that pendingQuery runs, and at which of its statements the reply is; and what
	// pendingDescribeStatement describes where it is not what stands under the name.
	form *form
	at   int
	// segment is the one of the pipeline that the message was sent in.
	segment uint64
	// copies is how many ends of data the client had sent before the message.
	copies int
	// halted is why the server was not sent what the client wrote, but something that it refuses; nil: it was.
	halted error
	// answer takes the rows of isotap's own question; nil for everything else.
	answer *answer
	// asks says that a question of isotap's own stands behind the statements of pendingQuery, in the same text.
	asks bool
	// ofQuery says that the message stands for a part of a Query of the client's.
	ofQuery bool
	// cutNames are the names that the server has yet to tell of that it cut them, in the text that the message sent:
	// whether each was added to the client's.
	cutNames []bool
	// toldNames says that it has told of one.
	toldNames bool
	// untold are its notices about copies of the client's text, for the client's places: it gives them once more as it
	// comes to these, unless it fails in a copy. Those of its scanner, which reads all of the text first, it has given.
	untold []byte
}

// An answer is that of the server to a question of isotap's own.
type answer struct {
	values [][]byte     // of its only row
	failed *serverError // nil: it did not
	words  []byte       // the ErrorResponse, where it did and is at hand
	// take is called once the answer is complete.
	take func(*answer)
}

// formIn is the form of the text that a reply is about, by the names that the server has confirmed; nil when it is
// about none.
func (x *pendingReply) formIn(confirmed namespace) *form {
	switch x.kind {
	case pendingQuery:
		return x.form
	case pendingParse:
		return &x.statement.form
	case pendingBind:
		return &x.portal.form
	case pendingDescribeStatement:
		if x.form != nil {
			return x.form
		}
		if st := confirmed.statements[x.name]; st != nil {
			return &st.form
		}
	case pendingDescribePortal, pendingExecute:
		if p := confirmed.portals[x.name]; p != nil {
			return &p.form
		}
	}
	return nil
}

// describedIn returns the statement whose rows a Describe is about, by these names; nil where none is known.
func (x *pendingReply) describedIn(n namespace) *statement {
	if x.kind == pendingDescribeStatement {
		return n.statements[x.name]
	}
	if p := n.portals[x.name]; p != nil {
		return p.of
	}
	return nil
}

// maxPending bounds the replies that may be pending before the client must wait. The server sends what fills its
// own buffer of 8 KiB without being asked, so that some of so many replies are on their way.
const maxPending = 1 << 14

// maxSpare bounds the room for replies that is kept while none is pending.
const maxSpare = 32

// A pipeline is what was sent to the server and is not answered yet. Replies come in the order of the messages, but for
// those that an error leaves out: the server then skips what comes up to the next Sync.
//
// The first due of the pending replies come without a further message. While skipping, nothing is pending: the Sync
// that ends it has not been sent.
type pipeline struct {
	pending []pendingReply // oldest first
	spare   []pendingReply // where they stand
	due     int
	// skipping says that the server skips what it is sent, up to the next Sync.
	skipping bool
	// segment is the number of the segment that what is sent next is of.
	segment uint64
	copyIn  copyIn
}

// A copyIn is where the data of a COPY FROM STDIN stands. A client may send it ahead, with its end and what
// follows, before the server has said that it takes any.
type copyIn struct {
	taking bool // the server takes data
	sent   int  // ends of data that the client has sent
	taken  int  // those that the server has come to
}

// active reports whether the server takes what comes next for a part of the data.
func (c *copyIn) active() bool { return c.taking && c.sent <= c.taken }

// ended is called when the server takes data no more.
func (c *copyIn) ended() {
	if c.taking {
		c.taking = false
		c.taken++
	}
}

// add puts a reply at the end.
func (p *pipeline) add(x pendingReply) {
	x.copies, x.segment = p.copyIn.sent, p.segment
	if len(p.pending) == 0 {
		p.pending = p.spare[:0]
	}
	p.pending = append(p.pending, x)
	if grown := cap(p.pending); grown > cap(p.spare) && grown <= maxSpare {
		p.spare = p.pending
	}
	if x.kind.endsSegment() {
		p.segment++
		p.flush()
	}
}

// flush notes that the server was told to send all replies so far.
func (p *pipeline) flush() { p.due = len(p.pending) }

// idle reports whether everything was answered.
func (p *pipeline) idle() bool { return len(p.pending) == 0 }

// betweenSegments reports whether what is sent next begins a segment.
func (p *pipeline) betweenSegments() bool {
	return len(p.pending) == 0 || p.pending[len(p.pending)-1].kind.endsSegment()
}

// behindOthers reports whether a segment is pending before the one that what is sent next is of: an error there may
// change what the server says here.
func (p *pipeline) behindOthers() bool {
	return len(p.pending) > 0 && p.pending[0].segment != p.segment
}

// runsInSegment reports whether something is pending that runs in the segment that what is sent next is of.
func (p *pipeline) runsInSegment() bool {
	for i := len(p.pending) - 1; i >= 0 && !p.pending[i].kind.endsSegment(); i-- {
		if p.pending[i].kind == pendingExecute {
			return true
		}
	}
	return false
}

// endsBehind reports whether a ReadyForQuery is all that follows the result at hand of the oldest reply.
func (p *pipeline) endsBehind(x *pendingReply) bool {
	if x.kind == pendingQuery {
		return x.at == len(x.form.statements())-1
	}
	return len(p.pending) > 1 && p.pending[1].kind == pendingSync
}

// full reports whether so many replies are pending that the client has to wait for one.
func (p *pipeline) full() bool { return len(p.pending) >= maxPending }

// head is the reply that the server's next message belongs to; nil when it is to give none. It is valid until the next
// call of add, pop or skip.
func (p *pipeline) head() *pendingReply {
	if len(p.pending) == 0 {
		return nil
	}
	return &p.pending[0]
}

// pop takes the head away, as its reply is complete.
func (p *pipeline) pop() {
	p.pending[0] = pendingReply{}
	if p.pending = p.pending[1:]; len(p.pending) == 0 {
		p.pending = nil
	}
	p.due = max(p.due-1, 0)
}

// skip leaves out the replies up to the next Sync, after an error: the server skips these messages. If the client has
// not sent the Sync yet, it will skip what comes. It reports whether messages were skipped that had been sent.
func (p *pipeline) skip() bool {
	n := 0
	for n < len(p.pending) && p.pending[n].kind != pendingSync {
		n++
	}
	if n == len(p.pending) {
		p.skipping = true
	}
	for i := range p.pending[:n] {
		if x := &p.pending[i]; x.of != nil {
			x.of.dropVariant(x.name, x.segment)
		}
	}
	clear(p.pending[:n])
	p.pending = p.pending[n:]
	p.due = max(p.due-n, 0)
	return n > 0
}

// clear forgets all that is pending: it will never come.
func (p *pipeline) clear() { p.pending, p.due = nil, 0 }

// copyBegins is called when the server begins to take data for the head. In the extended protocol it has by then been
// sent a Sync, perhaps, right behind the Execute, which it ignores: its reply is taken away. It reports whether there
// was one.
func (p *pipeline) copyBegins() (syncs bool) {
	p.copyIn.taking = true
	for p.pending[0].kind == pendingExecute && len(p.pending) > 1 && p.pending[1].kind == pendingSync &&
		p.pending[1].copies <= p.copyIn.taken {
		p.pending = append(p.pending[:1], p.pending[2:]...)
		p.due = max(p.due-1, 0)
		syncs = true
	}
	return syncs
}

// oneSegment reports whether at most one ReadyForQuery is pending: nothing was sent behind the segment that the server
// is at.
func (p *pipeline) oneSegment() bool {
	ends := 0
	for i := range p.pending {
		if p.pending[i].kind.endsSegment() {
			ends++
		}
	}
	return ends <= 1
}

// runs reports whether a statement or a function is to run yet.
func (p *pipeline) runs() bool {
	for i := range p.pending {
		switch p.pending[i].kind {
		case pendingQuery, pendingExecute, pendingCall:
			return true
		}
	}
	return false
}

// executes reports whether a portal of that name is to run yet, in the transaction that the server is in now; sure is
// false where that may have ended by then, and the portal with it.
func (p *pipeline) executes(name string) (runs, sure bool) {
	for i := range p.pending {
		if x := &p.pending[i]; x.kind.endsSegment() {
			return false, false
		} else if x.kind == pendingExecute {
			runs = runs || x.name == name
		}
	}
	return runs, true
}

// bytesBeyond is about how many bytes the statements and portals take that are to be made yet and have no name in a
// namespace.
func (p *pipeline) bytesBeyond(n namespace) (total int) {
	for i := range p.pending {
		x := &p.pending[i]
		if x.kind == pendingParse && !x.own && n.statements[x.name] != x.statement {
			total += bytesOf(x.statement.text)
		}
		if x.kind == pendingBind && n.portals[x.name] != x.portal {
			total += x.portal.bytes
		}
	}
	return total
}
