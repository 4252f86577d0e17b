package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/engine"
	"github.com/isotap/isotap/scenario/runner"
	"github.com/isotap/isotap/serverlog"
)

// An observing says how isotap's own clients are observed; settings of the same names say it of a proxy.
type observing struct{ mode, identity, log string }

// flags adds the flags that say so; what o holds is the default.
func (o *observing) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.mode, "mode", o.mode,
		"items records row reads and writes, predicates also what conditions did not find")
	c.Flags().StringVar(&o.identity, "row-identity", o.identity,
		"what PostgreSQL's row versions are known by: system (its system columns) or columns (isotap's)")
	o.log = "auto"
	c.Flags().StringVar(&o.log, "server-log", o.log,
		"what the server's own log says of writes is recorded: auto, where isotap can read it; require; off")
	complete(c, "server-log", "auto", "require", "off")
	complete(c, "mode", itemsMode, predicatesMode)
	complete(c, "row-identity", systemIdentity, columnsIdentity)
}

// The values of an observing.
const (
	itemsMode, predicatesMode       = "items", "predicates"
	systemIdentity, columnsIdentity = "system", "columns"
)

// options returns those of a runner.
func (o *observing) options() (runner.Options, error) {
	s := runner.Options{Columns: o.identity == columnsIdentity, Predicates: o.mode == predicatesMode,
		Version: isotapVersion()}
	if !s.Predicates && o.mode != itemsMode {
		return s, fmt.Errorf("--mode: %q is neither %s nor %s", o.mode, itemsMode, predicatesMode)
	}
	if !s.Columns && o.identity != systemIdentity {
		return s, fmt.Errorf("--row-identity: %q is neither %s nor %s", o.identity, systemIdentity, columnsIdentity)
	}
	var err error
	if s.ServerLog, err = serverlog.ParseUse(o.log); err != nil {
		return s, fmt.Errorf("--server-log: %w", err)
	}
	return s, nil
}

// servers are the servers that isotap's own clients work on: throw-away ones, or those at URLs.
type servers struct {
	engines, upstreams []string
	engine             *engine.Engine // of started
	started            engine.Server  // what is being worked on; nil: somebody else's
}

// flags adds the flags that say where to do something.
func (o *servers) flags(c *cobra.Command, do string) {
	c.Flags().StringArrayVar(&o.engines, "engine", nil, do+" on a throw-away server: "+
		strings.Join(engine.Names(), ", ")+"; NAME=PATH starts this program, NAME@VERSION only this version; may be repeated")
	c.Flags().StringArrayVar(&o.upstreams, "upstream", nil, do+" on the server at this URL; may be repeated")
	complete(c, "engine", engine.Names()...)
}

// each does something on each of the servers, one after the other. What is started for it is ended after it.
func (o *servers) each(c *cobra.Command, do func(dsn.Target) error) error {
	engines, upstreams := o.engines, make([]dsn.Target, len(o.upstreams))
	for i, url := range o.upstreams {
		var err error
		if upstreams[i], err = parseUpstream(url); err != nil {
			return err
		}
	}
	if len(engines) == 0 && len(upstreams) == 0 {
		engines = []string{""}
	}
	for _, name := range engines {
		if _, err := engine.Find(name); err != nil {
			return fmt.Errorf("--engine: %w", err)
		}
	}
	for _, name := range engines {
		if err := o.onThrowAway(c, name, do); err != nil {
			return err
		}
	}
	for _, target := range upstreams {
		if err := do(target); err != nil {
			return err
		}
	}
	return nil
}

// onThrowAway does something on a throw-away server of an engine.
func (o *servers) onThrowAway(c *cobra.Command, name string, do func(dsn.Target) error) error {
	e, err := engine.Find(name)
	if err != nil {
		return err
	}
	s, err := e.Start(c.Context(), c.ErrOrStderr())
	if err != nil {
		return err
	}
	o.engine, o.started = e, s
	target, err := dsn.Parse(s.URL())
	if err == nil {
		err = do(target)
	}
	err = errors.Join(err, o.started.Stop())
	o.engine, o.started = nil, nil
	return err
}

// restart ends the throw-away server that is being worked on, which may have ended by itself, and opens a runner on
// another.
func (o *servers) restart(c *cobra.Command, options runner.Options) (*runner.Runner, error) {
	_ = o.started.Stop() // how it ended is what the hunt tells
	s, err := o.engine.Start(c.Context(), c.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	o.started = s
	return openOn(c.Context(), s, options)
}

// openOn opens a runner on a throw-away server.
func openOn(ctx context.Context, s engine.Server, options runner.Options) (*runner.Runner, error) {
	target, err := dsn.Parse(s.URL())
	if err != nil {
		return nil, err
	}
	return runner.Open(ctx, target, options)
}

// startOwn starts one more throw-away server of the engine that is worked on, with command line options of its own, and
// opens a runner on it, which end ends with the server.
func (o *servers) startOwn(ctx context.Context, options runner.Options, args []string) (own *runner.Runner,
	end func() error, err error) {
	s, err := o.engine.Start(ctx, io.Discard, args...)
	if err != nil {
		return nil, nil, err
	}
	if own, err = openOn(ctx, s, options); err != nil {
		return nil, nil, errors.Join(err, s.Stop())
	}
	return own, func() error {
		_ = own.Close() // the server may be gone: the scenarios for which there is one of its own may end it
		return s.Stop()
	}, nil
}

// one returns what is wrong where one server is wanted.
func (o *servers) one() error {
	if len(o.engines)+len(o.upstreams) > 1 {
		return errors.New("this is done on one server: name one --engine or --upstream")
	}
	return nil
}

// eachStage does something on a runner on each of the servers.
func (o *servers) eachStage(c *cobra.Command, options runner.Options, do func(*runner.Runner) error) error {
	return o.each(c, func(target dsn.Target) error {
		s, err := runner.Open(c.Context(), target, options)
		if err != nil {
			return err
		}
		defer s.Close() // it fails where the server is gone, which do says
		return do(s)
	})
}
