package predicate

import "github.com/isotap/isotap/history"

// What a statement did not find of a row is told only where somebody else wrote it while the statement's transaction
// ran, or both before and after (near). A row that was first written later is absent to every statement of the past;
// of one that was last written earlier it saw the last version.
//
// So a [Matcher] that is gentle holds predicates against the versions of no other rows. Who else wrote these it cannot
// always know: writers that only the server's log has, and those of another proxy, do not count.

// A row is what is known of the writes of one.
type row struct {
	began, ended int64 // when the first of their transactions began, and the last one ended
	by           history.TxnID
	several      bool // not by alone
	last         int  // its last image, the dropped ones counted; -1: there is none
}

// written takes in that a transaction wrote a row.
func (t *tests) written(id string, by *history.Txn) *row {
	r := t.rows[id]
	if r == nil {
		r = &row{began: by.Start, ended: by.End, by: by.ID, last: -1}
		t.rows[id] = r
	}
	r.began, r.ended, r.several = min(r.began, by.Start), max(r.ended, by.End), r.several || r.by != by.ID
	return r
}

// maxUses bounds the times of a predicate that are kept apart.
const maxUses = 16

// uses are when transactions used a predicate.
type uses struct {
	spans   []timeSpan
	settled int // spans before this one were there at the last round
	from    int // the first image that those since then are held against
}

// A timeSpan is when a transaction ran, or several did one after the other.
type timeSpan struct {
	start, end int64
	by         history.TxnID
	several    bool // not by alone
}

// add takes in the time of a transaction.
func (u *uses) add(t *history.Txn) {
	n := len(u.spans)
	if n > u.settled && (n >= maxUses || u.spans[n-1].by == t.ID || u.spans[n-1].end >= t.Start) {
		last := &u.spans[n-1]
		last.start, last.end = min(last.start, t.Start), max(last.end, t.End)
		last.several = last.several || last.by != t.ID
		return
	}
	u.spans = append(u.spans, timeSpan{t.Start, t.End, t.ID, false})
}

// settle ends a round, after which so many images are tested.
func (u *uses) settle(images int) {
	if n := len(u.spans); n > maxUses {
		merged := u.spans[0]
		for _, s := range u.spans[1:] {
			merged.start, merged.end = min(merged.start, s.start), max(merged.end, s.end)
		}
		merged.several = true
		u.spans = append(u.spans[:0], merged)
	}
	u.settled, u.from = len(u.spans), images
}

// last returns when the predicate was used last.
func (u *uses) last() (end int64) {
	for _, s := range u.spans {
		end = max(end, s.end)
	}
	return end
}

// matter reports whether what the predicate says of a row may be told of a use of it; fresh counts those only that came
// since the last round, before which all was told of rows that are not known.
func (u *uses) matter(r *row, fresh bool) bool {
	if r == nil {
		return !fresh
	}
	spans := u.spans
	if fresh {
		spans = spans[u.settled:]
	}
	for _, s := range spans {
		if r.began <= s.end && r.ended >= s.start && (r.several || s.several || r.by != s.by) {
			return true
		}
	}
	return false
}
