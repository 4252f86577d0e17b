package fuzz

import (
	"context"
	"maps"

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
	p.Sessions, p.Transactions = atMost(p.Sessions, serialSessions), atMost(p.Transactions, serialTransactions)
	p.Statements = atMost(p.Statements, serialStatements)
	p.Weights = maps.Clone(p.Weights)
	if p.Weights == nil {
		p.Weights = make(map[string]int)
	}
	p.Weights["savepoint"] = 0 // what it undoes has no like in autocommit
	server := h.runner.Server
	g := random.New(random.Engine{Name: server.Engine, Version: server.Version, Optimistic: level.Optimistic}, p, seed)
	return h.mixed(g, seed), g
}
