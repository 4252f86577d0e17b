package analyzer

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// doubtfulReads knows which statements of the MySQL family's, whose own columns tell all that they promise, may have
// met other versions all the same: isotap_wlist stays as it is where a statement writes that isotap does not observe.
type doubtfulReads struct {
	// undone are writers of each run that may have written unseen and undid it. Until then others see that at READ
	// UNCOMMITTED, under the tag of the version before; afterwards nothing tells of it. dirty are the runs that had
	// such readers.
	undone map[history.Run]*hiddenWriters
	dirty  map[history.Run]bool
	// kept are the writers that left rows under the tags which these had, by each name in their texts. Runs whose
	// server's log was read have none: there the log tells.
	kept   map[keptName]*hiddenWriters
	names  map[string][]string // by shape; at most maxHiddenShapes
	logged map[history.Run]bool
	// bounded says that what is kept of hidden writers has a bound: a [Live] goes on for weeks.
	bounded bool
}

const (
	maxHiddenWriters = 4096 // of one list
	maxHiddenShapes  = 4096
)

// A keptName is a name in the text of a statement, in lower case.
type keptName struct {
	run  history.Run
	name string
}

// hiddenWriters are statements that wrote unseen. Latest is, once they are sorted, when the last ended of those up to
// each.
type hiddenWriters struct {
	list   []hiddenWriter
	latest []int64
}

// A hiddenWriter is a statement that may have written rows without a tag. Nobody saw these before from; to is when its
// transaction had ended. One that stands for several is of no transaction.
type hiddenWriter struct {
	txn      history.TxnID
	stmt     uint32
	from, to int64
}

func newDoubtfulReads() doubtfulReads {
	return doubtfulReads{undone: make(map[history.Run]*hiddenWriters), dirty: make(map[history.Run]bool),
		kept: make(map[keptName]*hiddenWriters), names: make(map[string][]string), logged: make(map[history.Run]bool)}
}

// note takes in a transaction before any is asked about that ended after it had begun.
func (c *coverageCount) note(t *history.Txn) {
	if c.tagged[t.ID.Run()] {
		c.doubtful.note(t)
	}
}

// note takes in a transaction of the MySQL family's.
func (d *doubtfulReads) note(t *history.Txn) {
	run := t.ID.Run()
	for i := range t.Stmts {
		s := &t.Stmts[i]
		d.dirty[run] = d.dirty[run] || readsDirty(t, s)
		if s.Unseen || s.Observation != history.Opaque && s.Observation != history.Inexact {
			continue
		}
		w := hiddenWriter{t.ID, s.Num, s.Start, t.End}
		if w.to <= 0 || t.Status == history.Indeterminate {
			w.to = math.MaxInt64
		}
		if (s.Void || t.Status != history.Committed) && mayHideWrites(s) {
			if d.undone[run] == nil {
				d.undone[run] = &hiddenWriters{}
			}
			d.add(d.undone[run], w)
		}
		if t.Status != history.Aborted && !d.logged[run] && keepsTags(s) {
			for _, name := range d.namesIn(s.Shape) {
				k := keptName{run, name}
				if d.kept[k] == nil {
					d.kept[k] = &hiddenWriters{}
				}
				d.add(d.kept[k], w)
			}
		}
	}
}

// readsDirty reports whether a statement reads what others have not committed.
func readsDirty(t *history.Txn, s *history.Stmt) bool {
	return t.Level == history.ReadUncommitted && s.Kind == history.Select && s.Locking == history.NoLock && !s.Unseen &&
		s.Observation == history.Exact && len(s.Accesses) > 0
}

// mayHideWrites reports whether a statement that was not observed exactly may have written rows without a tag.
func mayHideWrites(s *history.Stmt) bool {
	return s.Kind != history.Select || s.Observation == history.Opaque && !s.Reason.TablesKnown()
}

// namesIn returns the names in a shape, each once.
func (d *doubtfulReads) namesIn(shape string) []string {
	names, known := d.names[shape]
	if !known {
		if len(d.names) >= maxHiddenShapes {
			clear(d.names)
		}
		shape = strings.Clone(shape) // names are parts of it
		for _, w := range wordsOf(dbms.MySQLFamily, shape) {
			if w.name {
				names = append(names, strings.ToLower(w.text))
			}
		}
		slices.Sort(names)
		names = slices.Compact(names)
		d.names[shape] = names
	}
	return names
}

