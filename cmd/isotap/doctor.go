package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/internal/jsondoc"
	"github.com/isotap/isotap/internal/proxyserver"
)

func doctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor --upstream URL",
		Short: "Say what isotap misses at a server, and what to run for it",
		Long: "Says of each thing that isotap wants of a server whether it is there: tables that can be watched, " +
			"rights, settings,\nthe server's own log. Where it is not, it says which GRANT, setting or command " +
			"would help. It changes nothing.\n\nThe exit status is 1 when something is missing.",
		Example: "  isotap doctor --upstream postgres://isotap@127.0.0.1/shop",
		Args:    noArguments,
	}
	target := targetFlags(c)
	asJSON := c.Flags().Bool("json", false, "print what was found as JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		t, err := target()
		if err != nil {
			return err
		}
		all, err := proxyserver.Examine(c.Context(), t)
		if err != nil {
			return err
		}
		if *asJSON {
			err = jsondoc.Write(c.OutOrStdout(), "what was found", all)
		} else {
			err = printExamined(c.OutOrStdout(), all)
		}
		if err != nil {
			return err
		}
		for i := range all {
			if !all[i].There {
				return exitStatus(1)
			}
		}
		return nil
	}
	return c
}

func printExamined(w io.Writer, all []proxyserver.Examined) error {
	for i := range all {
		e := &all[i]
		how := "ok     "
		if !e.There {
			how = "missing"
		}
		if _, err := fmt.Fprintf(w, "%s  %s: %s\n", how, e.What, e.Says); err != nil {
			return err
		}
		if e.Do != "" {
			if _, err := fmt.Fprintf(w, "         %s\n", e.Do); err != nil {
				return err
			}
		}
	}
	return nil
}
