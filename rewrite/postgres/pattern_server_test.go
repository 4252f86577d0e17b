package postgres

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/history"
)

// TestAPatternThatEndsWithABackslashFailsWhereTheClientsDoes has LIKE fail for rows that the server need not come to.
func TestAPatternThatEndsWithABackslashFailsWhereTheClientsDoes(t *testing.T) {
	tw := newTwins(t)
	for _, text := range []string{
		`SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.qty > 1 OR o.note LIKE '\')`,
		`SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.qty > 1 OR o.note NOT ILIKE E'\\')`,
		`SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.qty > 1 OR o.note ~~ U&'\005c')`,
		`SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.qty > 1 OR o.note LIKE ANY ('{"\\\\"}'))`,
		`SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.qty > 1 OR o.note LIKE ALL (ARRAY['%', '\']))`,
		`SELECT id FROM item WHERE EXISTS (SELECT FROM orders o, kv WHERE o.qty > 1 OR o.note LIKE kv.k)`,
		`SELECT id FROM item WHERE id IN (SELECT o.item_id FROM orders o WHERE o.qty > 1 OR o.note LIKE '\') LIMIT 1`,
		`DELETE FROM loose WHERE a = 99 AND EXISTS (SELECT FROM orders o WHERE o.qty > 1 OR o.note LIKE '\')`,
		`INSERT INTO kv SELECT 'a', note FROM orders WHERE id < 3 OR note LIKE '\'`,
		`SELECT max(id) FROM orders WHERE id = 4 OR note LIKE '\'`,
	} {
		if plans, _ := tw.both(text); plans[0].Observation == history.Exact && plans[0].Kind == history.Select {
			t.Errorf("%s is exact", text)
		}
	}
	tw.both("SET standard_conforming_strings = off")
	tw.session.Backslashes = true
	tw.both(`SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.qty > 1 OR o.note LIKE '\\')`)
	tw.session.Backslashes = false
	tw.both("SET standard_conforming_strings = on")
	tw.tells(`SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.note LIKE 'a%' OR o.note LIKE ANY ('{c,d}'))`,
		map[string]string{"item": "true", "orders": "note IN ('a', 'c', 'd')"}, history.Exact)
}

// TestAParameterThatEndsWithABackslashIsToldBeforeItFails has patterns that are parameters.
func TestAParameterThatEndsWithABackslashIsToldBeforeItFails(t *testing.T) {
	tw := newTwins(t)
	tw.session.Extended = true
	for _, c := range []struct {
		text  string
		shown map[string]string // by pattern: how many identities the last column has in each row, or *
	}{
		{"SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.qty > 1 OR o.note LIKE $1) ORDER BY id",
			map[string]string{"d": "3 3 3", `\`: "* * *", `d\`: "* * *", `\\`: "* * *", "": "2 2 2"}},
		{"SELECT id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.id < 4 AND (o.qty > 1 OR o.note NOT ILIKE $1)) ORDER BY id",
			map[string]string{"A": "1 1", `\`: "* *"}},
		{"SELECT id FROM item i WHERE id < 3 AND EXISTS (SELECT FROM orders o WHERE o.item_id > 0 AND EXISTS (SELECT FROM loose WHERE a = o.id AND (a < 2 OR b LIKE $1 AND a > 5))) ORDER BY id",
			map[string]string{"y": "2 2", `\`: "* *"}},
		{"SELECT count(*) FROM item i WHERE id = 2 AND EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND (o.qty > 1 OR o.note LIKE $1))",
			map[string]string{"A": "1", `\`: "*"}},
		{"SELECT (SELECT o.id FROM orders o WHERE o.qty > 3 OR o.note LIKE $1 ORDER BY qty DESC LIMIT 1) FROM item i WHERE id = 1",
			map[string]string{"d": "1", `x\`: "*"}},
		{"SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.qty > 1 OR lower(o.note) LIKE upper($1)) ORDER BY id",
			map[string]string{"d": "2 2 2", `\`: "* * *"}},
		{"UPDATE item SET stock = 5 WHERE id = 2 AND EXISTS (SELECT FROM orders o WHERE o.item_id = item.id AND (o.qty > 1 OR o.note LIKE $1))",
			map[string]string{"d": "1", `\`: "*"}},
	} {
		script := tw.rewriter.Plan(c.text, tw.session)
		if p := script.Statements[0]; p.Observation != history.Exact {
			t.Errorf("%s: %v: %s", c.text, p.Observation, p.Reason)
			continue
		}
		text := string(script.Append(nil))
		want, err := tw.original.Prepare(t.Context(), "", c.text, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tw.proxied.Prepare(t.Context(), "", text, nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if !slices.Equal(got.ParamOIDs, want.ParamOIDs) {
			t.Errorf("%s: parameters of types %v, not %v", c.text, got.ParamOIDs, want.ParamOIDs)
		}
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			for pattern, shown := range c.shown {
				if tw.session.Version < 13 && strings.Contains(c.text, "LIMIT") {
					shown = "*" // it has no WITH TIES
				}
				tw.patternShows(c.text, text, mode, pattern, shown)
			}
		}
	}
	for _, text := range []string{
		"SELECT id FROM item WHERE EXISTS (SELECT FROM orders o WHERE o.qty > 1 OR substr(o.note, 1) LIKE $1)",
		"SELECT id FROM item WHERE EXISTS (SELECT FROM orders o, kv WHERE o.qty > 1 OR $1 LIKE kv.k)",
		"SELECT id FROM item WHERE EXISTS (SELECT FROM strange s WHERE s.a > 1 OR s.id LIKE $1)",
		"SELECT item_id FROM orders o WHERE o.note LIKE $1 GROUP BY 1 HAVING count(*) > 1",
	} {
		if script := tw.rewriter.Plan(text, tw.session); script.Statements[0].Observation == history.Exact {
			t.Errorf("%s is exact", text)
		}
	}
}

// patternShows runs a statement with a pattern, and holds how many identities its last column has against what they
// should be.
func (tw *twins) patternShows(original, text, mode, pattern, want string) {
	tw.t.Helper()
	exec := func(c *pgconn.PgConn, text string) *pgconn.Result {
		run(tw.t, c, "SET plan_cache_mode = "+mode)
		return c.ExecParams(context.Background(), text, [][]byte{[]byte(pattern)}, nil, nil, nil).Read()
	}
	wanted, r := exec(tw.original, original), exec(tw.proxied, text)
	if wanted.Err != nil || r.Err != nil || len(wanted.FieldDescriptions) > 0 && len(r.Rows) != len(wanted.Rows) {
		tw.t.Errorf("%s of %q: %v and %d rows, not %v and %d", text, pattern, r.Err, len(r.Rows), wanted.Err, len(wanted.Rows))
		return
	}
	var shown []string
	for _, row := range r.Rows {
		switch last := string(row[len(row)-1]); {
		case strings.Contains(last, "*"):
			shown = append(shown, "*")
		default:
			shown = append(shown, string('0'+rune(strings.Count(last, ")"))))
		}
	}
	if got := strings.Join(shown, " "); got != want {
		tw.t.Errorf("%s of %q shows %s, not %s", original, pattern, got, want)
	}
}
