package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/report"
)

// output says where a result goes and what exit status it gives.
type output struct {
	json    bool
	verbose bool
	html    string
	failOn  string
	limit   int
}

func (o *output) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&o.json, "json", false, "print the report as JSON (docs/report-json.md)")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print the rows and versions behind each finding")
	f.StringVar(&o.html, "html", o.html, "write the HTML report to this file")
	f.IntVar(&o.limit, "limit", 10, "how many findings the text report shows; 0 for all (JSON has all)")
	if o.failOn == "" {
		o.failOn = "hazard"
	}
	f.StringVar(&o.failOn, "fail-on", o.failOn, "what gives exit status 1: violation, hazard (which includes violation) or none")
	complete(c, "fail-on", "violation", "hazard", "none")
	must(c.MarkFlagFilename("html", "html"))
}

func (o *output) check() error {
	switch o.failOn {
	case "violation", "hazard", "none":
		return nil
	}
	return fmt.Errorf("--fail-on: %q is none of violation, hazard, none", o.failOn)
}

// write prints the whole report and writes the HTML file, if one is asked for.
func (o *output) write(c *cobra.Command, r *analyzer.Result) error {
	if err := o.writeHTML(r); err != nil {
		return err
	}
	if o.json {
		return report.JSON(c.OutOrStdout(), r)
	}
	return report.Terminal(c.OutOrStdout(), r, report.TerminalOptions{Color: report.UseColor(c.OutOrStdout()), Verbose: o.verbose, Limit: o.limit})
}

// summarize writes ten lines to standard error, or the JSON report to standard output, and the HTML
// file.
func (o *output) summarize(c *cobra.Command, r *analyzer.Result) error {
	if err := o.writeHTML(r); err != nil {
		return err
	}
	if o.json {
		return report.JSON(c.OutOrStdout(), r)
	}
	return report.Summary(c.ErrOrStderr(), r, o.html)
}

func (o *output) writeHTML(r *analyzer.Result) error {
	if o.html == "" {
		return nil
	}
	f, err := os.Create(o.html)
	if err != nil {
		return fmt.Errorf("write the HTML report: %w", err)
	}
	return errors.Join(report.HTML(f, r), f.Close())
}

// status is the error that gives the exit status the findings deserve.
func (o *output) status(r *analyzer.Result) error {
	violations, hazards := report.Tally(r)
	if o.failOn != "none" && violations > 0 || o.failOn == "hazard" && hazards > 0 {
		return exitStatus(1)
	}
	return nil
}
