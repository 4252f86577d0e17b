package robust

import (
	"slices"
	"strings"
	"testing"
)

// short makes a statement of a word as "X(:x)?" (selected by key), "X(:x)!" (updated), "X(:x)#" (selected for update),
// "X()?" and "X()!" (by a predicate), "X(:x)+" and "X(:x)-" (inserted, deleted).
func short(word string) *Statement {
	relation, rest, _ := strings.Cut(word, "(")
	key, verb, _ := strings.Cut(rest, ")")
	q := &Statement{Relation: relation}
	if key != "" {
		q.Key = strings.Split(key, ",")
	} else {
		q.PRead = Of("a")
	}
	switch {
	case verb == "+":
		q.Type, q.Write = Ins, All()
	case verb == "-":
		q.Type, q.Write = KeyDel, All()
	case verb == "!":
		q.Type, q.Read, q.Write = KeyUpd, Of("a"), Of("a")
	default:
		q.Type, q.Read = KeySel, Of("a")
	}
	if verb == "#" {
		q.Lock = UpdateLock
	}
	if key == "" {
		q.Type++ // from by key to by predicate
	}
	return q
}

// shortProgram makes a program of such words; those in braces are in a loop.
func shortProgram(name, text string, foreignKeys ...string) *Program {
	var body, loop Sequence
	inside := false
	for _, word := range strings.Fields(text) {
		switch {
		case word == "{":
			inside = true
		case word == "}":
			body, loop, inside = append(body, &Loop{Body: loop}), nil, false
		case inside:
			loop = append(loop, short(word))
		default:
			body = append(body, short(word))
		}
	}
	p := NewProgram(name, body)
	byName := make(map[string]*Statement)
	for _, q := range p.Statements() {
		byName[q.Name] = q
	}
	for _, text := range foreignKeys { // as "q1 = f(q2)"
		words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" =()", r) })
		p.ForeignKeys = append(p.ForeignKeys,
			Constraint{Parent: byName[words[0]], ForeignKey: words[1], Child: byName[words[2]]})
	}
	return p
}

