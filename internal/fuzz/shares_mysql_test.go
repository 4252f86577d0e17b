package fuzz

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/catalog"
	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
	"github.com/isotap/isotap/workload/random"
)

// leastExact are how many of a thousand random SELECTs are exact at least.
var leastExact = map[dbms.Engine]int{dbms.MariaDB: 465, dbms.MySQL: 500}

// TestSharesOfRandomSelectsAreAsDocumented plans the SELECTs without a locking clause that "isotap fuzz --profile deep"
// draws, at READ COMMITTED. It prints how many are exact, and why the others are not, as docs/subqueries.md has it, and
// holds that they do not become fewer:
//
//	go test ./internal/fuzz -run SharesOfRandomSelects -v
func TestSharesOfRandomSelectsAreAsDocumented(t *testing.T) {
	s := newSelects(t)
	profile, _ := random.Named("deep")
	total, exact, companions, counts, whys := 0, 0, 0, make(map[string]int), make(map[string]int)
	for seed := uint64(1); seed <= 12; seed++ {
		g := random.New(random.Engine{Name: s.engine, Version: s.version}, profile, seed)
		rewriter := s.rewriter(g.Setup())
		for n := range g.Transactions() {
			for _, text := range g.Transaction(n + 1) {
				if !readsOnly(text) {
					continue
				}
				total++
				p := rewriter.Plan(text, s.session)
				if p.Observation == history.Exact {
					exact++
					continue
				}
				lasts := s.session
				lasts.Lasts = true
				if c := rewriter.Plan(text, lasts).Companion; c != nil {
					companions++
				}
				counts[p.Observation.String()+", "+formOf(text, p.Reason)]++
				if why := s.why(rewriter, text, p.Reason); why != "" {
					whys[why]++
				}
			}
		}
	}
	t.Logf("%s: of %d SELECTs %d are exact (%.1f %%), %d more have companions at REPEATABLE READ", s.engine.Title(), total, exact,
		100*float64(exact)/float64(total), companions)
	for _, form := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%5d (%4.1f %%) %s", counts[form], 100*float64(counts[form])/float64(total), form)
	}
	for _, why := range slices.Sorted(maps.Keys(whys)) {
		t.Logf("%5d %s", whys[why], why)
	}
	if least := leastExact[s.engine]; exact*1000 < total*least {
		t.Errorf("of %d SELECTs %d are exact, less than %d of a thousand", total, exact, least)
	}
}

// changes are what some of these SELECTs would be exact without, by their reasons: what it is, where it stands, and
// what would stand there.
var changes = map[history.Reason][]struct {
	what string
	at   *regexp.Regexp
	by   string
}{
	history.ReasonJoinedAggregate: {
		{"the condition of the LEFT JOIN", regexp.MustCompile(`(LEFT JOIN LATERAL .* AS l ON ).*`), "${1}TRUE"},
		{"the condition in the LATERAL query", regexp.MustCompile(`(LATERAL \(SELECT .*?) WHERE .*\) AS l`), "${1}) AS l"},
		{"the condition of the statement", regexp.MustCompile(`( AS l) WHERE .*`), "$1"},
	},
	history.ReasonAggregate: {
		{"the condition on the rows of the query in FROM", regexp.MustCompile(`( AS d) WHERE .*( GROUP BY d\.x)`), "$1$2"},
		{"MIN and MAX", regexp.MustCompile(`(COUNT\(\*\), )(MIN|MAX)\(`), "${1}SUM("},
		{"HAVING", regexp.MustCompile(`( GROUP BY d\.x) HAVING .*`), "$1"},
		{"the condition on groups of the WITH clause", regexp.MustCompile(`( FROM v) WHERE .*`), "$1"},
		{"the queries of WITH that the groups are made of", regexp.MustCompile(`WITH w AS \(SELECT [a-z0-9, ]+ FROM (t[0-9]).*\), v AS \(SELECT w\.(\w+) AS x, COUNT\(\*\) AS n FROM w .*GROUP BY 1\) SELECT v\.x, v\.n FROM v`),
			"SELECT v.x, v.n FROM (SELECT $2 AS x, COUNT(*) AS n FROM $1 GROUP BY $2) v"},
		{"what the rows of the query in FROM are computed of", regexp.MustCompile(`\(SELECT .* AS x, .* AS y FROM (t[0-9]) .*\) AS d`), "(SELECT id AS x, id AS y FROM $1) AS d"},
		{"subqueries in the condition", regexp.MustCompile(`( FROM t[0-9]) WHERE .*( GROUP BY)`), "$1$2"},
	},
	history.ReasonWindowFunction: {
		{"what the condition asks beside the window", regexp.MustCompile(`( WHERE v\.r <= [0-9]+) AND .*`), "$1"},
		{"the query of WITH that the windows are over", regexp.MustCompile(`WITH w AS \(SELECT ([a-z0-9, ]+) FROM (t[0-9]).*\), v AS \(SELECT w\.\*, (.*?) FROM w\) SELECT \* FROM v`), "SELECT * FROM (SELECT $1, $3 FROM $2) v"},
	},
}

