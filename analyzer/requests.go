package analyzer

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
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

// checkoutTime bounds a request that has a connection between two resets. A pool resets it before the next request gets
// it, so neither pauses nor programs tell where one ends.
const checkoutTime = 30 * time.Second

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
	members    map[int32][]int32
	loaded     recentTxns
	lookups    map[statementShape]*lookup
	valued     map[statementShape]*rowValues
	told       map[int32]bool             // versions that wrote over another's, as is told
	reads      []requestRead              // scratch
	collisions map[overwriting]*collision // see collisionOf
}

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
		collisions: make(map[overwriting]*collision), told: make(map[int32]bool),
		lookups: make(map[statementShape]*lookup), valued: make(map[statementShape]*rowValues)}
	r.loaded.load = a.load
	r.assign()
	a.order.looks = make(map[look]uint32)
	all := slices.Sorted(maps.Keys(r.members))
	for _, n := range all {
		if err := r.findOverwrites(r.members[n]); err != nil {
			return err
		}
	}
	inserts := &doubleInserts{requests: r}
	if err := inserts.find(all); err != nil {
		return err
	}
	back := &reverts{requests: r, pairs: make(map[shapePair]bool), opens: r.firstBegins()}
	return back.find()
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
	reset   bool  // the connection is one of a pool that resets it, and was reset before
	began   int64
	ended   int64
	txns    int
}

// assign gives each transaction its request: numbers are those of requests' first transactions.
func (r *requests) assign() {
	tagged := make(map[uint64]*guess)
	sessions, resets := make(map[int32]*guess), r.resets()
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
			*at = guess{request: t, program: x.program, reset: x.fresh && resets[x.session] > 1, began: x.start}
		}
		at.ended, at.txns = x.end, at.txns+1
	}
	r.gather()
}

// resets counts, by session, how often it was reset: once may be at its begin.
func (r *requests) resets() map[int32]int {
	resets := make(map[int32]int)
	for t := range r.o.txns {
		if r.o.txns[t].fresh {
			resets[r.o.txns[t].session]++
		}
	}
	return resets
}

// firstBegins returns when each session's first transaction began.
func (r *requests) firstBegins() map[int32]int64 {
	begins := make(map[int32]int64)
	for t := range r.o.txns {
		x := &r.o.txns[t]
		if at, known := begins[x.session]; !known || x.start < at {
			begins[x.session] = x.start
		}
	}
	return begins
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
	switch {
	case g.request == none, x.fresh, g.txns >= requestTxns, x.start < g.ended:
		return false
	case g.reset:
		return x.start-g.began <= int64(checkoutTime)
	}
	return x.program != g.program && x.start-g.ended <= int64(requestPause) && x.start-g.began <= int64(requestTime)
}

func (r *requests) lookup(of statementShape) *lookup { return cached(r.lookups, of, lookupOf) }

func (r *requests) values(of statementShape) *rowValues { return cached(r.valued, of, rowValuesOf) }

// cached returns what a shape says, which is read once.
func cached[T any](known map[statementShape]T, of statementShape, read func(dbms.Family, string) T) T {
	said, ok := known[of]
	if !ok {
		said = read(of.family, of.text)
		known[of] = said
	}
	return said
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
					if err := r.wrote(txns, t, i); err != nil {
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

// wrote takes in an UPDATE of a request's.
func (r *requests) wrote(txns []int32, t, write int32) error {
	if err := r.overwrote(t, write); err != nil || r.told[write] {
		return err
	}
	return r.overlooked(txns, t, write)
}

// ofAnother reports whether a version is of another request than a transaction.
func (r *requests) ofAnother(t, version int32) bool {
	other := r.o.owner(version)
	if other < 0 || r.of[other] == r.of[t] {
		return false
	}
	return r.o.txns[t].request != 0 || r.o.txns[other].session != r.o.txns[t].session // a guess is wrong rather
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
	if !r.ofAnother(t, over) {
		return nil
	}
	witness := []dep{
		{from: reader, to: other, kind: rw, access: read.access, version: read.version, next: over},
		{from: other, to: t, kind: ww, access: none, version: over, next: write},
		{from: t, to: reader, kind: rq, access: none, version: none, next: none}}
	anomaly, err := r.overtaken(witness)
	if err != nil || anomaly == "" {
		return err
	}
	r.told[write] = true
	r.c.add(anomaly, Unprotected, witness)
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
