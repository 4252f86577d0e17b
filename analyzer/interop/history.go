package interop

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/isotap/isotap/history"
)

// A History is what was read of another checker's file: transactions, the versions that they read and
// wrote, and the order of these as far as it could be inferred. [History.Analyze] judges it.
type History struct {
	format Format
	kind   subject
	// zeroIsInitial: in files of this format a zero that nobody wrote was there before.
	zeroIsInitial bool

	txns     []txn
	ops      []op
	keys     []string // in the file's own writing
	versions []version
	sessions int
	ended    int64 // when the last transaction ended

	keyIndex   map[string]int32
	values     values
	valueIndex map[element]int32 // versions
	ints       map[int64]int32   // values
	texts      map[string]int32

	chains []chain    // by key; of registers nothing is in them
	pairs  [][2]int32 // versions of which the first came before the second, at any distance; initial for the first

	lost     loss
	replaced []int32 // by version, of rows: what it replaced; also initial or unknown

	state    inside
	rereads  []rereading
	problems []problem
	skipped  int // operations that are not a client's
	garbage  int // versions that nobody wrote
	unplaced int // versions whose place in the order is not known
	presumed int // registers whose initial value is one that was read
	settled  int // transactions of unknown outcome that others saw
}

// subject is what a history's keys stand for.
type subject uint8

const (
	undecided subject = iota
	lists
	registers
	rows // of a recording: what each version replaced is known
)

var subjectNames = [...]string{"", "list", "register", "row"}

// A txn is a transaction. Its operations are ops[first:first+count].
type txn struct {
	start, end   int64 // nanoseconds, or positions in the file where that has no times
	first, count int32
	session      int32    // from 1
	place        position // where it ended
	status       history.Status
	seen         bool // another transaction saw what it wrote
}

// An op is a read or a write. Its statement number is its place in its transaction, from 1.
type op struct {
	key, version int32 // version: also initial or unknown
	length       int32 // of the list that a read gave
	write        bool
	replaces     bool // a write that told what it replaced: of a row
	unsure       bool // a write that may not have taken place: of a row
}

const (
	initial int32 = -1 // the version that was there before all others
	unknown int32 = -2 // what a read gave is not known
)

// A version is what one operation wrote: a value, which is written to a key once.
type version struct {
	key, value int32
	txn        int32 // that wrote it; none: nobody did, as far as is known by now
	stmt       int32
	stamp      int32 // the read that saw it last
	place      int32 // in its list, from 1; 0 where that is not known
}

const none int32 = -1

type element struct{ key, value int32 }

// A value is an integer, or the text of anything else.
type value struct {
	text string // in the file's own writing; empty for an integer
	num  int64
}

type values []value

func (v value) String() string {
	if v.text == "" {
		return strconv.FormatInt(v.num, 10)
	}
	return v.text
}

func newHistory(f Format) *History {
	return &History{format: f, keyIndex: make(map[string]int32), valueIndex: make(map[element]int32),
		ints:  make(map[int64]int32),
		texts: make(map[string]int32), state: newInside()}
}

// errFull is for histories beyond what the arrays can number.
var errFull = errors.New("the history has more than 2^31 operations or versions")

// key numbers a key by its text.
func (h *History) key(text []byte) int32 {
	if k, ok := h.keyIndex[string(text)]; ok {
		return k
	}
	k := int32(len(h.keys))
	h.keys = append(h.keys, string(text))
	h.keyIndex[h.keys[k]] = k
	h.chains = append(h.chains, chain{agreed: math.MaxInt32})
	return k
}

// integer and word number a value.
func (h *History) integer(num int64) int32 {
	v, ok := h.ints[num]
	if !ok {
		v = int32(len(h.values))
		h.values = append(h.values, value{num: num})
		h.ints[num] = v
	}
	return v
}

func (h *History) word(text []byte) int32 {
	v, ok := h.texts[string(text)]
	if !ok {
		v = int32(len(h.values))
		h.values = append(h.values, value{text: string(text)})
		h.texts[h.values[v].text] = v
	}
	return v
}

