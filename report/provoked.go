package report

import (
	"fmt"
	"time"

	"github.com/isotap/isotap/analyzer"
)

// provoked says which statements isotap held back; empty where it was not to.
func provoked(r *analyzer.Result) string {
	p := r.Provoked
	switch {
	case p == nil:
		return ""
	case p.Held == 0:
		return "--provoke held nothing back: no client wrote by what it had read while others were there"
	}
	return fmt.Sprintf("--provoke held %s back, %s in all (at most %v, seed %d); to %s another client came. What is found did "+
		"happen: the times alone were changed", plural(p.Held, "statement"), p.For.Round(time.Millisecond), p.Max, p.Seed,
		number(p.Met))
}

type jsonProvoked struct {
	Seed   uint64 `json:"seed"`
	MaxNs  int64  `json:"max_ns"`
	Held   int    `json:"held"`
	HeldNs int64  `json:"held_ns"`
	Met    int    `json:"met"`
}

func newJSONProvoked(p *analyzer.Provoked) *jsonProvoked {
	if p == nil {
		return nil
	}
	return &jsonProvoked{Seed: p.Seed, MaxNs: int64(p.Max), Held: p.Held, HeldNs: int64(p.For), Met: p.Met}
}
