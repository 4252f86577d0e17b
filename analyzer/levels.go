package analyzer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A TheoryLevel is an isolation level as the literature defines it.
type TheoryLevel struct {
	Name    string
	Aliases []string // other names of it, Elle's among them
	Forbids []Anomaly
	Source  string
	// Moments says that it goes by when snapshots were taken. A [Verdict] leaves it out: of a server that takes one for
	// each statement there is no history that satisfies it, and no cycle need show that.
	Moments bool
	// Predicates are what it forbids that is no case of a phenomenon of rows alone, by which levels are ordered here.
	Predicates []Anomaly
}

// TheoryLevels are the levels that the anomalies found here can tell apart, weaker ones before stronger
// ones. Each forbids what is a case of one of its phenomena (see [Anomaly.Is]), and with every other level what no
// history of Adya's has at all: garbage reads, orders that do not fit, writes that are lost, reads that do not
// fit what their own transaction wrote (Adya 1999, 3.1: versions of a row are in one order, and a transaction sees
// its own last write).
//
// What is said of predicates (PL-3 beyond PL-2.99) needs predicates to be observed (mode predicates).
var TheoryLevels = []TheoryLevel{
	{Name: "PL-1", Aliases: []string{"read-uncommitted"}, Forbids: []Anomaly{G0}, Source: "Adya 1999, 4.2.1"},
	{Name: "PL-2", Aliases: []string{"read-committed"}, Forbids: []Anomaly{G1a, G1b, G1c}, Source: "Adya 1999, 4.2.2"},
	{Name: "PL-CS", Aliases: []string{"cursor-stability"}, Forbids: []Anomaly{G1a, G1b, G1c, GCursor},
		Source: "Adya 1999, 4.3.2"},
	{Name: "MAV", Aliases: []string{"monotonic-atomic-view"}, Forbids: []Anomaly{G1a, G1b, G1c, OTV},
		Source: "Bailis et al. 2013, Highly Available Transactions, 5.1.2"},
	{Name: "PL-2L", Aliases: []string{"monotonic-view"}, Forbids: []Anomaly{G1a, G1b, G1c, GMonotonic},
		Source: "Adya 1999, 4.3.1"},
	{Name: "RA", Aliases: []string{"read-atomic"}, Forbids: []Anomaly{G1a, G1b, G1c, FracturedRead},
		Source: "Bailis et al. 2014, Scalable Atomic Visibility with RAMP Transactions, 3: fractured reads; " +
			"Biswas and Enea 2019: of one row, too"},
	{Name: "PL-2+", Aliases: []string{"consistent-view"}, Forbids: []Anomaly{G1a, G1b, G1c, GSingle},
		Source: "Adya 1999, 4.3.3", Predicates: []Anomaly{Phantom}},
	{Name: "PL-FCV", Aliases: []string{"forward-consistent-view"}, Forbids: []Anomaly{G1a, G1b, G1c, GSIb},
		Source: "Adya 1999, 4.3.5"},
	{Name: "SI", Aliases: []string{"snapshot-isolation"}, Forbids: []Anomaly{G1a, G1b, G1c, GNonadjacent},
		Predicates: []Anomaly{PhantomNonadjacent},
		Source: "Cerone and Gotsman 2018, Analysing Snapshot Isolation: every cycle has two adjacent rw; " +
			"snapshots need not be the newest"},
	{Name: "PL-SI", Aliases: []string{"adya-snapshot-isolation"}, Forbids: []Anomaly{G1a, G1b, G1c.Realtime(), GSIa,
		GSIb, GNonadjacent.Realtime()}, Moments: true, Predicates: []Anomaly{PhantomNonadjacent},
		Source: "Adya 1999, 4.3.4: with G-SIa and G-SIb a history has none of the others either"},
	{Name: "PL-2.99", Aliases: []string{"repeatable-read"}, Forbids: []Anomaly{G1a, G1b, G1c, G2Item},
		Source: "Adya 1999, 4.2.3"},
	{Name: "PL-3", Aliases: []string{"serializable"}, Forbids: []Anomaly{G1a, G1b, G1c, G2},
		Source: "Adya 1999, 4.2.4"},
	{Name: "strong session PL-1", Aliases: []string{"strong-session-read-uncommitted"},
		Forbids: []Anomaly{G0.Process()}, Source: strongSession},
	{Name: "strong session PL-2", Aliases: []string{"strong-session-read-committed"},
		Forbids: []Anomaly{G1a, G1b, G1c.Process()}, Source: strongSession},
	{Name: "strong session MAV", Aliases: []string{"strong-session-monotonic-atomic-view"},
		Forbids: []Anomaly{G1a, G1b, G1c.Process(), OTV.Process()},
		Source:  "Biswas and Enea 2019, On the Complexity of Checking Transactional Consistency: their read committed, AWDIT's"},
	{Name: "strong session RA", Aliases: []string{"strong-session-read-atomic"},
		Forbids: []Anomaly{G1a, G1b, G1c.Process(), FracturedRead.Process()},
		Source:  "Biswas and Enea 2019: their read atomic, AWDIT's and Plume's"},
	{Name: "CC", Aliases: []string{"causal-consistency"}, Forbids: []Anomaly{G1a, G1b, G1c.Process(), GCausal},
		Source: "Biswas and Enea 2019: their causal consistency, AWDIT's and Plume's transactional causal consistency"},
	{Name: "strong session SI", Aliases: []string{"strong-session-snapshot-isolation"},
		Forbids: []Anomaly{G1a, G1b, G1c.Process(), GNonadjacent.Process()}, Source: strongSession,
		Predicates: []Anomaly{PhantomNonadjacent}},
	{Name: "strong session PL-3", Aliases: []string{"strong-session-serializable"},
		Forbids: []Anomaly{G1a, G1b, G1c.Process(), G2.Process()}, Source: strongSession},
	{Name: "strong PL-1", Aliases: []string{"strong-read-uncommitted"}, Forbids: []Anomaly{G0.Realtime()},
		Source: strong},
	{Name: "strong PL-2", Aliases: []string{"strong-read-committed"}, Forbids: []Anomaly{G1a, G1b, G1c.Realtime()},
		Source: strong},
	{Name: "strong SI", Aliases: []string{"strong-snapshot-isolation"}, Forbids: []Anomaly{G1a, G1b, G1c.Realtime(),
		GSIb, GNonadjacent.Realtime()}, Predicates: []Anomaly{PhantomNonadjacent}, Source: strong},
	{Name: "PL-SS", Aliases: []string{"strong-serializable", "strict-serializable"},
		Forbids: []Anomaly{G1a, G1b, G1c.Realtime(), GSIb, G2.Realtime()},
		Source:  "Adya 1999, 4.2.4, with the order of time; Elle's strict serializability"},
}

