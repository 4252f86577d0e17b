package runner

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/isotap/isotap/report"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/scenario/replay"
)

// HTML writes verdicts as one page. The error is w's.
func HTML(w io.Writer, all []*Judged) error {
	alarms := make([]report.Alarm, len(all))
	for i, j := range all {
		alarms[i] = j.alarm()
	}
	return report.Alarms(w, alarms)
}

func (j *Judged) alarm() report.Alarm {
	v := j.Verdict
	a := report.Alarm{Name: j.Scenario.Name, Server: fmt.Sprintf("%s %s", j.Server.Engine, j.Server.Version),
		Level: j.Level.String(), Does: j.Does, Setup: j.Scenario.Setup, Order: v.Order,
		Size: fmt.Sprintf("Judged: %d transactions, %d statements.", v.Transactions, v.Statements)}
	if j.Scenario.File != "" {
		a.Again = fmt.Sprintf("isotap replay --oracle %s --isolation '%s' %s", j.Oracle, j.Level, j.Scenario.File)
	}
	for _, s := range j.Scenario.Sessions {
		a.Sessions = append(a.Sessions, s.Name)
	}
	wrong := make(map[int]bool)
	for _, d := range v.Differences {
		a.Differences = append(a.Differences, report.AlarmDifference{Words: d.Words(), SQL: d.SQL, Got: d.Got, Want: d.Want,
			Known: d.Known, GotOnly: d.GotOnly, WantOnly: d.WantOnly})
		wrong[d.Step] = true
	}
	for _, r := range v.Replies {
		a.Steps = append(a.Steps, stepOf(r, wrong[r.Step]))
		if !slices.Contains(a.Sessions, r.Got.Session) {
			a.Sessions = append(a.Sessions, r.Got.Session)
		}
	}
	for _, d := range v.ByDesign {
		a.Notes = append(a.Notes, "by design: "+d)
	}
	for _, why := range slices.Sorted(maps.Keys(v.NotJudged)) {
		a.Notes = append(a.Notes, fmt.Sprintf("not judged: %d statements: %s", v.NotJudged[why], why))
	}
	return a
}

func stepOf(r oracle.Reply, wrong bool) report.AlarmStep {
	s := report.AlarmStep{N: r.Step, Session: r.Got.Session, SQL: r.Got.SQL, Got: outcome(r.Got), Wrong: wrong}
	if r.Want != nil {
		s.Want = reply(r.Want)
		if r.Want.Status != replay.OK && r.Want.Status != replay.Failed {
			s.Want = outcome(r.Want)
		}
	}
	return s
}
