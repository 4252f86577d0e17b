package analyzer

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/isotap/isotap/history"
)

// parts says which transactions of a [Live] are done with. Times count from its first run's start.
type parts struct {
	o  *order
	at []int64 // by transaction: when it ended
	// What ended before settled is let go after this step; what ended before closed cannot be on a cycle with what
	// is open or yet to come, and what ended before due has waited long enough.
	settled, closed, due int64
	// natural is what settled would be without [LiveOptions.Limit].
	natural int64
	open    []history.Run // the runs that have not ended
}

// The parts that anomalies are in.
const (
	partSettled = "s"
	partKnown   = "k" // it can be told
	partOpen    = "o"
	partGarbage = "g" // followed by the run that may still show not to be recorded to its end
	partAwaited = "a" // settled, but for a version whose writer has no record up to now
)

func subtract(t int64, d time.Duration) int64 {
	if t < math.MinInt64+int64(d) {
		return math.MinInt64
	}
	return t - int64(d)
}

// spans finds the stretches of time that an anomaly may cover: those of the dependencies on transactions that did not
// end later, as [order.spans] says, and of all that is wrong with single reads.
func (p *parts) spans(a *Analyzer) []span {
	var spans []span
	cover := func(from, to int32) {
		if from >= 0 && to >= 0 {
			spans = append(spans, span{min(p.at[from], p.at[to]), max(p.at[from], p.at[to])})
		}
	}
	p.o.each(func(d dep) {
		if p.at[d.from] >= p.at[d.to] {
			cover(d.from, d.to)
		}
	})
	reads := newCollector(p.o, a.opts)
	reads.apart = func(_ Anomaly, witness []dep) string {
		cover(witness[0].from, witness[0].to)
		return ""
	}
	a.findReads(reads)
	return spans
}

// below returns the latest time, not after t, that no span covers beyond its first moment: nothing that ended
// before it is on a cycle with anything else.
func below(spans []span, t int64) int64 {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(b.to, a.to) })
	for _, s := range spans {
		if s.to < t {
			break
		}
		t = min(t, s.from)
	}
	return t
}

// of returns the part of an anomaly.
func (p *parts) of(name Anomaly, witness []dep) string {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range witness {
		for _, t := range [2]int32{witness[i].from, witness[i].to} {
			if t >= 0 {
				first, last = min(first, p.at[t]), max(last, p.at[t])
			}
		}
	}
	settled := first < p.settled || p.settled == math.MaxInt64
	awaited := p.awaited(witness)
	switch {
	case name == GarbageRead && witness[0].from < 0 && slices.Contains(p.open, p.runOf(witness[0].version)):
		if settled {
			return partGarbage + p.runOf(witness[0].version).String()
		}
		return partOpen
	case awaited && first < p.natural:
		return partAwaited
	case awaited:
		return partOpen
	case settled:
		return partSettled
	case last < p.closed || last <= p.due:
		return partKnown
	default:
		return partOpen
	}
}

// final reports whether a dependency is between transactions that are let go after this step, and stays what it is.
func (p *parts) final(d *dep) bool {
	last := max(p.at[d.from], p.at[d.to])
	return (last < p.settled || p.settled == math.MaxInt64) && (last < p.natural || !p.awaited([]dep{*d}))
}

// awaited reports whether the witness rests on a version whose writer may still turn out to have undone it.
func (p *parts) awaited(witness []dep) bool {
	unknown := func(v int32) bool {
		if v < 0 || p.o.owner(v) >= 0 || p.o.tagOf(v).initial() {
			return false
		}
		t := p.o.tagOf(v)
		return slices.Contains(p.open, p.runOf(v)) && !p.o.runs[t.run].gone.Has(t.seq)
	}
	return len(p.open) > 0 && slices.ContainsFunc(witness, func(d dep) bool {
		return unknown(d.version) ||
			unknown(d.next)
	})
}

func (p *parts) runOf(version int32) history.Run { return p.o.runs[p.o.tagOf(version).run].info.Run }

// foundUnseenWriters reports what [judge.findUnseenWriters] does of the transactions that are settled.
func (p *parts) foundUnseenWriters(opts Options) bool {
	j := newJudge(p.o, opts)
	for t := range p.o.txns {
		if p.at[t] >= p.settled && p.settled != math.MaxInt64 {
			continue
		}
		if p.o.txns[t].unseenFrom > 0 && !j.promise(int32(t)).Together {
			return true
		}
		from, to := p.o.accessesOf(int32(t))
		for i := from; i < to; i++ {
			if v := p.o.seen[i]; v >= 0 && p.runOf(v) == history.Unrecorded {
				return true
			}
		}
	}
	return false
}
