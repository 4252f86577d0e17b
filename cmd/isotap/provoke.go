package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/proxy/provoke"
)

// provoking has the flags of --provoke, which holds statements back so that transactions meet.
type provoking struct {
	on   bool
	max  time.Duration
	seed uint64
}

func (p *provoking) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&p.on, "provoke", false,
		"hold clients back for moments between what they read and what they write, so that those cross that run at once")
	f.DurationVar(&p.max, "provoke-max", provoke.DefaultMax,
		"with --provoke: how long a statement is held back at most, and all of one transaction together")
	f.Uint64Var(&p.seed, "provoke-seed", 1, "with --provoke: chooses which statements are held back, and how long")
}

// The bounds of --provoke-max. What is longer than the second runs into the time-outs of clients.
const (
	leastProvoke = time.Millisecond
	mostProvoke  = 5 * time.Second
)

// options returns what the flags ask for, nil where nothing is to be held back. Off reports that the proxy does not
// look at statements, so that it cannot.
func (p *provoking) options(c *cobra.Command, off bool) (*provoke.Options, error) {
	for _, name := range []string{"provoke-max", "provoke-seed"} {
		if c.Flags().Changed(name) && !p.on {
			return nil, fmt.Errorf("--%s needs --provoke", name)
		}
	}
	switch {
	case !p.on:
		return nil, nil
	case off:
		return nil, errors.New("--provoke goes by what statements read: it cannot with --mode off")
	case p.max < leastProvoke || p.max > mostProvoke:
		return nil, fmt.Errorf("--provoke-max: %v is not between %v and %v", p.max, leastProvoke, mostProvoke)
	}
	return &provoke.Options{Max: p.max, Seed: p.seed}, nil
}

// provoked is what was held back, as reports tell it; nil where nothing was to be.
func provoked(o *provoke.Options, s provoke.Stats) *analyzer.Provoked {
	if o == nil {
		return nil
	}
	return &analyzer.Provoked{Seed: o.Seed, Max: o.Max, Held: s.Held, Met: s.Met, For: s.For}
}
