package e2e

import (
	"database/sql"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/report"
)

// A madeRow is how a transaction makes a row after it looked for it, and what is told of that.
type madeRow struct {
	name, ask, write string
	found            bool // the rows that were not found are known
	unknown          int  // versions that no condition was held against, of two
	untested         int  // conditions that could not be held against all that was written
	file             string
}

// mysqlMadeRows look for rows of the form's own, VALUE.
var mysqlMadeRows = []madeRow{
	{"insert of values", "email = VALUE", "INSERT INTO u (email) VALUES (VALUE)", true, 0, 0, ""},
	{"insert if there is none", "email = VALUE",
		"INSERT INTO u (email, age) SELECT VALUE, 3 WHERE NOT EXISTS (SELECT 1 FROM u x WHERE x.email = VALUE)", true, 0, 0, ""},
	{"from dual", "email = VALUE AND age < 0",
		"INSERT INTO u (email, age) SELECT VALUE AS e, -3 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM u x " +
			"WHERE x.email = VALUE)", true, 0, 0, ""},
	{"by a row of another table", "email = VALUE", "INSERT INTO u (email, age) SELECT VALUE, c.id FROM c " +
		"WHERE c.id = 1", true, 0, 0, ""},
	{"a column of which nothing is known", "email = VALUE AND age = 1",
		"INSERT INTO u (email, age) SELECT VALUE, c.id FROM c WHERE c.id = 1", false, 0, 1, ""},
	{"what another row has", "age = 77 AND email <> VALUE", "INSERT INTO u (email, age) SELECT note, 77 FROM c " +
		"WHERE c.id = 2", false, 0, 1, ""},
	{"nothing that is known", "note = 'y' AND id > 5 AND 'x' <> VALUE",
		"INSERT INTO c (id, note) SELECT id + 10 * CLIENT, note FROM c WHERE c.id = 2 AND note <> VALUE", false, 2, 0, ""},
	{"what its column makes of it", "email = UPPER(VALUE) AND age = 5",
		"INSERT INTO u (age, email) SELECT '4.6', VALUE FROM c WHERE c.id = 1", true, 0, 0, ""},
	{"what the table has without it", "email = VALUE AND age = 7 AND gone IS NULL AND state = 'new'",
		"INSERT INTO u (email) SELECT VALUE FROM c WHERE c.id = 1", true, 0, 0, ""},
	{"what the server numbers", "email = VALUE AND id > 0", "INSERT INTO u (email) SELECT VALUE FROM c " +
		"WHERE c.id = 1", true, 0, 0, ""},
	{"replace", "email = VALUE", "REPLACE INTO u (email) SELECT VALUE FROM c WHERE c.id = 1", true, 0, 0, ""},
	{"a row that does not match", "email = VALUE AND age = 4", "INSERT INTO u (email, age) SELECT VALUE, 3 FROM c " +
		"WHERE c.id = 1", false, 0, 0, ""},
	{"an update of two tables", "email = VALUE", "UPDATE u JOIN c ON c.id = u.id SET u.email = VALUE " +
		"WHERE c.id = CLIENT", true, 0, 0, ""},
	{"what an update leaves as it was", "email = VALUE AND age = 7 AND gone IS NULL AND state = 'new' AND id > 0",
		"UPDATE u, c SET u.email = VALUE WHERE c.id = u.id AND c.id = CLIENT", true, 0, 0, ""},
	{"another value than the update gives", "email = VALUE AND age = 8",
		"UPDATE u JOIN c ON c.id = u.id SET u.email = VALUE, u.age = -5 WHERE c.id = CLIENT", false, 0, 0, ""},
	{"what an update gives", "email = VALUE AND age = -5",
		"UPDATE c JOIN u ON c.id = u.id SET u.email = VALUE, u.age = -5 WHERE c.id = CLIENT", true, 0, 0, ""},
	{"what an update computes", "email = VALUE AND age = 8",
		"UPDATE u JOIN c ON c.id = u.id SET u.email = VALUE, u.age = u.age + 1 WHERE c.id = CLIENT", false, 0, 1, ""},
	{"an update by a subquery", "email = VALUE AND age = 7",
		"UPDATE u SET email = VALUE WHERE id IN (SELECT id FROM c WHERE c.id = CLIENT)", true, 0, 0, ""},
	{"a row that the join finds twice", "email = VALUE AND age = 7",
		"UPDATE u JOIN c ON c.id > 0 SET u.email = VALUE WHERE u.id = CLIENT", true, 0, 0, ""},
	{name: "a file", ask: "email = VALUE AND age = 5 AND gone IS NULL AND state = 'new'", file: "VALUE,4.6\n", found: true,
		write: "LOAD DATA LOCAL INFILE 'Reader::made' INTO TABLE u FIELDS TERMINATED BY ',' (email, age)"},
	{name: "a file that does not match", ask: "email = VALUE AND age = 6", file: "VALUE,5\n",
		write: "LOAD DATA LOCAL INFILE 'Reader::made' INTO TABLE u FIELDS TERMINATED BY ',' (email, age)"},
	{name: "a file with more", ask: "email = VALUE AND age = 12 AND state = 'old'", file: "VALUE,5\nother,1\n", found: true,
		write: "LOAD DATA LOCAL INFILE 'Reader::made' INTO TABLE u FIELDS TERMINATED BY ',' (email, @n) " +
			"SET age = @n + 7, state = 'old'"},
	{name: "a file with a row that is there", ask: "email = VALUE", file: "1,VALUE\n5CLIENT,other\n", unknown: 4, // it may be either
		write: "LOAD DATA LOCAL INFILE 'Reader::made' INTO TABLE u FIELDS TERMINATED BY ',' (id, email)"},
	{"an update of rows of two tables", "email = VALUE",
		"UPDATE u JOIN c ON c.id = u.id SET u.email = VALUE, c.note = 'z' WHERE c.id = CLIENT", false, 4, 0, ""},
}

