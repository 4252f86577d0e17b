package mysql

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// TestGroupsThatMayWarnAreLeftAlone gives expressions to group by, and conditions on groups: quiet ones are observed.
func TestGroupsThatMayWarnAreLeftAlone(t *testing.T) {
	r := New(testSchema(), Options{})
	const by, having = "SELECT stock, COUNT(*) AS n FROM item i JOIN types t ON t.id = i.id GROUP BY ",
		"SELECT name, SUM(stock) AS n, MIN(ts) AS at FROM item, types GROUP BY name HAVING "
	for query, noisy := range map[string]bool{
		by + "i.name": false, by + "stock % 10": false, by + "LOWER(i.name)": false, by + "1": false, by + "ts": false,
		by + "DATE(ts)":            false,
		by + "YEAR(ts), MONTH(ts)": false, by + "DATE_FORMAT(ts, '%Y')": false, by + "CAST(ts AS DATE)": false, by +
			"LEFT(i.name, 2)": false,
		by + "CASE WHEN price > 10 THEN 'dear' ELSE 'cheap' END": false, by + "COALESCE(i.name, '-')": false, by +
			"i.name = 'x'": false, by + "IF(price > '2', 1, 0)": false,
		by + "i.name + 0": true, by + "'a' || 'b'": true, by + "1 / stock": true, by + "DATE(i.name)": true, by +
			"stock DIV 0": true, by + "LOWER(1 / 0)": true,
		by + "t.g": true, by + "CAST(i.name AS SIGNED)": true, by + "LEFT(i.name, 'x')": true, by +
			"IF(i.name, 1, 0)": true, by + "JSON_VALUE(i.name, '$')": true, by + "-i.name": true,
		having + "n > 5": false, having + "SUM(stock) > ? AND COUNT(*) BETWEEN 1 AND 9": false, having +
			"at > '2024-02-29'": false, having + "name LIKE 'a%'": false,
		having + "MIN(price) IN (1, 2)": false, having + "n IS NULL": false, having +
			"MIN(ts) < '2024-02-29 10:00:00'": false,
		having + "n > 'q'": true, having + "name": true, having + "name > 1": true, having + "at > '2023-02-29'": true,
		having + "n > '1/2'": true, having + "n > (SELECT 1)": true,
		"SELECT SUM(d.m), COUNT(*) FROM (SELECT stock + 1 AS m FROM item) d GROUP BY d.m % 2": false,
		"SELECT d.m, COUNT(*) FROM (SELECT name + 1 AS m FROM item) d GROUP BY d.m":           true,
		"SELECT name + 1 AS stock, COUNT(*) FROM item GROUP BY stock":                         true,
		"SELECT name + 1, COUNT(*) FROM item GROUP BY 1":                                      true,
		"SELECT name + 1 FROM item":                                                           false,
		"SELECT stock, SUM(name + 1) FROM item WHERE name + 0 GROUP BY stock ORDER BY 2 + 1":  false,
	} {
		p := r.Plan(query, testSession())
		if got := p.Reason == history.ReasonWarnings; got != noisy || !noisy && p.Upstream.Pieces == nil {
			t.Errorf("%s: %v (%s)", query, p.Observation, p.Reason)
		}
		if strings.Contains(query, "HAVING") && !noisy && p.Reason != history.ReasonGroupsLeftOut {
			t.Errorf("%s: %v (%s)", query, p.Observation, p.Reason)
		}
	}
}
