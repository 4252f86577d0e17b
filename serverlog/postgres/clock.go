package postgres

// micro is one in nanoseconds: the server's times are in microseconds.
const micro = 1000

// A clock compares the server's with isotap's: when something happened at the server by its clock, it did not happen
// earlier by isotap's than the clock says. It rests on the last question that was answered: the server said its time
// after it had been asked.
type clock struct {
	behind int64 // isotap's time when it asked, less the server's in the answer
	asking int64
}

func newClock(asked, server int64) clock { return clock{behind: asked - server*micro} }

func (c *clock) ask(now int64)         { c.asking = now }
func (c *clock) answered(server int64) { c.behind = c.asking - server*micro }

// margin allows for a message that was under way when the server was asked.
const margin = 50 * 1000 * micro

// notBefore returns the earliest time that it can have been.
func (c *clock) notBefore(server int64) int64 { return max(0, server*micro+c.behind-margin) }
