package analyzer

import (
	"math/rand/v2"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/bruteforce"
	"github.com/isotap/isotap/internal/histgen"
)

// TestFindsSomethingHoweverShortTheSearch gives the search for longer cycles next to no time: what it then does not
// walk is counted, and is no reason to miss a history.
func TestFindsSomethingHoweverShortTheSearch(t *testing.T) {
	forRandomHistories(t, 2, func(t *testing.T, rng *rand.Rand, c generated, h []*history.Txn) {
		r, err := analyzeBy(Options{Work: 1 + rng.IntN(8)}, []history.Info{c.Info()}, h)
		if err != nil {
			t.Fatal(err)
		}
		if want := bruteforce.Serializable(h, c.reads...); want != (len(withoutOrders(r.Findings)) == 0) {
			t.Errorf("serializable: %v, findings: %v", want, names(r))
		}
	})
}

// TestAShortSearchOfALongHistoryTellsCycles does so where there is more to search than there is time: of what is left
// another search finds cycles, and of one rw too, which all begin with it.
func TestAShortSearchOfALongHistoryTellsCycles(t *testing.T) {
	n := 200
	if testing.Short() {
		n = 60
	}
	for seed := range n {
		rng := rand.New(rand.NewPCG(uint64(seed), 2))
		c := histgen.Config{Engine: histgen.Engine(1 + rng.IntN(int(histgen.Engines)-1)), Txns: 100 + rng.IntN(300),
			Rows: 20 + rng.IntN(100), Ops: 3 + rng.IntN(8), Open: 8 + rng.IntN(30)}
		r, err := analyzeBy(Options{Work: 1 + rng.IntN(200)}, []history.Info{c.Info()}, histgen.Generate(rng, c))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Findings {
			for i, d := range f.Witness {
				if next := f.Witness[(i+1)%len(f.Witness)]; len(f.Witness) > 1 && d.To != next.From {
					t.Errorf("history %d (%+v): the cycle of %s is not closed", seed, c, f.Anomaly)
				}
			}
		}
	}
}
