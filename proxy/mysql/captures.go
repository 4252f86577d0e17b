package mysql

import (
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// captures is the session's side of capture inside the statement (ADR 7): a write collects
// what it replaced in session variables on the server, and isotap reads them before the transaction ends, of several
// statements at once.
//
// A statement that collected entries is first unread, then in one batch of reading, then in neither. A transaction that
// has ended is handed over as soon as none of its statements is in either: until then it is in ended.
type captures struct {
	ready bool // the variables are set up
	// unread statements have entries in the variables.
	unread     []*pendingStatement
	unreadRows uint64 // about how many there are
	// reading has the statements whose entries were asked for: a batch for each query in flight.
	reading [][]*pendingStatement
	// ended transactions wait for the entries of their statements.
	ended []*history.Txn
}

const (
	// maxUnread is the number of statements after which their entries are read in any case.
	maxUnread = 256
	// entryBytes is the room that one entry takes in the variables at most: a row id, a list and a tag.
	entryBytes = 512
	// imageEntries is as how many entries an image counts.
	imageEntries = 8
	// collectedEntries is as how many entries a read counts that collects its rows: their number is not known, so that
	// they are read before the next statement.
	collectedEntries = 1 << 32
	// besideEntries is as how many entries the array of what a subquery read counts.
	besideEntries = 8
	// readWithin bounds how long ended transactions of a busy session wait for their entries, in
	// nanoseconds. A session that is quiet reads them sooner, see Idle.
	readWithin = 100e6
)

// reset forgets what RESET CONNECTION and CHANGE USER undo.
func (c *captures) reset() { *c = captures{} }

// due reports whether entries are to be read before a statement is sent at now. Each read costs the server
// as much as a statement, and entries name theirs, so those of several transactions are read at once,
// unless each is to be stored before it is acknowledged (durable). maxPacket is the server's max_allowed_packet.
func (c *captures) due(plan *sqlmysql.Plan, now int64, maxPacket int, durable bool) bool {
	switch {
	case len(c.unread) >= maxUnread, c.unreadRows*entryBytes >= uint64(maxPacket)/8:
		return true
	case plan.Result.Collects: // it may collect too much, which must be told of no other
		return len(c.unread) > 0
	case durable, plan.Txn.Branch: // a branch may leave the session, and another may end it
		return plan.Txn.Ends || len(c.ended) > 0
	}
	return len(c.ended) > 0 && now-c.ended[0].End >= readWithin
}

// await takes note of a statement that has been answered, if it may have collected entries or images. insertID is what
// the server numbered the first row of an INSERT with, and increment the step to the next.
func (c *captures) await(o *pendingStatement, failed bool, insertID, increment uint64) {
	o.awaitsEntries = !failed && o.mayHaveEntries()
	rows := max(o.matched, o.affected)
	rows *= uint64(1 + besideEntries*len(o.plan.Writes.Beside))
	if images := !failed && o.mayHaveImages(); images {
		o.insertID, o.increment = insertID, increment
		rows *= imageEntries
	} else if !o.awaitsEntries {
		return
	}
	if o.plan.Result.Collects {
		rows = collectedEntries
	}
	c.unread = append(c.unread, o)
	c.unreadRows += rows
}

// read returns the statements whose entries are to be read now; nil when there are none. Call wait with them when the
// query is sent, and answered when its reply is there.
func (c *captures) read() []*pendingStatement {
	batch := c.unread
	c.unread, c.unreadRows = nil, 0
	return batch
}

// wait notes that a query is under way that tells what these statements saw: until it is answered, their transactions
// wait for it.
func (c *captures) wait(batch []*pendingStatement) { c.reading = append(c.reading, batch) }

// answered notes that the query of the batch for which wait was called longest ago is over, and appends the
// transactions that waited for it alone to events. The server answers in the order of the queries.
func (c *captures) answered(events []session.Event) []session.Event {
	c.reading = slices.Delete(c.reading, 0, 1)
	return c.release(events)
}

// takeEntries hands the entries that a read found to the statements of its batch. Entries of statements that failed
// find none: the tag voids them.
func takeEntries(batch []*pendingStatement, collected []byte) {
	entries, uncollected, err := sqlmysql.ParseCapture(collected)
	byTag := make(map[history.Tag][]sqlmysql.CaptureEntry, len(batch))
	for _, e := range entries {
		byTag[e.Tag] = append(byTag[e.Tag], e)
	}
	for _, o := range batch {
		if !o.awaitsEntries {
			continue
		}
		switch o.addCaptured(byTag[o.tag()]); {
		case err != nil:
			o.downgradeRecorded(history.ReasonUnreadableCapture)
		case uncollected > 0:
			o.uncollected = true
			o.downgradeRecorded(history.ReasonCaptureOverflow)
		}
	}
}

// awaited reports whether statements of the transaction have entries that are not read yet.
func (c *captures) awaited(t *history.Txn) bool {
	of := func(o *pendingStatement) bool { return o.txn == t }
	if slices.ContainsFunc(c.unread, of) {
		return true
	}
	return slices.ContainsFunc(c.reading, func(batch []*pendingStatement) bool {
		return slices.ContainsFunc(batch, of)
	})
}

// handOver appends a transaction that has ended to events, or keeps it until its entries are read.
func (c *captures) handOver(t *history.Txn, events []session.Event) []session.Event {
	if c.awaited(t) {
		c.ended = append(c.ended, t)
		return events
	}
	return append(events, session.Event{Txn: t})
}

// release appends the transactions that no longer wait for entries to events.
func (c *captures) release(events []session.Event) []session.Event {
	waiting := c.ended[:0:0]
	for _, t := range c.ended {
		if c.awaited(t) {
			waiting = append(waiting, t)
			continue
		}
		events = append(events, session.Event{Txn: t})
	}
	c.ended = waiting
	return events
}

// giveUp gives the entries up that were not asked for, and appends the transactions that waited for them to events.
func (c *captures) giveUp(why history.Reason, events []session.Event) []session.Event {
	downgradeAll(c.unread, why)
	c.unread, c.unreadRows = nil, 0
	return c.release(events)
}

// giveUpAll gives up those, too, that were asked for: no answer will come.
func (c *captures) giveUpAll(why history.Reason, events []session.Event) []session.Event {
	for _, batch := range c.reading {
		downgradeAll(batch, why)
	}
	c.reading = nil
	return c.giveUp(why, events)
}

func downgradeAll(batch []*pendingStatement, reason history.Reason) {
	for _, o := range batch {
		if o.awaitsEntries {
			o.downgradeRecorded(reason)
		}
	}
}
