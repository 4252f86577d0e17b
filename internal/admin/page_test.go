package admin

import "testing"

func TestPageIsPrometheusText(t *testing.T) {
	var p Page
	p.Counter("a_total", "All a.", 3, "kind", "x", "reason", "a \"b\" \\ c\nd")
	p.Counter("a_total", "All a.", 1.5e9, "kind", "y", "reason", "")
	p.Gauge("b", "One b.", 0.25)
	const want = `# HELP a_total All a.
# TYPE a_total counter
a_total{kind="x",reason="a \"b\" \\ c\nd"} 3
a_total{kind="y",reason=""} 1.5e+09
# HELP b One b.
# TYPE b gauge
b 0.25
`
	if p.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", p.String(), want)
	}
}
