package pglog

import (
	"flag"
	"testing"

	"github.com/isotap/isotap/internal/mutants"
)

var runMutants = flag.Bool("mutants", false, "take out each rule of the package in turn and want a test to fail")

// rules are the package's, each with the text that takes it out of the code.
var rules = []mutants.Mutant{
	{"behind a gap places are other versions'", "chains.go", "clear(at) //", "//"},
	{"a table in two files was written anew", "chains.go",
		"ok && file != w.Storage || p.Leaf == 0", "ok && file != file || p.Leaf == 0"},
	{"a table that is gone was written anew", "chains.go", "file != w.Storage || p.Leaf == 0", "file != w.Storage"},
	{"an UPDATE that was undone replaces nothing", "chains.go",
		"if old != none && l.committed {\n\t\tr.nodes[old].after",
		"if old != none {\n\t\tr.nodes[old].after"},
	{"what was undone was there", "chains.go", "if old != none {\n\t\tr.nodes[old].until",
		"if old != none && l.committed {\n\t\tr.nodes[old].until"},
	{"a place that a transaction used twice is two versions", "chains.go",
		"r.nodes[other].torn, r.nodes[fresh].torn = true, true", "_ = other"},
	{"only in the first stretch it is known what there was", "chains.go",
		"if l.stretch == l.run.firstStretch() {", "if true {"},
	{"what is not read in one go is of several", "chains.go", "r.nodes[other].torn, r.nodes[n].torn = true, true",
		"_ = other"},
	{"what began with the run was not there before", "chains.go", " || !x.preceded(xid) {", " {"},
	{"what was read before the log may be older", "chains.go",
		"at < x.info.Log[max(x.firstStretch(), 0)].From || ", ""},
	{"one version is of one writer", "chains.go", "if root.xid != xid {", "if false {"},
	{"a version that is called differently is in doubt", "chains.go",
		"if n.seen && n.row.ID != row.ID {", "if false {"},
	{"between two names nobody knows where the key changed", "chains.go",
		"if known == none || r.nodes[chain[known]].row.ID == n.row.ID {", "if true {"},

	{"who takes a name in between is told", "lives.go", "if to-from > 1 {", "if false {"},
	{"what was seen keeps its name", "lives.go", "!n.seen && slices.Contains", "slices.Contains"},
	{"what was undone takes no name", "lives.go", " || n.logged != none && !r.logged[n.logged].committed {", " {"},
	{"a row lives until it is replaced or deleted", "lives.go", "max(l.to, written, n.until)", "max(l.to, written)"},

	{"a procedure may end transactions", "owners.go", "if s.Kind == history.Call && !block {", "if false {"},
	{"in a block it may not", "owners.go", "block = block || s.Kind == history.Begin", "block = false"},
	{"what was undone hides nothing", "owners.go", "(!s.Void || r.several[t.ID])", "true"},
	{"a procedure that failed may have committed before", "owners.go", "(!s.Void || r.several[t.ID])", "!s.Void"},
	{"who was undone is nobody of the log", "owners.go", "wrote && t.Status != history.Aborted ||", "wrote ||"},
	{"who has no id wrote nothing", "owners.go", "wrote = wrote && s.XID != history.NoXID", ""},
	{"a deletion does not tell its id", "owners.go",
		"mayHide = mayHide || s.Accesses[j].Op != history.Read && s.TupleIDs[j].NewXID == 0 && !s.Void", ""},
	{"who shows nothing has no dependencies", "owners.go", "if isBare(t) {", "if false {"},
	{"who read something may have written what he read", "owners.go", "if isBare(t) {", "if true {"},
	{"who left a condition shows something", "owners.go",
		"s.Observation != history.Opaque && s.Observation != history.Nothing || len", "len"},
	{"a deletion of something unknown may be any", "owners.go", "r.blind[t.ID] = true", ""},
	{"a write of a table that is not told may be any", "owners.go", "if p.Leaf == 0 { // which", "if false { //"},
	{"it tells its transaction", "owners.go", "\tr.own(x, p.NewXID, t.ID)\n", ""},
	{"a place may tell it", "owners.go", "\t\tr.own(x, xid, t.ID)\n", ""},
	{"who told a deletion need not be told it", "owners.go", "\tn.deletedBy = by\n", ""},
	{"nor where another one tries later", "owners.go", "r.deletedBefore[deletion{at, n.deletedBy}] = true", ""},
	{"who tells another's deletion has not told his own", "owners.go",
		"r.nodes[at].deletedBy == by ||", "r.nodes[at].deletedBy != 0 ||"},
	{"a deletion that was undone is none", "owners.go",
		"a.Op == history.DeleteRow && !s.Void", "a.Op == history.DeleteRow"},
	{"what seems to be two transactions is nobody's", "owners.go", "id = ambiguous", ""},
	{"what was undone need not be in the log", "owners.go",
		"history.Committed && !s.Void && !a.Inexact", "history.Committed && !a.Inexact"},
	{"what is not exact need not be in the log", "owners.go",
		"!s.Void && !a.Inexact && r.vouches", "!s.Void && r.vouches"},
	{"tables that were written anew have other places", "owners.go",
		"if x.moved[a.Row.Table", "if false && x.moved[a.Row.Table"},
	{"of who began before the log some is missing", "owners.go", "!ok || r.logged[l].cut", "!ok || l < 0"},
	{"of whom the log lacks all may be unlogged", "owners.go",
		"!ok || r.logged[l].cut", "ok && false || r.logged[l].cut"},
	{"the log has what was written while it was read", "owners.go", "x.covers(t) && r.isLogged", "r.isLogged"},
	{"unlogged tables are not in the log", "owners.go",
		"x.covers(t) && r.isLogged(x, database, p.Leaf)", "x.covers(t)"},

	{"of who began before the log what is missing may matter", "effects.go", "l.cut || ", ""},
	{"beside an unknown deletion nothing is sure", "effects.go", "r.blind[l.owner] || ", ""},
	{"beside a write that is not found its row is not sure", "effects.go", " || r.lost[l.owner][of.id] {", " {"},
	{"a version that was met is one by itself", "effects.go", " &&\n\t\t\t!met[l.nodes[writes[to-1]]] {", " {"},
	{"what came on both sides of a statement is left out", "effects.go",
		"if of.after[to] >= of.before[to] {", "if false {"},
	{"a row that was made and deleted is nobody's", "effects.go",
		"case e.access.Op == history.InsertRow:\n\t\treturn effect{}, false", "case false:"},
	{"a deletion ends what is one", "effects.go", "l.writes[writes[to-1]].Op != history.DeleteRow &&", "true &&"},
	{"COMMIT comes last", "effects.go", "for end > 0 && t.Stmts[end-1].Kind == history.Commit {", "for false {"},
	{"what was told is not told again", "effects.go", "\treturn r.nodes[l.nodes[i]].left\n", "\treturn false\n"},
	{"writes follow each other", "effects.go", "return r.nodes[l.nodes[w]].before == left", "return true"},

	{"of a version it is known when it had been left", "meetings.go",
		"add(at, false, row, i+1)\n\t\t\tif before", "if before"},
	{"and when it was replaced", "meetings.go",
		"before != none {\n\t\t\t\tadd(before, false, row, i)", "before != none {"},
	{"and when it was deleted", "meetings.go", "add(at, true, row, i+1)\n", ""},
	{"what was met early stays behind all later ones", "meetings.go",
		"of.after[n] = max(of.after[n], of.after[n-1])", ""},
	{"and the other way around", "meetings.go", "of.before[n] = min(of.before[n], of.before[n+1])", ""},

	{"a procedure may have ended another transaction", "outcomes.go", "if s.Kind == history.Call {", "if false {"},
	{"what a savepoint took back has an end of its own", "outcomes.go",
		"case nested:\n\t\treturn history.Indeterminate, nil",
		"case false:"},
	{"all writes are of one transaction", "outcomes.go", "|| of != nil && of != &r.logged[l] {", "{"},

	{"places tell writers where the log was read", "places.go", "|| !x.covers(t) ||", "||"},
	{"and the table was not written anew", "places.go",
		"r.files[tableKey{x.server.number, database, p.Leaf}] == 0 {", "false {"},
	{"what came later is another's", "places.go", "r.writeOf(n).TupleID.LSN <= lsn", "true"},
	{"who has an id keeps it", "places.go", "p.NewXID == 0 && p.NewID != 0", "p.NewID != 0"},

	{"what was undone went nowhere", "complete.go",
		"case !l.committed || l.owner == ambiguous:", "case l.owner == ambiguous:"},
	{"what seems to be two transactions is left out", "complete.go", "case !l.committed || l.owner == ambiguous:",
		"case !l.committed:"},
	{"who may have written is not past isotap", "complete.go", "case mayBe(r.unseen, l):", "case false:"},
	{"tables that were written anew are left out", "complete.go",
		"anew = anew || tables[n.row.Table+in] || tables[w.Row.Table+in]",
		"_, _, _ = tables, w, in"},
	{"tables in several files are left out", "complete.go",
		"anew := r.files[tableKey{l.run.server.number, l.database, w.TupleID.Leaf}] == 0", "anew := false"},
	{"a second write of a row is another statement", "complete.go", " ||\n\t\t\trows[a.Row] {", " {"},
	{"it ended when the log says", "complete.go", "t.End = l.to", ""},
}

// TestEveryRuleIsTested checks that each rule's text is there, and with -mutants that some test fails without it.
func TestEveryRuleIsTested(t *testing.T) {
	mutants.Test(t, *runMutants, rules, "-skip", "TestEveryRuleIsTested", ".")
}
