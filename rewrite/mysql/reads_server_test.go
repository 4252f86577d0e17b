package mysql

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"
	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
)

// readTables are the tables of the tests of reads, with the identities that isotap would have given them:
// d1 to d3 and e1 to e5.
var readTables = []string{
	"CREATE TABLE d (id INT PRIMARY KEY, name VARCHAR(20), boss INT, isotap_rowid VARBINARY(64) INVISIBLE, " +
		"isotap_wlist VARBINARY(255) INVISIBLE, KEY (name)) CHARSET utf8mb4",
	"INSERT INTO d (id, name, boss) VALUES (1, 'dev', 2), (2, 'ops', 4), (3, 'none', NULL)",
	"UPDATE d SET isotap_rowid = CONCAT(_binary'd', id), isotap_wlist = '0'",
	"CREATE TABLE e (id INT PRIMARY KEY, dep INT, pay DECIMAL(8,2), note TEXT, isotap_rowid VARBINARY(64) " +
		"INVISIBLE, isotap_wlist VARBINARY(255) INVISIBLE, KEY (dep)) CHARSET utf8mb4",
	"INSERT INTO e (id, dep, pay, note) VALUES (1, 1, 10.5, 'a'), (2, 1, 20, 'ü'), (3, 2, 30, NULL), " +
		"(4, 2, 30, 'd'), (5, NULL, NULL, 'e')",
	"UPDATE e SET isotap_rowid = CONCAT(_binary'e', id), isotap_wlist = IF(id = 2, '0,000001a.1,000001b.1', '0')",
}

// A readServer is a server on which originals and rewritten statements run side by side.
type readServer struct {
	t    *testing.T
	conn *client.Conn
	// plain is where originals run: where isotap's columns are seen, in a database without them, which is made anew
	// when the other one has changed. Otherwise it is conn.
	plain    *client.Conn
	stale    bool
	session  Session
	rewriter *Rewriter
	arrays   []CaptureEntry // what subqueries read, of the last statement that collected
}

func newReadServer(t *testing.T) *readServer {
	t.Helper()
	c, err := client.Connect(testdb.Current(t).Addr(), "root", "", "")
	if err != nil {
		t.Fatal(err)
	}
	s := &readServer{t: t, conn: c, plain: c}
	t.Cleanup(func() { c.Close() })
	const database = "isotap_reads"
	s.session = Session{Schema: database, Charset: "utf8mb4", MaxPacket: 16 << 20, Strict: true}
	s.session.Dialect, s.session.Version = ParseVersion(c.GetServerVersion())
	for _, q := range append([]string{"DROP DATABASE IF EXISTS " + database, "CREATE DATABASE " + database, "USE " +
		database}, readTables...) {
		if s.session.Dialect == TiDB {
			q = strings.ReplaceAll(q, " INVISIBLE", "")
		}
		s.exec(q)
	}
	s.knows(tables{
		database + ".d": table("d", "id int, name varchar, boss int", "primary(id)", "name(name)"),
		database + ".e": table("e", "id int, dep int, pay decimal, note text", "primary(id)", "dep(dep)"),
	})
	return s
}

// knows lets the planner know of tables.
func (s *readServer) knows(ts tables) {
	for name, of := range ts {
		ts[name] = with(of, func(t *Table) { t.Exposed = s.session.Dialect == TiDB && t.Instrumented && !t.View })
	}
	s.rewriter = New(ts, Options{})
}

// makeView makes a view of these columns, and lets the planner know of it.
func (s *readServer) makeView(name, query, columns string) {
	s.t.Helper()
	s.exec("CREATE VIEW " + name + " AS " + query)
	r := s.exec("SELECT VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '" + name + "'")
	view := table(name, columns)
	view.View, view.Instrumented = true, false
	view.Query, _ = r.GetString(0, 0)
	s.rewriter.schema.(tables)[s.session.Schema+"."+name] = view
}

func (s *readServer) exec(query string) *gomysql.Result {
	s.t.Helper()
	s.stale = true
	r, err := s.conn.Execute(query)
	if err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return r
}