const (
	strongSession = "Daudjee and Salem 2004 and 2006: the level, and the order of each session's transactions"
	strong        = "Daudjee and Salem 2006: the level, and the order of time; Elle's name"
)

// Process is the variant of a phenomenon whose cycles also go by the order of each session's transactions.
func (a Anomaly) Process() Anomaly { return a + "-process" }

// Realtime is the variant of a phenomenon whose cycles also go from a transaction that had ended to one that began
// after that, by the clock of one proxy.
func (a Anomaly) Realtime() Anomaly { return a + "-realtime" }

// variant reports whether the anomaly's cycles go by an order that is no dependency.
func (a Anomaly) variant() bool {
	return strings.HasSuffix(string(a), "-process") || strings.HasSuffix(string(a), "-realtime")
}

// never are the findings that no level permits.
var never = []Anomaly{GarbageRead, IncompatibleOrder, LostWrite, Internal, FutureRead, DuplicateElements,
	CyclicVersions}

// cases says of what an anomaly is a case at once.
var cases = map[Anomaly][]Anomaly{
	G0:                 {G1c},
	DirtyUpdate:        {G1a},
	LostUpdate:         {GCursor},
	GCursor:            {GSingle},
	OTV:                {GMonotonic, ReadSkew, FracturedRead},
	GMonotonic:         {GSingle},
	NonRepeatableRead:  {FracturedRead},
	ReadSkew:           {FracturedRead},
	FracturedRead:      {GSingle},
	GCausal:            {GSingle.Process()},
	ReadWriteSkew:      {GSingle},
	GSingle:            {GNonadjacent, GSIb},
	GNonadjacent:       {G2Item},
	WriteSkew:          {G2Item},
	PMP:                {Phantom},
	Phantom:            {PhantomNonadjacent, GSIb},
	PhantomNonadjacent: {G2},
	PhantomSkew:        {G2},
	G2Item:             {G2},

	FracturedRead.Process(): {GCausal},

	GSingle.Process():  {GSIb},
	GSingle.Realtime(): {GSIb},
}

