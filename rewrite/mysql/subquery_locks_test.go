package mysql

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// TestSubqueriesOfWritesTakeTheSameLocks runs random writes with subqueries as the client wrote them and as they show
// what these read: the transaction holds the same locks after either.
func TestSubqueriesOfWritesTakeTheSameLocks(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	s := newReadServer(t)
	s.lockedTables()
	shown, of := 0, make(map[string]int)
	check := func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			level := rapid.SampledFrom([]string{"REPEATABLE READ", "SERIALIZABLE"}).Draw(rt, "level")
			query := drawWrite(rt)
			s.session.WriteReads = ReadLocked
			p := s.rewriter.Plan(query, s.session)
			if !p.Upstream.Shows {
				return
			}
			shown++
			tag := history.Tag{Txn: history.MakeTxnID(history.MaxRun-1, uint32(shown)), Stmt: 1} // what a statement collects once has its tag
			s.session.WriteReads = NotAgain
			plain := s.rewriter.Plan(query, s.session)
			of[query[:6]]++
			before := literal(plain, Values{Tag: tag})
			if strings.HasPrefix(query, "INSERT INTO r (id, v, w) SELECT") && strings.Contains(query, "ON DUPLICATE") {
				before = query
			}
			want, got := s.steadyLocks(level, before, literal(p, Values{Tag: tag}))
			if !slices.Equal(got, want) {
				rt.Fatalf("%s\n%s\nhas more locks\n%s\nand lacks\n%s\nthe plans are\n%s", query, literal(p, Values{Tag: tag}),
					strings.Join(less(got, want), "\n"), strings.Join(less(want, got), "\n"),
					s.plansOf(before, literal(p, Values{Tag: tag})))
			}
		})
	}
	t.Run("few rows", check)
	for _, table := range []string{"p", "q"} {
		var more strings.Builder
		for i := range 200 {
			y := ""
			if table == "q" {
				y = fmt.Sprintf(", %d", 20+i)
			}
			fmt.Fprintf(&more, ", (%d, %d, %d, '%c', %d%s)", 20+i, i%70, i%9, 'a'+i%5, 20+i%40, y)
		}
		columns := "id, v, w, s, x"
		if table == "q" {
			columns += ", y"
		}
		s.exec("INSERT INTO " + table + " (" + columns + ") VALUES " + more.String()[2:])
		s.exec("ANALYZE TABLE " + table)
	}
	t.Run("many rows", check)
	t.Logf("%d writes showed their subqueries: %v", shown, of)
	s.session.WriteReads = ReadLocked
	if p := s.rewriter.Plan("REPLACE INTO r (id, v) VALUES (1000, 2 IN (SELECT i.w FROM p i WHERE 1 = 1))", s.session); p.Upstream.Shows {
		t.Error("an index of two columns answers it, and its copy locks rows")
	}
}