// A sight is what a client sees of a read: columns, rows and warnings as text.
type sight struct {
	columns, rows []string
	warnings      string
	hidden        [][]string // the values of the last columns, by row
}

// Flags of a column that depend on whether the server went through a temporary table: MULTIPLE_KEY,
// PART_KEY, GROUP, and BINARY of numbers; when it groups also PRI_KEY, BLOB and NO_DEFAULT_VALUE. Then
// the length and decimals of MIN and MAX of texts do, too (docs/adr/0010).
const (
	planFlags  = 0x8 | 0x80 | 0x4000 | 0x8000
	groupFlags = planFlags | 0x2 | 0x10 | 0x1000
)

// see runs a query, as text or prepared, and takes the last columns for hidden. What stars carry is
// left out.
func (s *readServer) see(query string, hidden int, prepared bool) sight {
	s.t.Helper()
	return s.seeOn(s.conn, query, hidden, prepared)
}

// original runs a query as the client wrote it.
func (s *readServer) original(query string, prepared bool) sight {
	s.t.Helper()
	if s.session.Dialect == TiDB && s.stale {
		s.copyPlain()
	}
	return s.seeOn(s.plain, query, 0, prepared)
}

// copyPlain makes the tables anew in which originals run on a server that shows isotap's columns.
func (s *readServer) copyPlain() {
	s.t.Helper()
	if s.plain == s.conn {
		c, err := client.Connect(testdb.Current(s.t).Addr(), "root", "", "")
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { c.Close() })
		s.plain = c
	}
	const database = "isotap_plain"
	run := func(query string) {
		if _, err := s.plain.Execute(query); err != nil {
			s.t.Fatalf("%s: %v", query, err)
		}
	}
	for _, q := range []string{"DROP DATABASE IF EXISTS " + database, "CREATE DATABASE " + database, "USE " + database} {
		run(q)
	}
	for name, t := range s.rewriter.schema.(tables) {
		name = strings.TrimPrefix(name, s.session.Schema+".")
		var columns []string
		for _, c := range t.Columns {
			columns = append(columns, c.Name)
		}
		list := strings.Join(columns, ", ")
		run("CREATE TABLE " + name + " LIKE " + s.session.Schema + "." + name)
		run("ALTER TABLE " + name + " DROP COLUMN isotap_rowid, DROP COLUMN isotap_wlist")
		run("INSERT INTO " + name + " (" + list + ") SELECT " + list + " FROM " + s.session.Schema + "." + name)
	}
	s.stale = false
}

// set changes a setting wherever queries run. It reports whether the server has it.
func (s *readServer) set(setting string) bool {
	_, err := s.conn.Execute(setting)
	if s.plain != s.conn && err == nil {
		_, err = s.plain.Execute(setting)
	}
	return err == nil
}

// seeOn is see on one of the server's connections.
func (s *readServer) seeOn(conn *client.Conn, query string, hidden int, prepared bool) sight {
	s.t.Helper()
	var result sight
	var r *gomysql.Result
	var err error
	if prepared {
		var st *client.Stmt
		if st, err = conn.Prepare(query); err == nil {
			defer st.Close()
			r, err = st.Execute()
		}
	} else {
		r, err = conn.Execute(query)
	}
	if err != nil {
		result.warnings = err.Error()
		return result
	}
	result.warnings = fmt.Sprintf("%d warnings", r.Warnings)
	carried := make([]bool, len(r.Fields))
	for i, f := range r.Fields[:len(r.Fields)-hidden] {
		if carried[i] = strings.HasPrefix(string(f.Name), rewrite.CarriedPrefix); carried[i] {
			continue
		}
		definition := fmt.Sprintf("%s|%s|%s type %d charset %d", f.Table, f.OrgTable, f.Name, f.Type, f.Charset)
		if strings.Contains(query, "GROUP BY") {
			definition += fmt.Sprintf(" flags %x", f.Flag&^groupFlags)
		} else {
			definition += fmt.Sprintf(" flags %x length %d decimals %d", f.Flag&^planFlags, f.ColumnLength, f.Decimal)
		}
		result.columns = append(result.columns, definition)
	}
	for _, row := range r.Values {
		var cells, last []string
		for i, v := range row {
			cell := "NULL"
			if v.Value() != nil {
				cell = string(v.AsString())
				if v.Type != gomysql.FieldValueTypeString {
					cell = fmt.Sprint(v.Value())
				}
			}
			switch {
			case carried[i]:
			case i < len(row)-hidden:
				cells = append(cells, cell)
			default:
				last = append(last, cell)
			}
		}
		result.rows = append(result.rows, strings.Join(cells, "|"))
		result.hidden = append(result.hidden, last)
	}
	return result
}

