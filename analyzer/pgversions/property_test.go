package pgversions_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/histgen"
)

// A server turns a history with tags into what PostgreSQL would have shown of it.
type server struct {
	rng *rand.Rand
	// tells: an UPDATE tells what it replaced, as on PostgreSQL 18.
	tells bool
	// keyless: the table has no primary key.
	keyless bool
	// partitioned: a write does not tell its xid.
	partitioned bool

	wraps uint64 // what is added to all xids
	xid   uint64
	ctid  uint64
	free  []freed
	spots map[version]spot
	dead  map[version]bool
	ends  map[history.TxnID]int64
}

type version struct {
	row history.Row
	tag history.Tag
}

type spot struct {
	xid  uint32
	ctid uint64
}

// freed is a ctid that vacuum gives back at a time.
type freed struct {
	ctid uint64
	at   int64
}

const horizon = 1000

var histories = flag.Int("histories", 20_000, "random histories per property test")

func (v *server) horizon() uint64 { return v.wraps + horizon }

// place returns a history with tuple ids in the place of its tags.
func (v *server) place(h []*history.Txn) []*history.Txn {
	v.spots, v.dead = make(map[version]spot), make(map[version]bool)
	v.ends = make(map[history.TxnID]int64)
	v.xid, v.ctid = horizon, 1<<16
	if v.rng.IntN(2) == 0 {
		v.wraps = 1<<33 - horizon - uint64(v.rng.IntN(6)) // the counter wraps around during the history
	}
	var placed []*history.Txn
	type todo struct {
		txn  *history.Txn
		stmt *history.Stmt
	}
	var order []todo
	xids := make(map[history.TxnID]uint32)
	for _, t := range h {
		c := *t
		c.Stmts = slices.Clone(t.Stmts)
		placed = append(placed, &c)
		v.ends[t.ID] = t.End
		for i := range c.Stmts {
			order = append(order, todo{&c, &c.Stmts[i]})
		}
	}
	slices.SortFunc(order, func(a, b todo) int { return int(a.stmt.Start - b.stmt.Start) })
	for _, d := range order {
		v.run(d.txn, d.stmt, xids)
	}
	return placed
}

func (v *server) newXID() uint32 {
	v.xid++
	for uint32(v.wraps+v.xid) < 3 { // no transaction has these
		v.xid++
	}
	return uint32(v.wraps + v.xid)
}

// run places one statement's accesses.
func (v *server) run(t *history.Txn, s *history.Stmt, xids map[history.TxnID]uint32) {
	xid := xids[t.ID]
	s.Accesses = slices.Clone(s.Accesses)
	for i := range s.Accesses {
		a := &s.Accesses[i]
		p := history.TupleID{}
		if a.Op != history.InsertRow {
			p.XID, p.CTID = v.spot(a.Row, a.Version).xid, v.spot(a.Row, a.Version).ctid
		}
		if a.Op != history.Read {
			if xid == 0 {
				xid = v.newXID()
				xids[t.ID] = xid
			}
			v.write(t, s, a, &p, xid)
		}
		if v.keyless {
			a.Row.ID = ""
		}
		a.Version, a.Prior = history.Tag{}, nil
		s.TupleIDs = append(s.TupleIDs, p)
	}
}

func (v *server) write(t *history.Txn, s *history.Stmt, a *history.Access, p *history.TupleID, xid uint32) {
	if s.Void || v.rng.IntN(4) == 0 {
		xid = v.newXID() // that of a savepoint
	}
	p.LSN = uint64(s.Start) * 80
	old := version{a.Row, a.Version}
	if a.Op != history.InsertRow && t.Status == history.Committed && !s.Void && !v.dead[old] {
		v.dead[old] = true // its place is free again some time after the transaction's end
		v.free = append(v.free, freed{p.CTID, max(t.End, v.ends[a.Version.Txn]) + int64(v.rng.IntN(3))})
	}
	if a.Op == history.UpdateRow && !v.tells {
		p.XID, p.CTID = 0, 0
	}
	if a.Op == history.DeleteRow {
		return
	}
	left := spot{xid: xid, ctid: v.newPlace(s.Start)}
	v.spots[version{a.Row, history.Tag{Txn: t.ID, Stmt: s.Num}}] = left
	p.NewXID, p.NewID = left.xid, left.ctid
	if v.partitioned {
		p.NewXID = 0
	}
	if t.Status == history.Aborted || s.Void {
		v.dead[version{a.Row, history.Tag{Txn: t.ID, Stmt: s.Num}}] = true
		v.free = append(v.free, freed{left.ctid, t.End + int64(v.rng.IntN(3))})
	}
}

