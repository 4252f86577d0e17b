// Package cases runs interleaved cases on a server of the MySQL family or PostgreSQL: a few sessions whose
// statements are sent in one fixed order, each to its end or until it waits for a lock. A case is the
// "history" that the isolation literature draws as two columns of SQL (Hermitage, and the figures of
// IsoRel, TxCheck, Troc and the ReplBug thesis), with what was measured on a real server beside it.
//
// [Corpus] gives the cases that come with the package, a [Runner] runs them against any address,
// and [Compare] tells two runs of one case apart: run directly and through the proxy, there must be
// no difference.
//
// What a run needs of a server is in server.go; mysql.go and postgresql.go have it for the two families,
// mysql_waits.go and postgresql_waits.go how each tells who waits for a lock.
package cases

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed testdata/*.yaml
var corpus embed.FS

// A Level is an isolation level by the short name that observations use.
type Level string

// The four levels of SQL.
const (
	RU  Level = "RU"
	RC  Level = "RC"
	RR  Level = "RR"
	SER Level = "SER"
)

var levelNames = map[Level]string{
	RU: "READ UNCOMMITTED", RC: "READ COMMITTED", RR: "REPEATABLE READ", SER: "SERIALIZABLE",
}

// SQL is the level's name in SQL; empty for a level that is none of the four.
func (l Level) SQL() string { return levelNames[l] }

// UnmarshalYAML reads a level by its SQL name.
func (l *Level) UnmarshalYAML(node *yaml.Node) error {
	for level, name := range levelNames {
		if node.Value == name {
			*l = level
			return nil
		}
	}
	return fmt.Errorf("line %d: %q is no isolation level", node.Line, node.Value)
}

// A Case is a set-up and an order of statements by several sessions.
type Case struct {
	ID       string         `yaml:"id"`
	Title    string         `yaml:"title"`
	Source   map[string]any `yaml:"source"`   // where it comes from: repository, path, commit, license; or paper and figure
	Dialects []string       `yaml:"dialects"` // "mysql", "mariadb", "tidb", "postgresql"
	// Isolation is the level that the source speaks of; empty when it speaks of several.
	Isolation Level `yaml:"isolation"`
	// Levels are the levels to run at; empty means Isolation only.
	Levels []Level  `yaml:"isolation_levels"`
	Claim  Claim    `yaml:"claim"`
	Setup  []string `yaml:"setup"` // one statement each, autocommitted
	Steps  []Step   `yaml:"steps"`
	// Observed holds what was measured, one item a step, by server and level as in
	// "mariadb-10.11.19 RR". A case that runs at one level only may leave the level out.
	Observed map[string][]Observation `yaml:"observed"`
}

// A Claim is what the source says. It is no fact about any server.
type Claim struct {
	Anomaly string `yaml:"anomaly"`
	Verdict string `yaml:"verdict"` // "prevented", "occurs" or empty
}

// A Step is one statement of one session.
type Step struct {
	N       int    `yaml:"n"` // its number, growing through the case
	Session string `yaml:"s"`
	SQL     string `yaml:"sql"`
	Note    string `yaml:"note"`
}

// An Observation is what one step did on a server that was measured.
type Observation struct {
	N         int       `yaml:"n"`
	Status    Status    `yaml:"st"`
	Blocked   bool      `yaml:"blocked"`
	DoneAfter int       `yaml:"done_after"`
	Rows      [][]Value `yaml:"rows"`
	Affected  uint64    `yaml:"affected"`
	Error     string    `yaml:"error"`
	Code      string    `yaml:"code"` // "errno/SQLSTATE", of PostgreSQL "SQLSTATE"
}

// RunsAt gives the levels that the case is run at.
func (c *Case) RunsAt() []Level {
	if len(c.Levels) > 0 {
		return c.Levels
	}
	return []Level{c.Isolation}
}

// ObservedAt gives what was measured on a server ("mariadb-10.11.19") at a level, with the note that
// the corpus appends to the level ("innodb_snapshot_isolation=ON"; usually empty). It is nil where
// nothing was.
func (c *Case) ObservedAt(server string, level Level, note string) []Observation {
	key := strings.TrimSpace(server + " " + string(level) + " " + note)
	if o, ok := c.Observed[key]; ok || note != "" || len(c.Levels) > 0 {
		return o
	}
	return c.Observed[server]
}

// Parse reads one case.
func Parse(text []byte) (Case, error) {
	var c Case
	if err := yaml.Unmarshal(text, &c); err != nil {
		return Case{}, fmt.Errorf("reading a case: %w", err)
	}
	if err := c.check(); err != nil {
		return Case{}, fmt.Errorf("case %q: %w", c.ID, err)
	}
	return c, nil
}

// check refuses what would otherwise fail in the middle of a run.
func (c *Case) check() error {
	switch {
	case c.ID == "":
		return fmt.Errorf("it has no id")
	case len(c.Steps) == 0:
		return fmt.Errorf("it has no steps")
	case c.Isolation == "" && len(c.Levels) == 0:
		return fmt.Errorf("it names no isolation level")
	}
	last := 0
	for _, s := range c.Steps {
		if s.N <= last {
			return fmt.Errorf("step %d follows step %d", s.N, last)
		}
		if s.Session == "" || s.SQL == "" {
			return fmt.Errorf("step %d has no session or no statement", s.N)
		}
		last = s.N
	}
	return nil
}

// runsOn says whether the case is written for servers of the family.
func (c *Case) runsOn(f Family) bool {
	return slices.ContainsFunc(c.Dialects, func(dialect string) bool {
		return (dialect == string(PostgreSQL)) == (f == PostgreSQL)
	})
}

// Corpus gives the cases that come with the package for a family, in order of their ids: those of
// Hermitage, of the papers' figures and of isotap's own experiments that run on MariaDB or PostgreSQL.
func Corpus(f Family) ([]Case, error) {
	names, err := fs.Glob(corpus, "testdata/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the corpus: %w", err)
	}
	all := make([]Case, 0, len(names))
	for _, name := range names {
		text, err := corpus.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the corpus: %w", err)
		}
		c, err := Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path.Base(name), err)
		}
		if c.runsOn(f) {
			all = append(all, c)
		}
	}
	return all, nil
}