// seen returns the identities in the hidden values, each once, in order.
func (p sight) seen(t *testing.T, sources []Source) string {
	t.Helper()
	var ids []string
	for _, row := range p.hidden {
		for _, s := range sources {
			switch {
			case row[0] == "NULL":
			case !s.Array:
				ids = append(ids, row[0]+"="+row[1])
			default:
				var texts []*string
				if err := json.Unmarshal([]byte(row[0]), &texts); err != nil {
					t.Errorf("array %s: %v", row[0], err)
				}
				for _, text := range texts {
					if text != nil && s.Grouped {
						EachOfGroup([]byte(*text), func(id []byte) { ids = append(ids, string(id)) })
					} else if text != nil {
						ids = append(ids, *text)
					}
				}
			}
			row = row[s.Columns():]
		}
	}
	slices.Sort(ids)
	return strings.ReplaceAll(strings.Join(slices.Compact(ids), " "), "=0 ", " ")
}

// compare runs a query as it is and rewritten and demands that a client could not tell, and that the
// identities are those given, "=0" left out. TiDB does not tell all that others do: there it need not be exact.
func (s *readServer) compare(query, want string) {
	s.t.Helper()
	exact := s.session.Dialect != TiDB || s.rewriter.Plan(query, s.session).Observation == history.Exact
	for _, got := range s.same(query) {
		if got != want && exact {
			s.t.Errorf("%s: saw %s, want %s", query, got, want)
		}
	}
}

// same runs a query as it is and rewritten, as text and prepared, and demands that a client could not
// tell. It gives the identities that each showed.
func (s *readServer) same(query string) (seen []string) {
	s.t.Helper()
	p := s.rewriter.Plan(query, s.session)
	rewritten := literal(p, Values{})
	if p.Upstream.Pieces == nil {
		if rewritten = p.Upstream.Plain; rewritten == "" {
			rewritten = query
		}
		if s.session.Dialect != TiDB {
			s.t.Errorf("%s is %v: %s", query, p.Observation, p.Reason)
			return nil
		}
	}
	for _, prepared := range []bool{false, true} {
		original, proxied := s.original(query, prepared), s.see(rewritten, p.HiddenColumns(), prepared)
		if !slices.Equal(original.columns, proxied.columns) {
			s.t.Errorf("%s: columns\n%s\nwant\n%s", rewritten, strings.Join(proxied.columns, "\n"),
				strings.Join(original.columns, "\n"))
		}
		if !strings.Contains(query, "ORDER BY") || s.session.Dialect == TiDB && strings.LastIndex(query, "ORDER BY") < strings.LastIndex(query, ")") {
			slices.Sort(original.rows)
			slices.Sort(proxied.rows)
		}
		if !slices.Equal(original.rows, proxied.rows) || original.warnings != proxied.warnings {
			s.t.Errorf("%s (prepared %t): %s\n%s\nwant %s\n%s", rewritten, prepared, proxied.warnings,
				strings.Join(proxied.rows, "\n"),
				original.warnings, strings.Join(original.rows, "\n"))
			continue
		}
		if p.Upstream.Pieces != nil && original.columns != nil {
			seen = append(seen, strings.TrimSuffix(proxied.seen(s.t, p.Result.Sources), "=0"))
		}
	}
	return seen
}

