package runner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/replay"
)

// Unexpected lists in what a result is not what the scenario expects of its server and level.
func (p *Result) Unexpected() []string {
	var all []string
	want := p.Scenario.Expected(p.Server, p.Level, p.Settings)
	for i := range p.Trace.Results {
		if reply, ok := want.Steps[i+1]; ok {
			all = append(all, unexpected(&p.Trace.Results[i], &reply)...)
		}
	}
	if p.Result != nil && !want.Open {
		all = append(all, p.otherwise(&want)...)
	}
	return all
}

// otherwise lists in what the anomalies that were found are not the expected ones.
func (p *Result) otherwise(want *scenario.Outcome) []string {
	expected, found := names(want.Anomalies), names(p.Anomalies())
	as := found == expected
	if want.Shown {
		expected = "one of " + strings.Join(p.Scenario.Shows, ", ")
		as = slices.ContainsFunc(p.Anomalies(), func(a string) bool { return slices.Contains(p.Scenario.Shows, a) })
	}
	if as {
		return nil
	}
	return []string{fmt.Sprintf("found %s, expected %s", found, expected)}
}

// Anomalies are the names of what was found, each once.
func (p *Result) Anomalies() []string {
	if p.Result == nil {
		return nil
	}
	var all []string
	for _, f := range p.Result.Findings {
		all = append(all, string(f.Anomaly))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func names(anomalies []string) string {
	if len(anomalies) == 0 {
		return "nothing"
	}
	return strings.Join(slices.Sorted(slices.Values(anomalies)), ", ")
}

// unexpected lists in what a step's result is not the expected one.
func unexpected(r *replay.Result, want *scenario.Reply) []string {
	var all []string
	differs := func(got, want any) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			all = append(all, fmt.Sprintf("step %d (%s): %v, expected %v", r.N, statement(r.SQL), got, want))
		}
	}
	if r.Blocked != want.Waits {
		differs(waiting(r.Blocked), waiting(want.Waits))
	}
	differs(failure(r), expectedFailure(want))
	if r.State != "" || r.Status == replay.Lost || want.Error != "" || want.Lost {
		return all
	}
	if want.Rows != nil {
		differs(fmt.Sprintf("%d rows", len(r.Rows)), fmt.Sprintf("%d rows", *want.Rows))
	}
	if want.Affected != nil {
		differs(fmt.Sprintf("%d affected", r.Affected), fmt.Sprintf("%d affected", *want.Affected))
	}
	if want.Values != nil {
		differs(r.Rows, values(want.Values))
	}
	return all
}

func waiting(yes bool) string {
	if yes {
		return "it waited"
	}
	return "it did not wait"
}

const connectionLost = "the connection was lost"

// failure says how a step failed, and expectedFailure how it is expected to.
func failure(r *replay.Result) string {
	if r.Status == replay.Lost {
		return connectionLost
	}
	return errorOf(r.State)
}

func expectedFailure(want *scenario.Reply) string {
	if want.Lost {
		return connectionLost
	}
	return errorOf(want.Error)
}

func errorOf(state string) string {
	if state == "" {
		return "no error"
	}
	return "error " + state
}

// values are expected rows as results have them.
func values(rows [][]*string) [][]replay.Value {
	all := make([][]replay.Value, len(rows))
	for i, row := range rows {
		for _, v := range row {
			if v == nil {
				all[i] = append(all[i], replay.Value{Null: true})
			} else {
				all[i] = append(all[i], replay.Value{Text: *v})
			}
		}
	}
	return all
}
