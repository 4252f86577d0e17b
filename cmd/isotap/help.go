package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/isotap/isotap/internal/config"
)

// needs demands arguments, at most so many (0: any number), and says which when there is none.
func needs(what string, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("no %s given: %s %s", what, c.Parent().CommandPath(), c.Use)
		case most > 0 && len(args) > most:
			return fmt.Errorf("%q is one argument too many: %s %s", args[most], c.Parent().CommandPath(), c.Use)
		}
		return nil
	}
}

// noArguments is for verbs that take flags only.
func noArguments(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case strings.Contains(args[0], "://") && c.Flags().Lookup("upstream") != nil: // it may hold a password: not repeated
		return fmt.Errorf("%s takes the server's URL by --upstream, not as an argument", c.CommandPath())
	}
	return fmt.Errorf("%s takes no arguments, but was given %q; %q lists its flags", c.CommandPath(), args[0],
		c.CommandPath()+" --help")
}

// helpCommand is cobra's, but for verbs that there are not.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [VERB]",
		Short:   "Show the help of a verb",
		Example: "  isotap help run",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) (verbs []string,
			_ cobra.ShellCompDirective) {
			if parent, rest, err := c.Root().Find(args); err == nil && len(rest) == 0 {
				for _, verb := range parent.Commands() {
					if verb.IsAvailableCommand() {
						verbs = append(verbs, verb.Name()+"\t"+verb.Short)
					}
				}
			}
			return verbs, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			verb, rest, err := c.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return mistakenVerb(verb, rest)
			}
			verb.InitDefaultHelpFlag() // cobra adds it to what it runs only
			return verb.Help()
		},
	}
}

// mistakenFlag turns pflag's error about a flag into one that says what to do.
func mistakenFlag(c *cobra.Command, err error) error {
	help := fmt.Sprintf("; %q lists the flags", c.CommandPath()+" --help")
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		return fmt.Errorf("%w%s", err, help)
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if like := config.Nearest(name, names); like != "" {
		return fmt.Errorf("unknown flag --%s: did you mean --%s?", name, like)
	}
	return fmt.Errorf("unknown flag --%s%s", name, help)
}

// mistakenVerb is for arguments of the root command, which are no verb.
func mistakenVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, verb := range c.Commands() {
		if verb.IsAvailableCommand() {
			names = append(names, verb.Name())
		}
	}
	if like := config.Nearest(args[0], names); like != "" {
		return fmt.Errorf("%q is no verb of %s: did you mean %q?", args[0], c.CommandPath(), like)
	}
	return fmt.Errorf("%q is no verb of %s; %q lists them", args[0], c.CommandPath(), c.CommandPath()+" help")
}

// completeSettings tells the shell what the values of settings may be.
func completeSettings(c *cobra.Command) {
	for i := range config.Options {
		if o := &config.Options[i]; o.Choices != nil {
			complete(c, o.Flag(), o.Choices...)
		}
	}
	complete(c, "upstream", "mysql://", "mariadb://", "tidb://")
	must(c.MarkFlagDirname("recording"))
	must(c.MarkFlagFilename("config", "yaml", "yml"))
}

// complete offers values of a flag to the shell.
func complete(c *cobra.Command, flag string, values ...string) {
	must(c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)))
}

// must is for what fails only when a flag's name is misspelled here.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
