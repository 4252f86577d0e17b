package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/catalog"
	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	catalogpostgres "github.com/isotap/isotap/catalog/postgres"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

func instrumentCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "instrument --upstream URL",
		Short: "Add isotap's columns to the tables",
		Long: "Adds isotap_rowid and isotap_wlist to the tables (InnoDB, TiDB, PostgreSQL) of the URL's database, " +
			"or of all databases\n" +
			"when the URL names none. Tables that have them stay as they are. isotap strip undoes it.\n" +
			"PostgreSQL's tables need them for --row-identity columns only: nothing is invisible there, so that whoever\n" +
			"does not come through isotap sees them in SELECT *.",
		Example: "  isotap instrument --upstream mysql://root@127.0.0.1:3306/shop",
		Args:    noArguments,
	}
	target := targetFlags(c)
	bytes := c.Flags().Int("wlist-bytes", sqlmysql.DefaultWListBytes,
		"how long a row's list of writers may grow; 0: without bound")
	c.RunE = func(c *cobra.Command, _ []string) error {
		t, err := target()
		if err != nil {
			return err
		}
		return alter(c, t, catalog.Options{WListBytes: *bytes}, instrumentation, true)
	}
	return c
}

func stripCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "strip --upstream URL",
		Short: "Remove isotap's columns without trace",
		Long: "Removes what isotap instrument, or a proxy's CREATE TABLE, added to the tables of the URL's " +
			"database, or of\nall databases when the URL names none.",
		Example: "  isotap strip --upstream mysql://root@127.0.0.1:3306/shop",
		Args:    noArguments,
	}
	target := targetFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		t, err := target()
		if err != nil {
			return err
		}
		return alter(c, t, catalog.Options{}, stripping, true)
	}
	return c
}

// instruments reports whether rows are known by isotap's columns.
func instruments(o *proxyserver.Options) bool {
	return o.Upstream.Family != dbms.PostgreSQLFamily || o.Columns
}

// instrumentTarget adds the columns before a run; to PostgreSQL's tables only if rows are to be known by them.
func instrumentTarget(c *cobra.Command, o *proxyserver.Options) error {
	if !instruments(o) {
		return nil
	}
	return alter(c, o.Upstream, catalog.Options{WListBytes: sqlmysql.DefaultWListBytes}, instrumentation, false)
}

// An alteration is what changes the tables of a server.
type alteration struct {
	done     string // what has happened to a table then
	mysql    func(context.Context, *catalogmysql.Conn, catalog.Options) (catalog.Result, error)
	postgres func(context.Context, *catalogpostgres.Conn, catalog.Options) (catalog.Result, error)
}

var (
	instrumentation = alteration{"instrumented", catalogmysql.Instrument, catalogpostgres.Instrument}
	stripping       = alteration{"stripped", catalogmysql.Strip, catalogpostgres.Strip}
)

// run alters the tables of the target's database, or of all where the server can tell them apart and the target
// names none.
func (a alteration) run(ctx context.Context, t dsn.Target, o catalog.Options) (catalog.Result, error) {
	if t.Family == dbms.PostgreSQLFamily {
		conn, err := catalogpostgres.NewConn(t, "")
		if err != nil {
			return catalog.Result{}, err
		}
		defer conn.Close()
		return a.postgres(ctx, conn, o)
	}
	if t.Database != "" {
		o.Schemas = []string{t.Database}
	}
	conn, err := catalogmysql.Connect(ctx, t)
	if err != nil {
		return catalog.Result{}, err
	}
	defer conn.Close()
	return a.mysql(ctx, conn, o)
}

// alter runs an alteration and says what it did; of tables that needed nothing it speaks only when all is asked
// for.
func alter(c *cobra.Command, t dsn.Target, o catalog.Options, a alteration, all bool) error {
	out := c.ErrOrStderr()
	o.Progress = func(p catalog.Progress) {
		if p.Rows > 0 {
			fmt.Fprintf(out, "isotap: %s: %d rows\n", p.Table, p.Rows)
		}
	}
	result, err := a.run(c.Context(), t, o)
	for _, table := range result.Changed {
		fmt.Fprintf(out, "isotap: %s %s\n", a.done, table)
	}
	for _, left := range result.LeftOut {
		fmt.Fprintf(out, "isotap: left out %s: %s\n", left.Table, left.Reason)
	}
	for _, note := range result.Notes {
		fmt.Fprintf(out, "isotap: %s\n", note)
	}
	if all {
		fmt.Fprintf(out, "isotap: tables %s: %d, needed nothing: %d, left out: %d\n", a.done, len(result.Changed),
			len(result.Already), len(result.LeftOut))
	}
	return err
}

// targetFlags adds --upstream to c. The target is known once c runs.
func targetFlags(c *cobra.Command) func() (dsn.Target, error) {
	url := settingsFlag(c)
	return func() (dsn.Target, error) { return parseUpstream(url()) }
}
