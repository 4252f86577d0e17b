package runner

import (
	"bytes"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
)

const writeSkew = `
setup { CREATE TABLE doctors (id int PRIMARY KEY, on_call bool); }
setup { INSERT INTO doctors VALUES (1, true), (2, true); }
session a
setup { BEGIN ISOLATION LEVEL REPEATABLE READ; }
step ra { SELECT id FROM doctors WHERE on_call ORDER BY id; }
step wa { UPDATE doctors SET on_call = false WHERE id = 1; }
step ca { COMMIT; }
session b
setup { BEGIN ISOLATION LEVEL REPEATABLE READ; }
step rb { SELECT id FROM doctors WHERE on_call ORDER BY id; }
step wb { UPDATE doctors SET on_call = false WHERE id = 2; }
step cb { COMMIT; }
permutation ra rb wa ca(*) wb cb
`

// A specification gives the same text through isotap and without, and through isotap a verdict.
func TestSpecsArePlayedThroughIsotapAndDirectly(t *testing.T) {
	s := open(t)["postgresql"]
	all, err := scenario.ReadSpec(strings.NewReader(writeSkew), "skew")
	if err != nil {
		t.Fatal(err)
	}
	var texts [2]string
	for i, direct := range []bool{false, true} {
		s.options.Direct = direct
		p, err := s.Play(t.Context(), all[0], history.ReadCommitted)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(p.Anomalies(), ","), "write skew"; !direct && got != want {
			t.Errorf("found %q, want %q", got, want)
		}
		var b bytes.Buffer
		if err := p.Trace.IsolationTester(&b, all[0]); err != nil {
			t.Fatal(err)
		}
		texts[i] = b.String()
		b.Reset()
		if err := p.Text(&b); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.Contains(got, "counts as waiting until 5: ok") ||
			direct == strings.Contains(got, "found") {
			t.Errorf("text\n%s", got)
		}
	}
	if texts[0] != texts[1] {
		t.Errorf("through isotap\n%s\ndirectly\n%s", texts[0], texts[1])
	}
}
