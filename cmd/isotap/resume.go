package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/internal/engine"
	"github.com/isotap/isotap/internal/fuzz"
)

// sameFlags are those that a hunt has for good; freeFlags may have other values when it is gone on with.
var (
	sameFlags = []string{"isolation", "oracle", "mode", "row-identity", "server-log", "seed"}
	freeFlags = []string{"lanes", "patience", "reduce", "reduce-time"}
)

// recall sets the flags to what the hunt that is gone on with was asked for.
func (h *hunting) recall(c *cobra.Command) error {
	s, err := fuzz.ReadState(h.resume)
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	h.From, h.Dir, h.Profile = s, h.resume, s.Profile
	for _, name := range append([]string{"duration", "rounds"}, append(sameFlags, freeFlags...)...) {
		if s.Asked[name] == "" {
			return fmt.Errorf("--resume: the hunt in %s does not say what its --%s was: it is damaged", h.resume, name)
		}
	}
	for _, name := range sameFlags {
		flag := c.Flags().Lookup(name)
		if flag.Changed && !strings.EqualFold(flag.Value.String(), s.Asked[name]) {
			return h.contradicts(name, s.Asked[name], flag.Value.String())
		}
		if err := flag.Value.Set(s.Asked[name]); err != nil {
			return fmt.Errorf("--resume: --%s of the hunt in %s: %w", name, h.resume, err)
		}
	}
	for _, name := range freeFlags {
		if flag := c.Flags().Lookup(name); !flag.Changed {
			if err := flag.Value.Set(s.Asked[name]); err != nil {
				return fmt.Errorf("--resume: --%s of the hunt in %s: %w", name, h.resume, err)
			}
		}
	}
	if c.Flags().Changed("profile") {
		p, err := readProfile(h.profile)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(p, s.Profile) {
			return fmt.Errorf("--resume: the hunt in %s has another profile than --profile %s", h.resume, h.profile)
		}
	}
	if err := h.howLong(c, s); err != nil {
		return err
	}
	return h.where(s.Asked["engine"])
}

func (h *hunting) contradicts(name, was, is string) error {
	return fmt.Errorf("--resume: the hunt in %s has --%s %s, and --%s is %s", h.resume, name, was, name, is)
}

// howLong is how long the hunt goes on: --duration and --rounds say how much is to be added; without both, it has what
// was left of what it had.
func (h *hunting) howLong(c *cobra.Command, s *fuzz.State) error {
	f := c.Flags()
	longer, more := f.Changed("duration"), f.Changed("rounds")
	for _, name := range []string{"duration", "rounds"} {
		if !longer && !more {
			if err := f.Lookup(name).Value.Set(s.Asked[name]); err != nil {
				return fmt.Errorf("--resume: --%s of the hunt in %s: %w", name, h.resume, err)
			}
		}
	}
	switch {
	case longer && h.Duration > 0:
		h.Duration += s.Hunted()
	case more && !longer:
		h.Duration = 0
	}
	if more && h.Rounds > 0 {
		h.Rounds += s.Begun()
	}
	return nil
}

// where is the server that the hunt goes on on: one of the same engine, or the one of --upstream, whose URL may have a
// password and is not kept.
func (h *hunting) where(name string) error {
	if err := h.on.one(); err != nil {
		return err
	}
	if name == "" {
		if len(h.on.upstreams) == 0 {
			return fmt.Errorf("--resume: the hunt in %s is on a server at --upstream: name it again, its URL is not kept", h.resume)
		}
		return nil
	}
	if len(h.on.upstreams) > 0 {
		return fmt.Errorf("--resume: the hunt in %s has --engine %s, and --upstream names another server", h.resume, name)
	}
	if len(h.on.engines) > 0 {
		e, err := engine.Find(h.on.engines[0])
		if err != nil {
			return fmt.Errorf("--engine: %w", err)
		}
		if e.String() != name {
			return h.contradicts("engine", name, e.String())
		}
	}
	h.on.engines = []string{name}
	return nil
}
