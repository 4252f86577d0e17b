package mysql

import "testing"

// TestBranchesAreNamedByWhatTheyAreCalled has the names that statements of two-phase commit give to branches.
func TestBranchesAreNamedByWhatTheyAreCalled(t *testing.T) {
	for text, want := range map[string]string{
		"XA PREPARE 'ab'":                 "6162,,1",
		"xa commit X'6162'":               "6162,,1",
		"XA ROLLBACK 0x6162, '', 1":       "6162,,1",
		"XA ROLLBACK 'ab' , \"c\" ":       "6162,63,1",
		"XA COMMIT 'ab','c',7":            "6162,63,7",
		"XA COMMIT 'ab' ONE PHASE":        "",
		"XA COMMIT 'ab', 'c' ONE PHASE":   "",
		"XA COMMIT 'it''s'":               "",
		`XA COMMIT 'a\b'`:                 "",
		"XA COMMIT 'ä'":                   "",
		"XA COMMIT b'1'":                  "",
		"XA COMMIT _latin1'a'":            "",
		"XA COMMIT 'a' 'b'":               "",
		"XA COMMIT 'a',":                  "",
		"XA COMMIT 'a', 'b',":             "",
		"XA COMMIT 'a', 'b', 1, 2":        "",
		"XA COMMIT X'616'":                "",
		"XA COMMIT":                       "",
		"XA PREPARE 'a'; SELECT 1":        "",
		"SELECT 1; XA PREPARE 'a'":        "",
		"XA PREPARE /*!50000 'b', */ 'a'": "",
		"XA START 'a'":                    "",
		"XA RECOVER":                      "",
	} {
		if got := New(testSchema(), Options{}).Plan(text, testSession()).Txn.Global; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