func (v *server) newPlace(at int64) uint64 {
	for i, f := range v.free {
		if f.at < at && v.rng.IntN(2) == 0 {
			v.free = slices.Delete(v.free, i, i+1)
			return f.ctid
		}
	}
	v.ctid++
	return v.ctid
}

func (v *server) spot(row history.Row, tag history.Tag) spot {
	k := version{row, tag}
	s, ok := v.spots[k]
	if !ok {
		v.ctid++
		s = spot{uint32(v.wraps) + uint32(3+v.rng.IntN(horizon-3)), v.ctid}
		v.spots[k] = s
	}
	return s
}

// plain takes the lists out of a history: places know only the version itself.
func plain(h []*history.Txn) []*history.Txn {
	var copies []*history.Txn
	for _, t := range h {
		c := *t
		c.Stmts = slices.Clone(t.Stmts)
		for i := range c.Stmts {
			c.Stmts[i].Accesses = slices.Clone(c.Stmts[i].Accesses)
			for j := range c.Stmts[i].Accesses {
				c.Stmts[i].Accesses[j].Prior = nil
			}
		}
		copies = append(copies, &c)
	}
	return copies
}

// continues reports whether an INSERT of the history continues a row.
func continues(h []*history.Txn) bool {
	for _, t := range h {
		for _, s := range t.Stmts {
			for _, a := range s.Accesses {
				if a.Op == history.InsertRow && !a.Version.Initial() {
					return true
				}
			}
		}
	}
	return false
}

func analyze(t *testing.T, info history.Info, h []*history.Txn) *analyzer.Result {
	t.Helper()
	r, err := analyzer.Analyze([]history.Info{info}, h)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// told is what a result says, with or without the names of rows.
func told(r *analyzer.Result, rows bool) []string {
	var all []string
	for _, f := range r.Findings {
		s := fmt.Sprintf("%s %s %dx %s", f.Class, f.Anomaly, f.Count, f.ID)
		if rows {
			s += fmt.Sprint(f.Explanation)
		}
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}

// random calls test with random histories.
func random(t *testing.T, stream uint64, test func(t *testing.T, rng *rand.Rand, c histgen.Config, h []*history.Txn)) {
	n := *histories
	if testing.Short() {
		n /= 10
	}
	for seed := range n {
		rng := rand.New(rand.NewPCG(uint64(seed), stream))
		c := histgen.Random(rng)
		h := histgen.Generate(rng, c)
		test(t, rng, c, h)
		if t.Failed() {
			t.Fatalf("seed %d, engine %d", seed, c.Engine)
		}
	}
}

func TestPlacesGiveTheFindingsOfTags(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	found := 0
	random(t, 1, func(t *testing.T, rng *rand.Rand, c histgen.Config, h []*history.Txn) {
		v := server{rng: rng, tells: c.Engine == histgen.Broken || rng.IntN(2) == 0}
		recreates := continues(h)
		if c.Engine == histgen.Broken && recreates {
			return // what it continues there is not what came last
		}
		v.keyless = v.tells && !recreates && rng.IntN(3) == 0
		want := analyze(t, c.Info(), plain(h))
		info := c.Info()
		placed := v.place(h)
		info.Horizon = v.horizon()
		got := analyze(t, info, placed)
		found += len(got.Findings)
		if g, w := told(got, !v.keyless), told(want, !v.keyless); !slices.Equal(g, w) {
			t.Errorf("%+v: places give\n%q\ntags\n%q", v, g, w)
		}
		if placed[0].Stmts != nil && len(placed[0].Stmts[0].Accesses) > 0 && placed[0].Stmts[0].TupleIDs == nil {
			t.Error("the analysis changed what it was given")
		}
	})
	if found == 0 {
		t.Error("nothing was found")
	}
}
