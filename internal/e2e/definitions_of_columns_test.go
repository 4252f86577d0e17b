package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"
	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

// columnTypes are the types of the columns of table m, by the columns' names.
var columnTypes = map[string]string{
	"tiny": "TINYINT", "num": "INT NOT NULL DEFAULT 0", "nodef": "BIGINT UNSIGNED NOT NULL", "zero": "INT(6) ZEROFILL",
	"deci": "DECIMAL(8,2)", "flt": "FLOAT", "dbl": "DOUBLE NOT NULL", "bits": "BIT(9)", "yr": "YEAR", "dt": "DATE",
	"tm": "TIME(3)", "dtm": "DATETIME(6)", "chr": "CHAR(5)", "vch": "VARCHAR(20) NOT NULL", "long_vch": "VARCHAR(700)",
	"ts":  "TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
	"bin": "VARCHAR(20) COLLATE utf8mb4_bin", "vb": "VARBINARY(10)", "fixed": "BINARY(4)", "txt": "TEXT",
	"lblob": "LONGBLOB", "en": "ENUM('a', 'b')", "st": "SET('a', 'b') NOT NULL", "js": "JSON", "uq": "INT UNIQUE",
	"uqn": "INT NOT NULL UNIQUE", "idx": "INT", "pair": "INT",
}

