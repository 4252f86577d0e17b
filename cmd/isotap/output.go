package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/private"
	"github.com/isotap/isotap/report"
	"github.com/isotap/isotap/report/baseline"
)

// output says where a result goes and what exit status it gives.
type output struct {
	json      bool
	verbose   bool
	html      string
	files     []string // the exports'
	scenarios string
	failOn    string
	limit     int
	baseline  string
	update    string
	known     *baseline.Use // nil without a baseline
}

// exports are the reports for other programs, each with its flag.
var exports = [...]struct {
	flag, what, extension string
	write                 func(io.Writer, *analyzer.Result, *output) error
}{
	{"junit", "JUnit XML: a test case for each finding", "xml",
		func(w io.Writer, r *analyzer.Result, o *output) error { return report.JUnit(w, r, o.fails) }},
	{"sarif", "a SARIF 2.1.0 log", "sarif",
		func(w io.Writer, r *analyzer.Result, _ *output) error { return report.SARIF(w, r) }},
	{"dot", "the cycles as a Graphviz graph", "dot",
		func(w io.Writer, r *analyzer.Result, _ *output) error { return report.DOT(w, r) }},
	{"mermaid", "the cycles as a Mermaid flowchart", "mmd",
		func(w io.Writer, r *analyzer.Result, _ *output) error { return report.Mermaid(w, r) }},
}

func (o *output) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&o.json, "json", false, "print the report as JSON (docs/report-json.md)")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print the rows and versions behind each finding")
	f.StringVar(&o.html, "html", o.html, "write the HTML report to this file")
	o.files = make([]string, len(exports))
	for i := range exports {
		e := &exports[i]
		f.StringVar(&o.files[i], e.flag, "", "write "+e.what+" to this file")
		must(c.MarkFlagFilename(e.flag, e.extension))
	}
	f.StringVar(&o.scenarios, "scenarios", "",
		"write the interleaving of each finding to a file in this directory (docs/scenarios.md)")
	must(c.MarkFlagDirname("scenarios"))
	f.IntVar(&o.limit, "limit", 10, "how many findings the text report shows; 0 for all (JSON has all)")
	if o.failOn == "" {
		o.failOn = "hazard"
	}
	f.StringVar(&o.failOn, "fail-on", o.failOn,
		"what gives exit status 1: violation, hazard (which includes violation) or none")
	f.StringVar(&o.baseline, "baseline", "",
		"file of the findings that are known: only others give exit status 1 (docs/baseline.md)")
	f.StringVar(&o.update, "update-baseline", "",
		"add the findings to the baseline's file; =replace also removes those not seen")
	f.Lookup("update-baseline").NoOptDefVal = string(baseline.Add)
	complete(c, "fail-on", "violation", "hazard", "none")
	complete(c, "update-baseline", string(baseline.Add), string(baseline.Replace))
	must(c.MarkFlagFilename("html", "html"))
	must(c.MarkFlagFilename("baseline", "json"))
}

// check returns what is wrong with the flags before anything is done for them.
func (o *output) check() (err error) {
	switch o.failOn {
	case "violation", "hazard", "none":
	default:
		return fmt.Errorf("--fail-on: %q is none of violation, hazard, none", o.failOn)
	}
	switch {
	case o.baseline != "":
		o.known, err = baseline.Open(o.baseline, baseline.Update(o.update))
	case o.update != "":
		err = errors.New("--update-baseline needs --baseline FILE")
	}
	return err
}

// write prints the whole report and writes the files that are asked for.
func (o *output) write(c *cobra.Command, r *analyzer.Result) error {
	if err := o.writeFiles(c, r); err != nil {
		return err
	}
	if o.json {
		return report.JSON(c.OutOrStdout(), r)
	}
	return report.Terminal(c.OutOrStdout(), r, report.TerminalOptions{Color: report.UseColor(c.OutOrStdout()),
		Verbose: o.verbose, Limit: o.limit})
}

// summarize writes ten lines to standard error, or the JSON report to standard output, and the files that
// are asked for.
func (o *output) summarize(c *cobra.Command, r *analyzer.Result) error {
	if err := o.writeFiles(c, r); err != nil {
		return err
	}
	if o.json {
		return report.JSON(c.OutOrStdout(), r)
	}
	return report.Summary(c.ErrOrStderr(), r, o.html)
}

// writeFiles compares the result with the baseline, and writes the files.
func (o *output) writeFiles(c *cobra.Command, r *analyzer.Result) error {
	if o.known != nil {
		said, err := o.known.Finish(r)
		if err != nil {
			return err
		}
		if said != "" {
			fmt.Fprintln(c.ErrOrStderr(), "isotap:", said)
		}
	}
	err := writeFile(o.html, func(w io.Writer) error { return report.HTML(w, r) })
	for i := range exports {
		if err == nil {
			err = writeFile(o.files[i], func(w io.Writer) error { return exports[i].write(w, r, o) })
		}
	}
	if err == nil && o.scenarios != "" {
		err = report.Scenarios(o.scenarios, r)
	}
	return err
}

// writeFile makes a report's file; an empty name is that of a report that was not asked for.
func writeFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := private.Create(name)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return errors.Join(write(f), f.Close())
}

// fails reports whether a finding gives exit status 1, unless the baseline knows it.
func (o *output) fails(f *analyzer.Finding) bool {
	return o.failOn == "hazard" || o.failOn == "violation" && f.Class == analyzer.Violation
}

// report writes the result, and returns the exit status that it stands for.
func (o *output) report(c *cobra.Command, r *analyzer.Result) error {
	if err := o.write(c, r); err != nil {
		return err
	}
	return o.status(r)
}

// status is the error that gives the exit status the findings deserve that the baseline does not know.
func (o *output) status(r *analyzer.Result) error {
	if slices.ContainsFunc(report.New(r), o.fails) {
		return exitStatus(1)
	}
	return nil
}
