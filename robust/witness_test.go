package robust

import (
	"fmt"
	"strings"
	"testing"
)

// Every set of SmallBank's programs that is not found robust is not robust: the paper's 7.2 says so, and here is the
// proof. Of the others that holds where foreign keys count: schedules respect them.
func TestEveryNonRobustSetHasASchedule(t *testing.T) {
	auction, err := Auction(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []*Workload{SmallBank(), TPCC(), auction} {
		for _, s := range []Setting{{ForeignKeys: true}, {Tuples: true, ForeignKeys: true}} {
			a := Analyze(w.Programs, s)
			for _, test := range []Test{TypeII, Snapshot} {
				for _, core := range a.Subsets(test, 0).Minimal {
					t.Run(fmt.Sprintf("%s %v, %s, %s", w.Name, named(w, [][]int{core}), s, test), func(t *testing.T) {
						witness := a.Witness(test, core...)
						if witness.Schedule == nil {
							t.Fatal("no schedule")
						}
						all, err := witness.Schedule.Check()
						if err != nil || Cycle(all) == nil {
							t.Errorf("the schedule proves nothing: %v\n%s", err, witness.Schedule)
						}
					})
				}
			}
		}
	}
}

// TestSchedulesOfSmallBankAreItsAnomalies: schedules of small bank are those of its anomalies.
func TestSchedulesOfSmallBankAreItsAnomalies(t *testing.T) {
	w := SmallBank()
	a := Analyze(w.Programs, Setting{ForeignKeys: true})
	witness := a.Witness(TypeII, 4) // WriteCheck: a lost update
	want := `T1 q1 key sel Account(1): SELECT CustomerId INTO :x1 FROM Account WHERE Name = :N1
T1 q2 key sel Savings(2): SELECT Balance INTO :a FROM Savings WHERE CustomerId = :x1
T1 q3 key sel Checking(2): SELECT Balance INTO :b FROM Checking WHERE CustomerId = :x1
T2 q1 key sel Account(1): SELECT CustomerId INTO :x1 FROM Account WHERE Name = :N1
T2 q2 key sel Savings(2): SELECT Balance INTO :a FROM Savings WHERE CustomerId = :x1
T2 q3 key sel Checking(2): SELECT Balance INTO :b FROM Checking WHERE CustomerId = :x1
T2 q4 key upd Checking(2): UPDATE Checking SET Balance = Balance - :V WHERE CustomerId = :x1
T2 COMMIT
T1 q4 key upd Checking(2): UPDATE Checking SET Balance = Balance - :V WHERE CustomerId = :x1
T1 COMMIT
`
	if got := witness.Schedule.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Each schedule is of programs of words; its steps are "1a" for the first statement of T1, "1." for its commit.
func TestTheModelAllowsWhatTheLevelsDo(t *testing.T) {
	for _, c := range []struct {
		name     string
		programs []string
		levels   string // of the transactions: r, s, z
		order    string
		err      string
		edges    string // as "1 rw 2"
	}{
		{"no dirty write", []string{"X(1)!", "X(1)!"}, "rr", "1a 2a 1. 2.", "it waits", ""},
		{"in turn", []string{"X(1)!", "X(1)!"}, "rr", "1a 1. 2a 2.", "", "1 wr 2, 1 ww 2, 1 rw 2"},
		{"others", []string{"X(1)!", "X(2)!"}, "rr", "1a 2a 1. 2.", "", ""},
		{"what is committed is read", []string{"X(1)!", "X(1)?"}, "rr", "1a 2a 1. 2.", "", "2 rw 1"},
		{"a statement reads anew", []string{"X(1)? X(1)?", "X(1)!"}, "rr", "1a 2a 2. 1b 1.", "", "1 rw 2, 2 wr 1"},
		{"a snapshot does not", []string{"X(1)? X(1)?", "X(1)!"}, "sr", "1a 2a 2. 1b 1.", "", "1 rw 2"},
		{"the first committer wins", []string{"X(1)? X(1)!", "X(1)!"}, "sr", "1a 2a 2. 1b 1.",
			"a concurrent transaction was first", ""},
		{"without a snapshot it does not", []string{"X(1)? X(1)!", "X(1)!"}, "rs", "1a 2a 2. 1b 1.", "",
			"1 rw 2, 2 wr 1, 2 ww 1, 2 rw 1"},
		{"a lock is refused", []string{"Y(1)? X(1)#", "X(1)!"}, "sr", "1a 2a 2. 1b 1.",
			"a concurrent transaction was first", ""},
		{"a lock waits", []string{"X(1)#", "X(1)!"}, "rr", "2a 1a 2. 1.", "it waits", ""},
		{"a lock is waited for", []string{"X(1)#", "X(1)!"}, "rr", "1a 2a 1. 2.", "it waits", ""},
		{"a lock ends with its transaction", []string{"X(1)#", "X(1)!"}, "rr", "1a 1. 2a 2.", "", "1 rw 2"},
		{"own writes are read", []string{"X(1)! X(1)?", "X(1)!"}, "rr", "1a 1b 1. 2a 2.", "", "1 wr 2, 1 ww 2, 1 rw 2"},
		{"insertions", []string{"X(1)+", "X(1)?"}, "rr", "1a 1. 2a 2.", "", "1 wr 2"},
		{"what is not there", []string{"X(1)+", "X(1)?"}, "rr", "2a 1a 1. 2.", "there is no such tuple", ""},
		{"what is there", []string{"X(1)+", "X(1)+"}, "rr", "1a 1. 2a 2.", "there is such a tuple", ""},
		{"deletions", []string{"X(1)-", "X(1)?"}, "rr", "1a 1. 2a 2.", "there is no such tuple", ""},
		{"phantoms", []string{"X(1)+", "X()?"}, "rr", "2a 1a 1. 2.", "", "2 predicate rw 1"},
		{"what is found", []string{"X(1)+", "X()?"}, "rr", "1a 1. 2a 2.", "", "1 predicate wr 2, 1 wr 2"},
		{"write skew", []string{"X(1)? Y(1)!", "Y(1)? X(1)!"}, "ss", "1a 2a 1b 2b 1. 2.", "", "1 rw 2, 2 rw 1"},
		{"serializable write skew", []string{"X(1)? Y(1)!", "Y(1)? X(1)!"}, "zz", "1a 2a 1b 2b 1. 2.",
			"a concurrent transaction was first", ""},
		{"one that is not serializable", []string{"X(1)? Y(1)!", "Y(1)? X(1)!"}, "zs", "1a 2a 1b 2b 1. 2.", "",
			"1 rw 2, 2 rw 1"},
		{"no commit", []string{"X(1)!"}, "r", "1a", "no commit", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := scheduleOf(c.programs, c.levels, c.order)
			all, err := s.Check()
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %s", err, c.err)
				}
				return
			}
			var edges []string
			seen := make(map[string]bool)
			for _, d := range all {
				text := fmt.Sprintf("%d %s %d", d.From.Run+1, d.Kind, d.To.Run+1)
				if !seen[text] {
					edges = append(edges, text)
				}
				seen[text] = true
			}
			if got := strings.Join(edges, ", "); err != nil || !sameEdges(got, c.edges) {
				t.Errorf("got %s, %v, want %s", got, err, c.edges)
			}
		})
	}
}

func sameEdges(a, b string) bool {
	count := func(text string) map[string]int {
		n := make(map[string]int)
		for _, e := range strings.Split(text, ", ") {
			n[e]++
		}
		return n
	}
	x, y := count(a), count(b)
	for e := range x {
		if y[e] != x[e] {
			return false
		}
	}
	return len(x) == len(y)
}

func scheduleOf(programs []string, levels, order string) *Schedule {
	s := &Schedule{}
	for i, text := range programs {
		l := shortProgram(fmt.Sprint(i), text).unfold()[0]
		run := Run{Program: l, Level: Level(strings.IndexByte("rsz", levels[i]))}
		for _, o := range l.Statements {
			key := "1"
			if len(o.Key) > 0 {
				key = o.Key[0]
			}
			run.Tuples = append(run.Tuples, []Tuple{{o.Relation, key}})
		}
		s.Runs = append(s.Runs, run)
	}
	for _, word := range strings.Fields(order) {
		run, at := int(word[0]-'1'), int(word[1]-'a')
		if word[1] == '.' {
			at = len(s.Runs[run].Program.Statements)
		}
		s.Order = append(s.Order, Step{run, at})
	}
	return s
}
