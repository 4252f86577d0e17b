package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed alarm.html.tmpl
var alarmSource string

// An Alarm is what an oracle says of a script, for a page.
type Alarm struct {
	Name, Server, Level string
	Does                string // what the oracle does
	Size                string // how much it judged
	Again               string // the command that judges it again
	Differences         []AlarmDifference
	Setup, Sessions     []string
	Steps               []AlarmStep // in the order in which they were sent
	Order               []int       // the numbers of the steps in autocommit, of an oracle that orders them
	Notes               []string
}

// An AlarmDifference is an answer that is wrong.
type AlarmDifference struct {
	Words, SQL, Got, Want, Known string
	GotOnly, WantOnly            []string // rows
}

// An AlarmStep is a step of the script with its answers; Want is empty where it is not judged.
type AlarmStep struct {
	N                       int
	Session, SQL, Got, Want string
	Wrong                   bool
}

// The limits that keep the page light; the JSON has everything.
const (
	alarmSteps = 400
	alarmText  = 600 // characters of a reply
	laneWidth  = 260 // pixels
	headline   = 240 // characters
	alarmRows  = 30  // that only one side has
)

// An alarmPage is what the template shows.
type alarmPage struct {
	CSS                 template.CSS
	Verdict, Tone, Size string
	Alarms              []alarmSection
}

type alarmSection struct {
	Alarm
	Anchor   string
	Rows     []alarmRow
	Order    []AlarmStep
	MinWidth int
	Left     int // steps that are not shown
}

// An alarmRow is a step, in the column of its session.
type alarmRow struct {
	N     int
	Cells []alarmCell
}

type alarmCell struct {
	Open, First, Last bool
	Step              *AlarmStep
}

// Alarms writes what oracles say of scripts as one page that needs nothing but itself: what is wrong, with both
// answers, and each script step by step, with a column for each session. The error is w's.
func Alarms(w io.Writer, alarms []Alarm) error {
	var b bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&b, "alarms", newAlarmPage(alarms)); err != nil {
		return fmt.Errorf("render the HTML report: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write the HTML report: %w", err)
	}
	return nil
}

func newAlarmPage(alarms []Alarm) *alarmPage {
	// The styles are embedded with the package, not input.
	p := &alarmPage{CSS: template.CSS(pageCSS), Verdict: "No difference", Tone: "clean"}
	wrong := 0
	for i := range alarms {
		p.Alarms = append(p.Alarms, newAlarmSection(alarms[i], i+1))
		if len(alarms[i].Differences) == 0 {
			continue
		}
		if wrong++; wrong == 1 {
			p.Tone, p.Verdict = "violation", clip(capital(oneLine(alarms[i].Differences[0].Words)), headline)
		}
	}
	p.Size = fmt.Sprintf("%s of %s: %s wrong", plural(len(alarms), "verdict"), "scripts", number(wrong))
	if len(alarms) == 1 {
		p.Size = clip(oneLine(alarms[0].Name), headline)
	}
	return p
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func newAlarmSection(a Alarm, n int) alarmSection {
	s := alarmSection{Alarm: a, Anchor: fmt.Sprintf("verdict-%d", n), MinWidth: 92 + laneWidth*len(a.Sessions)}
	s.Name, s.Setup = clip(oneLine(a.Name), headline), lines(a.Setup)
	s.Differences = slices.Clone(a.Differences)
	for i := range s.Differences {
		d := &s.Differences[i]
		d.Words, d.SQL = clip(oneLine(d.Words), alarmText), clip(oneLine(d.SQL), statementMax)
		d.Got, d.Want = clip(oneLine(d.Got), alarmText), clip(oneLine(d.Want), alarmText)
		d.GotOnly, d.WantOnly = lines(d.GotOnly[:min(len(d.GotOnly), alarmRows)]), lines(d.WantOnly[:min(len(d.WantOnly), alarmRows)])
	}
	s.Steps = slices.Clone(a.Steps[:min(len(a.Steps), alarmSteps)])
	s.Left = len(a.Steps) - len(s.Steps)
	first, last := make(map[string]int), make(map[string]int)
	for i := range s.Steps {
		x := &s.Steps[i]
		x.SQL, x.Got, x.Want = clip(oneLine(x.SQL), statementMax), clip(oneLine(x.Got), alarmText), clip(oneLine(x.Want), alarmText)
		if _, ok := first[x.Session]; !ok {
			first[x.Session] = i
		}
		last[x.Session] = i
	}
	for i := range s.Steps {
		row := alarmRow{N: s.Steps[i].N}
		for _, session := range a.Sessions {
			from, ok := first[session]
			c := alarmCell{Open: ok && from <= i && i <= last[session], First: i == from, Last: i == last[session]}
			if s.Steps[i].Session == session {
				c.Step = &s.Steps[i]
			}
			row.Cells = append(row.Cells, c)
		}
		s.Rows = append(s.Rows, row)
	}
	for _, n := range a.Order {
		if i := slices.IndexFunc(s.Steps, func(x AlarmStep) bool { return x.N == n }); i >= 0 {
			s.Order = append(s.Order, s.Steps[i])
		}
	}
	return s
}

// lines are texts of one line each.
func lines(texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = clip(oneLine(text), statementMax)
	}
	return all
}
