package analyzer

import (
	"slices"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/histgen"
)

// A mapping gives a history other names.
type mapping struct {
	txn     func(history.TxnID) history.TxnID
	row     func(history.Row) history.Row
	session func(*history.Txn) history.SessionID
	time    func(start, end int64) (int64, int64)
}

// apply copies a history under its new names.
func (m mapping) apply(h []*history.Txn) []*history.Txn {
	tag := func(t history.Tag) history.Tag {
		if !t.Initial() {
			t.Txn = m.txn(t.Txn)
		}
		return t
	}
	var mapped []*history.Txn
	for _, t := range h {
		c := *t
		c.ID, c.Session = m.txn(t.ID), m.session(t)
		c.Start, c.End = m.time(t.Start, t.End)
		c.Stmts = slices.Clone(t.Stmts)
		for i := range c.Stmts {
			s := &c.Stmts[i]
			if s.End > 0 {
				s.Start, s.End = m.time(s.Start, s.End)
			}
			s.Accesses = slices.Clone(s.Accesses)
			for j := range s.Accesses {
				a := &s.Accesses[j]
				a.Row, a.Version, a.Prior = m.row(a.Row), tag(a.Version), slices.Clone(a.Prior)
				for k := range a.Prior {
					a.Prior[k] = tag(a.Prior[k])
				}
			}
		}
		mapped = append(mapped, &c)
	}
	return mapped
}

// same is the mapping that changes nothing.
func same() mapping {
	return mapping{
		txn: func(id history.TxnID) history.TxnID { return id }, row: func(r history.Row) history.Row { return r },
		session: func(t *history.Txn) history.SessionID { return t.Session },
		time:    func(start, end int64) (int64, int64) { return start, end },
	}
}

// A crowd is a large correct history: every hundred nanoseconds a transaction begins and ends within fifty.
type crowd struct {
	txns []*history.Txn
	// seen are, by the number of transactions so far, reads that see what there is by then.
	seen map[int][]history.Access
}

const (
	crowdSize = 2000
	middle    = crowdSize / 2
	pause     = 100 // from one to the next
)

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{seen: make(map[int][]history.Access)}
	latest := make(map[history.Row]history.Tag)
	err := histgen.NewLoad(40).Each(crowdSize, func(txn *history.Txn) error {
		if len(c.txns) == middle {
			for row, version := range latest {
				c.seen[middle] = append(c.seen[middle], history.Access{Row: row, Version: version})
			}
		}
		m := same()
		m.time = func(start, _ int64) (int64, int64) { return start*pause + 1, start*pause + pause/2 }
		copied := m.apply([]*history.Txn{txn})[0]
		for _, s := range copied.Stmts {
			for _, a := range s.Accesses {
				if a.Op != history.Read {
					latest[a.Row] = history.Tag{Txn: txn.ID, Stmt: s.Num}
				}
			}
		}
		c.txns = append(c.txns, copied)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bury puts a small history into the middle of the crowd: under the crowd's run, in sessions beside the crowd's, and
// reading, last of all, what the crowd has left by then.
func (c *crowd) bury(h []*history.Txn) []*history.Txn {
	m := same()
	m.txn = func(id history.TxnID) history.TxnID {
		if id.Run() != scriptRun {
			return id
		}
		return history.MakeTxnID(histgen.Run, crowdSize+id.Seq())
	}
	m.session = func(t *history.Txn) history.SessionID { return 1000 + t.Session }
	m.time = func(start, end int64) (int64, int64) {
		const begin = middle*pause - pause/2
		if start == 0 {
			return begin + 1, begin + 9
		}
		return begin + start, begin + end
	}
	buried := m.apply(h)
	for _, t := range buried {
		t.Stmts = append(t.Stmts, history.Stmt{Num: uint32(len(t.Stmts) + 1), Kind: history.Select,
			Observation: history.Exact,
			Shape:       "SELECT v FROM bench", Accesses: c.seen[middle]})
	}
	return slices.Concat(c.txns[:middle], buried, c.txns[middle:])
}

func TestFindsPlantedAnomalyInACrowd(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	c := newCrowd(t)
	info := histgen.LoadInfo()
	check := func(name, text, want string) {
		t.Run(name, func(t *testing.T) {
			r := analyze(t, info, c.bury(script(t, text)))
			if got := names(r); !slices.Equal(got, []string{want}) {
				t.Errorf("findings %q, want %q", got, want)
			}
			for _, f := range r.Findings {
				if f.Count != 1 {
					t.Errorf("seen %d times, want once", f.Count)
				}
			}
		})
	}
	plants(check)
	if got := names(analyze(t, info, c.bury(nil))); len(got) > 0 {
		t.Errorf("the crowd alone has findings %q", got)
	}
}
