// Package random makes random databases and random transactions for them: the generator of IsoRel (3.1 and 3.2), for
// the MySQL family and PostgreSQL. What it makes depends on a seed alone: the same seed gives the same tables, rows and
// transactions, statement by statement; only how the sessions' statements fall in between each other is the server's.
//
// A [Generator] is the source: schema.go makes tables, expression.go typed expressions and conditions over them,
// query.go and write.go statements, deep.go what a deep profile has beside them, focus.go has transactions meet,
// transaction.go strings these together, by one of template.go where there is one. [Run] is the client: it has the
// sessions work at the same time and counts what came of it.
//
// Types are right by construction, so that nearly all statements succeed; those that fail do by what transactions do to
// each other, or by a constraint.
package random

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/isotap/isotap/dbms"
)

// An Engine is the server that SQL is written for.
type Engine struct {
	Name    dbms.Engine
	Version string // as the server says it; empty: one of today
	// Optimistic has TiDB's transactions meet conflicts when they commit; the others lock what they write.
	Optimistic bool
}

func (e Engine) postgresql() bool { return e.Name == dbms.PostgreSQL }

// begin is how a transaction begins.
func (e Engine) begin() string {
	switch {
	case e.Name != dbms.TiDB:
		return "BEGIN"
	case e.Optimistic:
		return "BEGIN OPTIMISTIC"
	}
	return "BEGIN PESSIMISTIC"
}

// old reports whether there are no generated columns, WITH, windows, INTERSECT, EXCEPT, SKIP LOCKED and NOWAIT: MySQL
// 5.
func (e Engine) old() bool { return e.Name == dbms.MySQL && strings.HasPrefix(e.Version, "5.") }

// skipsLocked reports whether there is SKIP LOCKED.
func (e Engine) skipsLocked() bool { return e.Name != dbms.TiDB && !e.old() }

// changesWhatItReads reports whether a write may have a subquery on its own table (MySQL and TiDB: error 1093).
func (e Engine) changesWhatItReads() bool { return e.postgresql() || e.Name == dbms.MariaDB }

// A Profile bounds what is made. The zero value of a field stands for its default.
type Profile struct {
	Tables     int `yaml:"tables"`     // at most; 3
	Columns    int `yaml:"columns"`    // of a table at most, beside its key; 3
	Rows       int `yaml:"rows"`       // of a table to begin with, at most; 5
	Statements int `yaml:"statements"` // of a transaction, at most; 10
	Sessions   int `yaml:"sessions"`   // 0: 2 to 5, by the seed
	// Transactions is how many the sessions run together on one database; 100.
	Transactions int `yaml:"transactions"`
	// Rollback is how many transactions of a hundred roll back; 10.
	Rollback int `yaml:"rollback"`
	// Keyed is how many UPDATEs and DELETEs of a hundred choose a row by its key, the others by a condition; 60. -1:
	// none.
	Keyed int `yaml:"keyed"`
	// Depth is how far expressions and conditions are nested at most; 2.
	Depth int `yaml:"depth"`
	// Deep has statements of more forms, and nested further: docs/fuzz.md.
	Deep bool `yaml:"deep"`
	// Guided is how many choices of a hundred, of a table, a row or a column, fall on what the sessions' transactions
	// of about one time have in common; 0, and 40 where Deep is set. -1: none.
	Guided int `yaml:"guided"`
	// Rate is how many transactions a second the sessions of a round begin together, at most; 0: as many as they can.
	Rate int `yaml:"rate"`
	// Duration is how long a hunt takes that is not told otherwise; 0: its usual time.
	Duration time.Duration `yaml:"duration"`
	// Closed leaves nothing open in what statements give and do: no LIMIT, row number or group's value hangs on which
	// of some rows the server comes to first.
	Closed bool `yaml:"closed"`
	// Weights say how often each kind of statement is chosen, relative to each other; a kind that is not named keeps
	// its default. The kinds are those of [Kinds].
	Weights map[string]int `yaml:"weights"`
	// Templates are what the transactions of every second dozen of seeds are made after, each template a dozen, in
	// turn.
	Templates []Template `yaml:"templates"`
}

// profiles are those with names.
var profiles = map[string]Profile{
	"shallow": {},
	"deep":    {Deep: true},
	"conflicts": {Deep: true, Guided: 70, Tables: 1, Rows: 3, Columns: 2, Keyed: 30, Weights: map[string]int{
		"select": 20, "locking": 4, "insert": 4, "update": 30, "rekey": 20, "delete": 20,
		"insert-select": 0, "upsert": 0, "replace": 0, "joined-update": 0, "joined-delete": 0, "savepoint": 0}},
}

// Named returns the profile of a name: shallow is IsoRel's generator, deep has more forms, further nested, and
// transactions that meet, conflicts has little but writes of the same few rows, whose keys move.
func Named(name string) (p Profile, ok bool) {
	p, ok = profiles[name]
	p.Weights = maps.Clone(p.Weights)
	return p, ok
}

