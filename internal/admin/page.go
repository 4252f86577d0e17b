package admin

import (
	"fmt"
	"strconv"
	"strings"
)

// A Page is a page of metrics in Prometheus' text format. The samples of one metric are added one after
// the other.
type Page struct {
	text []byte
	last string
}

// Counter adds a sample of a counter. labels are names and values in turn.
func (p *Page) Counter(name, help string, value float64, labels ...string) {
	p.sample("counter", name, help, value, labels)
}

// Gauge adds a sample of a gauge. labels are names and values in turn.
func (p *Page) Gauge(name, help string, value float64, labels ...string) {
	p.sample("gauge", name, help, value, labels)
}

// String returns the page.
func (p *Page) String() string { return string(p.text) }

func (p *Page) sample(kind, name, help string, value float64, labels []string) {
	if p.last != name {
		p.last = name
		p.text = fmt.Appendf(p.text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	p.text = append(p.text, name...)
	for i := 0; i+1 < len(labels); i += 2 {
		p.text = append(p.text, "{,"[min(i, 1)])
		p.text = append(append(p.text, labels[i]...), '=', '"')
		p.text = append(append(p.text, escape.Replace(labels[i+1])...), '"')
	}
	if len(labels) > 1 {
		p.text = append(p.text, '}')
	}
	p.text = append(p.text, ' ')
	p.text = append(strconv.AppendFloat(p.text, value, 'g', -1, 64), '\n')
}

var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
