package scenario

import (
	"strings"
	"testing"
)

func TestSettingsAreRead(t *testing.T) {
	got, err := ParseSettings([]string{"tidb_txn_mode=optimistic", "deadlock_timeout=", "a.b=1=2"})
	if want := "a.b=1=2 deadlock_timeout= tidb_txn_mode=optimistic"; err != nil || got.String() != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	for _, text := range []string{"", "a", "=1", "a b=1", "a=x'y", `a=\`, "a=\n"} {
		if _, err := ParseSettings([]string{text}); err == nil || !strings.Contains(err.Error(), "NAME=VALUE") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
