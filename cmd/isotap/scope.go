package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/analyzer"
)

// A scopeFlag is --scope. The zero value is that of a verb that has none.
type scopeFlag struct{ name string }

// add adds the flag. When says when it counts: empty, or as "with --live: ".
func (s *scopeFlag) add(c *cobra.Command, when string) {
	s.name = analyzer.GuessedScope.String()
	c.Flags().StringVar(&s.name, "scope", s.name, when+"which transactions are of one request, between which nobody protects what it "+
		"goes by: tag, as comments of their statements say (traceparent, request_id); guess, also those that follow each other "+
		"at once on one connection; off")
	complete(c, "scope", "tag", "guess", "off")
}

// scope returns what --scope says; [analyzer.NoScope] where the verb has no such flag.
func (s *scopeFlag) scope() (analyzer.Scope, error) {
	if s.name == "" {
		return analyzer.NoScope, nil
	}
	scope, err := analyzer.ParseScope(s.name)
	if err != nil {
		return scope, fmt.Errorf("--scope: %w", err)
	}
	return scope, nil
}
