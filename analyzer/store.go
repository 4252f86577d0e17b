package analyzer

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/numset"
)

// A store holds what the analysis needs of every transaction in flat arrays: about 90 bytes for a
// transaction, 4 for a statement and 24 for an access. Names (rows, programs, runs) are numbers here.
type store struct {
	runs     []run // runs[0] stands for the initial transaction
	runIndex map[history.Run]uint16
	lastRun  uint16

	sessions     []sessionKey
	sessionIndex map[sessionKey]int32

	txns     []txn
	expected int     // how many transactions there will be; 0: not known
	stmts    []int32 // the shapes of statements, by transaction and number; -1 where it has none
	accesses []access
	lists    []list
	tags     []tag // of the lists
	// relations are what [Analyzer.AddOrder] was told.
	relations []relation
	// replaced are versions whose transactions a [Live] let go and that these replaced or undid themselves.
	replaced map[history.Tag]bool
	// voids are the statements that may have written and left nothing behind.
	voids map[tag]bool
	// rebirths are what began other lives of tables, by the names of those in lower case.
	rebirths map[string][]rebirth
	// twins are rows of which one plain SELECT met two versions.
	twins []int32
	// putBack counts the rows that were put back past isotap, or whose writes the server lost.
	putBack int
	// ownReads are the reads that do not fit what their own transactions wrote.
	ownReads []internalRead

	rows     rowNames
	programs programs
	scratch  []incomingAccess
	shapes   []shape         // scratch: of the transaction's statements
	large    bool            // scratch has more than fewAccesses
	later    map[int32]bool  // scratch of markIntermediate
	latest   map[int32]int32 // scratch of findOwnReads
}

type sessionKey struct {
	run history.Run
	id  history.SessionID
}

// A run of a proxy. Foreign runs, which tags name and nobody added, are not analyzed.
type run struct {
	info     history.Info
	given    bool // info was given
	analysed bool
	// pages map the ids' counters to transactions: index+1, 0 for none.
	pages [][]int32
	// gone are the counters of all transactions that a [Live] was given, those that it let go too.
	gone *numset.Set
	// odd are those of them that it let go and whose versions may not have stayed.
	odd *numset.Set
}

const pageSize = 1 << 12

func (r *run) txn(seq uint32) int32 {
	if p := int(seq / pageSize); p < len(r.pages) && r.pages[p] != nil {
		return r.pages[p][seq%pageSize] - 1
	}
	return -1
}

func (r *run) place(seq uint32, i int32) bool {
	p := int(seq / pageSize)
	if p >= len(r.pages) {
		r.pages = slices.Grow(r.pages, p+1-len(r.pages))[:p+1]
	}
	if r.pages[p] == nil {
		r.pages[p] = make([]int32, pageSize)
	}
	slot := &r.pages[p][seq%pageSize]
	if *slot != 0 {
		return false
	}
	*slot = i + 1
	return true
}

// A txn is a transaction. Its accesses and statements end where the next one's begin.
type txn struct {
	start   int64
	end     int64
	seq     uint32 // of its id, with run
	access  uint32
	stmt    uint32
	program int32
	session int32
	last    uint32 // its highest statement number
	run     uint16
	level   history.Level
	status  history.Status
	// installed says that its versions count: it committed, or others saw that it did.
	installed bool
	// staleRead reports whether it reads as of a moment before it began ([history.Txn].StaleRead).
	staleRead bool
	fresh     bool // see [history.Txn].Fresh
	conflicts history.Conflicts
	// unseenFrom is the number of its first statement that may have written rows without a tag; 0 for none.
	// From there on a plain read may see such a row of its own, over a version that its snapshot lacks.
	unseenFrom uint32
	// fixed is the number of its first statement that may take a snapshot for the whole transaction, where plain
	// SELECTs do and locking reads and writes do not; the highest number for none.
	fixed uint32
	// snapshot is when the reply to the first statement came that surely took a snapshot for the whole transaction,
	// where its level has one; 0 where that is not known.
	snapshot int64
	// ending is when its last statement was sent: it had not committed before.
	ending int64
	// request stands for the id of the client's request ([hashOf]); 0 where it is not told.
	request uint64
}

// A tag is a history.Tag with its run as an index.
type tag struct {
	seq, stmt uint32
	run       uint16
}

func (t tag) initial() bool { return t.run == 0 }

