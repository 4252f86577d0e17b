package foreign

import (
	"flag"
	"testing"

	"github.com/isotap/isotap/internal/mutants"
)

var runMutants = flag.Bool("mutants", false, "take out each rule of the package in turn and want a test to fail")

// rules are the package's, each with the text that takes it out of the code.
var rules = []mutants.Mutant{
	{"what was rolled back wrote nothing", "foreign.go",
		"if t.Status != history.Committed {\n\t\treturn\n\t}\n\tr.stats.Txns++", "r.stats.Txns++"},
	{"a log is read once", "foreign.go", "if r.added[place] {", "if false {"},
	{"deletions make chains", "foreign.go", "if n > 0 {", "if n > 10 {"},
	{"inexact deletions are no recorded ones", "foreign.go", "ok && !a.Inexact && t.Status", "ok && t.Status"},
	{"only committed deletions are", "foreign.go", "!a.Inexact && t.Status == history.Committed", "!a.Inexact"},
	{"what was undone deleted nothing", "foreign.go", "&& !s.Void && r.met(a.Row)", "&& r.met(a.Row)"},
	{"a transaction is in the log once", "foreign.go", "r.found[id] && len(r.unobserved[id]) == 0", "false"},
	{"but for who called procedures", "foreign.go", "r.found[id] && len(r.unobserved[id]) == 0", "r.found[id]"},
	{"who left tags had not ended before", "foreign.go", "!untagged(w) && r.mayBe(id, run, t)", "!untagged(w)"},
	{"who deleted had not ended before", "foreign.go",
		"w.Op == history.DeleteRow && r.mayBe(deleted.Txn, run, t)", "w.Op == history.DeleteRow"},
	{"nor began later", "foreign.go", "at.began <= t.To && ", ""},
	{"an exact statement wrote nothing unseen", "foreign.go", "case history.Nothing, history.Exact:\n\t\treturn false",
		"case history.Nothing:\n\t\treturn false"},
	{"what was undone wrote nothing unseen", "foreign.go", "mayWriteUnseen(*s) && !s.Void", "mayWriteUnseen(*s)"},
	{"an opaque SELECT may write", "foreign.go", "s.Observation == history.Opaque && !s.Reason.TablesKnown()", "false"},
	{"transactions that may be recorded are not past isotap", "past.go",
		"x.owner == 0 && r.unseen.MayBe(r.runs[x.run].Run, x.from, x.to)", "false"},
	{"known owners wrote nothing else", "foreign.go", "owners[r.logged[i].owner] = true", "_ = i"},
	{"observed deletions are no effects", "past.go", " && !r.isObserved(w, tag)", ""},
	{"effects are of the statement that was not observed", "past.go",
		"if num >= before.Stmt && (behind.Initial() || num <= behind.Stmt) {", "if false {"},
	{"not of one before what stands before", "past.go", "if num >= before.Stmt && ", "if "},
	{"nor of one behind what stands behind", "past.go", "(behind.Initial() || num <= behind.Stmt)", "true"},
	{"effects of nobody else are of the statement before", "past.go",
		"if behind.Initial() {\n\t\treturn before\n\t}\n", ""},
	{"rows that were put back are not of who wrote them once", "past.go", "!untagged(w) && w.New.Txn == owner",
		"!untagged(w)"},
	{"a second write of a row is another statement's", "past.go", " || p.rows[w.Row] {", " {"},
	{"another operation is another statement's", "past.go", " || p.op != w.Op", ""},
	{"a row that begins anew is in no order", "chain.go", "c.broken = n > 0", ""},
	{"a write that found another version is in no order", "chain.go", "last.gone || last.shown != old", "last.gone"},
	{"a write over the row's absence is in no order", "chain.go", "last.gone || last.shown != old", "last.shown != old"},
	{"a statement's two writes are one", "chain.go", "before == v.tag {", "false {"},
	{"but for an untagged one that its transaction may have met", "chain.go",
		"n > 1 && c.untagged(n-1) && (v.gone || v.shown != c.versions[n-1].shown)", "false"},
	{"which nobody else met who sees what was committed", "chain.go", "committed && to-from > 1", "committed && to < 0"},
	{"nor replaced", "resolve.go", "c.standing(start, end, true) // a write", "c.standing(start, end, false) // a write"},
	{"and who sees everything may have", "chain.go", "committed && to-from > 1", "to-from > 1"},
	{"a row's absence shows no version", "chain.go", " && !c.versions[to].gone", ""},
	{"rows in no order are left out of who wrote them", "foreign.go",
		"return r.chains[a.Row] == nil })", "return false })"},

	{"who stands behind another ended later", "times.go", "x.from = max(x.from, from[x.run])", ""},
	{"who stands before another could be seen", "times.go",
		"if x.seen == 0 || seen[x.run] > 0 && seen[x.run] < x.seen {", "if false {"},
	{"clocks of other runs tell nothing", "times.go", "x.tagged && r.runs[x.run].Run == x.owner.Run()",
		"x.tagged"},

	{"nobody read what nobody could see", "resolve.go", "committed && last > first && group[last].from >= to", "false"},
	{"who reads uncommitted may", "resolve.go", "for committed && last > first", "for last > first"},
	{"nobody read what everybody had seen replaced", "resolve.go",
		"first < last && group[first+1].seen > 0 && group[first+1].seen <= from", "false"},
	{"what is not known to be seen may not be", "resolve.go", "group[first+1].seen > 0 && ", ""},
	{"a transaction reads its own writes", "resolve.go", "tag.Txn == v.txn.ID && tag.Stmt < s.Num",
		"tag.Txn == 0 && tag.Stmt < s.Num"},
	{"not those to come", "resolve.go", " && tag.Stmt < s.Num", ""},
	{"a snapshot is taken once", "resolve.go", "return from, min(to, v.taken), true", "return from, to, true"},
	{"a snapshot may be given back", "resolve.go", "if s.Kind == history.Rollback {", "if false {"},
	{"a locking read sees the present", "resolve.go", "case !locks && s.Kind", "case s.Kind"},
	{"a statement's snapshot is its own", "resolve.go", "return s.Start, to, true", "return from, to, true"},
	{"a write that is not in the log may have replaced any", "resolve.go",
		"a.Inexact = true // it was undone", "// it was undone"},
	{"what a transaction wrote unseen it may have met", "resolve.go", "at < 0 || v.mayBeOwn(group[at+1:])", "at < 0"},
	{"which of its statements wrote unseen is open", "resolve.go", "x.tag.Txn == v.txn.ID || ", ""},
	{"who wrote unseen is open", "resolve.go", " || x.tag.Txn.Run() == history.Unrecorded", ""},
	{"nothing rests on rows whose versions are in no order", "resolve.go", "if r.torn[a.Row] {", "if false {"},
	{"what was undone may have been met before", "resolve.go", "return v.txn.Status == history.Aborted && v.undone",
		"return true"},
	{"what is not in the log may be met", "resolve.go",
		"case mayWriteUnseen(*s) && (s.Void || v.txn.Status == history.Aborted):", "case false:"},
	{"what was replaced is what stands below", "resolve.go", "a.Version = c.versions[at-1].tag", ""},

	{"own writes stay", "silent.go", "if a.Version.Txn == v.txn.ID {", "if false {"},
	{"what was written later stays", "silent.go", "!(known && place >= c.place) && ",
		"!(known && place < 0) && "},
	{"what nobody could see yet changed nothing", "silent.go",
		"!(committed && r.runs[c.run].Run == v.txn.ID.Run() && c.from >= to)", "!(committed && to < 0)"},
	{"who reads uncommitted may see a change", "silent.go", "!(committed && r.runs", "!((committed || !committed) && r.runs"},
	{"clocks of other runs place no change", "silent.go", "r.runs[c.run].Run == v.txn.ID.Run() && ", ""},
}

// Each rule can be taken out, so that "make mutants" means something; with -mutants each one is, and a test fails.
func TestEveryRuleIsTested(t *testing.T) {
	mutants.Test(t, *runMutants, rules, "-skip", "TestEveryRuleIsTested", ".")
}
