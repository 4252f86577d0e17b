package analyzer

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// A Scope says which transactions are of one request of the client's. What a request reads in one transaction and
// goes by in a later one nobody protects: the database was never asked to (the scope-based anomalies of Warszawski and
// Bailis, "ACIDRain", SIGMOD 2017, 3.2).
type Scope uint8

const (
	// NoScope looks at transactions alone.
	NoScope Scope = iota
	// TaggedScope takes those for one request's whose statements name the request in comments.
	TaggedScope
	// GuessedScope takes those for one request's as well that follow each other at once on one connection.
	GuessedScope
)

var scopeNames = []string{NoScope: "off", TaggedScope: "tag", GuessedScope: "guess"}

// String returns the scope's name: off, tag or guess.
func (s Scope) String() string { return scopeNames[s] }

// ParseScope returns the scope of a name.
func ParseScope(name string) (Scope, error) {
	i := slices.Index(scopeNames, name)
	if i < 0 {
		return NoScope, fmt.Errorf("%q is none of tag, guess, off", name)
	}
	return Scope(i), nil
}

// What bounds a request that is guessed. A pool hands a connection to the next request as soon as one has given it
// back, so a transaction of the program that began the request begins another one.
const (
	requestPause = 50 * time.Millisecond // between two transactions
	requestTime  = 5 * time.Second
	requestTxns  = 64
)

// taggedPause is between two transactions that name the same request, at most: then it is another one of that id.
const taggedPause = time.Minute

// requestReads bounds the reads that are remembered of a request: the latest.
const requestReads = 512

// requests knows which request each transaction is of, and finds what goes wrong between transactions of one request.
type requests struct {
	a  *Analyzer
	o  *order
	c  *collector
	of []int32 // by transaction: its request
	// members are the transactions of each request that has several, in the order in which they began.
	members map[int32][]int32
	loaded  recentTxns
	reads   []requestRead            // scratch
	columns map[overwriting][]string // see columnsOf
}

// overwriting are the shapes of a read, of another request's UPDATE, and of the UPDATE over that.
type overwriting struct{ read, first, second int32 }

// A requestRead is the latest version that a request knows of a row: what it read, or wrote itself.
type requestRead struct {
	row, version int32
	access       int32 // that read it; -1: the request wrote it
}

// findRequests looks for anomalies between the transactions of one request.
func (a *Analyzer) findRequests(c *collector) error {
	if a.opts.Scope == NoScope {
		return nil
	}
	r := &requests{a: a, o: a.order, c: c, of: make([]int32, len(a.order.txns)), members: make(map[int32][]int32),
		columns: make(map[overwriting][]string)}
	r.loaded.load = a.load
	r.assign()
	all := slices.Sorted(maps.Keys(r.members))
	for _, n := range all {
		if err := r.findOverwrites(r.members[n]); err != nil {
			return err
		}
	}
	a.order.looks = make(map[look]uint32)
	inserts := &doubleInserts{requests: r, lookups: make(map[statementShape]*lookup), insertions: make(map[statementShape]*insertion)}
	return inserts.find(all)
}

// hashOf returns what stands for the id of a run's request; 0 where there is none. Another run may have another clock,
// and clients that count their requests from 1 again.
func hashOf(run history.Run, request string) uint64 {
	if request == "" {
		return 0
	}
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(run)))
	h.Write([]byte(request))
	return max(h.Sum64(), 1)
}

// requestOf returns the first request that a transaction's statements name.
func requestOf(t *history.Txn) string {
	for i := range t.Stmts {
		if id := t.Stmts[i].Sender.Request; id != "" {
			return id
		}
	}
	return ""
}

// A guess is the request that a session is at.
type guess struct {
	request int32 // -1: none
	program int32 // that began it
	began   int64
	ended   int64
	txns    int
}