func (p Profile) filled() Profile {
	depth, guided := 2, 0
	if p.Deep {
		depth, guided = 3, 40
	}
	for _, f := range []struct {
		field *int
		value int
	}{{&p.Tables, 3}, {&p.Columns, 3}, {&p.Rows, 5}, {&p.Statements, 10}, {&p.Transactions, 100}, {&p.Rollback, 10},
		{&p.Keyed, 60}, {&p.Depth, depth}, {&p.Guided, guided}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	return p
}

// Check returns what is wrong with a profile.
func (p Profile) Check() error {
	for name, n := range map[string]int{"tables": p.Tables, "columns": p.Columns, "rows": p.Rows,
		"statements": p.Statements,
		"sessions":   p.Sessions, "transactions": p.Transactions, "rollback": p.Rollback, "depth": p.Depth,
		"rate": p.Rate} {
		if n < 0 {
			return fmt.Errorf("%s is %d: it cannot be less than 0", name, n)
		}
	}
	if p.Duration < 0 {
		return fmt.Errorf("duration is %s: it cannot be less than 0", p.Duration)
	}
	if p.Rollback > 100 {
		return fmt.Errorf("rollback is %d: it is a percentage", p.Rollback)
	}
	for name, n := range map[string]int{"keyed": p.Keyed, "guided": p.Guided} {
		if n < -1 || n > 100 {
			return fmt.Errorf("%s is %d: it is a percentage, or -1 for none", name, n)
		}
	}
	for name, n := range p.Weights {
		if _, ok := kindNamed(name); !ok {
			return fmt.Errorf("weights: there is no kind %q of statement: %s", name, strings.Join(Kinds(), ", "))
		}
		if n < 0 {
			return fmt.Errorf("weights: %s is %d: it cannot be less than 0", name, n)
		}
	}
	for i := range p.Templates {
		if err := p.Templates[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// A Generator makes a database and its transactions. It is safe for concurrent use once it is made.
type Generator struct {
	engine   Engine
	profile  Profile
	seed     uint64
	sessions int
	tables   []*table
	setup    []string
	template *Template // nil: there is none
}

// New makes a generator for an engine out of a seed.
func New(e Engine, p Profile, seed uint64) *Generator {
	g := &Generator{engine: e, seed: seed, template: p.templateFor(seed)}
	if g.template != nil && p.Guided == 0 {
		p.Guided = templateGuided
	}
	g.profile = p.filled()
	s := g.source(0)
	if g.sessions = g.profile.Sessions; g.sessions == 0 {
		g.sessions = 2 + s.n(4)
	}
	s.database()
	g.setup = s.fill()
	return g
}

// Setup returns the statements that make the database, in order.
func (g *Generator) Setup() []string { return g.setup }

// Sessions is how many sessions the transactions are for. Session i runs the transactions whose number leaves i when
// divided by Sessions.
func (g *Generator) Sessions() int { return g.sessions }

// Transactions is how many there are.
func (g *Generator) Transactions() int { return g.profile.Transactions }

// Tables are the names of the tables.
func (g *Generator) Tables() []string {
	all := make([]string, len(g.tables))
	for i, t := range g.tables {
		all[i] = t.name
	}
	return all
}

// Sweep reads every table whole, so that each row's last version is seen.
func (g *Generator) Sweep() []string {
	all := make([]string, len(g.tables))
	for i, t := range g.tables {
		all[i] = "SELECT * FROM " + t.name
	}
	return all
}

// Refill returns the set-up with other rows: those that each statement of Sweep gave, as text; nil is NULL.
func (g *Generator) Refill(rows [][][]*string) []string {
	var all []string
	for _, sql := range g.setup {
		if !strings.HasPrefix(sql, "INSERT") {
			all = append(all, sql)
		}
	}
	for i, t := range g.tables {
		inserts, next := t.refill(rows[i])
		for j := range all {
			if next > firstIdentity && strings.HasPrefix(all[j], "CREATE TABLE "+t.name+" ") {
				all[j] = strings.Replace(all[j], identity(firstIdentity), identity(next), 1)
			}
		}
		all = append(all, inserts...)
	}
	return all
}

// A source draws what one transaction, or the database, is made of.
type source struct {
	*rand.Rand
	g     *Generator
	alias int // the aliases given so far
	focus focus
	// written is the table that the statement's subqueries may not read; nil: there is none.
	written *table
}

// source returns the source of transaction n, from 1; that of the database is 0.
func (g *Generator) source(n uint64) *source {
	return &source{Rand: rand.New(rand.NewPCG(g.seed, n)), g: g}
}

// n draws a number from 0 to max-1.
func (s *source) n(max int) int { return s.IntN(max) }

// chance is true in so many cases of a hundred.
func (s *source) chance(percent int) bool { return s.n(100) < percent }

// oneOf draws one of the choices.
func oneOf[T any](s *source, choices ...T) T { return choices[s.n(len(choices))] }

// some draws a number of different elements, in their order.
func some[T any](s *source, n int, from []T) []T {
	var all []T
	for i, x := range from {
		if left := len(from) - i; s.n(left) < n-len(all) {
			all = append(all, x)
		}
	}
	return all
}