// An access is a history.Access. Several of one transaction are in order of their statements; in a
// transaction of more than fewAccesses, those of a statement are in order of their rows.
type access struct {
	seq, tagStmt uint32 // the version's tag, with tagRun
	row          int32
	stmt         uint32
	txn          int32
	tagRun       uint16
	op           history.Op
	flags        flags
}

type flags uint16

const (
	inexact      flags = 1 << iota
	void               // its statement left nothing behind
	current            // a locking read or a write
	begunAgain         // before its transaction began again ([beganAgain]): a dependency by it obliges no server
	locked             // a locking read that holds a lock on this row until the transaction ends
	intermediate       // a write; a later statement of its transaction certainly wrote the row again
	confirmed          // an inexact write whose place in the order an exact list tells
	equal              // a read by an UPDATE that matched the row and found it to have the new values already
	shared             // a locking read by FOR SHARE
)

func (a *access) tag() tag    { return tag{a.seq, a.tagStmt, a.tagRun} }
func (a *access) write() bool { return a.op != history.Read && a.op < notFound }

// Reads that did not find their row.
const (
	notFound = history.DeleteRow + 1 // it saw the version or an earlier one ([history.Access].Absent)
	gone     = history.DeleteRow + 2 // it saw the version or a later one ([history.Access].Gone)
	// notFoundWide is notFound by a condition that is wider than what the statement hangs on ([history.Access].Wide).
	notFoundWide = history.DeleteRow + 3
)

// unfound reports whether it is a read that did not find its row.
func (a *access) unfound() bool { return a.op >= notFound }

// absent reports whether it saw the version of its row or an earlier one.
func (a *access) absent() bool { return a.op == notFound || a.op == notFoundWide }

func (a *access) is(f flags) bool { return a.flags&f != 0 }

// A list is the tags below the version of an access, as far as they were seen: tags[off:off+n].
type list struct {
	access int32
	off    uint64
	n      uint32
}

func newStore() store {
	return store{
		runs:         make([]run, 1),
		runIndex:     make(map[history.Run]uint16),
		sessionIndex: make(map[sessionKey]int32),
		voids:        make(map[tag]bool),
		rows:         newRowNames(),
		programs:     newPrograms(),
		later:        make(map[int32]bool),
		latest:       make(map[int32]int32),
	}
}

// run returns a run's index.
func (s *store) run(r history.Run) (uint16, error) {
	if s.lastRun != 0 && s.runs[s.lastRun].info.Run == r {
		return s.lastRun, nil
	}
	if r == 0 {
		return 0, errors.New("the zero run has no sessions and no transactions")
	}
	i, ok := s.runIndex[r]
	if !ok {
		if len(s.runs) > math.MaxUint16 {
			return 0, fmt.Errorf("more than %d runs", math.MaxUint16)
		}
		i = uint16(len(s.runs))
		s.runs = append(s.runs, run{info: history.Info{Run: r}})
		s.runIndex[r] = i
	}
	s.lastRun = i
	return i, nil
}

func (s *store) infos() []history.Info {
	var infos []history.Info
	for _, r := range s.runs[1:] {
		if r.analysed && !r.info.Run.Past() {
			infos = append(infos, r.info)
		}
	}
	return infos
}

// clients returns how many sessions isotap's clients had.
func (s *store) clients() (n int) {
	for _, k := range s.sessions {
		if !k.run.Past() {
			n++
		}
	}
	return n
}

// session returns a session's number, a new one for a new session.
func (s *store) session(r history.Run, id history.SessionID) (int32, error) {
	if _, err := s.run(r); err != nil {
		return 0, err
	}
	k := sessionKey{r, id}
	if n := len(s.sessions); n > 0 && s.sessions[n-1] == k {
		return int32(n - 1), nil
	}
	n, ok := s.sessionIndex[k]
	if !ok {
		n = int32(len(s.sessions))
		s.sessions = append(s.sessions, k)
		s.sessionIndex[k] = n
	}
	return n, nil
}

// id returns a transaction's id.
func (s *store) id(t int32) history.TxnID {
	return history.MakeTxnID(s.runs[s.txns[t].run].info.Run, s.txns[t].seq)
}

// shapeOf returns the shape of a transaction's statement; -1 where it is not known.
func (s *store) shapeOf(t int32, num uint32) int32 {
	shapes := s.shapesOf(t)
	if num == 0 || int64(num) > int64(len(shapes)) {
		return none
	}
	return shapes[num-1]
}