// any reports whether there may be doubtful reads.
func (d *doubtfulReads) any() bool {
	if len(d.kept) > 0 {
		return true
	}
	for run := range d.undone {
		if d.dirty[run] {
			return true
		}
	}
	return false
}

// why returns the reason why a statement may have met other versions than it tells; none where it did not. Started
// returns when a transaction had begun, as late as is known.
func (d *doubtfulReads) why(t *history.Txn, s *history.Stmt, started func(history.TxnID) int64) history.Reason {
	if s.Unseen || s.Observation != history.Exact {
		return history.Reason{}
	}
	end := s.End
	if end <= 0 {
		end = math.MaxInt64
	}
	if w := d.undone[t.ID.Run()]; w != nil && readsDirty(t, s) &&
		w.some(end, s.Start, func(w *hiddenWriter) bool { return w.txn != t.ID }) {
		return history.ReasonUndone
	}
	for i := range s.Accesses {
		a := &s.Accesses[i]
		if a.Op == history.InsertRow || a.Absent || a.Gone || a.Version.Txn == t.ID {
			continue
		}
		w := d.kept[keptName{t.ID.Run(), strings.ToLower(a.Row.Table[strings.LastIndexByte(a.Row.Table, '.')+1:])}]
		if w != nil && w.some(end, started(a.Version.Txn), func(w *hiddenWriter) bool {
			return w.txn != a.Version.Txn || w.stmt > a.Version.Stmt
		}) {
			return history.ReasonOldTag
		}
	}
	return history.Reason{}
}

// add adds a writer.
func (d *doubtfulReads) add(h *hiddenWriters, w hiddenWriter) {
	h.list, h.latest = append(h.list, w), nil
	if d.bounded && len(h.list) > maxHiddenWriters {
		h.join()
	}
}

// join takes the earlier half for one that went on from the first's begin to the last's end.
func (h *hiddenWriters) join() {
	h.sort()
	half := h.list[:len(h.list)/2]
	one := hiddenWriter{from: half[0].from, to: h.latest[len(half)-1]}
	h.list, h.latest = append(h.list[:0], append([]hiddenWriter{one}, h.list[len(half):]...)...), nil
}

func (h *hiddenWriters) sort() {
	slices.SortFunc(h.list, func(a, b hiddenWriter) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.txn, b.txn), cmp.Compare(a.stmt, b.stmt))
	})
	last := int64(math.MinInt64)
	for _, w := range h.list {
		last = max(last, w.to)
		h.latest = append(h.latest, last)
	}
}

// some reports whether there is such a writer among those that began before a time and ended after another one.
func (h *hiddenWriters) some(before, after int64, such func(*hiddenWriter) bool) bool {
	if h.latest == nil {
		h.sort()
	}
	n, _ := slices.BinarySearchFunc(h.list, before, func(w hiddenWriter, before int64) int { return cmp.Compare(w.from, before) })
	for i := n - 1; i >= 0 && h.latest[i] > after; i-- {
		if w := &h.list[i]; w.to > after && such(w) {
			return true
		}
	}
	return false
}

// Doubtful reports whether statements whose rows tell all that they promise may have met other versions: what was
// written unseen shows in no row. Then each transaction is to be given to [Analyzer.Recount], once all were added.
func (a *Analyzer) Doubtful() bool { return a.coverageCount.doubtful.any() }

// Recount takes in a transaction once more, and counts those of its statements as inexact that may have met other
// versions. It changes nothing else: what is known of the order of versions and their readers stays true, as one that
// kept a tag comes behind the one that had left it.
func (a *Analyzer) Recount(t *history.Txn) error {
	a.coverageCount.recount(t, a.started)
	return nil
}

// recount counts statements of a transaction as inexact that were counted as exact and may have met other versions.
// Started returns when a transaction had begun, or an earlier time.
func (c *coverageCount) recount(t *history.Txn, started func(history.TxnID) int64) {
	for i := range t.Stmts {
		s := &t.Stmts[i]
		if why := c.doubtful.why(t, s, started); !why.IsZero() {
			c.Exact--
			c.kinds[s.Kind].Exact--
			c.Inexact++
			c.kinds[s.Kind].Inexact++
			c.cause(why, Observed{Inexact: 1})
		}
	}
}

// started returns when a transaction had begun; the lowest time where it is not known.
func (a *Analyzer) started(id history.TxnID) int64 {
	if n, ok := a.store.runIndex[id.Run()]; ok {
		if i := a.store.runs[n].txn(id.Seq()); i >= 0 {
			return a.store.txns[i].start
		}
	}
	return math.MinInt64
}
