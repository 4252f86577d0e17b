package robust

import (
	"fmt"
	"strings"
	"testing"
)

// spelled writes a promotion by the names of programs and statements.
func (p *Promotion) spelled(programs []*Program) string {
	if p == nil {
		return "none"
	}
	var names, statements []string
	for _, i := range p.Programs {
		names = append(names, programs[i].Label())
	}
	for _, s := range p.Statements {
		statements = append(statements, fmt.Sprintf("%s %s", programs[s.Program].Label(), s.Statement.Name))
	}
	return strings.Join(names, " ") + ": " + strings.Join(statements, ", ")
}

func TestPromotionMakesMoreProgramsRobust(t *testing.T) {
	auction, err := Auction(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		workload *Workload
		setting  Setting
		want     string
	}{
		{SmallBank(), Setting{ForeignKeys: true}, "Bal Am DC TS WC: Bal q2, WC q2, WC q3"},
		{TPCC(), Setting{ForeignKeys: true}, "none"},
		{auction, Setting{ForeignKeys: true}, "none"}, // they are robust
		{auction, Setting{}, "FB PB: PB q2"},
	} {
		p := Promote(c.workload.Programs, c.setting)
		if have := p.spelled(c.workload.Programs); have != c.want {
			t.Errorf("%s, %s: %s, want %s", c.workload.Name, c.setting, have, c.want)
		}
		if p != nil && !Analyze(promoted(c.workload.Programs, p.Statements), c.setting).Robust(TypeII, p.Programs...) {
			t.Errorf("%s: they are not robust", c.workload.Name)
		}
	}
}
