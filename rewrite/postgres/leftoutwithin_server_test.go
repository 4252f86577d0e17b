package postgres

import "testing"

// innerLeftJoins are statements whose subqueries have LEFT JOINs, of which some ask nothing.
var innerLeftJoins = grammar{
	"read": {"SELECT l.a, l.b FROM loose l WHERE <test>", "SELECT l.a FROM loose l WHERE <test> AND <test>", "SELECT l.b, <value> AS n FROM loose l", "SELECT l.b FROM loose l WHERE l.a = 2 OR <test>", "UPDATE gen SET a = 1 WHERE <of gen> RETURNING id", "DELETE FROM gen WHERE <of gen> RETURNING id",
		"UPDATE gen SET a = (SELECT max(a.qty) FROM <joined> WHERE a.item_id = gen.id) RETURNING id", "SELECT d.x FROM (SELECT l.a AS x FROM loose l WHERE <test>) d", "SELECT l.a, count(*) FROM loose l WHERE <test> GROUP BY 1", "SELECT l.a FROM loose l WHERE <test> UNION ALL SELECT 7"},
	"test": {"EXISTS (SELECT <any> FROM <joined> WHERE <where>)", "NOT EXISTS (SELECT <any> FROM <joined> WHERE <where>)", "l.a IN (SELECT <one> FROM <joined><and>)", "l.a NOT IN (SELECT <one> FROM <joined><and>)", "l.a <= (SELECT count(*) FROM <joined> WHERE <where>)", "l.a < ALL (SELECT <one> + 7 FROM <joined><and>)",
		"EXISTS (SELECT FROM (SELECT a.id, a.item_id, i.stock FROM <joined>) d WHERE d.item_id = l.a<of d>)", "l.a IN (SELECT d.item_id FROM (SELECT a.*, i.stock FROM <joined>) d)", "EXISTS (SELECT FROM (SELECT <any> FROM <joined>) d)", "l.a < (SELECT count(*) FROM (SELECT * FROM <joined>) d)",
		"EXISTS (SELECT FROM kv WHERE k < 'c' AND EXISTS (SELECT <any> FROM <joined> WHERE <where>))", "EXISTS (SELECT <any> FROM <joined> WHERE <where> ORDER BY <column>)", "l.a IN (SELECT a.item_id FROM <joined> GROUP BY a.item_id)", "EXISTS (SELECT 1 FROM <joined> JOIN kv k ON k.k <> a.note WHERE <where>)"},
	"value":  {"(SELECT count(*) FROM <joined> WHERE <where>)", "(SELECT max(<column>) FROM <joined> WHERE <where>)", "(SELECT a.note FROM <joined> WHERE <where> ORDER BY a.id LIMIT 1)", "(SELECT a.note FROM <joined> WHERE <where> ORDER BY i.stock, a.id LIMIT 1)", "ARRAY(SELECT a.id FROM <joined> WHERE <where>)", "(SELECT json_agg(d) FROM (SELECT a.id FROM <joined> WHERE <where>) d)", "(SELECT count(d.id) FROM (SELECT a.id, i.stock FROM <joined> WHERE <where>) d)"},
	"of gen": {"EXISTS (SELECT <any> FROM <joined> WHERE a.item_id = gen.id)", "id IN (SELECT <one> FROM <joined><and>)", "id NOT IN (SELECT a.item_id FROM <joined> WHERE a.qty > 4)"},
	"joined": {"orders a LEFT JOIN item i ON <on>", "orders a LEFT JOIN item i ON <on>", "orders a LEFT JOIN item i ON <on> LEFT JOIN part p ON p.id = a.id", "part p JOIN orders a ON a.id >= p.id LEFT JOIN item i ON <on>", "orders a LEFT JOIN (item i JOIN part p ON p.id = i.id) ON <on>", "item i RIGHT JOIN orders a ON <on>", "orders a LEFT JOIN item i USING (id)"},
	"on":     {"i.id = a.item_id", "a.item_id = i.id", "i.id = a.item_id AND i.stock > <int>", "i.stock = a.qty", "i.id > a.item_id", "i.id = <int>", "true"},
	"any":    {"1", "*", "a.id", "i.name", ""},
	"one":    {"a.item_id", "i.id", "a.qty"},
	"where":  {"a.item_id = l.a", "a.item_id = l.a AND a.qty > <int>", "a.item_id = l.a AND <column> > 1", "a.qty > <int>", "i.stock >= l.a"},
	"and":    {"", " WHERE a.qty > <int>", " WHERE <column> IS NOT NULL", " WHERE i.stock > 3"},
	"of d":   {"", " AND d.stock > 1", " AND d.id > 1"},
	"column": {"a.qty", "a.qty", "i.stock"},
	"int":    {"1", "2", "100"},
}

// TestLeftJoinsWithinSubqueriesTellWhatWasRead holds what statements tell of LEFT JOINs in subqueries: of a table that
// the server leaves out nothing.
func TestLeftJoinsWithinSubqueriesTellWhatWasRead(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	newTwins(t).holdsOfTables(t, innerLeftJoins, "<read>")
}
