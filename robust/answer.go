package robust

// An Answer is all that can be said of some programs in one setting.
type Answer struct {
	*Analysis
	Tests []TestAnswer // in the order of the tests
	// Levels is the cheapest level for each program that keeps the whole serializable: see [Analysis.Allocate].
	Levels []Level
	// Promotion makes more of the programs robust against READ COMMITTED; nil: see [Promote].
	Promotion *Promotion
}

// A TestAnswer is what one test says.
type TestAnswer struct {
	Test   Test
	Robust bool // all programs together
	Subsets
	// Witnesses are of the first of Minimal, one for each.
	Witnesses []*Witness
}

// Limits bound an answer, which can be exponentially long; 0 is no limit.
type Limits struct {
	Subsets   int // maximal robust subsets of each test
	Witnesses int
}

// Assess answers all questions about programs, which have passed [Workload.Check].
func Assess(programs []*Program, s Setting, limits Limits) *Answer {
	a := &Answer{Analysis: Analyze(programs, s)}
	a.Levels = a.Allocate()
	a.Promotion = Promote(programs, s)
	for _, t := range []Test{TypeII, TypeI, Snapshot} {
		of := TestAnswer{Test: t, Subsets: a.Subsets(t, limits.Subsets)}
		of.Robust = len(of.Minimal) == 0
		cores := of.Minimal
		if limits.Witnesses > 0 {
			cores = cores[:min(len(cores), limits.Witnesses)]
		}
		for _, core := range cores {
			of.Witnesses = append(of.Witnesses, a.Witness(t, core...))
		}
		a.Tests = append(a.Tests, of)
	}
	return a
}

// Of returns what a test says.
func (a *Answer) Of(t Test) *TestAnswer { return &a.Tests[t] }
