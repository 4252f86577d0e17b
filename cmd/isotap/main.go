// Command isotap tells whether SQL transactions are safe: a proxy between clients and their database
// that records which row versions every statement read and wrote, and an analyzer that names the
// isolation anomalies in the recording.
//
// There is one file per verb, and no logic in any of them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/isotap/isotap/internal/config"
)

func main() { os.Exit(run()) }

// run returns the exit status: one of those below, or that of the command of `isotap run`.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	err := root().ExecuteContext(ctx)
	var status exitStatus
	var said failure
	switch {
	case err == nil:
		return 0
	case errors.As(err, &said):
		fmt.Fprintf(os.Stderr, "isotap: %v\n", err)
		return int(said.status)
	case errors.As(err, &status):
		return int(status)
	}
	fmt.Fprintf(os.Stderr, "isotap: %v\n", err)
	return statusFailed
}

// The exit statuses of isotap itself, beside 0.
const (
	statusFound  = 1 // findings, or what else a verb looks for
	statusFailed = 2 // it was used wrongly, or failed
	statusUnseen = 3 // too little was seen to say that nothing is wrong
)

// A failure ends the process with a status of its own and its message.
type failure struct {
	error
	status exitStatus
}

// flagsBelow are the names of the flags of a command and of all verbs below it.
func flagsBelow(c *cobra.Command) []string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	for _, verb := range c.Commands() {
		names = append(names, flagsBelow(verb)...)
	}
	return names
}

// exitStatus ends the process with a status of its own, without a message.
type exitStatus int

// Error makes exitStatus an error.
func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// orNil is the status as an error: nil for 0.
func (s exitStatus) orNil() error {
	if s == 0 {
		return nil
	}
	return s
}

// root is isotap without a verb.
func root() *cobra.Command {
	c := &cobra.Command{
		Use:   "isotap",
		Short: "Tells whether your transactions are safe",
		Long: "isotap stands between your application and its database, watches the transactions, " +
			"and names the isolation anomalies it sees.",
		Example:       "  isotap demo\n  isotap run --upstream mysql://root@127.0.0.1:3306/shop -- go test ./...",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          mistakenVerb,
		RunE: func(c *cobra.Command, _ []string) error {
			return c.Help()
		},
		// Every flag of every verb may come from the environment.
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if err := config.Misspelt(os.Environ(), flagsBelow(c.Root())); err != nil {
				return err
			}
			return config.FromEnvironment(c.Flags(), os.Getenv)
		},
		Version: isotapVersion(),
	}
	c.SetVersionTemplate(versionLine())
	c.InitDefaultVersionFlag()
	c.InitDefaultHelpFlag()
	c.SetFlagErrorFunc(mistakenFlag)
	c.SetHelpCommand(helpCommand())
	c.AddCommand(runCommand(), proxyCommand(), analyzeCommand(), recordingsCommand(), exportCommand(), importCommand(),
		instrumentCommand(), stripCommand(), configCommand(), doctorCommand(), levelsCommand(), replayCommand(), fuzzCommand(),
		reduceCommand(), workloadCommand(), robustCommand(), exploreCommand(), demoCommand(), versionCommand())
	return c
}
