package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// judgement is what transactions are judged by, in place of what they ran at.
type judgement struct{ expect, model string }

func (j *judgement) flags(c *cobra.Command) {
	c.Flags().StringVar(&j.expect, "expect", "",
		"judge all transactions by this isolation level, of SQL or of the literature")
	c.Flags().StringVar(&j.model, "model", "", "judge all transactions by this consistency model of the literature")
	c.MarkFlagsMutuallyExclusive("expect", "model")
	complete(c, "expect", expectable()...)
	complete(c, "model", models()...)
}

// options returns those that judge so.
func (j *judgement) options() (analyzer.Options, error) {
	var opts analyzer.Options
	if j.expect == "" && j.model == "" {
		return opts, nil
	}
	if level, err := history.ParseLevel(strings.ToUpper(j.expect)); err == nil {
		opts.Expect = level
		return opts, nil
	}
	found, err := analyzer.FindLevel(j.expect + j.model)
	if err != nil {
		return opts, fmt.Errorf("--expect, --model: %w", err)
	}
	opts.Model = found
	return opts, nil
}

// expectable are the levels that --expect knows.
func expectable() []string {
	var names []string
	for l := history.ReadUncommitted; l <= history.Serializable; l++ {
		names = append(names, l.String())
	}
	return append(names, models()...)
}

// models are the levels of the literature by their usual names.
func models() []string {
	var names []string
	for i := range analyzer.TheoryLevels {
		names = append(names, analyzer.TheoryLevels[i].CommonName())
	}
	return names
}
