package mining_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/tempdb"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/definitions"
	"github.com/isotap/isotap/robust/footprint"
	"github.com/isotap/isotap/robust/mining"
	"github.com/isotap/isotap/robust/program"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/known"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// A benchmark is recorded, and compared with its programs as files.
type benchmark struct {
	name         string
	transactions int
	// names tells its programs by a part of what they do; the first that is found counts.
	names [][2]string
	want  string // the maximal robust subsets with attributes and foreign keys
}

var benchmarks = []benchmark{
	{"smallbank", 120, [][2]string{{"UPDATE checking SET bal = ?", "Amalgamate"}, {"UPDATE savings", "TransactSavings"},
		{"SELECT bal, changes FROM savings WHERE custid = ?; SELECT bal, changes FROM checking WHERE custid = ?; UPDATE", "WriteCheck"},
		{"UPDATE checking", "DepositChecking"}, {"SELECT bal", "Balance"}}, "[[Balance DepositChecking]]"},
	{"tpcc", 250, [][2]string{{"INSERT INTO new_order", "NewOrder"}, {"UPDATE warehouse", "Payment"},
		{"DELETE", "Delivery"},
		{"JOIN stock", "StockLevel"}, {"FROM orders", "OrderStatus"}, {"FROM new_order", "Delivery"}},
		"[[NewOrder Payment] [OrderStatus Payment StockLevel]]"},
}

// TestMinedProgramsAreTheTrafficsPrograms: what is mined from traffic is what its programs are.
func TestMinedProgramsAreTheTrafficsPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for name, url := range map[string]func() string{
		"mysql":      func() string { return testdb.MariaDB(t).URL() },
		"postgresql": func() string { return testdb.PostgreSQL(t).URL() },
	} {
		for _, b := range benchmarks {
			t.Run(name+"/"+b.name, func(t *testing.T) {
				target, err := dsn.Parse(url())
				if err != nil {
					t.Fatal(err)
				}
				b.test(t, target)
			})
		}
	}
}

func (b *benchmark) test(t *testing.T, target dsn.Target) {
	family := target.Family
	recording, tables := b.record(t, target)
	if more, err := os.ReadFile("testdata/" + b.name + ".references.sql"); err == nil {
		tables += string(more)
	}
	schema, remarks, err := footprint.ReadSchema(family, tables)
	if err != nil || len(remarks) > 0 {
		t.Fatalf("%v %v\n%s", err, remarks, tables)
	}
	written, err := os.ReadFile("testdata/" + b.name + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	source, err := program.Compile(b.name, family, schema, program.Source{Name: b.name, Text: string(written)})
	if err != nil {
		t.Fatal(err)
	}
	mined := b.mine(t, recording, mining.Options{Family: family, Schema: schema})
	for _, s := range robust.Settings {
		want, have := subsets(source, s), subsets(mined, s)
		if have != want {
			t.Errorf("%s: %s, want %s", s, have, want)
		}
		if s == (robust.Setting{ForeignKeys: true}) && want != b.want {
			t.Errorf("%s: the source's are %s, want %s", s, want, b.want)
		}
	}
}

// record runs the benchmark, one transaction after the other, and returns the recording and the definitions of the
// tables.
func (b *benchmark) record(t *testing.T, target dsn.Target) (recording, tables string) {
	w, err := known.New(b.name, known.Options{Scale: 1})
	if err != nil {
		t.Fatal(err)
	}
	recording = filepath.Join(t.TempDir(), "recording")
	database := "isotap_mining_" + b.name
	_, err = tempdb.Run(t.Context(), target, tempdb.Options{Database: database, Recording: recording},
		func(ctx context.Context, dsn string) error {
			db, err := workload.DialectOf(dsn).Open(dsn, false)
			if err != nil {
				return err
			}
			defer db.Close()
			create, fill := w.Setup()
			if err := workload.Setup(ctx, db, create, fill); err != nil {
				return err
			}
			direct := target
			direct.Database = database
			if tables, err = definitions.Read(ctx, direct); err != nil {
				return err
			}
			_, err = workload.Run(ctx, dsn, w, workload.Config{Clients: 1, Transactions: b.transactions, Seed: 1,
				Isolation: workload.Isolation{Level: history.ReadCommitted}})
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	return recording, tables
}

// mine returns the programs of a recording under the names of the benchmark's.
func (b *benchmark) mine(t *testing.T, recording string, o mining.Options) *robust.Workload {
	r, err := recorder.Open(recording)
	if err != nil {
		t.Fatal(err)
	}
	// The benchmark's programs are explicit transactions; what filled the tables, and checks them in the end, is not.
	explicit := func(yield func(*history.Txn, error) bool) {
		for txn, err := range r.Txns(t.Context()) {
			if (err != nil || !txn.Implicit) && !yield(txn, err) {
				return
			}
		}
	}
	mined, err := mining.Mine(explicit, o)
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	if len(mined.Unreadable) > 0 {
		t.Errorf("not read: %q", mined.Unreadable)
	}
	for i, p := range mined.Programs {
		text := strings.Join(p.Shapes, "; ")
		for _, name := range b.names {
			if strings.Contains(text, name[0]) {
				mined.Workload.Programs[i].Name = name[1]
				break
			}
		}
		t.Logf("%s, %d calls: %s %v", mined.Workload.Programs[i].Name, p.Calls, text, len(p.Shapes))
	}
	return mined.Workload
}

// subsets writes the maximal sets of names whose programs are robust together. A name stands for all programs that have
// it.
func subsets(w *robust.Workload, s robust.Setting) string {
	named := map[string][]int{}
	for i, p := range w.Programs {
		named[p.Name] = append(named[p.Name], i)
	}
	names := slices.Sorted(maps.Keys(named))
	a := robust.Analyze(w.Programs, s)
	var sets []uint
	for set := uint(1<<len(names)) - 1; set > 0; set-- {
		var programs []int
		for i, name := range names {
			if set>>i&1 == 1 {
				programs = append(programs, named[name]...)
			}
		}
		if a.Robust(robust.TypeII, programs...) &&
			!slices.ContainsFunc(sets, func(larger uint) bool { return larger&set == set }) {
			sets = append(sets, set)
		}
	}
	var all []string
	for _, set := range sets {
		var of []string
		for i, name := range names {
			if set>>i&1 == 1 {
				of = append(of, name)
			}
		}
		all = append(all, fmt.Sprint(of))
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}