// TestWhatInsertSelectMakesIsHeldAgainstConditions: two transactions ask whether there is a row, find none, and make
// one each by a query. What the text tells of their values is held against the conditions; of what it does not tell
// coverage says how much that is.
func TestWhatInsertSelectMakesIsHeldAgainstConditions(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	for _, prepared := range []bool{false, true} {
		for n, f := range mysqlMadeRows {
			if prepared && n%2 > 0 {
				continue // each takes a proxy of its own
			}
			t.Run(fmt.Sprintf("%s prepared=%t", f.name, prepared), func(t *testing.T) {
				b := newBench(t, inModePredicates,
					"CREATE TABLE u (id INT AUTO_INCREMENT PRIMARY KEY, email VARCHAR(40), age INT DEFAULT 7, "+
						"gone DATETIME, state VARCHAR(5) NOT NULL DEFAULT 'new')",
					"CREATE TABLE c (id INT PRIMARY KEY, note VARCHAR(40))", "INSERT INTO c VALUES (1, 'x'), (2, 'y')",
					"INSERT INTO u (id, email) VALUES (1, 'one'), (2, 'two')")
				db := b.open(fmt.Sprintf("interpolateParams=%t", !prepared))
				c := []*sql.Conn{b.conn(db), b.conn(db)}
				if f.file != "" && testdb.EngineName() == testdb.MySQL.Name {
					b.setGlobal("local_infile", 1) // it is off there
				}
				run := func(query string) {
					t.Helper()
					for i := range c {
						args := make([]any, strings.Count(query, "VALUE")-strings.Count(query, "VALUES"))
						text := strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(query, "VALUES", "WERTE"),
							"VALUE", "?"), "WERTE", "VALUES")
						text = strings.ReplaceAll(text, "CLIENT", strconv.Itoa(i+1))
						for j := range args {
							args[j] = fmt.Sprintf("it's %d", n)
						}
						if _, err := c[i].ExecContext(t.Context(), text, args...); err != nil {
							t.Fatalf("%s: %v", query, err)
						}
					}
				}
				for i := range c {
					b.exec(c[i], "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
				}
				sent := 0
				mysql.RegisterReaderHandler("made", func() io.Reader {
					sent++
					return strings.NewReader(strings.NewReplacer("VALUE", fmt.Sprintf("it's %d", n), "CLIENT", strconv.Itoa(sent)).Replace(f.file))
				})
				run("BEGIN")
				table := "u"
				if strings.Contains(f.ask, "note") {
					table = "c"
				}
				run("SELECT id FROM " + table + " WHERE " + f.ask)
				run(f.write)
				run("COMMIT")
				r := b.analyze()
				holdMade(t, b, &f, r)
			})
		}
	}
}

func holdMade(t *testing.T, b *bench, f *madeRow, r *analyzer.Result) {
	t.Helper()
	_, txns := resolved(t, b.recording)
	missed := 0
	for _, x := range txns {
		for _, s := range x.Stmts {
			for _, a := range s.Accesses {
				if a.Absent && !a.Wide {
					missed++
				}
			}
		}
	}
	if want := map[bool]int{true: 2}[f.found]; missed != want {
		t.Errorf("%d rows are told not to have been found, want %d", missed, want)
	}
	if r.Coverage.Imageless != f.unknown || r.Coverage.Untested != f.untested {
		t.Errorf("%d versions and %d conditions are said not to be tested, want %d and %d", r.Coverage.Imageless,
			r.Coverage.Untested, f.unknown, f.untested)
	}
	var text strings.Builder
	if err := report.Terminal(&text, r, report.TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "satisfies every level") && f.unknown+f.untested > 0 {
		t.Errorf("it says that every level is satisfied:\n%s", text.String())
	}
}