// TestQueriesInFromPassIdentitiesOutwards reads through derived tables and common table expressions.
func TestQueriesInFromPassIdentitiesOutwards(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	s := newReadServer(t)
	joined := "d1 d2 "
	if s.session.Dialect == MariaDB {
		joined = "" // it leaves a join out of which nothing is asked
	}
	for query, want := range map[string]string{
		"SELECT * FROM (SELECT * FROM e) x":                                                                                   everyE,
		"SELECT note, x.*, 1 FROM (SELECT id, note FROM e WHERE id < 3) x ORDER BY note DESC":                                 dep1,
		"SELECT x.id + 1 FROM (SELECT id FROM e ORDER BY pay DESC, id LIMIT 2) AS x":                                          "e3 e4",
		"SELECT * FROM (SELECT y.* FROM (SELECT id, note AS n FROM e WHERE dep = 2) y) x":                                     "e3 e4",
		"SELECT * FROM (SELECT id, name FROM d) a NATURAL JOIN (SELECT id, note FROM e) b":                                    s.natural(),
		"SELECT *, b.* FROM (SELECT id, name FROM d) a JOIN (SELECT id, note FROM e) b USING (id)":                            s.natural(),
		"SELECT a.*, b.name FROM d b LEFT JOIN (SELECT * FROM e WHERE id > 100) a ON a.dep = b.id":                            everyD,
		"SELECT * FROM d RIGHT JOIN (SELECT dep, note FROM e) x ON x.dep = d.id":                                              "d1 d2 " + everyE,
		"SELECT * FROM (SELECT COUNT(*) AS n, MAX(note) FROM e) x":                                                            everyE,
		"SELECT * FROM (SELECT dep, SUM(pay) s FROM e GROUP BY dep) x ORDER BY s":                                             everyE,
		"SELECT s FROM (SELECT dep, SUM(pay) s FROM e GROUP BY dep) x WHERE dep = 1":                                          dep1,
		"SELECT COUNT(*), MAX(n) FROM (SELECT id, note AS n FROM e WHERE dep = 1) x":                                          dep1,
		"SELECT dep, COUNT(*) FROM (SELECT e.dep FROM e LEFT JOIN d ON d.id = e.dep) x GROUP BY dep":                          joined + everyE,
		"SELECT * FROM d JOIN (SELECT dep, COUNT(*) n FROM e GROUP BY dep) x ON x.dep = d.id":                                 "d1 d2",
		"SELECT * FROM d JOIN (SELECT DISTINCT dep FROM e) x ON x.dep = d.id":                                                 "d1 d2",
		"SELECT * FROM (SELECT 7 AS k) x JOIN d ORDER BY id":                                                                  everyD,
		"WITH c AS (SELECT * FROM e) SELECT * FROM c":                                                                         everyE,
		"WITH c AS (SELECT id, dep FROM e), k AS (SELECT id FROM c WHERE dep = 2) SELECT k.*, c.dep FROM k JOIN c USING (id)": "e3 e4",
		"WITH c (x, y) AS (SELECT id, note FROM e) SELECT * FROM c WHERE x < 3 ORDER BY x":                                    dep1,
		"WITH c AS (SELECT id, dep FROM e) SELECT x.id, y.id FROM c x JOIN c y ON x.dep = y.dep + 1":                          dep1 + " e3 e4",
		"WITH c AS (SELECT dep, COUNT(*) AS n FROM e GROUP BY dep), u AS (SELECT * FROM d) SELECT * FROM c":                   everyE,
		"WITH c AS (SELECT id FROM e) SELECT * FROM c WHERE id > (SELECT AVG(id) FROM c)":                                     "e4 e5",
		"WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 2) SELECT * FROM n JOIN d ON d.id = n.i":  "d1 d2",
		"SELECT * FROM (WITH c AS (SELECT id FROM e WHERE dep = 1) SELECT * FROM c) x":                                        dep1,
		"SELECT x.n FROM (SELECT name AS n FROM d) AS `x` WHERE n LIKE 'd%'":                                                  "d1",
		"SELECT name, (SELECT SUM(pay) FROM e WHERE dep = d.id) AS s FROM d ORDER BY id":                                      everyD,
		"SELECT (SELECT MAX(d.id) FROM d) AS m, x.* FROM (SELECT id FROM e WHERE id = 1) x":                                   "e1",
	} {
		s.compare(query, want)
	}
}

