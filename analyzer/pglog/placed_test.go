package pglog

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

// A modelTxn is a transaction that reads and writes rows, as the server does it, and as isotap sees it.
type modelTxn struct {
	*rapid.T
	place uint64            // the last that was given
	at    map[string]uint64 // rows by the places of their versions
	names map[uint64]string // and the other way around
	// untold are the rows of which some write was not told.
	untold map[string]bool
	log    []history.LoggedWrite
	stmts  []history.Stmt
}

const modelXID = 30

// write writes a row in a statement, which tells it, or does not.
func (m *modelTxn) write(s *history.Stmt, row string, told bool) {
	old := m.at[row]
	op := history.UpdateRow
	switch {
	case old == 0:
		op = history.InsertRow
	case m.pick(5) == 0:
		op = history.DeleteRow
	}
	m.place++
	w := history.LoggedWrite{Op: op, Row: history.Row{Table: acc.Table}, Storage: storage,
		TupleID: history.TupleID{CTID: place(old), LSN: 1000 + m.place, Leaf: leaf}}
	if m.at[row] = 0; op != history.DeleteRow {
		m.at[row], w.TupleID.NewXID, w.TupleID.NewID = m.place, modelXID, place(m.place)
		m.names[m.place] = row
	}
	m.log = append(m.log, w)
	m.untold[row] = m.untold[row] || !told
	if told {
		p := w.TupleID
		p.XID = writerOf(old)
		s.Accesses, s.TupleIDs = append(s.Accesses, history.Access{Row: history.Row{Table: acc.Table, ID: row}, Op: op}),
			append(s.TupleIDs, p)
	}
}

func (m *modelTxn) pick(n int) int { return rapid.IntRange(0, n-1).Draw(m.T, "n") }

// writerOf is the id under which a version was written: the first places are of before.
func writerOf(at uint64) uint32 {
	switch {
	case at == 0:
		return 0
	case at < 10:
		return 5
	}
	return modelXID
}

// statement runs one that reads a row, or writes rows, told or not. Mixed is one that does several of this.
func (m *modelTxn) statement(rows []string, mixed bool) {
	s := history.Stmt{Kind: history.Update, Observation: history.Exact}
	steps := 1
	if mixed {
		steps += m.pick(3)
	}
	for range steps {
		row := rows[m.pick(len(rows))]
		switch kind := m.pick(4); {
		case kind == 0 && m.at[row] != 0:
			s.Accesses = append(s.Accesses, history.Access{Row: history.Row{Table: acc.Table, ID: row}, Op: history.Read})
			s.TupleIDs = append(s.TupleIDs, history.TupleID{XID: writerOf(m.at[row]), CTID: place(m.at[row]), Leaf: leaf})
		default:
			m.write(&s, row, kind == 1)
		}
	}
	m.stmts = append(m.stmts, s)
}

// TestPlacedWritesFollowEachOther has random transactions write rows, told and untold: in what a completed one does to
// a row each write replaces what the one before it left, and each read reads that. Where each statement does one thing
// to one row, and all names are known, every untold write that others can see is told.
func TestPlacedWritesFollowEachOther(t *testing.T) {
	rows := []string{"1", "2", "3"}
	rapid.Check(t, func(t *rapid.T) {
		m := &modelTxn{T: t, place: 10, at: map[string]uint64{"1": 1, "2": 2},
			names: map[uint64]string{1: "1", 2: "2"}, untold: make(map[string]bool)}
		mixed := rapid.Bool().Draw(t, "mixed")
		for range 1 + m.pick(8) {
			m.statement(rows, mixed)
		}
		txn := recorded(1, append(m.stmts, told(modelXID), history.Stmt{Kind: history.Commit})...)
		naming := recorded(2) // another transaction knows what the rows are called
		for at := uint64(1); at <= m.place; at++ {
			if name := m.names[at]; name != "" {
				s := saw(writerOf(at), at)
				s.Accesses[0].Row.ID = name
				naming.Stmts = append(naming.Stmts, s)
			}
		}
		log := committed(modelXID, 120, 130, m.log...)
		if len(m.log) == 0 {
			return
		}
		r := settled(t, []*history.LoggedTxn{log}, []*history.Txn{txn, naming})
		r.Complete(txn)
		stats := r.Stats()
		m.follow(txn)
		if !mixed && stats.Told != stats.Effects {
			t.Fatalf("of %d writes %d are told", stats.Effects, stats.Told)
		}
	})
}

// follow holds a completed transaction against what it says of each row, but for those that were left out.
func (m *modelTxn) follow(txn *history.Txn) {
	now := make(map[string]string)
	started := make(map[string]bool)
	for i := range txn.Stmts {
		for _, a := range txn.Stmts[i].Accesses {
			m.untold[a.Row.ID] = m.untold[a.Row.ID] && !txn.Stmts[i].Unseen
		}
	}
	for i := range txn.Stmts {
		s := &txn.Stmts[i]
		for j := range s.Accesses {
			a, p := &s.Accesses[j], &s.TupleIDs[j]
			id := a.Row.ID
			met, left := "", ""
			if a.Op != history.InsertRow {
				met = fmt.Sprint(p.XID, p.CTID)
			}
			if a.Op != history.DeleteRow {
				left = fmt.Sprint(p.NewXID, p.NewID)
			}
			if a.Op == history.Read {
				left = met
			}
			if !m.untold[id] && started[id] && now[id] != met {
				m.Fatalf("statement %d: %v of row %s meets (%s), and there is (%s)", s.Num, a.Op, id, met, now[id])
			}
			now[id], started[id] = left, true
		}
	}
}
