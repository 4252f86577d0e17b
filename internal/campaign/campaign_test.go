//go:build linux

package main

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"
)

// program is isotap, built once for all tests.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		if testing.Short() { // the campaigns, which need the program, are for make check
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "isotap-campaign-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		if program, err = build(context.Background(), dir); err != nil {
			panic(err)
		}
		return m.Run()
	}())
}

// try runs campaigns shortly: nothing may be wrong.
func try(t *testing.T, arguments ...string) {
	t.Helper()
	t.Parallel()
	var progress strings.Builder
	s, err := parse(append(arguments, "-isotap", program, "-directory", t.TempDir()), &progress)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	wrong, err := run(t.Context(), s, &table, &progress)
	t.Log(table.String())
	if err != nil || wrong {
		t.Errorf("%v\n%s", err, progress.String())
	}
}
