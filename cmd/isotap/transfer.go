package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/analyzer/interop"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/private"
	"github.com/isotap/isotap/recorder/jsonlines"
)

func exportCommand() *cobra.Command {
	var file, format string
	c := &cobra.Command{
		Use:   "export DIR...",
		Short: "Write recordings as JSON lines, or as histories of other checkers",
		Long: "Writes recordings, those of several proxies one after the other, as JSON lines: " +
			"runs, sessions, transactions\n" +
			"with their statements, and what rows each of them read and wrote. docs/recording-json.md describes the lines.\n\n" +
			"With --format they are written as the history of another checker, in which every row is a list or register\n" +
			"and every version a number. What it cannot say is said on standard error.",
		Example: "  isotap export ./rec > rec.jsonl\n" +
			"  isotap export ./rec | jq -c 'select(.txn.status == \"aborted\")'\n" +
			"  isotap export --format elle -o history.edn ./rec",
		Args: needs("DIR", 0),
	}
	c.Flags().StringVarP(&file, "output", "o", "", "write to this file, not to standard output")
	c.Flags().StringVar(&format, "format", "", "of another checker: "+strings.Join(formatList(), ", ")+
		" (default: isotap's JSON lines)")
	must(c.MarkFlagFilename("output", "jsonl"))
	complete(c, "format", formatList()...)
	c.ValidArgsFunction = completeDirectories
	c.RunE = func(c *cobra.Command, dirs []string) error {
		export := func(w io.Writer) error { return jsonlines.Export(c.Context(), w, dirs...) }
		if format != "" {
			f, err := interop.ParseFormat(format)
			if err != nil {
				return fmt.Errorf("--format: %w", err)
			}
			export = func(w io.Writer) error { return exportHistory(c, w, f, dirs) }
		}
		if file == "" {
			return export(c.OutOrStdout())
		}
		f, err := private.Create(file)
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		return errors.Join(export(f), f.Close())
	}
	return c
}

// exportHistory writes recordings as a history of another checker's, and says what that does not hold.
func exportHistory(c *cobra.Command, w io.Writer, f interop.Format, dirs []string) error {
	r := interop.NewRecording()
	if err := analysis.Each(c.Context(), dirs, r.AddRun, r.AddTxn); err != nil {
		return fmt.Errorf("export %w", err)
	}
	lost, err := r.History().Write(w, f)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	for _, l := range lost {
		fmt.Fprintf(c.ErrOrStderr(), "isotap: not in the history: %s\n", l)
	}
	return nil
}

func importCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE DIR",
		Short: "Make a recording of JSON lines",
		Long: "Makes the recording DIR of what isotap export, or another program, wrote. " +
			"FILE may be - for standard input.\n" +
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
