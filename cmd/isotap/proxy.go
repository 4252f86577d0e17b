package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/internal/tap"
)

func proxyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "proxy --upstream URL --recording DIR",
		Short: "Stand between clients and their database, and record",
		Long: "Serves clients until SIGTERM or SIGINT, then lets open transactions finish.\n" +
			"Tables must carry isotap's columns to be observed: see isotap instrument.",
		Example: "  isotap proxy --upstream mysql://app:secret@db:3306/shop --listen 127.0.0.1:3307 --recording ./rec",
		Args:    cobra.NoArgs,
	}
	load := settingsFlags(c, defaultSettings())
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := load()
		if err != nil {
			return err
		}
		o, err := s.options()
		if err != nil {
			return err
		}
		t, err := tap.Start(c.Context(), o)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.ErrOrStderr(), "isotap: clients connect to %s, the server is %s\n", t.Addr(), o.Upstream)
		return t.Wait()
	}
	return c
}
