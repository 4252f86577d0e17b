package namedlock

import (
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/sqltoken"
)

const (
	txnEnds = "the transaction ends"
	reset   = "the session is reset"
)

func TestASessionHoldsWhatItTookAndDidNotRelease(t *testing.T) {
	const pg, my = dbms.PostgreSQLFamily, dbms.MySQLFamily
	for _, c := range []struct {
		name       string
		family     dbms.Family
		statements []string
		want       bool
	}{
		{"nothing", pg, []string{"SELECT 1", "SELECT pg_advisory_lock FROM t"}, false},
		{"for a transaction", pg, []string{"SELECT pg_advisory_xact_lock(1)"}, true},
		{"until it ends", pg, []string{"SELECT pg_catalog.pg_advisory_xact_lock_shared(1)", txnEnds}, false},
		{"for the session", pg, []string{"select PG_TRY_ADVISORY_LOCK(1, 2)", txnEnds}, true},
		{"until it releases it", pg, []string{"SELECT pg_advisory_lock(hashtext('a'))", "SELECT pg_advisory_unlock(hashtext('a'))"}, false},
		{"another one is released", pg, []string{"SELECT pg_advisory_lock(hashtext('a'))", "SELECT pg_advisory_unlock(hashtext('b'))"}, true},
		{"all are released", pg, []string{"SELECT pg_advisory_lock(1)", "SELECT pg_advisory_unlock_all()"}, false},
		{"a reset", pg, []string{"SELECT pg_advisory_lock(1)", reset}, false},
		{"tries count once", my, []string{"SELECT GET_LOCK('a', 1)", "SELECT GET_LOCK('a', 5)", "DO RELEASE_LOCK('a')"}, false},
		{"a lock inside another", my, []string{"SELECT GET_LOCK('a', 1), GET_LOCK('b', 1)", "DO RELEASE_LOCK('b')"}, true},
		{"a name in a string is none", my, []string{"SELECT 'get_lock('", "SELECT `get_lock`('a', 1)"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h Held
			for _, s := range c.statements {
				switch s {
				case txnEnds:
					h.TxnEnded()
					continue
				case reset:
					h.Reset()
					continue
				}
				tokens, err := sqltoken.Statement(c.family, s)
				if err != nil {
					t.Fatal(err)
				}
				h.Follow(tokens)
			}
			if h.Any() != c.want {
				t.Errorf("%v: %t, want %t", c.statements, h.Any(), c.want)
			}
		})
	}
}
