package analyzer

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// ordered analyzes a script together with orders: "x 0 T1.1" puts T1's version of row x after the initial one.
func ordered(t *testing.T, text string, orders ...string) []string {
	t.Helper()
	a := New(Options{})
	if err := a.Add(scriptInfo()); err != nil {
		t.Fatal(err)
	}
	for _, txn := range script(t, text) {
		if err := a.AddTxn(txn); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range orders {
		w := strings.Fields(o)
		if err := a.AddOrder(scriptRow(w[0]), scriptTag(t, w[1]), scriptTag(t, w[2])); err != nil {
			t.Fatal(err)
		}
	}
	r, err := a.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.AddOrder(history.Row{}, history.Tag{}, history.Tag{}); err == nil {
		t.Error("an order is taken after the end")
	}
	var found []string
	for _, f := range r.Findings {
		found = append(found, string(f.Anomaly))
	}
	return found
}

func TestDependenciesFollowPartialOrders(t *testing.T) {
	const skew = `
T1 committed RR | r x 0 | i y
T2 committed RR | r y 0 | i x`
	const both = `
T1 committed RR | r x 0 | i x
T2 committed RR | r x 0 | i x`
	for _, c := range []struct {
		name, text string
		orders     []string
		want       string
	}{
		{"nothing is known of blind writes", skew, nil, ""},
		{"a read of the initial version comes before every write", skew, []string{"x 0 T2.2", "y 0 T1.2"},
			"write skew"},
		{"two that overwrote what both had read lose an update, whoever came first", both,
			[]string{"x 0 T1.2", "x 0 T2.2"}, "lost update"},
		{"an order stays what it is when it is told twice", both, []string{"x 0 T1.2", "x 0 T1.2"}, ""},
		{"writes of two rows in two orders", `
T1 committed RR | i x | i y
T2 committed RR | i x | i y`, []string{"x T1.1 T2.1", "y T2.2 T1.2"}, "G0"},
		{"versions that are not installed have no place", `
T1 aborted RR | i x | i y
T2 committed RR | i x | i y`, []string{"x T1.1 T2.1", "y T2.2 T1.2"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(ordered(t, c.text, c.orders...), ", "); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}
