package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/analyzer/pgversions"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/truth"
	"github.com/isotap/isotap/recorder"
)

// In these tests every write leaves a token of its own behind those that it finds in the row, so that what clients read
// says by itself which versions there were and who wrote them (package truth). What isotap recorded, the dependencies
// that it makes of that and the cycles that it reports are held against it, while tables are swapped, restored, changed
// and written past isotap, and sessions are killed.

var (
	tokenSeed = flag.Uint64("tokens.seed", 1, "seed of the first run of the tests that hold isotap against tokens")
	tokenRuns = flag.Int("tokens.runs", 2, "how many runs they make at each level")
	tokenFor  = flag.Duration("tokens.for", 0, "for how long they make runs at each level, where that is longer")
	tokenTxns = flag.Int("tokens.transactions", 36, "how many transactions each client of a run makes")
)

const tokenClients = 4

// A tokenClient runs transactions whose statements have numbers.
type tokenClient struct {
	*rand.Rand
	log   *truth.Log
	sql   tokenSQL
	level string
	// ask runs a statement and returns the first column of what it was shown.
	ask func(ctx context.Context, text string) ([]string, error)
	// again connects anew, once the connection is gone.
	again func()
	// alone says that some statements are outside of transactions.
	alone bool
}

// A tokenSQL spells a family's statements.
type tokenSQL interface {
	begin(level string) []string
	// read returns a SELECT of rows as they are, several of one line with semicolons between them.
	read(r *rand.Rand, table string, n, id int) string
	// write returns a statement that leaves the token ,N.KEY, and whether it shows the rows as it left them, those that
	// it read beside them behind a bar.
	write(r *rand.Rand, table string, n, id int) (text string, shows bool)
	// remove returns a DELETE, and whether it shows the rows that it deleted.
	remove(table string, n, id int) (text string, shows bool)
}

// A lookingTokenSQL has writes that leave in their row what they read beside it.
type lookingTokenSQL interface {
	// look returns a SELECT that shows what such a write left, as one shows it that shows rows; empty for others.
	look(written, table string, n, id int) string
}

func (c *tokenClient) oneOf(texts ...string) string { return oneOf(c.Rand, texts...) }

func oneOf(r *rand.Rand, texts ...string) string { return texts[r.IntN(len(texts))] }

// readOneTable returns a SELECT of one table, which may lock.
func readOneTable(r *rand.Rand, table string, n, id int) string {
	where := oneOf(r, fmt.Sprintf(" WHERE id = %d", id), fmt.Sprintf(" WHERE id = %d", id),
		fmt.Sprintf(" WHERE id >= %d", id), "")
	return fmt.Sprintf("SELECT hist, ',%d.' FROM %s%s%s", n, table, where,
		oneOf(r, "", "", "", " FOR UPDATE", " FOR SHARE"))
}

