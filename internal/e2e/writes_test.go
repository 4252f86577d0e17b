package e2e

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// writeTables are what the statements of TestWritesAreTransparentAndRecordedAsTheyAre run on.
var writeTables = []string{
	"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE, v INT, s VARCHAR(20))",
	"CREATE TABLE x (id INT PRIMARY KEY, v INT, KEY (v))",
	"CREATE TABLE trig (id INT PRIMARY KEY, v INT)",
	"CREATE TABLE audit (n INT AUTO_INCREMENT PRIMARY KEY, v INT)",
	"CREATE TRIGGER trig_u BEFORE UPDATE ON trig FOR EACH ROW SET NEW.v = NEW.v + 1",
	"CREATE TRIGGER trig_d AFTER DELETE ON trig FOR EACH ROW INSERT INTO audit (v) VALUES (OLD.v)",
}

// writeRows fill them anew before each statement.
var writeRows = []string{
	"DELETE FROM t", "DELETE FROM x", "DELETE FROM trig", "DELETE FROM audit",
	"INSERT INTO t (id, u, v, s) VALUES (1, 10, 100, 'a'), (2, 20, 200, 'b'), (3, 30, 300, 'c'), (4, NULL, 400, 'd')",
	"INSERT INTO x (id, v) VALUES (1, 1), (2, 2), (3, 3), (7, 7), (8, 7)",
	"INSERT INTO trig (id, v) VALUES (1, 1), (2, 2)",
}

// A writeCase is one statement and how well isotap is to observe it: "exact", or another observation with its reason.
type writeCase struct {
	query    string
	args     []int64 // it is prepared if there are any
	file     string  // what LOAD DATA LOCAL reads
	observed string
	// mysql is what differs on MySQL: how the statement is observed there, or "-" where it is none.
	mysql string
	// mariaDB118 is what differs on MariaDB 11.8.
	mariaDB118 string
	// text says that the server refuses to prepare it.
	text bool
}

// TestWritesAreTransparentAndRecordedAsTheyAre runs each statement directly and through isotap on equal
// tables, with and without CLIENT_FOUND_ROWS, as text and prepared. The replies must be the same byte for
// byte, so must the tables, and what is recorded must be what happened to the rows.
func TestWritesAreTransparentAndRecordedAsTheyAre(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, caps := range []uint32{0, gomysql.CLIENT_FOUND_ROWS | gomysql.CLIENT_DEPRECATE_EOF} {
		t.Run(fmt.Sprintf("capabilities %#x", caps), func(t *testing.T) {
			m := newMirror(t, caps|gomysql.CLIENT_LOCAL_FILES, nil, writeTables...)
			if testdb.EngineName() == testdb.MySQL.Name {
				m.b.setGlobal("local_infile", 1) // for LOAD DATA LOCAL; it is off there
			}
			w := &writer{t: t, reflection: &reflection{m: m}}
			for i := range w.sides {
				w.sides[i] = dialRaw(t, m.addrs[i], m.names[i], m.caps)
			}
			var changes []change
			for _, write := range writes {
				if testdb.EngineName() == testdb.MySQL.Name && write.mysql != "" {
					write.observed = write.mysql
				}
				if testdb.EngineName() == testdb.MariaDB118.Name && write.mariaDB118 != "" {
					write.observed = write.mariaDB118
				}
				if write.observed == "-" {
					continue
				}
				changes = append(changes, w.run(write, false))
				if !write.text {
					changes = append(changes, w.run(write, true))
				}
			}
			w.close()
			txns := slices.DeleteFunc(m.b.txns(),
				func(t *history.Txn) bool { return t.Stmts[0].Kind == history.Select })
			if len(txns) != len(changes) {
				t.Fatalf("%d transactions were recorded of %d statements", len(txns), len(changes))
			}
			certain := 0
			for i, c := range changes {
				certain += c.check(t, txns[i])
			}
			t.Logf("%d statements, %d writes recorded with certainty", len(changes), certain)
		})
	}
}

// A writer runs writes on both sides of a mirror.
type writer struct {
	t *testing.T
	*reflection
}