// shapesOf returns the shapes of a transaction's statements, by number; -1 where it has none.
func (s *store) shapesOf(t int32) []int32 {
	if int(t)+1 < len(s.txns) {
		return s.stmts[s.txns[t].stmt:s.txns[t+1].stmt]
	}
	return s.stmts[s.txns[t].stmt:]
}

// ofShape returns a loaded transaction's statements of a shape.
func (s *store) ofShape(t int32, loaded *history.Txn, shape int32) []*history.Stmt {
	var stmts []*history.Stmt
	for i := range loaded.Stmts {
		if stmt := &loaded.Stmts[i]; s.shapeOf(t, stmt.Num) == shape {
			stmts = append(stmts, stmt)
		}
	}
	return stmts
}

// withShape returns the transactions that have a statement of a shape.
func (s *store) withShape(shape int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for t := range int32(len(s.txns)) {
			if slices.Contains(s.shapesOf(t), shape) && !yield(t) {
				return
			}
		}
	}
}

func (s *store) tag(t history.Tag) (tag, error) {
	if t.Initial() {
		return tag{}, nil
	}
	r, err := s.run(t.Txn.Run())
	if err != nil {
		return tag{}, fmt.Errorf("tag %s: %w", t, err)
	}
	return tag{t.Txn.Seq(), t.Stmt, r}, nil
}

// historyTag is the inverse of tag.
func (s *store) historyTag(t tag) history.Tag {
	if t.initial() {
		return history.Tag{}
	}
	return history.Tag{Txn: history.MakeTxnID(s.runs[t.run].info.Run, t.seq), Stmt: t.stmt}
}

// accessesOf returns the range of a transaction's accesses.
func (s *store) accessesOf(t int32) (from, to int32) {
	from = int32(s.txns[t].access)
	if int(t)+1 < len(s.txns) {
		return from, int32(s.txns[t+1].access)
	}
	return from, int32(len(s.accesses))
}

// guess returns the access that is statement stmt's of transaction t where each of its statements has one, or none
// before the first that has; otherwise any other.
func (s *store) guess(t int32, stmt uint32) int32 {
	first := s.txns[t].access
	if first >= uint32(len(s.accesses)) {
		return 0
	}
	if i := first + stmt - s.accesses[first].stmt; i < uint32(len(s.accesses)) {
		return int32(i)
	}
	return 0
}

// find returns the transaction that handed out a tag; -1 when it is not in the store.
func (s *store) find(t tag) int32 { return s.runs[t.run].txn(t.seq) }

// fewAccesses is up to where searching a transaction's accesses from end to end is fastest.
const fewAccesses = 32

// findWrite returns the access by which statement stmt of transaction t wrote the row; -1 for none.
func (s *store) findWrite(t int32, stmt uint32, row int32) int32 {
	from, to := s.accessesOf(t)
	accesses := s.accesses[from:to]
	if len(accesses) > fewAccesses {
		i, _ := slices.BinarySearchFunc(accesses, access{stmt: stmt, row: row}, s.byStmtAndRow)
		from, accesses = from+int32(i), accesses[i:]
	}
	for i := range accesses {
		a := &accesses[i]
		if a.stmt == stmt && a.row == row && a.write() {
			return from + int32(i)
		}
		if a.stmt > stmt || len(accesses) > fewAccesses && a.stmt == stmt && a.row != row {
			break
		}
	}
	return -1
}

// An incomingAccess is an access on its way into the store.
type incomingAccess struct {
	access
	prior []history.Tag
}

// byStmtAndRow orders accesses by statements and the names of their rows: the numbers of rows hang on what else was
// added, and the same transaction shall have the same order in a [Live] that has let others go.
func (s *store) byStmtAndRow(a, b access) int {
	if a.stmt != b.stmt {
		return cmp.Compare(a.stmt, b.stmt)
	}
	return s.rows.compare(a.row, b.row)
}

// certain reports whether the access is a write that was there for others.
func (a *access) certain() bool { return a.write() && !a.is(void) && !a.is(inexact) }

// An internalRead is a read that does not fit what its transaction wrote itself.
type internalRead struct {
	access int32
	write  int32 // the transaction's own last write of the row before; -1 for a read of what it wrote later
}

// A relation says that of two versions of a row one came before the other, by their tags.
type relation struct {
	row           int32
	before, after tag
}
