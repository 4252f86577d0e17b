package fuzz

import (
	"cmp"
	"context"
	"fmt"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

// alonePerRound is how many transactions share the databases of one round, one behind the other: making them takes
// longer than what is done in them.
const alonePerRound = 10

// aloneRound has an oracle judge a few random transactions, each by itself.
func (h *fuzzer) aloneRound(ctx context.Context, by Oracle, seed uint64, level workload.Isolation) error {
	s := h.aloneScript(seed, level)
	return h.judgeScript(ctx, by, s, h.aloneGenerator(seed, level), seed, level)
}

func (h *fuzzer) aloneGenerator(seed uint64, level workload.Isolation) *random.Generator {
	p := h.Profile
	p.Closed, p.Sessions, p.Transactions = true, 1, min(cmp.Or(p.Transactions, alonePerRound), alonePerRound)
	p.Weights = make(map[string]int)
	for kind, weight := range h.Profile.Weights {
		p.Weights[kind] = weight
	}
	p.Weights["savepoint"] = 0 // what it undoes has no like in autocommit
	server := h.runner.Server
	return random.New(random.Engine{Name: server.Engine, Version: server.Version, Optimistic: level.Optimistic}, p, seed)
}

// aloneScript makes a round's transactions, all of one session.
func (h *fuzzer) aloneScript(seed uint64, level workload.Isolation) oracle.Script {
	g := h.aloneGenerator(seed, level)
	session := scenario.Session{Name: sessionName(0)}
	if h.runner.Server.Engine != dbms.PostgreSQL { // of literals, as of columns
		session.Settings = scenario.Settings{"collation_connection": "utf8mb4_bin"}
	}
	s := &scenario.Scenario{Name: fmt.Sprintf("seed %d", seed), Setup: g.Setup(), Closed: true,
		Sessions: []scenario.Session{session}}
	for n := range g.Transactions() {
		for _, sql := range g.Transaction(n + 1) {
			s.Steps = append(s.Steps, scenario.Step{Session: session.Name, SQL: sql})
		}
	}
	return oracle.Script{Scenario: s, Tables: g.Tables()}
}
