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

	"github.com/isotap/isotap/internal/config"
)

func main() { os.Exit(run()) }

// run returns the exit status: 0, 1 for findings and failures, or that of the command of `isotap run`.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	err := root().ExecuteContext(ctx)
	var status exitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	fmt.Fprintf(os.Stderr, "isotap: %v\n", err)
	return 1
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
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		// Every flag of every verb may come from the environment.
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			return config.FromEnvironment(c.Flags(),
				os.Getenv)
		},
	}
	c.SetFlagErrorFunc(mistakenFlag)
	c.SetHelpCommand(helpCommand())
	c.AddCommand(runCommand(), proxyCommand(), analyzeCommand(), recordingsCommand(), exportCommand(), importCommand(),
		instrumentCommand(), stripCommand(), configCommand(), replayCommand(), fuzzCommand(), reduceCommand(),
		workloadCommand(), robustCommand(), demoCommand(), versionCommand())
	return c
}
