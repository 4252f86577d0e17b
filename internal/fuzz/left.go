package fuzz

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/internal/tempdb"
)

// A place is where a run makes databases: what a run that was killed left there the next one in its directory drops.
type place struct {
	At string `json:"at"` // the server's address
	// Database is the one that connections led to, where PostgreSQL's schemas are. Empty: the runner's.
	Database string `json:"database,omitempty"`
	// Names are what the databases' and schemas' names begin with. They are drawn at random, so that nobody else's do.
	Names []string `json:"names"`
}

// newDatabase draws a name for the databases of a run.
func newDatabase() string { return "isotap_fuzz_" + strings.ToLower(rand.Text()[:8]) }

// tidy drops what an earlier run in the directory left on the runner's server, and has what this one may leave there
// kept in the state. A server of the hunt's own goes with all that is on it.
func (h *fuzzer) tidy(ctx context.Context) error {
	if h.Restart != nil || h.Dir == "" {
		return nil
	}
	target := h.runner.Target()
	for _, p := range h.made {
		if p.At != target.Address {
			continue
		}
		in := target
		in.Database = cmp.Or(p.Database, target.Database)
		for _, names := range p.Names {
			dropped, err := tempdb.DropLeft(ctx, in, names)
			if len(dropped) > 0 {
				h.say("dropped what an earlier hunt left: %s", strings.Join(dropped, ", "))
			}
			if err != nil {
				return fmt.Errorf("drop what an earlier hunt in %s left: %w", h.Dir, err)
			}
		}
	}
	h.tidied()
	h.made = append(h.made, place{At: target.Address, Database: target.Database, Names: []string{h.database, h.runner.Names()}})
	return h.saveState()
}

// tidied notes that nothing is left on the runner's server.
func (h *fuzzer) tidied() {
	at := h.runner.Target().Address
	h.made = slices.DeleteFunc(h.made, func(p place) bool { return p.At == at })
}