// lockedTables makes the tables that the writes of drawWrite read and write.
func (s *readServer) lockedTables() {
	for _, q := range []string{"CREATE TABLE o (id INT PRIMARY KEY, v INT, w INT, s VARCHAR(9), KEY (v))",
		"CREATE TABLE r (id INT PRIMARY KEY, v INT, w INT)",
		"CREATE TABLE p (id INT PRIMARY KEY, v INT, w INT, s VARCHAR(9), x INT NOT NULL, KEY (v), KEY (x, w))",
		"CREATE TABLE q (id INT, v INT, w INT, s VARCHAR(9), x INT NOT NULL, y INT, PRIMARY KEY (id, x), UNIQUE (y))"} {
		s.exec(string(New(tables{}, Options{}).Plan(q, s.session).Append(nil, noHoles)))
	}
	s.exec("INSERT INTO o (id, v, w, s) VALUES (1, 1, 1, 'a'), (2, 2, 3, 'b'), (3, NULL, 2, 'c'), (4, 7, NULL, NULL), (5, 5, 5, 'e')")
	s.exec("INSERT INTO p (id, v, w, s, x) VALUES (1, 1, 1, 'a', 1), (2, 2, 2, 'b', 2), (3, 2, 3, 'a', 3), (4, NULL, 4, 'd', 4), (7, 3, NULL, NULL, 9)")
	s.exec("INSERT INTO q (id, v, w, s, x, y) VALUES (1, 1, 1, 'a', 1, 1), (1, 2, 2, 'b', 2, 2), (3, 2, 3, 'a', 3, 5), (4, NULL, 4, 'd', 4, NULL), (7, 3, NULL, NULL, 9, 9)")
	s.exec("INSERT INTO r (id, v, w) VALUES (2, 1, 1), (3, 1, 1)")
	for _, name := range []string{"o", "p", "q", "r"} { // the plan must not change from one run to the next
		s.exec("ALTER TABLE " + name + " STATS_AUTO_RECALC = 0")
		s.exec("ANALYZE TABLE " + name)
	}
	s.exec("SET GLOBAL innodb_status_output_locks = ON")
	schema := tables{}
	for name, columns := range map[string]string{"o": "id int, v int, w int, s varchar", "p": "id int, v int, w int, s varchar, x int",
		"q": "id int, v int, w int, s varchar, x int, y int", "r": "id int, v int, w int"} {
		indexes := map[string][]string{"r": {"primary(id)"}, "o": {"primary(id)", "v(v)"}, "p": {"primary(id)", "v(v)", "x(x,w)"}, "q": {"primary(id,x)", "y(y)"}}
		schema[s.session.Schema+"."+name] = table(name, columns, indexes[name]...)
	}
	s.rewriter = New(schema, Options{})
	s.exec(CaptureInit)
}

// less returns the locks that others lack.
func less(locks, others []string) []string {
	return slices.DeleteFunc(slices.Clone(locks), func(l string) bool { return slices.Contains(others, l) })
}

// steadyLocks returns the locks of the one text and of the other, by the same statistics.
func (s *readServer) steadyLocks(level, plain, shown string) (want, got []string) {
	s.analyze()
	want = s.locksOf(level, plain)
	s.analyze()
	return want, s.locksOf(level, shown)
}

// analyze has MySQL plan by the rows that there are. InnoDB counts them with each insert and deletion, whether or not
// that is rolled back, and with STATS_AUTO_RECALC = 0, too.
func (s *readServer) analyze() {
	if s.session.Dialect == MySQL {
		s.exec("ANALYZE NO_WRITE_TO_BINLOG TABLE o, p, q, r")
	}
}