// varied are the phenomena that have variants.
var varied = []Anomaly{G0, G1c, OTV, FracturedRead, GSingle, GNonadjacent, G2Item, G2}

// Is reports whether an anomaly is a case of a phenomenon: of itself, of a weaker one, or of a weaker one's variant (by
// the order of sessions, which is a case of the order of time).
func (a Anomaly) Is(phenomenon Anomaly) bool { return a == phenomenon || weaker[a][phenomenon] }

// weaker holds all that an anomaly is a case of.
var weaker = casesOf()

func casesOf() map[Anomaly]map[Anomaly]bool {
	all := make(map[Anomaly]map[Anomaly]bool)
	var of func(a Anomaly) map[Anomaly]bool
	of = func(a Anomaly) map[Anomaly]bool {
		if all[a] == nil {
			all[a] = make(map[Anomaly]bool)
			for _, k := range a.kinds() {
				all[a][k] = true
				maps.Copy(all[a], of(k))
			}
		}
		return all[a]
	}
	for a := range cases {
		of(a)
	}
	return all
}

// kinds returns what an anomaly is a case of at once.
func (a Anomaly) kinds() []Anomaly {
	kinds := slices.Clone(cases[a])
	if slices.Contains(varied, a) {
		kinds = append(kinds, a.Process())
	}
	if base, ok := strings.CutSuffix(string(a), "-process"); ok {
		kinds = append(kinds, Anomaly(base).Realtime())
		for _, weaker := range cases[Anomaly(base)] {
			if slices.Contains(varied, weaker) {
				kinds = append(kinds, weaker.Process())
			}
		}
	}
	if base, ok := strings.CutSuffix(string(a), "-realtime"); ok {
		for _, weaker := range cases[Anomaly(base)] {
			if slices.Contains(varied, weaker) {
				kinds = append(kinds, weaker.Realtime())
			}
		}
	}
	return kinds
}

// ForbidsAnomaly reports whether the level forbids an anomaly.
func (l *TheoryLevel) ForbidsAnomaly(a Anomaly) bool {
	return slices.Contains(never, a) || slices.ContainsFunc(l.Forbids, a.Is) || slices.ContainsFunc(l.Predicates, a.Is)
}

// FindLevel finds a level of the theory by any of its names, in upper or lower case.
func FindLevel(name string) (*TheoryLevel, error) {
	var all []string
	for i := range TheoryLevels {
		l := &TheoryLevels[i]
		for _, n := range append([]string{l.Name}, l.Aliases...) {
			if strings.EqualFold(n, name) || strings.EqualFold(strings.ReplaceAll(n, " ", "-"), name) {
				return l, nil
			}
		}
		all = append(all, l.CommonName())
	}
	return nil, fmt.Errorf("level %q is none of %s", name, strings.Join(all, ", "))
}

// CommonName is the level's usual name outside of Adya's thesis.
func (l *TheoryLevel) CommonName() string {
	return l.Aliases[len(l.Aliases)-1]
}

// stronger says, by their places in [TheoryLevels], which levels forbid all that another one does.
var stronger = implications()

func implications() [][]bool {
	table := make([][]bool, len(TheoryLevels))
	for i := range TheoryLevels {
		for j := range TheoryLevels {
			table[i] = append(table[i], !slices.ContainsFunc(TheoryLevels[j].Forbids,
				func(a Anomaly) bool { return !TheoryLevels[i].ForbidsAnomaly(a) }))
		}
	}
	return table
}

// base returns the phenomenon that a finding is a case of by the kinds of its dependencies alone.
func (a Anomaly) base() Anomaly {
	switch a {
	case DirtyUpdate:
		return G1a
	case LostUpdate, OTV, GMonotonic, NonRepeatableRead, ReadSkew, ReadWriteSkew:
		return GSingle
	case Phantom, PMP:
		return GSingle
	case PhantomNonadjacent:
		return GNonadjacent
	case WriteSkew, PhantomSkew, G2:
		return G2Item
	default:
		return a
	}
}

// weakest returns the weakest theoretical level that forbids an anomaly; empty where every level does.
func weakest(a Anomaly) string {
	for i := range TheoryLevels {
		if TheoryLevels[i].ForbidsAnomaly(a) {
			return TheoryLevels[i].Name
		}
	}
	return ""
}

// forbids reports whether the promise excludes a phenomenon whatever the reads.
func (p *Promise) forbids(a Anomaly) bool { return slices.Contains(p.Forbids, a.base()) }
