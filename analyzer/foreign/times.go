package foreign

import "github.com/isotap/isotap/history"

// times are those of a transaction: when it began, and when its last statement was sent, and answered if that committed
// it. 0: it was not.
type times struct{ began, sent, answered int64 }

func timesOf(t *history.Txn) times {
	at := times{began: t.Start, sent: t.Start}
	if t.Status == history.Committed {
		at.answered = t.End
	}
	for i := range t.Stmts {
		at.sent = max(at.sent, t.Stmts[i].Start)
	}
	return at
}

// boundTimes bounds, by the transactions that isotap recorded, when those of the log could be seen. Who stands in the
// log after another one ended after that had been sent; and who stands before one, could be seen when that was
// answered: servers commit in the log's order.
func (r *Resolver) boundTimes() {
	from := make([]int64, len(r.runs))
	for i := range r.logged {
		x := &r.logged[i]
		x.from = max(x.from, from[x.run])
		if r.ownTimes(x) {
			from[x.run] = max(from[x.run], r.recorded[x.owner].sent)
		}
	}
	seen := make([]int64, len(r.runs)) // 0: none yet
	for i := len(r.logged) - 1; i >= 0; i-- {
		x := &r.logged[i]
		if at := r.recorded[x.owner].answered; r.ownTimes(x) && at > 0 && (seen[x.run] == 0 || at < seen[x.run]) {
			seen[x.run] = at
		}
		if x.seen == 0 || seen[x.run] > 0 && seen[x.run] < x.seen {
			x.seen = seen[x.run]
		}
	}
}

// ownTimes reports whether a transaction of the log is, by a tag that it left, one that the proxy recorded which read
// that log: their times are by one clock. A deletion leaves none: a row that somebody put back may be deleted twice.
func (r *Resolver) ownTimes(x *loggedTxn) bool {
	return x.tagged && r.runs[x.run].Run == x.owner.Run()
}
