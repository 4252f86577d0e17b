package namedlock

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/sqltoken"
)

func TestEachFunctionIsMentionedAndCalled(t *testing.T) {
	for name := range functions {
		for _, text := range []string{"SELECT " + name + "(1)", "select x FROM t WHERE " + strings.ToUpper(name) + " (2)"} {
			if !Mentioned(text) || !Called(sqltoken.Shape(dbms.PostgreSQLFamily, text)) {
				t.Errorf("%s is not seen", text)
			}
		}
	}
	for text, mentioned := range map[string]bool{"": false, "SELECT loc": false, "SELECT get_lock FROM t": true,
		`SELECT "get_lock"(1)`: true, "SELECT my_lock(1)": true} {
		if Mentioned(text) != mentioned || Called(sqltoken.Shape(dbms.PostgreSQLFamily, text)) {
			t.Errorf("%q: mentioned %v", text, Mentioned(text))
		}
	}
}