// columnShapes are statements in which %s stands for a column of m.
var columnShapes = []string{
	"SELECT %s FROM m",
	"SELECT * FROM m WHERE %s IS NULL",
	"SELECT m.%s, n.v FROM m JOIN n ON n.m = m.id",
	"SELECT m.%s, n.v FROM m LEFT JOIN n ON n.m = m.id ORDER BY n.v",
	"SELECT id, %s FROM m ORDER BY %s, id LIMIT 2",
	"SELECT DISTINCT %s FROM m",
	"SELECT DISTINCT m.%s, n.v FROM m JOIN n ON n.m = m.id",
	"SELECT q.%s FROM (SELECT %s, id FROM m) q",
	"SELECT q.%s, q.x FROM (SELECT %s, IFNULL(%s, 1) AS x FROM m ORDER BY id LIMIT 3) q",
	"SELECT MIN(%s), MAX(%s), COUNT(%s), COUNT(*) FROM m",
	"SELECT %s FROM m UNION ALL SELECT %s FROM m",
	"SELECT %s, (SELECT MAX(v) FROM n WHERE n.m = m.id) FROM m",
	"SELECT %s FROM m WHERE EXISTS (SELECT 1 FROM n WHERE n.m = m.id)",
	"SELECT %s FROM m GROUP BY %s",
	"SELECT %s, COUNT(*) FROM m GROUP BY %s ORDER BY NULL",
	"SELECT %s, COUNT(*) FROM m GROUP BY %s HAVING COUNT(*) > 0",
	"SELECT %s, COUNT(*) FROM m GROUP BY %s WITH ROLLUP",
	"SELECT id, %s, COUNT(*) FROM m GROUP BY id",
	"SELECT m.%s, COUNT(*), SUM(n.v) FROM m JOIN n ON n.m = m.id GROUP BY m.%s",
	"SELECT m.%s, COUNT(*), SUM(n.v) FROM m LEFT JOIN n ON n.m = m.id GROUP BY m.id, m.%s",
	"SELECT n.v, MAX(m.%s), COUNT(*) FROM m JOIN n ON n.m = m.id GROUP BY n.v",
	"SELECT n.v, MIN(IFNULL(m.%s, m.%s)), COUNT(*) FROM m JOIN n ON n.m = m.id GROUP BY n.v",
	"SELECT n.v, IFNULL(m.%s, m.%s), COUNT(*) FROM m JOIN n ON n.m = m.id GROUP BY n.v, m.%s",
	"SELECT n.v, CASE n.v WHEN 1 THEN m.%s END, UPPER(m.%s), COUNT(*) FROM m JOIN n ON n.m = m.id GROUP BY n.v, m.%s",
	"SELECT n.v, SUM(m.%s), AVG(m.%s), BIT_OR(m.%s), COUNT(*) FROM m JOIN n ON n.m = m.id GROUP BY n.v",
	"SELECT q.v, MAX(q.x), COUNT(*) FROM (SELECT n.v, m.%s AS x FROM m JOIN n ON n.m = m.id) q GROUP BY q.v",
	"SELECT q.v, q.x, COUNT(*) FROM (SELECT n.v, IFNULL(m.%s, m.%s) AS x FROM m JOIN n ON n.m = m.id) q GROUP BY q.v, q.x",
	"SELECT q.v, MAX(q.%s), COUNT(*) FROM (SELECT n.v, m.* FROM m JOIN n ON n.m = m.id) q GROUP BY q.v",
	"WITH q AS (SELECT n.v, m.%s AS x FROM m JOIN n ON n.m = m.id) SELECT q.v, MAX(q.x), COUNT(*) FROM q GROUP BY q.v",
	"SELECT n.v, (SELECT m.%s), COUNT(*) FROM m JOIN n ON n.m = m.id GROUP BY n.v, m.%s",
	"SELECT %s IS NULL, IFNULL(%s, %s), COUNT(*) FROM m GROUP BY %s",
	"SELECT NULLIF(%s, %s), CASE WHEN %s IS NULL THEN %s END, (SELECT m.%s), COUNT(*) FROM m GROUP BY %s",
	"SELECT %s + 1, -%s, %s > 2, %s DIV 2, COUNT(*) FROM m GROUP BY %s",
	"SELECT %s % 2, COUNT(*) FROM m GROUP BY %s",
	"SELECT %s * 2, %s / 2, COUNT(*) FROM m GROUP BY %s",
	"SELECT YEAR(%s), MONTH(%s), COUNT(*) FROM m GROUP BY YEAR(%s), MONTH(%s)",
	"SELECT DATE_ADD(%s, INTERVAL 1 DAY), DATE(%s), COUNT(*) FROM m GROUP BY %s",
	"SELECT CONCAT(%s, 'x'), LOWER(%s), LEFT(%s, 2), LENGTH(%s), COUNT(*) FROM m GROUP BY %s",
	"SELECT %s, EXISTS (SELECT 1 FROM n WHERE n.m = 1), COUNT(*) FROM m GROUP BY %s",
	"SELECT COUNT(*) > 1, COUNT(*) + 1, SUM(id) > 3, %s FROM m GROUP BY %s",
	"SELECT q.x, COUNT(*) FROM (SELECT IFNULL(%s, %s) AS x FROM m) q GROUP BY q.x",
	"SELECT q.v, q.x, COUNT(*) FROM (SELECT n.v, m.%s > 2 AS x FROM m JOIN n ON n.m = m.id) q GROUP BY q.v, q.x",
	"SELECT q.x, n.v, COUNT(*) FROM (SELECT id, %s IS NULL AS x FROM m) q JOIN n ON n.m = q.id GROUP BY q.x, n.v",
	"SELECT q.x, n.v, COUNT(*) FROM (SELECT id, CONCAT(%s, 'x') AS x FROM m) q JOIN n ON n.m = q.id GROUP BY q.x, n.v",
	"SELECT q.x + 1, n.v, COUNT(*) FROM (SELECT id, LEFT(%s, 2) AS x FROM m) q JOIN n ON n.m = q.id GROUP BY q.x, n.v",
	"SELECT %s FROM m WHERE EXISTS (SELECT 1 FROM n WHERE n.m = m.id) ORDER BY %s, id",
	"SELECT m.%s FROM m JOIN n ON n.m = m.id WHERE m.id IN (SELECT v FROM n) ORDER BY n.v, m.id",
	"SELECT m.id, m.%s, n.v FROM m JOIN n ON n.m = m.id ORDER BY n.v, m.%s, m.id LIMIT 3",
	"SELECT m.%s, n.id FROM m JOIN n ON n.m = m.id ORDER BY m.%s, n.id",
	"SELECT m.%s, (SELECT MAX(v) FROM n WHERE n.m = m.id) AS s FROM m ORDER BY s, id",
	"SELECT DISTINCT m.%s FROM m JOIN n ON n.m = m.id ORDER BY m.%s",
	"SELECT q.%s FROM (SELECT * FROM m WHERE id IN (SELECT m FROM n) ORDER BY id LIMIT 3) q ORDER BY q.id DESC",
}