// why tells what a SELECT of such a reason would be exact without: one of the changes, or several.
func (s *selects) why(rewriter *sqlmysql.Rewriter, text string, reason history.Reason) string {
	of := changes[reason]
	if of == nil {
		return ""
	}
	best, fewest := "more than that", len(of)+1
	for set := 1; set < 1<<len(of); set++ {
		changed, whats := text, []string(nil)
		for i, c := range of {
			if next := c.at.ReplaceAllString(changed, c.by); set&(1<<i) != 0 && next != changed {
				changed, whats = next, append(whats, c.what)
			}
		}
		if changed != text && len(whats) < fewest && rewriter.Plan(changed, s.session).Observation == history.Exact {
			best, fewest = strings.Join(whats, ", and "), len(whats)
		}
	}
	return reason.String() + " for " + best
}

// A selects plans statements for the tables of a server.
type selects struct {
	t       *testing.T
	conn    *catalogmysql.Conn
	engine  dbms.Engine
	version string
	session sqlmysql.Session
}

func newSelects(t *testing.T) *selects {
	t.Helper()
	target, err := dsn.Parse(testdb.Current(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	s := &selects{t: t, session: sqlmysql.Session{Charset: "utf8mb4", MaxPacket: 16 << 20, Strict: true, Repeats: true,
		WriteReads: sqlmysql.ReadSnapshot}, engine: dbms.MariaDB}
	if s.conn, err = catalogmysql.Connect(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.conn.Close() })
	if err := testdb.Open(t, "").QueryRow("SELECT VERSION()").Scan(&s.version); err != nil {
		t.Fatal(err)
	}
	if s.session.Dialect, s.session.Version = sqlmysql.ParseVersion(s.version); s.session.Dialect == sqlmysql.MySQL {
		s.engine = dbms.MySQL
	}
	return s
}

// rewriter makes a database of tables, and returns what plans statements for it.
func (s *selects) rewriter(setup []string) *sqlmysql.Rewriter {
	s.t.Helper()
	name := testdb.NewDatabase(s.t)
	testdb.Exec(s.t, testdb.Open(s.t, name), setup...)
	if _, err := catalogmysql.Instrument(s.t.Context(), s.conn, catalog.Options{Schemas: []string{name}}); err != nil {
		s.t.Fatal(err)
	}
	tables, err := catalogmysql.Load(s.t.Context(), s.conn)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { tables.Close() })
	s.session.Schema = name
	return sqlmysql.New(tables, sqlmysql.Options{})
}

// readsOnly reports whether a statement is a SELECT without a locking clause.
func readsOnly(text string) bool {
	return (strings.HasPrefix(text, "SELECT") || strings.HasPrefix(text, "WITH")) && !strings.Contains(text, " FOR UPDATE") &&
		!strings.Contains(text, " LOCK IN ")
}

var (
	inParentheses = regexp.MustCompile(`\([^()]*\)`)
	setOperators  = regexp.MustCompile(` (UNION|INTERSECT|EXCEPT) `)
	groupsRows    = regexp.MustCompile(`GROUP BY|^SELECT (COUNT|SUM|MIN|MAX|AVG)`)
	computes      = regexp.MustCompile(`CASE|[A-Z]{3,}\(|[-+*%] |<=>|ANY|ALL|\([^()]+, [^()]+\) (NOT )?IN \(SELECT`)
)

// formOf returns the reason why a SELECT is not exact, where it has one of several forms with that.
func formOf(text string, reason history.Reason) string {
	top := text
	for next := inParentheses.ReplaceAllString(top, ""); next != top; next = inParentheses.ReplaceAllString(top, "") {
		top = next
	}
	bare := strings.NewReplacer("COUNT(*)", "", "MAX(", "(", "MIN(", "(").Replace(text)
	switch form := reason.String(); {
	case reason == history.ReasonUnion && setOperators.MatchString(top) && !strings.Contains(text, " FROM (SELECT"):
		return form + ": a set operation"
	case reason == history.ReasonUnion:
		return form + ": a set operation in FROM"
	case reason == history.ReasonDistinct && strings.Contains(text, "(SELECT"):
		return form + ": with subqueries"
	case reason != history.ReasonSubquery:
		return form
	case groupsRows.MatchString(text):
		return form + ": a statement that groups"
	case computes.MatchString(bare):
		return form + ": with CASE, functions, arithmetic, ANY, ALL or rows"
	default:
		return form + ": others"
	}
}
