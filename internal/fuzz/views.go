package fuzz

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

// The most that one round of [Views] has: few statements in many orders tell more than many in one.
const (
	viewsTransactions = 6
	viewsSessions     = 3
	viewsStatements   = 5
)

// viewsRound judges a few random transactions of some sessions, in a random order of their statements.
func (h *fuzzer) viewsRound(ctx context.Context, seed uint64, level workload.Isolation) error {
	return h.judgeScript(ctx, Views, h.viewsScript(seed, level), h.viewsGenerator(seed, level), seed, level)
}

func (h *fuzzer) viewsGenerator(seed uint64, level workload.Isolation) *random.Generator {
	p := h.Profile
	p.Closed = true
	p.Sessions = atMost(p.Sessions, 2+int(seed%(viewsSessions-1)))
	p.Transactions, p.Statements = atMost(p.Transactions, viewsTransactions), atMost(p.Statements, viewsStatements)
	server := h.runner.Server
	return random.New(random.Engine{Name: server.Engine, Version: server.Version, Optimistic: level.Optimistic}, p, seed)
}

// atMost is what somebody asks for, bounded; without that it is the bound.
func atMost(asked, most int) int {
	if asked == 0 {
		return most
	}
	return min(asked, most)
}

// viewsScript makes a round's transactions, and mixes the sessions' statements.
func (h *fuzzer) viewsScript(seed uint64, level workload.Isolation) oracle.Script {
	g := h.viewsGenerator(seed, level)
	s := &scenario.Scenario{Name: fmt.Sprintf("seed %d", seed), Setup: g.Setup()}
	left := make([][]string, g.Sessions())
	for i := range left {
		session := scenario.Session{Name: sessionName(i)}
		if h.runner.Server.Engine != dbms.PostgreSQL { // of literals, as of columns
			session.Settings = scenario.Settings{"collation_connection": "utf8mb4_bin"}
		}
		s.Sessions = append(s.Sessions, session)
	}
	for n := range g.Transactions() {
		left[n%len(left)] = append(left[n%len(left)], g.Transaction(n+1)...)
	}
	draw := rand.New(rand.NewPCG(seed, uint64(len(left))))
	for {
		var open []int
		for i, texts := range left {
			if len(texts) > 0 {
				open = append(open, i)
			}
		}
		if len(open) == 0 {
			break
		}
		i := open[draw.IntN(len(open))]
		s.Steps = append(s.Steps, scenario.Step{Session: s.Sessions[i].Name, SQL: left[i][0]})
		left[i] = left[i][1:]
	}
	return oracle.Script{Scenario: s, Closed: true}
}
