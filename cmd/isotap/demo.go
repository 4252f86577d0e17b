package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/internal/engine"
	"github.com/isotap/isotap/internal/tempdb"
)

func demoCommand() *cobra.Command {
	// Its findings are what the demo is for: they are no failure unless they are asked to be one.
	out := output{html: "isotap-demo.html", failOn: "none"}
	var seed uint64
	var engineName, identity string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Watch a small shop lose an update, on a database of its own",
		Long: "Starts a throw-away server (MariaDB and PostgreSQL are installed by package name on Debian and Ubuntu\n" +
			"when they are missing), runs a small web shop with two mistakes through the proxy, and prints the findings.\n" +
			"Then the shop's requests run one after the other, as in a test suite, and what could have happened is shown\n" +
			"by playing them again (isotap explore).",
		Example: "  isotap demo\n  isotap demo --engine postgres\n  isotap demo --seed 7 --html shop.html",
		Args:    noArguments,
	}
	out.flags(c)
	c.Flags().Uint64Var(&seed, "seed", 1, "chooses what the shop's clients do")
	c.Flags().StringVar(&engineName, "engine", "", "the server: "+strings.Join(engine.Names(), ", ")+
		"; the first that is installed when not set")
	c.Flags().StringVar(&identity, "row-identity", "system",
		"what PostgreSQL's row versions are known by: system or columns")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		if _, err := engine.Find(engineName); err != nil {
			return fmt.Errorf("--engine: %w", err)
		}
		if identity != "system" && identity != "columns" {
			return fmt.Errorf("--row-identity: there is no %q: system or columns", identity)
		}
		result, err := tempdb.RunDemo(c.Context(), tempdb.DemoOptions{Engine: engineName, Seed: seed,
			Columns: identity == "columns", Version: isotapVersion(), Log: c.ErrOrStderr()})
		if err != nil {
			return err
		}
		out.races = result.Explored.Page()
		status := out.report(c, result.Watched)
		fmt.Fprintf(c.ErrOrStderr(), "\nOne after the other, as in a test suite, the same requests have %d hazards and violations. "+
			"What could have happened:\n\n", len(result.Tested.Findings))
		if err := result.Explored.Text(c.ErrOrStderr()); err != nil {
			return err
		}
		return status
	}
	return c
}