// version numbers the version that a value of a key names.
func (h *History) version(key, value int32) int32 {
	e := element{key, value}
	v, ok := h.valueIndex[e]
	if !ok {
		v = int32(len(h.versions))
		h.versions = append(h.versions, version{key: key, value: value, txn: none})
		h.valueIndex[e] = v
	}
	return v
}

// session numbers one more session.
func (h *History) session() int32 {
	h.sessions++
	return int32(h.sessions)
}

// begin adds a transaction, as one of unknown outcome that has no operations yet.
func (h *History) begin(session int32, p position, start int64) int32 {
	h.txns = append(h.txns, txn{session: session, place: p, start: start, end: start})
	return int32(len(h.txns) - 1)
}

// fill opens a transaction for its operations, which are then added one after the other.
func (h *History) fill(t int32, p position, s history.Status, end int64) error {
	if len(h.ops) > math.MaxInt32-maxOps || len(h.versions) > math.MaxInt32-maxOps {
		return at(p, "%w", errFull)
	}
	x := &h.txns[t]
	x.first, x.place, x.status, x.end = int32(len(h.ops)), p, s, max(end, x.start)
	h.ended = max(h.ended, x.end)
	h.state.reset()
	return nil
}

// maxOps bounds the operations and the elements of lists of one transaction.
const maxOps = maxValue

func (h *History) addOp(t int32, o op) {
	h.ops = append(h.ops, o)
	h.txns[t].count++
}

// write adds a write. It fails where the value was written to the key before.
func (h *History) write(t, key, value int32, p position) error {
	v := h.version(key, value)
	x := &h.versions[v]
	if x.txn != none {
		return at(p, "%s is written to key %s a second time, after the transaction at %s: it does not name one version",
			h.values[value], h.keys[key], h.txns[x.txn].place)
	}
	h.addOp(t, op{key: key, version: v, write: true})
	x.txn, x.stmt = t, h.txns[t].count
	h.checkFuture(t, v)
	h.state.wrote(h, key, v)
	return nil
}

// readUnknown adds a read of which it is not known what it gave.
func (h *History) readUnknown(t, key int32) { h.addOp(t, op{key: key, version: unknown}) }

// readRegister adds a read that gave a version; initial where there was none yet.
func (h *History) readRegister(t, key, v int32) {
	h.addOp(t, op{key: key, version: v})
	if v != initial {
		h.state.stamp++
		h.versions[v].stamp = h.state.stamp
	}
	h.checkRegister(t, key, v)
}

// A registerOp is an operation on a register, on its way into the history.
type registerOp struct {
	write      bool
	key, value int32 // value: none for a read of what was there before
	place      position
}

// addRegisterOp adds an operation on a register.
func (h *History) addRegisterOp(t int32, o registerOp) error {
	switch {
	case o.write:
		return h.write(t, o.key, o.value, o.place)
	case h.txns[t].status != history.Committed:
		h.readUnknown(t, o.key)
	case o.value == none:
		h.readRegister(t, o.key, initial)
	default:
		h.readRegister(t, o.key, h.version(o.key, o.value))
	}
	return nil
}

// tag returns the tag of a version.
func (h *History) tag(v int32) history.Tag {
	if v == initial {
		return history.Tag{}
	}
	x := &h.versions[v]
	if x.txn == none { // stmt numbers those that nobody wrote
		return history.Tag{Txn: history.MakeTxnID(run, uint32(len(h.txns))+uint32(x.stmt)), Stmt: 1}
	}
	return history.Tag{Txn: history.MakeTxnID(run, uint32(x.txn)+1), Stmt: uint32(x.stmt)}
}

// run numbers the only run of a history.
const run history.Run = 1

// describe names a version for people.
func (h *History) describe(v int32) string {
	if v == initial {
		return "nil"
	}
	return h.values[h.versions[v].value].String()
}

func (h *History) texted(vs []int32) string {
	const most = 12
	text := "["
	for i, v := range vs {
		if i > 0 {
			text += " "
		}
		if i == most {
			text += fmt.Sprintf("… %d more", len(vs)-most)
			break
		}
		text += h.describe(v)
	}
	return text + "]"
}
