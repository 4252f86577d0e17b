package analyzer

import (
	"cmp"
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
	reads   []requestRead // scratch
	looks   map[lookedFor][]dep
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
		looks: make(map[lookedFor][]dep)}
	r.loaded.load = a.load
	r.assign()
	for _, n := range slices.Sorted(maps.Keys(r.members)) {
		if err := r.findOverwrites(r.members[n]); err != nil {
			return err
		}
	}
	for n, t := range r.of { // those of one transaction look and insert, too
		if int32(n) == t {
			if txns := r.members[t]; txns != nil {
				r.findLooks(txns)
			} else {
				r.findLooks([]int32{t})
			}
		}
	}
	r.findDoubleInserts()
	return nil
}

// hashOf returns what stands for a request's id; 0 where there is none.
func hashOf(request string) uint64 {
	if request == "" {
		return 0
	}
	h := fnv.New64a()
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
	tagged := make(map[uint64]int32)
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
			first, known := tagged[x.request]
			if !known {
				first, tagged[x.request] = t, t
			}
			r.of[t] = first
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
			case a.is(inexact), a.is(void) && a.write(), a.unfound():
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

// know remembers a version.
func (r *requests) know(x requestRead) {
	if i := r.find(x.row); i >= 0 {
		r.reads = slices.Delete(r.reads, i, i+1)
	}
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
	if other < 0 || r.of[other] == r.of[t] || r.o.txns[other].session == r.o.txns[t].session {
		return nil
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

// follows reports whether a version is among the next ones behind another.
func (r *requests) follows(v, earlier int32) bool {
	for range maxSteps {
		if v < 0 || v == earlier {
			return v == earlier
		}
		v = r.o.pred(v)
	}
	return false
}

// loses reports whether the second write puts values over others in columns that the request had read, values that it
// had: constants, and not the same ones, unless they are amounts.
func (r *requests) loses(witness []dep) (bool, error) {
	read, _, err := r.stmts(&witness[0])
	if err != nil {
		return false, err
	}
	first, second, err := r.stmts(&witness[1])
	if err != nil || read == nil || first == nil || second == nil {
		return false, err
	}
	family := r.a.engine(r.o.id(witness[0].from).Run()).Family()
	return overwrites(family, read, deedOf(family, first), deedOf(family, second)), nil
}

// overwrites reports whether a deed takes back what another one did to columns that a statement had read before.
func overwrites(family dbms.Family, read *history.Stmt, first, second *deed) bool {
	if first == nil || second == nil || first.kind != history.Update || second.where == "" {
		return false
	}
	return slices.ContainsFunc(first.shared(second), func(column string) bool {
		was, is := first.settingOf(column), second.settingOf(column)
		return is.constant && !tellsTime(column) && shows(family, read.Shape, column) && (was.value != is.value || is.amount())
	})
}

// stmts returns the statements at the ends of a dependency.
func (r *requests) stmts(d *dep) (from, to *history.Stmt, err error) {
	x, err := r.loaded.get(d.from)
	if err != nil {
		return nil, nil, err
	}
	y, err := r.loaded.get(d.to)
	if err != nil {
		return nil, nil, err
	}
	first, second := r.o.stmtsOf(d)
	return stmt(x, first), stmt(y, second), nil
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

// lookedFor is a table in which one request looked in vain for what another one inserted.
type lookedFor struct {
	looking, inserting int32 // requests
	table              int32
}

// findLooks notes where a request looked for rows of a table in vain, another one inserted one that it would have
// found, and the request inserted one, too.
func (r *requests) findLooks(txns []int32) {
	for n, t := range txns {
		from, to := r.o.accessesOf(t)
		for i := from; i < to; i++ {
			a := &r.o.accesses[i]
			if a.op != notFound || a.is(inexact) || r.o.seen[i] < 0 {
				continue
			}
			table := r.o.rows.tableOf(a.row)
			r.o.accessDeps(t, i, func(d dep) {
				if d.kind != rw || d.inexact || r.of[d.to] == r.of[t] || !r.inserts(d.next) {
					return
				}
				if r.insertsInto(txns[n:], table) {
					key := lookedFor{r.of[t], r.of[d.to], table}
					r.looks[key] = append(r.looks[key], d)
				}
			})
		}
	}
}

func (r *requests) inserts(v int32) bool {
	return int(v) < len(r.o.accesses) && r.o.accesses[v].op == history.InsertRow
}

// insertsInto reports whether one of some transactions inserted a row into a table.
func (r *requests) insertsInto(txns []int32, table int32) bool {
	return slices.ContainsFunc(txns, func(t int32) bool {
		from, to := r.o.accessesOf(t)
		return r.o.txns[t].installed && slices.ContainsFunc(r.o.accesses[from:to], func(a access) bool {
			return a.op == history.InsertRow && !a.is(void) && r.o.rows.tableOf(a.row) == table
		})
	})
}

// findDoubleInserts finds pairs of requests of which each looked in vain for what the other then inserted.
func (r *requests) findDoubleInserts() {
	keys := slices.SortedFunc(maps.Keys(r.looks), func(x, y lookedFor) int {
		return cmp.Or(cmp.Compare(x.looking, y.looking), cmp.Compare(x.inserting, y.inserting), cmp.Compare(x.table, y.table))
	})
	for _, key := range keys {
		if key.looking < key.inserting { // the other one of the pair has the other key
			r.findDoubleInsert(r.looks[key], r.looks[lookedFor{key.inserting, key.looking, key.table}])
		}
	}
}

// findDoubleInsert finds one, in what two requests looked for in vain.
func (r *requests) findDoubleInsert(looks, others []dep) {
	for _, d := range looks {
		for _, e := range others {
			if d.to != e.from || e.to != d.from { // each in one transaction: that is found without requests
				r.c.add(DoubleInsert, Unprotected, throughRequests(d, e))
				return
			}
		}
	}
}

// throughRequests returns the cycle of two dependencies from one request to another and back.
func throughRequests(d, e dep) []dep {
	link := func(from, to int32) dep {
		return dep{from: from, to: to, kind: rq, access: none, version: none, next: none}
	}
	cycle := []dep{d}
	if d.to != e.from {
		cycle = append(cycle, link(d.to, e.from))
	}
	cycle = append(cycle, e)
	if e.to != d.from {
		cycle = append(cycle, link(e.to, d.from))
	}
	return cycle
}
