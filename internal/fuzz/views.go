package fuzz

import (
	"context"

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

// viewsScript makes a round's script.
func (h *fuzzer) viewsScript(seed uint64, level workload.Isolation) oracle.Script {
	return h.mixed(h.viewsGenerator(seed, level), seed)
}
