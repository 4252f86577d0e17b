package binlog

// A mark is what the server said of its log's end: at some time between asked and answered, in nanoseconds since the
// run's start, it was at.
type mark struct {
	at              position
	asked, answered int64
}

// A clock tells by marks when transactions ended, of which the log has the order only. What stands above a mark ended
// after it was asked for. Where the server gives the position of a snapshot (MariaDB), everything up to the mark had
// ended, for everyone to see, when it was answered.
type clock struct {
	marks []mark // in order, one for each position
}

// maxMarks bounds what is kept while the log is behind; with fewer, times are known less closely.
const maxMarks = 4096

// add takes in another mark, which was asked for after the ones before it.
func (c *clock) add(m mark) {
	if n := len(c.marks); n > 0 {
		last := &c.marks[n-1]
		switch order := last.at.compare(m.at); {
		case order == 0:
			last.asked = m.asked // and was answered by the first answer
			return
		case order > 0 || n == maxMarks:
			return
		}
	}
	c.marks = append(c.marks, m)
}

// passed reports whether a mark is at p or above.
func (c *clock) passed(p position) bool {
	return len(c.marks) > 0 && c.marks[len(c.marks)-1].at.compare(p) >= 0
}

// times returns between when and when a transaction ended that stands up to p: it had not before from, and every
// snapshot since seen has it; 0: not known. Positions must be asked for in order.
func (c *clock) times(p position) (from, seen int64) {
	below := -1
	for i := range c.marks {
		if c.marks[i].at.compare(p) >= 0 {
			seen = c.marks[i].answered
			break
		}
		below = i
	}
	if below >= 0 {
		from = c.marks[below].asked
		c.marks = c.marks[below:]
	}
	return from, seen
}
