package fuzz

import (
	"context"
	"errors"
	"maps"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/scenario/runner"
)

// quickSettings are PostgreSQL's with which rounds take less time: tables that were never analyzed are taken to be
// large, so that what reads their few rows is compiled, which takes up to a second; a deadlock is looked for after a
// second otherwise, in which nobody gets on.
var quickSettings = scenario.Settings{"jit": "off", "deadlock_timeout": "2ms"}

// quickly returns a runner whose sessions have those of quickSettings that the server knows and lets its user make.
func quickly(ctx context.Context, s *runner.Runner) (quick *runner.Runner, err error) {
	if s.Server.Engine.Family() != dbms.PostgreSQLFamily {
		return s, nil
	}
	scratch, err := s.Scratch(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, scratch.Close()) }()
	c, err := scratch.Connect(ctx, history.ReadCommitted, nil)
	if err != nil {
		return nil, err
	}
	settings := scenario.Settings{}
	maps.Copy(settings, s.Options().Settings)
	for name, value := range quickSettings {
		made, err := c.Ask("SET " + name + " = '" + value + "'")
		if err != nil {
			return nil, err
		}
		if made.Status == replay.OK {
			settings[name] = value
		}
	}
	return s.With(settings), nil
}
