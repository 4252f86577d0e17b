// Package baseline remembers the findings that a project knows of, so that a check fails only on new ones.
//
// A baseline is a JSON file that is kept beside the code and read in its diffs: docs/baseline.md describes
// it. A finding is the same in every recording when its anomaly, its class and its statements are (see
// [analyzer.Finding]); transactions, times and counts do not matter.
//
// file.go reads and writes the file; this one compares it with what an analysis found.
package baseline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// A File is a baseline.
type File struct {
	Findings []Entry
}

// An Entry is a finding that is known.
type Entry struct {
	ID      string           `json:"id"`
	Class   analyzer.Class   `json:"class"`
	Anomaly analyzer.Anomaly `json:"anomaly"`
	Tables  []string         `json:"tables"`
	// Any says that the entry stands for all findings of its class and anomaly on its tables: there were too
	// many sets of statements to tell them apart.
	Any bool `json:"any_statements,omitempty"`
	// Dependencies are those of the witness, for people: the ID stands for them.
	Dependencies []string `json:"dependencies,omitempty"`
	Note         string   `json:"note,omitempty"` // the project's own words
}

// Compare marks the findings of a result that the file knows and puts those that only the file has into
// its Gone. The name is how reports call the file.
func (f *File) Compare(name string, r *analyzer.Result) {
	r.Baseline, r.Gone = name, nil
	seen := make([]bool, len(f.Findings))
	for _, found := range r.Findings {
		found.Known = f.knows(found)
		for i := range f.Findings {
			seen[i] = seen[i] || f.Findings[i].isOf(found)
		}
	}
	for i := range f.Findings {
		if e := &f.Findings[i]; !seen[i] {
			r.Gone = append(r.Gone, &analyzer.Finding{ID: e.ID, Class: e.Class, Anomaly: e.Anomaly, Tables: e.Tables})
		}
	}
}

// knows reports whether an entry is the finding's, or entries are of all sets of statements that it stands for.
func (f *File) knows(found *analyzer.Finding) bool {
	if slices.ContainsFunc(f.Findings, func(e Entry) bool { return e.knows(found) }) {
		return true
	}
	known := func(id string) bool { return slices.ContainsFunc(f.Findings, func(e Entry) bool { return e.ID == id }) }
	return len(found.Parts) > 0 && !slices.ContainsFunc(found.Parts, func(id string) bool { return !known(id) })
}

// isOf reports whether the entry is a finding's, or that of one of its sets of statements.
func (e *Entry) isOf(f *analyzer.Finding) bool { return e.knows(f) || slices.Contains(f.Parts, e.ID) }

// knows reports whether a finding is the entry's.
func (e *Entry) knows(f *analyzer.Finding) bool {
	if e.ID == f.ID {
		return true
	}
	return e.Any && e.Class == f.Class && e.Anomaly == f.Anomaly &&
		!slices.ContainsFunc(tablesOf(f), func(t string) bool { return !slices.Contains(e.Tables, t) })
}

// Add adds the findings of a result that the file does not know. Entries that are there stay as they are.
// It gives the number of those that it added.
func (f *File) Add(r *analyzer.Result) int {
	before := len(f.Findings)
	known := File{Findings: f.Findings[:before:before]}
	for _, found := range r.Findings {
		if !known.knows(found) {
			f.Findings = append(f.Findings, newEntry(found))
		}
	}
	return len(f.Findings) - before
}

// Prune removes the entries that no finding of a result is. It gives their number.
func (f *File) Prune(r *analyzer.Result) int {
	before := len(f.Findings)
	f.Findings = slices.DeleteFunc(f.Findings, func(e Entry) bool { return !slices.ContainsFunc(r.Findings, e.isOf) })
	return before - len(f.Findings)
}

func newEntry(f *analyzer.Finding) Entry {
	e := Entry{ID: f.ID, Class: f.Class, Anomaly: f.Anomaly, Tables: tablesOf(f), Any: f.Patterns > 1}
	if e.Any {
		return e // its witness is one of many
	}
	for i := range f.Witness {
		e.Dependencies = append(e.Dependencies, dependency(f.Family, &f.Witness[i]))
	}
	slices.Sort(e.Dependencies)
	e.Dependencies = slices.Compact(e.Dependencies)
	return e
}

// tablesOf returns a finding's tables as they are in every recording: whether it saw one numbered copy of a
// table or several is chance.
func tablesOf(f *analyzer.Finding) []string {
	tables := []string{}
	for _, t := range f.Tables {
		tables = append(tables, analyzer.FoldTable(t))
	}
	slices.Sort(tables)
	return slices.Compact(tables)
}

// dependency puts an edge into words that are the same in every recording.
func dependency(family dbms.Family, e *analyzer.Edge) string {
	text := string(e.Kind)
	if e.Row.Table != "" {
		text += " " + analyzer.FoldTable(e.Row.Table)
	}
	return fmt.Sprintf("%s: %s -> %s", text, end(family, e.From, e.FromStmt),
		end(family, e.To, e.ToStmt))
}

func end(family dbms.Family, t *history.Txn, s *history.Stmt) string {
	switch {
	case t == nil:
		return "not recorded"
	case s == nil:
		return "(" + t.Level.String() + ")"
	}
	return analyzer.FoldTables(family, s.Shape) + " (" + t.Level.String() + ")"
}

// compare orders the entries of a file.
func compare(a, b Entry) int {
	return cmp.Or(-strings.Compare(string(a.Class), string(b.Class)),
		strings.Compare(string(a.Anomaly), string(b.Anomaly)),
		slices.Compare(a.Tables, b.Tables), strings.Compare(a.ID, b.ID))
}