// A change is a write with what it did to the rows.
type change struct {
	writeCase
	before, after map[string]string // wLists by "table id"
	// values before and after it, likewise
	valuesBefore, valuesAfter map[string]string
}

// run has both sides run a write on fresh tables.
func (w *writer) run(write writeCase, prepare bool) change {
	t, m := w.t, w.m
	for _, name := range m.names {
		for _, q := range writeRows {
			m.b.exec(m.b.direct, "USE "+name, q)
		}
	}
	m.b.exec(m.b.direct, "USE "+m.names[1])
	c := change{writeCase: write}
	c.before, c.valuesBefore = w.rows()
	s := randomStatement{text: write.query, prepared: prepare || len(write.args) > 0}
	for _, a := range write.args {
		s.params = append(s.params, a)
	}
	w.history = append(w.history, "start")
	if write.file != "" {
		direct := w.sides[0].ask(query(write.query), write.file)
		if diff := firstDifference(w.sides[1].ask(query(write.query), write.file), direct, m.names); diff != "" {
			t.Errorf("%s: %s", write.query, diff)
		}
	} else if diff := w.reflection.run(s); diff != "" {
		t.Errorf("prepared %t: %s", s.prepared, diff)
	}
	for _, q := range []string{"SELECT LAST_INSERT_ID(), ROW_COUNT()", "SELECT id, u, v, s FROM t ORDER BY id",
		"SELECT * FROM x ORDER BY id", "SELECT * FROM trig ORDER BY id"} {
		direct, through := w.both(command{name: q, bytes: query(q)})
		if diff := firstDifference(through, direct, m.names); diff != "" {
			t.Errorf("prepared %t, %s: then %s: %s", s.prepared, write.query, q, diff)
		}
	}
	c.after, c.valuesAfter = w.rows()
	return c
}

// rows returns the wList of each row, and its values.
func (w *writer) rows() (lists, values map[string]string) {
	lists, values = make(map[string]string), make(map[string]string)
	for table, columns := range map[string]string{"t": "id, u, v, s", "x": "id, v", "trig": "id, v"} {
		rows, err := w.m.b.direct.Query("SELECT isotap_rowid, isotap_wlist, JSON_ARRAY(" + columns + ") FROM " +
			w.m.names[1] + "." + table)
		var refused *mysql.MySQLError
		switch {
		case errors.As(err, &refused) && refused.Number == 1054:
			continue // instrument leaves a table with triggers alone where it has to fill the columns by UPDATE
		case err != nil:
			w.t.Fatal(err)
		}
		var id, list, row sql.NullString
		for rows.Next() {
			if err := rows.Scan(&id, &list, &row); err != nil {
				w.t.Fatal(err)
			}
			lists[table+" "+id.String], values[table+" "+id.String] = list.String, row.String
		}
		rows.Close()
	}
	return lists, values
}

