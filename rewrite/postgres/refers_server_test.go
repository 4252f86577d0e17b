package postgres

import (
	"slices"
	"testing"

	"github.com/isotap/isotap/history"
)

// TestASubqueryHangsOnTheRowByTheScopesOfItsNames has names that mean another table, or column, further within.
func TestASubqueryHangsOnTheRowByTheScopesOfItsNames(t *testing.T) {
	tw := newTwins(t)
	for _, c := range []struct {
		text  string
		whole []bool // of the subqueries, from the outside on
	}{
		{"SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND o.id NOT IN (SELECT i.a FROM loose i))", []bool{false, true}},
		{"SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id < stock AND EXISTS (SELECT FROM item x WHERE x.id = o.item_id))", []bool{false, false}},
		{"SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = 1 AND EXISTS (SELECT FROM item x WHERE x.stock > 3 AND x.id = o.item_id))", []bool{true, true}},
		{"SELECT i.id FROM item i WHERE 0 < (SELECT count(*) AS stock FROM orders o ORDER BY stock)", []bool{true}},
		{"SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.item_id = i.id AND EXISTS (SELECT FROM loose l WHERE l.a = o.id AND EXISTS (SELECT FROM parent o WHERE o.id > l.a)))", []bool{false, false, false}},
		{"SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders i WHERE i.id = 1)", []bool{true}},
		{"SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE o.id = 1 AND EXISTS (SELECT FROM loose WHERE a = i.id))", []bool{false, false}},
		{"SELECT i.id FROM item i WHERE EXISTS (SELECT FROM orders o WHERE i IS NOT NULL)", []bool{false}},
	} {
		plans, _ := tw.both(c.text)
		var whole []bool
		for _, s := range plans[0].Result.Sources {
			if s.Beside {
				whole = append(whole, s.Whole)
			}
		}
		if p := plans[0]; p.Observation != history.Exact || !slices.Equal(whole, c.whole) {
			t.Errorf("%s: %v: %s, %v, not %v", c.text, p.Observation, p.Reason, whole, c.whole)
		}
	}
}
