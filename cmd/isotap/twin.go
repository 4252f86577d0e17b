package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/explore"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/recorder"
)

// A twinRun is what isotap run does with --twin: it plays twins beside the command's transactions, on the database
// itself.
type twinRun struct {
	on   bool
	live *explore.Live // nil: none are played
}

func (t *twinRun) flags(c *cobra.Command) {
	c.Flags().BoolVar(&t.on, "twin", false, "show which requests race without a copy: play each on the database itself, "+
		"just before and after it commits, and take it back")
}

// check returns what is wrong with the flags before anything is done.
func (t *twinRun) check(c *cobra.Command, use exploreUse) error {
	switch {
	case !t.on:
		return nil
	case c.Flags().Changed("explore") && use == exploreOff:
		return errors.New("--twin shows what could have happened, and --explore=off leaves that out: give one of them")
	case c.Flags().Changed("explore-time"):
		return errors.New("--explore-time bounds what is played on a copy: with --twin there is none")
	}
	return nil
}

// begin has the proxy play twins.
func (t *twinRun) begin(c *cobra.Command, o *proxyserver.Options) error {
	switch {
	case o.Off || !o.Args:
		return errors.New("--twin plays what clients send with its values: not with --mode off, nor with --record-values=false")
	case o.Upstream.Database == "":
		return errors.New("--twin plays on the database that --upstream names, and --upstream names none")
	}
	if c.Flags().Changed("explore") {
		fmt.Fprintln(c.ErrOrStderr(), "isotap: with --twin no copy is made (--explore): the database itself is played on")
	}
	t.live = explore.NewLive(c.Context(), o.Upstream)
	o.Twins = t.live
	return nil
}

// result judges what was played.
func (t *twinRun) result(c *cobra.Command, recording string, run history.Run) (*explore.Result, error) {
	r, err := recorder.Open(recording)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	result, err := t.live.Result(c.Context(), r, run)
	if err != nil {
		return nil, fmt.Errorf("--twin: %w", err)
	}
	return result, nil
}

// end ends what is still played.
func (t *twinRun) end() error {
	if t.live == nil {
		return nil
	}
	err := t.live.Close()
	t.live = nil
	return err
}