func TestWindowFunctionsTellTheirRows(t *testing.T) {
	s := newReadServer(t)
	for query, want := range map[string]string{
		"SELECT id, ROW_NUMBER() OVER (ORDER BY id) AS rn, SUM(pay) OVER (PARTITION BY dep) FROM e ORDER BY id": everyE,
		"SELECT *, RANK() OVER w, LAG(id, 1) OVER w FROM e WHERE dep = 1 WINDOW w AS (ORDER BY id)":             dep1,
		"SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY dep ORDER BY id) AS n FROM e) x WHERE n = 1":  "e1 e3 e5",
		"WITH c AS (SELECT id, COUNT(*) OVER () AS n FROM d) SELECT * FROM c LIMIT 5":                           everyD,
		"SELECT d.name, COUNT(*) OVER (PARTITION BY dep) FROM d JOIN e ON e.dep = d.id":                         "d1 d2 " + dep1 + " e3 e4",
	} {
		s.compare(query, want)
	}
}

// TestWindowsOverGroupsAreLeftAlone has MariaDB's own fault in it: beside JSON_ARRAYAGG it forgets ORDER BY.
func TestWindowsOverGroupsAreLeftAlone(t *testing.T) {
	s := newReadServer(t)
	const query = "SELECT dep, SUM(COUNT(*)) OVER () FROM e GROUP BY dep ORDER BY dep"
	if p := s.rewriter.Plan(query, s.session); s.session.Dialect == MariaDB {
		if p.Upstream.Pieces != nil || p.Reason != history.ReasonWindowFunction {
			t.Errorf("%s is %v: %s", query, p.Observation, p.Reason)
		}
		return
	}
	s.compare(query, everyE)
}

// TestRandomReadsAreTheSame compares reads put together at random, on larger tables with duplicates and
// NULLs. All have a total order.
func TestRandomReadsAreTheSame(t *testing.T) {
	s := newReadServer(t)
	s.exec("INSERT INTO e (id, dep, pay, note) SELECT 10 * x.id + y.id + 5, NULLIF(x.id, 3), y.pay * x.id, y.note FROM e x JOIN e y")
	s.exec("UPDATE e SET isotap_rowid = CONCAT(_binary'e', id), isotap_wlist = '0'")
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(texts ...string) string { return texts[rng.IntN(len(texts))] }
	aggregates := []string{"COUNT(*)", "COUNT(dep)", "SUM(pay)", "MIN(note)", "MAX(e.id)", "AVG(pay)",
		"COUNT(DISTINCT note)",
		"GROUP_CONCAT(e.id ORDER BY e.id)", "BIT_XOR(e.id)", "MAX(note) + 1", "COALESCE(SUM(dep), 0)"}
	for range 200 {
		from := pick("e", "e", "e FORCE INDEX (dep)", "(SELECT * FROM e) e",
			"(SELECT id, dep, pay, note FROM e WHERE id > 2) e",
			"e LEFT JOIN d ON d.id = e.dep", "d JOIN e ON d.id = e.dep", "d LEFT JOIN e ON d.id = e.dep AND e.pay > 10",
			"e STRAIGHT_JOIN d USING (id)")
		where := pick("", "", " WHERE pay > 20", " WHERE dep IN (1, 2)", " WHERE note IS NOT NULL",
			" WHERE e.id BETWEEN 3 AND 40")
		group := pick("dep", "dep", "note", "pay", "dep, note", "e.id", "dep % 2", "e.id, dep")
		query := "SELECT " + pick(aggregates...) + ", " + pick(aggregates...) + " FROM " + from + where
		switch rng.IntN(4) {
		case 0:
			query += pick("", " LIMIT 1", " ORDER BY 1")
		case 1:
			query = "SELECT " + group + ", " + pick(aggregates...) + " AS a FROM " + from + where + " GROUP BY " +
				group +
				pick("", " HAVING a > 1", "") + " ORDER BY " + group
		case 2:
			query = "SELECT " + group + ", " + pick(aggregates...) + " AS a FROM " + from + where + " GROUP BY " +
				group + " ORDER BY " +
				pick("a, ", "a DESC, ", "COUNT(*) DESC, ") + group + pick("", " LIMIT 3", " LIMIT 2, 4")
		case 3:
			if s.session.Dialect == MySQL {
				continue
			}
			query = "SELECT " + group + ", " + pick(aggregates...) + " AS a FROM " + from + where +
				" GROUP BY " + group + " WITH ROLLUP"
		}
		types := []string{"MIN(note)", "MAX(note)"} // of which MariaDB gives the types by its plan
		if s.session.Dialect == MySQL {
			types = []string{"MIN(", "MAX(", "SELECT dep % 2,"}
		}
		if strings.Contains(query, "GROUP BY") &&
			slices.ContainsFunc(types, func(t string) bool { return strings.Contains(query, t) }) {
			continue
		}
		s.same(query)
	}
}

