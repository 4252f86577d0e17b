package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/recorder/jsonlines"
)

func exportCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "export DIR...",
		Short: "Write recordings as JSON lines",
		Long: "Writes recordings, those of several proxies one after the other, as JSON lines: runs, sessions, transactions\n" +
			"with their statements, and what rows each of them read and wrote. docs/recording-json.md describes the lines.",
		Example: "  isotap export ./rec > rec.jsonl\n  isotap export ./rec | jq -c 'select(.txn.status == \"aborted\")'",
		Args:    needs("DIR", 0),
	}
	c.Flags().StringVarP(&file, "output", "o", "", "write to this file, not to standard output")
	must(c.MarkFlagFilename("output", "jsonl"))
	c.ValidArgsFunction = completeDirectories
	c.RunE = func(c *cobra.Command, dirs []string) error {
		if file == "" {
			return jsonlines.Export(c.Context(), c.OutOrStdout(), dirs...)
		}
		f, err := os.Create(file)
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		return errors.Join(jsonlines.Export(c.Context(), f, dirs...), f.Close())
	}
	return c
}

func importCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE DIR",
		Short: "Make a recording of JSON lines",
		Long: "Makes the recording DIR of what isotap export, or another program, wrote. FILE may be - for standard input.\n" +
			"DIR must not exist or be empty. A mistake is named with its line, and DIR is then as it was.",
		Example: "  isotap import rec.jsonl ./rec\n  zstdcat rec.jsonl.zst | isotap import - ./rec",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("import takes two arguments: %s %s", c.Parent().CommandPath(), c.Use)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			var in io.Reader = c.InOrStdin()
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return fmt.Errorf("import: %w", err)
				}
				defer f.Close()
				in = f
			}
			return jsonlines.Import(c.Context(), in, args[0], args[1])
		},
	}
}

// completeDirectories is for arguments that are recordings.
func completeDirectories(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}