// check compares the recorded writes with what became of the rows. An exact statement names all of them; no
// certain access is about a row that was not written. It gives the number of certain writes.
func (c *change) check(t *testing.T, txn *history.Txn) (certain int) {
	t.Helper()
	if len(txn.Stmts) != 1 {
		t.Fatalf("%s: %d statements in its transaction", c.query, len(txn.Stmts))
	}
	st := txn.Stmts[0]
	tag := history.Tag{Txn: txn.ID, Stmt: st.Num}.String()
	observed := st.Observation.String()
	if !st.Reason.IsZero() {
		observed += ": " + st.Reason.String()
	}
	if observed != c.observed {
		t.Errorf("%s is %s, want %s", c.query, observed, c.observed)
	}
	truth := make(map[string]string)
	for row, list := range c.after {
		was, there := c.before[row]
		switch {
		case !there:
			truth[row] = "insert"
		case list != was:
			truth[row] = "update " + lastOf(was)
			if list != was+","+tag {
				t.Errorf("%s: the list of %s was %s and is %s", c.query, row, was, list)
			}
		case c.valuesBefore[row] != c.valuesAfter[row] && st.Observation != history.Opaque:
			t.Errorf("%s: %s was %s and is %s, and its list is %s still", c.query, row,
				c.valuesBefore[row], c.valuesAfter[row], list)
		}
	}
	for row, was := range c.before {
		if _, there := c.after[row]; !there {
			truth[row] = "delete " + lastOf(was)
		}
	}
	var wrong []string
	for _, a := range st.Accesses {
		_, table, _ := strings.Cut(a.Row.Table, ".")
		row := table + " " + a.Row.ID
		what := a.Op.String()
		switch {
		case a.Inexact:
			continue
		case a.Op == history.Read:
			if c.before[row] == "" || lastOf(c.before[row]) != a.Version.String() {
				wrong = append(wrong, fmt.Sprintf("read of %s in version %v", row, a.Version))
			}
			continue
		case a.Op != history.InsertRow:
			what += " " + a.Version.String()
		}
		if truth[row] != what {
			wrong = append(wrong, fmt.Sprintf("%s of %s, which had %q", what, row, truth[row]))
		}
		delete(truth, row)
		certain++
	}
	slices.Sort(wrong)
	if len(wrong) > 0 {
		t.Errorf("%s (%s) is recorded with\n%s", c.query, observed, strings.Join(wrong, "\n"))
	}
	if st.Observation == history.Exact && len(truth) > 0 {
		t.Errorf("%s is exact, without %v", c.query, truth)
	}
	return certain
}

func lastOf(list string) string { return list[strings.LastIndexByte(list, ',')+1:] }

