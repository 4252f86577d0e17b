package postgres_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/catalog/postgres"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
	"github.com/isotap/isotap/workload/random"
)

const (
	// leastExact is how many of a hundred SELECTs are exact at least, mostUnseen how many are not seen at most.
	leastExact = 83
	mostUnseen = 7
)

// A share is how often SELECTs of a form are not exact: of those that may fail, of others with subqueries, and of the
// rest.
type share struct{ unseen, doubtful [3]int }

var (
	mayFail  = regexp.MustCompile(`% 1000|\bABS\(|\bROUND\(|SUBSTRING\(`)
	subquery = regexp.MustCompile(`(\bIN|EXISTS|ALL|ANY|[=<>+,*-]|WHEN|AND|OR|NOT|WHERE|THEN|ELSE|\() *\(SELECT|SELECT \(SELECT`)
)

// formOf is the line of docs/subqueries.md that a SELECT is of.
func formOf(text string) string {
	with, has := strings.HasPrefix(text, "WITH"), func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
	}
	switch {
	case has("LATERAL"):
		return "an aggregate joined by LATERAL"
	case with && has(" OVER ("):
		return "windows in WITH behind a condition"
	case with && has("GROUP BY"):
		return "a query of WITH that groups, behind a condition"
	case has(") AS u"):
		return "a UNION in FROM behind a condition"
	case has(" UNION ", " INTERSECT ", " EXCEPT "):
		return "other set operations"
	case has("GROUP BY"):
		return "GROUP BY and HAVING"
	case has("SELECT DISTINCT", "SELECT MIN(", "SELECT MAX("):
		return "DISTINCT of a value that a condition may fix; MIN and MAX alone"
	}
	return "others"
}

// TestSharesOfRandomReadsAreAsDocumented counts how the SELECTs of random transactions are observed at READ COMMITTED:
// the figures of docs/subqueries.md, "What remains on PostgreSQL".
func TestSharesOfRandomReadsAreAsDocumented(t *testing.T) {
	if testdb.PostgreSQL(t).Major() >= 18 {
		t.Skip("from 18 on INTERSECT and EXCEPT need not read their second part")
	}
	total, count, forms := 0, make(map[history.Observation]int), make(map[string]*share)
	for seed := uint64(1); seed <= 12; seed++ {
		planner, session, g := randomSchema(t, seed)
		for n := range g.Transactions() {
			for _, text := range g.Transaction(n + 1) {
				p := planner.Plan(text, session).Statements[0]
				if p.Kind != history.Select {
					continue
				}
				total++
				count[p.Observation]++
				if p.Observation != history.Exact && p.Observation != history.Nothing {
					add(forms, text, p.Observation)
				}
			}
		}
	}
	t.Logf("of %d SELECTs %d are exact, %d doubtful, %d not seen", total, count[history.Exact]+count[history.Nothing],
		count[history.Inexact], count[history.Opaque])
	for name, s := range forms {
		t.Logf("| %s | %s | %s |", name, spelled(s.unseen), spelled(s.doubtful))
	}
	if count[history.Exact]*100 < total*leastExact || count[history.Opaque]*100 > total*mostUnseen {
		t.Errorf("of %d SELECTs: %v", total, count)
	}
}

func add(forms map[string]*share, text string, o history.Observation) {
	s := forms[formOf(text)]
	if s == nil {
		s = &share{}
		forms[formOf(text)] = s
	}
	kind := 2
	switch {
	case mayFail.MatchString(text):
		kind = 0
	case subquery.MatchString(text):
		kind = 1
	}
	if o == history.Inexact {
		s.doubtful[kind]++
	} else {
		s.unseen[kind]++
	}
}

func spelled(n [3]int) string { return fmt.Sprintf("%d, %d, %d", n[0], n[1], n[2]) }

// randomSchema makes the database of a seed, and reads what its tables look like.
func randomSchema(t *testing.T, seed uint64) (*sqlpostgres.Rewriter, sqlpostgres.Session, *random.Generator) {
	profile, _ := random.Named("deep")
	g := random.New(random.Engine{Name: dbms.PostgreSQL}, profile, seed)
	name := testdb.NewPostgreSQLDatabase(t)
	db := testdb.OpenPostgreSQL(t, name)
	for _, text := range g.Setup() {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	to, err := dsn.Parse(testdb.PostgreSQL(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	c, err := postgres.Load(t.Context(), to, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	session := sqlpostgres.Session{Version: testdb.PostgreSQL(t).Major(), Role: "postgres",
		Path: rewrite.ListOf("pg_catalog", "public")}
	return sqlpostgres.New(c, sqlpostgres.Options{}), session, g
}
