package random

import (
	"fmt"
	"strings"
)

// A Template is what the transactions of a round are made after: the kinds of the statements of a few transactions that
// met, as those of a finding on another server or at another level. Tables, rows and conditions are random all the
// same.
type Template struct {
	Name         string     `yaml:"name"`         // where it is from
	Transactions [][]string `yaml:"transactions"` // of each one the kinds of its statements, in order: see [Kinds]
}

const (
	// perTemplate is how many seeds in a row have one template. Levels take turns from seed to seed: there are as many
	// of each, whether a server has two, three, four or six of them.
	perTemplate = 12
	// templateGuided is Profile.Guided of what is made after a template, where the profile does not say: what the
	// template's transactions did, they did to the same rows.
	templateGuided = 70
)

// templateFor returns the template of a seed: every second dozen of seeds has one. Nil: it has none.
func (p *Profile) templateFor(seed uint64) *Template {
	dozen := seed / perTemplate
	if len(p.Templates) == 0 || dozen%2 == 1 {
		return nil
	}
	return &p.Templates[dozen/2%uint64(len(p.Templates))]
}

// Template returns what the transactions are made after; nil where that is nothing.
func (g *Generator) Template() *Template { return g.template }

// kindsOf returns the kinds of the statements of transaction n by the template, but for those that the profile never
// has.
func (g *Generator) kindsOf(n int) []kind {
	var all []kind
	for _, name := range g.template.Transactions[(n-1)%len(g.template.Transactions)] {
		k, _ := kindNamed(name)
		if w, set := g.profile.Weights[name]; !set || w > 0 {
			all = append(all, k)
		}
	}
	if len(all) == 0 {
		return kinds[:1]
	}
	return all
}

// check returns what is wrong with a template.
func (t *Template) check() error {
	if len(t.Transactions) == 0 {
		return fmt.Errorf("templates: %q has no transactions", t.Name)
	}
	for _, txn := range t.Transactions {
		for _, name := range txn {
			if _, ok := kindNamed(name); !ok {
				return fmt.Errorf("templates: %q: there is no kind %q of statement: %s", t.Name, name, strings.Join(Kinds(), ", "))
			}
		}
	}
	return nil
}
