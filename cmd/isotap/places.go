package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/internal/engine"
)

// places are the servers that isotap's own clients work on: throw-away ones, or those at URLs.
type places struct{ engines, upstreams []string }

// flags adds the flags that say where to do something.
func (o *places) flags(c *cobra.Command, do string) {
	c.Flags().StringArrayVar(&o.engines, "engine", nil, do+" on a throw-away server: "+strings.Join(engine.Names(), " or ")+"; may be repeated")
	c.Flags().StringArrayVar(&o.upstreams, "upstream", nil, do+" on the server at this URL; may be repeated")
	complete(c, "engine", engine.Names()...)
}

// open gives the servers, and what ends those that were started for it.
func (o *places) open(c *cobra.Command) (targets []catalog.Target, stop func() error, err error) {
	var started []engine.Server
	stop = func() (err error) {
		for _, s := range started {
			err = errors.Join(err, s.Stop())
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()
	urls, engines := slices.Clone(o.upstreams), o.engines
	if len(urls) == 0 && len(engines) == 0 {
		engines = []string{""}
	}
	for _, name := range engines {
		e, err := engine.Find(name)
		if err != nil {
			return nil, stop, fmt.Errorf("--engine: %w", err)
		}
		s, err := e.Start(c.Context(), c.ErrOrStderr())
		if err != nil {
			return nil, stop, err
		}
		started = append(started, s)
		urls = append(urls, s.URL())
	}
	for _, url := range urls {
		target, err := catalog.ParseTarget(url)
		if err != nil {
			return nil, stop, fmt.Errorf("--upstream: %w", err)
		}
		targets = append(targets, target)
	}
	return targets, stop, nil
}
