// Package pglog makes transactions of what PostgreSQL's write-ahead log says was written past isotap, and adds to
// recorded ones what they wrote unseen.
//
// The log knows versions by their places, and not which row they are of. A row's versions make a chain, for an UPDATE
// tells the place of the version that it replaced; whatever a recorded statement saw of one of them names them all. So
// what is written to rows that nobody recorded has seen or written is left out: it is in no dependency. A write that
// nobody saw may have changed the key, and another row have taken it: where the writes of two chains of one name come
// between each other, only those versions keep it that were seen to have it.
//
// What the log adds gets the places that recorded accesses have, and package pgversions puts it in order with them: of
// the writers of one row, who wait for each other, by the position in the log. Nothing that was recorded is changed or
// taken away. Where the log lacks what a recorded statement saw itself write, one of the two is wrong: that is counted.
//
// A transaction of the log is a recorded one's if it has an id that this was seen to write under. A recorded one of
// which no id is known, and that deleted rows or may have written unseen, could be any that ended while it ran: of
// those it is not said that they went past isotap, and they are left out. So are tables that were written anew. But
// where nothing is known of what the recorded one read and wrote, all dependencies are the log's one's: a procedure's
// that committed before its end, say. That is a transaction of its own, as it is on the server, or went past isotap.
//
// pglog.go takes in what there is, chains.go makes the chains, lives.go takes from them the names that
// other rows took, owners.go tells whose a transaction of the log is, outcomes.go how one of unknown end ended,
// complete.go makes the transactions past isotap, effects.go finds what recorded ones wrote unseen, meetings.go where
// among their statements, places.go who wrote what tells its place alone, and keyless.go what a write of a row without
// a key replaced.
package pglog

import (
	"slices"

	"github.com/isotap/isotap/analyzer/unseen"
	"github.com/isotap/isotap/history"
)

// A Resolver knows the logs of PostgreSQL's servers. First it is given the runs whose logs it is to know, with these
// logs and the sessions; after [Resolver.Link] the recorded transactions; and [Resolver.Settle] has it know. It is for
// one goroutine until then, and for several from there on.
type Resolver struct {
	first    history.Run // of the runs of transactions past isotap
	runs     map[history.Run]*run
	servers  map[serverKey]*server
	sessions map[sessionKey]string // databases
	names    map[string]int32      // of databases
	// databases are the names, by number.
	databases []string

	logged []logged
	nodes  []node
	byID   map[versionKey]int32 // nodes by the version that they are
	roots  map[rootKey]int32
	byXID  map[xidKey]int32 // transactions of the log
	// byPlace are nodes in the order of the log, by their place, once one was asked for.
	byPlace map[versionKey][]int32

	// unseen are recorded transactions that may have written unseen, and have no id that is known.
	unseen map[inDatabase]*unseen.Writers
	// bare are those that showed nothing else either.
	bare   map[inDatabase]*unseen.Writers
	past   []*history.Txn
	pastOf []*run
	// effects are what recorded transactions wrote unseen, in the order of the log.
	effects map[history.TxnID][]effect
	// meetings are those of the recorded transactions that a transaction of the log is of which some write is untold;
	// metBy are those of the one in hand, and ours the transactions of the log that it is.
	meetings map[int32][]meeting
	metBy    []meeting
	ours     []int32
	// deletedBefore are the deletions of versions that others were seen to delete later: all but one were undone.
	deletedBefore map[deletion]bool
	// blind are recorded transactions that deleted rows of which they do not tell the versions.
	blind map[history.TxnID]bool
	// several are recorded transactions that may be more than one of the log.
	several map[history.TxnID]bool
	// lost are the keys of rows that recorded transactions wrote, and the log has nothing of that is known to be it.
	lost map[history.TxnID]map[string]bool
	// whole are recorded transactions of which all writes are known, those of statements or the log's alone.
	whole map[history.TxnID]bool
	// ends are those of recorded transactions that the log alone knows.
	ends  map[history.TxnID]end
	stats Stats
	// files is where the tables are that the log has writes of: 0 for those that were written anew while the log was
	// read. Such a copy looks as if it had been written row by row, and places become those of other versions.
	files map[tableKey]uint32
	// unplaced are places at which recorded statements met versions that are not known to be the log's, or those that
	// were there when it began; leafless says that of some the table is not told.
	unplaced map[rootKey]bool
	leafless bool
}

// A tableKey names a table of a server.
type tableKey struct {
	server, database int32
	leaf             uint32
}

// inDatabase names a database of a server.
type inDatabase struct{ server, database int32 }

// Stats count what a log told.
type Stats struct {
	Txns    int // of the log, that ended
	Past    int // of these, that went past isotap and wrote rows that isotap's clients saw or wrote
	Either  int // as Past, of those that a recorded transaction which showed nothing may be as well
	Effects int // writes of recorded transactions that the proxy did not see
	Told    int // of these, that Complete adds
	Ends    int // recorded transactions of which the log alone knows how they ended
	// Disputed are versions that recorded statements saw themselves leave and that the log lacks: there is a fault of
	// isotap's. Example names one.
	Disputed int
	Example  string
}