var writes = []writeCase{
	{query: "INSERT INTO t (id, u) VALUES (9, 90) ON DUPLICATE KEY UPDATE v = 1", observed: "exact"},
	{query: "INSERT INTO t (id, u, v) VALUES (1, 90, 5) ON DUPLICATE KEY UPDATE v = VALUES(v)", observed: "exact"},
	{query: "INSERT INTO t (id, u, v) VALUES (1, 90, 100) ON DUPLICATE KEY UPDATE v = VALUES(v)", observed: "exact"},
	{query: "INSERT INTO t (u, v) VALUES (10, 5) ON DUPLICATE KEY UPDATE v = v + VALUES(v), id = LAST_INSERT_ID(id)",
		observed: "exact"},
	{query: "INSERT INTO t (u, v) VALUES (77, 5) ON DUPLICATE KEY UPDATE v = v + VALUES(v), id = LAST_INSERT_ID(id)",
		observed: "exact"},
	{query: "INSERT INTO t VALUES (1, 11, 100, 'z'), (9, 20, 200, 'b'), (10, 50, 5, NULL), (11, 30, 7, 'x'), " +
		"(12, 30, 8, 'y') ON DUPLICATE KEY UPDATE v = VALUES(v)", observed: "exact"},
	{query: "INSERT INTO t (id, v) VALUES (50, 1), (50, 2), (50, 2), (51, 1) ON DUPLICATE KEY UPDATE v = VALUES(v)",
		observed: "exact"},
	{query: "INSERT INTO t (id, v) VALUES (1, 100), (1, 100), (1, 101), (1, 101) ON DUPLICATE KEY UPDATE v = VALUES(v)",
		observed: "exact"},
	{query: "INSERT INTO t (id, u) VALUES (1, 1), (9, 9) ON DUPLICATE KEY UPDATE u = 20",
		observed: "exact"}, // fails: duplicate key
	{query: "INSERT IGNORE INTO t (id, u) VALUES (1, 1), (9, 9) ON DUPLICATE KEY UPDATE u = 20",
		observed: "inexact: INSERT IGNORE"},
	{query: "INSERT INTO t SET id = 1, v = 7 ON DUPLICATE KEY UPDATE v = VALUES(v), s = CONCAT(s, s)",
		observed: "exact"},
	{query: "INSERT INTO t SET v = 7 ON DUPLICATE KEY UPDATE v = VALUES(v)", observed: "exact"},
	{query: "INSERT INTO t (id, v) VALUES (?, ?), (?, 3) ON DUPLICATE KEY UPDATE v = VALUES(v) + ?",
		args: []int64{1, 50, 60, 50}, observed: "exact"},
	{query: "INSERT INTO t (id, v) VALUES (?, ?) ON DUPLICATE KEY UPDATE v = VALUES(v) RETURNING id, v + ?",
		args: []int64{1, 50, 1}, observed: "exact", mysql: "-"},
	{query: "INSERT INTO t (id, v) VALUES (1, 1), (60, 1) ON DUPLICATE KEY UPDATE v = VALUES(v) RETURNING *",
		observed: "exact", mysql: "-"},
	{query: "INSERT INTO trig (id, v) VALUES (1, 1) ON DUPLICATE KEY UPDATE v = 1", observed: "opaque: trigger",
		mysql: "opaque: not instrumented"},
	{query: "INSERT INTO t (v, s) VALUES (1, 'x'), (2, 'y') RETURNING id, s AS n", observed: "exact", mysql: "-"},
	{query: "INSERT INTO t SET v = 1 RETURNING *", observed: "exact", mysql: "-"},
	{query: "INSERT IGNORE INTO t (id) VALUES (1), (99) RETURNING id", observed: "inexact: INSERT IGNORE", mysql: "-"},
	{query: "REPLACE INTO t (id, u) VALUES (90, 90)", observed: "exact"},
	{query: "REPLACE INTO t VALUES (90, 90, 1, 'x'), (91, NULL, 1, 'x')", observed: "exact"},
	{query: "REPLACE INTO t SET id = 1, u = 10, v = 5", observed: "inexact: REPLACE"},
	{query: "REPLACE INTO t (id, u) VALUES (1, 20)", observed: "inexact: REPLACE"},
	{query: "REPLACE INTO t (id, u) VALUES (1, 20), (5, 30), (5, 31), (6, 40)", observed: "inexact: REPLACE"},
	{query: "REPLACE INTO t (id, u) VALUES (1, 20) RETURNING id", observed: "inexact: REPLACE", mysql: "-"},
	{query: "REPLACE INTO t (id, u) VALUES (?, ?)", args: []int64{4, 2}, observed: "inexact: REPLACE"},
	{query: "INSERT INTO t SELECT id + 100, NULL, v, 'x' FROM x",
		observed: "inexact: plan"}, // its index on v covers it
	{query: "INSERT INTO t (v, s) SELECT v, s FROM t WHERE id < 4 ORDER BY id", observed: "exact"},
	{query: "INSERT INTO t (v, s) SELECT v, s FROM t ORDER BY v DESC LIMIT 2",
		observed: "inexact: captured rows differ from the server's count"},
	{query: "INSERT INTO x (id, v) SELECT id + 100, v FROM t ORDER BY s DESC LIMIT 2", observed: "exact"},
	{query: "INSERT INTO x SELECT id + 100, v FROM t WHERE s > 'a' LIMIT 1, 1", observed: "exact"},
	{query: "INSERT INTO x SELECT t.id + y.id + 100, t.v FROM t LEFT JOIN x AS y ON y.id = t.v / 100 " +
		"AND y.v + 0 = 1 AND y.id + y.v > 0 WHERE t.id < 4", observed: "inexact: plan"},
	{query: "INSERT INTO t (v) SELECT a.v FROM t a, t b WHERE b.s <> ''", observed: "exact"},
	{query: "INSERT INTO t (v) SELECT 5", observed: "exact"},
	{query: "INSERT INTO t (v, s) SELECT 5 AS five, 'x' FROM dual WHERE 1 = 0", observed: "exact"},
	{query: "INSERT INTO t SELECT 1, 2, 3, 4", observed: "exact"},   // fails: duplicate key
	{query: "INSERT INTO x SELECT id, v FROM t", observed: "exact"}, // fails: duplicate key
	{query: "INSERT IGNORE INTO x SELECT id, v FROM t", observed: "inexact: INSERT IGNORE"},
	{query: "INSERT INTO t SELECT 1, 2 FROM x", observed: "opaque: refused with error 1136", text: true},
	{query: "INSERT INTO x (id, v) SELECT id * ?, v + ? FROM t WHERE v > ?", args: []int64{100, 1, 100},
		observed: "exact"},
	{query: "INSERT INTO x (id, v) SELECT id, v FROM t ON DUPLICATE KEY UPDATE v = VALUES(v)", observed: "exact"},
	{query: "INSERT INTO x (id, v) SELECT id, 1 FROM t WHERE s <> '' ON DUPLICATE KEY UPDATE v = VALUES(v)", observed: "exact"},
	{query: "INSERT INTO x (id, v) SELECT id, v FROM t WHERE s <> '' ORDER BY v DESC, id LIMIT 2 ON DUPLICATE KEY UPDATE v = VALUES(v) + 1",
		observed: "exact"},
	{query: "INSERT INTO x (id, v) SELECT id, ? FROM t WHERE s <> '' ON DUPLICATE KEY UPDATE v = VALUES(v) + ?", args: []int64{7, 8},
		observed: "exact"},
	{query: "INSERT INTO x SELECT 1, 100 ON DUPLICATE KEY UPDATE v = VALUES(v)", observed: "exact"},
	{query: "INSERT INTO x SELECT 61, 100 ON DUPLICATE KEY UPDATE v = 1", observed: "exact"},
	{query: "INSERT INTO x (v, id) SELECT ?, 1 WHERE ? > 1 ON DUPLICATE KEY UPDATE v = v + ?", args: []int64{1, 2, 3}, observed: "exact"},
	{query: "INSERT INTO x (id, v) SELECT id, v FROM t WHERE s <> 'q' RETURNING id", observed: "exact",
		mysql: "-"}, // fails: duplicate key
	{query: "INSERT INTO x (id, v) SELECT id + 100, v FROM t WHERE s <> 'q' RETURNING id, v", observed: "exact",
		mysql: "-"},
	{query: "REPLACE INTO x SELECT id + 100, v FROM t", observed: "exact"},
	{query: "REPLACE INTO x SELECT id, v FROM t", observed: "inexact: REPLACE"},
	{query: "INSERT INTO x SELECT DISTINCT v, 1 FROM t", observed: "opaque: distinct"},
	{query: "INSERT INTO x SELECT MAX(v), 1 FROM t", observed: "opaque: aggregate"},
	{query: "INSERT INTO x SELECT v, 1 FROM t UNION SELECT 700, 1", observed: "opaque: INSERT ... SELECT"},
	{query: "INSERT INTO x SELECT d.v, 1 FROM (SELECT v FROM t) d", observed: "inexact: derived table"},
	{query: "INSERT INTO x SELECT v, (SELECT MAX(y.id) FROM t y) FROM t", observed: "inexact: subquery"},
	{query: "LOAD DATA LOCAL INFILE 'x' INTO TABLE x FIELDS TERMINATED BY ','", file: "11,1\n12,2\n13\n",
		observed: "exact"},
	{query: "LOAD DATA LOCAL INFILE 'x' INTO TABLE x FIELDS TERMINATED BY ','", file: "11,1\n1,2\n",
		observed: "inexact: rows left out"},
	{query: "LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE x FIELDS TERMINATED BY ','", file: "11,1\n1,2\n",
		observed: "inexact: REPLACE"},
	{query: "LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',' (@a, v) SET s = CONCAT(@a, 's');",
		file: "11,1\n1,2\n", observed: "exact"},
	{query: "UPDATE t JOIN x ON x.id = t.id SET t.v = t.v + 1, x.v = 9", observed: "exact"},
	{query: "UPDATE t JOIN x ON x.id = t.id SET t.v = 100, x.v = 2", observed: "exact"}, // some stay as they are
	{query: "UPDATE t, x SET t.v = x.id WHERE t.s > 'b'", observed: "inexact: multi-table UPDATE"},
	{query: "UPDATE t STRAIGHT_JOIN x SET t.v = x.id", observed: "inexact: multi-table UPDATE"},
	{query: "UPDATE x STRAIGHT_JOIN t SET t.v = x.id", observed: "inexact: multi-table UPDATE"},
	{query: "UPDATE t LEFT JOIN x ON x.v = t.id SET t.s = 'a', x.v = NULL WHERE t.u > ?", args: []int64{10},
		observed: "opaque: multi-table UPDATE"},
	{query: "UPDATE t LEFT JOIN x ON x.id = t.id + 2 SET t.s = 'a', x.v = NULL WHERE t.u > ?", args: []int64{10},
		observed: "exact"},
	{query: "UPDATE t a JOIN t b ON b.id = a.id + 1 SET a.v = b.v - a.v, a.u = NULL",
		observed: "inexact: multi-table UPDATE"},
	{query: "UPDATE t a JOIN t b ON b.id = a.id + 1 SET a.v = 5, b.s = 'x'", observed: "opaque: table updated twice"},
	{query: "UPDATE x JOIN x y ON y.v = x.v SET x.v = ?", args: []int64{7}, observed: "inexact: multi-table UPDATE"},
	{query: "UPDATE t a JOIN t b ON b.id = 1 SET a.s = b.s, a.v = ? + b.v", args: []int64{7},
		observed: "inexact: multi-table UPDATE"},
	{query: "UPDATE t JOIN x ON x.id = t.id SET u = 10",
		observed: "inexact: multi-table UPDATE"}, // fails: duplicate key
	{query: "UPDATE t JOIN x ON x.id = t.id SET t.id = t.id + 100", observed: "inexact: multi-table UPDATE"},
	{query: "UPDATE t JOIN x ON x.id = t.id SET t.s = 'a12345678901234567890123'",
		observed: "inexact: multi-table UPDATE"}, // fails: too long
	{query: "UPDATE t JOIN x ON x.id = t.id SET t.s = 'a                        '",
		observed: "inexact: multi-table UPDATE"},
	{query: "UPDATE t JOIN x ON x.id = t.id SET t.s = 'A' /* as */ WHERE t.id IN (SELECT v FROM x z)",
		observed: "inexact: multi-table UPDATE"},
	{query: "UPDATE t JOIN x ON x.id = t.id SET t.v = 5, x.v = t.v", observed: "opaque: multi-table UPDATE"},
	{query: "UPDATE t JOIN x ON x.id = t.id SET t.v = x.v / 2", observed: "opaque: multi-table UPDATE"},
	{query: "UPDATE t JOIN (SELECT id AS n FROM x) d ON d.n = t.id SET t.v = 3",
		observed: "inexact: multi-table UPDATE"},
	{query: "UPDATE t JOIN trig ON trig.id = t.id SET trig.v = 3", observed: "opaque: trigger",
		mysql: "opaque: not instrumented"},
	{query: "UPDATE t SET v = 200 WHERE id IN (SELECT v FROM x)", observed: "inexact: subquery"},
	{query: "UPDATE t SET v = v + 1 WHERE EXISTS (SELECT 1 FROM x WHERE x.v = t.id)", observed: "inexact: subquery"},
	{query: "UPDATE t SET v = ? WHERE id = ANY (SELECT v - 6 FROM x)", args: []int64{100},
		observed: "inexact: subquery"},
	{query: "UPDATE x SET v = v + 1 WHERE v IN (SELECT id FROM t) OR id > 7", observed: "inexact: subquery"},
	{query: "UPDATE t SET v = v / 3 WHERE id IN (SELECT v FROM x)", observed: "inexact: subquery",
		mysql: "opaque: subquery", mariaDB118: "opaque: subquery"},
	{query: "UPDATE t SET v = v / 3 WHERE id = (SELECT MAX(v) - 6 FROM x)", observed: "inexact: subquery"},
	{query: "UPDATE t SET v = 200 WHERE id IN (SELECT v FROM x) LIMIT 2", observed: "inexact: subquery",
		mariaDB118: "opaque: ORDER BY or LIMIT"},
	{query: "UPDATE t SET v = 200 WHERE id IN (SELECT y.id FROM t y WHERE y.v > 100)", observed: "inexact: subquery",
		mysql: "-"},
	{query: "UPDATE t SET v = 200 WHERE id = (SELECT MAX(y.id) FROM t y)", observed: "inexact: subquery", mysql: "-"},
	{query: "UPDATE t SET v = v + 1 WHERE id <= (SELECT MAX(d.id) FROM (SELECT y.id FROM t y JOIN x " +
		"ON x.id = y.id) d) AND s > 'a'", observed: "inexact: subquery", mysql: "-"},
	{query: "UPDATE t SET v = (SELECT MAX(y.v) FROM t y) WHERE id = 2", observed: "opaque: subquery", mysql: "-"},
	{query: "UPDATE t SET v = 200 WHERE id = (SELECT MAX(y.id) FROM t y WHERE y.v >= t.v) ORDER BY id LIMIT 2",
		observed: "opaque: ORDER BY or LIMIT", mysql: "-"},
	{query: "DELETE FROM t WHERE id > 2", observed: "exact"},
	{query: "DELETE FROM t WHERE v > 100 ORDER BY v DESC LIMIT 2", observed: "exact",
		mysql: "inexact: captured rows differ from the server's count"},
	{query: "DELETE FROM t WHERE v > ? ORDER BY id DESC LIMIT 2", args: []int64{100}, observed: "exact"},
	{query: "DELETE FROM t ORDER BY id LIMIT 1", observed: "exact"},
	{query: "DELETE FROM t ORDER BY v", observed: "exact"},
	{query: "DELETE FROM x WHERE v = 7 LIMIT 1", observed: "exact"},
	{query: "DELETE FROM t WHERE id > 2 RETURNING id, v", observed: "exact", mysql: "-"},
	{query: "DELETE FROM t WHERE id > ? RETURNING *, v + ?", args: []int64{1, 2}, observed: "exact", mysql: "-"},
	{query: "DELETE FROM t WHERE id > 99 RETURNING id", observed: "exact", mysql: "-"},
	{query: "INSERT INTO t (id, v) VALUES (1, 100), (60, 1), (2, 5) AS new ON DUPLICATE KEY UPDATE v = new.v",
		observed: "-", mysql: "exact"},
	{query: "INSERT INTO t (id, v) VALUES (1, 100), (60, 1), (2, 5) AS new(a, b) ON DUPLICATE KEY UPDATE v = b + ?",
		args: []int64{0}, observed: "-", mysql: "exact"},
	{query: "INSERT INTO t SET id = 3, v = 4 AS new ON DUPLICATE KEY UPDATE v = t.v + new.v", observed: "-",
		mysql: "exact"},
	{query: "INSERT INTO t (id, v) VALUES (1, 100) AS new ON DUPLICATE KEY UPDATE v = v + 1", observed: "-",
		mysql: "opaque: refused with error 1052", text: true},
	{query: "DELETE FROM t", observed: "exact"},
	{query: "DELETE FROM t WHERE id = 1 OR v = 300 -- end", observed: "exact"},
	{query: "DELETE FROM x WHERE v = ? AND id IN (1, 7, 8)", args: []int64{7}, observed: "exact"},
	{query: "DELETE FROM x WHERE v IN (SELECT y.id FROM t y WHERE y.s < 'c')", observed: "exact",
		mysql: "inexact: subquery"},
	{query: "DELETE IGNORE FROM t WHERE u IS NULL", observed: "inexact: DELETE IGNORE"},
	{query: "DELETE t FROM t JOIN x ON x.v = t.id", observed: "opaque: multi-table DELETE",
		mysql: "inexact: multi-table DELETE"},
	{query: "DELETE a, x FROM t a JOIN x ON x.id = a.id WHERE a.v + x.v > ?", args: []int64{150},
		observed: "opaque: multi-table DELETE", mysql: "exact"},
	{query: "DELETE FROM t, x USING t LEFT JOIN x ON x.v = t.v WHERE t.id > 2", observed: "opaque: multi-table DELETE",
		mysql: "exact"},
	{query: "DELETE t FROM t WHERE id IN (SELECT v FROM x)", observed: "opaque: multi-table DELETE",
		mysql: "opaque: subquery"},
	{query: "DELETE FROM trig RETURNING v", observed: "inexact: trigger", mysql: "-"},
}
