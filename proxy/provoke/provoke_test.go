package provoke

import (
	"slices"
	"testing"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// A rig is a Provoker with a clock that stands still until it is moved.
type rig struct {
	*Provoker
	at    time.Time
	wakes int
}

func newRig(o Options) *rig {
	if o.Max == 0 {
		o.Max = DefaultMax
	}
	o.Family = dbms.PostgreSQLFamily
	r := &rig{Provoker: New(o), at: time.Unix(1000, 0)}
	r.now = func() time.Time { return r.at }
	return r
}

func (r *rig) session() *Session {
	return r.NewSession(func() { r.wakes++ })
}

// do has a session run a statement, and returns what it has to wait for before.
func do(s *Session, st history.Stmt, target string, open bool) *Hold {
	s.Sends(Statement{Kind: st.Kind, Locking: st.Locking, Shape: st.Shape, Target: target})
	h := s.Hold()
	if h == nil {
		s.Done(&st, open)
	}
	return h
}

func begin(s *Session) { do(s, history.Stmt{Kind: history.Begin, Shape: "BEGIN"}, "", true) }

// reads is a SELECT that found these rows of the table stock.
func reads(ids ...string) history.Stmt {
	st := history.Stmt{Kind: history.Select, Shape: "SELECT qty FROM stock WHERE id IN ?", Observation: history.Exact, Args: ids}
	for _, id := range ids {
		st.Accesses = append(st.Accesses, history.Access{Row: history.Row{Table: "shop.stock", ID: id}})
	}
	return st
}

var update = history.Stmt{Kind: history.Update, Shape: "UPDATE stock", Observation: history.Exact}

// readThenWrite begins a transaction that reads rows, and comes to a write.
func readThenWrite(s *Session, ids ...string) *Hold {
	begin(s)
	do(s, reads(ids...), "", true)
	return do(s, update, "shop.stock", true)
}

func TestWhoHasReadTheSameReleases(t *testing.T) {
	r := newRig(Options{})
	one, two, other := r.session(), r.session(), r.session()
	begin(other)
	h := readThenWrite(one, "1", "2")
	if h == nil || h.Until.Sub(r.at) > DefaultMax || h.Until.Sub(r.at) < DefaultMax/2 {
		t.Fatalf("held back: %+v", h)
	}
	if h := readThenWrite(other, "3"); h == nil || r.wakes > 0 {
		t.Fatalf("who read another row: %+v, and %d were woken", h, r.wakes)
	}
	if second := readThenWrite(two, "2", "3"); second != nil || !h.Released() || r.wakes != 2 {
		t.Errorf("held back: %+v; the others were released: %t, %d", second, h.Released(), r.wakes)
	}
	r.at = r.at.Add(10 * time.Millisecond)
	h.End()
	if got := r.Stats(); got != (Stats{Held: 1, Met: 1, For: 10 * time.Millisecond}) {
		t.Errorf("%+v", got)
	}
}

func TestWhatNobodyCanDisturbIsNotHeld(t *testing.T) {
	locked := reads("1")
	locked.Locking = history.LockUpdate
	for name, run := range map[string]func(s, other *Session, r *rig) *Hold{
		"nobody else is there": func(s, _ *Session, _ *rig) *Hold { return readThenWrite(s, "1") },
		"nobody else was there lately": func(s, other *Session, r *rig) *Hold {
			begin(other)
			r.at = r.at.Add(2 * presence)
			return readThenWrite(s, "1")
		},
		"it has read nothing": func(s, other *Session, _ *rig) *Hold {
			begin(other)
			begin(s)
			return do(s, update, "shop.stock", true)
		},
		"it has locked what it read": func(s, other *Session, _ *rig) *Hold {
			begin(other)
			begin(s)
			do(s, locked, "", true)
			return do(s, update, "shop.stock", true)
		},
		"nobody writes what it read": func(s, other *Session, _ *rig) *Hold {
			begin(other)
			begin(s)
			do(s, reads("1"), "", true)
			return do(s, history.Stmt{Kind: history.Insert, Shape: "INSERT INTO log"}, "shop.log", true)
		},
		"it only reads": func(s, other *Session, _ *rig) *Hold {
			begin(other)
			begin(s)
			do(s, reads("1"), "", true)
			return do(s, history.Stmt{Kind: history.Commit, Shape: "COMMIT"}, "", false)
		},
		"what it read was in the transaction before": func(s, other *Session, _ *rig) *Hold {
			begin(other)
			begin(s)
			do(s, reads("1"), "", true)
			do(s, history.Stmt{Kind: history.Commit, Shape: "COMMIT"}, "", false)
			return do(s, update, "shop.stock", false)
		},
		"it looked long ago": func(s, other *Session, r *rig) *Hold {
			do(s, reads("1"), "", false)
			r.at = r.at.Add(2 * requestGap)
			begin(other)
			return do(s, update, "shop.stock", false)
		},
		"it is serializable": func(s, other *Session, _ *rig) *Hold {
			begin(other)
			begin(s)
			do(s, reads("1"), "", true)
			s.Sends(Statement{Kind: history.Update, Shape: "UPDATE stock", Target: "shop.stock", Level: history.Serializable})
			return s.Hold()
		},
		"it has a lock by name": func(s, other *Session, _ *rig) *Hold {
			begin(other)
			do(s, history.Stmt{Kind: history.Select, Shape: "SELECT GET_LOCK(?, ?)"}, "", false)
			return readThenWrite(s, "1")
		},
		"its transaction has": func(s, other *Session, _ *rig) *Hold {
			begin(other)
			begin(s)
			do(s, history.Stmt{Kind: history.Select, Shape: "select pg_advisory_xact_lock($1)"}, "", true)
			do(s, reads("1"), "", true)
			return do(s, update, "shop.stock", true)
		},
		"its client sends ahead": func(s, other *Session, _ *rig) *Hold {
			begin(other)
			begin(s)
			do(s, reads("1"), "", true)
			s.Sends(Statement{Kind: history.Update, Shape: "UPDATE stock", Target: "shop.stock"})
			s.Pass()
			return s.Hold()
		},
	} {
		r := newRig(Options{})
		if h := run(r.session(), r.session(), r); h != nil {
			t.Errorf("%s, and it is held back", name)
		}
	}
}

func TestLocksByNameAreLetGo(t *testing.T) {
	for take, release := range map[string]string{"SELECT GET_LOCK(?, ?)": "SELECT RELEASE_LOCK(?)",
		"SELECT pg_advisory_lock($1)":      "SELECT pg_advisory_unlock($1)",
		"SELECT pg_try_advisory_lock($1)":  "SELECT pg_advisory_unlock_all()",
		"SELECT pg_advisory_xact_lock($1)": "COMMIT"} {
		r := newRig(Options{})
		s, other := r.session(), r.session()
		begin(other)
		begin(s)
		do(s, history.Stmt{Kind: history.Select, Shape: take}, "", true)
		do(s, history.Stmt{Kind: history.Select, Shape: release}, "", false)
		if readThenWrite(s, "1") == nil {
			t.Errorf("behind %s nothing is held back", release)
		}
	}
}

func TestLooksInAutocommitAreHeldBeforeTheInsert(t *testing.T) {
	look := func(name string) history.Stmt {
		return history.Stmt{Kind: history.Select, Shape: "SELECT 1 FROM account WHERE name = ?", Args: []string{name},
			Observation: history.Exact, Predicates: []history.Predicate{{Table: "shop.account"}}}
	}
	insert := history.Stmt{Kind: history.Insert, Shape: "INSERT INTO account"}
	r := newRig(Options{})
	one, two, other := r.session(), r.session(), r.session()
	for _, s := range []*Session{one, two, other} {
		do(s, look("ann"), "", false)
	}
	do(other, look("bob"), "", false)
	other.forget()
	do(other, look("bob"), "", false)
	h := do(one, insert, "shop.account", false)
	if h == nil {
		t.Fatal("it is not held back")
	}
	if do(other, insert, "shop.account", false); h.Released() {
		t.Error("who looked for another releases it")
	}
	if do(two, insert, "shop.account", false); !h.Released() {
		t.Error("who looked for the same does not release it")
	}
}

func TestACommitBehindALateReadIsHeld(t *testing.T) {
	r := newRig(Options{})
	one, other := r.session(), r.session()
	begin(other)
	begin(one)
	do(one, update, "shop.stock", true)
	do(one, reads("7"), "", true)
	r.written["shop.stock"] = struct{}{}
	if h := do(one, history.Stmt{Kind: history.Commit, Shape: "COMMIT"}, "", false); h == nil {
		t.Error("it is not held back")
	}
}

func TestATransactionIsHeldNoLongerThanMaxInSum(t *testing.T) {
	r := newRig(Options{Max: time.Second})
	one, other := r.session(), r.session()
	begin(one)
	var sum time.Duration
	for range 30 {
		begin(other)
		st := update
		do(one, reads("1"), "", true)
		if h := do(one, st, "shop.stock", true); h != nil {
			sum += h.Until.Sub(r.at)
			r.at = h.Until
			h.End()
			one.Done(&history.Stmt{Kind: history.Update, Shape: st.Shape}, true)
		}
	}
	if sum > time.Second || sum < time.Second/2 {
		t.Errorf("held back for %v", sum)
	}
	do(one, history.Stmt{Kind: history.Commit, Shape: "COMMIT"}, "", false)
	begin(other)
	if one.used != 0 {
		t.Error("the next transaction pays for it")
	}
}

func TestTheSeedChooses(t *testing.T) {
	drawn := func(seed uint64) (lengths []time.Duration) {
		at := &site{shape: "UPDATE stock"}
		for range 200 {
			held, length := at.draw(Options{Max: time.Second, Seed: seed}, 0)
			if !held {
				length = 0
			}
			lengths = append(lengths, length)
		}
		return lengths
	}
	if !slices.Equal(drawn(1), drawn(1)) {
		t.Error("one seed chooses differently")
	}
	if slices.Equal(drawn(1), drawn(2)) {
		t.Error("two seeds choose the same")
	}
	for _, length := range drawn(3) {
		if length != 0 && (length < time.Second/2 || length > time.Second) {
			t.Errorf("held back for %v", length)
		}
	}
}

func TestWhereNobodyComesFewAreHeld(t *testing.T) {
	at := &site{shape: "UPDATE stock"}
	held := uint64(0)
	for range 10_000 {
		if now, _ := at.draw(Options{Max: time.Second, Seed: 1}, 0); now {
			held++
			at.missed()
		}
	}
	if held < patience || held > 600 {
		t.Errorf("%d of 10000 are held back", held)
	}
	at.met()
	if at.chance(0) != often {
		t.Errorf("behind a meeting with probability %v", at.chance(0))
	}
}

func TestClientsThatTakeTurnsAreSeldomHeld(t *testing.T) {
	r := newRig(Options{})
	sessions := []*Session{r.session(), r.session()}
	held := 0
	turns := func(n int, with bool) {
		for turn := range n {
			s := sessions[turn%2]
			begin(s)
			do(s, reads("1"), "", true)
			write := update
			write.Shape = "UPDATE " + string(rune('a'+turn%26)) // as many programs
			if h := do(s, write, "shop.stock", true); h != nil {
				held++
				if with {
					begin(sessions[1-turn%2])
				}
				h.End()
				s.Done(&write, true)
			}
			do(s, history.Stmt{Kind: history.Commit, Shape: "COMMIT"}, "", false)
			sessions[1-turn%2].forget()
		}
	}
	turns(1000, false)
	if held < alone || held > 100 {
		t.Errorf("%d of 1000 are held back", held)
	}
	held = 0
	turns(1000, true)
	if held < 500 {
		t.Errorf("of clients that are there at once %d of 1000 are held back", held)
	}
}

func TestListsAndManyShapesAreBounded(t *testing.T) {
	r := newRig(Options{})
	s := r.session()
	var ids []string
	for i := range 1000 {
		ids = append(ids, string(rune('0'+i)))
	}
	do(s, reads(ids...), "", true)
	if len(s.window.keys) > maxKeys {
		t.Errorf("%d keys", len(s.window.keys))
	}
	for i := range maxSites + 10 {
		r.site(string(rune(i)) + "x")
	}
	if len(r.sites) > maxSites+1 {
		t.Errorf("%d sites", len(r.sites))
	}
}

func TestNilHoldsNothing(t *testing.T) {
	var s *Session
	s.Sends(Statement{Kind: history.Update})
	s.Done(&update, true)
	if s.Hold() != nil {
		t.Error("it is held back")
	}
}