// The antidependency is from the statement of the first program that is over X to that of the second one, the last of
// each if there are several.
func TestVulnerableAntidependencies(t *testing.T) {
	for _, c := range []struct {
		name          string
		reads         string
		readsFK       string
		writes        string
		writesFK      string
		at            Level
		ignore        bool // foreign keys and names
		arrive, leave bool
	}{
		{name: "a read and a write", reads: "X(:x)?", writes: "X(:x)!", at: SnapshotIsolation, arrive: true,
			leave: true},
		{name: "a read and an insertion", reads: "X(:x)?", writes: "X(:x)+", at: SnapshotIsolation},
		{name: "a predicate and an insertion", reads: "X()?", writes: "X(:x)+", at: SnapshotIsolation, arrive: true,
			leave: true},
		{name: "an update and a write", reads: "X(:x)!", writes: "X(:x)!", at: SnapshotIsolation},
		{name: "a locked read", reads: "X(:x)#", writes: "X(:x)!", at: SnapshotIsolation, arrive: true},
		{name: "a locked predicate", reads: "X()#", writes: "X(:x)!", at: SnapshotIsolation, arrive: true, leave: true},
		{name: "nothing is written by a lock", reads: "X(:x)?", writes: "X(:x)#", at: SnapshotIsolation},

		{name: "both write it", reads: "X(:x)? X(:x)! X(:x)?", writes: "X(:y)!", at: SnapshotIsolation},
		{name: "both write it, the one later", reads: "Y(:x)? X(:x)?", writes: "X(:y)! Y(:y)!", at: SnapshotIsolation,
			arrive: true, leave: true},
		{name: "both write one beside", reads: "Y(:x)! X(:x)?", writes: "Y(:y)! X(:y)!", at: SnapshotIsolation},
		{name: "one is not asked for that", reads: "Y(:x)! X(:x)?", writes: "Y(:y)! X(:y)!", at: SnapshotIsolation,
			ignore: true, arrive: true, leave: true},
		{name: "one beside only locked", reads: "Y(:x)# X(:x)?", writes: "Y(:y)! X(:y)!", at: SnapshotIsolation,
			arrive: true, leave: true},
		{name: "others beside", reads: "Y(:x)! X(:x)?", writes: "Z(:y)! X(:y)!", at: SnapshotIsolation, arrive: true,
			leave: true},
		{name: "one beside of another name", reads: "Y(:z)! X(:x)?", writes: "Y(:y)! X(:y)!", at: SnapshotIsolation,
			arrive: true, leave: true},
		{name: "one by a part of the key", reads: "Y(:b)! X(:a,:b)?", writes: "Y(:d)! X(:c,:d)!",
			at: SnapshotIsolation},
		{name: "by different parts", reads: "Y(:b)! X(:a,:b)?", writes: "Y(:c)! X(:c,:d)!", at: SnapshotIsolation,
			arrive: true, leave: true},
		{name: "a predicate has no name", reads: "Y(:x)! X()?", readsFK: "q1 = f(q2)", writes: "Y(:x)! X(:x)!",
			writesFK: "q1 = f(q2)",
			at:       SnapshotIsolation, arrive: true, leave: true},
		{name: "deleted beside", reads: "Y(:x)- X(:x)?", writes: "Y(:y)! X(:y)!", at: SnapshotIsolation},

		{name: "both write a parent", reads: "Y(:p)! X(:x)?", readsFK: "q1 = f(q2)", writes: "Y(:p)! X(:x)!",
			writesFK: "q1 = f(q2)", at: SnapshotIsolation},
		{name: "parents by others", reads: "Y(:p)! X(:x)?", readsFK: "q1 = f(q2)", writes: "Y(:p)! X(:x)!",
			writesFK: "q1 = g(q2)",
			at:       SnapshotIsolation, arrive: true, leave: true},

		{name: "written before, without a snapshot", reads: "Y(:x)! X(:x)?", writes: "Y(:y)! X(:y)!",
			at: ReadCommitted},
		{name: "in a loop of its own", reads: "Y(:x)! { X(:x)? }", writes: "Y(:y)! X(:y)!", at: SnapshotIsolation,
			arrive: true, leave: true},
		{name: "in one loop", reads: "{ Y(:x)! X(:x)? }", writes: "Y(:y)! X(:y)!", at: SnapshotIsolation},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := shortProgram("reads", c.reads, texts(c.readsFK)...).unfold()
			to := shortProgram("writes", c.writes, texts(c.writesFK)...).unfold()
			g := &SummaryGraph{Setting: Setting{ForeignKeys: !c.ignore},
				Nodes: []*LTP{from[len(from)-1], to[len(to)-1]}}
			e := Edge{From: 0, FromAt: lastOver(g.Nodes[0], "X"), To: 1, ToAt: lastOver(g.Nodes[1], "X")}
			if got := theRules.vulnerable(g, e, c.at); got != c.arrive {
				t.Errorf("vulnerable as it arrives: %v", got)
			}
			if got := theRules.leaves(g, e); got != c.leave && c.at != ReadCommitted {
				t.Errorf("vulnerable as it departs: %v", got)
			}
		})
	}
}

// A transaction that reads first and then writes a tuple that the other one writes, too, is kept from that by a
// snapshot alone.
func TestLaterWritesProtectWithASnapshotOnly(t *testing.T) {
	g := &SummaryGraph{Setting: Setting{ForeignKeys: true}, Nodes: Unfold(shortProgram("reads", "X(:x)? Y(:x)!"),
		shortProgram("writes", "Y(:y)! X(:y)!"))}
	e := Edge{From: 0, FromAt: 0, To: 1, ToAt: 1}
	if !theRules.vulnerable(g, e, ReadCommitted) || theRules.vulnerable(g, e, SnapshotIsolation) {
		t.Error("the level makes no difference")
	}
}

func texts(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "; ")
}

func lastOver(l *LTP, relation string) int32 {
	last := int32(-1)
	for i, o := range l.Statements {
		if o.Relation == relation {
			last = int32(i)
		}
	}
	return last
}

