package interop

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/histgen"
)

// gist is what a verdict comes to: the strictest class of cycles, and which reads should not be. Two things
// are not in it, since a history says the same to every list: cases of one class have different names where
// one statement read several rows, and cycles that the same statements make as stricter ones have none.
func gist(r *analyzer.Result) string {
	strictest, reads := len(cycleClasses), map[analyzer.Anomaly]bool{}
	for _, f := range r.Findings {
		if i := slices.IndexFunc(cycleClasses,
			func(names []analyzer.Anomaly) bool { return slices.Contains(names, f.Anomaly) }); i >= 0 {
			strictest = min(strictest, i)
			continue
		}
		a := f.Anomaly
		if a == analyzer.DirtyUpdate {
			a = analyzer.G1a // of whoever reads the list
		}
		reads[a] = true
	}
	var parts []string
	for a := range reads {
		parts = append(parts, string(a))
	}
	slices.Sort(parts)
	if strictest < len(cycleClasses) {
		parts = append(parts, string(cycleClasses[strictest][0]))
	}
	return strings.Join(parts, ", ")
}

// cycleClasses are the names of cycles, the strictest class first.
var cycleClasses = [][]analyzer.Anomaly{
	{analyzer.G0}, {analyzer.G1c},
	{analyzer.GSingle, analyzer.LostUpdate, analyzer.NonRepeatableRead, analyzer.ReadSkew, analyzer.ReadWriteSkew,
		analyzer.OTV, analyzer.GMonotonic},
	{analyzer.GNonadjacent}, {analyzer.G2Item, analyzer.WriteSkew},
}

// export writes transactions in a format.
func export(t testing.TB, info history.Info, txns []*history.Txn, f Format) string {
	t.Helper()
	r := NewRecording()
	if err := r.AddRun(info); err != nil {
		t.Fatal(err)
	}
	for _, x := range txns {
		if err := r.AddTxn(x); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if _, err := r.History().Write(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// judge reads a history and returns the gist of what is found in it.
func judge(t testing.TB, text string, f Format) string {
	t.Helper()
	h, err := Read(strings.NewReader(text), "h", f, Options{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	r, err := h.Analyze(t.Context(), analyzer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return gist(r)
}

// original judges transactions as they are, but for what no format holds: levels and the server.
func original(t testing.TB, info history.Info, txns []*history.Txn) string {
	t.Helper()
	for _, x := range txns {
		x.Level = history.LevelUnknown
	}
	info.Server = history.Server{}
	r, err := analyzer.Analyze([]history.Info{info}, txns)
	if err != nil {
		t.Fatal(err)
	}
	return gist(r)
}

// plainHistory reports whether lists can say all that matters of a history: no write was undone within its
// transaction, and no version was replaced twice.
func plainHistory(txns []*history.Txn, verdict string) bool {
	for _, x := range txns {
		for _, s := range x.Stmts {
			if s.Void && s.Kind != history.Select {
				return false
			}
		}
	}
	return !strings.Contains(verdict, string(analyzer.LostWrite))
}

func TestExportedListsGetTheSameVerdict(t *testing.T) {
	compared, anomalous := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 5))
		c := histgen.Random(rng)
		txns := histgen.Generate(rng, c)
		want := original(t, c.Info(), txns)
		if !plainHistory(txns, want) {
			continue
		}
		compared++
		if want != "" {
			anomalous++
		}
		for _, f := range []Format{Elle, JepsenJSON} {
			got := judge(t, export(t, c.Info(), txns, f), f)
			// What was read of a list with elements that were rolled back may contradict what was read later.
			if got != want && (got == "" || !strings.Contains(want, string(analyzer.G1a))) {
				t.Errorf("seed %d, %s: found %q, want %q", seed, f, got, want)
			}
		}
	}
	if compared < 200 || anomalous < 20 {
		t.Errorf("only %d histories were compared, %d of them with anomalies", compared, anomalous)
	}
}

func TestExportedRegistersShowNothingThatWasNot(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	found := make(map[Format]int)
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 6))
		c := histgen.Random(rng)
		txns := histgen.Generate(rng, c)
		want := original(t, c.Info(), txns)
		for _, f := range []Format{ElleRW, Plume, DBCop} {
			text := export(t, c.Info(), txns, f)
			if text == "" {
				continue // Plume's format has no transactions without reads and writes
			}
			got := judge(t, text, f)
			if got != "" && want == "" {
				t.Errorf("seed %d, %s: found %q in a history without anomalies", seed, f, got)
			}
			if got != "" {
				found[f]++
			}
		}
		if want != "" {
			found[""]++
		}
	}
	for _, f := range []Format{ElleRW, Plume, DBCop} {
		if found[f] < found[""]/4*3 {
			t.Errorf("%s: anomalies were found in %d histories of %d", f, found[f], found[""])
		}
	}
}
