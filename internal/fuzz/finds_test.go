package fuzz

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/scenario/oracle/sdg"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

var (
	findsRounds = flag.Uint64("finds.rounds", 1, "judge the rounds of so many seeds")
	findsSeed   = flag.Uint64("finds.seed", 55, "the first of these seeds")
	findsOrders = flag.Int("finds.orders", 6, "play at most so many orders of a find")
)

// TestTablesOfFinds prints what TxCheck's tables 4 and 5 have, of the scripts in which the oracle serial finds
// something, not made small: what they are made of, whether their transactions have an order, how many orders their
// statements have and how many of these show it.
//
//	go test ./internal/fuzz -run TestTablesOfFinds -v -finds.seed 1 -finds.rounds 400 -finds.orders 100
func TestTablesOfFinds(t *testing.T) {
	if testing.Short() {
		t.Skip("each find is played in some orders, on a server")
	}
	testdb.Only(t, "the seed is that of a hunt on MariaDB 10.11", "mariadb")
	s := openStage(t, testdb.Current(t).URL())
	profile, _ := random.Named("deep")
	level := workload.Isolation{Level: history.RepeatableRead}
	t.Log("seed  transactions  statements  txn-cycle  sort    trigger      kinds of dependencies")
	found, cycles := 0, 0
	for seed := *findsSeed; seed < *findsSeed+*findsRounds; seed++ {
		h := &fuzzer{Options: Options{Profile: profile, Seed: seed}, runner: s}
		script, _ := h.serialScript(seed, level)
		j := &oracle.Serial{Play: s.Direct, Record: s.Record, Server: s.Server, Random: rand.New(rand.NewPCG(seed, 0)),
			Orders: 3}
		v, err := j.Judge(t.Context(), script, level.Level)
		if err != nil {
			t.Fatal(err)
		}
		if !v.Wrong() {
			continue
		}
		j.Orders, j.Random = *findsOrders, rand.New(rand.NewPCG(seed, 0))
		if v, err = j.Judge(t.Context(), script, level.Level); err != nil {
			t.Fatal(err)
		}
		o, cyclic := v.Orders, ""
		found++
		if !v.Graph.TransactionsHaveOrder() {
			cyclic = "yes"
			cycles++
		}
		sort := fmt.Sprint(o.There)
		if o.More {
			sort += "*"
		}
		t.Logf("%4d  %12d  %10d  %-9s  %-6s  %3d of %-3d  %s", seed, v.Transactions, v.Statements, cyclic, sort,
			o.Wrong, o.Played, strings.Join(kindsOf(v.Graph), ", "))
	}
	t.Logf("%d of %d rounds show something; of %d of these the transactions have no order", found, *findsRounds, cycles)
	if found == 0 && *findsSeed == 55 {
		t.Error("nothing was found")
	}
}

func kindsOf(g *sdg.Graph) (all []string) {
	for _, e := range g.Edges() {
		if name := e.Kind.String(); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
