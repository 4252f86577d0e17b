package report

import (
	"strconv"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// A witness gives the transactions of a finding's witness the short names T1, T2, ... that its
// drawings, tables and timeline share.
type witness struct {
	finding *analyzer.Finding
	txns    []*history.Txn
	place   map[history.TxnID]int
}

func newWitness(f *analyzer.Finding) *witness {
	w := &witness{finding: f, place: make(map[history.TxnID]int)}
	for _, t := range f.Txns() {
		if _, seen := w.place[t.ID]; !seen {
			w.place[t.ID] = len(w.txns)
			w.txns = append(w.txns, t)
		}
	}
	return w
}

// text returns a statement of one of its transactions with the arguments in their places.
func (w *witness) text(s *history.Stmt) string { return statementText(w.finding.Family, s) }

// name returns a transaction's short name. An edge without a transaction on one side leads to one
// that is not in the recording.
func (w *witness) name(t *history.Txn) string {
	if t == nil {
		return "not recorded"
	}
	return "T" + strconv.Itoa(w.place[t.ID]+1)
}

// version says which version a tag stands for, by the short name of its writer where there is one.
func (w *witness) version(tag history.Tag) string {
	if tag.Initial() {
		return "the initial version"
	}
	if i, ok := w.place[tag.Txn]; ok {
		return "the version of T" + strconv.Itoa(i+1) + ", statement " + strconv.FormatUint(uint64(tag.Stmt), 10)
	}
	return "version " + tag.String()
}

// program returns the program that a transaction of the witness ran: the one of the finding's
// programs whose every statement it sent. Where that leaves a choice it is the longest; nil where
// it leaves none, or still a choice.
func (w *witness) program(t *history.Txn) *analyzer.Program {
	if t == nil {
		return nil
	}
	sent := make(map[string]bool, len(t.Stmts))
	for i := range t.Stmts {
		sent[t.Stmts[i].Shape] = true
		sent[analyzer.FoldTables(w.finding.Family, t.Stmts[i].Shape)] = true
	}
	var best *analyzer.Program
	tied := false
	for _, p := range w.finding.Programs {
		if p.Level != t.Level || !sentAll(sent, p.Stmts) {
			continue
		}
		switch {
		case best == nil || len(p.Stmts) > len(best.Stmts):
			best, tied = p, false
		case len(p.Stmts) == len(best.Stmts) && p != best:
			tied = true
		}
	}
	if tied {
		return nil
	}
	return best
}

func sentAll(sent map[string]bool, shapes []string) bool {
	for _, s := range shapes {
		if !sent[s] {
			return false
		}
	}
	return true
}

// programName is the name of the program that t ran; empty when it is not known.
func (w *witness) programName(t *history.Txn) string {
	if p := w.program(t); p != nil {
		return p.Name
	}
	return ""
}

// cyclic reports whether the witness is a simple cycle, each edge leading to where the next begins.
func (w *witness) cyclic() bool {
	edges := w.finding.Witness
	if len(edges) < 2 || len(edges) != len(w.txns) {
		return false
	}
	for i, e := range edges {
		next := edges[(i+1)%len(edges)]
		if e.From == nil || e.To == nil || next.From == nil || e.To.ID != next.From.ID {
			return false
		}
	}
	return true
}

// withoutRow are the kinds of dependencies that go through no row.
var withoutRow = []analyzer.DepKind{analyzer.SO, analyzer.RT, analyzer.RQ}

// deeds says what the statements at the two ends of an edge did to its row.
func deeds(k analyzer.DepKind) (from, to string) {
	switch k {
	case analyzer.WR:
		return "writes", "reads"
	case analyzer.WW:
		return "writes", "overwrites"
	case analyzer.RW:
		return "reads", "overwrites"
	case analyzer.RQ:
		return "is of one request", "with this one"
	}
	return "comes before", "comes after"
}

// rowName names a row for people; empty for an edge without one.
func rowName(r history.Row) string {
	if r == (history.Row{}) {
		return ""
	}
	return r.Table + " #" + r.ID
}
