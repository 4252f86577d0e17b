package analyzer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// A Why says how two transactions are ordered.
type Why struct {
	A, B   *history.Txn
	Family dbms.Family // whose SQL the statements are
	// AB is a shortest path of dependencies from A to B, and BA one from B to A: where there is one, the first
	// precedes the second in every serial order. Session order is on it only where nothing else leads there.
	AB, BA Path
	// Summary is the answer in a sentence. Reasons say why there is no path, where there is none.
	Summary string
	Reasons []string
}

// A Path is dependencies of which each one's To is the next one's From, with a sentence for each.
type Path struct {
	Edges     []Edge
	Sentences []string
}

// Why returns why one of two transactions precedes the other, or why neither does, once [Analyzer.Finish] has
// run. It fails on an id that no transaction has, and when a transaction on the way cannot be loaded.
func (a *Analyzer) Why(x, y history.TxnID) (*Why, error) {
	if a.order == nil {
		return nil, fmt.Errorf("the analysis has not finished")
	}
	if x == y {
		return nil, fmt.Errorf("transaction %s is given twice", x)
	}
	from, err := a.lookUp(x)
	if err != nil {
		return nil, err
	}
	to, err := a.lookUp(y)
	if err != nil {
		return nil, err
	}
	w := &Why{}
	loaded := make(map[int32]*history.Txn)
	for _, end := range []struct {
		txn int32
		to  **history.Txn
	}{{from, &w.A}, {to, &w.B}} {
		if *end.to, err = a.load(end.txn); err != nil {
			return nil, err
		}
		loaded[end.txn] = *end.to
	}
	w.Family = a.family(w.A)
	paths := newPaths(a.order)
	if w.AB, err = a.pathOf(paths.find(from, to), loaded); err != nil {
		return nil, err
	}
	if w.BA, err = a.pathOf(paths.find(to, from), loaded); err != nil {
		return nil, err
	}
	a.tellWhy(w, from, to)
	return w, nil
}

// lookUp finds a transaction by its id.
func (a *Analyzer) lookUp(id history.TxnID) (int32, error) {
	for t := range a.store.txns {
		if a.store.id(int32(t)) == id {
			return int32(t), nil
		}
	}
	return none, fmt.Errorf("there is no transaction %s in what was analysed", id)
}

// pathOf returns a path with all that it rests on. Its transactions are called by their ids.
func (a *Analyzer) pathOf(deps []dep, loaded map[int32]*history.Txn) (Path, error) {
	var p Path
	t := &explainer{a: a}
	for _, d := range deps {
		e, err := a.edgeOf(d, loaded)
		if err != nil {
			return Path{}, err
		}
		t.family = a.family(e.From, e.To)
		p.Edges = append(p.Edges, e)
		p.Sentences = append(p.Sentences, t.deed(&e, func(txn *history.Txn) string { return txn.ID.String() })+".")
	}
	return p, nil
}

// tellWhy puts the answer into words.
func (a *Analyzer) tellWhy(w *Why, from, to int32) {
	x, y := w.A.ID, w.B.ID
	switch {
	case w.AB.Edges != nil && w.BA.Edges != nil:
		w.Summary = fmt.Sprintf("%s precedes %s, and %s precedes %s: a contradiction, no serial order explains both.",
			x, y, y, x)
	case w.AB.Edges != nil:
		w.Summary = fmt.Sprintf("%s precedes %s.", x, y)
	case w.BA.Edges != nil:
		w.Summary = fmt.Sprintf("%s precedes %s.", y, x)
	default:
		w.Summary = fmt.Sprintf("Neither of %s and %s precedes the other.", x, y)
		w.Reasons = a.unordered(w, from, to)
	}
}

// unordered returns why no dependency orders two transactions.
func (a *Analyzer) unordered(w *Why, from, to int32) []string {
	var reasons []string
	for i, t := range []*history.Txn{w.A, w.B} {
		switch installed := a.store.txns[[]int32{from, to}[i]].installed; {
		case installed:
		case t.Status == history.Aborted:
			reasons = append(reasons, fmt.Sprintf("%s was rolled back: its versions were never installed, "+
				"so it has no place in the order.", t.ID))
		default:
			reasons = append(reasons, fmt.Sprintf("Whether %s committed is not known, and nobody saw what it wrote, "+
				"so it has no place in the order.", t.ID))
		}
		if unseen := unobserved(t); unseen > 0 {
			reasons = append(reasons, fmt.Sprintf("Of %s, %d of its statements were not observed exactly: "+
				"dependencies through these are not known.", t.ID, unseen))
		}
	}
	if len(reasons) == 0 {
		reasons = append(reasons, "No chain of dependencies leads from one to the other, "+
			"through other transactions either: both orders explain what was seen.")
	}
	reasons = append(reasons, inCommon(w.A, w.B))
	if w.A.ID.Run() == w.B.ID.Run() {
		if first, second := byTime(w.A, w.B); first != nil {
			reasons = append(reasons, fmt.Sprintf("%s ended before %s began, but time alone is no dependency.",
				first.ID, second.ID))
		} else {
			reasons = append(reasons, "They ran at the same time.")
		}
	}
	return reasons
}

// unobserved counts a transaction's statements whose rows are not known for sure.
func unobserved(t *history.Txn) int {
	n := 0
	for i := range t.Stmts {
		if o := t.Stmts[i].Observation; o == history.Inexact || o == history.Opaque {
			n++
		}
	}
	return n
}

// inCommon returns which rows two transactions have in common.
func inCommon(x, y *history.Txn) string {
	wrote := make(map[history.Row]bool) // by row that x saw
	for i := range x.Stmts {
		for _, access := range x.Stmts[i].Accesses {
			wrote[access.Row] = wrote[access.Row] || access.Op != history.Read
		}
	}
	var common []string
	write := false
	for i := range y.Stmts {
		for _, access := range y.Stmts[i].Accesses {
			of, met := wrote[access.Row]
			if !met {
				continue
			}
			write = write || of || access.Op != history.Read
			if text := rowText(access.Row); !slices.Contains(common, text) {
				common = append(common, text)
			}
		}
	}
	const most = 5
	switch n := len(common); {
	case n == 0:
		return "They have no row in common."
	case n > most:
		common = append(common[:most], fmt.Sprintf("%d more", n-most))
		fallthrough
	default:
		text := "They have in common " + strings.Join(common, ", ")
		if !write {
			text += ", which both only read"
		}
		return text + "."
	}
}

// byTime returns the transaction that ended before the other began, and the other; nil where there is none.
func byTime(x, y *history.Txn) (first, second *history.Txn) {
	switch {
	case x.End < y.Start:
		return x, y
	case y.End < x.Start:
		return y, x
	}
	return nil, nil
}
