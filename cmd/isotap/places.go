package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/internal/engine"
	"github.com/isotap/isotap/internal/stage"
)

// An observing says how isotap's own clients are observed; settings of the same names say it of a proxy.
type observing struct{ mode, identity string }

// flags adds the flags that say so; what o holds is the default.
func (o *observing) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.mode, "mode", o.mode, "items records row reads and writes, predicates also what conditions did not find (on TiDB it is items)")
	c.Flags().StringVar(&o.identity, "row-identity", o.identity, "what PostgreSQL's row versions are known by: system (its system columns) or columns (isotap's)")
	complete(c, "mode", itemsMode, predicatesMode)
	complete(c, "row-identity", systemIdentity, columnsIdentity)
}

// The values of an observing.
const (
	itemsMode, predicatesMode       = "items", "predicates"
	systemIdentity, columnsIdentity = "system", "columns"
)

// options gives those of a stage.
func (o *observing) options() (stage.Options, error) {
	s := stage.Options{Columns: o.identity == columnsIdentity, Predicates: o.mode == predicatesMode, Version: isotapVersion()}
	if !s.Predicates && o.mode != itemsMode {
		return s, fmt.Errorf("--mode: %q is neither %s nor %s", o.mode, itemsMode, predicatesMode)
	}
	if !s.Columns && o.identity != systemIdentity {
		return s, fmt.Errorf("--row-identity: %q is neither %s nor %s", o.identity, systemIdentity, columnsIdentity)
	}
	return s, nil
}

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
