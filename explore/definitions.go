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

// createdBy returns the tables that instances make when they are played, by their names in lower case.
func createdBy(instances []*instance) map[string]bool {
	all := make(map[string]bool)
	for _, in := range instances {
		if !in.whole || in.reach() == beyond {
			continue
		}
		for i := range in.statements {
			s := &in.statements[i]
			at := slices.IndexFunc(s.tokens, func(t sqltoken.Token) bool { return t.Is("TABLE") })
			if s.recorded.Kind != history.DDL || !s.tokens[0].Is("CREATE") || at < 0 {
				continue
			}
			for at++; at < len(s.tokens) && slices.ContainsFunc(words("IF NOT EXISTS"), s.tokens[at].Is); at++ {
			}
			for at+2 < len(s.tokens) && s.tokens[at+1].Is(".") {
				at += 2
			}
			if at < len(s.tokens) {
				name, _, _ := s.tokens[at].Name()
				all[strings.ToLower(name)] = true
			}
		}
	}
	return all
}

// define makes the tables that an instance uses, that the copy does not have and that no instance makes: recordings of
// earlier versions do not have the definitions that ran, but how tables were defined when they were first used. So it
// is with a definition that is not played.
func (p *pass) define(in *instance) error {
	var references []string
	made := false
	for i := range in.statements {
		for _, table := range in.statements[i].named {
			name := strings.ToLower(table)
			d, recorded := p.definitions[name]
			if p.schema.columns[name] != nil || !recorded || p.made[name] || p.creates[name] {
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
	return p.learn()
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
