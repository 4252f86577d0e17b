package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
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

func versionCommand() *cobra.Command {
	var asJSON bool
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
			_, err := io.WriteString(c.OutOrStdout(), versionLine())
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
