package fuzz

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/sqltoken"
	"github.com/isotap/isotap/workload/random"
)

// Templates returns those of what a hunt found and made small, for hunts on other servers.
func (t *Tally) Templates() (all []random.Template) {
	add := func(s *scenario.Scenario, file string) {
		if of, ok := TemplateOf(s, file); ok {
			all = AddTemplates(all, of)
		}
	}
	for _, c := range t.Catches {
		if c.Scenario != nil {
			add(c.Scenario, c.File)
		}
	}
	for _, m := range t.Mismatches {
		if m.Reduction == Done {
			add(m.Scenario, m.File)
		}
	}
	return all
}

// AddTemplates adds those to some whose transactions are others than theirs.
func AddTemplates(all []random.Template, more ...random.Template) []random.Template {
	for _, t := range more {
		if !slices.ContainsFunc(all, func(other random.Template) bool {
			return slices.EqualFunc(t.Transactions, other.Transactions, slices.Equal[[]string])
		}) {
			all = append(all, t)
		}
	}
	return all
}

// TemplateOf makes a template of a scenario's transactions; a statement in autocommit is one. False: it has none.
func TemplateOf(s *scenario.Scenario, name string) (random.Template, bool) {
	t := random.Template{Name: name}
	if s.Name != "" {
		t.Name += ": " + s.Name
	}
	for _, session := range s.Sessions {
		var txn []string
		block := false
		end := func() {
			if len(txn) > 0 {
				t.Transactions = append(t.Transactions, txn)
			}
			txn, block = nil, false
		}
		for _, step := range s.Steps {
			if step.Session != session.Name {
				continue
			}
			switch kind, what := kindOfText(step.SQL); what {
			case begins:
				end()
				block = true
			case ends:
				end()
			case works:
				if txn = append(txn, kind); !block {
					end()
				}
			}
		}
		end()
	}
	slices.SortFunc(t.Transactions, slices.Compare[[]string])
	return t, len(t.Transactions) > 0
}

// What a statement does to its transaction.
type effect int

const (
	other effect = iota // it is none that a generator has
	begins
	ends
	works
)

// kindOfText returns the kind that a generator has for a statement of a scenario, whatever server it is for.
func kindOfText(sql string) (kind string, what effect) {
	tokens, err := sqltoken.Statement(dbms.MySQLFamily, sql)
	if err != nil {
		if tokens, err = sqltoken.Statement(dbms.PostgreSQLFamily, sql); err != nil {
			return "", other
		}
	}
	verb, has := clauses(tokens)
	switch verb {
	case "BEGIN", "START":
		return "", begins
	case "COMMIT", "END":
		return "", ends
	case "ROLLBACK":
		if has("TO") {
			return "savepoint", works
		}
		return "", ends
	case "SAVEPOINT":
		return "savepoint", works
	case "SELECT", "TABLE", "VALUES":
		if has("FOR", "UPDATE") || has("KEY", "UPDATE") || has("FOR", "SHARE") || has("KEY", "SHARE") || has("LOCK", "IN") {
			return "locking", works
		}
		return "select", works
	case "INSERT":
		switch {
		case has("ON", "CONFLICT"), has("ON", "DUPLICATE"):
			return "upsert", works
		case has("SELECT"):
			return "insert-select", works
		}
		return "insert", works
	case "REPLACE":
		return "replace", works
	case "UPDATE":
		if has("JOIN") || has("FROM") {
			return "joined-update", works
		}
		return "update", works
	case "DELETE":
		if has("JOIN") || has("USING") {
			return "joined-delete", works
		}
		return "delete", works
	}
	return "", other
}

// clauses returns the verb of a statement, behind a WITH, and says which words stand one behind the other in it outside
// of parentheses.
func clauses(tokens []sqltoken.Token) (verb string, has func(words ...string) bool) {
	var outside []string
	depth := 0
	for _, t := range tokens {
		switch {
		case t.Is("("):
			depth++
		case t.Is(")"):
			depth--
		case depth == 0:
			outside = append(outside, strings.ToUpper(t.Text))
		}
	}
	has = func(words ...string) bool {
		for i := 0; i+len(words) <= len(outside); i++ {
			if slices.Equal(outside[i:i+len(words)], words) {
				return true
			}
		}
		return false
	}
	if len(outside) > 0 && outside[0] == "WITH" {
		i := slices.IndexFunc(outside, func(w string) bool {
			return slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE"}, w)
		})
		outside = outside[max(i, 0):]
	}
	switch {
	case len(tokens) == 0:
		return "", has
	case tokens[0].Is("("):
		return "SELECT", has
	}
	return outside[0], has
}

// A TemplateTally counts what became of one template at one level.
type TemplateTally struct {
	Plays int                      // rounds of graph, and scripts of other oracles
	Shown map[analyzer.Anomaly]int // in how many of them graph found an anomaly
	Wrong map[Oracle]int           // in how many of them another oracle found a difference
}

// templated returns the counts of a round's template; nil where it has none.
func (l *LevelTally) templated(g *random.Generator) *TemplateTally {
	if g.Template() == nil {
		return nil
	}
	return l.ofTemplate(g.Template().Name)
}

func (l *LevelTally) ofTemplate(name string) *TemplateTally {
	if l.Templates == nil {
		l.Templates = make(map[string]*TemplateTally)
	}
	if l.Templates[name] == nil {
		l.Templates[name] = &TemplateTally{Shown: make(map[analyzer.Anomaly]int), Wrong: make(map[Oracle]int)}
	}
	return l.Templates[name]
}

// found counts a round of graph.
func (t *TemplateTally) found(findings []*analyzer.Finding) {
	if t == nil {
		return
	}
	t.Plays++
	shown := make(map[analyzer.Anomaly]bool)
	for _, f := range findings {
		shown[f.Anomaly] = true
	}
	for a := range shown {
		t.Shown[a]++
	}
}

// judged counts a script of another oracle.
func (t *TemplateTally) judged(by Oracle, v *oracle.Verdict) {
	if t == nil {
		return
	}
	t.Plays++
	if v.Wrong() {
		t.Wrong[by]++
	}
}

// String says what the template came to at its level.
func (t *TemplateTally) String() string {
	var all []string
	for _, a := range slices.Sorted(maps.Keys(t.Shown)) {
		all = append(all, fmt.Sprintf("%s in %d", a, t.Shown[a]))
	}
	for _, o := range slices.Sorted(maps.Keys(t.Wrong)) {
		all = append(all, fmt.Sprintf("%s wrong in %d", o, t.Wrong[o]))
	}
	if len(all) == 0 {
		all = []string{"nothing"}
	}
	return fmt.Sprintf("%d plays: %s", t.Plays, strings.Join(all, ", "))
}

// templates writes what became of each template at each level.
func (t *Tally) templates(w io.Writer) {
	names := make(map[string]bool)
	for _, l := range t.Levels {
		for name := range l.Templates {
			names[name] = true
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(w, "made after %d templates:\n", len(names))
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(w, "  %s\n", name)
		for _, level := range t.levels() {
			if of := t.Levels[level].Templates[name]; of != nil {
				fmt.Fprintf(w, "    %s, %s\n", level, of)
			}
		}
	}
}