// assign gives each transaction its request: numbers are those of requests' first transactions.
func (r *requests) assign() {
	tagged := make(map[uint64]*guess)
	sessions := make(map[int32]*guess)
	for t := range int32(len(r.o.txns)) {
		x := &r.o.txns[t]
		r.of[t] = t
		at := sessions[x.session]
		if at == nil {
			at = &guess{request: none}
			sessions[x.session] = at
		}
		if x.request != 0 {
			at.request = none
			named := tagged[x.request]
			if named == nil || x.start-named.ended > int64(taggedPause) {
				named = &guess{request: t}
				tagged[x.request] = named
			}
			r.of[t], named.ended = named.request, max(named.ended, x.end)
			continue
		}
		if r.a.opts.Scope == GuessedScope && at.goesOn(x) {
			r.of[t] = at.request
		} else {
			*at = guess{request: t, program: x.program, began: x.start}
		}
		at.ended, at.txns = x.end, at.txns+1
	}
	r.gather()
}

// gather lists the transactions of each request that has several.
func (r *requests) gather() {
	counts := make([]int32, len(r.of))
	for _, n := range r.of {
		counts[n]++
	}
	for t, n := range r.of {
		if counts[n] > 1 {
			r.members[n] = append(r.members[n], int32(t))
		}
	}
	for _, txns := range r.members {
		slices.SortStableFunc(txns, func(x, y int32) int { return cmp.Compare(r.o.txns[x].start, r.o.txns[y].start) })
	}
}

// goesOn reports whether a transaction of the session may be of the request that the session is at.
func (g *guess) goesOn(x *txn) bool {
	return g.request != none && x.program != g.program && g.txns < requestTxns && x.start >= g.ended &&
		x.start-g.ended <= int64(requestPause) && x.start-g.began <= int64(requestTime)
}

// findOverwrites looks for rows that a request read in one transaction and wrote in a later one, over what another
// request had written meanwhile.
func (r *requests) findOverwrites(txns []int32) error {
	r.reads = r.reads[:0]
	for _, t := range txns {
		from, to := r.o.accessesOf(t)
		for i := from; i < to; i++ {
			a := &r.o.accesses[i]
			switch {
			case a.unfound(), a.is(void) && a.write():
			case a.is(inexact):
				r.forget(a.row)
			case !a.write():
				r.know(requestRead{a.row, r.o.seen[i], i})
			case r.o.txns[t].installed:
				if a.op == history.UpdateRow {
					if err := r.overwrote(t, i); err != nil {
						return err
					}
				}
				r.know(requestRead{a.row, i, none})
			}
		}
	}
	return nil
}

func (r *requests) forget(row int32) {
	if i := r.find(row); i >= 0 {
		r.reads = slices.Delete(r.reads, i, i+1)
	}
}

// know remembers a version.
func (r *requests) know(x requestRead) {
	r.forget(x.row)
	if len(r.reads) == requestReads {
		r.reads = slices.Delete(r.reads, 0, requestReads/2)
	}
	r.reads = append(r.reads, x)
}

func (r *requests) find(row int32) int {
	for i := len(r.reads) - 1; i >= 0; i-- {
		if r.reads[i].row == row {
			return i
		}
	}
	return -1
}

// overwrote takes in a write: what it replaced may be another's, and later than what the request had read.
func (r *requests) overwrote(t, write int32) error {
	at := r.find(r.o.accesses[write].row)
	if at < 0 || r.reads[at].access < 0 {
		return nil
	}
	read := &r.reads[at]
	reader, over := r.o.accesses[read.access].txn, r.o.base(write)
	if reader == t || over < 0 || over == read.version || !r.follows(over, read.version) {
		return nil
	}
	other := r.o.owner(over)
	if other < 0 || r.of[other] == r.of[t] || r.o.txns[t].request == 0 && r.o.txns[other].session == r.o.txns[t].session {
		return nil // on one connection a guess is wrong rather
	}
	witness := []dep{
		{from: reader, to: other, kind: rw, access: read.access, version: read.version, next: over},
		{from: other, to: t, kind: ww, access: none, version: over, next: write},
		{from: t, to: reader, kind: rq, access: none, version: none, next: none}}
	lost, err := r.loses(witness)
	if err != nil || !lost {
		return err
	}
	r.c.add(StaleOverwrite, Unprotected, witness)
	return nil
}

// follows reports whether a version certainly is among the next ones behind another.
func (r *requests) follows(v, earlier int32) bool {
	for range maxSteps {
		if v < 0 || v == earlier {
			return v == earlier
		}
		if int(v) < len(r.o.accesses) && r.o.accesses[v].is(inexact) {
			return false
		}
		p := r.o.pred(v)
		if p < 0 || !r.o.certainly(p, v) {
			return false
		}
		v = p
	}
	return false
}

