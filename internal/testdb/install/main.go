// Command install makes sure that this machine has the database servers that the tests run on, those of its
// arguments ("mariadb", "postgresql") or both: it installs them by their packages' names where that needs
// no question, and says what to install elsewhere.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/isotap/isotap/internal/testdb"
)

// servers are what can be installed, by argument.
var servers = map[string]func(context.Context, io.Writer) error{
	"mariadb":    testdb.Install,
	"postgresql": testdb.InstallPostgreSQL,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	names := os.Args[1:]
	if len(names) == 0 {
		names = []string{"mariadb", "postgresql"}
	}
	for _, name := range names {
		if err := install(ctx, name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func install(ctx context.Context, name string) error {
	install, known := servers[name]
	if !known {
		return fmt.Errorf("there is no server %q to install: mariadb or postgresql", name)
	}
	return install(ctx, os.Stderr)
}
