package mysql

import (
	"fmt"
	"sync"
	"testing"
)

// TestConcurrentPlansAreTheirOwnStatements plans different statements side by side.
func TestConcurrentPlansAreTheirOwnStatements(t *testing.T) {
	r := New(testSchema(), Options{})
	s := Session{Schema: "shop", Charset: "utf8mb4"}
	want := make(map[string]string)
	for i := range 8 {
		sql := fmt.Sprintf("SELECT name FROM item WHERE id = %d AND name IN (SELECT note FROM orders)", i)
		if i%2 == 1 {
			sql = fmt.Sprintf("UPDATE orders SET qty = %d WHERE id = %d", i, i)
		}
		want[sql] = fmt.Sprint(*r.Plan(sql, s))
	}
	var planners sync.WaitGroup
	for sql, plan := range want {
		planners.Go(func() {
			for range 300 {
				if got := fmt.Sprint(*r.Plan(sql, s)); got != plan {
					t.Errorf("%s is planned as\n%s\nalone as\n%s", sql, got, plan)
					return
				}
			}
		})
	}
	planners.Wait()
}
