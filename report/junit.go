package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/isotap/isotap/analyzer"
)

// The types of a JUnit report, as the tools that read it agree on: there is no standard.
type (
	junitSuites struct {
		XMLName  xml.Name   `xml:"testsuites"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Suite    junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"` // seconds
		Timestamp  string          `xml:"timestamp,attr,omitempty"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		ClassName string        `xml:"classname,attr"`
		File      string        `xml:"file,attr,omitempty"`
		Line      int           `xml:"line,attr,omitempty"`
		Time      string        `xml:"time,attr"`
		Failure   *junitFailure `xml:"failure"`
		Skipped   *junitSkipped `xml:"skipped"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
)

// JUnit writes the result as JUnit XML: a test case for each finding, which fails where fails says so and
// is skipped otherwise; one that passes for each that only the baseline has; and one for the coverage, so
// that no report is empty. The error is w's.
func JUnit(w io.Writer, r *analyzer.Result, fails func(*analyzer.Finding) bool) error {
	suite := newJUnitSuite(r)
	for _, f := range r.Findings {
		c := newJUnitCase(f)
		switch {
		case f.Known:
			c.Skipped = &junitSkipped{"known: the baseline accepts it"}
		case !fails(f):
			c.Skipped = &junitSkipped{"seen, but what is of class " + string(f.Class) + " does not fail this check"}
		default:
			c.Failure = newJUnitFailure(f)
			suite.Failures++
		}
		if c.Skipped != nil {
			suite.Skipped++
		}
		suite.Cases = append(suite.Cases, c)
	}
	for _, f := range r.Gone {
		suite.Cases = append(suite.Cases, newJUnitCase(f))
	}
	return suite.write(w)
}

// A TestCase is one of a JUnit report on something else than findings.
type TestCase struct {
	Name, Class, File string
	Failures          []string // none: it passed
}

// JUnitCases writes test cases as JUnit XML. The error is w's.
func JUnitCases(w io.Writer, cases []TestCase) error {
	suite := junitSuite{Name: "isotap", Time: "0"}
	for _, x := range cases {
		c := junitCase{Name: oneLine(x.Name), ClassName: oneLine(x.Class), File: x.File, Time: "0"}
		if len(x.Failures) > 0 {
			c.Failure = &junitFailure{Message: oneLine(x.Failures[0]), Type: "unexpected",
				Text: strings.Join(x.Failures, "\n")}
			suite.Failures++
		}
		suite.Cases = append(suite.Cases, c)
	}
	return suite.write(w)
}

// write writes the suite as the report's only one.
func (suite *junitSuite) write(w io.Writer) error {
	suite.Tests = len(suite.Cases)
	all := junitSuites{Name: suite.Name, Tests: suite.Tests, Failures: suite.Failures, Skipped: suite.Skipped,
		Suite: *suite}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("make the JUnit report: %w", err)
	}
	if _, err := io.WriteString(w, xml.Header+string(text)+"\n"); err != nil {
		return fmt.Errorf("write the JUnit report: %w", err)
	}
	return nil
}

func newJUnitSuite(r *analyzer.Result) junitSuite {
	c := &r.Coverage
	s := junitSuite{Name: "isotap", Time: "0", Properties: []junitProperty{
		{"coverage", string(gradeOf(c))}, {"statements", fmt.Sprint(c.Statements)}, {"exact", fmt.Sprint(c.Exact)},
		{"inexact", fmt.Sprint(c.Inexact)}, {"opaque", fmt.Sprint(c.Opaque)}, {"transactions", fmt.Sprint(c.Txns)},
	}}
	if len(r.Runs) > 0 {
		first := &r.Runs[0]
		s.Timestamp = first.Started.UTC().Format("2006-01-02T15:04:05")
		if !first.Ended.IsZero() {
			s.Time = fmt.Sprintf("%.3f", first.Ended.Sub(first.Started).Seconds())
		}
	}
	covered := junitCase{Name: "coverage", ClassName: "isotap", Time: "0"}
	if text := caution(c); text != "" {
		covered.Skipped = &junitSkipped{text}
		s.Skipped++
	}
	s.Cases = []junitCase{covered}
	return s
}

// newJUnitCase names a finding so that its test case is the same in every recording.
func newJUnitCase(f *analyzer.Finding) junitCase {
	name := oneLine(string(f.Anomaly))
	if len(f.Tables) > 0 {
		name += " on " + oneLine(strings.Join(f.Tables, ", "))
	}
	c := junitCase{Name: fmt.Sprintf("%s [%s]", name, oneLine(f.ID)), ClassName: "isotap." + string(f.Class), Time: "0"}
	if at, ok := whereOf(f); ok {
		c.File, c.Line = at.file, at.line
	}
	return c
}

func newJUnitFailure(f *analyzer.Finding) *junitFailure {
	statements := quotable(f)
	summary := plain(prose(f.Summary, statements, proseCode))
	var b strings.Builder
	section := func(title string, sentences []string) {
		for i, s := range sentences {
			if i == 0 {
				b.WriteString("\n" + title + "\n")
			}
			b.WriteString("  " + plain(prose(s, statements, proseCode)) + "\n")
		}
	}
	if f.Lost != "" {
		b.WriteString("\n" + printable(f.Lost) + "\n")
	}
	b.WriteString("\n" + summary + "\nSeen " + times(f.Count) + ".\n")
	section("How it happened", f.Explanation[:min(len(f.Explanation), sentencesMax)])
	section("What to do", f.Advice)
	if f.Rule != "" {
		section("Why its class is "+string(f.Class), []string{f.Rule})
	}
	return &junitFailure{Message: firstSentence(f, proseWords), Type: string(f.Class) + ": " + oneLine(string(f.Anomaly)), Text: b.String()}
}
