// Command install makes sure that this machine has the MariaDB that the tests run on: it installs it
// by its packages' names where that needs no question, and says what to install elsewhere.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/isotap/isotap/internal/testdb"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := testdb.Install(ctx, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
