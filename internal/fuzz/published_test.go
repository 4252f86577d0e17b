package fuzz

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

// TestPublishedBugsAreFound: the bugs of TxCheck's and Troc's papers that live on MariaDB, and one of statements in two
// forms, are found in random transactions. The seeds are those of the hunts that came to them (docs/fuzz.md).
func TestPublishedBugsAreFound(t *testing.T) {
	testdb.Only(t, "the seeds are those of hunts on MariaDB 10.11", "mariadb")
	s := openStage(t, testdb.Current(t).URL())
	for _, tt := range []struct {
		bug, profile string
		by           Oracle
		level        history.Level
		seed         uint64
	}{
		{"MDEV-29565", "deep", Serial, history.RepeatableRead, 55},
		{"MDEV-26642", "conflicts", Views, history.RepeatableRead, 114},
		{"MDEV-26643", "conflicts", Views, history.ReadCommitted, 45},
		{"MDEV-27992", "conflicts", Views, history.ReadCommitted, 1560},
		{"AliSQL-175", "deep", Forms, history.ReadUncommitted, 9},
	} {
		t.Run(tt.bug, func(t *testing.T) {
			profile, ok := random.Named(tt.profile)
			if !ok {
				t.Fatalf("there is no profile %q", tt.profile)
			}
			tally, err := Run(t.Context(), s, Options{Oracles: []Oracle{tt.by}, Profile: profile, Rounds: 1, Seed: tt.seed,
				Levels: []workload.Isolation{{Level: tt.level}}})
			if err != nil {
				t.Fatal(err)
			}
			if len(tally.Mismatches) != 1 || !strings.Contains(tally.Mismatches[0].Difference.Known, tt.bug) {
				t.Errorf("found %+v", tally.Mismatches)
			}
		})
	}
}
