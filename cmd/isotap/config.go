package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/internal/config"
)

func configCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Check a configuration file, or show the settings in effect",
		Long: "Settings come from the command line (--log-level), the environment (ISOTAP_LOG_LEVEL), the configuration\n" +
			"file (log_level) and the defaults, in this order: the first that has one wins.",
		Example: "  isotap config check /etc/isotap.yaml\n  isotap config show --config /etc/isotap.yaml",
		Args:    mistakenVerb,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(configCheckCommand(), configShowCommand())
	return c
}

func configCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "check FILE",
		Short:   "Say whether a configuration file is right, without using it",
		Long:    "Names the first mistake with its file, line and key. Nothing is started and no server is asked.",
		Example: "  isotap config check /etc/isotap.yaml",
		Args:    needs("FILE", 1),
		RunE: func(c *cobra.Command, args []string) error {
			s := config.Default()
			names, err := config.ReadFile(args[0], &s)
			if err != nil {
				return err
			}
			if s.Upstream != "" {
				if _, err := parseUpstream(s.Upstream); err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
			}
			if err := s.Check(); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s is right: %d settings\n", args[0], len(names))
			return err
		},
	}
}

func configShowCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "show",
		Short: "Show the settings in effect and where each comes from",
		Long: "Prints every setting as isotap proxy with the same flags, file and environment would have it, " +
			"in the form of\n" +
			"a configuration file. Passwords are not shown.",
		Example: "  isotap config show\n  isotap config show --config /etc/isotap.yaml --drain 1m",
		Args:    noArguments,
	}
	load := settingsFlags(c, config.Default())
	c.RunE = func(c *cobra.Command, _ []string) error {
		l, err := load()
		if err != nil {
			return err
		}
		return l.Show(c.OutOrStdout())
	}
	return c
}
