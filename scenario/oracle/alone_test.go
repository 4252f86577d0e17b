package oracle

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/replay"
)

// A pretended server's only table is what it was told to write; each answer hangs on the statement and on that.
type pretended struct {
	engine dbms.Engine
	// wrong changes what a statement of a transaction answers, by its number in the script that is judged; 0: none.
	wrong int
	lie   func(*replay.Result)
	// lostAt is the number of a statement that its transaction forgets.
	lostAt int
	// lateKeys has the second write of a text fail: in autocommit at once, in a transaction at COMMIT.
	lateKeys bool
}

func (p *pretended) play(_ context.Context, s *scenario.Scenario, level history.Level) (replay.Trace, error) {
	t := replay.Trace{Scenario: s.Name, Level: level}
	var kept, mine []string
	open, failed, sent := false, false, 0
	for n, x := range s.Steps {
		r := replay.Result{N: n + 1, SQL: x.SQL, Status: replay.OK, Columns: []replay.Column{{Name: "x"}}}
		state := strings.Join(append(append([]string{}, kept...), mine...), ";")
		word := firstWord(x.SQL)
		twice := strings.Contains(";"+state+";", ";"+x.SQL+";")
		switch {
		case word == "BEGIN":
			open, failed = true, false
		case word == "COMMIT" && p.lateKeys && repeats(append(append([]string{}, kept...), mine...)):
			refuse(&r)
			mine, open = nil, false
		case word == "COMMIT":
			if !failed {
				kept = append(kept, mine...)
			}
			mine, open = nil, false
		case word == "ROLLBACK":
			mine, open = nil, false
		case word == "SHOW": // no warnings
		case failed:
			r.Status, r.State = replay.Failed, "25P02"
		case word == "SELECT":
			r.Rows = [][]replay.Value{{{Text: state}}}
		case word == "FAIL" || p.lateKeys && twice && !open:
			refuse(&r)
			failed = open && p.engine == dbms.PostgreSQL
		default:
			sent++
			r.Affected = uint64(1 + len(state))
			if open && sent == p.lostAt {
				break
			}
			if mine = append(mine, x.SQL); !open {
				kept, mine = append(kept, mine...), nil
			}
		}
		if open && n+1 == p.wrong {
			p.lie(&r)
		}
		t.Results = append(t.Results, r)
	}
	return t, nil
}

func refuse(r *replay.Result) { r.Status, r.Code, r.State = replay.Failed, 1062, "23000" }

func repeats(all []string) bool {
	seen := make(map[string]bool)
	for _, x := range all {
		if seen[x] {
			return true
		}
		seen[x] = true
	}
	return false
}

func scriptOf(statements ...string) Script {
	s := &scenario.Scenario{Name: "test", Sessions: []scenario.Session{{Name: "S1"}}}
	for _, sql := range statements {
		s.Steps = append(s.Steps, scenario.Step{Session: "S1", SQL: sql})
	}
	return Script{Scenario: s, Tables: []string{"t"}}
}

// A tester is a *testing.T, or a *rapid.T.
type tester interface {
	Helper()
	Context() context.Context
	Fatal(args ...any)
}

func judged(t tester, p *pretended, s Script) *Verdict {
	t.Helper()
	v, err := Alone(t.Context(), p.play, history.Server{Engine: p.engine}, s,
		history.RepeatableRead)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTransactionsThatAnswerAlikeAreNotAccused(t *testing.T) {
	for _, c := range []struct {
		name                 string
		engine               dbms.Engine
		statements           []string
		transactions, judged int
	}{
		{"committed", dbms.MariaDB, []string{"BEGIN", "write 1", "SELECT", "COMMIT", "BEGIN", "SELECT", "COMMIT"}, 2, 3},
		{"rolled back", dbms.MariaDB, []string{"BEGIN", "write 1", "SELECT", "ROLLBACK", "BEGIN", "SELECT", "COMMIT"}, 2, 3},
		{"left open", dbms.MariaDB, []string{"BEGIN", "write 1", "SELECT"}, 1, 2},
		{"ended by the next BEGIN", dbms.MariaDB, []string{"BEGIN", "write 1", "BEGIN", "SELECT", "COMMIT"}, 2, 2},
		{"an error within", dbms.MariaDB, []string{"BEGIN", "write 1", "FAIL", "write 2", "COMMIT"}, 1, 3},
		{"an error ends it", dbms.PostgreSQL, []string{"BEGIN", "write 1", "FAIL", "write 2", "COMMIT", "SELECT"}, 1, 2},
		{"beside statements in autocommit", dbms.PostgreSQL, []string{"write 1", "BEGIN", "SELECT", "COMMIT", "write 2"}, 1, 1},
		{"savepoints", dbms.MariaDB, []string{"BEGIN", "SAVEPOINT a", "write 1", "ROLLBACK TO a", "COMMIT"}, 0, 0},
		{"none", dbms.MariaDB, []string{"write 1", "SELECT"}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judged(t, &pretended{engine: c.engine}, scriptOf(c.statements...))
			if v.Wrong() || v.Transactions != c.transactions || v.Statements != c.judged {
				t.Errorf("%d transactions, %d statements, want %d, %d: %s", v.Transactions, v.Statements, c.transactions,
					c.judged, v)
			}
		})
	}
}

