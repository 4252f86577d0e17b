package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/catalog"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

func instrumentCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "instrument --upstream URL",
		Short: "Add isotap's invisible columns to the tables",
		Long: "Adds isotap_rowid and isotap_wlist to the InnoDB tables of the URL's database, or of all databases\n" +
			"when the URL names none. Tables that have them stay as they are. isotap strip undoes it.\n" +
			"PostgreSQL's tables need nothing.",
		Example: "  isotap instrument --upstream mysql://root@127.0.0.1:3306/shop",
		Args:    noArguments,
	}
	target := targetFlags(c)
	bytes := c.Flags().Int("wlist-bytes", sqlmysql.DefaultWListBytes, "how long a row's list of writers may grow; 0: without bound")
	c.RunE = func(c *cobra.Command, _ []string) error {
		t, err := target()
		if err != nil {
			return err
		}
		return alter(c, t, catalog.Options{WListBytes: *bytes}, catalog.Instrument, "instrumented", true)
	}
	return c
}

func stripCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "strip --upstream URL",
		Short:   "Remove isotap's columns without trace",
		Long:    "Removes what isotap instrument, or a proxy's CREATE TABLE, added to the tables of the URL's database, or of\nall databases when the URL names none.",
		Example: "  isotap strip --upstream mysql://root@127.0.0.1:3306/shop",
		Args:    noArguments,
	}
	target := targetFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		t, err := target()
		if err != nil {
			return err
		}
		return alter(c, t, catalog.Options{}, catalog.Strip, "stripped", true)
	}
	return c
}

// instrumentTarget adds the columns before a run.
func instrumentTarget(c *cobra.Command, t catalog.Target) error {
	return alter(c, t, catalog.Options{WListBytes: sqlmysql.DefaultWListBytes}, catalog.Instrument, "instrumented", false)
}

// alter runs catalog.Instrument or catalog.Strip and says what it did; of tables that needed nothing it
// speaks only when all is asked for.
func alter(c *cobra.Command, t catalog.Target, o catalog.Options,
	change func(context.Context, *catalog.Conn, catalog.Options) (catalog.Result, error), done string, all bool) error {
	if t.Family == catalog.PostgreSQL {
		if all {
			fmt.Fprintln(c.ErrOrStderr(), "isotap: PostgreSQL's own system columns tell a row's versions: its tables stay as they are")
		}
		return nil
	}
	if t.Database != "" {
		o.Schemas = []string{t.Database}
	}
	conn, err := catalog.Connect(c.Context(), t)
	if err != nil {
		return err
	}
	defer conn.Close()
	out := c.ErrOrStderr()
	o.Progress = func(p catalog.Progress) {
		if p.Rows > 0 {
			fmt.Fprintf(out, "isotap: %s: %d rows\n", p.Table, p.Rows)
		}
	}
	result, err := change(c.Context(), conn, o)
	for _, table := range result.Changed {
		fmt.Fprintf(out, "isotap: %s %s\n", done, table)
	}
	for _, left := range result.LeftOut {
		fmt.Fprintf(out, "isotap: left out %s: %s\n", left.Table, left.Reason)
	}
	for _, note := range result.Notes {
		fmt.Fprintf(out, "isotap: %s\n", note)
	}
	if all {
		fmt.Fprintf(out, "isotap: tables %s: %d, needed nothing: %d, left out: %d\n", done, len(result.Changed), len(result.Already), len(result.LeftOut))
	}
	return err
}

// targetFlags adds --upstream to c. The target is known once c runs.
func targetFlags(c *cobra.Command) func() (catalog.Target, error) {
	url := settingsFlag(c)
	return func() (catalog.Target, error) { return parseUpstream(url()) }
}
