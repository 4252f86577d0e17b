package analyzer

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var runMutants = flag.Bool("mutants", false, "take out each rule of the analyzer in turn and want a test to fail")

// mutants are the analyzer's rules, each with the text that takes it out of the code.
var mutants = []struct{ rule, file, text, without string }{
	{"OTV is an anomaly of its own", "names.go", "case o.earlier(back, out) && byRow && !same && back.kind == wr:", "case false:"},
	{"G-monotonic is an anomaly of its own", "names.go", "case o.earlier(back, out):", "case false:"},
	{"an OTV comes back through one row", "names.go", "&& byRow && !same && back.kind == wr:\n\t\treturn OTV", "&& !same && back.kind == wr:\n\t\treturn OTV"},
	{"a non-repeatable read is through one row", "names.go", "return NonRepeatableRead", "return GSingle"},
	{"a read skew comes back through one row", "names.go", "return ReadSkew", "return GSingle"},
	{"a read-write skew has two transactions", "names.go", "return ReadWriteSkew", "return GSingle"},
	{"a write skew has two rows", "names.go", "return WriteSkew", "return G2Item"},
	{"an UPDATE to equal values loses updates too", "names.go", " || o.accesses[back.access].is(equal)", ""},
	{"two rw may follow each other", "names.go", "adjacent = adjacent || before.kind == rw", "_ = before"},
	{"a cycle by time has a name of its own", "names.go", "return phenomenon(cycle).Realtime()", "return phenomenon(cycle)"},
	{"a cycle by sessions has a name of its own", "names.go", "return phenomenon(cycle).Process()", "return phenomenon(cycle)"},

	{"dirty update", "reads.go", "case o.state(v) == undone && a.write():", "case false:"},
	{"G1a", "reads.go", "case o.state(v) == undone:", "case false:"},
	{"G1b", "reads.go", "case o.fates[v]&^(deletion|forked) == installed|passing && !a.write():", "case false:"},
	{"a read of a deletion is garbage", "reads.go", "case o.fates[v]&deletion != 0 && a.op != history.InsertRow", "case false && a.op != history.InsertRow"},
	{"only committed readers count", "reads.go", " || !o.txns[a.txn].installed {", " {"},
	{"inexact reads are no evidence", "reads.go", "a.is(inexact) || a.write() && a.is(void)", "a.write() && a.is(void)"},
	{"an undone write overwrites nothing", "reads.go", " || a.write() && a.is(void)", ""},
	{"garbage reads", "reads.go", "for _, g := range o.garbage {", "for _, g := range o.garbage[:0] {"},
	{"incompatible orders", "reads.go", "for _, x := range o.incompatible {", "for _, x := range o.incompatible[:0] {"},
	{"lost writes", "reads.go", "for _, f := range o.lost {", "for _, f := range o.lost[:0] {"},
	{"reads of own writes", "reads.go", "for _, r := range o.ownReads {", "for _, r := range o.ownReads[:0] {"},

	{"future reads", "own.go", "case o.own(id) && o.tagStmt > o.stmt:", "case false:"},
	{"a deleted row is not there any more", "own.go", "return a.tagStmt == write.stmt && write.op == history.DeleteRow", "return false"},
	{"an earlier version of one's own is not the last", "own.go", "!a.own(id) || a.tagStmt < write.stmt", "!a.own(id)"},
	{"a row that was made again stands beside the deleted one", "own.go", " && !s.besideDeleted(id, i)", ""},
	{"only PostgreSQL shows a deleted row beside one made again", "own.go", `s.runs[id.run].info.Server.Engine == "postgresql" && `, ""},
	{"what nobody saw may have changed the row again", "own.go", " && !(cloud > 0 && cloud <= o.stmt)", ""},

	{"dependencies pass intermediate versions by", "edges.go", "if fate&passing != 0 {", "if false {"},
	{"nobody depends on himself", "edges.go", "if owner == t {", "if false {"},
	{"who overwrote what he read comes first", "edges.go", "if next < 0 || o.owner(next) == t ||", "if next < 0 ||"},
	{"a fork has several successors", "edges.go", "for _, f := range o.others(v) {", "for _, f := range o.others(v)[:0] {"},
	{"an inexact read makes an inexact dependency", "edges.go", "unsure := o.accesses[i].is(inexact)", "unsure := false"},
	{"aborted transactions take part in nothing", "edges.go", "if !o.txns[t].installed {\n\t\treturn", "if false {\n\t\treturn"},

	{"both writers' levels decide about a ww", "judge.go", "return j.promise(d.from).forbids(G0) && j.promise(d.to).forbids(G0)", "return j.promise(d.to).forbids(G0)"},
	{"the reader's level decides about a wr", "judge.go", "return j.promise(d.to).forbids(G1c) || j.lockedRead(d.to, d.access)", "return j.promise(d.from).forbids(G1c)"},
	{"a locked row is read as committed", "judge.go", "forbids(G1c) || j.lockedRead(d.to, d.access)", "forbids(G1c)"},
	{"a lock is held until the end", "judge.go", "!p.Together || j.lockedRead(d.from, d.access)", "!p.Together"},
	{"serializable among themselves is not serializable", "judge.go", "return p.forbids(G2Item) && !p.Together ||", "return p.forbids(G2Item) ||"},
	{"what was not found binds nobody", "judge.go", "if j.o.unfound(d) {", "if false {"},
	{"what was not found binds nobody by a snapshot", "judge.go", " || j.o.unfound(out) {", " {"},
	{"nobody read what he did not find", "edges.go", "if o.accesses[i].op != notFound {", "if true {"},
	{"before an insertion there was nothing to find", "order.go", "\to.begetUnborn()\n", ""},
	{"one rw by a predicate is a phantom", "names.go", "case o.byPredicate(out):", "case false:"},
	{"a row that is found after all is a PMP", "names.go", "case o.byPredicate(out) && back.kind == wr && oneRow:", "case false:"},
	{"a PMP comes back by a read", "names.go", "&& back.kind == wr && oneRow:", "&& oneRow:"},
	{"a PMP is through one row", "names.go", "&& back.kind == wr && oneRow:", "&& back.kind == wr:"},
	{"rw by predicates may stand apart", "names.go", "case o.predicated(cycle) && name == GNonadjacent:", "case false:"},
	{"a longer cycle through a predicate is a G2", "names.go", "\tcase o.predicated(cycle):\n\t\treturn G2\n", ""},
	{"what was not found is no lost update", "pairs.go", " || s.o.byPredicate(d) {", " {"},
	{"rows before predicates", "search.go", "\tif s.rows = slices.ContainsFunc(s.edges, func(d dep) bool { return s.o.byPredicate(&d) }); s.rows {", "\tif s.rows = false; s.rows {"},
	{"what is gone may have been written again", "edges.go", "if o.accesses[i].op == gone {", "if false {"},
	{"what is gone is no garbage", "reads.go", " && a.op != gone:", ":"},
	{"what is gone may be intermediate", "reads.go", "o.fates[v]&^(deletion|forked) == installed|passing", "o.fates[v]&^forked == installed|passing"},
	{"what is gone is nobody's fault", "judge.go", "if r.unfound() {", "if false {"},
	{"what was not found is no read of an own write", "own.go", "o.write() || o.unfound() ||", "o.write() ||"},
	{"two transactions skew through a predicate", "names.go", "case o.predicated(cycle) && len(cycle) == 2:", "case false:"},
	{"nobody knows when an indeterminate one ended", "orders.go", "o.txns[t].end > 0 && o.txns[t].status != history.Indeterminate", "o.txns[t].end > 0"},
	{"TiDB's FOR SHARE holds no lock", "judge.go", ` && !(a.is(shared) && p.Engine == "tidb")`, ""},
	{"two rw bind nobody by a snapshot", "judge.go", "j.together || in.kind == rw || !j.plain(out.access)", "j.together || !j.plain(out.access)"},
	{"a current read sees no snapshot", "judge.go", "in.kind == rw || !j.plain(out.access)", "in.kind == rw"},
	{"conflicts are refused", "judge.go", "p.FirstCommitterWins && j.refuses(in) || ", ""},
	{"a transaction has one snapshot", "judge.go", " || p.Snapshot && in.kind == wr && j.plain(in.access)", ""},
	{"a snapshot is taken by the first plain read (IsoRel, Figure 5)", "judge.go", " && at < j.o.txns[out.from].fixed", ""},
	{"what a lock shows was there before a later snapshot", "judge.go", "return p.Fresh && p.FixedByRead && at < j.o.txns[out.from].fixed", "return false"},
	{"a statement has one snapshot", "judge.go", "case p.Statement && at == read && in.kind == wr && j.plain(in.access):", "case false:"},
	{"a later statement has a later snapshot", "judge.go", "return p.Statement && p.Fresh && at < read", "return false"},
	{"a later statement's snapshot is no earlier one's", "judge.go", "return p.Statement && p.Fresh && at < read", "return p.Statement && p.Fresh"},
	{"a snapshot is fresh", "judge.go", "return p.Fresh\n", "return false\n"},
	{"a row that was made again is not the deleted one when it is written once more", "judge.go", "return a.op == history.InsertRow\n", "return false\n"},
	{"an INSERT over a deleted row locks another one", "judge.go", " && !j.o.madeBefore(in.next)", ""},
	{"what nobody saw may have been written", "judge.go", "return cloud == 0 || a.stmt < cloud", "return cloud == 0 || true"},
	{"unrecorded writers stand beside serializable ones", "judge.go", "j.beside = j.findBeside()", ""},
	{"an aborted version that a lock shows", "judge.go", "p.forbids(a) || p.RowLocks && (r.write() || r.is(locked))", "p.forbids(a)"},

	{"interference", "search.go", "\ts.interference()\n", ""},
	{"a stricter name than interference", "interference.go", "if !s.onStricter(d, &work) {", "if true {"},
	{"a stricter name is one of a violation", "interference.go", "return s.binds[e] && s.alternating(e, ", "return s.alternating(e, "},
	{"current reads are of no snapshot", "judge.go", "if j.ofSnapshot(d, j.promise(d.to)) {", "if true {"},
	{"inexact reads are no interference", "interference.go", "d.inexact || o.unfound(d)", "o.unfound(d)"},
	{"what is gone is no interference", "interference.go", "d.inexact || o.unfound(d)", "d.inexact"},
	{"who overwrites what was read does not interfere", "interference.go", "d.kind&flow == 0 || ", ""},
	{"interference goes by one clock", "interference.go", " && from.run == to.run", ""},
	{"what had ended before does not interfere", "interference.go", " && from.start <= to.end", ""},
	{"interference begins when the snapshot surely was taken", "interference.go", "to.snapshot > 0 && ", ""},
	{"a COMMIT comes after the snapshot", "interference.go", "from.ending > to.snapshot", "from.end > to.snapshot"},
	{"a statement that failed takes no snapshot for sure", "interference.go", "s.Void || s.End <= 0", "s.End <= 0"},
	{"BEGIN may take a snapshot", "interference.go", "return !postgres && strings.Contains(strings.ToUpper(s.Shape), \"SNAPSHOT\")", "return false"},
	{"BEGIN takes no snapshot by itself", "interference.go", "return !postgres && strings.Contains(strings.ToUpper(s.Shape), \"SNAPSHOT\")", "return true"},
	{"a locking read takes no snapshot of InnoDB's", "interference.go", "s.Locking != history.NoLock || sh.nested || sh.calls", "sh.nested || sh.calls"},
	{"a query in a query may take no snapshot", "interference.go", "s.Locking != history.NoLock || sh.nested || sh.calls", "s.Locking != history.NoLock || sh.calls"},
	{"a procedure takes no snapshot for sure", "interference.go", "s.Locking != history.NoLock || sh.nested || sh.calls", "s.Locking != history.NoLock || sh.nested"},
	{"a locking read of PostgreSQL's takes a snapshot", "interference.go", "if !postgres && (s.Lock", "if (s.Lock"},
	{"a write takes a snapshot on PostgreSQL alone", "interference.go", "\t\tif !postgres {\n\t\t\treturn false\n\t\t}\n", ""},
	{"a read of an own row takes no snapshot for sure", "interference.go", "a.Version.Txn != id || a.Op == history.InsertRow", "true"},
	{"an insertion takes a snapshot of PostgreSQL's", "interference.go", " || a.Op == history.InsertRow", ""},
	{"what was not observed exactly takes no snapshot for sure", "interference.go", "!a.Inexact && !a.Absent && !a.Gone", "!a.Absent && !a.Gone"},
	{"who found nothing took no snapshot for sure", "interference.go", "!a.Inexact && !a.Absent && !a.Gone", "!a.Inexact"},
	{"a verdict does not go by snapshots", "verdict.go", "if TheoryLevels[i].Moments {", "if false {"},

	{"others show that an indeterminate transaction committed", "order.go", "o.txns[owner].installed = true", ""},
	{"at READ UNCOMMITTED a plain read shows nothing of that", "order.go", "a.write() || a.is(locked) || o.txns[a.txn].level >= history.ReadCommitted", "true"},
	{"a tag that no run handed out is garbage", "order.go", "garbage: o.impossible(owner, t)", "garbage: false"},
	{"a run that did not end cleanly lost its last tags", "order.go", "if !r.analysed || r.info.Ended.IsZero() {", "if !r.analysed {"},
	{"a version that was written again is intermediate", "order.go", "e.intermediate = o.writtenLater(owner, t.stmt, row)", ""},
	{"an exact list corrects an inexact write", "lists.go", "!o.sure(v) && (exact || known < 0):", "!o.sure(v) && known < 0:"},
	{"lists leave undone versions out", "lists.go", "if below == above || o.state(below) == undone {", "if below == above {"},
	{"a row created again follows its deletion", "lists.go", "if o.recreated(p, other, v) {", "if false {"},
	{"runs that do not meet lose nothing", "lists.go", "return x.Run == y.Run || !before(x, y) && !before(y, x)", "return true || before(x, y)"},
	{"the order passes versions of unknown writers", "lists.go", "if s == installed {\n\t\t\treturn", "if true {\n\t\t\treturn"},

	{"a cycle goes back in time", "suspects.go", "from >= to &&", "from > to+1 &&"},
	{"G0 before G1c", "search.go", "\ts.circular(ww)\n", ""},
	{"G1c", "search.go", "\ts.circular(flow)\n", ""},
	{"lost updates over others' writes", "search.go", "\ts.lostUpdates()\n", ""},
	{"lost updates whose order is not known", "search.go", "\ts.collisions()\n", ""},
	{"cycles of two", "search.go", "\ts.singles()\n", ""},
	{"read skews over others' writes", "search.go", "\ts.fractured()\n", ""},
	{"longer G-single", "search.go", "\ts.longGSingle()\n", ""},
	{"G-nonadjacent", "search.go", "\ts.rowsFirst(s.longNonadjacent)\n", ""},
	{"write skews", "search.go", "\ts.skews()\n", ""},
	{"longer G2-item", "search.go", "\ts.rowsFirst(s.longG2Item)\n", ""},
	{"violations before hazards", "search.go", "\ts.setTogether(false)\n\ts.pass(Violation)\n", "\ts.setTogether(false)\n"},
	{"serializable transactions among themselves", "search.go", "if s.judge.anyTogether() {", "if false {"},
	{"orders of sessions", "search.go", "\ts.bySessions()\n", ""},
	{"the order of time", "search.go", "\ts.byTime()\n", ""},
	{"orders make hazards only of what is forbidden", "search.go", "class == Hazard && name.variant() || ", ""},

	{"a G-single has one rw", "orders.go", "case k != rw && r == oneAnti:\n\t\treturn state, true\n", ""},
	{"rw that stand apart", "orders.go", "return antiPath, r != noAnti && state == plainPath", "return antiPath, r != noAnti"},

	{"the verdict on G-single", "verdict.go", "s.eachSingle(anyway, func([]int32) bool { found[GSingle] = true; return false })", ""},
	{"the verdict on G-nonadjacent", "verdict.go", "s.eachNonadjacent(func([]int32) bool { found[GNonadjacent] = true; return false })", ""},
	{"the verdict on fractured reads", "verdict.go", "\ts.eachFracture(found)\n", ""},
	{"the verdict on long fractured reads", "verdict.go", "found[s.o.nameOf(cycle)] = true\n\t\treturn !found[OTV]", "return !found[OTV]"},
	{"the verdict counts what findings did not need", "verdict.go", "s.gone[e] = s.edges[e].inexact", "s.gone[e] = s.gone[e]"},
	{"the verdict on phantoms", "verdict.go", "s.eachSingle(anyway, func([]int32) bool { found[Phantom] = true; return false })", ""},
	{"the verdict on phantoms that stand apart", "verdict.go", "s.eachNonadjacent(func([]int32) bool { found[PhantomNonadjacent] = true; return false })", ""},
	{"predicates are no rows for the verdict", "verdict.go", " || !predicates && s.o.byPredicate(&s.edges[e])", ""},
	{"the verdict by sessions", "verdict.go", "found[G2Item.Process()] = s.anyCycle(sessionFlow | rw)", ""},
	{"the verdict by time", "verdict.go", "for i, rule := range timeRules {", "for i, rule := range timeRules[:0] {"},

	{"a SELECT takes a snapshot", "ingest.go", "return s.Locking == history.NoLock || sh.nested || sh.calls", "return false"},
	{"what an INSERT ... SELECT reads is current", "ingest.go", " || stmt.Kind != history.Select {", " {"},
	{"a locking clause does not reach into subqueries", "ingest.go", "&& !stmt.Void && !s.shapes[len(s.shapes)-1].nested {", "&& !stmt.Void {"},
	{"a lock may be given back", "ingest.go", "&& !stmt.Void && !s.shapes", "&& !s.shapes"},
	{"what one statement wrote twice is one version", "ingest.go", "if before.write() && o.write() {", "if false {"},
	{"a later write makes a version intermediate", "ingest.go", "o.flags |= intermediate", ""},
	{"TiDB's BEGIN says what becomes of conflicts", "ingest.go", "return history.ConflictsAtCommit", "return t.Conflicts"},
}

// Each rule can be taken out, so that "make mutants" means something; with -mutants each one is, and a test fails.
func TestEveryRuleIsTested(t *testing.T) {
	for _, m := range mutants {
		source, err := os.ReadFile(m.file)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(source, []byte(m.text)); n != 1 {
			t.Errorf("%s: its text is in %s %d times, want once", m.rule, m.file, n)
			continue
		}
		if *runMutants {
			mutant := bytes.Replace(source, []byte(m.text), []byte(m.without), 1)
			t.Run(m.rule, func(t *testing.T) { testMutant(t, m.file, mutant) })
		}
	}
}

// testMutant runs the tests with another text in place of a file and wants them to fail.
func testMutant(t *testing.T, file string, text []byte) {
	dir := t.TempDir()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	mutated, overlay := filepath.Join(dir, file), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{mutated: text, overlay: replace} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-vet=off", "-failfast", "-short", "-skip", "TestEveryRuleIsTested|TestHuge", ".", "-histories=5000").CombinedOutput()
	switch {
	case err == nil:
		t.Error("no test fails without it")
	case !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic"):
		t.Errorf("the mutant is no program: %s", out)
	}
}
