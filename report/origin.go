package report

import (
	"strconv"
	"strings"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// A where is a place in the client's program.
type where struct {
	file string // with slashes
	line int    // from 1; 0: not known
}

// String returns the place as people and editors write it.
func (w where) String() string {
	if w.line == 0 {
		return oneLine(w.file)
	}
	return oneLine(w.file) + ":" + strconv.Itoa(w.line)
}

// originOf returns the place that sent a statement, where a comment of it said so.
func originOf(s *history.Stmt) (where, bool) {
	if s == nil || s.Sender.Place == "" {
		return where{}, false
	}
	if colon := strings.LastIndexByte(s.Sender.Place, ':'); colon > 0 {
		if line, err := strconv.Atoi(s.Sender.Place[colon+1:]); err == nil && line > 0 {
			return where{printable(s.Sender.Place[:colon]), line}, true
		}
	}
	return where{file: printable(s.Sender.Place)}, true
}

// origins returns the places that sent the statements of a finding's dependencies, each once: first those
// of reads that somebody overwrote, which are those to change.
func origins(f *analyzer.Finding) []where {
	var reads, others []where
	seen := make(map[where]bool)
	add := func(list []where, s *history.Stmt) []where {
		if at, ok := originOf(s); ok && !seen[at] {
			seen[at] = true
			return append(list, at)
		}
		return list
	}
	for i := range f.Witness {
		if e := &f.Witness[i]; e.Kind == analyzer.RW {
			reads = add(reads, e.FromStmt)
		}
	}
	for i := range f.Witness {
		others = add(add(others, f.Witness[i].FromStmt), f.Witness[i].ToStmt)
	}
	return append(reads, others...)
}

// whereOf returns the place in the client's program that a finding is shown at.
func whereOf(f *analyzer.Finding) (where, bool) {
	all := origins(f)
	if len(all) == 0 {
		return where{}, false
	}
	return all[0], true
}