// TestColumnsAreDefinedAsByTheServer runs a matrix of types and shapes directly and through isotap, as texts and
// prepared, on the same tables. Rows are equal, and all that is said of columns but what a grouped SELECT's depends on
// the server's plan for (docs/adr/0010). Nothing differs where isotap leaves such statements alone.
func TestColumnsAreDefinedAsByTheServer(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	for _, strict := range []bool{false, true} {
		t.Run(fmt.Sprintf("strict plans %t", strict), func(t *testing.T) {
			b := newBench(t, func(o *proxyserver.Options) { o.StrictPlans = strict })
			var sides [2]*client.Conn
			for i, address := range []string{testdb.Current(t).Addr(), b.srv.Addr().String()} {
				c, err := client.Connect(address, "root", "", b.database)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				sides[i] = c
			}
			names := slices.Sorted(maps.Keys(columnTypes))
			fillColumns(b, names)
			for _, shape := range columnShapes {
				for _, name := range names {
					text := strings.ReplaceAll(shape, "%s", name)
					for _, prepared := range []bool{false, true} {
						directly := shownColumns(sides[0], text, prepared, strict)
						through := shownColumns(sides[1], text, prepared, strict)
						if directly != through {
							t.Errorf("%s (prepared: %t)\ndirectly:\n%s\nthrough isotap:\n%s", text, prepared, directly, through)
						}
					}
				}
			}
		})
	}
}

// fillColumns makes the tables, through isotap.
func fillColumns(b *bench, names []string) {
	var columns []string
	for _, name := range names {
		columns = append(columns, name+" "+columnTypes[name])
	}
	b.exec(b.through, "CREATE TABLE m (id INT PRIMARY KEY AUTO_INCREMENT, "+strings.Join(columns, ", ")+
		", KEY (idx), KEY (pair, idx))", "CREATE TABLE n (id INT PRIMARY KEY AUTO_INCREMENT, m INT, v INT, KEY (m))")
	for i := range 5 {
		b.exec(b.through, fmt.Sprintf("INSERT INTO m (id, vch, nodef, dbl, st, uqn, idx, uq, zero, flt, en, txt, "+
			"js, bits, yr, dt, tm, "+
			"dtm, chr, bin, vb, lblob, deci, ts, long_vch, fixed) VALUES (%d, 'x%d', 1, 2.1, 'a', %d, %d, %d, %d, 1.1, 'b', 't', '[]', "+
			"5, 2020, '2020-01-01', '10:11', '2020-01-01 10:11', 'c', 'b', 'v', 'l', 1.5, '2020-01-01', 'l', 'f')",
			i+1, i%2, i, i%3, i, i), fmt.Sprintf("INSERT INTO n (m, v) VALUES (%d, %d)", i+1, i%2))
	}
}

// shownColumns runs a statement and returns what it says of its columns, and its rows, which are sorted. What depends
// on the plan of a grouped SELECT is left out, unless all is asked for.
func shownColumns(c *client.Conn, text string, prepared, all bool) string {
	run := c.Execute
	if prepared {
		st, err := c.Prepare(text)
		if err != nil {
			return err.Error()
		}
		defer st.Close()
		run = func(_ string, args ...any) (*gomysql.Result, error) { return st.Execute(args...) }
	}
	r, err := run(text)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, f := range r.Fields {
		if !all && strings.Contains(text, "GROUP BY") {
			f.Flag &^= groupFlags
			f.ColumnLength, f.Decimal = 0, 0
			if f.Type == gomysql.MYSQL_TYPE_TIMESTAMP {
				f.Flag &^= gomysql.UNSIGNED_FLAG
			}
			if len(f.OrgTable) == 0 {
				f.OrgName = nil
			}
		}
		fmt.Fprintf(&b, "%s.%s(%s).%s(%s) type %d charset %d flags %#x length %d decimals %d\n", f.Schema, f.Table, f.OrgTable,
			f.Name, f.OrgName, f.Type, f.Charset, f.Flag, f.ColumnLength, f.Decimal)
	}
	var rows []string
	for _, values := range r.Values {
		row := ""
		for _, v := range values {
			row += fmt.Sprintf("%q ", fmt.Sprint(v.Value()))
		}
		rows = append(rows, row)
	}
	slices.Sort(rows)
	return b.String() + strings.Join(rows, "\n")
}
