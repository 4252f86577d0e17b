package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/proxy"
)

// version is set by the linker for releases (-X main.version=...).
var version = ""

// isotapVersion returns the release, or what the Go tool knows of the build.
func isotapVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// versionLine is what `isotap version` and `isotap --version` print.
func versionLine() string { return fmt.Sprintf("isotap %s (%s)\n", isotapVersion(), runtime.Version()) }

// versionDetails are the lines that --verbose adds.
func versionDetails() string {
	lines := fmt.Sprintf("platform: %s/%s\n", runtime.GOOS, runtime.GOARCH)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" || s.Key == "vcs.time" || s.Key == "vcs.modified" {
				lines += fmt.Sprintf("%s: %s\n", strings.TrimPrefix(s.Key, "vcs."), s.Value)
			}
		}
	}
	return lines + fmt.Sprintf("plain connections with --mode off: %s\nall others: goroutines\n", proxy.RelayedBy)
}

func versionCommand() *cobra.Command {
	var asJSON, verbose bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print isotap's version",
		Example: "  isotap version --json",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(map[string]string{"isotap": isotapVersion(),
					"go": runtime.Version()})
			}
			text := versionLine()
			if verbose {
				text += versionDetails()
			}
			_, err := io.WriteString(c.OutOrStdout(), text)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "print what isotap was built of, and what moves its clients' bytes")
	return c
}