// Each answer of a transaction that is wrong is told, and so is a write that is lost.
func TestLiesAreTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		engine := rapid.SampledFrom([]dbms.Engine{dbms.MariaDB, dbms.PostgreSQL}).Draw(t, "engine")
		var statements []string
		var within []int
		for range rapid.IntRange(1, 4).Draw(t, "transactions") {
			statements = append(statements, "BEGIN")
			for range rapid.IntRange(1, 4).Draw(t, "statements") {
				within = append(within, len(statements))
				statements = append(statements, rapid.SampledFrom([]string{"SELECT", "write " + fmt.Sprint(len(statements))}).Draw(t, "sql"))
			}
			statements = append(statements, rapid.SampledFrom([]string{"COMMIT", "ROLLBACK"}).Draw(t, "end"))
		}
		at := rapid.SampledFrom(within).Draw(t, "lie at")
		lie := rapid.SampledFrom([]func(*replay.Result){
			func(r *replay.Result) { r.Affected += 7 }, func(r *replay.Result) { r.InsertID += 7 }, refuse,
			func(r *replay.Result) { r.Rows = append(r.Rows, []replay.Value{{Null: true}}) },
		}).Draw(t, "lie")
		p := &pretended{engine: engine, wrong: at + 1, lie: lie}
		if engine != dbms.PostgreSQL { // a question behind each
			p.wrong = 2*at + 1
		}
		v := judged(t, p, scriptOf(statements...))
		if len(v.Differences) == 0 || v.Differences[0].Step != at+1 {
			t.Errorf("%q: a wrong answer to statement %d: %v", statements, at+1, v)
		}
	})
}

func TestLostWriteIsInTheTableAtTheEnd(t *testing.T) {
	v := judged(t, &pretended{engine: dbms.PostgreSQL, lostAt: 1}, scriptOf("BEGIN", "write 1", "COMMIT"))
	if len(v.Differences) != 1 || v.Differences[0].Aspect != Table || v.Differences[0].Step != 0 {
		t.Errorf("differences %v, want one of a table", v)
	}
	const want = `at the end, table at the end: the server said 1 row: (""); alone, in autocommit, it is 1 row: ("write 1"): SELECT * FROM t`
	if v.String() != want {
		t.Errorf("%s\nwant %s", v, want)
	}
}

// An error at COMMIT is right where the engine checks keys then, and told elsewhere.
func TestKeysThatAreCheckedAtCommitAreByDesign(t *testing.T) {
	for engine, want := range map[dbms.Engine][2]int{dbms.TiDB: {0, 1}, dbms.MariaDB: {2, 0}} {
		v := judged(t, &pretended{engine: engine, lateKeys: true}, scriptOf("write 1", "BEGIN", "write 1", "COMMIT"))
		if got := [2]int{len(v.Differences), len(v.ByDesign)}; got != want {
			t.Errorf("%s: %v differences, by design: %v, want %v", engine, got, v.ByDesign, want)
		}
	}
}

func TestOrderIsComparedByTheColumnsThatSortIt(t *testing.T) {
	columns := []replay.Column{{Name: "a"}, {Name: "b"}}
	rows := func(texts ...string) (all [][]replay.Value) {
		for _, text := range texts {
			all = append(all, []replay.Value{{Text: text[:1]}, {Text: text[1:]}})
		}
		return all
	}
	for _, c := range []struct {
		sql       string
		got, want [][]replay.Value
		differs   bool
	}{
		{"SELECT a, b FROM t", rows("1x", "2y"), rows("2y", "1x"), false},
		{"SELECT a, b FROM t ORDER BY 1", rows("1x", "2y"), rows("2y", "1x"), true},
		{"SELECT a, b FROM t ORDER BY a DESC", rows("1x", "2y"), rows("2y", "1x"), true},
		{"SELECT a, b FROM t ORDER BY a", rows("1x", "1y"), rows("1y", "1x"), false}, // a tie
		{"SELECT a, b FROM t ORDER BY a + b", rows("1x", "2y"), rows("2y", "1x"), false},
		{"SELECT a, b FROM t ORDER BY a LIMIT 1", rows("1x"), rows("1y"), false}, // either will do
		{"SELECT a, b FROM t ORDER BY a LIMIT 1", rows("1x"), rows("2y"), true},
		{"SELECT a, b FROM t LIMIT 2", rows("1x"), rows("1x", "2y"), true},
	} {
		of := func(rows [][]replay.Value) answer {
			return answer{Result: &replay.Result{SQL: c.sql, Status: replay.OK, Columns: columns, Rows: rows}}
		}
		if all := differences(1, of(c.got), of(c.want), false); len(all) > 0 != c.differs {
			t.Errorf("%s: %v and %v: %v", c.sql, c.got, c.want, all)
		}
	}
}