func TestProgramsThatAreRobustAgainstSnapshotIsolation(t *testing.T) {
	for _, c := range []struct {
		name     string
		programs []string
		want     bool
	}{
		{"a lost update", []string{"X(:x)? X(:x)!"}, true},
		{"a write skew", []string{"X(:x)? Y(:x)!", "Y(:x)? X(:x)!"}, false},
		{"one that reads only", []string{"X(:x)? Y(:y)?", "X(:x)!", "Y(:y)!"}, true},
		{"a long one", []string{"X(:x)? Z(:z)?", "X(:x)! Y(:y)?", "Y(:y)! Z(:z)!"}, false},
		{"locked as it arrives only", []string{"X(:x)# Y(:x)!", "Y(:x)? X(:x)!"}, false},
		{"locked both", []string{"X(:x)# Y(:x)!", "Y(:x)# X(:x)!"}, true},
		{"phantoms", []string{"X()? X(:x)+"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var programs []*Program
			for i, text := range c.programs {
				programs = append(programs, shortProgram(string(rune('A'+i)), text))
			}
			a := Analyze(programs, Setting{ForeignKeys: true})
			if got := a.Robust(Snapshot); got != c.want {
				t.Errorf("robust %v", got)
			}
			if w := a.Witness(Snapshot); c.want != (w == nil) || w != nil && w.Schedule == nil {
				t.Errorf("witness %+v", w)
			}
		})
	}
}

func TestAllocationsAreTheCheapestThatAreSafe(t *testing.T) {
	const rc, si, ser = ReadCommitted, SnapshotIsolation, Serializable
	for _, c := range []struct {
		name     string
		programs []string
		want     []Level
	}{
		{"a lost update", []string{"X(:x)? X(:x)!"}, []Level{si}},
		{"a lost update beside a write", []string{"X(:x)? X(:x)!", "X(:x)!"}, []Level{si, rc}},
		{"a write skew", []string{"X(:x)? Y(:x)!", "Y(:x)? X(:x)!"}, []Level{ser, ser}},
		{"a read skew", []string{"X(:x)? Y(:x)?", "X(:x)! Y(:x)!"}, []Level{si, rc}},
		{"a write skew beside others", []string{"X(:x)? Y(:x)!", "Y(:x)? X(:x)!", "Z(:x)!"}, []Level{ser, ser, rc}},
		{"what a snapshot protects", []string{"Z(:z)? Y(:x)! X(:x)!", "X(:x)? Y(:x)!", "Z(:z)!"}, []Level{si, si, rc}},
		{"nothing in common", []string{"X(:x)!", "Y(:y)?"}, []Level{rc, rc}},
		{"a pivot between two", []string{"X(:x)? Z(:z)?", "X(:x)! Y(:y)?", "Y(:y)! Z(:z)!"}, []Level{ser, ser, ser}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var programs []*Program
			for i, text := range c.programs {
				programs = append(programs, shortProgram(string(rune('A'+i)), text))
			}
			a := Analyze(programs, Setting{ForeignKeys: true})
			if got := a.Allocate(); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
			cheaper := slices.Clone(c.want)
			for i, level := range cheaper {
				for cheaper[i] = rc; cheaper[i] < level; cheaper[i]++ {
					if safe, err := a.Safe(cheaper); safe || err != nil {
						t.Errorf("%v: safe %v, %v", cheaper, safe, err)
					} else if w := a.WitnessFor(cheaper); w == nil || w.Schedule == nil {
						t.Errorf("%v: no schedule", cheaper)
					}
				}
			}
		})
	}
}

// A parent that both lock keeps them apart at READ COMMITTED: who waits for the lock then reads what was committed. (A
// snapshot is older than that, which must not matter here.)
func TestLockedParentsMakeProgramsRobust(t *testing.T) {
	for lock, want := range map[string]bool{"#": true, "?": false} {
		a := Analyze([]*Program{
			shortProgram("A", "Y(:y)"+lock+" X(:x)? Z(:z)!", "q1 = f(q2)"),
			shortProgram("B", "Y(:y)"+lock+" X(:x)! Z(:z)!", "q1 = f(q2)"),
			shortProgram("C", "Z(:z)?"),
		}, Setting{ForeignKeys: true})
		if type2, type1 := a.Robust(TypeII), a.Robust(TypeI, 0, 1); type2 != want || type1 != want {
			t.Errorf("parents with %s: robust %v, and %v by type-I cycles", lock, type2, type1)
		}
	}
}