// A run whose log was read.
type run struct {
	info   history.Info
	number history.Run // of its transactions past isotap
	server *server
	moved  map[string]bool // tables that were written anew
}

// A serverKey names a server: by its system identifier, or by the run where that is not known.
type serverKey struct {
	system uint64
	run    history.Run
}

// A server has one log, whichever runs read it.
type server struct {
	number int32
	seen   map[uint64]bool // positions of transactions that were taken in
	runs   int
}

type sessionKey struct {
	run history.Run
	id  history.SessionID
}

type xidKey struct {
	server int32
	xid    uint32
}

// A logged transaction.
type logged struct {
	run       *run
	number    uint32 // in the recording of that run's log
	stretch   int    // of the run's, that it stands in
	database  int32
	committed bool
	cut       bool
	from, to  int64
	writes    []history.LoggedWrite
	nodes     []int32       // by write; none
	owner     history.TxnID // 0: nobody's that is recorded; ambiguous: of several
}

// ambiguous is the owner of what seems to be several's.
const ambiguous history.TxnID = 1

const none = -1

// New returns a Resolver whose transactions past isotap are of runs from first on.
func New(first history.Run) *Resolver {
	return &Resolver{first: first, runs: make(map[history.Run]*run), servers: make(map[serverKey]*server),
		sessions: make(map[sessionKey]string), names: make(map[string]int32), byID: make(map[versionKey]int32),
		roots: make(map[rootKey]int32), byXID: make(map[xidKey]int32),
		unseen: make(map[inDatabase]*unseen.Writers), bare: make(map[inDatabase]*unseen.Writers),
		files:   make(map[tableKey]uint32),
		effects: make(map[history.TxnID][]effect), blind: make(map[history.TxnID]bool),
		meetings: make(map[int32][]meeting), several: make(map[history.TxnID]bool), lost: make(map[history.TxnID]map[string]bool),
		ends: make(map[history.TxnID]end), whole: make(map[history.TxnID]bool)}
}

// Usable reports whether the log of a run is one that can be set beside its transactions: a run that has not ended, or
// lacks something itself, says too little.
func Usable(info *history.Info) bool { return info.Whole() && Logged(info) }

// Logged reports whether a run has some of a log that tells of the versions that its statements show. It may be set
// beside transactions of which all are there that ended while it was read, and shortly before and after.
func Logged(info *history.Info) bool {
	return !info.Columns && slices.ContainsFunc(info.Log, func(s history.LogStretch) bool { return !s.Empty() })
}

// AddRun adds a run whose log is usable.
func (r *Resolver) AddRun(info history.Info) {
	k := serverKey{system: info.Server.System}
	if k.system == 0 {
		k.run = info.Run
	}
	s := r.servers[k]
	if s == nil {
		s = &server{number: int32(len(r.servers)), seen: make(map[uint64]bool)}
		r.servers[k] = s
	}
	s.runs++
	x := &run{info: info, number: r.first + history.Run(len(r.runs)), server: s, moved: make(map[string]bool)}
	for _, table := range info.Rewritten {
		x.moved[table] = true
	}
	r.runs[info.Run] = x
}

// AddSession adds a session of any run.
func (r *Resolver) AddSession(s history.Session) { r.sessions[sessionKey{s.Run, s.ID}] = s.Database }

// AddLogged adds a transaction of a run's log. What another run has of the same log is left out.
func (r *Resolver) AddLogged(of history.Run, t *history.LoggedTxn) {
	x := r.runs[of]
	if x == nil || x.server.seen[t.Position] {
		return
	}
	x.server.seen[t.Position] = true
	r.stats.Txns++
	l := logged{run: x, number: t.Number, stretch: x.stretch(t.To), database: r.database(t.Database),
		committed: t.Status == history.Committed, cut: t.Cut, from: t.From, to: t.To, writes: t.Writes}
	for _, xid := range t.XIDs {
		r.byXID[xidKey{x.server.number, xid}] = int32(len(r.logged))
	}
	r.logged = append(r.logged, l)
}

// stretch returns the number of the stretch that a time is in.
func (x *run) stretch(at int64) int {
	n := 0
	for i := range x.info.Log {
		if !x.info.Log[i].Empty() && x.info.Log[i].From <= at {
			n = i
		}
	}
	return n
}

func (r *Resolver) database(name string) int32 {
	n, ok := r.names[name]
	if !ok {
		n = int32(len(r.names))
		r.names[name] = n
		r.databases = append(r.databases, name)
	}
	return n
}

// Stats returns what the logs told, once settled.
func (r *Resolver) Stats() Stats { return r.stats }
