package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/isotap/isotap/internal/private"
	"github.com/isotap/isotap/internal/programs"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/counterexample"
)

// writeScenarios writes the executions of an answer to the directory of --scenarios, a file for each.
func (o *robustFlags) writeScenarios(p *programs.Programs, answer *robust.Answer) error {
	if o.scenarios == "" {
		return nil
	}
	tables, err := counterexample.NewTables(p.Family, p.Definitions)
	if err != nil {
		return fmt.Errorf("--scenarios: %w", err)
	}
	if err := private.MkdirAll(o.scenarios); err != nil {
		return fmt.Errorf("--scenarios: %w", err)
	}
	for _, test := range []robust.Test{robust.TypeII, robust.Snapshot} {
		of := answer.Of(test)
		for i, witness := range of.Witnesses {
			if witness == nil || witness.Schedule == nil {
				continue
			}
			name := test.Level().String()
			for _, member := range of.Minimal[i] {
				name += " " + p.Programs[member].Label()
			}
			s, err := counterexample.Scenario(name, p.Workload, tables, witness)
			if err != nil {
				return fmt.Errorf("--scenarios: %w", err)
			}
			file := strings.ReplaceAll(strings.ToLower(name), " ", "-") + ".yaml"
			if err := writeFile(filepath.Join(o.scenarios, file), s.Write); err != nil {
				return err
			}
		}
	}
	return nil
}
