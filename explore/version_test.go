package explore

import (
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

func TestVersionsAreCountedUp(t *testing.T) {
	type want struct{ counted, asked bool }
	for sql, want := range map[string]want{
		"UPDATE t SET a = 2, v = 6 WHERE id = 1 AND v = 5":            {true, true},
		"UPDATE t SET v = v + 1, a = 2 WHERE id = 1 AND t.v = 5":      {true, true},
		"UPDATE t SET V = v + 1 WHERE v = 0":                          {true, true},
		"UPDATE t SET v = v + 1 WHERE id = 1":                         {true, false},
		"UPDATE t SET a = 1, t.v = t.v + 1 WHERE id = 1":              {true, false},
		"UPDATE t SET a = 1, v = COALESCE(v, 0) + 1 WHERE id = 1":     {true, false},
		"UPDATE t SET a = 1, t.v = COALESCE(t.v, 0) + 1 WHERE id = 1": {true, false},
		"UPDATE t SET v = 7 WHERE id = 1 AND v = 5":                   {false, true},
		"UPDATE t SET v = v + 2 WHERE v = 5":                          {false, true},
		"UPDATE t SET v = w + 1 WHERE v = 5":                          {false, true},
		"UPDATE t SET v = COALESCE(w, 0) + 1 WHERE id = 1":            {false, false},
		"UPDATE t SET v = 6 WHERE w = 5":                              {false, false},
		"UPDATE t SET v = 6 WHERE v = 'x'":                            {false, false},
		"UPDATE t SET w = v + 1 WHERE id = 1":                         {false, false},
	} {
		for _, family := range []dbms.Family{dbms.MySQLFamily, dbms.PostgreSQLFamily} {
			st := newStatement(family, &history.Stmt{Kind: history.Update}, sql)
			if counted, asked := st.countsUp("v"); counted != want.counted || asked != want.asked {
				t.Errorf("%s: counted %v, asked %v, want %v", sql, counted, asked, want)
			}
		}
	}
}
