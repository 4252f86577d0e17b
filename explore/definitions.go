package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/sqltoken"
)

// definitionsOf returns how a database's tables were first defined in a run, by their names in lower case, without
// quotes.
func definitionsOf(ctx context.Context, r *recorder.Reader, run history.Run, database string) (map[string]history.Definition,
	error) {
	all := make(map[string]history.Definition)
	for d, err := range r.Definitions(ctx, run) {
		if err != nil {
			return nil, fmt.Errorf("read the definitions of tables: %w", err)
		}
		name := strings.ToLower(strings.Trim(d.Name, "`\""))
		if _, known := all[name]; !known && d.SQL != "" && (database == "" || strings.EqualFold(d.Database, database)) {
			all[name] = d
		}
	}
	return all, nil
}

// define makes the tables that an instance uses and that the copy does not have: the recorded command made them.
// A recording has no CREATE TABLE, but how tables were defined when they were first used.
func (p *pass) define(in *instance) error {
	var references []string
	made := false
	for i := range in.statements {
		for _, table := range in.statements[i].named {
			name := strings.ToLower(table)
			d, recorded := p.definitions[name]
			if p.schema.columns[name] != nil || !recorded || p.made[name] {
				continue
			}
			p.made[name], made = true, true
			if err := p.runAll(d.SQL, "CREATE", "ALTER"); err != nil {
				return fmt.Errorf("make table %s: %w", table, err)
			}
			references = append(references, d.References)
		}
	}
	if !made {
		return nil
	}
	for _, text := range references {
		// A trigger may name a database, and write there.
		if err := p.runAll(text, "ALTER"); err != nil {
			return fmt.Errorf("make foreign keys: %w", err)
		}
	}
	var err error
	p.schema, err = readSchema(p.control, p.server.Family)
	return err
}

// runAll runs the statements of a definition that begin with one of some verbs. One that the server refuses, as for a
// type that is not there, leaves the table without it: what then is otherwise than recorded is counted.
func (p *pass) runAll(text string, verbs ...string) error {
	tokens, err := sqltoken.Statement(p.server.Family, text)
	if err != nil {
		return err
	}
	for _, s := range sqltoken.Statements(tokens) {
		if !slices.ContainsFunc(verbs, s[0].Is) {
			continue
		}
		if _, err := p.control.Ask(text[s[0].Start:s[len(s)-1].End]); err != nil {
			return err
		}
	}
	return nil
}