// plansOf returns the plans of texts, one behind another.
func (s *readServer) plansOf(texts ...string) string {
	var b strings.Builder
	for _, text := range texts {
		r := s.exec("EXPLAIN FORMAT=TRADITIONAL " + text)
		for i := range r.Values {
			for j := range r.Fields {
				v, _ := r.GetString(i, j)
				b.WriteString(v + " ")
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// TestRolledBackDeletionsChangePlans has MySQL plan one text in two ways: deletions that were rolled back are counted.
// With ANALYZE it is planned as before.
func TestRolledBackDeletionsChangePlans(t *testing.T) {
	testdb.Only(t, "MariaDB's tests of locks have no need of it", testdb.MySQL.Name)
	s := newReadServer(t)
	s.lockedTables()
	const text = "UPDATE o SET w = 9 WHERE o.id = 2 OR o.v = (SELECT MAX(i.id) FROM p i WHERE i.s = 'a')"
	s.analyze()
	plan, locks := s.plansOf(text), s.locksOf("REPEATABLE READ", text)
	for range 3 {
		s.exec("BEGIN")
		s.exec("DELETE FROM o")
		s.exec("ROLLBACK")
	}
	if drifted := s.locksOf("REPEATABLE READ", text); slices.Equal(drifted, locks) || s.plansOf(text) == plan {
		t.Errorf("behind deletions that were rolled back the plan is\n%s", s.plansOf(text))
	}
	s.analyze()
	if again := s.locksOf("REPEATABLE READ", text); !slices.Equal(again, locks) || s.plansOf(text) != plan {
		t.Errorf("with ANALYZE the plan is\n%s and was\n%s", s.plansOf(text), plan)
	}
}

// locksOf returns the locks that a transaction holds behind a statement.
func (s *readServer) locksOf(level, query string) (locks []string) {
	s.exec("SET TRANSACTION ISOLATION LEVEL " + level)
	s.exec("BEGIN")
	defer s.exec("ROLLBACK")
	if _, err := s.conn.Execute(query); err != nil {
		locks = append(locks, err.Error())
	}
	if s.session.Dialect == MySQL {
		r := s.exec("SELECT CONCAT_WS(' ', object_name, index_name, lock_type, lock_mode, lock_data) FROM performance_schema.data_locks " +
			"WHERE thread_id = PS_CURRENT_THREAD_ID()")
		for _, row := range r.Values {
			locks = append(locks, string(row[0].AsString()))
		}
		slices.Sort(locks)
		return locks
	}
	r := s.exec("SHOW ENGINE INNODB STATUS")
	text := string(r.Values[0][2].AsString())
	own := fmt.Sprintf("MariaDB thread id %d,", s.conn.GetConnectionID())
	for _, of := range strings.Split(text, "---TRANSACTION")[1:] {
		if !strings.Contains(of, own) {
			continue
		}
		kind := ""
		for line := range strings.Lines(of) {
			if m := recordLocks.FindStringSubmatch(line); m != nil {
				kind = m[1] + " " + m[2] + " " + m[3]
			} else if m := heapNumber.FindString(line); m != "" {
				if strings.Contains(kind, "`o`") || strings.Contains(kind, "`r`") {
					m = "row" // written, it may have moved
				}
				locks = append(locks, kind+" "+m)
			}
		}
	}
	slices.Sort(locks)
	return locks
}

var (
	recordLocks = regexp.MustCompile(`index (\S+) of table (\S+) trx id \d+ (.*)`)
	heapNumber  = regexp.MustCompile(`heap no \d+`)
)

// drawWrite draws an INSERT, UPDATE or DELETE with subqueries.
func drawWrite(t *rapid.T) string {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "part") }
	test := func() string {
		return one("i.s = 'a'", "i.s <> 'a'", "i.v > 1", "i.w < 3", "i.id = o.v", "i.w = o.w", "i.s = o.s", "i.id > 1", "i.v = o.id", "i.id = 2",
			"i.x = 3", "i.x = o.id", "i.v = i.v", "i.id = i.id", "1 = 1", "1 > 2", "i.s IS NULL", "i.id IN (1, 3)", "o.s = 'a'")
	}
	from := func(list string) string {
		where := one(test(), test()+" AND "+test(), test()+" AND "+test(), "("+test()+" OR "+test()+") AND "+test())
		return "(SELECT " + list + " FROM " + one("p", "q") + " i WHERE " + where + ")"
	}
	scalar := func() string {
		return from(one("MAX(i.w)", "MIN(i.v)", "COUNT(*)", "COUNT(i.s)", "SUM(i.w)", "i.w", "MAX(i.id)", "MIN(i.x)"))
	}
	condition := func() string {
		return one("o.id < 4", "o.v > 1", "o.id "+one("=", "<", ">")+" "+scalar(), "EXISTS "+from("1"), "NOT EXISTS "+from("*"),
			"o."+one("id", "v", "w")+" IN "+from(one("i.id", "i.v", "i.w")))
	}
	where := " WHERE " + one(condition(), condition()+" AND "+condition(), condition()+" OR "+condition(),
		"("+condition()+" OR "+condition()+") AND ("+condition()+" OR "+condition()+")")
	kind := rapid.IntRange(0, 7).Draw(t, "kind")
	switch kind {
	case 7: // rows that are met, and others
		if rapid.Bool().Draw(t, "no FROM") {
			return strings.ReplaceAll("INSERT INTO r (id, v, w) SELECT "+one("2", "1000")+", "+one("7", scalar(), from("COUNT(*)"), "EXISTS "+from("1"))+
				", 5"+one("", " WHERE NOT EXISTS "+from("*"), " WHERE 3 < "+scalar())+" ON DUPLICATE KEY UPDATE w = "+one("VALUES(w)", "9", scalar(),
				from("COUNT(*)"), "EXISTS "+from("1")), "o.", "i.")
		}
		return "INSERT INTO r (id, v, w) SELECT o.id, " + one("o.v", "7", scalar(), from("COUNT(*)")) + ", o.w FROM o" + one("", where) + " ON DUPLICATE KEY UPDATE w = " +
			one("VALUES(w)", "9", strings.ReplaceAll(from("COUNT(*)"), "o.", "i."), strings.ReplaceAll(scalar(), "o.", "i."))
	case 6: // a scalar subquery that need not run for each row
		return one("UPDATE o SET w = 9", "UPDATE o SET w = NULL", "DELETE FROM o") + " WHERE " + one("o.v > 1", "o.id = 2", "o.s = 'a'", "o.id > 0") + " OR o." +
			one("id", "v") + one(" = ", " < ", " > ") + "(SELECT " + one("MAX(i.id)", "COUNT(*)", "SUM(i.v)", "MIN(i.v)") + " FROM " + one("p", "q") +
			" i WHERE " + one("i.id = o.v AND ", "i.x = o.id AND ", "i.v = o.id AND ", "i.s = o.s AND ", "", "i.x = 3 AND ", "i.v > 1 AND ") + one("i.s = 'a'", "i.s <> 'a'", "i.s IS NULL") + ")"
	case 5:
		value := func() string {
			return one("9", scalar(), from("COUNT(*)"), "ABS("+scalar()+")", "EXISTS "+from("1"), "NOT EXISTS "+from("*"),
				"COALESCE("+scalar()+", 1)", scalar()+" + 1", "7 - "+scalar(), "2 "+one("IN ", "NOT IN ")+from(one("i.w", "i.v", "i.id")),
				"'a' "+one("IN ", "NOT IN ")+from("i.s"))
		}
		if rapid.IntRange(0, 2).Draw(t, "met") == 0 {
			row := one("(1, 5, 5)", "(1000, 5, 5)", "(2, 5, 5), (1000, 6, 6), (3, 7, 7)", "(1, "+value()+", 5)")
			return strings.ReplaceAll("INSERT INTO o (id, v, w) VALUES "+row+" ON DUPLICATE KEY UPDATE w = "+one(value(), value(), "VALUES(w)")+
				one("", ", v = "+value()), "o.", "i.")
		}
		row := one("(id, v, w) VALUES (1000, %s, %s)", "VALUE (1, %s, %s)", "SET id = 1000, v = %s, w = %s",
			"VALUES (1, 2, 3), (1000, %s, 5), (1001, 7, %s)", "VALUES (1000, %s, %s), (1001, 5, 5)")
		return strings.ReplaceAll(one("INSERT", "REPLACE")+" INTO r "+fmt.Sprintf(row, value(), value()), "o.", "i.")
	case 0:
		return "INSERT INTO r (id, v, w) SELECT o.id + 100, " + one("o.v", scalar(), "EXISTS "+from("1")) + ", o.w FROM o" + where
	case 1:
		return strings.ReplaceAll("INSERT INTO "+one("r (id, v) SELECT 1000, ", "p (id, x, v) SELECT 1000, 50, ")+one("7", scalar())+
			" WHERE "+one("EXISTS "+from("1"), "NOT EXISTS "+from("*"), "3 < "+scalar())+one("", " LIMIT 1"), "o.", "i.")
	}
	if kind == 2 {
		return "DELETE FROM o" + where
	}
	value := func() string {
		return one("9", scalar(), from("COUNT(*)"), "ABS("+scalar()+")", "EXISTS "+from("1"), "COALESCE("+scalar()+", 1)", scalar()+" + o.id", "o.w + "+scalar(), "7 - ("+scalar()+" * o.v)")
	}
	return "UPDATE o SET " + one("w", "v") + " = " + value() + one("", ", s = 'far too long for it'", ", s = "+value()) +
		one("", ", w = "+value()) +
		one(where, " WHERE o.id = 2 AND "+condition(), " WHERE o.id = 4") + one("", " LIMIT 9", " ORDER BY o.id")
}
