package postgres

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// leftJoins are queries with LEFT JOINs, of which some ask nothing.
var leftJoins = grammar{
	"read": {"SELECT <shown> FROM orders a LEFT JOIN item i ON <on><where>", "SELECT count(*) FROM orders a LEFT JOIN item i ON <on><where>", "SELECT a.qty, count(*) FROM orders a LEFT JOIN item i ON <on><where> GROUP BY 1",
		"SELECT <shown> FROM loose l LEFT JOIN orders a ON a.id = l.a LEFT JOIN item i ON <on><where>", "SELECT <shown> FROM loose l LEFT JOIN orders a ON <of orders> JOIN item i ON i.id = l.a<where of b>",
		"SELECT <shown> FROM (orders a LEFT JOIN item i ON <on>) CROSS JOIN loose l<where>", "SELECT <shown> FROM loose l, orders a LEFT JOIN item i ON <on><where>", "SELECT DISTINCT <shown> FROM orders a LEFT JOIN item i ON <on><where>",
		"SELECT a.id FROM orders a LEFT JOIN item i ON <on> LEFT JOIN LATERAL (SELECT l.b FROM loose l WHERE l.a = <column>) l ON true", "SELECT a.id FROM orders a LEFT JOIN item i ON <on> WHERE EXISTS (SELECT FROM loose l WHERE l.a = <column>)",
		"SELECT d.id, d.name FROM (SELECT a.id, i.name FROM orders a LEFT JOIN item i ON <on>) d", "SELECT d.id FROM (SELECT a.id, i.name FROM orders a LEFT JOIN item i ON <on>) d", "SELECT count(*) FROM (SELECT a.*, i.name FROM orders a LEFT JOIN item i ON <on>) d WHERE d.id < 3", "WITH w AS (SELECT i.*, a.id AS x FROM orders a LEFT JOIN item i ON <on>) SELECT w.x FROM w", "SELECT <shown> FROM item i RIGHT JOIN orders a ON <on><where>", "SELECT count(*) FROM item i RIGHT JOIN orders a ON <on>", "SELECT a.id FROM orders a LEFT JOIN item i USING (id)<where>",
		"WITH w AS (SELECT a.id, a.qty FROM orders a LEFT JOIN item i ON <on>) SELECT * FROM w WHERE id < 3", "SELECT a.id FROM orders a LEFT JOIN item i ON <on> UNION ALL SELECT a FROM loose", "SELECT <shown> FROM orders a LEFT JOIN item i ON <on><where> ORDER BY <column>"},
	"shown":      {"a.id", "a.*", "a.id, i.name", "a.qty + 1 AS n", "*", "a.id, i IS NULL", "a.id, (SELECT max(l.b) FROM loose l WHERE l.a = <column>)"},
	"on":         {"i.id = a.item_id", "a.item_id = i.id", "i.id = a.item_id AND i.stock > <int>", "i.id = a.qty + 1", "i.stock = a.qty", "i.id > a.item_id", "i.id = i.stock", "i.id = a.item_id OR i.id = 1", "i.id = <int>", "true"},
	"of orders":  {"a.id = l.a", "a.item_id = l.a", "a.id = l.b AND a.qty > 1"},
	"where":      {"", "", " WHERE a.id < 3", " WHERE <column> > 1"},
	"where of b": {"", " WHERE i.id < 3", " WHERE a.id IS NOT NULL"},
	"column":     {"a.qty", "a.id", "i.stock", "i.id"},
	"int":        {"1", "2", "100"},
}

// TestRowsOfLeftJoinsAreThoseThatWereRead holds what statements tell of LEFT JOINs, which the server leaves out where
// nothing hangs on them.
func TestRowsOfLeftJoinsAreThoseThatWereRead(t *testing.T) { holdsOfScans(t, leftJoins, "<read>") }

func TestALeftJoinOfWhichNothingIsAskedIsLeftOut(t *testing.T) {
	tw := newTwins(t)
	for _, c := range []struct {
		text  string
		reads bool // item
	}{
		{"SELECT count(*) FROM orders a LEFT JOIN item i ON i.id = a.item_id", false},
		{"SELECT a.id FROM loose l LEFT JOIN orders a ON a.id = l.a LEFT JOIN item i ON i.id = a.item_id", false},
		{"SELECT a.id FROM orders a LEFT JOIN item i ON i.id = a.item_id JOIN loose l ON l.a = a.id", false},
		{"SELECT count(*) FROM orders a LEFT JOIN item i ON i.stock = a.qty", true},
		{"SELECT count(i.id) FROM orders a LEFT JOIN item i ON i.id = a.item_id", true},
		{"SELECT count(*) FROM orders a LEFT JOIN item i ON i.id = a.item_id WHERE stock > 1", true},
		{"SELECT a.id FROM orders a LEFT JOIN item i ON i.id = a.item_id ORDER BY i.name", true},
	} {
		plan := strings.Join(tw.ask("EXPLAIN "+c.text), "\n")
		if got := strings.Contains(plan, " on item"); got != c.reads {
			t.Errorf("%s: read: %t\n%s", c.text, got, plan)
		}
		p, tells := tw.rewriter.Plan(c.text, tw.session).Statements[0], false
		for _, s := range p.Result.Sources {
			tells = tells || s.Table == "public.item"
		}
		if tells != c.reads || p.Observation != history.Exact {
			t.Errorf("%s tells of it: %t, and is %v", c.text, tells, p.Observation)
		}
		tw.both(c.text)
	}
}
