package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/internal/truth"
	"github.com/isotap/isotap/recorder"
)

// TestWritersPastMariaDBAndMySQLAreHeldAgainstTheirTokens has clients of isotap's and others past it write the same
// rows, and holds what the server's log makes of that against what the rows told.
func TestWritersPastMariaDBAndMySQLAreHeldAgainstTheirTokens(t *testing.T) {
	t.Parallel() // much of its time is waiting
	holdWritersPast(t, &pastLoad{}, "READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", "mixed")
}

// TestCallersBesideWritersPastMariaDBAndMySQLAreHeldAgainstTheirTokens has clients of isotap's call procedures as well,
// which isotap cannot follow, and a trigger write. At READ UNCOMMITTED others meet what these wrote and undid, which no
// log has.
func TestCallersBesideWritersPastMariaDBAndMySQLAreHeldAgainstTheirTokens(t *testing.T) {
	t.Parallel() // much of its time is waiting
	holdWritersPast(t, &pastLoad{calls: true, tables: []string{"CREATE TRIGGER follow AFTER UPDATE ON b FOR EACH ROW " +
		"UPDATE parts SET hist = CONCAT(hist, ',', SUBSTRING_INDEX(SUBSTRING_INDEX(NEW.hist, ',', -1), '.', 1), '.', " +
		"id + 100) WHERE id = NEW.id"}}, "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
}

// A pastLoad is what runs beside writers past isotap.
type pastLoad struct {
	calls  bool     // clients of isotap's call procedures
	tables []string // beside pastTokenTables
	read   int      // of all runs so far: reads of what was written past isotap
}

func holdWritersPast(t *testing.T, l *pastLoad, levels ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	server := binlogServer(t)
	eachTokenRun(t, levels, func(t *testing.T, level string, seed uint64) { l.run(t, server, level, seed) })
	if !l.calls && l.read == 0 && !t.Failed() {
		t.Error("nobody read what was written past isotap")
	}
}

func (l *pastLoad) run(t *testing.T, server *testdb.Server, level string, seed uint64) {
	t.Helper()
	b := newBinlogBench(t, server, "tokens", slices.Concat(mysqlTokenTables, pastTokenTables, l.tables)...)
	log := truth.NewLog()
	r := &loggedRun{tokenRun: tokenRun{t: t, log: log, told: fmt.Sprintf("seed %d at %s", seed, level),
		serializable: level == "SERIALIZABLE"}, calls: l.calls, past: make(map[int]bool), undone: make(map[int]bool),
		tokens: make(map[rowVersion]truth.Token)}
	var open []func()
	client := func(db *sql.DB, stream uint64, spelt tokenSQL) *tokenClient {
		c := &tokenClient{Rand: rand.New(rand.NewPCG(seed, stream)), log: log, level: level,
			sql: spelt}
		var conn *sql.Conn
		c.again = func() {
			if conn != nil {
				conn.Close()
			}
			if conn, _ = db.Conn(context.Background()); conn != nil {
				conn.ExecContext(context.Background(), "SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1")
			}
		}
		c.ask = func(ctx context.Context, text string) ([]string, error) { return mysqlAsk(ctx, conn, text) }
		c.again()
		open = append(open, func() { conn.Close() })
		return c
	}
	play, spelt := &tokenPlay{}, mysqlTokens{mariadb: testdb.EngineName() != testdb.MySQL.Name}
	var through tokenSQL = spelt
	if l.calls {
		through = callingTokens{spelt}
	}
	for i := range tokenClients {
		play.clients = append(play.clients, client(b.through, uint64(i), through))
	}
	beside := []*pastClient{{tokenClient: client(b.direct, 50, callingTokens{spelt}), run: r},
		{tokenClient: client(b.direct, 51, callingTokens{spelt}), run: r}}
	play.disturb = func(ctx context.Context, _ int) {
		var both sync.WaitGroup
		for _, c := range beside {
			both.Go(func() { c.transaction(ctx) })
		}
		both.Wait()
	}
	play.run(t.Context())
	time.Sleep(50 * time.Millisecond)
	direct := b.conn(b.direct)
	for _, table := range []string{"a", "b", "parts"} {
		shown, err := mysqlAsk(t.Context(), direct, "SELECT hist FROM "+table)
		if err != nil {
			t.Fatal(err)
		}
		log.Found(chains(shown))
	}
	direct.Close()
	for _, end := range open {
		end()
	}
	b.stop()
	r.holdLogged(b.recording)
	l.read += r.read
}

// pastTokenTables have procedures that write tables.
var pastTokenTables = []string{
	"CREATE PROCEDURE write_b(n VARCHAR(20), k INT) UPDATE b SET hist = CONCAT(hist, n, id) WHERE id = k",
	"CREATE PROCEDURE write_two(n VARCHAR(20), k INT) BEGIN UPDATE a SET hist = CONCAT(hist, n, id) WHERE id = k; " +
		"UPDATE parts SET hist = CONCAT(hist, n, id + 20) WHERE id = k; END",
	"CREATE PROCEDURE remove_a(n VARCHAR(20), k INT) DELETE FROM a WHERE id = k AND hist <> n",
}

// callingTokens has procedures write, too.
type callingTokens struct{ mysqlTokens }

func (q callingTokens) write(r *rand.Rand, table string, n, id int) (text string, shows bool) {
	if r.IntN(4) > 0 {
		return q.mysqlTokens.write(r, table, n, id)
	}
	return fmt.Sprintf("CALL %s(',%d.', %d)", oneOf(r, "write_b", "write_two", "remove_a"), n, id), false
}

// A pastClient writes past isotap.
type pastClient struct {
	*tokenClient
	run     *loggedRun
	numbers []int // of the statements of the transaction
}

func (c *pastClient) transaction(ctx context.Context) {
	if _, err := c.ask(ctx, "BEGIN"); err != nil {
		c.again()
		return
	}
	c.numbers = nil
	var failed error // which may have rolled the transaction back
	for range 1 + c.IntN(3) {
		if failed = c.write(ctx); failed != nil {
			break
		}
	}
	end := c.oneOf("COMMIT", "COMMIT", "COMMIT", "ROLLBACK")
	if _, err := c.ask(ctx, end); err != nil || failed != nil || end == "ROLLBACK" {
		c.run.undo(c.numbers)
	}
}

// write runs one statement, or two.
func (c *pastClient) write(ctx context.Context) error {
	n, table, id := c.number(), c.oneOf("a", "a", "b", "parts"), 1+c.IntN(6)
	switch c.IntN(6) {
	case 0:
		text, shows := c.sql.remove(table, n, id)
		shown, err := c.ask(ctx, text)
		if err == nil && shows {
			c.log.Deleted(n, chains(shown))
		}
		if err != nil || c.IntN(2) == 0 {
			return err
		}
		n = c.number()
		_, err = c.ask(ctx, fmt.Sprintf("INSERT INTO %s (id, hist) VALUES (%d, ',%d.%d')", table, id, n, id))
		return err
	case 1:
		_, err := c.ask(ctx, moveToken(table, n, id))
		return err
	}
	text, _ := c.sql.write(c.Rand, table, n, id)
	_, err := c.ask(ctx, text)
	return err
}

// A rowVersion is a version of a row.
type rowVersion struct {
	row history.Row
	tag history.Tag
}

// A loggedRun is what one run leaves that was held against the server's log.
type loggedRun struct {
	tokenRun
	mu     sync.Mutex
	dir    string       // the recording
	part   bool         // a part of it is held against the truth
	calls  bool         // clients of isotap's call procedures
	past   map[int]bool // the numbers of statements past isotap
	undone map[int]bool // of those, those that were rolled back
	tokens map[rowVersion]truth.Token
	exact  map[history.Tag]int // the numbers of statements
	open   int                 // versions of unknown origin
	read   int                 // those of writers past isotap
}

// number returns that of the next statement.
func (c *pastClient) number() int {
	n := c.log.Number()
	c.numbers = append(c.numbers, n)
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	c.run.past[n] = true
	return n
}

// undo takes in statements past isotap that were rolled back, or may have been.
func (r *loggedRun) undo(numbers []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range numbers {
		r.undone[n] = true
	}
}

// dirty reports whether a statement was shown what somebody past isotap rolled back. No log has that: what was read is
// taken for the version before.
func (r *loggedRun) dirty(statement int) bool {
	return slices.ContainsFunc(r.log.Newest(statement), func(n int) bool { return r.undone[n] })
}

// holdLogged holds a recording against what the rows told, with what the server's log says.
func (r *loggedRun) holdLogged(dir string) {
	r.t.Helper()
	r.dir = dir
	result, edges, err := analysis.Dependencies(r.t.Context(), []string{dir}, analyzer.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	_, txns, err := analysis.Resolved(r.t.Context(), dir)
	if err != nil {
		r.t.Fatal(err)
	}
	r.exact = make(map[history.Tag]int)
	observed := make(map[history.Tag]history.Observation)
	for _, x := range txns {
		for i := range x.Stmts {
			tag := history.Tag{Txn: x.ID, Stmt: x.Stmts[i].Num}
			observed[tag] = x.Stmts[i].Observation
			if n := numberOf(&x.Stmts[i]); n != 0 {
				r.exact[tag] = n
			}
		}
	}
	shown := make(map[string]rowVersion) // by row and token
	for _, x := range txns {
		for i := range x.Stmts {
			s := &x.Stmts[i]
			n := numberOf(s)
			token, ok := r.log.Last(n)
			if ok && !r.dirty(n) && s.Observation == history.Exact && len(s.Accesses) == 1 && s.Accesses[0].Op != history.InsertRow &&
				!s.Accesses[0].Inexact && (s.Accesses[0].Op == history.DeleteRow || s.Kind == history.Select) {
				r.holdVersion(x, s, token, observed, shown)
			}
		}
	}
	verdicts := make(map[truth.Verdict]int)
	for i := range edges {
		r.holdLoggedEdge(&edges[i], verdicts)
	}
	for _, f := range result.Findings {
		r.holdLoggedFinding(f, verdicts)
	}
	inParts := make(map[truth.Verdict]int)
	r.part = true
	found, ofParts := partsOf(r.t, dir, rand.New(rand.NewPCG(uint64(len(txns)), 7)), 4)
	for _, f := range found {
		r.holdLoggedFinding(f, inParts)
	}
	for i := range ofParts {
		r.holdLoggedEdge(&ofParts[i], inParts)
	}
	r.t.Logf("%s: dependencies in parts %v", r.told, inParts)
	r.t.Logf("%s: %d transactions, %d past isotap; %d reads of those, %d of unknown origin; dependencies %v, %d findings, %+v",
		r.told, len(txns), result.Coverage.Log.Past, r.read, r.open, verdicts, len(result.Findings), result.Coverage.Log)
	// What a statement that isotap cannot follow may have written is of unknown origin.
	if verdicts[truth.True] == 0 || !r.calls && result.Coverage.Log.Past == 0 {
		r.t.Errorf("%s: nothing could be held against the truth", r.told)
	}
}

// holdLoggedFinding sees that a finding blames no server that keeps its word, and holds what it rests on against the
// truth.
func (r *loggedRun) holdLoggedFinding(f *analyzer.Finding, verdicts map[truth.Verdict]int) {
	r.t.Helper()
	if f.Anomaly == analyzer.Internal && !r.serializable {
		r.t.Logf("%s: MySQL 114389, by a key that changed past isotap: %v", r.told, f.Explanation)
	} else if f.Class == analyzer.Violation || r.serializable && !slices.ContainsFunc(f.Witness, beganAgain) {
		r.t.Errorf("%s: %s %s: %v", r.told, f.Class, f.Anomaly, f.Explanation)
	}
	for i := range f.Witness {
		r.holdLoggedEdge(&f.Witness[i], verdicts)
	}
}

// holdVersion sees that a version which a statement was shown is the one with the newest token of its row.
func (r *loggedRun) holdVersion(x *history.Txn, s *history.Stmt, token truth.Token,
	observed map[history.Tag]history.Observation, shown map[string]rowVersion) {
	r.t.Helper()
	a := &s.Accesses[0]
	v := rowVersion{a.Row, a.Version}
	n, seen := token.Statement()
	wrong := func(why string) {
		r.t.Helper()
		r.t.Errorf("%s: %s: %s is the version %v of %v, %s; %q at %v in %s", r.told, r.log.Story(numberOf(s)), token,
			a.Version, a.Row, why, s.Shape, x.Level, x.ID)
	}
	switch of := a.Version.Txn.Run(); {
	case of == history.Unrecorded:
		r.open++
		return
	case a.Version.Initial():
		if seen {
			wrong("that was there from the beginning")
		}
		return
	case of >= history.FirstPast:
		r.read++
		if !r.past[n] {
			wrong("of somebody past isotap")
		}
	case observed[a.Version] == history.Exact && r.exact[a.Version] != n:
		wrong(fmt.Sprintf("of statement %d", r.exact[a.Version]))
	case r.past[n]:
		wrong("of a client of isotap's")
	}
	key := fmt.Sprint(a.Row, token)
	if other, ok := shown[key]; ok && other != v {
		wrong(fmt.Sprintf("and %v, too", other.tag))
	}
	if other, ok := r.tokens[v]; ok && other != token {
		wrong(fmt.Sprintf("as is %s", other))
	}
	shown[key], r.tokens[v] = v, token
}

// numbersOf returns the numbers that a statement which took part in a dependency on a row may have.
func (r *loggedRun) numbersOf(x *history.Txn, s *history.Stmt, row history.Row) (all []int) {
	tag := history.Tag{Txn: x.ID, Stmt: s.Num}
	if x.ID.Run() < history.FirstPast {
		return append(all, r.exact[tag])
	}
	if n, ok := r.tokens[rowVersion{row, tag}].Statement(); ok {
		all = append(all, n)
	}
	for _, a := range s.Accesses {
		if token := r.tokens[rowVersion{row, a.Version}]; a.Row == row && a.Op == history.DeleteRow && token != "" {
			all = append(all, r.log.DeletedBy(token))
		}
	}
	return all
}

// loggedOf returns what the server's log has of a row, for people.
func (r *loggedRun) loggedOf(row history.Row) string {
	var b strings.Builder
	rec, err := recorder.Open(r.dir)
	if err != nil {
		return err.Error()
	}
	defer rec.Close()
	for _, info := range rec.Runs() {
		for x, err := range rec.Logged(r.t.Context(), info.Run) {
			if err != nil {
				return err.Error()
			}
			for _, w := range x.Writes {
				if w.Row == row {
					fmt.Fprintf(&b, "\t%s:%d %s from %d to %d seen %d: %v %v -> %v\n", x.File, x.Position, x.Status, x.From, x.To, x.Seen,
						w.Op, w.Old, w.New)
				}
			}
		}
	}
	return b.String()
}

// holdLoggedEdge holds a dependency against the truth.
func (r *loggedRun) holdLoggedEdge(e *analyzer.Edge, verdicts map[truth.Verdict]int) {
	r.t.Helper()
	kinds := map[analyzer.DepKind]truth.Kind{analyzer.WR: truth.WR, analyzer.WW: truth.WW, analyzer.RW: truth.RW}
	kind, ok := kinds[e.Kind]
	if !ok || e.Inexact || e.FromStmt == nil || e.ToStmt == nil || e.From.ID.Run() < history.FirstPast &&
		e.FromStmt.Observation != history.Exact || e.To.ID.Run() < history.FirstPast && e.ToStmt.Observation != history.Exact {
		return
	}
	for _, from := range r.numbersOf(e.From, e.FromStmt, e.Row) {
		for _, to := range r.numbersOf(e.To, e.ToStmt, e.Row) {
			if from == 0 || to == 0 || r.dirty(from) || r.dirty(to) {
				continue
			}
			verdict := r.log.Check(truth.Edge{Kind: kind, From: from, To: to, Unfound: e.NotFound})
			if r.part && kind == truth.WR && verdict == truth.False && r.log.Met(to, from) {
				verdict = truth.Unknown // who wrote the row since, under that tag, is not in the part
			}
			if verdicts[verdict]++; verdict == truth.False {
				r.t.Errorf("%s: %s %s of %s (%v) -> %s (%v), of version %s, next %s, not found %t, is not true\n%s\n%s\n"+
					"transactions:\n%s\n%s\nthe log of the row:\n%s", r.told, e.Kind, e.Row, e.From.ID, e.From.Level, e.To.ID,
					e.To.Level, e.Version, e.Next, e.NotFound, r.log.Story(from), r.log.Story(to), toldUpTo(e.From, e.FromStmt),
					toldUpTo(e.To, e.ToStmt), r.loggedOf(e.Row))
			}
		}
	}
}
