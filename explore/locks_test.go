package explore

import (
	"database/sql"
	"slices"
	"testing"

	"github.com/isotap/isotap/dbms"
)

// TestWhatAClientsOwnLockProtectsIsNoRace has programs that would lose an update ask for a lock first: of a table, or
// of a name. On a copy and live nothing is told of them, and of a lock that has been given back it is.
func TestWhatAClientsOwnLockProtectsIsNoRace(t *testing.T) {
	const pg, my = dbms.PostgreSQLFamily, dbms.MySQLFamily
	change := lostUpdate[1:3]
	for _, c := range []struct {
		name       string
		family     dbms.Family
		statements []string
		why        Reason // why it is not played; empty: it is
		races      int
	}{
		{"a table's lock", pg, slices.Insert(slices.Clone(lostUpdate), 1, "LOCK TABLE account IN SHARE ROW EXCLUSIVE MODE"), "", 0},
		{"an advisory lock in the transaction", pg, slices.Insert(slices.Clone(lostUpdate), 1, "SELECT pg_advisory_xact_lock(1)"), NamedLock, 0},
		{"one of the transaction before", pg, slices.Concat([]string{"BEGIN", "SELECT pg_advisory_xact_lock(1)", "COMMIT"}, lostUpdate), "", 1},
		{"an advisory lock around the transaction", pg, slices.Concat([]string{"SELECT pg_advisory_lock(1)"}, lostUpdate,
			[]string{"SELECT pg_advisory_unlock(1)"}), NamedLock, 0},
		{"an advisory lock around autocommit", pg, slices.Concat([]string{"SELECT pg_advisory_lock(1)"}, change,
			[]string{"SELECT pg_advisory_unlock(1)"}), NamedLock, 0},
		{"an advisory lock that was given back", pg, slices.Concat([]string{"SELECT pg_advisory_lock(1)", "SELECT pg_advisory_unlock(1)"},
			lostUpdate), "", 1},
		{"a lock by name in the transaction", my, slices.Insert(slices.Clone(lostUpdate), 1, "SELECT GET_LOCK('a', 1)"), NamedLock, 0},
		{"a lock by name around the transaction", my, slices.Concat([]string{"DO GET_LOCK('a', 1)"}, lostUpdate,
			[]string{"SELECT RELEASE_LOCK('a')"}), NamedLock, 0},
		{"a lock by name around autocommit", my, slices.Concat([]string{"SELECT GET_LOCK('a', 1)"}, change,
			[]string{"SELECT RELEASE_LOCK('a')"}), NamedLock, 0},
		{"a lock by name that was given back", my, slices.Concat([]string{"SELECT GET_LOCK('a', 1)", "SELECT RELEASE_LOCK('a')"}, lostUpdate), "", 1},
	} {
		check := func(t *testing.T, result *Result) {
			t.Helper()
			if len(result.Races) != c.races || result.Diverged > 0 || c.why != "" && result.NotPlayed[c.why] == 0 {
				t.Errorf("%+v", result)
			}
		}
		counts := families[0].counts
		if c.family == my {
			counts = families[1].counts
		}
		t.Run(c.name+"/on a copy", func(t *testing.T) { check(t, exploreSerial(t, c.family, counts, c.statements)) })
		t.Run(c.name+"/live", func(t *testing.T) {
			text, target := newTarget(t, c.family, tablesOf(counts))
			check(t, beside(t, text, target, true, func(client *sql.Conn, _ string) {
				for _, s := range c.statements {
					answerTo(t, client, s)
				}
			}))
		})
	}
}
