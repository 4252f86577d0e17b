package histgen

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/bruteforce"
)

// Each engine keeps its promise, and does not always keep a stronger one.
func TestEnginesKeepTheirPromisesAndNoMore(t *testing.T) {
	type promise struct {
		name string
		kept func([]*history.Txn, ...bruteforce.PredicateRead) bool
	}
	serializable := promise{"serializable", bruteforce.Serializable}
	snapshot := promise{"snapshot isolation", bruteforce.SnapshotIsolation}
	committed := promise{"PL-2", bruteforce.ReadCommitted}
	for e, c := range map[Engine]struct{ keeps, breaks *promise }{
		Serial:          {&serializable, nil},
		Locking:         {&serializable, nil},
		Snapshot:        {&snapshot, &serializable},
		RepeatableRead:  {&committed, &snapshot},
		ReadCommitted:   {&committed, &snapshot},
		ReadUncommitted: {nil, &committed},
		Broken:          {nil, &committed},
	} {
		broken := 0
		for seed := range uint64(1500) {
			rng := rand.New(rand.NewPCG(seed, uint64(e)))
			config := Config{Engine: e, Txns: 3, Rows: 2, Ops: 4}
			h, reads := Generate(rng, config), []bruteforce.PredicateRead(nil)
			if seed%2 > 0 {
				h, reads = GenerateWithPredicates(rng, config)
			}
			if c.keeps != nil && !c.keeps.kept(h, reads...) {
				t.Fatalf("engine %d, seed %d: not %s", e, seed, c.keeps.name)
			}
			if c.breaks != nil && !c.breaks.kept(h, reads...) {
				broken++
			}
		}
		if c.breaks != nil && broken == 0 {
			t.Errorf("engine %d always gives %s", e, c.breaks.name)
		}
	}
}

func TestSameSeedGivesSameHistory(t *testing.T) {
	generate := func() []*history.Txn {
		rng := rand.New(rand.NewPCG(5, 5))
		return Generate(rng, Random(rng))
	}
	if !reflect.DeepEqual(generate(), generate()) {
		t.Error("two histories of one seed differ")
	}
}
