package histgen

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// LoadInfo describes the run of what [Load], [HotRow] and [Ring] make.
func LoadInfo() history.Info {
	start := time.Unix(1, 0)
	return history.Info{Run: Run, Started: start, Ended: start.Add(time.Hour), Mode: "items",
		Server: history.Server{Engine: dbms.MariaDB, Version: "10.11.19"}}
}

// A Load makes any number of transactions of two reads and two updates of rows in a table, run one after the other by
// 64 sessions, in memory that it uses again.
type Load struct {
	made     uint32
	random   uint64
	versions []history.Tag // by row
	batch    []history.Txn
	stmts    []history.Stmt
	accesses []history.Access
	ids      []byte
	ends     []int // of the ids
}

// loadBatch is how many transactions a Load makes at a time, as who reads them from a disk does.
const loadBatch = 256

// NewLoad returns a Load over a table of so many rows.
func NewLoad(rows int) *Load {
	l := &Load{random: 88172645463325252, versions: make([]history.Tag, rows), batch: make([]history.Txn, loadBatch),
		stmts: make([]history.Stmt, 4*loadBatch), accesses: make([]history.Access, 4*loadBatch)}
	for i := range l.stmts {
		s := history.Stmt{Num: uint32(i%4 + 1), Kind: history.Select, Observation: history.Exact,
			Shape: "SELECT v FROM load WHERE id = ?"}
		if i%2 == 1 {
			s.Kind, s.Shape = history.Update, "UPDATE load SET v = ? WHERE id = ?"
		}
		s.Accesses = l.accesses[i : i+1]
		l.stmts[i] = s
	}
	return l
}

// Next makes the next transactions, some of those that are missing to n in sum; none when n were made. They are
// valid until the next call.
func (l *Load) Next(n int) []history.Txn {
	txns := l.batch[:min(n-int(l.made), len(l.batch))]
	l.ids, l.ends = l.ids[:0], l.ends[:0]
	for i := range txns {
		l.made++
		txns[i] = history.Txn{ID: history.MakeTxnID(Run, l.made), Session: history.SessionID(l.made%64 + 1),
			Status: history.Committed, Level: history.Serializable, Start: int64(l.made) - 1, End: int64(l.made),
			Stmts: l.stmts[4*i : 4*i+4]}
		for j := range 4 {
			l.access(&l.accesses[4*i+j], history.Tag{Txn: txns[i].ID, Stmt: uint32(j + 1)})
		}
	}
	ids, begin := string(l.ids), 0
	for i, end := range l.ends {
		l.accesses[i].Row.ID = ids[begin:end]
		begin = end
	}
	return txns
}

// Each makes all of n transactions and calls do with each.
func (l *Load) Each(n int, do func(*history.Txn) error) error {
	for txns := l.Next(n); len(txns) > 0; txns = l.Next(n) {
		for i := range txns {
			if err := do(&txns[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// access makes the access of a statement, whose versions would have the given tag.
func (l *Load) access(a *history.Access, own history.Tag) {
	l.random ^= l.random << 13
	l.random ^= l.random >> 7
	l.random ^= l.random << 17
	row := l.random % uint64(len(l.versions))
	l.ids = append(strconv.AppendUint(append(l.ids, 'k'), row, 36), ":0"...)
	l.ends = append(l.ends, len(l.ids))
	*a = history.Access{Row: history.Row{Table: "app.load"}, Version: l.versions[row]}
	if own.Stmt%2 == 0 {
		a.Op = history.UpdateRow
		l.versions[row] = own
	}
}

// HotRow makes n transactions that form one component: each read a row as it was before all of them, and overwrote what
// the one before left.
func HotRow(n int) []*history.Txn {
	row := history.Row{Table: "app.load", ID: "hot"}
	latest := history.Tag{}
	return component(n, func(own history.Tag, _ int) (read, write history.Access) {
		read, write = history.Access{Row: row}, history.Access{Row: row, Op: history.UpdateRow, Version: latest}
		latest = own
		return read, write
	})
}

// Ring makes n transactions of one cycle of rw, and no shorter one: each read the row that the one before it overwrote.
func Ring(n int) []*history.Txn {
	row := func(i int) history.Row { return history.Row{Table: "app.load", ID: "r" + strconv.Itoa(i%n)} }
	return component(n, func(_ history.Tag, i int) (read, write history.Access) {
		return history.Access{Row: row(i)}, history.Access{Row: row(i + 1), Op: history.UpdateRow}
	})
}

// component makes transactions of a read and an update each, whose version has the tag own.
func component(n int, accesses func(own history.Tag, i int) (read, write history.Access)) []*history.Txn {
	txns := make([]*history.Txn, n)
	for i := range txns {
		id := history.MakeTxnID(Run, uint32(i+1))
		read, write := accesses(history.Tag{Txn: id, Stmt: 2}, i)
		txns[i] = &history.Txn{ID: id, Session: history.SessionID(i + 1), Status: history.Committed,
			Level: history.RepeatableRead, End: int64(i),
			Stmts: []history.Stmt{
				{Num: 1, Kind: history.Select, Observation: history.Exact, Shape: "SELECT",
					Accesses: []history.Access{read}},
				{Num: 2, Kind: history.Update, Observation: history.Exact, Shape: "UPDATE",
					Accesses: []history.Access{write}},
			}}
	}
	return txns
}

// Stale makes n transactions of sessions that take turns, one after the other: two reads of rows of a table and an
// update. The given share of the reads, which is out of a thousand, see the version before the newest.
func Stale(n, rows, sessions, share int) []*history.Txn {
	rng := rand.New(rand.NewPCG(1, uint64(rows)))
	versions := make([][2]history.Tag, rows) // the newest and the one before it
	txns := make([]*history.Txn, n)
	for i := range txns {
		id, at := history.MakeTxnID(Run, uint32(i+1)), int64(i+1)*10
		t := &history.Txn{ID: id, Session: history.SessionID(i%sessions + 1), Status: history.Committed,
			Level: history.RepeatableRead, Start: at, End: at + 9}
		for k := range 3 {
			row := rng.IntN(rows)
			s := history.Stmt{Num: uint32(k + 1), Kind: history.Select, Observation: history.Exact,
				Shape: "SELECT v FROM load WHERE id = ?", Start: at + int64(2*k), End: at + int64(2*k) + 1}
			a := history.Access{Row: history.Row{Table: "app.load", ID: "s" + strconv.Itoa(row)},
				Version: versions[row][0]}
			switch {
			case k == 2:
				s.Kind, s.Shape, a.Op = history.Update, "UPDATE load SET v = ? WHERE id = ?", history.UpdateRow
				versions[row] = [2]history.Tag{{Txn: id, Stmt: s.Num}, versions[row][0]}
			case rng.IntN(1000) < share && !versions[row][1].Initial():
				a.Version = versions[row][1]
			}
			s.Accesses = []history.Access{a}
			t.Stmts = append(t.Stmts, s)
		}
		txns[i] = t
	}
	return txns
}
