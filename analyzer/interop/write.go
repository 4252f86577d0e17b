package interop

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/isotap/isotap/history"
)

// Write writes a recording's history in a format: rows as lists in [Elle] and [JepsenJSON], as registers in
// the others. It says what of the history the format does not hold. Lists get one transaction more at their
// end, which reads the rows whose last version nobody read: only reads tell the order of versions there.
func (h *History) Write(w io.Writer, f Format) (lost []string, err error) {
	if h.kind != rows {
		return nil, errors.New("write a history: only those of recordings can be")
	}
	x := &writer{h: h, w: bufio.NewWriterSize(w, 1<<16), format: f}
	switch f {
	case Elle, ElleRW, JepsenJSON:
		x.jepsen()
	case Plume:
		x.plume()
	case DBCop:
		x.dbcop()
	case AWDIT:
		return nil, errors.New("write a history: format awdit is read only; AWDIT reads format plume, too")
	default:
		return nil, fmt.Errorf("write a history: format %q is not known", f)
	}
	if err := x.w.Flush(); err != nil {
		return nil, fmt.Errorf("write a history: %w", err)
	}
	return x.lost(), nil
}

// A writer writes a history. Errors of writing stay in w until it is flushed.
type writer struct {
	h      *History
	w      *bufio.Writer
	format Format
	buf    []byte
	path   []int32
	seen   map[int32]bool // keys that the transaction in hand has seen

	unplaced, unwritten, unknownOutcome int
}

// lost returns what is not in what was written.
func (x *writer) lost() []string {
	lost := []string{"isolation levels, the texts of statements, locks, and which statements were one"}
	note := func(n int, format string) {
		if n > 0 {
			lost = append(lost, fmt.Sprintf(format, n))
		}
	}
	note(x.h.lost.opaque, "%d statements that were not observed")
	note(x.h.lost.inexact, "%d reads and writes that are not certain; of these writes those that others saw are written")
	note(x.h.lost.void, "%d writes that were undone within their transactions")
	note(x.unwritten, "%d reads of versions that no transaction of the recording left there")
	note(x.unplaced, "%d reads of versions of which it is not known what they replaced")
	note(x.unknownOutcome, "%d transactions of unknown outcome of which nobody saw anything")
	if x.registers() {
		lost = append(lost, "the order of versions, but for what reads tell: a write that replaced a version is "+
			"written as a read of that and a write, where its transaction had not met the row before")
	}
	return lost
}

func (x *writer) registers() bool { return x.format != Elle && x.format != JepsenJSON }

// A written is an operation as other formats have it.
type written struct {
	key, version int32 // version: also initial
	write        bool
}

// operations returns what of a transaction a format can hold. Its reads are good only where it committed.
func (x *writer) operations(t int32, into []written) []written {
	into = into[:0]
	if x.seen == nil {
		x.seen = make(map[int32]bool)
	}
	clear(x.seen)
	for _, o := range x.h.opsOf(t) {
		met := x.seen[o.key]
		x.seen[o.key] = true
		switch {
		case !o.write:
			if x.readable(o.version) {
				into = append(into, written{key: o.key, version: o.version})
			}
		case o.unsure && x.h.versions[o.version].stamp == 0:
		default:
			if before := x.h.replaced[o.version]; x.registers() && o.replaces && !met && x.writtenBy(before) {
				into = append(into, written{key: o.key, version: before})
			}
			into = append(into, written{o.key, o.version, true})
		}
	}
	return into
}

// writtenBy reports whether a version is one that a read of another format can name.
func (x *writer) writtenBy(v int32) bool {
	return v == initial || v != unknown && x.h.versions[v].txn != none
}

// readable reports whether a read of a version can be written, and counts it where not.
func (x *writer) readable(v int32) bool {
	switch {
	case !x.writtenBy(v):
		x.unwritten++
		return false
	case x.registers() || x.climb(v):
		return true
	}
	x.unplaced++
	return false
}

// climb puts the versions of a row up to v, the oldest first, into path. It fails where it is not known what
// one of them replaced.
func (x *writer) climb(v int32) bool {
	x.path = x.path[:0]
	for steps := 0; v != initial; steps++ {
		if v == unknown || steps > len(x.h.versions) {
			return false
		}
		if x.h.versions[v].txn != none {
			x.path = append(x.path, v)
		}
		v = x.h.replaced[v]
	}
	slices.Reverse(x.path)
	return true
}

// left reports whether what a transaction wrote is there: it committed, or somebody saw it.
func (x *writer) left(t int32) bool {
	return x.h.txns[t].status == history.Committed || x.h.txns[t].seen
}

// value is the number that stands for a version.
func (x *writer) value(v int32) int64 { return x.h.values[x.h.versions[v].value].num }

func (x *writer) number(n int64) { x.buf = strconv.AppendInt(x.buf, n, 10) }

func (x *writer) text(s string) { x.buf = append(x.buf, s...) }

// quoted appends a string as both EDN and JSON have it. One that is not UTF-8 stands there as Go would
// quote it.
func (x *writer) quoted(s string) {
	if !utf8.ValidString(s) {
		s = strconv.QuoteToASCII(s)
	}
	b, _ := json.Marshal(s) // of a string it does not fail
	x.buf = append(x.buf, b...)
}

// line writes what has been appended, and a line's end.
func (x *writer) line() {
	x.w.Write(x.buf)
	x.w.WriteByte('\n')
	x.buf = x.buf[:0]
}
