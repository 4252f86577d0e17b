package mysql

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/testdb"
)

// TiDB shows isotap's columns, so that queries of these tests name the client's, and texts of its own mean what they
// would mean without them.

// onTiDB reports whether the tests of this round run there.
func onTiDB() bool { return testdb.EngineName() == testdb.TiDBRound.Name }

// withoutPoints has the tables of these tests lack what TiDB lacks.
var withoutPoints = strings.NewReplacer(" g POINT,", "", ", g, up)", ", up)", ", POINT(1, 2), NULL)", ", NULL)", ", POINT(0, 0), NULL)", ", NULL)",
	"1999, NULL, NULL)", "1999, NULL)", "2020, NULL)", "2020, NULL)", "'', NULL, NULL, NULL)", "'', NULL, NULL)", "'null', NULL, NULL, NULL)", "'null', NULL, NULL)",
	"NULL, NULL, NULL, NULL, NULL, NULL)", "NULL, NULL, NULL, NULL, NULL)", "0, NULL, NULL)", "0, NULL)",
	"c INT DEFAULT 5 INVISIBLE, ", "")

// setUp runs a statement that makes or fills a table in both databases.
func (tw *twins) setUp(statement string) {
	tw.t.Helper()
	if onTiDB() {
		statement = withoutPoints.Replace(statement)
	}
	exec(tw.t, tw.original, statement)
	exec(tw.t, tw.proxied, tw.text(statement))
}

// text returns a statement as it goes upstream where isotap does not observe it, or makes a table.
func (tw *twins) text(statement string) string {
	if strings.HasPrefix(statement, "CREATE") {
		return string(New(tables{}, Options{}).Plan(statement, tw.session).Append(nil, noHoles))
	}
	if onTiDB() {
		tw.rewriter = New(tables{tw.session.Schema + ".t": tw.describe(255)}, Options{})
		if plain := tw.rewriter.Plan(statement, tw.session).Upstream.Plain; plain != "" {
			return plain
		}
	}
	return statement
}

// visible are the client's columns of t: all that a star shows, but on TiDB.
func (tw *twins) visible() string {
	if !onTiDB() {
		return "t.*"
	}
	var names []string
	for _, c := range tw.describe(255).Columns {
		names = append(names, "t."+quoted(c.Name))
	}
	return strings.Join(names, ", ")
}

// describeExposed reads what a plan for TiDB hangs on.
func (tw *twins) describeExposed(t *Table) {
	tw.t.Helper()
	t.Exposed = true
	_, lines := rows(tw.t, tw.proxied, "SELECT COLUMN_TYPE, IFNULL(COLLATION_NAME, ''), IS_NULLABLE, EXTRA FROM information_schema.COLUMNS "+
		"WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 't' AND COLUMN_NAME NOT LIKE 'isotap%' ORDER BY ORDINAL_POSITION")
	for i, l := range lines {
		parts := strings.Split(strings.ReplaceAll(l, `"`, ""), "|")
		c := &t.Columns[i]
		c.Full, c.Collation, c.NotNull = parts[0], parts[1], parts[2] == "NO"
		c.Generated = strings.Contains(parts[3], "GENERATED")
	}
}

// TestWritesOnTiDBAreTransparent runs statements that isotap observes there, and others, as they are and rewritten.
func TestWritesOnTiDBAreTransparent(t *testing.T) {
	testdb.Only(t, "others have tests of their own", testdb.TiDBRound.Name)
	for _, query := range []string{
		"INSERT INTO t VALUES (9, 1, 2, 'x', NULL, NULL, NULL, NULL, NULL, 'x', 'a', 1, 'a', 'b', 't', 'b', NULL, NULL, NULL, 7, DEFAULT)",
		"INSERT INTO t (id, c1) SELECT id + 20, c1 FROM t", "REPLACE INTO t (id, c1) VALUES (1, 2)",
		"INSERT INTO t (id, c1) VALUES (1, 2) ON DUPLICATE KEY UPDATE c1 = VALUES(c1)", "INSERT IGNORE INTO t (id, c1) VALUES (1, 2), (30, 3)",
		"INSERT INTO t (id, c1) VALUES (1, 2)", "UPDATE t SET c1 = NULL WHERE c1 IN (SELECT * FROM (SELECT 10) x)",
		"DELETE FROM t WHERE EXISTS (SELECT * FROM t y WHERE y.id = t.c1 / 10)", "DELETE FROM t WHERE NOT EXISTS (SELECT * FROM t y WHERE y.c1 = t.c2)",
		"UPDATE t SET c2 = 5 WHERE id > (SELECT MIN(c1) FROM t y WHERE s = 'a') - 9", "DELETE FROM t ORDER BY id LIMIT 1",
	} {
		tw := newTwins(t, "SET timestamp = 1700000000.5")
		tw.create(mixedTable, mixedRows)
		want := tw.outcome(tw.original, query)
		if got := tw.outcome(tw.proxied, tw.observed(query)); got != want {
			t.Errorf("%s (%s): rewritten %+v\noriginal  %+v", query, tw.observed(query), got, want)
		}
	}
}

// observed returns a statement as it goes upstream, whether it is observed or not.
func (tw *twins) observed(query string) string {
	p := tw.rewriter.Plan(query, tw.session)
	switch {
	case p.Upstream.Pieces != nil:
		return literal(p, Values{Tag: tw.nextTag()})
	case p.Upstream.Plain != "":
		return p.Upstream.Plain
	}
	return query
}

// wListDefinition defines isotap's column of versions.
func (tw *twins) wListDefinition(size int) string {
	if onTiDB() {
		return strings.ReplaceAll(WListDefinition(size), " INVISIBLE", "")
	}
	return WListDefinition(size)
}
