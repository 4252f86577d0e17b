package main

import (
	"fmt"
	"slices"
	"strings"
)

// asked is what a flag asks for: --isolation, --level.
type asked[T comparable] struct {
	all   bool // all that a server has
	names []T
}

// parseAsked reads a flag's names that are separated by commas, or all.
func parseAsked[T comparable](flag, text string, parse func(string) (T, error)) (a asked[T], err error) {
	if text == "all" {
		return asked[T]{all: true}, nil
	}
	if text == "" {
		return a, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		t, err := parse(strings.ToUpper(strings.TrimSpace(name)))
		if err != nil {
			return a, fmt.Errorf("%s: %w", flag, err)
		}
		a.names = append(a.names, t)
	}
	return a, nil
}

// none reports whether nothing was asked for.
func (a asked[T]) none() bool { return !a.all && len(a.names) == 0 }

// of returns those that a server has of what is asked for.
func (a asked[T]) of(has []T) []T {
	if a.all {
		return has
	}
	return slices.DeleteFunc(slices.Clone(a.names), func(t T) bool { return !slices.Contains(has, t) })
}
