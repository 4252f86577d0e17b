package tempdb

import (
	"slices"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/known"
)

// try runs a workload, small.
func try(t *testing.T, target dsn.Target, name string, plant bool, level history.Level) *WorkloadRun {
	t.Helper()
	did, err := RunWorkload(t.Context(), target,
		WorkloadOptions{Workload: name, Options: known.Options{Scale: 1, Plant: plant},
			Config: workload.Config{Transactions: 200, Isolation: workload.Isolation{Level: level},
				Think: workload.DefaultThink, Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v%s", did.Outcome, did.Verdict())
	if n := did.Outcome.Transactions(); n != 200 {
		t.Errorf("%d transactions, want 200", n)
	}
	return did
}

// What breaks at READ COMMITTED is found there.
func TestBrokenInvariantsAndFindingsGoTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	onEach(t, func(t *testing.T, target dsn.Target) {
		for _, tt := range []struct {
			name      string
			plant     bool
			invariant string // empty: any
			anomaly   string // empty: any
		}{
			{"counter", false, "sum of the counters", "lost update"},
			{"bank", false, "sum of the balances", "lost update"},
			{"queue", true, "jobs done more than once", "lost update"},
			{"smallbank", false, "", ""},
			{"auction", true, "bids raised more than once", "lost update"},
			{"tpcc", true, "8: W_YTD is what was paid", "lost update"},
			{"list-append", false, "reads of a part of a transaction", ""},
		} {
			t.Run(tt.name, func(t *testing.T) {
				did := try(t, target, tt.name, tt.plant, history.ReadCommitted)
				if broken := did.Outcome.Broken(); len(broken) == 0 || tt.invariant != "" &&
					!slices.Contains(broken, tt.invariant) {
					t.Errorf("%q holds", tt.invariant)
				}
				if tt.anomaly != "" && !slices.Contains(did.anomalies(), tt.anomaly) {
					t.Errorf("no %q is found", tt.anomaly)
				}
				if did.Missed() {
					t.Error("what broke the invariants is not found")
				}
			})
		}
	})
}

func TestSerializableWorkloadsAreRightAndWithoutFindings(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	onEach(t, func(t *testing.T, target dsn.Target) {
		for _, k := range known.Kinds {
			t.Run(k.Name, func(t *testing.T) { right(t, try(t, target, k.Name, k.Plants, history.Serializable)) })
		}
	})
}

// Without a mistake planted. That no invariant is broken does not say that there is no anomaly: TPC-C has read skew.
func TestWorkloadsMadeForReadCommittedAreRightThere(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	onEach(t, func(t *testing.T, target dsn.Target) {
		for _, k := range known.Kinds {
			if k.Plants {
				t.Run(k.Name, func(t *testing.T) {
					if broken := try(t, target, k.Name, false,
						history.ReadCommitted).Outcome.Broken(); len(broken) > 0 {
						t.Errorf("broken: %q", broken)
					}
				})
			}
		}
	})
}

func right(t *testing.T, did *WorkloadRun) {
	t.Helper()
	if len(did.Outcome.Broken()) > 0 || len(did.Result.Findings) > 0 {
		t.Errorf("broken %q, found %q", did.Outcome.Broken(), did.anomalies())
	}
}