// loses reports whether the second write takes back what the first did to columns that the request had read.
func (r *requests) loses(witness []dep) (bool, error) {
	family := r.a.engine(r.o.id(witness[0].from).Run()).Family()
	columns := r.columnsOf(family, witness)
	if len(columns) == 0 {
		return false, nil
	}
	first, err := r.deed(family, witness[1].from, witness[1].version)
	if err != nil {
		return false, err
	}
	second, err := r.deed(family, witness[1].to, witness[1].next)
	if err != nil || first == nil || second == nil {
		return true, err // the values are not known
	}
	before, err := r.deed(family, r.o.owner(witness[0].version), witness[0].version)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(columns, func(c string) bool { return takesBack(before, first, second, c) }), nil
}

// takesBack reports whether a deed sets a column to another value than an earlier one had, which had changed it; or to
// the same amount, as both may have added to it. Before is the deed before both; nil if it is not known.
func takesBack(before, first, second *deed, column string) bool {
	was, is := first.settingOf(column), second.settingOf(column)
	if was == nil || is == nil {
		return false
	}
	if before != nil {
		old := before.settingOf(column)
		if old != nil && old.constant && was.constant && old.value == was.value && !was.cut() {
			return false
		}
	}
	return was.value != is.value || is.cut() || is.amount()
}

// deed returns what the statement did that left a version; nil where that is not known.
func (r *requests) deed(family dbms.Family, t, version int32) (*deed, error) {
	if t < 0 {
		return nil, nil
	}
	x, err := r.loaded.get(t)
	if err != nil {
		return nil, err
	}
	return deedOf(family, stmt(x, r.o.tagOf(version).stmt)), nil
}

// columnsOf returns the columns that both writes of a witness set, the second to constants, and that the read shows. It
// has none where the second checks itself what it goes by: its condition names a column that either of them sets.
func (r *requests) columnsOf(family dbms.Family, witness []dep) []string {
	read, _ := r.o.stmtsOf(&witness[0])
	first, second := r.o.stmtsOf(&witness[1])
	key := overwriting{r.o.shapeOf(witness[0].from, read), r.o.shapeOf(witness[1].from, first),
		r.o.shapeOf(witness[1].to, second)}
	if key.read < 0 || key.first < 0 || key.second < 0 {
		return nil
	}
	columns, known := r.columns[key]
	if !known {
		text := func(n int32) string { return r.o.programs.classes[n].first }
		columns = overwritten(family, text(key.read), text(key.first), text(key.second))
		r.columns[key] = columns
	}
	return columns
}

func overwritten(family dbms.Family, read, first, second string) (columns []string) {
	if !isUpdate(family, first) || !isUpdate(family, second) {
		return nil
	}
	ours, theirs := assignmentsOf(family, second), assignmentsOf(family, first)
	condition := conditionOf(wordsOf(family, second))
	names := func(column string) bool {
		return slices.ContainsFunc(condition, func(w word) bool { return w.name && strings.EqualFold(w.text, column) })
	}
	for _, a := range slices.Concat(ours, theirs) {
		if names(a.column) {
			return nil
		}
	}
	for _, a := range ours {
		both := slices.ContainsFunc(theirs, func(b assignment) bool { return strings.EqualFold(a.column, b.column) })
		if both && a.literal() && !tellsTime(a.column) && shows(family, read, a.column) {
			columns = append(columns, a.column)
		}
	}
	return columns
}

func isUpdate(family dbms.Family, shape string) bool {
	words := wordsOf(family, shape)
	return len(words) > 0 && words[0].keyword("UPDATE")
}

// recentTxns keeps the transactions that were loaded last.
type recentTxns struct {
	load func(int32) (*history.Txn, error)
	last [16]struct {
		t   int32
		txn *history.Txn
	}
	next int
}

func (c *recentTxns) get(t int32) (*history.Txn, error) {
	for i := range c.last {
		if c.last[i].txn != nil && c.last[i].t == t {
			return c.last[i].txn, nil
		}
	}
	txn, err := c.load(t)
	if err != nil {
		return nil, err
	}
	at := &c.last[c.next]
	at.t, at.txn = t, txn
	c.next = (c.next + 1) % len(c.last)
	return txn, nil
}