// TestRollupIsNotObservedOnMySQL since a group's column can get another type in another plan of MySQL's.
func TestRollupIsNotObservedOnMySQL(t *testing.T) {
	s := newReadServer(t)
	const query = "SELECT dep, SUM(pay) FROM e GROUP BY dep WITH ROLLUP"
	if s.session.Dialect != MySQL {
		s.compare(query, everyE)
	} else if p := s.rewriter.Plan(query, s.session); p.Upstream.Pieces != nil || p.Reason != history.ReasonAggregate {
		t.Errorf("%s is %v: %s", query, p.Observation, p.Reason)
	}
}

// TestMariaDBsOwnClausesAreKept reads with clauses that the parser does not know.
func TestMariaDBsOwnClausesAreKept(t *testing.T) {
	testdb.Only(t, "the syntax is MariaDB's", "mariadb", testdb.MariaDB118.Name)
	s := newReadServer(t)
	for query, want := range map[string]string{
		"SELECT * FROM e WHERE id = 1 LOCK IN SHARE MODE NOWAIT":                          "e1",
		"SELECT id, note FROM e WHERE dep = 1 LOCK IN SHARE MODE WAIT 3":                  dep1,
		"SELECT id, note FROM e WHERE id > 3 ORDER BY id LOCK IN SHARE MODE SKIP LOCKED;": "e4 e5",
		"SELECT id FROM e ORDER BY id OFFSET 2 ROWS FETCH NEXT 2 ROWS ONLY":               "e3 e4",
		"SELECT id FROM e ORDER BY id FETCH FIRST ROW ONLY":                               "e1",
		"SELECT id, pay FROM e ORDER BY pay DESC FETCH FIRST 1 ROW WITH TIES":             "e3 e4",
		"SELECT id FROM e ORDER BY id OFFSET 4 ROWS":                                      "e5",
		"SELECT id FROM e WHERE id = 1 FOR UPDATE SKIP LOCKED":                            "e1",
		"SELECT id FROM e WHERE id = 1 FOR UPDATE NOWAIT":                                 "e1",
	} {
		s.compare(query, want)
	}
}

const (
	everyD = "d1 d2 d3"
	everyE = "e1 e2=0,000001a.1,000001b.1 e3 e4 e5"
	dep1   = "e1 e2=0,000001a.1,000001b.1"
)