// transaction runs one, which may well fail.
func (c *tokenClient) transaction(ctx context.Context) {
	level := c.level
	if level == "mixed" {
		level = c.oneOf("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
	}
	if c.alone && c.IntN(5) == 0 {
		c.statement(ctx)
		return
	}
	for _, s := range c.sql.begin(level) {
		if _, err := c.ask(ctx, s); err != nil {
			c.again()
			return
		}
	}
	for range 1 + c.IntN(5) {
		savepoint := c.IntN(6) == 0
		if savepoint {
			c.ask(ctx, "SAVEPOINT s")
		}
		if err := c.statement(ctx); err != nil {
			break
		}
		if savepoint {
			c.ask(ctx, c.oneOf("ROLLBACK TO SAVEPOINT s", "RELEASE SAVEPOINT s"))
		}
	}
	if _, err := c.ask(ctx, c.oneOf("COMMIT", "COMMIT", "COMMIT", "ROLLBACK")); err != nil {
		c.again()
	}
}

// statement runs one.
func (c *tokenClient) statement(ctx context.Context) error {
	n, table, id := c.log.Number(), c.oneOf("a", "a", "b", "parts"), 1+c.IntN(6)
	switch c.IntN(10) {
	case 0, 1, 2, 3:
		shown, err := c.ask(ctx, c.sql.read(c.Rand, table, n, id))
		if err == nil {
			c.log.Saw(n, chains(shown))
		}
		return err
	case 4:
		text, shows := c.sql.remove(table, n, id)
		shown, err := c.ask(ctx, text)
		if err == nil && shows {
			c.log.Deleted(n, chains(shown))
		}
		return err
	}
	text, shows := c.sql.write(c.Rand, table, n, id)
	shown, err := c.ask(ctx, text)
	if of, ok := c.sql.(lookingTokenSQL); ok && err == nil && !shows {
		if look := of.look(text, table, n, id); look != "" {
			shown, err = c.ask(ctx, look)
			shows = len(shown) > 0
		}
	}
	if err == nil && shows {
		written, read, beside := divided(shown)
		c.log.Saw(n, withoutLast(written))
		if beside {
			c.log.SawBeside(n, read)
		}
		c.log.Found(written)
	}
	return err
}

// divided returns the chains of the rows that a statement wrote, and of those that it read beside them, which stand
// behind a bar, if there is one.
func divided(shown []string) (written, read []truth.Chain, beside bool) {
	for _, text := range shown {
		own, others, bar := strings.Cut(text, "|")
		written = append(written, chains([]string{own})...)
		if beside = beside || bar; others != "" {
			read = append(read, chains([]string{others})...)
		}
	}
	return written, read, beside
}

func chains(shown []string) (all []truth.Chain) {
	for _, text := range shown {
		for row := range strings.SplitSeq(text, ";") {
			all = append(all, truth.ParseChain(row))
		}
	}
	return all
}

// withoutLast returns the chains as they were before the statement's own token, of rows that were there before.
func withoutLast(all []truth.Chain) (before []truth.Chain) {
	for _, c := range all {
		if len(c) > 1 {
			before = append(before, c[:len(c)-1])
		}
	}
	return before
}

// A tokenRun is what one run leaves.
type tokenRun struct {
	t            *testing.T
	log          *truth.Log
	told         string              // its seed and level
	recorded     map[int]bool        // the statements whose numbers are recorded: whether they are exact
	numbers      map[history.Tag]int // those of statements, by their tags
	planted      int                 // lost updates that were planted
	serializable bool
	unclear      []string // what was recorded of the planted ones, and is not exact
}

// tokenNumber finds a statement's number in its literals.
var tokenNumber = regexp.MustCompile(`^'?,?(\d+)\.\d*'?$`)

func numberOf(s *history.Stmt) int {
	for _, arg := range s.Args {
		if m := tokenNumber.FindStringSubmatch(arg); m != nil && strings.Contains(arg, ",") {
			n, _ := strconv.Atoi(m[1])
			return n
		}
	}
	return 0
}

// unseenNumber finds the number of a statement that writes unseen in its literals.
var unseenNumber = regexp.MustCompile(`\bh(\d+)\b`)

// numbersOf returns the numbers that a statement of a transaction may have: of one that stands for what the server's
// log tells, those of all that wrote unseen.
func numbersOf(x *history.Txn, s *history.Stmt) []int {
	if !s.Unseen {
		return []int{numberOf(s)}
	}
	var all []int
	for i := range x.Stmts {
		of := &x.Stmts[i]
		if n := numberOf(of); n != 0 && of.Observation != history.Exact {
			all = append(all, n)
		}
		for _, arg := range append(slices.Clone(of.Args), of.Sender.Place) {
			if m := unseenNumber.FindStringSubmatch(arg); m != nil && !of.Void {
				n, _ := strconv.Atoi(m[1])
				all = append(all, n)
			}
		}
	}
	return all
}

// hold holds a recording against the log.
func (r *tokenRun) hold(dir string) {
	r.t.Helper()
	infos, txns, a, result := r.analyzed(dir)
	numbers := make(map[history.Tag]int)
	r.recorded, r.numbers = make(map[int]bool), numbers
	for _, x := range txns {
		for i := range x.Stmts {
			if s := &x.Stmts[i]; strings.Contains(s.Shape, "planted") && s.Observation != history.Exact {
				r.unclear = append(r.unclear, fmt.Sprintf("%s of %s: %s, %s", s.Shape, x.ID, s.Observation, s.Reason))
			}
			if n := numberOf(&x.Stmts[i]); n != 0 {
				numbers[history.Tag{Txn: x.ID, Stmt: x.Stmts[i].Num}] = n
				r.recorded[n] = x.Stmts[i].Observation == history.Exact
			}
		}
	}
	exact, read := 0, 0
	for _, x := range txns {
		for i := range x.Stmts {
			s := &x.Stmts[i]
			if n := numberOf(s); n != 0 && s.Observation == history.Exact && r.log.Showed(n) {
				exact++
				read += r.holdStatement(x, s, n, numbers)
			}
		}
	}
	verdicts := make(map[truth.Verdict]int)
	for e, err := range a.Edges() {
		if err != nil {
			r.t.Fatal(err)
		}
		r.holdEdge(&e, "a dependency", verdicts)
	}
	r.holdFindings(result, verdicts)
	status := make(map[history.Status]int)
	for _, x := range txns {
		status[x.Status]++
	}
	r.t.Logf("%s: %d transactions %v, %d exact statements that showed rows, %d versions, dependencies %v, put back %d (%t)", r.told,
		len(txns), status, exact, read, verdicts, result.Coverage.PutBack, infos[0].PutBack)
	if verdicts[truth.True] == 0 || exact == 0 {
		r.t.Errorf("%s: nothing could be held against the truth", r.told)
	}
	r.holdParts(dir)
}

// holdFindings sees that no finding blames the server or says what is not true, and that what was planted is found.
func (r *tokenRun) holdFindings(result *analyzer.Result, verdicts map[truth.Verdict]int) {
	r.t.Helper()
	planted := 0
	for _, f := range result.Findings {
		if f.Class == analyzer.Violation || r.serializable && !slices.ContainsFunc(f.Witness, beganAgain) {
			r.t.Errorf("%s: %s %s: %v", r.told, f.Class, f.Anomaly, f.Explanation)
		}
		if f.Anomaly == analyzer.LostUpdate && slices.ContainsFunc(f.Tables,
			func(t string) bool { return strings.HasSuffix(t, "planted") }) {
			planted += f.Count
		}
		for i := range f.Witness {
			r.holdEdge(&f.Witness[i], "a finding", verdicts)
		}
	}
	if planted != r.planted {
		r.t.Errorf("%s: %d lost updates were planted, %d are found; not exact are %q", r.told, r.planted, planted, r.unclear)
	}
}

// beganAgain reports whether a dependency is one of those that SERIALIZABLE lets through.
func beganAgain(e analyzer.Edge) bool { return e.BegunAgain }

// analyzed returns what isotap makes of the recording, its transactions with the versions that were found.
func (r *tokenRun) analyzed(dir string) ([]history.Info, []*history.Txn, *analyzer.Analyzer, *analyzer.Result) {
	r.t.Helper()
	must := func(err error) {
		if err != nil {
			r.t.Helper()
			r.t.Fatal(err)
		}
	}
	rec, err := recorder.Open(dir)
	must(err)
	defer rec.Close()
	var sessions []history.Session
	for s, err := range rec.Sessions(r.t.Context()) {
		must(err)
		sessions = append(sessions, s)
	}
	var txns []*history.Txn
	for x, err := range rec.Txns(r.t.Context()) {
		must(err)
		txns = append(txns, x)
	}
	versions := pgversions.New()
	txns, err = versions.Translate(rec.Runs(), sessions, txns)
	must(err)
	a := analyzer.New(analyzer.Options{})
	for _, info := range rec.Runs() {
		must(a.Add(info))
	}
	for _, x := range txns {
		must(a.AddTxn(x))
	}
	for _, o := range versions.Orders() {
		must(a.AddOrder(o.Row, o.Before, o.After))
	}
	result, err := a.Finish()
	must(err)
	return rec.Runs(), txns, a, result
}

// holdStatement compares the versions that a statement is recorded with, and returns how many they are.
func (r *tokenRun) holdStatement(x *history.Txn, s *history.Stmt, n int, numbers map[history.Tag]int) int {
	var got []int
	unrecorded := false
	want, beside := r.log.NewestBeside(n)
	if !beside {
		want = r.log.Newest(n)
	}
	for i := range s.Accesses {
		a := &s.Accesses[i]
		if a.Op == history.InsertRow || beside && a.Op != history.Read {
			continue
		}
		if a.Inexact || a.Op == history.UpdateRow || a.Version.Stmt == 0 && a.Version.Txn != 0 {
			return 0 // isotap says that it is not sure
		}
		got = append(got, numbers[a.Version])
		unrecorded = unrecorded || a.Version.Txn.Run() == history.Unrecorded
	}
	slices.Sort(got)
	if r.log.Foreign(n) || slices.ContainsFunc(want, func(n int) bool {
		exact, ok := r.recorded[n]
		return n != 0 && (!ok || unrecorded && !exact)
	}) {
		return 0
	}
	// What hangs on two rows is shown with each of them, and told once.
	if showsTwoOfOne(s) {
		got, want = slices.Compact(got), slices.Compact(slices.Clone(want))
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("%s: %s, recorded are the versions of %v; %q of %q at %v in %s: %v\nthe transaction:\n%s", r.told,
			r.log.Story(n), got, s.Shape, s.Args, x.Level, x.ID, s.Accesses, toldUpTo(x, s))
	}
	return len(got)
}

// toldUpTo returns what is recorded of a transaction up to one of its statements, for people.
func toldUpTo(x *history.Txn, last *history.Stmt) string {
	var b strings.Builder
	for i := range x.Stmts {
		s := &x.Stmts[i]
		fmt.Fprintf(&b, "\t%d %q of %q: %s %s, void %t, %d to %d, %v\n", s.Num, s.Shape, s.Args, s.Observation, s.Reason, s.Void,
			s.Start, s.End, s.Accesses)
		if s == last {
			break
		}
	}
	return b.String()
}

// showsTwoOfOne reports whether a statement read two versions of one row. A snapshot of PostgreSQL's shows a row that
// another transaction has deleted since, beside the row of the same key that its own transaction then inserted.
func showsTwoOfOne(s *history.Stmt) bool {
	version := make(map[history.Row]history.Tag)
	for i := range s.Accesses {
		a := &s.Accesses[i]
		if v, ok := version[a.Row]; ok && a.Op == history.Read && v != a.Version {
			return true
		}
		if a.Op == history.Read {
			version[a.Row] = a.Version
		}
	}
	return false
}

// holdEdge holds a dependency against the truth.
func (r *tokenRun) holdEdge(e *analyzer.Edge, of string, verdicts map[truth.Verdict]int) {
	kinds := map[analyzer.DepKind]truth.Kind{analyzer.WR: truth.WR, analyzer.WW: truth.WW, analyzer.RW: truth.RW}
	kind, ok := kinds[e.Kind]
	if !ok || e.Inexact || e.FromStmt == nil || e.ToStmt == nil {
		return
	}
	verdict, replaced := truth.False, 0
	if e.NotFound && e.Kind == analyzer.WR {
		replaced = r.replacedBy(e.FromStmt, e.Row)
	}
	var edge truth.Edge
	for _, from := range numbersOf(e.From, e.FromStmt) {
		for _, to := range numbersOf(e.To, e.ToStmt) {
			edge = truth.Edge{Kind: kind, From: from, To: to, Unfound: e.NotFound, Replaced: replaced}
			if v := r.log.Check(edge); v == truth.True || verdict == truth.False {
				verdict = v
			}
		}
	}
	if edge.From == 0 || edge.To == 0 {
		return
	}
	verdicts[verdict]++
	if verdict == truth.False {
		r.t.Errorf("%s: %s of %v is not true: %s %s of %s (%v) -> %s (%v)\n%s\n%s", r.told, of, edge, e.Kind, e.Row, e.From.ID,
			e.From.Level, e.To.ID, e.To.Level, r.log.Story(edge.From), r.log.Story(edge.To))
	}
}

// replacedBy returns the statement that left the version of a row that another one replaced, 0 for none that is known.
func (r *tokenRun) replacedBy(s *history.Stmt, row history.Row) int {
	for i := range s.Accesses {
		if a := &s.Accesses[i]; a.Row == row && a.Op != history.Read && !a.Inexact {
			return r.numbers[a.Version]
		}
	}
	return 0
}

// A tokenPlay plays one run: the clients side by side, and what disturbs them until they have ended.
type tokenPlay struct {
	// alone is held by what no transaction may be under way for, as rows are put back: where one is, isotap may take
	// what it read of them for what was there before.
	alone   sync.RWMutex
	clients []*tokenClient
	disturb func(ctx context.Context, step int) // one disturbance
}

func (p *tokenPlay) run(ctx context.Context) {
	var clients, disturbing sync.WaitGroup
	done, stop := context.WithCancel(ctx)
	for _, c := range p.clients {
		clients.Go(func() {
			for range *tokenTxns {
				p.alone.RLock()
				c.transaction(ctx)
				p.alone.RUnlock()
			}
		})
	}
	disturbing.Go(func() {
		for step := 1; done.Err() == nil; step++ {
			p.disturb(ctx, step)
			select {
			case <-time.After(5 * time.Millisecond):
			case <-done.Done():
			}
		}
	})
	clients.Wait()
	stop()
	disturbing.Wait()
}

// eachTokenRun calls run with the seeds and levels that the flags ask for.
func eachTokenRun(t *testing.T, levels []string, run func(t *testing.T, level string, seed uint64)) {
	for _, level := range levels {
		t.Run(level, func(t *testing.T) {
			until := time.Now().Add(*tokenFor)
			for seed := *tokenSeed; seed < *tokenSeed+uint64(*tokenRuns) || time.Now().Before(until); seed++ {
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { run(t, level, seed) })
			}
		})
	}
}

var errGone = errors.New("the connection is gone")
