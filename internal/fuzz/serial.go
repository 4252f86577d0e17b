package fuzz

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

// The bounds of a script for [Serial]: of a longer one most statements depend on each other in cycles.
const (
	serialSessions     = 3
	serialTransactions = 5
	serialStatements   = 4
)

// serialRound judges a few random transactions that are interleaved at random.
func (h *fuzzer) serialRound(ctx context.Context, seed uint64, level workload.Isolation) error {
	s, g := h.serialScript(seed, level)
	return h.judgeScript(ctx, Serial, s, g, seed, level)
}

func (h *fuzzer) serialScript(seed uint64, level workload.Isolation) (oracle.Script, *random.Generator) {
	p := h.Profile
	p.Closed = true
	p.Sessions = min(cmp.Or(p.Sessions, serialSessions), serialSessions)
	p.Transactions = min(cmp.Or(p.Transactions, serialTransactions), serialTransactions)
	p.Statements = min(cmp.Or(p.Statements, serialStatements), serialStatements)
	p.Weights = maps.Clone(p.Weights)
	if p.Weights == nil {
		p.Weights = make(map[string]int)
	}
	p.Weights["savepoint"] = 0 // what it undoes has no like in autocommit
	server := h.runner.Server
	g := random.New(random.Engine{Name: server.Engine, Version: server.Version, Optimistic: level.Optimistic}, p, seed)
	return h.interleaved(g, seed), g
}

// interleaved makes a script of a generator's transactions: each step is the next one of a session that is drawn.
func (h *fuzzer) interleaved(g *random.Generator, seed uint64) oracle.Script {
	s := &scenario.Scenario{Name: fmt.Sprintf("seed %d", seed), Setup: g.Setup()}
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
		i := n % len(left)
		left[i] = append(left[i], g.Transaction(n+1)...)
		steps += len(g.Transaction(n + 1))
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for len(s.Steps) < steps {
		if i := r.IntN(len(left)); len(left[i]) > 0 {
			s.Steps = append(s.Steps, scenario.Step{Session: sessionName(i), SQL: left[i][0]})
			left[i] = left[i][1:]
		}
	}
	return oracle.Script{Scenario: s, Tables: g.Tables(), Closed: true}
}
