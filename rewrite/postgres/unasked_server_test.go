package postgres

import (
	"strings"
	"testing"
)

// TestWhatATreeDoesNotAskForIsNotEvaluated asks for the plan of trees: a subquery, or a LATERAL query, of which nothing
// asks is not in it.
func TestWhatATreeDoesNotAskForIsNotEvaluated(t *testing.T) {
	tw := newTwins(t)
	for _, c := range []struct {
		text      string
		evaluated bool
	}{
		{"SELECT json_agg(r.id) FROM (SELECT o.id, (SELECT json_agg(l.b) FROM loose l WHERE l.a = o.id) AS ls FROM orders o) r", false},
		{"SELECT json_agg(r) FROM (SELECT o.id, (SELECT json_agg(l.b) FROM loose l WHERE l.a = o.id) AS ls FROM orders o) r", true},
		{"SELECT o.id, r.ls FROM orders o LEFT JOIN LATERAL (SELECT json_agg(l.b) AS ls FROM loose l WHERE l.a = o.id) r ON true", true},
		{"SELECT i.id, (SELECT to_json(x) FROM (SELECT o.id, (SELECT json_agg(l.b) FROM loose l WHERE l.a = o.id) AS ls FROM orders o LIMIT 1) x) FROM (SELECT id, name AS x FROM item) i", false},
	} {
		plan := strings.Join(tw.ask("EXPLAIN "+c.text), "\n")
		if got := strings.Contains(plan, " on loose"); got != c.evaluated {
			t.Errorf("%s: evaluated: %t\n%s", c.text, got, plan)
		}
		p := tw.rewriter.Plan(c.text, tw.session).Statements[0]
		tells := false
		for _, s := range p.Result.Sources {
			tells = tells || s.Table == "public.loose"
		}
		if tells != c.evaluated {
			t.Errorf("%s tells of it: %t, and is %v", c.text, tells, p.Observation)
		}
	}
}
