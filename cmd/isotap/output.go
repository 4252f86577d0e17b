package main

import (
	"errors"
	"fmt"
	"io"
	"os"
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
	scope     scopeFlag
	limit     int
	baseline  string
	update    string
	known     *baseline.Use // nil without a baseline
	// minCoverage is the share of statements, in percent, that must have been observed exactly; 0: any.
	minCoverage int
	pipes       map[string]*os.File // files that are no regular ones, open
	// exploring says that what could have happened is still to be played, and races what that showed.
	exploring bool
	races     []report.Race
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
		"what gives exit status 1: violation, hazard (which includes violation), unprotected (which includes both) or none")
	f.StringVar(&o.baseline, "baseline", "",
		"file of the findings that are known: only others give exit status 1 (docs/baseline.md)")
	f.StringVar(&o.update, "update-baseline", "",
		"add the findings to the baseline's file; =replace also removes those not seen")
	f.Lookup("update-baseline").NoOptDefVal = string(baseline.Add)
	complete(c, "fail-on", "violation", "hazard", "unprotected", "none")
	complete(c, "update-baseline", string(baseline.Add), string(baseline.Replace))
	must(c.MarkFlagFilename("html", "html"))
	must(c.MarkFlagFilename("baseline", "json"))
}

// requests returns what --scope says.
func (o *output) requests() analyzer.Scope {
	scope, _ := o.scope.scope() // check has
	return scope
}

// coverageFlag adds the flag that says how much must have been seen.
func (o *output) coverageFlag(c *cobra.Command, percent int) {
	c.Flags().IntVar(&o.minCoverage, "min-coverage", percent, "exit status 3 if nothing was observed, or less than this "+
		"percentage of the statements exactly; 0: never")
}

// check returns what is wrong with the flags before anything is done for them.
func (o *output) check() (err error) {
	if o.minCoverage < 0 || o.minCoverage > 100 {
		return fmt.Errorf("--min-coverage: %d is no percentage", o.minCoverage)
	}
	switch o.failOn {
	case "violation", "hazard", "unprotected", "none":
	default:
		return fmt.Errorf("--fail-on: %q is none of violation, hazard, unprotected, none", o.failOn)
	}
	if _, err := o.scope.scope(); err != nil {
		return err
	}
	switch {
	case o.baseline != "":
		o.known, err = baseline.Open(o.baseline, baseline.Update(o.update))
	case o.update != "":
		err = errors.New("--update-baseline needs --baseline FILE")
	}
	return err
}

// open sees that the files can be written, before what takes long is done for them. Those that are no regular files,
// such as pipes, stay open.
func (o *output) open() error {
	o.pipes = make(map[string]*os.File)
	for _, name := range append([]string{o.html}, o.files...) {
		if name == "" || o.pipes[name] != nil {
			continue
		}
		f, err := private.Create(name)
		if err != nil {
			return fmt.Errorf("open the report's file: %w", err)
		}
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			o.pipes[name] = f
			continue
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("open the report's file: %w", err)
		}
	}
	if o.scenarios != "" {
		if err := private.MkdirAll(o.scenarios); err != nil {
			return fmt.Errorf("make the directory for the scenarios: %w", err)
		}
	}
	return nil
}

// write prints the whole report and writes the files that are asked for. What becomes of the files does not keep the
// report from being printed.
func (o *output) write(c *cobra.Command, r *analyzer.Result) error {
	err := o.writeFiles(c, r)
	if o.json {
		return errors.Join(report.JSON(c.OutOrStdout(), r), err)
	}
	return errors.Join(report.Terminal(c.OutOrStdout(), r, report.TerminalOptions{Color: report.UseColor(c.OutOrStdout()),
		Verbose: o.verbose, Limit: o.limit}), err)
}

// summarize writes ten lines to standard error, or the JSON report to standard output, and the files that
// are asked for, as write does.
func (o *output) summarize(c *cobra.Command, r *analyzer.Result) error {
	err := o.writeFiles(c, r)
	if o.json {
		return errors.Join(report.JSON(c.OutOrStdout(), r), err)
	}
	html := o.html
	if err != nil {
		html = "" // it may be the one that was not written
	}
	return errors.Join(report.Summary(c.ErrOrStderr(), r, html), err)
}

// writeFiles compares the result with the baseline, and writes the files: each that can be written.
func (o *output) writeFiles(c *cobra.Command, r *analyzer.Result) error {
	var errs []error
	if o.known != nil {
		said, err := o.known.Finish(r)
		if said != "" && err == nil {
			fmt.Fprintln(c.ErrOrStderr(), "isotap:", said)
		}
		errs = append(errs, err)
	}
	if !o.exploring || o.pipes[o.html] == nil { // what goes into a pipe goes once
		errs = append(errs, o.writeHTML(r))
	}
	for i := range exports {
		errs = append(errs, o.writeFile(o.files[i], func(w io.Writer) error { return exports[i].write(w, r, o) }))
	}
	if o.scenarios != "" {
		errs = append(errs, report.Scenarios(o.scenarios, r))
	}
	return errors.Join(errs...)
}

// writeHTML writes the HTML report, with what could have happened where that was played.
func (o *output) writeHTML(r *analyzer.Result) error {
	return o.writeFile(o.html, func(w io.Writer) error { return report.HTMLWithRaces(w, r, o.races) })
}

// writeFile is the function of that name for a file that open may have opened.
func (o *output) writeFile(name string, write func(io.Writer) error) error {
	if f := o.pipes[name]; f != nil {
		return errors.Join(write(f), f.Close())
	}
	return writeFile(name, write)
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
	switch f.Class {
	case analyzer.Violation:
		return o.failOn != "none"
	case analyzer.Hazard:
		return o.failOn == "hazard" || o.failOn == "unprotected"
	}
	return o.failOn == "unprotected"
}

// report writes the result, and returns the exit status that it stands for.
func (o *output) report(c *cobra.Command, r *analyzer.Result) error {
	if err := o.write(c, r); err != nil {
		return err
	}
	return o.status(r)
}

// status is the error that gives the exit status the findings deserve that the baseline does not know, or else what was
// seen.
func (o *output) status(r *analyzer.Result) error {
	if slices.ContainsFunc(report.New(r), o.fails) {
		return exitStatus(statusFound)
	}
	if o.minCoverage == 0 {
		return nil
	}
	switch all := &r.Coverage; {
	case all.Exact == 0:
		return failure{errors.New("nothing was observed, so nothing is known to be right (--min-coverage)"), statusUnseen}
	case 100*all.Exact < o.minCoverage*all.Statements:
		return failure{fmt.Errorf("too little was observed: %d of %d statements exactly, and --min-coverage asks for %d%%",
			all.Exact, all.Statements, o.minCoverage), statusUnseen}
	}
	return nil
}
