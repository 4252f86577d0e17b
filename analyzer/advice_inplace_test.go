package analyzer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// writeNumbers gives each UPDATE of a script the arguments of a number, another one in each transaction, and a key.
func writeNumbers(txns []*history.Txn) {
	for i, txn := range txns {
		for j := range txn.Stmts {
			if s := &txn.Stmts[j]; s.Kind == history.Update {
				s.Args = []string{fmt.Sprint(10 - i), "'k1'"}
			}
		}
	}
}

// What is written may have been computed from what was read only where that is a number, is read, and is not the same
// each time.
func TestOnlyComputedNumbersAreAdvisedInPlace(t *testing.T) {
	const read, write = "SELECT v FROM t WHERE id = ?", "UPDATE t SET v = ? WHERE id = ?"
	for name, c := range map[string]struct {
		read, write string
		args        [][]string // of each run's UPDATE; the first two lose an update, the others come after
		says        string     // empty: no such advice
	}{
		"another number each time": {read, write, [][]string{{"9", "1"}, {"7", "1"}},
			"`UPDATE t SET v = v + ? WHERE id = ?`"},
		"numbers sent as texts": {read, write, [][]string{{"'9'", "'1'"}, {"'7.5'", "'1'"}}, "v = v + ?"},
		"a star":                {"SELECT * FROM t WHERE id = ?", write, [][]string{{"9", "1"}, {"7", "1"}}, "v = v + ?"},
		"a table's star": {"SELECT `t` . * FROM t WHERE id = ?", write, [][]string{{"9", "1"}, {"7", "1"}},
			"v = v + ?"},
		"the same in both, another later": {read, write, [][]string{{"9", "1"}, {"9", "1"}, {"8", "1"}}, "v = v + ?"},
		"other columns are no numbers": {read, "UPDATE t SET name = ?, v = ?, at = NOW() WHERE id = ?",
			[][]string{{"'ann'", "9", "1"}, {"'bob'", "8", "1"}}, "(SET v = v + ?)"},
		"a count that began at 0": {read, write, [][]string{{"1", "1"}, {"1", "1"}, {"0", "2"}, {"2", "1"}}, "v = v + ?"},

		"not selected":        {"SELECT id FROM t WHERE v = ?", write, [][]string{{"9", "1"}, {"7", "1"}}, ""},
		"counted":             {"SELECT COUNT(*) FROM t WHERE v = ?", write, [][]string{{"9", "1"}, {"7", "1"}}, ""},
		"multiplied":          {"SELECT a * b FROM t WHERE v = ?", write, [][]string{{"9", "1"}, {"7", "1"}}, ""},
		"another table's":     {"SELECT v . id FROM v WHERE id = ?", write, [][]string{{"9", "1"}, {"7", "1"}}, ""},
		"another column's":    {"SELECT id AS v FROM t WHERE id = ?", write, [][]string{{"9", "1"}, {"7", "1"}}, ""},
		"a truth value":       {read, write, [][]string{{"false", "1"}, {"true", "1"}}, ""},
		"MySQL's truth value": {read, write, [][]string{{"0", "1"}, {"1", "1"}}, ""},
		"a text":              {read, write, [][]string{{"'ann'", "1"}, {"'bob'", "1"}}, ""},
		"no number's name":    {read, write, [][]string{{"'nan'", "1"}, {"'inf'", "1"}}, ""},
		"NULL":                {read, write, [][]string{{"NULL", "1"}, {"9", "1"}}, ""},
		"the time":            {read, "UPDATE t SET v = NOW() WHERE id = ?", [][]string{{"1"}, {"1"}}, ""},
		"a constant":          {read, write, [][]string{{"5", "1"}, {"5", "1"}}, ""},
		"a constant for long": {read, write, [][]string{{"5", "1"}, {"5", "1"}, {"5", "2"}, {"5", "3"}}, ""},
		"not recorded":        {read, write, [][]string{nil, nil}, ""},
		"recorded once":       {read, write, [][]string{{"9", "1"}, nil}, ""},
		"which is not known": {"SELECT * FROM t WHERE id = ?", "UPDATE t SET part = ?, v = ? WHERE id = ?",
			[][]string{{"9", "3", "1"}, {"7", "4", "1"}}, ""},
		"of several tables": {read, "UPDATE t JOIN o ON o.id = t.o SET v = ? WHERE t.id = ?",
			[][]string{{"9", "1"}, {"7", "1"}}, ""},
		"arguments that shapes fold": {read, "WITH o AS (SELECT id FROM o WHERE id IN (?)) UPDATE t SET v = ? WHERE id = ?",
			[][]string{{"1", "2", "9", "1"}, {"1", "3", "7", "1"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := "T1 committed RR | r x 0 | u x T2.2\nT2 committed RR | r x 0 | u x 0"
			for i := 2; i < len(c.args); i++ {
				text += fmt.Sprintf("\nT%d committed RR | r x%d 0 | u x%d 0", i+1, i, i)
			}
			h := script(t, text)
			for i, args := range c.args {
				h[i].Stmts[0].Shape, h[i].Stmts[1].Shape, h[i].Stmts[1].Args = c.read, c.write, args
			}
			r := analyze(t, scriptInfo(), h)
			if len(r.Findings) != 1 || r.Findings[0].Anomaly != LostUpdate {
				t.Fatalf("findings %q, want a lost update", names(r))
			}
			advice := strings.Join(r.Findings[0].Advice, "\n")
			if got := strings.Contains(advice, " + ?"); got != (c.says != "") || !strings.Contains(advice, c.says) {
				t.Errorf("want %q in\n%s", c.says, advice)
			}
			if !strings.Contains(advice, "version column") {
				t.Errorf("no version column in\n%s", advice)
			}
		})
	}
}

func TestUpdatesThatComputeAreKnownInEitherQuoting(t *testing.T) {
	for _, c := range []struct {
		family      dbms.Family
		shape, want string
	}{
		{dbms.PostgreSQLFamily, `UPDATE "stock" SET "qty" = ? WHERE "id" = ?`,
			`UPDATE "stock" SET "qty" = "qty" + ? WHERE "id" = ?`},
		{dbms.PostgreSQLFamily, `UPDATE stock SET qty = ? WHERE id = ? RETURNING id`,
			`UPDATE stock SET qty = qty + ? WHERE id = ? RETURNING id`},
		{dbms.PostgreSQLFamily, `UPDATE stock SET qty = ? RETURNING id`,
			`UPDATE stock SET qty = qty + ? RETURNING id`},
		{dbms.MySQLFamily, "UPDATE `stock` SET `qty` = ?", "UPDATE `stock` SET `qty` = `qty` + ?"},
		{dbms.MySQLFamily, "UPDATE stock s SET s.qty = ? LIMIT ?", "UPDATE stock s SET s.qty = s.qty + ? LIMIT ?"},
		{dbms.PostgreSQLFamily, `UPDATE stock SET qty = ?, at = now()`, `UPDATE stock SET qty = qty + ?, at = now()`},
	} {
		sets := assignmentsOf(c.family, c.shape)
		if len(sets) == 0 || !sets[0].literal() || sets[0].inPlace(c.shape) != c.want {
			t.Errorf("%s\ngives %+v\nwant  %s", c.shape, sets, c.want)
		}
	}
	if !computes(dbms.PostgreSQLFamily, `UPDATE stock SET "qty" = "qty" - ?`) ||
		computes(dbms.PostgreSQLFamily, `UPDATE stock SET "qty" = "other" - ?`) ||
		!computes(dbms.PostgreSQLFamily, `UPDATE stock SET qty = greatest(qty - ?, ?) FROM o WHERE o.id = stock.id`) {
		t.Error("what an UPDATE of a quoted column computes from is not known")
	}
}
