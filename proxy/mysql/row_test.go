package mysql

import (
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

func TestStatementThatReadsTooManyRowsIsInexact(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, rows := range []int{maxIdentities, maxIdentities + 1} {
		s := NewSession(Config{})
		for range rows {
			s.identities.add(0, []byte("r"), []byte("0"))
		}
		o := &pendingStatement{plan: &sqlmysql.Plan{Result: sqlmysql.Result{Reply: rewrite.Trimmed,
			Sources: []sqlmysql.Source{{Table: "shop.item"}}}}}
		o.stmt.Observation = history.Exact
		s.identities.take(o)
		if exact := o.stmt.Observation == history.Exact; len(o.stmt.Accesses) != maxIdentities ||
			exact != (rows == maxIdentities) {
			t.Errorf("%d rows: %d reads, %v", rows, len(o.stmt.Accesses), o.stmt.Observation)
		}
		if s.identities.forget(); !s.identities.dropped.IsZero() {
			t.Errorf("%d rows: the next statement has too many before it begins", rows)
		}
	}
}