func TestAggregatesTellTheRowsOfTheirGroups(t *testing.T) {
	s := newReadServer(t)
	for query, want := range map[string]string{
		"SELECT COUNT(*) FROM e": everyE,
		"SELECT COUNT(*), MAX(note), MIN(pay), AVG(pay) AS `a v g`, SUM(id) FROM e e2": everyE,
		"SELECT COUNT(*) FROM e WHERE id > 100":                                        "",
		"SELECT MAX(id) FROM e WHERE dep = 1":                                          dep1,
		"SELECT dep, COUNT(*) FROM e GROUP BY dep ORDER BY dep":                        everyE,
		"SELECT dep FROM e WHERE dep = 1 GROUP BY 1":                                   dep1,
		"SELECT dep, GROUP_CONCAT(note ORDER BY id) FROM e GROUP BY dep":               everyE,
		"SELECT dep, GROUP_CONCAT(DISTINCT pay) FROM e GROUP BY dep":                   everyE,
		"SELECT dep, COUNT(*) n FROM e GROUP BY dep HAVING n > 1": dep1 +
			" e3 e4",
		"SELECT dep, COUNT(*) FROM e GROUP BY dep ORDER BY dep LIMIT 2": dep1 +
			" e5",
		"SELECT COUNT(*) FROM e LIMIT 1": everyE,
		"SELECT d.name, COUNT(e.id) FROM d LEFT JOIN e ON e.dep = d.id GROUP BY d.id, d.name ORDER BY 1": everyD +
			" " + dep1 + " e3 e4",
		"SELECT d.name, COUNT(e.id) FROM e RIGHT JOIN d ON e.dep = d.id GROUP BY d.name": everyD +
			" " + dep1 + " e3 e4",
		"SELECT COUNT(*), SUM(x.pay) FROM e x JOIN e y USING (dep)": dep1 +
			" e3 e4",
		"SELECT COUNT(*) FROM d NATURAL JOIN e": dep1 + " e3 d1 d2 d3",
		"SELECT SQL_CALC_FOUND_ROWS dep, COUNT(*) FROM e GROUP BY dep ORDER BY COUNT(*) DESC, dep LIMIT 1": dep1,
		"(SELECT COUNT(*) FROM d)":                                                    everyD,
		"SELECT COUNT(*)/*x*/FROM d;":                                                 everyD,
		"SELECT COUNT(DISTINCT dep), JSON_ARRAYAGG(id) FROM e WHERE id = 1":           "e1",
		"SELECT BIT_OR(id), STDDEV(pay), VAR_POP(pay) FROM e":                         everyE,
		"SELECT dep + 1 AS g, COUNT(*) FROM e GROUP BY g ORDER BY g":                  everyE,
		"SELECT dep, (SELECT COUNT(*) FROM d WHERE d.id = e.dep) FROM e GROUP BY dep": everyE,
	} {
		if strings.Contains(query, "NATURAL") {
			want = s.natural()
		}
		if s.session.Dialect == MySQL && (strings.HasPrefix(query, "SELECT dep + 1") || strings.HasPrefix(query, "SELECT dep, (SELECT")) {
			if p := s.rewriter.Plan(query, s.session); p.Reason != history.ReasonAggregate {
				t.Errorf("%s: its types hang on the plan, and it is %v (%s)", query, p.Observation, p.Reason)
			}
			continue
		}
		s.compare(query, want)
	}
}

func TestArraysHoldTheEndOfALongList(t *testing.T) {
	s := newReadServer(t)
	s.exec("UPDATE e SET isotap_wlist = '0,000001a.1,000001b.1,000001c.2' WHERE id = 1")
	s.compare("SELECT COUNT(*) FROM e WHERE id = 1", "e1=000001a.1,000001b.1,000001c.2")
}

// natural returns the identities behind the natural join of d and e, which share id.
func (s *readServer) natural() string { return "d1 d2 d3 e1 e2=0,000001a.1,000001b.1 e3" }

// TestArraysDoNotDependOnTheSession runs an aggregate under settings that change what literals, strings
// and results are.
func TestArraysDoNotDependOnTheSession(t *testing.T) {
	s := newReadServer(t)
	for _, setting := range []string{
		"SET sql_mode = 'ONLY_FULL_GROUP_BY,STRICT_ALL_TABLES,ANSI'", "SET sql_mode = ''",
		"SET sql_mode = 'PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,IGNORE_SPACE'",
		"SET character_set_connection = ucs2", "SET collation_connection = latin1_german1_ci",
		"SET character_set_connection = gbk",
		"SET character_set_results = utf16", "SET character_set_results = latin1", "SET character_set_results = NULL",
		"SET max_length_for_sort_data = 4", "SET sql_select_limit = 1", "SET div_precision_increment = 9",
	} {
		if !s.set(setting) {
			continue // not a setting of this server
		}
		r := s.exec("SELECT CAST(@@sql_mode AS BINARY)")
		mode, _ := r.GetString(0, 0)
		s.session.SetSQLMode(mode)
		s.compare("SELECT MIN(note), MAX(name) FROM e JOIN d ON d.id = dep", "d1 d2 "+dep1+" e3 e4")
		s.set("SET sql_mode = DEFAULT, character_set_connection = utf8mb4, character_set_results = utf8mb4, " +
			"sql_select_limit = DEFAULT")
	}
}
