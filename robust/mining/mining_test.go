package mining

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/footprint"
)

// spelling writes a program: loops in parentheses, what is optional in brackets.
func spelling(m *miner, nodes []*node) string {
	var b strings.Builder
	for _, n := range nodes {
		switch {
		case n.loop:
			fmt.Fprintf(&b, "(%s)", spelling(m, n.body))
		case n.optional:
			fmt.Fprintf(&b, "[%s]", spelling(m, n.body))
		default:
			b.WriteString(m.shapes[n.shape].shape)
		}
	}
	return b.String()
}

// run makes a transaction of letters, each of which is a statement; capitals write.
func run(letters string) *history.Txn {
	t := &history.Txn{Status: history.Committed, Level: history.ReadCommitted}
	for _, c := range letters {
		s := history.Stmt{Shape: string(c), Kind: history.Select, Rows: 1}
		if c <= 'Z' {
			s.Kind = history.Update
		}
		t.Stmts = append(t.Stmts, s)
	}
	return t
}

func TestRunsOfTheSameCodeAreOneProgram(t *testing.T) {
	for _, c := range []struct {
		name string
		runs string
		want string
	}{
		{"the same statements", "aB aB", "aB"},
		{"three and five items", "acacacD acacacacacD", "(ac)D"},
		{"one item too", "bacacacD bacD", "b(ac)D"},
		{"always two", "aabC aabC", "aabC"},
		{"a loop in a loop", "abbcabbbcabbbbcD", "(a(b)c)D"},
		{"one statement left out", "aBcD acD", "a[B]cD"},
		{"two left out, apart from each other", "ABcDeFG ABDeG ABcDeG", "AB[c]De[F]G"},
		{"two left out together", "abcdeF abeF", "ab[cd]eF"},
		{"iterations that end early", "oDEoDEooDEo oDEoDEoDE oooDEoo", "(o[DE])"},
		{"iterations that end early, after a beginning", "boDEoDEoDEo", "b(o[DE])"},
		{"what reads only may end early", "abc ab", "ab[c]"},
		{"the last write is no option", "abC ab", "abC, ab"},
		{"a small part is another program", "abcD aD", "abcD, aD"},
		{"other statements", "ab cd", "ab, cd"},
		{"another order", "aB Ba", "aB, Ba"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := miner{number: map[statement]int{}}
			for _, letters := range strings.Fields(c.runs) {
				m.add(run(letters))
			}
			var have []string
			for _, cl := range m.clusters() {
				have = append(have, spelling(&m, cl.nodes))
				for _, i := range cl.traces {
					if match(cl.nodes, m.traces[i].calls) == nil {
						t.Errorf("run %d has no way through %s", i, spelling(&m, cl.nodes))
					}
				}
			}
			if got := strings.Join(have, ", "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

const tables = `
CREATE TABLE parent (id INT PRIMARY KEY, v INT);
CREATE TABLE child (id INT PRIMARY KEY, parent INT NOT NULL, v INT, CONSTRAINT f FOREIGN KEY (parent) REFERENCES parent (id));
`

// transaction makes one of statements, each a shape and its arguments.
func transaction(stmts ...[]string) *history.Txn {
	t := &history.Txn{Status: history.Committed}
	for _, s := range stmts {
		kind := map[string]history.Kind{"SELECT": history.Select, "UPDATE": history.Update, "INSERT": history.Insert,
			"MERGE": history.Merge}[strings.Fields(s[0])[0]]
		stmt := history.Stmt{Shape: s[0], Kind: kind, Args: s[1:], Rows: 1}
		if strings.HasSuffix(s[0], "/* none */") {
			stmt.Shape, stmt.Rows = strings.TrimSuffix(s[0], "/* none */"), 0
		} else {
			stmt.Accesses = []history.Access{{Row: history.Row{Table: "public.child@2"}}}
		}
		t.Stmts = append(t.Stmts, stmt)
	}
	return t
}

func TestStatementsAreTakenForWhatTheRecordingShows(t *testing.T) {
	const parent, child = "UPDATE parent SET v = ? WHERE id = ?", "INSERT INTO child VALUES (?, ?, ?)"
	parents := func(id ...string) (all []*history.Txn) {
		for i := 0; i < len(id); i += 2 {
			all = append(all, transaction([]string{parent, "7", id[i]}, []string{child, fmt.Sprint(i), id[i+1], "8"}))
		}
		return all
	}
	for _, c := range []struct {
		name string
		txns []*history.Txn
		want string
	}{
		{"values that are always equal tie rows", parents("1", "1", "2", "2", "3", "'3'"),
			"key upd parent; ins child -f-> 1"},
		{"values that once were not", parents("1", "1", "2", "2", "3", "4"), "key upd parent; ins child"},
		{"arguments that were not recorded", []*history.Txn{transaction([]string{parent}, []string{child})},
			"key upd parent; ins child"},
		{"NULL", parents("NULL", "NULL", "1", "1"), "key upd parent; ins child"},
		{"a row that was not there", []*history.Txn{transaction([]string{"SELECT v FROM parent WHERE id = ?/* none */",
			"1"})}, "pred sel parent"},
		{"what the grammar does not read", []*history.Txn{transaction([]string{"MERGE INTO child SOMEHOW"})},
			"pred upd child; pred del child\n" +
				"pred upd child; pred del child; ins child\npred upd child; pred del child; ins child; ins child"},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema, _, err := footprint.ReadSchema(dbms.PostgreSQLFamily, tables)
			if err != nil {
				t.Fatal(err)
			}
			mined, err := Mine(func(yield func(*history.Txn, error) bool) {
				for _, txn := range c.txns {
					if !yield(txn, nil) {
						return
					}
				}
			}, Options{Schema: schema})
			if err != nil {
				t.Fatal(err)
			}
			var have []string
			for _, l := range robust.Unfold(mined.Workload.Programs...) {
				var way []string
				for _, o := range l.Statements {
					s := o.Type.String() + " " + o.Relation
					for _, p := range o.Parents {
						s += fmt.Sprintf(" -%s-> %d", p.ForeignKey, p.At+1)
					}
					way = append(way, s)
				}
				have = append(have, strings.Join(way, "; "))
			}
			slices.Sort(have)
			if got := strings.Join(have, "\n"); got != c.want {
				t.Errorf("have:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func TestShapesAreSpelledAsTheirGrammarReadsThem(t *testing.T) {
	for _, c := range []struct {
		family      dbms.Family
		shape, want string
		params      int
	}{
		{dbms.PostgreSQLFamily, `UPDATE t SET n=?, "?"=n-? WHERE d ? ?`,
			`UPDATE t SET n=$1, "?"=n-$2 WHERE d ? $3`, 3},
		{dbms.MySQLFamily, "UPDATE t SET n=?--? WHERE `?` = ?", "UPDATE t SET n=?--? WHERE `?` = ?", 3},
	} {
		if got, params := spell(c.family, c.shape); got != c.want || params != c.params {
			t.Errorf("%s: %s with %d parameters, want %s with %d", c.shape, got, params, c.want, c.params)
		}
	}
}

func TestWhatIsNoEvidenceIsCounted(t *testing.T) {
	aborted := run("aB")
	aborted.Status = history.Aborted
	m := miner{number: map[statement]int{}}
	m.add(aborted)
	m.add(&history.Txn{Status: history.Committed})
	if m.mined.Ended != 1 || len(m.traces) != 0 {
		t.Errorf("%d ended otherwise, %d taken", m.mined.Ended, len(m.traces))
	}
}

func TestLocksThatAreNotCountedAreTold(t *testing.T) {
	m := miner{number: map[statement]int{}}
	for range 2 {
		locking := run("aB")
		locking.Stmts = append(locking.Stmts, history.Stmt{Kind: history.Lock, Shape: "LOCK TABLE b"})
		m.add(locking)
	}
	if !slices.Equal(m.mined.Locks, []string{"LOCK TABLE b"}) {
		t.Errorf("%q", m.mined.Locks)
	}
}
