package fuzz

import (
	"fmt"
	"math/rand/v2"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/workload/random"
)

// atMost is what somebody asks for, bounded; without that it is the bound.
func atMost(asked, most int) int {
	if asked == 0 {
		return most
	}
	return min(asked, most)
}

// mixed makes a script of a generator's transactions: each step is the next one of a session that is drawn.
func (h *fuzzer) mixed(g *random.Generator, seed uint64) oracle.Script {
	s := &scenario.Scenario{Name: fmt.Sprintf("seed %d", seed), Setup: g.Setup(), Closed: true}
	var settings scenario.Settings
	if h.runner.Server.Engine != dbms.PostgreSQL { // of literals, as of columns
		settings = scenario.Settings{"collation_connection": "utf8mb4_bin"}
	}
	left := make([][]string, g.Sessions())
	for i := range left {
		s.Sessions = append(s.Sessions, scenario.Session{Name: sessionName(i), Settings: settings})
	}
	steps := 0
	for n := range g.Transactions() {
		texts := g.Transaction(n + 1)
		left[n%len(left)] = append(left[n%len(left)], texts...)
		steps += len(texts)
	}
	draw := rand.New(rand.NewPCG(seed, uint64(len(left))))
	for len(s.Steps) < steps {
		if i := draw.IntN(len(left)); len(left[i]) > 0 {
			s.Steps = append(s.Steps, scenario.Step{Session: s.Sessions[i].Name, SQL: left[i][0]})
			left[i] = left[i][1:]
		}
	}
	return oracle.Script{Scenario: s, Tables: g.Tables()}
}
